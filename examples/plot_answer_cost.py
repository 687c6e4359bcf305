"""
=========================
Privacy cost of an answer
=========================

A student learns from noisy answers, and each answer has a privacy cost. This example
draws epsilon against the number of queries, and against delta. Both pictures depend
only on the noise and the number of queries, not on private rows, so both pictures may
be published.
"""

# %%
# Fit
# ---
#
# Two thirds of the made-up rows are private. Teachers are trained on disjoint parts of
# the private rows, and vote on public rows. The answer to each of 200 queries is the
# class with most votes after noise is added. A noisy count of each class is released,
# too. With ``epsilon=1`` the noise is calibrated before any query, so that the count
# and all 200 answers together cost at most epsilon 1.

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.inspection import AnswerCostDisplay, EpsilonDeltaDisplay

X, y = make_blobs(6000, centers=3, cluster_std=2.0, random_state=0)
clf = PATEClassifier(
    LogisticRegression(), n_teachers=100, n_queries=200, epsilon=1.0, delta=1e-5
)
clf.fit(X[:4000], y[:4000], X_public=PublicData(X[4000:]))
print(clf.privacy_spent_)

# %%
# Number of queries, and delta
# ----------------------------
#
# In the left picture, the noise is fixed and the number of queries changes. The dot
# marks the fitted classifier. The line is steep at first and flattens: the second
# hundred answers cost less than the first hundred.
#
# The right picture is for the same 200 answers. Delta is the probability mass that
# epsilon does not cover, and should be far below one over the number of people. A
# release has one epsilon for each delta, and the privacy statement names one pair of
# epsilon and delta.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
AnswerCostDisplay.from_estimator(clf, n_queries=600, ax=left)
EpsilonDeltaDisplay.from_estimator(clf, ax=right)
left.set_title("more queries at the same noise")
right.set_title("the same queries at other deltas")
plt.show()

# %%
# Composition
# -----------
#
# Three times as many answers cost less than three times the epsilon:

mechanism, spent = clf.mechanism_, clf.privacy_spent_
for n_queries in [200, 400, 600]:
    epsilon = mechanism.cost(n_queries, n_classes=3).epsilon(spent.delta)
    print(f"{n_queries} queries: epsilon={epsilon:.2f}")

# %%
# Many queries are not always better. For a fixed epsilon, more queries mean more noise
# in each answer, and a student that also learns from rows without labels needs few
# queries.
#
# A smaller delta increases epsilon only slightly: a delta that is ten thousand times
# smaller does not double epsilon. Choose a very small delta before the fit, and then
# choose epsilon.
#
# Before a fit, :meth:`AnswerCostDisplay.from_mechanisms
# <sklearn_pate.inspection.AnswerCostDisplay.from_mechanisms>` draws the same for given
# noise.
