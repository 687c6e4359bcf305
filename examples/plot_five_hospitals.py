"""Five hospitals, and sums that nobody sees
=========================================

Five hospitals want one model of all their patients, and may not share rows. Each of
them sends masked sums of its rows, with a part of the noise. The masks cancel in the
sum over all hospitals, so that nobody sees a sum without noise. The privacy unit is a
patient. All patients are made up.
"""

# %%
# Made-up patients
# ----------------
#
# A stay has twenty measurements, and a patient has up to three stays. The distribution
# of patients differs between hospitals. Public rows are from people who gave consent.

import tempfile
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from sklearn_pate import DPNewtonClassifier, PrivacyLedger
from sklearn_pate.distributed import Collector, Site, Study

rng = np.random.default_rng(0)
weights = np.append(np.full(4, 0.6), rng.normal(scale=0.15, size=16))


def made_up(n_patients, shift=0.0, first_id=0):
    """Return measurements, diagnosis and patient of each stay."""
    patients = np.repeat(np.arange(n_patients), rng.integers(1, 4, n_patients))
    person = rng.normal(shift, 1, size=(n_patients, 20))[patients]
    X = person + rng.normal(scale=0.3, size=person.shape)
    ill = rng.logistic(size=len(X)) < X @ weights
    return X, np.where(ill, "ill", "well"), first_id + patients


def area(model):
    """Return the AUC of a model on test patients."""
    return roc_auc_score(y_test == "ill", model.predict_proba(X_test)[:, 0])


shifts = {"north": -0.4, "south": -0.2, "east": 0.0, "west": 0.2, "centre": 0.4}
hospitals = {
    site: made_up(1000, shift, first_id=1000 * place)
    for place, (site, shift) in enumerate(shifts.items())
}
X_public = made_up(300)[0][:500]
X_test, y_test, _ = made_up(1500)

# %%
# The study
# ---------
#
# All hospitals agree on a study: the classifier, the public rows, the noise. Two of the
# five sites may work with the collector, so that the noise of the other three counts.


def newton(epsilon, n_groups):
    """Return a logistic regression by noisy Newton steps, which protects patients."""
    return DPNewtonClassifier(
        classes=["ill", "well"],
        epsilon=epsilon,
        privacy_unit="group",
        n_groups=n_groups,  # an estimate from public knowledge
        random_state=0,
    )


warnings.simplefilter("ignore")  # also at small epsilon, and of unlike hospitals
print(Study(newton(1.0, 5000), X_public, sites=[*hospitals]))

# %%
# Requests and replies
# --------------------
#
# The collector sends each request to all sites, and adds up their replies. Here, all
# are in one process. Each hospital has a ledger of its own, which is charged before its
# first reply.


def over_sites(epsilon):
    """Fit one model over the five hospitals."""
    study = Study(newton(epsilon, 5000), X_public, sites=[*hospitals])
    with tempfile.TemporaryDirectory() as folder:
        sites = {}
        for name, (X, y, patients) in hospitals.items():
            path = Path(folder, f"{name}.sqlite")
            ledger = PrivacyLedger(path, epsilon=epsilon, delta=1e-5)
            sites[name] = Site(study, name, X, y, groups=patients, ledger=ledger)
        collector = Collector(study, {one: sites[one].public_key for one in sites})
        fingerprint = collector.fingerprint  # which the sites compare by phone
        while (request := collector.request()) is not None:
            collector.add([one.reply(request, fingerprint) for one in sites.values()])
    return collector.result()


# %%
# What the hospitals gain
# -----------------------
#
# A model of one hospital has the rows of that hospital alone. The model over all sites
# is nearly as good as a model of pooled rows at the same epsilon.

X, y, patients = (np.concatenate(one) for one in zip(*hospitals.values(), strict=True))
epsilons = [0.25, 0.5, 1.0, 2.0]
areas = {"one hospital alone": [], "five hospitals, over sites": [], "pooled rows": []}
for epsilon in epsilons:
    alone = hospitals["east"]
    one = newton(epsilon, 1000).fit(*alone[:2], groups=alone[2], X_public=X_public)
    pooled = newton(epsilon, 5000).fit(X, y, groups=patients, X_public=X_public)
    models = one, over_sites(epsilon), pooled
    for found, model in zip(areas.values(), models, strict=True):
        found.append(area(model))
    print(f"epsilon {epsilon:g}:", *(f"{area(model):.2f}" for model in models))

figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
for name, found in areas.items():
    axis.plot(epsilons, found, "o-", label=name)
without = LogisticRegression().fit(X, y)
axis.axhline(area(without), color="#777777", label="pooled rows, no privacy")
axis.set_xscale("log")
axis.set_xticks(epsilons, [f"{one:g}" for one in epsilons])
axis.minorticks_off()
axis.set(xlabel="epsilon", ylabel="AUC", ylim=(0.5, 0.85))
axis.set_title("Five hospitals: one fit for each point")
axis.legend(loc="lower right")
plt.show()
