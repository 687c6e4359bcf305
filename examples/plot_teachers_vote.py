"""Teachers that vote
==================

With ``mechanism="gnmax"``, PATE releases noisy votes of teachers on public rows. This
example fits a student on the noisy answers of 100 teachers, draws all answers, and
compares the student's accuracy with a model without protection.
"""

# %%
# Private rows, public rows
# -------------------------
#
# *Private* rows and their labels are protected. *Public* rows need no
# protection, and no labels. Here most of the digits of scikit-learn are treated as
# private.

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
# The private rows are cut into 100 shards, and each shard trains a *teacher*. The
# teachers vote on 60 of the public rows, noise is added to the vote counts, and the
# class with the largest noisy count is the *answer*. A *student* learns from the public
# rows and these 60 answers alone. A noisy count of the private rows of each class then
# corrects its probabilities. Any classifier can be a teacher or a student.
# ``LabelSpreading`` as the student also uses public rows without an answer, so that few
# answers are enough.
#
# ``epsilon`` and ``delta`` are the privacy budget of the fit: the noise is calibrated
# to this budget.

pate = PATEClassifier(
    KNeighborsClassifier(1),
    student=LabelSpreading(kernel="knn"),
    n_teachers=100,
    n_queries=60,
    mechanism="gnmax",
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
# The privacy cost was fixed before the first answer, for the worst possible votes, so
# that the cost depends on no private row. The privacy statement may be published. A
# person who knows the data has to confirm each assumption of the statement.

print(pate.privacy_spent_)

# %%
# Loss of accuracy
# ----------------
#
# For comparison, the classifier of the teachers learns from all private rows without
# protection. It stores every private row:

unprotected = clone(pate.estimator).fit(X_private, y_private)
print(f"accuracy {unprotected.score(X_test, y_test):.2f} without privacy")
print(f"accuracy {pate.score(X_test, y_test):.2f} of the student at epsilon 4")

# %%
# A thousand private rows are few, and the noise reduces the accuracy. With tens of
# thousands of private rows, the loss is small even at a smaller epsilon.
#
# Released information
# --------------------
#
# The queried images are public, and the class above each image is the answer. The
# student received no other information about private rows than the answers and the
# noisy count. Wrong answers can be marked, as labels of these public rows are known.

order = np.argsort(pate.answers_, kind="stable")
queried, answers = pate.queried_indices_[order], pate.classes_[pate.answers_[order]]
figure, axes = plt.subplots(4, 15, figsize=(9, 3.4), layout="constrained")
for axis, row, answer in zip(axes.flat, queried, answers, strict=True):
    axis.imshow(X_public[row].reshape(8, 8), cmap="gray_r")
    axis.set_title(answer, color="black" if answer == y_public[row] else "#d55e00")
    axis.axis("off")
n_wrong = np.count_nonzero(answers != y_public[queried])
figure.suptitle(f"60 queries and their answers, {n_wrong} wrong (in orange)")
plt.show()

# %%
# Publication
# -----------
#
# The student, the answers and the statement may be published. ``pate.publish()``
# returns student and statement. If test rows are private, the accuracy may not be
# published, as it was computed from labels without noise. ``pate.privacy_analysis_`` is
# an analysis of the votes, and is as sensitive as private rows.
#
# Every further fit on the same rows has its own privacy cost, and costs add. The
# example :ref:`sphx_glr_auto_examples_plot_hand_over.py` records costs in a ledger.
