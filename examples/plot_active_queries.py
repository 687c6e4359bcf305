"""Which public rows to ask about
==============================

Each answer costs privacy, so which rows are worth a query? A strategy sees public
rows and earlier answers, never a vote: its choice costs nothing, and at equal noise the
statement is the same for all of them. This example compares five.
"""

# %%
# Five strategies
# ---------------
#
# "representative" asks about one typical row of each cluster of public rows; with
# "cluster", the rows of a cluster vote, and learn, together. "uncertainty" and
# "experts" ask in rounds, each time where a student of the answers so far is least
# sure. All ask the same hundred teachers, which are trained beforehand here. The noise
# is given, and so is the cost of a query.

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


def ask(**how):
    """Fit; return the student's accuracy, the share of right answers, and the fit."""
    student = LogisticRegression(C=10, max_iter=3000)
    pate = PATEClassifier(student, classes=range(10), epsilon=None, **how)
    pate.fit_from_votes(PublicData(X_public), votes_by_teacher)
    # Known here because this data set is public; elsewhere nobody can tell.
    right = np.mean(pate.answers_ == y_public[pate.queried_indices_])
    return pate.score(X_test, y_test), right, pate


# %%
# More and more queries
# -----------------------
#
# Accuracy of the student (and the share of right answers), means over two fits.

strategies = ["random", "representative", "cluster", "uncertainty", "experts"]
numbers = [20, 40, 80]
curves, costs, fits = {}, {}, []
print(f"{'queries':14}", *(f"{n:11}" for n in numbers))
for strategy in strategies:
    curve = curves[strategy] = np.zeros((len(numbers), 2))
    for i, n in enumerate(numbers):
        for _ in range(2):
            noise = GNMax(sigma=10)
            *scores, fit = ask(n_queries=n, query_strategy=strategy, mechanism=noise)
            curve[i] += np.array(scores) / 2
            costs[n] = fit.privacy_spent_.epsilon
            fits.append(fit)
    print(f"{strategy:14}", *(f"{a:.2f} ({right:.2f})" for a, right in curve))
print(f"{'epsilon':14}", *(f"{cost:11.3f}" for cost in costs.values()))

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
colours = ["#777777", "#0072b2", "#56b4e9", "#d55e00", "#e69f00"]
titles = ["accuracy of the student", "share of right answers"]
for column, (axis, title) in enumerate(zip(axes, titles, strict=True)):
    for strategy, colour, marker in zip(strategies, colours, "osD^v", strict=True):
        curve = curves[strategy][:, column]
        axis.plot(curve, color=colour, marker=marker, label=strategy)
    ticks = [f"{n}\n{cost:.2f}" for n, cost in costs.items()]
    axis.set_xticks(range(len(numbers)), ticks)
    axis.set(xlabel="queries, and the epsilon they cost", title=title)
axes[0].legend(frameon=False)
plt.show()

# %%
# Typical rows gain most where queries are few. Rows that a student is unsure of are
# those that teachers disagree about, so that more of their answers are wrong: here,
# they end about where random rows do.
#
# What may be published
# ---------------------
#
# The statement, whatever the strategy. Not ``privacy_analysis_``, which has what the
# votes say about the cost. Where queries followed answers, it holds along these
# queries only, and bounds nothing.

alike = len({str(fit.privacy_spent_) for fit in fits}) == len(numbers)
print(f"The statement is the same for all strategies: {alike}.")
followed = [fit for fit in fits if fit.privacy_analysis_.along_transcript]
names = dict.fromkeys(fit.query_strategy for fit in followed)
print(f"Queries followed answers with: {', '.join(names)}.")

# %%
# A student with an opinion
# -------------------------
#
# With "interactive", each query comes with the student's opinion. Where the votes
# are near it, up to noise, a student that is sure answers itself. Charged are 80 such
# checks and 40 answers of the teachers, however many there were.

interactive = InteractiveGNMax(0.3, 20, 10, confidence=0.8, max_answers=40)
accuracy, _, fit = ask(
    n_queries=80, query_strategy="interactive", mechanism=interactive
)
print(f"accuracy {accuracy:.2f} after 80 interactive queries")
print(repr(fit.privacy_spent_))
