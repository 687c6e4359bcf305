"""
==========================
Margins of votes and noise
==========================

Noise protects private rows, and it also changes answers. The probability of a change
depends on the margin, the vote count of the leading class minus the count of the next
class. This example draws the margins of a fit together with its noise. **Such a picture
is sensitive**, as it depends on votes, and is marked as sensitive.
"""

# %%
# Two ensembles at the same cost
# ------------------------------
#
# The same private digits are cut into 25 large shards or into 100 small ones. Few
# teachers are more accurate, and many teachers have larger margins. Both ensembles
# answer 60 queries at the same epsilon and noise. The noise hides the vote of one
# teacher, for any number of teachers.

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.inspection import VoteMarginsDisplay

X, y = load_digits(return_X_y=True)
X_private, X_public, y_private, y_public = train_test_split(
    X, y, test_size=0.25, random_state=0
)
ensembles = [
    PATEClassifier(
        KNeighborsClassifier(1),
        n_teachers=n_teachers,
        n_queries=60,
        epsilon=4.0,
        classes=range(10),
        random_state=0,
    ).fit(X_private, y_private, X_public=PublicData(X_public))
    for n_teachers in [25, 100]
]

# %%
# Display
# -------
#
# Without ``sensitive=True``, a ValueError is raised. This picture can be shown because
# digits are public. The dashed line is the margin at which noise changes one answer in
# twenty. The hatched part of a bar is the expected number of changed answers.

figure, axes = plt.subplots(1, 2, figsize=(9.5, 4), sharey=True, layout="constrained")
for clf, ax in zip(ensembles, axes, strict=True):
    VoteMarginsDisplay.from_estimator(clf, sensitive=True, ax=ax)
plt.show()

# %%
# Interpretation
# --------------
#
# Near a margin of 0, the answer is mostly noise. At the dashed line, noise changes one
# answer in twenty, and fewer answers to the right of this line:

for clf in ensembles:
    right = y_public[clf.queried_indices_] == clf.classes_[clf.answers_]
    print(
        f"{clf.privacy_spent_.n_teachers} teachers: {right.mean():.0%} of answers right"
    )

# %%
# With 25 teachers, noise can change almost every answer, even if all teachers agree.
# With 100 teachers, each teacher is less accurate, but if most teachers agree, noise
# hardly ever changes the answer.
#
# Changing the number of teachers after a picture of private votes is a choice from
# private data, which no privacy statement covers. Choose the number on public or
# made-up rows, and fit the private rows once. ``privacy_spent_`` and the student may be
# published.
