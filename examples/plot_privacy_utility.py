"""
====================
Accuracy and epsilon
====================

Epsilon bounds the information about one person in a release. A fit with a smaller
epsilon is more private, but needs more noise, which reduces accuracy. This example fits
the same classifier at several epsilons and draws accuracy against epsilon.
"""

# %%
# Private, public and test rows
# -----------------------------
#
# PATE trains many *teachers*, each on its own part of the private rows. The teachers
# vote on public rows without labels, and noise is added to the vote counts. A *student*
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
# epsilon show the variation. Warnings are off for two reasons. At epsilon 1 and 2,
# noise hides most votes on purpose, and the cost of all fits together is printed at the
# end.

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
# private rows. Digits are public, so ``sensitive`` is False. With data of patients,
# ``sensitive`` would be True, and the picture marked as sensitive, for two reasons.
# Scores on test rows of patients use labels without noise, and the baseline model was
# trained on patients without protection.

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
# Error bars are one standard deviation over the fits. At small epsilons, answers are
# mostly noise. At large epsilons, noise changes hardly any answer, and a larger epsilon
# gains little. A thousand private rows are few. With more rows, there can be more
# teachers at the same noise, and a smaller epsilon gives the same accuracy.
#
# Before such a picture is published, note two points:
#
# - Each fit has its own privacy cost. The cost of the whole picture is the cost of all
#   fits together, from the sum of ``privacy_spent_.curve`` over fits.
# - No privacy statement covers the choice of the best fit by its score on private rows.
#   Choose on public data, or with
#   :class:`~sklearn_pate.model_selection.PrivateSearchCV`.

together = fits[0].privacy_spent_.curve
for fit in fits[1:]:
    together = together + fit.privacy_spent_.curve
print(f"All {len(fits)} fits together: epsilon={together.to_epsilon(1e-5):.1f}")
