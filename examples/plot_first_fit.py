"""A first private fit
===================

A classifier learns from the digits of some people, and is then given to everybody. What
can be found out from it about any one of them? This example fits one with
:class:`~sklearn_pate.PATEClassifier`, for which that is bounded, reads its privacy
statement, and compares it with a model that promises nothing.
"""

# %%
# Private rows, public rows
# -------------------------
#
# *Private* rows are to be protected, with their labels. *Public* rows need no
# protection, and no labels: only how they look is used. Say that most of the
# digits that scikit-learn brings along are private.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelSpreading

from sklearn_pate import PATEClassifier, PublicData

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.15, random_state=0)
X_private, X_public, y_private, y_public = train_test_split(
    X, y, test_size=0.25, random_state=0
)
print(f"{len(X_private)} private rows, {len(X_public)} public rows")

# %%
# Fit
# ---
#
# The private rows are cut into 100 shards, and each trains a *teacher*. The teachers
# vote on 60 of the public rows, noise is added to the votes, and the class that then
# leads is the *answer*. A *student* learns from the public rows and these 60 answers
# alone. Any two classifiers will do. This student makes use of public rows without an
# answer, too, so that few answers are enough.
#
# ``epsilon`` and ``delta`` are what may be spent: the noise is chosen accordingly.

pate = PATEClassifier(
    KNeighborsClassifier(1),
    student=LabelSpreading(kernel="knn"),
    n_teachers=100,
    n_queries=60,
    epsilon=4.0,
    delta=1e-5,
    classes=range(10),
    random_state=0,
)
pate.fit(X_private, y_private, X_public=PublicData(X_public))

# %%
# The statement
# -------------
#
# Before the first answer, its cost was settled: for the worst votes there could be, so
# that it depends on no private row. It may be published, and says what it assumes. Read
# that: whoever knows the data has to confirm each point.

print(pate.privacy_spent_)

# %%
# What privacy costs
# ------------------
#
# Here is the same classifier without protection. It keeps every private row inside.

unprotected = clone(pate.estimator).fit(X_private, y_private)
print(f"accuracy {unprotected.score(X_test, y_test):.2f} without privacy")
print(f"accuracy {pate.score(X_test, y_test):.2f} of the student at epsilon 4")

# %%
# A thousand private rows are few, and the noise that hides one of them is felt. With
# tens of thousands, a smaller epsilon costs less.
#
# All that left the private side
# ------------------------------
#
# These images are public, and the class above each is its answer. Nothing else about
# private rows reached the student. Which answers are wrong can be told here, as the
# labels of these public rows happen to be known.

order = np.argsort(pate.answers_, kind="stable")
asked, answers = pate.queried_indices_[order], pate.classes_[pate.answers_[order]]
figure, axes = plt.subplots(4, 15, figsize=(9, 3.4), layout="constrained")
for axis, row, answer in zip(axes.flat, asked, answers, strict=True):
    axis.imshow(X_public[row].reshape(8, 8), cmap="gray_r")
    axis.set_title(answer, color="black" if answer == y_public[row] else "#d55e00")
    axis.axis("off")
n_wrong = np.count_nonzero(answers != y_public[asked])
figure.suptitle(f"60 queries and their answers, {n_wrong} wrong (in orange)")
plt.show()

# %%
# What may be published
# ---------------------
#
# The student, the answers and the statement; ``pate.publish()`` takes out what others
# need to use the student. Not the accuracy above, if test rows are private: it was
# computed from their labels without noise. And not ``pate.privacy_analysis_``, what the
# votes that were cast say about the cost: it is as sensitive as the rows.
#
# Every further fit on the same rows has a cost of its own, and costs add up:
# :ref:`sphx_glr_auto_examples_plot_hand_over.py` keeps the account.
