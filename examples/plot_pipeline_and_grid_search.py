"""Pipelines and grid search
=========================

The statement of :class:`~sklearn_pate.PATEClassifier` covers PATEClassifier only. It
does not cover a step fitted in front of it, or a choice made around it.
:func:`~sklearn_pate.privacy_leaks` finds these before any data are read. A
search is then made in three places; in two of them it has no privacy cost.
"""

# %%
# Scaler in front or inside
# -------------------------
#
# A scaler in front of PATEClassifier learns means of all private rows, and is published
# with the pipeline. Inside the teacher, it learns from one shard, and is discarded.

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
    """Return a classifier with 80 queries at epsilon 4, as teachers are few."""
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
# 2. Inside each teacher: any use of its own shard has no privacy cost.
# 3. Of the student: it reads noisy answers only, so that its search has no privacy
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
# Three candidates in three folds, and the best one again on all rows: ten fits, with
# curves that add. The total epsilon is less than ten times that of one fit, but still
# large.

spent = around.best_estimator_.privacy_spent_
fits = np.arange(1, 3 * 3 + 2)
costs = [(spent.curve * n).to_epsilon(spent.delta) for n in fits]
costs[0] = spent.epsilon  # one fit alone has an exact cost, below that of its curve
print("accuracy  epsilon  search")
for search, epsilon, name in [
    (around, costs[-1], f"around: {fits[-1]} fits, each of epsilon {costs[0]:.2f}"),
    (in_teachers, in_teachers.privacy_spent_.epsilon, "inside each teacher"),
    (of_student, of_student.privacy_spent_.epsilon, "of the student"),
]:
    print(f"{search.score(X_test, y_test):8.2f}  {epsilon:7.2f}  {name}")

# %%
# Accuracies are of one fit each and vary with the noise. Privacy costs do not:

figure, axis = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
axis.plot(fits, spent.epsilon * fits, ":", color="#777777", label="fits times epsilon")
axis.plot(fits, costs, "o-", color="#d55e00", label="around: composed")
axis.axhline(spent.epsilon, color="#2277cc", label="in teachers, or of the student")
axis.set(xlabel="fits of the search", ylabel=f"epsilon at delta={spent.delta}")
axis.set(title="Privacy cost of a search", ylim=(0, None), xticks=fits)
axis.legend()
plt.show()

# %%
# The first cost covers the students of all ten fits, but not the choice between them,
# which was made by private labels: its student may not be published. The students of
# the other two may be, each at epsilon 4. For a choice by private labels see
# :ref:`sphx_glr_auto_examples_plot_private_search.py`.
