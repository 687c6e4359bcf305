"""Five hospitals, no shared row
=============================

Five hospitals want one model of all their patients, and none may show a patient to
another. Each trains teachers on its own rows, lets them label the same public rows, and
hands over a file of labels: no row and no model leaves it. Whoever collects the files
asks noisy queries, and publishes a student. The patients are made up.
"""

# %%
# Made-up patients
# ----------------
#
# Twenty measurements each, most of which say little. The hospitals' patients are not
# alike, nor equally often ill. Public rows are people who agreed, without a diagnosis.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import PATEClassifier, PublicData

rng = np.random.default_rng(0)
weights = np.append(np.full(4, 0.6), rng.normal(scale=0.15, size=16))


def made_up(n_patients, shift=0.0):
    """Return measurements and diagnoses."""
    X = rng.normal(shift, 1, size=(n_patients, 20))
    ill = rng.logistic(size=n_patients) < X @ weights
    return X, np.where(ill, "ill", "well")


def area(model):
    """Return the AUC on other patients."""
    return roc_auc_score(y_test == "ill", model.predict_proba(X_test)[:, 0])


hospitals = [made_up(2000, shift) for shift in (-0.4, -0.2, 0.0, 0.2, 0.4)]
X_public, _ = made_up(500)
X_test, y_test = made_up(3000)

# %%
# What a hospital does
# --------------------
#
# It may train what it likes, and must see to it that a patient reaches one teacher
# only: so it cuts its patients into shards, at random.


def label_public_rows(X, y, n_teachers):
    """Train teachers on disjoint shards; return the labels that each of them gives."""
    shards = np.array_split(rng.permutation(len(X)), n_teachers)
    return [GaussianNB().fit(X[rows], y[rows]).predict(X_public) for rows in shards]


# %%
# What the collector does
# -----------------------
#
# ``fit_from_votes`` takes one array of labels after the other, from as many files.


def student_of(folder):
    """Ask 500 noisy queries, and learn from the answers."""
    student = LogisticRegression(C=0.1)
    pate = PATEClassifier(student, classes=["ill", "well"], n_queries=500, epsilon=2.0)
    votes_by_teacher = (
        labels for file in Path(folder).iterdir() for labels in np.load(file)
    )
    return pate.fit_from_votes(PublicData(X_public), votes_by_teacher)


# %%
# One vote each, or many
# ----------------------
#
# The noise that protects one vote among five is the same that protects one among 250.
# Five students each show how far it reaches; in earnest there is one, at one cost.

areas = {}
for n_teachers in [1, 3, 10, 25, 50]:
    with tempfile.TemporaryDirectory() as folder:
        for i, (X, y) in enumerate(hospitals):
            np.save(Path(folder, f"{i}.npy"), label_public_rows(X, y, n_teachers))
        students = [student_of(folder) for _ in range(5)]
    areas[n_teachers] = [area(student) for student in students]
    mean = np.mean(areas[n_teachers])
    print(f"votes of each hospital: {n_teachers:2}, AUC {mean:.2f}")

# %%
# Beside them, what nobody may do: a model of all rows in one place.

pooled = LogisticRegression().fit(*map(np.concatenate, zip(*hospitals, strict=True)))
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
for n_teachers, each in areas.items():
    axis.plot([n_teachers] * 5, each, "o", color="#2277cc", alpha=0.5)
axis.axhline(area(pooled), color="#777777", label="all rows in one place, no privacy")
axis.axhline(0.5, color="black", linestyle=":", label="guessing")
axis.set_xscale("log")
axis.set_xticks(list(areas), [str(n) for n in areas])
axis.minorticks_off()
axis.set(xlabel="teachers of each hospital", ylabel="AUC on other patients")
axis.set(title="Five hospitals, epsilon 2: five students each", ylim=(0.4, 0.85))
axis.legend(loc="center right")
plt.show()

# %%
# Who is protected
# ----------------
#
# A party is whoever sent one array of labels, so one shard here: every patient in it is
# covered, and a hospital as a whole is not. The files of labels are raw votes: they may
# go to the collector and to nobody else. A student may go to everybody.

print(students[0].privacy_spent_)
