"""
=======================================
LNMax, GNMax and Confident GNMax: Adult
=======================================

The papers on PATE add Laplace noise to vote counts (LNMax, 2017) or Gaussian noise
(GNMax, 2018). Confident GNMax answers only queries on which teachers agree. This
example compares the accuracy of labels with two epsilons for each mechanism. One
epsilon is printed in the papers and depends on the votes, the other holds for all
votes.

The rows are from the data set Adult if ``SKLEARN_PATE_DATA`` has its files, and made up
otherwise. They are public. With private rows, votes and results that depend on votes
must not be printed.
"""

# %%
# Votes
# -----
#
# As in the 2017 paper, 250 forests vote on the first 500 test rows, each for its most
# probable class. These forests are smaller than those of the paper. Mechanisms are
# compared on the votes of one fit.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.datasets import fetch_adult
from sklearn_pate.mechanisms import ConfidentGNMax, GNMax, LNMax

try:
    X, y = fetch_adult(download_if_missing=False, return_X_y=True)
    y = (y == ">50K").astype(int)
except OSError:
    print("Made-up rows, as there are no files of Adult.")
    X, y = make_classification(
        48_842, 14, n_informative=6, flip_y=0.2, weights=[0.75], random_state=0
    )

clf = PATEClassifier(
    RandomForestClassifier(10),
    RandomForestClassifier(100),
    n_teachers=250,
    n_queries=500,
    mechanism=LNMax(gamma=0.05),
    vote="plain",
    epsilon=None,
    classes=[0, 1],
    random_state=0,
)
clf.fit(X[:32_561], y[:32_561], X_public=PublicData(X[32_561:33_061]))
counts = clf.privacy_analysis_.counts  # sensitive
true = y[32_561:33_061][clf.queried_indices_]

# %%
# Accuracy and two epsilons
# -------------------------
#
# Each mechanism is run with five scales of noise. Accuracy is the share of right labels
# among the answers, over 20 draws of the noise.

mechanisms = {
    "LNMax": [LNMax(1 / scale) for scale in (5, 10, 20, 40, 80)],
    "GNMax": [GNMax(scale) for scale in (10, 20, 40, 80, 160)],
    "Confident GNMax": [
        ConfidentGNMax(200, sigma_threshold=3.75 * scale, sigma=scale)
        for scale in (10, 20, 40, 80, 160)
    ],
}
figure, (left, right) = plt.subplots(
    1, 2, figsize=(9.5, 4), sharex=True, sharey=True, layout="constrained"
)
for name, scales in mechanisms.items():
    accuracy, guaranteed, at_votes = [], [], []
    for mechanism in scales:
        answers = np.array([mechanism.answer(counts) for _ in range(20)])
        given = answers >= 0
        accuracy.append((answers == true)[given].mean())
        guaranteed.append(mechanism.cost(*counts.shape).epsilon(1e-5))
        at_votes.append(mechanism.paper_epsilon(counts, 1e-5))
    left.plot(guaranteed, accuracy, marker="o", label=name)
    right.plot(at_votes, accuracy, marker="o", markerfacecolor="white", linestyle="--")
    print(
        f"{name}, middle scale: {accuracy[2]:.2f} of labels right, "
        f"epsilon {guaranteed[2]:.2f} for all votes"
    )
print(f"Confident GNMax, most noise: {given.mean():.1f} of queries have an answer")
left.set(xscale="log", xlabel="epsilon for all votes", ylabel="share of right labels")
left.set_title("may be published")
right.set_xlabel("epsilon by the papers' bounds, at these votes")
right.set_title("sensitive: depends on the votes")
left.legend()
plt.show()

# %%
# Interpretation
# --------------
#
# In the left picture, GNMax has a lower privacy cost than LNMax at equal accuracy. More
# noise always lowers cost and accuracy. Labels of Confident GNMax are more often right,
# but fewer, and belong to easier queries. A student learns less from the label of an
# easy query.
#
# The right picture has epsilon as the papers print it. This epsilon is lower where
# teachers agree, and may even fall with less noise. It says nothing about other votes,
# and so is no guarantee.
#
# The cost of Confident GNMax counts all answers that may be given. A limit on the
# number of answers, fixed beforehand, lowers this cost:
for limit in (None, 250, 100):
    mechanism = ConfidentGNMax(200, 150, 40, max_answers=limit)
    epsilon = mechanism.cost(*counts.shape).epsilon(1e-5)
    print(f"max_answers={limit}: epsilon {epsilon:.2f}")

# %%
# The page :doc:`/guide/papers` has the terms of the papers, and names of this package.
