"""Days, months and complications
==============================

A hospital asks how long its patients stay, how soon they come back, and which
complications they have. All three are learned by a private classifier, at epsilon 1
each. All patients are made up.
"""

# %%
# Made-up patients
# ----------------
#
# Each of 20,000 patients has one row. 2,000 further rows are public.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_pate import DPNewtonClassifier, PublicData
from sklearn_pate.metrics import private_metrics
from sklearn_pate.outcomes import (
    BinnedRegressor,
    DiscreteSurvival,
    PrivateMultiOutput,
)

rng = np.random.default_rng(0)
n_rows = 30_000
X = pd.DataFrame(
    {
        "age": rng.uniform(20, 90, n_rows),
        "medicines": rng.poisson(6, n_rows).astype(float),
        "emergency": rng.choice(["yes", "no"], n_rows),
    }
)
frailty = (X["age"] - 55) / 20 + (X["medicines"] - 6) / 3 + (X["emergency"] == "yes")
days = np.ceil(rng.gamma(2, 1.2 * np.exp(0.4 * frailty))).clip(1, 21)
back = rng.exponential(40 * np.exp(-0.5 * frailty))
followed = rng.uniform(0, 36, n_rows)
back_after = np.empty(n_rows, dtype=[("event", bool), ("months", float)])
back_after["event"], back_after["months"] = back <= followed, np.minimum(back, followed)
complications = pd.DataFrame(
    {
        "sepsis": rng.logistic(size=n_rows) < frailty - 3,
        "delirium": rng.logistic(size=n_rows) < 1.5 * frailty - 3,
    }
)
private, public, new = slice(20_000), slice(20_000, 22_000), slice(22_000, None)
given = {"X_public": PublicData(X[public])}
classifier = DPNewtonClassifier(epsilon=1.0, random_state=0)

# %%
# How long: a number
# ------------------
#
# The edges of bins are declared. Days are whole numbers, so edges are at halves.
stay = BinnedRegressor(classifier, bins=[0.5, 2.5, 4.5, 7.5, 12.5, 21.5])
stay.fit(X[private], days[private], **given)
print(f"R2 {stay.score(X[new], days[new]):.2f}")

patients = pd.DataFrame(
    {"age": [30.0, 85.0], "medicines": [3.0, 10.0], "emergency": ["no", "yes"]},
    index=["young", "old"],
)
print(stay.predict(patients).round(1))
print(stay.predict_interval(patients, confidence_level=0.8).round(1))

# %%
# How soon: a time
# ----------------
#
# Patients are followed for up to 36 months, so that most times are censored. Each
# patient has one row, with the event or the censoring.
return_to_hospital = DiscreteSurvival(classifier, intervals=[3, 6, 12, 18, 24])
return_to_hospital.fit(X[private], back_after[private], **given)
print(f"concordance {return_to_hospital.score(X[new], back_after[new]):.2f}")

# %%
# Which complications: several outcomes
# -------------------------------------
#
# Epsilon is that of both outcomes together.
both = PrivateMultiOutput(classifier, classes=[[False, True], [False, True]])
both.fit(X[private], complications[private], **given)
print(both.privacy_spent_.epsilon <= 1)
for name, probabilities in zip(
    both.output_names_, both.predict_proba(patients), strict=True
):
    print(name, probabilities[:, 1].round(2))

# %%
# Measure and publish
# -------------------
#
# Metrics on other private rows are a release of their own. The noisy counts also say
# which level an interval needs to hold 90 % of new stays.
metrics = private_metrics(stay, X[new], days[new], epsilon=1.0)
print(metrics)
level = metrics.confidence_level(coverage=0.9)
low, high = stay.predict_interval(X[new], level).T
print(f"level {level}: {np.mean((low <= days[new]) & (days[new] <= high)):.2f} covered")
published = stay.publish(metrics=metrics)
print(repr(published.privacy_spent_))

# %%
of_times = private_metrics(return_to_hospital, X[new], back_after[new], epsilon=1.0)
figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
edges = stay.edges_
for row, name in zip(
    stay.classifier_.predict_proba(patients), patients.index, strict=True
):
    axes[0].stairs(row / np.diff(edges), edges, label=name, linewidth=2)
axes[0].set(xlabel="days in hospital", ylabel="predicted share per day")
times = np.linspace(0, 24, 49)
survival = return_to_hospital.predict_survival_function(patients, times)
for row, name in zip(survival, patients.index, strict=True):
    axes[1].plot(times, row, label=name)
axes[1].set(xlabel="months", ylabel="not back in hospital", ylim=(0, 1))
of_times.plot(axes[2])
axes[2].set(xlabel="months", ylabel="back in hospital")
for ax in axes[:2]:
    ax.legend(frameon=False)
plt.show()
