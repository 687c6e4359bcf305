"""Votes of several hospitals
==========================

Five hospitals want one model of all their patients, and may not share rows. A hospital
trains teachers on its own patients and sends only the teachers' votes on public rows.
A collector adds up the votes of all hospitals, answers queries with noise, and
publishes a student. The privacy unit is a patient. All patients are made up.
"""

# %%
# Made-up patients
# ----------------
#
# A stay has twenty measurements, and a patient has up to three stays. The distribution
# of patients differs between hospitals. Public rows are from people who gave consent.

import secrets
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import PATEClassifier, PrivacyUtilityWarning, PublicData, Votes
from sklearn_pate.distributed import cast_votes, shard_of

LABELS = ["ill", "well"]
KEY = secrets.token_bytes(32)  # the same for all hospitals
rng = np.random.default_rng(0)
weights = np.append(np.full(4, 0.6), rng.normal(scale=0.15, size=16))


def made_up(n_patients, shift=0.0):
    """Return measurements, diagnosis and patient of each stay."""
    patients = np.repeat(np.arange(n_patients), rng.integers(1, 4, n_patients))
    person = rng.normal(shift, 1, size=(n_patients, 20))[patients]
    X = person + rng.normal(scale=0.3, size=person.shape)
    ill = rng.logistic(size=len(X)) < X @ weights
    return X, np.where(ill, "ill", "well"), patients


def area(model):
    """Return the AUC of a model on test patients."""
    return roc_auc_score(y_test == "ill", model.predict_proba(X_test)[:, 0])


shifts = {"north": -0.4, "south": -0.2, "east": 0.0, "west": 0.2, "centre": 0.4}
hospitals = {site: made_up(1000, shift) for site, shift in shifts.items()}
X_public = made_up(300)[0][:500]
X_test, y_test, _ = made_up(1500)

# %%
# Votes of a hospital
# -------------------
#
# ``shard_of`` assigns all stays of a patient to one shard, by a keyed hash of the id.
# ``cast_votes`` trains the teacher of a shard, and returns only the teacher's votes.


def votes_of(site, n_teachers):
    """Train a teacher on each shard of patients; return the votes of a hospital."""
    X, y, patients = hospitals[site]
    shards = shard_of(patients, n_teachers, KEY)
    votes = {}
    for k in range(n_teachers):
        rows = X[shards == k], y[shards == k]
        votes[k] = cast_votes(GaussianNB(), *rows, X_public, classes=LABELS, shard=k)
    common = {"classes": LABELS, "n_teachers": n_teachers, "privacy_unit": "group"}
    return Votes.from_shards(votes, X_public, key=KEY, site=site, **common)


# %%
# Student of the collector
# ------------------------
#
# ``Votes.save`` and ``Votes.load`` write and read files that hospitals send. The files
# are sensitive, as they hold counts without noise. The student may be published.


def student_of(votes):
    """Answer 500 queries with noise, and learn from the answers."""
    pate = PATEClassifier(LogisticRegression(C=0.1), classes=LABELS, epsilon=2.0)
    return pate.fit_from_votes(PublicData(X_public), votes, privacy_unit="group")


# %%
# Number of teachers of each hospital
# -----------------------------------
#
# The same noise protects one vote among five and one vote among 250. Five students for
# each number of teachers show the variation. A real release has only one student.

warnings.simplefilter("ignore", PrivacyUtilityWarning)  # also with few votes
areas = {}
for n_teachers in [1, 3, 10, 20, 50]:
    votes = Votes.merge(votes_of(site, n_teachers) for site in hospitals)
    students = [student_of(votes) for _ in range(5)]
    areas[n_teachers] = list(map(area, students))
    print(f"teachers of each hospital: {n_teachers}, AUC {areas[n_teachers][0]:.2f}")

# A model of the pooled rows without privacy, for comparison.
X, y, _ = map(np.concatenate, zip(*hospitals.values(), strict=True))
pooled = LogisticRegression().fit(X, y)
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
axis.plot([*areas], [*areas.values()], "o", color="#2277cc", alpha=0.5)
axis.axhline(area(pooled), color="#777777", label="pooled rows, no privacy")
axis.axhline(0.5, color="black", linestyle=":", label="guessing")
axis.set_xscale("log")
axis.set_xticks(list(areas), [str(n) for n in areas])
axis.set(xlabel="teachers of each hospital", ylabel="AUC", ylim=(0.4, 0.85))
axis.set_title("Five hospitals, epsilon 2: five students each")
axis.legend(loc="center right")
plt.show()

# %%
# The statement protects every patient with all stays, but not a hospital as a whole:
print(students[0].privacy_spent_)
