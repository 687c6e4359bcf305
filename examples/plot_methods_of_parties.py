"""
==========================
Parties and their methods
==========================

Each party trains a classifier on its own rows, and sends predicted labels of public
rows. Parties may use any learning method. This example compares votes of parties that
use five methods in turn with votes of parties that all use the same method.
"""

# %%
# Labels of parties
# -----------------
#
# Each of 250 parties has 40 made-up rows, and computes labels by all methods.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from sklearn_pate import PATEClassifier, PublicData

N_PARTIES, N_DATA_SETS = 250, 5
METHODS = {
    "logistic regression": LogisticRegression(),
    "random forest": RandomForestClassifier(10, random_state=0),
    "gradient boosting": GradientBoostingClassifier(n_estimators=10, random_state=0),
    "nearest neighbours": KNeighborsClassifier(),
    "naive Bayes": GaussianNB(),
}


def labels_of_parties(X, y, X_public):
    """Return labels of shape (n_parties, n_public) for each choice of methods."""
    parties = list(zip(np.split(X, N_PARTIES), np.split(y, N_PARTIES), strict=True))
    labels = {
        name: np.array([clone(method).fit(*rows).predict(X_public) for rows in parties])
        for name, method in METHODS.items()
    }
    in_turn = [labels[[*METHODS][k % len(METHODS)]][k] for k in range(N_PARTIES)]
    return labels | {"in turn": np.array(in_turn)}


# %%
# Votes and students
# ------------------
#
# The noise hides all labels of one party, by any method. Only the student is released,
# at epsilon 1. Errors are standard errors over five data sets.

votes = {name: [] for name in [*METHODS, "in turn"]}
students = {name: [] for name in votes}
for seed in range(N_DATA_SETS):
    X, y = make_classification(
        N_PARTIES * 40 + 3000, 10, n_informative=6, flip_y=0.05, random_state=seed
    )
    X, X_public, X_test = np.split(X, [-3000, -2000])
    y, y_public, y_test = np.split(y, [-3000, -2000])
    for name, labels in labels_of_parties(X, y, X_public).items():
        votes[name].append(100 * np.mean((labels.mean(axis=0) > 0.5) == y_public))
        pate = PATEClassifier(classes=[0, 1], epsilon=1.0, random_state=seed)
        pate.fit_from_votes(PublicData(X_public), labels)
        students[name].append(100 * pate.score(X_test, y_test))

figure, axis = plt.subplots(figsize=(7.5, 4), layout="constrained")
names, places = [*METHODS, "average of these"], np.arange(6)
for label, accuracies in ("vote without noise", votes), ("student", students):
    print(f"{label}: five methods in turn {np.mean(accuracies['in turn']):.1f} %")
    gains = np.subtract(accuracies["in turn"], [accuracies[name] for name in METHODS])
    gains = np.vstack([gains, gains.mean(axis=0)])
    means, errors = gains.mean(axis=1), gains.std(axis=1, ddof=1) / N_DATA_SETS**0.5
    for name, mean, error in zip(names, means, errors, strict=True):
        print(f"  minus {name:19} {mean:+.1f} ± {error:.1f} points")
    axis.errorbar(means, places, xerr=errors, fmt="o", capsize=3, label=label)
    places = places + 0.2
axis.axvline(0, color="#777777", linestyle=":")
axis.set_yticks(range(6), names)
axis.set_xlabel("accuracy of five methods in turn, minus that of one method, in points")
axis.legend()
plt.show()

# %%
# Parties need not agree on a method. Different methods make different errors, so their
# vote is a little more accurate than one method on average. On these data, nearest
# neighbours alone are better, but parties do not know this beforehand. On Adult, other
# methods are :ref:`better <parties-of-different-methods>`.
#
# Teachers of different methods
# -----------------------------
#
# In a fit on pooled rows, a teacher may choose the learning method by its random seed.


class AnyMethod(ClassifierMixin, BaseEstimator):
    """Classifier whose method depends on the seed, and not on any row."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        """Train the method of this seed."""
        method = list(METHODS.values())[self.random_state % len(METHODS)]
        self.model_ = clone(method).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        """Predict by this method."""
        return self.model_.predict(X)


pate = PATEClassifier(AnyMethod(), n_teachers=250, mechanism="gnmax", classes=[0, 1])
pate.fit(X, y, X_public=PublicData(X_public))
print(f"Student of the last data set: {pate.score(X_test, y_test):.1%} right.")
