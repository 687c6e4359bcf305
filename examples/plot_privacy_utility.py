"""
====================
Accuracy and epsilon
====================

Epsilon bounds the information about one person in a release: a smaller epsilon
is more private, but needs more noise, which reduces accuracy. This example
fits the same learner at several epsilons and draws accuracy against epsilon.
"""

# %%
# Private, public and test rows
# -----------------------------
#
# PATE trains many *teachers*, each on its own part of the private rows. They vote on
# public rows without labels, noise is added to their vote counts, and a *student*
# learns from the noisy answers alone. The test rows are used for the scores only.

import warnings

import matplotlib.pyplot as plt
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelSpreading

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.exceptions import PrivacyLeakWarning, PrivacyUtilityWarning
from sklearn_pate.inspection import PrivacyUtilityDisplay

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=0)
X_private, X_public, y_private, _ = train_test_split(
    X, y, test_size=0.25, random_state=0
)

# %%
# Several fits for each epsilon
# -----------------------------
#
# The noise comes from the operating system and differs in every fit. Three fits per
# epsilon show the variation. Warnings are off: at epsilon 1 and 2, noise hides most
# votes on purpose, and the cost of all fits together is at the end.

pate = PATEClassifier(
    KNeighborsClassifier(1),
    LabelSpreading(kernel="knn"),
    n_teachers=50,
    n_queries=60,
    classes=range(10),
)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", PrivacyUtilityWarning)
    warnings.simplefilter("ignore", PrivacyLeakWarning)
    fits = [
        clone(pate)
        .set_params(epsilon=epsilon, random_state=seed)
        .fit(X_private, y_private, X_public=PublicData(X_public))
        for epsilon in [1, 2, 5, 10]
        for seed in range(3)
    ]

# %%
# Display
# -------
#
# ``baseline`` is the accuracy of a model that learns from the private rows without
# protection. ``sensitive`` has no default: you have to declare whether scores depend on
# private rows. Digits are public, so it is False here. With data of patients it would
# be True, and the picture would be marked as sensitive, for two reasons: scores on test
# rows of patients use their labels without noise, and the baseline model was trained on
# patients without protection.

unprotected = clone(pate.estimator).fit(X_private, y_private)
display = PrivacyUtilityDisplay.from_estimators(
    fits,
    X_test,
    y_test,
    sensitive=False,
    scoring="accuracy",
    baseline=unprotected.score(X_test, y_test),
    label="student, three fits each",
)
display.ax_.set_title(f"{len(X_private)} private digits, {pate.n_teachers} teachers")
plt.show()

# %%
# Interpretation
# --------------
#
# Bars are one standard deviation over the fits. At the left, answers are mostly noise;
# at the right, noise changes hardly any answer, and a larger epsilon gains little. A
# thousand rows are few: with more rows, there can be more teachers at the same noise,
# and the same accuracy is reached at a smaller epsilon.
#
# Before such a picture is published, note two points:
#
# - Each point has its own privacy cost. The cost of the whole picture is that of all
#   fits together, the sum of their ``privacy_spent_.curve``.
# - The choice of the best point by its score on private rows is covered by no
#   statement. Choose on public data, or with
#   :class:`~sklearn_pate.model_selection.PrivateSearchCV`.

together = fits[0].privacy_spent_.curve
for fit in fits[1:]:
    together = together + fit.privacy_spent_.curve
print(f"All {len(fits)} fits together: epsilon={together.to_epsilon(1e-5):.1f}")
