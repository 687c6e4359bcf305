"""How good is the model on our patients?
=======================================

A hospital has a model that predicts readmission within 30 days. It wants to publish how
accurate the model is on its own patients, also by age. Accuracy on private rows may not
be published without noise. ``private_metrics`` releases noisy counts once, and computes
all metrics with intervals from these counts. All stays of a patient are protected.

The stays are from the Diabetes data if ``SKLEARN_PATE_DATA`` has its file, and made up
otherwise. They are public, so exact metrics can be shown next to private ones.
"""

# %%
# Stays, and a model
# ------------------
#
# A model is measured on rows that it was not fitted on. A hash of the id assigns each
# patient to one part, whatever other patients there are.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, brier_score_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_pate.datasets import fetch_diabetes130
from sklearn_pate.metrics import private_metrics
from sklearn_pate.model_selection import GroupHashSplit

FEATURES = ["age", "time_in_hospital", "num_medications", "number_inpatient"]

try:
    data = fetch_diabetes130(download_if_missing=False)
    X = data.data[:, [data.feature_names.index(name) for name in FEATURES]]
    patient, y = data.groups, (data.target == "<30").astype(int)
except OSError:
    print("Made-up stays, as there is no file of Diabetes.")
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(36_000), rng.geometric(0.7, 36_000))
    age = rng.integers(3, 10, 36_000)[patient]  # in decades
    stays = rng.poisson(0.1 * age)
    X = np.column_stack([age, rng.poisson([4, 16], (len(age), 2)), stays])
    y = (rng.logistic(size=len(age)) < 0.5 * stays + 0.1 * age - 3.3).astype(int)

bands = np.array(["0 to 49", "50 to 69", "70 to 79", "80 to 99"])
band = bands[np.searchsorted([5, 7, 8], X[:, 0], side="right")]
split = GroupHashSplit(test_size=0.3, random_state=0)
elsewhere, ours = next(split.split(X, groups=patient))
model = make_pipeline(StandardScaler(), LogisticRegression())
model.fit(X[elsewhere], y[elsewhere])

# %%
# Measure
# -------
#
# One call is one release, at epsilon 0.5 for one patient. One random stay of each
# patient is counted, so patients with many stays weigh no more than other patients.
# Every run draws new noise. The model predicts readmission for hardly any stay, so the
# noise hides the precision.

metrics = private_metrics(
    model,
    X[ours],
    y[ours],
    epsilon=0.5,
    groups=patient[ours],
    subgroups=band[ours],
    subgroup_values=bands,
    random_state=0,
)
print(metrics)

# %%
# For comparison, metrics without noise are computed, in which each patient weighs the
# same. A real hospital must not publish metrics without noise:

probability = model.predict_proba(X[ours])[:, 1]
_, place, n_stays = np.unique(patient[ours], return_inverse=True, return_counts=True)
weight = {"sample_weight": 1 / n_stays[place]}
for name, true in {
    "roc_auc": roc_auc_score(y[ours], probability, **weight),
    "accuracy": accuracy_score(y[ours], probability > 0.5, **weight),
    "brier_score": brier_score_loss(y[ours], probability, **weight),
}.items():
    print(f"{name:12} {metrics[name]!r}, without privacy {true:.3f}")

# %%
# Choose a threshold
# ------------------
#
# Few stays have a predicted probability above one half. The threshold for a wanted
# sensitivity is computed from the same noisy counts, at no further privacy cost:

threshold = metrics.threshold(sensitivity=0.6)
back = y[ours] == 1
found = np.average(probability[back] >= threshold, weights=1 / n_stays[place][back])
print(f"threshold {threshold:.3f}: {found:.0%} of readmissions are found")

# %%
# Draw
# ----
#
# The picture has the ROC curve and the calibration with 95 % bands, and the differences
# between age groups. An interval that contains zero shows no difference. The picture
# may be published, with the privacy statement of the metrics.

figure, axes = plt.subplots(1, 3, figsize=(12.5, 4.4), layout="constrained")
metrics.plot(axes[:2])
metrics.plot_subgroups(ax=axes[2])
axes[2].set_title("Age bands")
plt.show()

# %%
# The privacy statement covers the patients whose stays were measured, and not the
# patients that the model was fitted on:

print(metrics.privacy_spent_)
