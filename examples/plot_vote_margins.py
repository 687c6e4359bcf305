"""
============================
How many answers noise turns
============================

Noise protects people, and it also makes wrong answers out of right ones. Whether it
does depends on the margin of a vote: the count of the leading class minus that of the
next. This example draws the margins of a fit beside its noise. **Such a picture is
private**: votes are private data, and it is stamped.
"""

# %%
# Two ensembles, one cost
# ------------------------
#
# The same private digits are cut into 25 large parts or into 100 small ones, with a
# teacher each. Few teachers know more, many outvote more noise. Both ensembles answer
# 60 queries at the same epsilon, for which the noise has the same width in votes:
# what it has to hide is one teacher's vote, however many there are.

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
# The picture
# -----------
#
# ``sensitive=True`` has to be said: without it, a ValueError tells why. We may show the
# picture because digits are public. The dashed line is the margin at which noise turns
# one answer in twenty, and the hatched part of a bar is how many of its queries noise
# turns on average.

figure, axes = plt.subplots(1, 2, figsize=(9.5, 4), sharey=True, layout="constrained")
for clf, ax in zip(ensembles, axes, strict=True):
    VoteMarginsDisplay.from_estimator(clf, sensitive=True, ax=ax)
plt.show()

# %%
# What it means
# -------------
#
# Near a margin of 0, noise decides. At the line it turns one answer in twenty, and to
# the right of it fewer still. So it counts on which side of the line queries are:

for clf in ensembles:
    right = y_public[clf.queried_indices_] == clf.classes_[clf.answers_]
    print(
        f"{clf.privacy_spent_.n_teachers} teachers: {right.mean():.0%} of answers right"
    )

# %%
# With 25 teachers hardly any vote is safe from the noise, however well they agree.
# With 100, each of them knows less, but where most of them agree, noise hardly ever
# turns the answer.
#
# A person who looks at this picture of private votes and then changes the number of
# teachers has used private data for a choice, and no statement covers it. Look at
# public or made-up rows, settle there, and fit the private ones once. What may be
# published is ``privacy_spent_``, and the student.
