"""Numbers and times, learned by private classifiers. Writes results/outcomes.json.

days          days in hospital (Diabetes, 65,000 private rows)
limit, bill   credit limit and last bill (18,000 private rows)
flchain       days until death (4,724 private persons, 28 % of whom died)
made up       times of a known law (12,000 private persons)
coverage      prediction sets and intervals by private metrics, 100 to 300 draws

Takes about an hour. Finished fits are kept in files of lines, so that an interrupted
run resumes. Seeds are those of splits, shards and teachers; the noise is not seeded.
Edges are round numbers that were chosen by what the columns mean. diffprivlib gets all
columns, or those of numbers alone, as each column costs it accuracy. SURVIVAL_PYTHON
and DIFFPRIVLIB_PYTHON are the Pythons of the environments of ``peer_survival.py`` and
``peer_diffprivlib.py``.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import subprocess
import time
import warnings
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

from benchmarks.learners.data import load
from benchmarks.learners.peers import peer_fits
from benchmarks.record import WORK, command, kept_results, save, summary
from benchmarks.tables.files import load_file
from sklearn_pate import DPNewtonClassifier, PATEClassifier, PublicData
from sklearn_pate.metrics import private_metrics
from sklearn_pate.outcomes import BinnedRegressor, DiscreteSurvival

EPSILONS = (0.25, 0.5, 1.0, 2.0)
#: Splits of a table, and those of learners with teachers.
SEEDS = {"days": (2, 1), "limit": (5, 3), "bill": (5, 3), "made up": (5, 2)}
SEEDS["flchain"] = (10, 3)
#: Column of the outcome, edges, and a range.
NUMBERS = {
    "days": (
        "time_in_hospital",
        [0.5, 1.5, 2.5, 3.5, 4.5, 6.5, 9.5, 14.5],
        (0.5, 14.5),
    ),
    "limit": (
        "LIMIT_BAL",
        [0, 50_000, 100_000, 200_000, 300_000, 500_000],
        (0, 500_000),
    ),
    "bill": (
        "BILL_AMT1",
        [-10_000, 1000, 10_000, 50_000, 100_000, 200_000, 400_000],
        (0, 400_000),
    ),
}
INTERVALS = {"flchain": [2000, 4000], "made up": [1, 2, 3, 4, 5, 6]}
SURVIVAL_PYTHON = "SURVIVAL_PYTHON"
# Made-up persons: 12,000 private, 2,000 public and 6,000 evaluated ones.
MADE = (12_000, 14_000, 20_000)
NUMBER = make_column_selector(dtype_include="number")
OTHERS = make_column_selector(dtype_exclude="number")
LEARNERS = {
    "DPNewton": DPNewtonClassifier,
    "PATE, mean scores": partial(PATEClassifier, mechanism="scores"),
    "PATE, votes": partial(PATEClassifier, mechanism="gnmax"),
}
RANGE = "DPNewton, a range"
DIFFPRIVLIB = "diffprivlib, linear"
DIFFPRIVLIB_FEW = "diffprivlib, linear, numbers alone"
# Wanted share of labels in prediction sets, and draws of rows and noise.
COVERAGE, DRAWS = (
    0.9,
    {
        "adult": 300,
        "adult, narrow bins": 300,
        "kddcup99": 300,
        "days": 100,
    },
)
NARROW = np.arange(1, 50) / 50


def _parts(X, y, ends, order):
    """Divide rows into private, public and evaluated ones."""
    train, public, test = np.split(order, ends)
    return SimpleNamespace(
        X=X.iloc[train],
        y=y[train],
        X_public=X.iloc[public],
        X_test=X.iloc[test],
        y_test=y[test],
    )


@cache
def numbers(name, seed):
    """Load a table with a number as outcome."""
    column = NUMBERS[name][0]
    if name == "days":
        data = load("diabetes")
        parts = data.frame_train, data.frame_public, data.frame_test
        X = pd.concat(parts).drop(columns=["weight", "payer_code"])
        ends = np.cumsum([len(one) for one in parts[:2]])
        order = np.arange(len(X))
    else:
        data, _ = load_file("credit_default", seed)
        parts = data.frame_train, data.frame_public, data.frame_test
        X, order = pd.concat(parts), np.arange(sum(map(len, parts)))
        ends = np.cumsum([len(one) for one in parts[:2]])
    y = X.pop(column).to_numpy(dtype=float)
    return _parts(X, y, ends, order)


@cache
def times(name, seed):
    """Load or make persons with times until an event."""
    rng = np.random.default_rng(seed)
    if name == "flchain":
        path = WORK / "flchain.npz"
        if not path.exists():
            script = Path(__file__).parents[1] / "learners" / "peer_survival.py"
            python = os.environ[SURVIVAL_PYTHON]
            subprocess.run([python, script, path, "--write"], check=True)
        rows = np.load(path)
        X, n_rows = pd.DataFrame(rows["X"], columns=rows["columns"]), len(rows["X"])
        event, end = rows["event"], rows["time"]
        ends = 6 * n_rows // 10, 7 * n_rows // 10
        truth = None
    else:
        n_rows, ends = MADE[-1], MADE[:-1]
        values = rng.normal(size=(n_rows, 10))
        rates = np.exp(
            -2.2 + 0.7 * values[:, 0] + 0.4 * values[:, 1] - 0.5 * values[:, 2] ** 2
        )
        X = pd.DataFrame(values, columns=[f"x{place}" for place in range(10)])
        of_event, of_censoring = rng.exponential(1 / rates), rng.uniform(0, 12, n_rows)
        event, end = of_event <= of_censoring, np.minimum(of_event, of_censoring)
        truth = np.exp(-np.outer(rates, INTERVALS[name]))
    y = np.empty(n_rows, dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = event, end
    order = rng.permutation(n_rows)
    data = _parts(X, y, ends, order)
    data.truth = None if truth is None else truth[order[ends[1] :]]
    return data


def _encoded(data, *, numbers_alone=False):
    """Encode rows as numbers from 0 to 1, by public rows."""
    others = (
        "drop"
        if numbers_alone
        else OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            min_frequency=0.02,
            sparse_output=False,
        )
    )
    encoder = make_column_transformer(
        (MinMaxScaler(clip=True), NUMBER),
        (others, OTHERS),
    ).fit(data.X_public)
    return encoder.transform(data.X), encoder.transform(data.X_test)


def measured_number(name, label, epsilon, seed):
    """Fit one learner of a number, and score it on the evaluated rows."""
    warnings.simplefilter("ignore")
    data, (_, edges, ends) = numbers(name, seed), NUMBERS[name]
    start, public = time.process_time(), PublicData(data.X_public)
    if label.startswith(DIFFPRIVLIB):
        X, X_test = _encoded(data, numbers_alone=label == DIFFPRIVLIB_FEW)
        arrays = {"X_train": X, "y_train": data.y, "X_test": X_test}
        arrays |= {"y_test": data.y_test, "bounds": np.array(ends, dtype=float)}
        fits = peer_fits(
            "DIFFPRIVLIB_PYTHON",
            "peer_regression.py",
            arrays,
            ["--epsilon", epsilon],
            [seed],
        )
        return {score: fits[0][score] for score in ("r2", "mae")} if fits else None
    if label == "not private, ridge":
        X, X_test = _encoded(data)
        predicted = Ridge().fit(X, data.y).predict(X_test)
    elif label == "not private, boosting":
        encoder = make_column_transformer(
            ("passthrough", NUMBER),
            (
                OneHotEncoder(
                    handle_unknown="infrequent_if_exist",
                    min_frequency=0.005,
                    sparse_output=False,
                ),
                OTHERS,
            ),
        )
        model = make_pipeline(encoder, HistGradientBoostingRegressor(random_state=seed))
        predicted = model.fit(data.X, data.y).predict(data.X_test)
    else:
        make = LEARNERS[label.removesuffix(", a range")]
        bins = ends if label == RANGE else edges
        model = BinnedRegressor(make(epsilon=epsilon, random_state=seed), bins=bins)
        predicted = model.fit(data.X, data.y, X_public=public).predict(data.X_test)
    return {
        "r2": r2_score(data.y_test, predicted),
        "mae": mean_absolute_error(data.y_test, predicted),
        "seconds": time.process_time() - start,
    }


def measured_time(name, label, epsilon, seed):
    """Fit one survival model, and score it on the evaluated persons."""
    warnings.simplefilter("ignore")
    data, ends = times(name, seed), INTERVALS[name]
    start = time.process_time()
    if label.startswith("not private"):
        arrays = {"X_train": data.X, "X_test": data.X_test}
        for part, y in (("train", data.y), ("test", data.y_test)):
            arrays |= {f"event_{part}": y["event"], f"time_{part}": y["time"]}
        kind = label.removeprefix("not private, ")
        options = ["--model", kind, "--times", *ends]
        fits = peer_fits(SURVIVAL_PYTHON, "peer_survival.py", arrays, options, [seed])
        names = "concordance", "survival"
        return {score: fits[0][score] for score in names} if fits else None
    make = LEARNERS[label]
    model = DiscreteSurvival(make(epsilon=epsilon, random_state=seed), intervals=ends)
    model.fit(data.X, data.y, X_public=PublicData(data.X_public))
    survival = model.predict_survival_function(data.X_test)
    found = {
        "concordance": model.score(data.X_test, data.y_test),
        "survival": survival.mean(axis=0).tolist(),
        "seconds": time.process_time() - start,
    }
    if data.truth is not None:
        found["error"] = float(np.mean(np.abs(survival - data.truth)))
        found["true_survival"] = data.truth.mean(axis=0).tolist()
    return found


def table(name):
    """Measure all learners on a table, and write the results."""
    is_time = name in INTERVALS
    run = measured_time if is_time else measured_number
    private = (
        [*LEARNERS] if is_time else [*LEARNERS, RANGE, DIFFPRIVLIB, DIFFPRIVLIB_FEW]
    )
    others = ("Cox", "boosting") if is_time else ("ridge", "boosting")
    n_seeds, n_slow = SEEDS[name]
    keys = [
        (name, label, epsilon, seed)
        for label in private
        for epsilon in EPSILONS
        for seed in range(n_slow if "PATE" in label else n_seeds)
    ]
    keys += [
        (name, f"not private, {one}", None, seed)
        for one in others
        for seed in range(n_seeds)
    ]
    results, rows = kept_results(f"outcomes {name}", keys, run), {}
    for key, result in zip(keys, results, strict=True):
        if result is not None:
            rows.setdefault(key[1:3], []).append(result)
    found = []
    for (label, epsilon), of in rows.items():
        scores = {
            score: (
                np.mean([one[score] for one in of], axis=0).tolist()
                if isinstance(of[0][score], list)
                else summary([one[score] for one in of])
            )
            for score in of[0]
        }
        found.append({"learner": label, "epsilon": epsilon, **scores})
    edges = INTERVALS[name] if is_time else NUMBERS[name][1]
    save("outcomes", name, found, edges=edges)


def measured_coverage(name, n_rows, epsilon, draw):
    """Measure a model on some rows, and the coverage of its sets on the others."""
    warnings.simplefilter("ignore")
    model, X, y = _of_coverage(name)
    order = np.random.default_rng(draw).permutation(len(y))
    measured, others = order[:n_rows], order[n_rows:]
    bins = {"bins": NARROW} if name.endswith("narrow bins") else {}
    metrics = private_metrics(
        model, X.iloc[measured], y[measured], epsilon=epsilon, **bins
    )
    X, y = X.iloc[others], y[others]
    if name == "days":
        level = metrics.confidence_level(coverage=COVERAGE)
        low, high = model.predict_interval(X, level).T
        y = y.clip(*model.edges_[[0, -1]])
        return {
            "covered": np.mean((low <= y) & (y <= high)),
            "size": np.mean(high - low),
        }
    probabilities = model.predict_proba(X)
    sets = probabilities >= metrics.threshold(coverage=COVERAGE)
    own = sets[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return {"covered": own.mean(), "size": sets.sum(axis=1).mean()}


@cache
def _of_coverage(name):
    """Fit a model, and return rows that it was not fitted on."""
    clf = DPNewtonClassifier(epsilon=1.0, random_state=0)
    if name == "days":
        data, edges = numbers(name, 0), NUMBERS[name][1]
        model = BinnedRegressor(clf, bins=edges)
        model.fit(data.X, data.y, X_public=PublicData(data.X_public))
        return model, data.X_test, data.y_test
    data = load(name.partition(",")[0])
    model = clf.fit(
        data.frame_train, data.y_train, X_public=PublicData(data.frame_public)
    )
    return model, data.frame_test, data.y_test


def coverage():
    """Measure the coverage of sets and intervals over draws of rows and noise."""
    keys = [
        (name, n_rows, 1.0, draw)
        for name in DRAWS
        for n_rows in (2000, 10_000)
        for draw in range(DRAWS[name])
    ]
    results, rows = kept_results("outcomes coverage", keys, measured_coverage), {}
    for key, result in zip(keys, results, strict=True):
        rows.setdefault(key[:3], []).append(result)
    found = [
        {
            "data": name,
            "n_rows": n_rows,
            "epsilon": epsilon,
            **{one: summary([each[one] for each in of]) for one in ("covered", "size")},
        }
        for (name, n_rows, epsilon), of in rows.items()
    ]
    save("outcomes", "coverage", found, coverage=COVERAGE)


TABLES = {name: partial(table, name) for name in (*NUMBERS, *INTERVALS)}
TABLES["coverage"] = coverage


def main():
    """Measure the named tables, or all."""
    for name in command(__doc__, TABLES).parse_args().tables:
        TABLES[name]()
