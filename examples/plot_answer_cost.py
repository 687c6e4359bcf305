"""
==========================
What the next answer costs
==========================

A student learns from noisy answers, and each answer costs privacy. How much would the
next hundred cost? And why does a statement have two numbers, epsilon and delta? Both
pictures here depend on noise and on counts, and on no private row: they may be
published.
"""

# %%
# A fit to look at
# ----------------
#
# Of made-up rows, one half is private. Teachers are trained on disjoint parts of it and
# vote on public rows; the answer to each of 200 queries is the class with most votes,
# after noise. With ``epsilon=1`` the noise is calibrated before anything is asked, so
# that all 200 answers together cost at most that.

from textwrap import fill

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.inspection import AnswerCostDisplay, EpsilonDeltaDisplay

X, y = make_blobs(8000, centers=3, cluster_std=2.0, random_state=0)
clf = PATEClassifier(
    LogisticRegression(), n_teachers=100, n_queries=200, epsilon=1.0, delta=1e-5
)
clf.fit(X[:4000], y[:4000], X_public=PublicData(X[4000:]))
print(fill(str(clf.privacy_spent_), width=88))

# %%
# More queries, and other deltas
# --------------------------------
#
# On the left, the noise stays as it is and the number of queries changes. The dot is
# what was paid for. The line is steep at first and flattens: the second hundred answers
# cost less than the first.
#
# On the right, the same 200 answers. Delta is the probability mass that epsilon does
# not cover, and should be far below one over the number of people. A release does not
# have one epsilon: it has one for each delta, and the statement names a point of that
# line.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
AnswerCostDisplay.from_estimator(clf, n_queries=600, ax=left)
EpsilonDeltaDisplay.from_estimator(clf, ax=right)
left.set_title("more queries at the same noise")
right.set_title("the same queries at other deltas")
plt.show()

# %%
# What it means
# -------------
#
# Three times as many answers would cost less than three times as much:

mechanism, spent = clf.mechanism_, clf.privacy_spent_
for n_queries in [200, 400, 600]:
    curve = mechanism.account_curve(n_queries, n_classes=3)
    print(f"{n_queries} queries: epsilon={curve.to_epsilon(spent.delta):.2f}")

# %%
# That does not make many queries the right choice. For a fixed epsilon, more of them
# mean more noise in each answer, and a student that also learns from rows without
# labels needs few.
#
# A smaller delta costs little: a ten thousandth of it does not double epsilon. So
# choose a delta that is small beyond dispute, before the fit, and then think about
# epsilon.
#
# Before a fit, :meth:`AnswerCostDisplay.from_mechanisms
# <sklearn_pate.inspection.AnswerCostDisplay.from_mechanisms>` draws the same for noise
# of your choice.
