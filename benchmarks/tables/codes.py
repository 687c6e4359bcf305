"""Columns of codes, with and without noisy counts. Writes results/codes.json.

even          300 codes, equally frequent, whose effects on log-odds are normal
few frequent  300 codes, the k-th as frequent as 1 / k
rare class    as "even", with 5 % of the rows in the second class
no effect     as "even", without any effect of the codes
diabetes      three columns of 717, 749 and 790 diagnoses, by patient

Takes about an hour. Finished fits are kept in files of lines, so that an interrupted
run resumes. Seeds are those of made-up rows, shards and teachers; the noise is not
seeded. Made-up tables have 20,000 private, 2,000 public and 8,000 evaluated rows.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import time
import warnings
from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.learners.data import DIABETES_CAPS, DIABETES_RANGES, load
from benchmarks.record import command, kept_results, save, summary
from benchmarks.tables.six_tables import N_GROUPS, domain_of
from sklearn_pate import DPNewtonClassifier, PATEClassifier, PublicData
from sklearn_pate.learners import DPNaiveBayesClassifier

EPSILONS = (0.5, 1.0, 2.0)
SEEDS = range(5)
N_CODES, N_NUMBERS, EFFECT, OF_NUMBER = 300, 8, 1.3, 0.6
PRIVATE, PUBLIC, TEST = 20_000, 2000, 8000
DIAGNOSES = ("diag_1", "diag_2", "diag_3")
CODES = [f"c{number:03d}" for number in range(N_CODES)]
#: Power of the frequency, standard deviation of effects, share of the second class.
MADE = {
    "even": (0.0, EFFECT, 0.3),
    "few frequent": (1.0, EFFECT, 0.3),
    "rare class": (0.0, EFFECT, 0.05),
    "no effect": (0.0, 0.0, 0.3),
}


@cache
def made_up(name, seed):
    """Make rows with one column of codes and some of numbers."""
    power, effect, share = MADE[name]
    rng, n_rows = np.random.default_rng(seed), PRIVATE + PUBLIC + TEST
    frequency = 1.0 / np.arange(1, N_CODES + 1) ** power
    place = rng.choice(N_CODES, size=n_rows, p=frequency / frequency.sum())
    numbers = rng.normal(size=(n_rows, N_NUMBERS))
    logits = effect * rng.normal(size=N_CODES)[place] + OF_NUMBER * numbers[:, 0]
    logits += brentq(lambda shift: expit(logits + shift).mean() - share, -20, 20)
    y = (rng.uniform(size=n_rows) < expit(logits)).astype(int)
    frame = pd.DataFrame(numbers, columns=[f"x{i}" for i in range(N_NUMBERS)])
    frame["code"] = np.array(CODES)[place]
    ends = PRIVATE, PRIVATE + PUBLIC
    (X, X_public, X_test), (y, _, y_test) = (
        (one[: ends[0]], one[ends[0] : ends[1]], one[ends[1] :]) for one in (frame, y)
    )
    domain = dict.fromkeys(frame.columns[:-1], (-4.0, 4.0)) | {"code": CODES}
    return SimpleNamespace(
        X=X,
        y=y,
        X_public=X_public,
        X_test=X_test,
        y_test=y_test,
        groups=None,
        domain=domain,
        weights=np.ones(TEST),
    )


@cache
def diabetes(_):
    """Load the table with all its diagnoses."""
    data = load("diabetes")
    X, X_public, X_test = (
        frame.drop(columns=["weight", "payer_code"])
        for frame in (data.frame_train, data.frame_public, data.frame_test)
    )
    _, group, sizes = np.unique(
        data.groups_test, return_inverse=True, return_counts=True
    )
    return SimpleNamespace(
        X=X,
        y=data.y_train,
        X_public=X_public,
        X_test=X_test,
        y_test=data.y_test,
        groups=data.groups_train,
        domain=domain_of(X, DIABETES_RANGES, DIABETES_CAPS, {}),
        weights=1 / sizes[group],
    )


def fit_private(make, data, epsilon, seed, **parameters):
    """Fit a learner with public rows, by row or by patient."""
    clf = make(epsilon=epsilon, random_state=seed, classes=[0, 1], **parameters)
    of_groups = {}
    if data.groups is not None:
        clf.set_params(privacy_unit="group")
        of_groups["groups"] = data.groups
        if isinstance(clf, DPNewtonClassifier):
            clf.set_params(n_groups=N_GROUPS)
        if isinstance(clf, PATEClassifier):
            times = 1 if clf.mechanism == "gnmax" else 3
            clf.set_params(n_teachers=round(times * N_GROUPS**0.5))
            if clf.codes == "auto":  # needs a public number of patients
                clf.set_params(codes=dict.fromkeys(DIAGNOSES))
    if not isinstance(clf, DPNaiveBayesClassifier):
        of_groups["X_public"] = PublicData(data.X_public)
    return clf.fit(data.X, data.y, **of_groups)


def fit_not_private(data, epsilon, seed):
    """Fit logistic regression on all categories, without privacy."""
    encoder = make_column_transformer(
        (
            OneHotEncoder(handle_unknown="ignore"),
            make_column_selector(dtype_exclude="number"),
        ),
        remainder=StandardScaler(),
    )
    clf = make_pipeline(encoder, LogisticRegression(max_iter=1000))
    return clf.fit(data.X, data.y)


def fit_naive_bayes(data, epsilon, seed):
    """Fit naive Bayes of the declared domain."""
    return fit_private(
        partial(DPNaiveBayesClassifier, data.domain), data, epsilon, seed
    )


NEWTON = partial(fit_private, DPNewtonClassifier)
SCORES = partial(fit_private, partial(PATEClassifier, mechanism="scores"))
VOTES = partial(fit_private, partial(PATEClassifier, mechanism="gnmax"))
LEARNERS = {
    "DPNewton": NEWTON,
    "DPNewton, codes=None": partial(NEWTON, codes=None),
    "PATE, mean scores": SCORES,
    "PATE, mean scores, codes=None": partial(SCORES, codes=None),
    "PATE, votes": VOTES,
    "PATE, votes, codes=None": partial(VOTES, codes=None),
    "naive Bayes": fit_naive_bayes,
}
NOT_PRIVATE = {"not private, logistic": fit_not_private}


def measured(name, label, epsilon, seed):
    """Fit one learner, and score it on the evaluated rows."""
    warnings.simplefilter("ignore")
    data = diabetes(0) if name == "diabetes" else made_up(name, seed)
    start = time.process_time()
    fitted = (LEARNERS | NOT_PRIVATE)[label](data, epsilon, seed)
    seconds = time.process_time() - start
    second = fitted.predict_proba(data.X_test)[:, 1]
    weighted = {"sample_weight": data.weights}
    return {
        "auc": roc_auc_score(data.y_test, second, **weighted),
        "log_loss": log_loss(data.y_test, second, **weighted),
        "n_coded": len(getattr(fitted, "codes_", ())),
        "seconds": seconds,
    }


def table(name):
    """Measure all learners on a table, and write the results."""
    seeds = range(2) if name == "diabetes" else SEEDS
    keys = [
        (name, label, epsilon, seed)
        for label in LEARNERS
        for epsilon in EPSILONS
        for seed in (seeds if "PATE" not in label or name != "diabetes" else seeds[:1])
    ]
    keys += [(name, label, None, seed) for label in NOT_PRIVATE for seed in seeds]
    results, rows = kept_results(f"codes {name}", keys, measured), {}
    for key, result in zip(keys, results, strict=True):
        rows.setdefault(key[1:3], []).append(result)
    found = [
        {
            "learner": label,
            "epsilon": epsilon,
            **{score: summary([one[score] for one in of]) for score in of[0]},
        }
        for (label, epsilon), of in rows.items()
    ]
    save("codes", name, found)


TABLES = {name: partial(table, name) for name in (*MADE, "diabetes")}


def main():
    """Measure the named tables, or all."""
    for name in command(__doc__, TABLES).parse_args().tables:
        TABLES[name]()
