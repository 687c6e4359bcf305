"""Private hyper-parameter search
==============================

The accuracy of a private classifier can depend strongly on the width of a kernel.
``GridSearchCV`` would choose the width by scores on private labels. Such a choice has
no privacy guarantee, and each fit of the search is a release.
:class:`~sklearn_pate.model_selection.PrivateSearchCV` publishes only the best
candidate, at about twice the privacy cost of one fit, or at the cost of one fit.
"""

# %%
# Data and model
# --------------
#
# The model is a logistic regression with noise in its objective, on random features of
# digits. The label set is public, and so is the largest norm of the features, sqrt(2).

import math

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import RBFSampler
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline

from sklearn_pate import privacy_leaks
from sklearn_pate.learners import DPLogisticRegression
from sklearn_pate.model_selection import PrivateSearchCV

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(
    X / 16, 1 - y % 2, test_size=0.2, random_state=0
)
epsilon, delta = 2.0, 1e-4  # of one fit: 1437 private digits are few
widths = [0.001, 0.01, 0.1, 1.0, 10.0]
model = make_pipeline(
    RBFSampler(n_components=200),
    DPLogisticRegression(
        method="gaussian", epsilon=epsilon, delta=delta, data_norm=math.sqrt(2)
    ),
)

# %%
# Accuracy of each width
# ----------------------
#
# These accuracies are for illustration. Choosing a width by these accuracies would be a
# search without privacy.

by_width = []
for gamma in widths:
    model.set_params(rbfsampler__gamma=gamma)
    scores = [model.fit(X, y).score(X_test, y_test) for _ in range(5)]
    by_width.append(np.mean(scores))
    print(f"gamma {gamma:<6} accuracy {by_width[-1]:.3f}")

# %%
# A plain search
# --------------

grid = {"rbfsampler__gamma": widths}
n_fits = len(widths) * 5 + 1  # five folds, and the best one on all rows
together = (model[-1].privacy_spent_.curve * n_fits).to_epsilon(delta)
print(f"GridSearchCV: {n_fits} fits cost epsilon={together:.2f}, and the search")
print(privacy_leaks(GridSearchCV(model, grid, cv=5))[0].reason)

# %%
# Private searches
# ----------------
#
# With ``n_trials_distribution="logarithmic"``, the number of fits is random and stays
# secret. Each fit takes a random candidate, and the best fit by noisy scores is
# published. With ``"disjoint"``, every candidate is fitted once, and no two candidates
# have a common row. This search has a lower cost, but fewer rows per fit. The cost of
# each search is known beforehand.

searches = {}
for distribution in ("logarithmic", "disjoint"):
    search = PrivateSearchCV(
        model, grid, n_trials_distribution=distribution, delta=delta, classes=[0, 1]
    )
    planned = search.plan_privacy(X, y)
    print(f"n_trials_distribution={distribution!r}: planned {planned!r}")
    chosen, accuracies = [], []
    for _ in range(5):
        search.fit(X, y)
        chosen.append(search.best_params_["rbfsampler__gamma"])
        accuracies.append(search.score(X_test, y_test))
    searches[distribution] = planned.epsilon, np.mean(accuracies)
    print(f"  choices of 5 searches, each at that cost: {sorted(chosen)}")

# %%
# The horizontal lines are mean accuracies over five searches.

figure, axis = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
axis.semilogx(widths, by_width, "o-", color="#777777", label="each width, no search")
for color, (name, (cost, accuracy)) in zip(
    ["#2277cc", "#d55e00"], searches.items(), strict=True
):
    label = f"{name} search: epsilon {cost:.2f} in all"
    axis.axhline(accuracy, color=color, label=label)
axis.set(xlabel="gamma", ylabel="accuracy", ylim=(0.4, 1))
axis.set_title(f"Even or odd digits, one fit at epsilon {epsilon:g}")
axis.legend(loc="lower left")
plt.show()

# %%
# Publication
# -----------
#
# The best candidate and its statement may be published. The number of fits, their
# scores, and the duration of the search must stay secret.

print(search.privacy_spent_)
