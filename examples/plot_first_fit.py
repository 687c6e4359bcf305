"""A first private fit
===================

A hospital wants to publish a model that predicts which patients come back within 30
days. This example fits a private classifier at epsilon 1 to a table of patients,
publishes the model, and draws what the model learned. All patients are made up.
"""

# %%
# The table
# ---------
#
# Each patient has one row, with numbers, text and missing values. The rows of 20,000
# patients and their labels are *private*. 2,000 rows of other patients are *public*:
# they need no protection, and no labels.

import json
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_pate import PATEClassifier, PublicData, PublishedClassifier

rng = np.random.default_rng(0)
n_rows = 25_000
X = pd.DataFrame(
    {
        "age": rng.integers(18, 96, n_rows),
        "ward": rng.choice(["cardiology", "geriatrics", "surgery"], n_rows),
        "glucose": rng.normal(105, 25, n_rows).round(),
    }
)
X.loc[rng.uniform(size=n_rows) < 0.2, "glucose"] = np.nan


def true_probability(X):
    """Compute the probability to come back, which only this example knows."""
    risk = (X["age"] - 75) / 12 + 1.5 * (X["ward"] == "cardiology")
    return 1 / (1 + np.exp(-risk))


y = np.where(rng.uniform(size=n_rows) < true_probability(X), "back", "well")
private, public, new = slice(20_000), slice(20_000, 22_000), slice(22_000, None)
print(X.head(4))

# %%
# Fit
# ---
#
# ``epsilon`` and ``delta`` are the privacy budget: noise is added until the fit is
# within this budget. The classes are declared, as labels of patients are private.
#
# The private rows are split into shards, and one *teacher* is trained on each shard.
# Noise is added to the sum of the teachers' coefficients. The *student* follows from
# the noisy sum and public rows, and learns nothing else about private rows.

clf = PATEClassifier(epsilon=1.0, delta=1e-5, classes=["back", "well"], random_state=0)
clf.fit(X[private], y[private], X_public=PublicData(X[public]))

# %%
# Read the statement
# ------------------
#
# The statement may be published, as it depends on no private row. The person who is
# responsible for the data confirms each assumption.

print(clf.privacy_spent_)

# %%
# Publish
# -------
#
# ``publish`` returns the student and its statement, and nothing else. ``save`` writes
# two files: the model, and a card with the statement. The receiver loads both without
# running code from the files.

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "back.skops")
    clf.publish().save(path)
    card = json.loads(path.with_suffix(".json").read_text())
    model = PublishedClassifier.load(path)
print({name: card[name] for name in ("epsilon", "delta", "unit", "relation")})

# %%
# What the model learned
# ----------------------
#
# The new patients are made up, so that their accuracy can be printed. Accuracy on real
# patients has a privacy cost of its own, see
# :ref:`sphx_glr_auto_examples_plot_private_metrics.py`.

print(f"{model.score(X[new], y[new]):.0%} of new patients are predicted right,")
print(f"{np.mean(y[new] == 'well'):.0%} if all are predicted to stay well.")

ages = np.arange(18, 96)
figure, axis = plt.subplots(figsize=(7, 3.8), layout="constrained")
for ward, colour in (("cardiology", "#d55e00"), ("surgery", "#2277cc")):
    patients = pd.DataFrame({"age": ages, "ward": ward, "glucose": 105.0})
    back = model.predict_proba(patients)[:, 0]
    axis.plot(ages, back, color=colour, label=f"{ward}, published model")
    axis.plot(ages, true_probability(patients), ":", color=colour, label="truth")
axis.set(xlabel="age", ylabel="probability to come back", ylim=(0, 1))
axis.set_title("A model of 20,000 patients at epsilon 1")
axis.legend(frameon=False)
plt.show()

# %%
# Next, :ref:`sphx_glr_auto_examples_plot_privacy_report.py` writes a report to sign.
# Further fits on the same patients add to the privacy cost, see
# :ref:`sphx_glr_auto_examples_plot_hand_over.py`. Where rows can be pooled,
# :class:`~sklearn_pate.DPNewtonClassifier` takes the same arguments, and is more
# accurate.
