"""Votes of several hospitals
==========================

Five hospitals want one model of all their patients, and may not share rows. Each trains
teachers on its own rows and sends their labels of the same public rows: no row and no
model leaves a hospital. A collector answers noisy queries from these votes and
publishes a student. The patients are made up.
"""

# %%
# Made-up patients
# ----------------
#
# Twenty measurements per patient. The distribution of patients differs between
# hospitals. Public rows are people who gave consent, without a diagnosis.

import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import PATEClassifier, PrivacyUtilityWarning, PublicData

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
# Teachers of a hospital
# ----------------------
#
# A hospital may train any classifiers, if each patient is with one teacher only. Here
# it cuts its patients into random shards.


def label_public_rows(X, y, n_teachers):
    """Train teachers on disjoint shards; return the labels of each teacher."""
    shards = np.array_split(rng.permutation(len(X)), n_teachers)
    return [GaussianNB().fit(X[rows], y[rows]).predict(X_public) for rows in shards]


# %%
# Student of the collector
# ------------------------
#
# ``fit_from_votes`` takes an iterable with one array of labels per teacher.


def student_of(folder):
    """Answer 500 queries with noise, and learn from the answers."""
    student = LogisticRegression(C=0.1)
    pate = PATEClassifier(student, classes=["ill", "well"], n_queries=500, epsilon=2.0)
    votes = (labels for file in Path(folder).iterdir() for labels in np.load(file))
    with warnings.catch_warnings():  # of too few votes, which are drawn below
        warnings.simplefilter("ignore", PrivacyUtilityWarning)
        return pate.fit_from_votes(PublicData(X_public), votes)


# %%
# Number of votes per hospital
# ----------------------------
#
# The noise that protects one vote among five also protects one among 250. Five students
# for each number of votes show the variation; a real release has only one student, at
# the cost of one fit.

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
# For comparison, a model of the pooled rows without privacy:
pooled = LogisticRegression().fit(*map(np.concatenate, zip(*hospitals, strict=True)))
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
for n_teachers, values in areas.items():
    axis.plot([n_teachers] * 5, values, "o", color="#2277cc", alpha=0.5)
axis.axhline(area(pooled), color="#777777", label="pooled rows, no privacy")
axis.axhline(0.5, color="black", linestyle=":", label="guessing")
axis.set_xscale("log")
axis.set_xticks(list(areas), [str(n) for n in areas])
axis.minorticks_off()
axis.set(xlabel="teachers of each hospital", ylabel="AUC", ylim=(0.4, 0.85))
axis.set_title("Five hospitals, epsilon 2: five students each")
axis.legend(loc="center right")
plt.show()

# %%
# Unit of privacy
# ---------------
#
# A party is the sender of one array of labels, here one shard: every patient in it is
# protected, and a hospital as a whole is not. The files of labels are raw votes, for
# the collector only. The student may be published.

print(students[0].privacy_spent_)
