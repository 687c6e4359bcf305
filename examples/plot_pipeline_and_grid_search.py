"""Pipelines and grid search
=========================

The privacy statement of :class:`~sklearn_pate.PATEClassifier` covers this classifier
only. A step that is fitted in front of PATEClassifier, or a choice between its fits, is
not covered. :func:`~sklearn_pate.privacy_leaks` finds such steps and choices before any
data are read. This example also compares three searches, two of which have no privacy
cost.
"""

# %%
# Scaler in front or inside
# -------------------------
#
# A scaler in front of PATEClassifier learns means of all private rows, and is published
# with the pipeline. A scaler inside a teacher learns from one shard, and is discarded.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_pate import PATEClassifier, PublicData, privacy_leaks


def pate(estimator, student):
    """Return a PATEClassifier with few teachers, and therefore few queries."""
    return PATEClassifier(
        estimator,
        student,
        n_teachers=40,
        n_queries=80,
        epsilon=4.0,
        classes=[0, 1],
        random_state=0,
    )


teacher = make_pipeline(StandardScaler(), GaussianNB())
student = make_pipeline(StandardScaler(), LogisticRegression(C=0.1))
in_front = make_pipeline(StandardScaler(), pate(GaussianNB(), LogisticRegression()))
inside = pate(teacher, student)
for place, model in {"in front": in_front, "inside": inside}.items():
    print(f"scaler {place}:", *privacy_leaks(model) or ["no leak"], sep="\n  ")

# %%
# Three places for a search
# -------------------------
#
# 1. Around PATEClassifier: every fit is a release, and the best candidate is chosen by
#    scores on private labels, which no statement covers.
# 2. Inside each teacher: a teacher may use its own shard in any way, at no privacy
#    cost.
# 3. Of the student: a student reads noisy answers only, so its search has no privacy
#    cost.

X, y = make_classification(3000, 20, n_informative=8, class_sep=1.5, random_state=0)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=0)
X, X_public, y, _ = train_test_split(X, y, test_size=0.2, random_state=0)

smoothing = {"gaussiannb__var_smoothing": [0.01, 0.1, 1.0]}
strength = {"logisticregression__C": [0.01, 0.1, 1.0]}
around = GridSearchCV(
    inside,
    {f"estimator__{name}": values for name, values in smoothing.items()},
    cv=KFold(3),
)
in_teachers = pate(GridSearchCV(teacher, smoothing, cv=KFold(2)), student)
of_student = pate(teacher, GridSearchCV(student, strength, cv=KFold(3)))
for search in (around, in_teachers, of_student):
    search.fit(X, y, X_public=PublicData(X_public))

# %%
# Privacy cost of a search
# ------------------------
#
# The search around PATEClassifier fits three candidates in three folds, and the best
# one again on all rows. The Renyi curves of these ten fits add. The total epsilon is
# less than ten times the epsilon of one fit, but still large.

spent = around.best_estimator_.privacy_spent_
fits = np.arange(1, 3 * 3 + 2)
costs = [(spent.curve * n).to_epsilon(spent.delta) for n in fits]
costs[0] = spent.epsilon  # the exact cost of one fit is below that of its curve
print("accuracy  epsilon  search")
for search, epsilon, name in [
    (around, costs[-1], f"around: {fits[-1]} fits, each of epsilon {costs[0]:.2f}"),
    (in_teachers, in_teachers.privacy_spent_.epsilon, "inside each teacher"),
    (of_student, of_student.privacy_spent_.epsilon, "of the student"),
]:
    print(f"{search.score(X_test, y_test):8.2f}  {epsilon:7.2f}  {name}")

# %%
# Each accuracy is from one fit and varies with the noise. Privacy costs do not vary:

figure, axis = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
axis.plot(fits, spent.epsilon * fits, ":", color="#777777", label="fits times epsilon")
axis.plot(fits, costs, "o-", color="#d55e00", label="around: composed")
axis.axhline(spent.epsilon, color="#2277cc", label="in teachers, or of the student")
axis.set(xlabel="fits of the search", ylabel=f"epsilon at delta={spent.delta}")
axis.set(title="Privacy cost of a search", ylim=(0, None), xticks=fits)
axis.legend()
plt.show()

# %%
# The cost of the search around PATEClassifier covers the students of all ten fits. It
# does not cover the choice between the students by private labels, so the chosen
# student may not be published. The students of the other two searches may be published,
# each at epsilon 4. For a private choice by private labels, see
# :ref:`sphx_glr_auto_examples_plot_private_search.py`.
