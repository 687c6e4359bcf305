"""Patients as the unit of privacy
===============================

A patient may have several stays in hospital, and a row is a stay. With rows as the unit
of privacy, the guarantee for a patient with six stays is much weaker. In this example,
the patient is the unit. All patients are made up.
"""

# %%
# Made-up stays
# -------------
#
# Most of 6000 patients have one or two stays. The label is readmission within 30 days.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.accounting.bounds import gaussian_worst_case
from sklearn_pate.model_selection import GroupHashSplit

rng = np.random.default_rng(0)
n_patients = 6000
patient = np.repeat(np.arange(n_patients), rng.geometric(0.5, n_patients).clip(max=8))
age = rng.uniform(20, 90, n_patients)[patient]
days = rng.gamma(2, 2 + age / 45)
medicines = rng.poisson(2 + age / 15)
X = np.column_stack([age, days, medicines])
risk = 0.03 * (age - 60) + 0.3 * (days - 7) + 0.2 * (medicines - 6)
y = np.where(rng.logistic(size=len(X)) < risk - 1, "back", "not back")

# %%
# Split by patient
# ----------------
#
# Public rows are not protected. So no patient may have both private and public rows,
# which a random split of rows does not guarantee:
first, second = train_test_split(patient, test_size=0.4, random_state=0)
n_common = len(np.intersect1d(first, second))
print(f"A split of rows has {n_common} of {n_patients} patients in both parts.")

# %%
# A keyed hash of the id assigns each patient to a part, independently of others:
rest, test = next(GroupHashSplit(0.2, random_state=0).split(X, groups=patient))
split = GroupHashSplit(0.25, random_state=1)  # another seed than before
private, public = (rest[i] for i in next(split.split(rest, groups=patient[rest])))
n_common = len(np.intersect1d(patient[private], patient[public]))
print(f"A split of patients has {n_common}.")

# %%
# Fit
# ---
#
# With ``privacy_unit="group"`` and ``groups``, a keyed hash of the patient's id assigns
# all stays of a patient to one teacher. An additional patient does not change the
# teachers of other patients. ``n_teachers`` has to be a number: "auto" depends on the
# number of rows, which is not public with groups as the unit.

model = make_pipeline(StandardScaler(), LogisticRegression())
fits = {}
for unit, groups in {"row": None, "group": patient[private]}.items():
    fits[unit] = PATEClassifier(
        model,
        n_teachers=200,
        n_queries=500,
        epsilon=2.0,
        privacy_unit=unit,
        classes=["back", "not back"],
        random_state=0,
    ).fit(X[private], y[private], X_public=PublicData(X[public]), groups=groups)
    auc = roc_auc_score(y[test] == "back", fits[unit].predict_proba(X[test])[:, 0])
    print(f"privacy_unit={unit!r}: AUC {auc:.3f}, {fits[unit].privacy_spent_!r}")

# %%
# Both fits have equal epsilon and noise, and similar students. Their guarantees differ:
for unit, fit in fits.items():
    print(f"{unit}: neighbouring data sets {fit.privacy_spent_.neighbours}")

# %%
# Guarantee per patient
# ---------------------
#
# With rows as the unit, six stays of a patient change up to six votes on each query,
# and six rows of the noisy count of each class. This costs as much as one stay with a
# sixth of both noise scales.

spent, (counts, votes) = fits["row"].privacy_spent_, fits["row"].mechanism_.parts
_, n_stays = np.unique(patient[private], return_counts=True)
stays, n_patients_with = np.unique(n_stays, return_counts=True)
by_row = [spent.epsilon]
for n in stays[1:]:
    of_answers = gaussian_worst_case(votes.sigma / n) * 500
    of_both = of_answers + gaussian_worst_case(counts.noise_scale / n)
    by_row.append(of_both.to_epsilon(spent.delta))

figure, (above, below) = plt.subplots(
    2, sharex=True, figsize=(7, 5), height_ratios=[1, 2], layout="constrained"
)
above.bar(stays, n_patients_with, color="#999999")
above.set(ylabel="private patients", title="Privacy cost of a fit for a patient")
below.plot(stays, by_row, "o-", color="#d55e00", label='privacy_unit="row"')
by_group = np.full(len(stays), fits["group"].privacy_spent_.epsilon)
below.plot(stays, by_group, "s-", color="#2277cc", label='privacy_unit="group"')
below.set(xlabel="stays of the patient", ylabel=f"epsilon, at delta={spent.delta}")
below.set(ylim=(0, None), xticks=stays)
below.legend(frameon=False)
plt.show()

# %%
# An epsilon of 5 is a weak guarantee, and one above 10 hardly any. With rows as the
# unit, patients with most stays are protected least. Groups protect all alike.
#
# The lines may be published, as they depend only on noise and number of queries. Bars
# of real patients may not be published, as they are counts without noise.
