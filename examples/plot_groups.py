"""One patient, one teacher
========================

A patient may have several stays in hospital, and a row is a stay. Whoever protects rows
protects a stay, and somebody with six of them much less. Here the patient is the unit
of the promise. All patients are made up.
"""

# %%
# Made-up stays
# -------------
#
# Six thousand patients, most of them with one stay or two, some with many. The query
# is who will be back within 30 days.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.accounting.bounds import gaussian_worst_case

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
# Nobody in public rows is protected. So a patient must be on one side only, which a
# split of rows does not see to:

some, others = train_test_split(patient, test_size=0.4, random_state=0)
torn = np.intersect1d(some, others)
print(f"A split of rows has {len(torn)} of {n_patients} patients on both sides.")

parts = [part for _, part in GroupKFold(5).split(X, groups=patient)]
private, public, test = np.concatenate(parts[:3]), parts[3], parts[4]
torn = np.intersect1d(patient[private], patient[public])
print(f"A split of patients has {len(torn)}.")

# %%
# Fit
# ---
#
# With ``privacy_unit="group"`` and ``groups``, all stays of a patient go to the same
# teacher, by a keyed hash of the patient's id, so that one patient more moves nobody
# else. ``n_teachers`` has to be a number: "auto" would count patients, and with groups
# as the unit their number is not public.

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
# The same epsilon, the same noise, about the same student. What differs is the promise:

for unit, fit in fits.items():
    print(f"{unit}: neighbouring data sets {fit.privacy_spent_.neighbours}")

# %%
# What each patient is promised
# -----------------------------
#
# With rows as the unit, six stays of a patient reach up to six teachers, and six votes
# move in each query. Noise hides them as noise of a sixth of its scale would hide
# one vote, and that is how they are priced here.

spent, sigma = fits["row"].privacy_spent_, fits["row"].mechanism_.sigma
stays, n_patients_with = np.unique(
    np.unique(patient[private], return_counts=True)[1], return_counts=True
)
by_row = [spent.epsilon]
for n in stays[1:]:
    by_row.append((gaussian_worst_case(sigma / n) * 500).to_epsilon(spent.delta))

figure, (above, below) = plt.subplots(
    2, sharex=True, figsize=(7, 5), height_ratios=[1, 2], layout="constrained"
)
above.bar(stays, n_patients_with, color="#999999")
above.set(ylabel="private patients", title="What 500 answers cost a patient")
below.plot(stays, by_row, "o-", color="#d55e00", label='privacy_unit="row"')
by_group = np.full(len(stays), fits["group"].privacy_spent_.epsilon)
below.plot(stays, by_group, "s-", color="#2277cc", label='privacy_unit="group"')
below.set(
    xlabel="stays of the patient", ylabel=f"epsilon promised, at delta={spent.delta}"
)
below.set(ylim=(0, None), xticks=stays)
below.legend(frameon=False)
plt.show()

# %%
# An epsilon of 5 is weak, and one above 10 promises nothing worth the name: those who
# are ill most are protected least. With groups, everybody gets what the statement says.
#
# The line may be published: it follows from noise and numbers of queries. The bars
# may not, where patients are real: they count them without noise.
