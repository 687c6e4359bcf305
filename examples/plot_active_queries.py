"""Query strategies
================

Each query has a privacy cost, so the choice of queries matters. A query strategy reads
public rows and earlier answers, never a vote, so its choice has no privacy cost. At
equal noise, the statement is the same for all strategies. This example compares four
query strategies.
"""

# %%
# Four strategies
# ---------------
#
# "random" queries random rows, and "representative" one typical row of each cluster of
# public rows. "uncertainty" and "experts" query in rounds. A round queries the rows on
# which a student, trained on earlier answers, is least certain. All strategies use the
# same hundred teachers, trained beforehand, and the same noise per query.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.mechanisms import GNMax, InteractiveGNMax

X, y = load_digits(return_X_y=True)
X = X / 16  # the range of a pixel is public
X, X_test, y, y_test = train_test_split(X, y, test_size=300, random_state=0)
X, X_public, y, y_public = train_test_split(X, y, test_size=500, random_state=0)
teacher = KNeighborsClassifier(1)
votes_by_teacher = [
    teacher.fit(X[shard], y[shard]).predict(X_public)
    for shard in np.array_split(np.arange(len(X)), 100)  # shuffled above
]


def fit(**parameters):
    """Fit; return the student's accuracy, the share of right answers, and the fit."""
    student = LogisticRegression(C=10, max_iter=3000)
    pate = PATEClassifier(student, classes=range(10), epsilon=None, **parameters)
    pate.fit_from_votes(PublicData(X_public), votes_by_teacher)
    # This share is known because the labels of these public rows are known.
    right = np.mean(pate.answers_ == y_public[pate.queried_indices_])
    return pate.score(X_test, y_test), right, pate


# %%
# Number of queries
# -----------------
#
# The table has the student's accuracy, and the share of right answers in brackets. Both
# are means over two fits.

strategies = ["random", "representative", "uncertainty", "experts"]
numbers = [20, 40, 80]
curves, costs, fits = {}, {}, []
print(f"{'queries':14}", *(f"{n:11}" for n in numbers))
for strategy in strategies:
    curve = curves[strategy] = np.zeros((len(numbers), 2))
    for i, n in enumerate(numbers):
        for _ in range(2):
            noise = GNMax(sigma=10)
            *scores, pate = fit(n_queries=n, query_strategy=strategy, mechanism=noise)
            curve[i] += np.array(scores) / 2
            costs[n] = pate.privacy_spent_.epsilon
            fits.append(pate)
    print(f"{strategy:14}", *(f"{a:.2f} ({right:.2f})" for a, right in curve))
print(f"{'epsilon':14}", *(f"{cost:11.3f}" for cost in costs.values()))

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
colours = ["#777777", "#0072b2", "#d55e00", "#e69f00"]
titles = ["accuracy of the student", "share of right answers"]
for column, (axis, title) in enumerate(zip(axes, titles, strict=True)):
    for strategy, colour, marker in zip(strategies, colours, "os^v", strict=True):
        curve = curves[strategy][:, column]
        axis.plot(curve, color=colour, marker=marker, label=strategy)
    ticks = [f"{n}\n{cost:.2f}" for n, cost in costs.items()]
    axis.set_xticks(range(len(numbers)), ticks)
    axis.set(xlabel="queries, and their epsilon", title=title)
axes[0].legend(frameon=False)
plt.show()

# %%
# With few queries, typical rows are best. Teachers disagree on rows on which the
# student is uncertain, so more answers to such queries are wrong. In this example,
# "uncertainty" and "experts" give about the same accuracy as "random".
#
# Publication
# -----------
#
# The privacy statement may be published for every strategy. ``privacy_analysis_``
# depends on the votes, and may not be published. If a strategy adapts to answers,
# ``privacy_analysis_`` holds only for the actual sequence of queries, and is not a
# bound.

same = len({str(pate.privacy_spent_) for pate in fits}) == len(numbers)
print(f"The statement is the same for all strategies: {same}.")
adaptive = [pate for pate in fits if pate.privacy_analysis_.along_transcript]
names = dict.fromkeys(pate.query_strategy for pate in adaptive)
print(f"Strategies that adapt to answers: {', '.join(names)}.")

# %%
# Interactive queries
# -------------------
#
# With "interactive", each query includes the student's prediction. If the noisy votes
# are near this prediction, a confident student answers the query itself. The privacy
# cost covers 80 such checks and 40 answers of the teachers, for any number of actual
# answers.

interactive = InteractiveGNMax(0.3, 20, 10, confidence=0.8, max_answers=40)
accuracy, _, pate = fit(
    n_queries=80, query_strategy="interactive", mechanism=interactive
)
print(f"accuracy {accuracy:.2f} after 80 interactive queries")
print(repr(pate.privacy_spent_))
