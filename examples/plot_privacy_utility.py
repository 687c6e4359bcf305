"""
=============================
What accuracy an epsilon buys
=============================

Epsilon bounds how much anyone can learn about one person from what is published: less
is more private. Privacy is bought with noise, and noise costs accuracy. This example
fits the same learner at several epsilons and draws the exchange, so that a person can
choose.
"""

# %%
# Three kinds of rows
# -------------------
#
# PATE trains many *teachers*, each on its own part of the private rows. They vote on
# public rows without labels, noise is added to their votes, and a *student* learns from
# the noisy answers alone. So there are private rows, public rows, and rows to test on.

import matplotlib.pyplot as plt
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelSpreading

from sklearn_pate import PATEClassifier, PublicData
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
# The noise comes from the operating system and is another one in every fit, so that one
# fit for an epsilon would say little. Each gets three.

pate = PATEClassifier(
    KNeighborsClassifier(1),
    LabelSpreading(kernel="knn"),
    n_teachers=50,
    n_queries=60,
    classes=range(10),
)
fits = [
    clone(pate)
    .set_params(epsilon=epsilon, random_state=seed)
    .fit(X_private, y_private, X_public=PublicData(X_public))
    for epsilon in [1, 2, 5, 10]
    for seed in range(3)
]

# %%
# The picture
# -----------
#
# ``baseline`` is the accuracy of a model that learns from the private rows without
# protection. ``sensitive`` has no default: somebody has to say whether scores come from
# private rows. Digits are public, so it is False here. In a hospital it would be True,
# and the picture would be stamped, for either of two reasons: if the test rows are
# patients, every score is computed on their labels without noise; and the model behind
# the baseline has seen patients without protection, whatever it is tested on.

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
# What it means
# -------------
#
# Bars are one standard deviation over the fits. At the left, noise decides; at the
# right, it turns hardly an answer, and a larger epsilon buys little more. A thousand
# rows are few: with more of them, more teachers can outvote the same noise, and the
# whole line moves to the left.
#
# Two things to remember before it is published:
#
# - Each point has a cost of its own. To show all of them costs what all fits cost
#   together, which the sum of their ``privacy_spent_.curve`` tells.
# - To pick the best point by its score on private rows is a choice that no statement
#   covers. Settle on public data, or search with
#   :class:`~sklearn_pate.model_selection.PrivateSearchCV`, which pays for its choice.

together = fits[0].privacy_spent_.curve
for fit in fits[1:]:
    together = together + fit.privacy_spent_.curve
print(f"All {len(fits)} fits together: epsilon={together.to_epsilon(1e-5):.1f}")
