"""Learners without public rows, and others. Writes results/marginals.json.

adult, kddcup99, diabetes       accuracy and AUC against epsilon, by source of rows
few, missing, nonlinear         where it turns: few rows, missing values, strong
                                interactions
naive_bayes                     naive Bayes and DPNewton with synthetic rows on six
                                tables, and probabilities
time                            seconds of the counts

Run some of them with ``python benchmarks/marginals.py adult``, all of them without a
name: about three hours. Finished fits are kept in a file of lines, so that an
interrupted run resumes. Seeds are those of shards, learners and rows; the noise is not
seeded. Ranges and categories are from the descriptions of the data.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import json
import time
import warnings
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
from command import command
from file_data import FILES, load_file
from learner_data import (
    ADULT_CAPS,
    ADULT_RANGES,
    DIABETES_CAPS,
    DIABETES_RANGES,
    KDD_CAPS,
    KDD_CATEGORIES,
    KDD_RANGES,
    _diagnosis,
    _specialty,
    load,
)
from record import save, summary
from scipy.stats import entropy
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from sklearn_pate import PATEClassifier, PrivateMarginals, PublicData
from sklearn_pate._synthetic._marginals import Marginals, count_cells
from sklearn_pate.learners import (
    DPLinearSVC,
    DPNaiveBayesClassifier,
    DPNewtonClassifier,
)
from sklearn_pate.mechanisms._noisy_sum import MarginalCounts

EPSILONS = (0.5, 1.0, 2.0)
SEEDS = range(5)
# Fits of few rows are quick, and differ more.
SEEDS_OF = {"stroke": range(20), "obesity": range(20), "diabetes": range(3)}
DELTA = 1e-5
N_GROUPS = 45_000
KEPT = Path(__file__).parent / "work" / "marginals.jsonl"
# Edges of bins of amounts and of counts of events.
AMOUNTS = (0, 1, 10, 100, 1000, 2500, 5000, 7500, 10_000, 15_000, 20_000, 50_000)
EVENTS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 32, 64)


def edges(cap):
    """Return edges of bins of an amount from 0 to a cap."""
    bins = AMOUNTS if cap > 1000 else EVENTS
    return (*(one for one in bins if one < cap), cap)


def domain_of(frame, ranges, caps, categories):
    """Declare the columns of a frame, by public knowledge."""
    declared = ranges | {name: edges(cap) for name, cap in caps.items()}
    declared |= {name: list(values) for name, values in categories.items()}
    return {name: one for name, one in declared.items() if name in frame}


@cache
def case(name):
    """Load a data set with its domain."""
    source, _, part = name.partition(" ")
    if source in FILES:
        return load_file(source)
    data = load(source)
    if source == "nonlinear":
        return data, (-12.0, 12.0)
    if source == "kddcup99":
        return data, domain_of(data.frame_train, KDD_RANGES, KDD_CAPS, KDD_CATEGORIES)
    if source == "adult":
        data = _changed(data, lambda frame: frame.drop(columns="fnlwgt"))
        domain = domain_of(data.frame_train, ADULT_RANGES, ADULT_CAPS, {})
        if part == "missing":
            return _changed(data, _with_missing), {
                column: {"edges" if len(one) > 2 else "range": one, "missing": True}
                for column, one in domain.items()
            } | {
                column: [*values.cat.categories, None]
                for column, values in data.frame_train.select_dtypes("category").items()
            }
        if part:
            n_rows = int(part)
            data = replace(
                data,
                X_train=data.X_train[:n_rows],
                y_train=data.y_train[:n_rows],
                frame_train=data.frame_train.iloc[:n_rows],
            )
        return data, domain
    data = _changed(data, _grouped)
    domain = domain_of(data.frame_train, DIABETES_RANGES, DIABETES_CAPS, {})
    return data, domain


def _grouped(frame):
    """Group specialties and diagnoses of the original columns, row by row."""
    names = ("diag_1", "diag_2", "diag_3")
    frame = frame.drop(columns=["weight", "payer_code"]).copy()
    frame["medical_specialty"] = _categories(frame["medical_specialty"], _specialty)
    for name in names:
        frame[name] = _categories(frame[name], _diagnosis)
    return frame


def _categories(column, group):
    listed = sorted({group(one) for one in column.cat.categories.astype(str)})
    return pd.Categorical(column.astype(str).map(group), categories=listed)


def _with_missing(frame):
    """Remove a fifth of all values, at random; the same ones in every run."""
    frame = frame.astype(
        dict.fromkeys(frame.select_dtypes("number").columns, np.float64)
    )
    is_missing = np.random.RandomState(len(frame)).uniform(size=frame.shape) < 0.2
    return frame.mask(is_missing)


def _changed(data, change):
    return replace(
        data,
        frame_train=change(data.frame_train),
        frame_public=change(data.frame_public),
        frame_test=change(data.frame_test),
    )


def fit_newton(data, domain, epsilon, seed, *, rows):
    """Fit noisy Newton steps."""
    return fit_with(DPNewtonClassifier(), data, domain, epsilon, seed, rows=rows)


def fit_with(clf, data, domain, epsilon, seed, *, rows):
    """Fit with public rows, with a fifth of the rows, or with synthetic rows."""
    clf.set_params(epsilon=epsilon, random_state=seed)
    arguments = {}
    if rows == "public":
        arguments["X_public"] = PublicData(data.frame_public)
    elif rows == "public_size":
        clf.set_params(public_size=0.2)
    else:
        clf.set_params(synthetic=PrivateMarginals(domain))
    if data.groups_train is not None:
        clf.set_params(privacy_unit="group", classes=[0, 1])
        if isinstance(clf, DPNewtonClassifier):
            clf.set_params(n_groups=N_GROUPS)
        arguments["groups"] = data.groups_train
    return clf.fit(data.frame_train, data.y_train, **arguments), data.frame_test


def of_teachers(data, domain, epsilon, seed, *, rows):
    """Answer 2000 queries with 250 logistic teachers, for a forest as student."""
    is_text = make_column_selector(dtype_include=["category", "object"])
    encoder = make_column_transformer(
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), is_text),
        remainder="passthrough",
    )
    student = make_pipeline(
        encoder, RandomForestClassifier(min_samples_leaf=10, random_state=seed)
    )
    clf = PATEClassifier(
        LogisticRegression(C=10, max_iter=1000),
        student,
        n_teachers=250,
        mechanism="gnmax",
    )
    return fit_with(clf, data, domain, epsilon, seed, rows=rows)


def fit_linear(data, domain, epsilon, seed):
    """Fit a private linear classifier; of groups, on one row of each."""
    rows = np.arange(len(data.y_train))
    if data.groups_train is not None:
        order = np.random.RandomState(seed).permutation(len(rows))
        _, first = np.unique(data.groups_train[order], return_index=True)
        rows = np.sort(order[first])
    clf = DPLinearSVC(
        method="gaussian",
        epsilon=epsilon,
        delta=DELTA,
        data_norm=1.0,
        fit_intercept=False,
    )
    return clf.fit(data.X_train[rows], data.y_train[rows]), data.X_test


def fit_naive_bayes(data, domain, epsilon, seed):
    """Fit naive Bayes of the counts, at the whole epsilon."""
    clf = DPNaiveBayesClassifier(domain, epsilon=epsilon, random_state=seed)
    arguments = {}
    if data.groups_train is not None:
        clf.set_params(privacy_unit="group", classes=[0, 1])
        arguments["groups"] = data.groups_train
    return clf.fit(data.frame_train, data.y_train, **arguments), data.frame_test


def fit_boosting(data, domain, epsilon, seed):
    """Fit boosting on rows and labels drawn from the counts, at the whole epsilon."""
    read = PrivateMarginals(domain)._read(data.frame_train)
    X, y = data.frame_train, data.y_train
    if data.groups_train is not None:
        rows = np.random.RandomState(seed).permutation(len(y))
        _, first = np.unique(data.groups_train[rows], return_index=True)
        X, y = X.iloc[rows[first]], y[rows[first]]
    exact = count_cells(read, X, y.astype(np.intp), 2, by_class=True)
    counts = MarginalCounts(n_tables=len(read.counted)).for_share(1.0, epsilon, DELTA)
    marginals = Marginals(read, 2, True, counts.release(exact), len(y), counts.sigma)
    drawn = marginals.draw(30_000, seed, equal_classes=False)
    clf = HistGradientBoostingClassifier(
        categorical_features="from_dtype" if hasattr(X, "iloc") else None,
        max_bins=64,
        random_state=seed,
    )
    return clf.fit(drawn.X, drawn.labels), data.frame_test


LEARNERS = {
    "DPNewton, public rows": partial(fit_newton, rows="public"),
    "DPNewton, public_size": partial(fit_newton, rows="public_size"),
    "DPNewton, synthetic rows": partial(fit_newton, rows="synthetic"),
    "PATE, votes, public rows": partial(of_teachers, rows="public"),
    "PATE, votes, public_size": partial(of_teachers, rows="public_size"),
    "PATE, votes, synthetic rows": partial(of_teachers, rows="synthetic"),
    "Gaussian objective perturbation": fit_linear,
    "naive Bayes": fit_naive_bayes,
    "boosting on drawn rows": fit_boosting,
}
FEWER = (
    "DPNewton, public rows",
    "DPNewton, synthetic rows",
    "Gaussian objective perturbation",
    "naive Bayes",
)
OF_COUNTS = ("DPNewton, synthetic rows", "naive Bayes")


def measured(name, label, epsilon, seed):
    """Fit one learner, and score it on the evaluated rows."""
    warnings.simplefilter("ignore")
    data, domain = case(name)
    y = data.y_test
    start = time.perf_counter()
    fitted, X = LEARNERS[label](data, domain, epsilon, seed)
    result = {"seconds": time.perf_counter() - start}
    result["accuracy"] = accuracy_score(y, fitted.predict(X))
    if hasattr(fitted, "predict_proba"):
        probabilities = fitted.predict_proba(X)
        of_last = scores = probabilities[:, -1]
        if len(fitted.classes_) > 2:
            scores = probabilities
        result["log_loss"] = log_loss(y, probabilities)
        # Of a constant: the shares of the evaluated rows.
        result["constant"] = entropy(np.bincount(y))
        result["mean"], result["share"] = np.mean(of_last), np.mean(y == y.max())
    else:
        scores = fitted.decision_function(X)
    return result | {"auc": roc_auc_score(y, scores, multi_class="ovr")}


def comparison(name, *wanted, **more):
    """Measure learners on a data set, and write its table."""
    save("marginals", name, rows_of(name, *wanted, **more))


def naive_bayes():
    """Measure what the counts alone predict, and steps on rows drawn from them."""
    rows = []
    for name in (*FILES, "adult", "kddcup99", "diabetes"):
        rows += rows_of(name, OF_COUNTS, seeds=SEEDS_OF.get(name, SEEDS))
    save("marginals", "naive_bayes", rows)


def rows_of(name, learners=tuple(LEARNERS), epsilons=EPSILONS, seeds=SEEDS):
    """Measure learners at every epsilon, seed by seed."""
    kept = {}
    if KEPT.exists():
        for line in KEPT.read_text().splitlines():
            one = json.loads(line)
            kept[tuple(one["key"])] = one["result"]
    wanted = [
        (name, label, epsilon, seed)
        for seed in seeds
        for epsilon in epsilons
        for label in learners
    ]
    missing = [key for key in wanted if key not in kept]
    KEPT.parent.mkdir(exist_ok=True)
    for key in missing:
        kept[key] = result = measured(*key)
        with KEPT.open("a") as file:
            file.write(json.dumps({"key": key, "result": result}) + "\n")
        print(*key, result, flush=True)
    return _rows(name, learners, epsilons, seeds, kept)


def _rows(name, learners, epsilons, seeds, kept):
    rows = []
    for label in learners:
        for epsilon in epsilons:
            keys = [(name, label, epsilon, seed) for seed in seeds]
            found = [kept[key] for key in keys if key in kept]
            if found:
                rows.append(
                    {
                        "data": name,
                        "learner": label,
                        "epsilon": epsilon,
                        "n_seeds": len(found),
                        **{
                            score: summary([one[score] for one in found])
                            for score in found[0]
                        },
                    }
                )
    return rows


def times():
    """Measure the counts of a million rows and 50 columns, and their noise."""
    rng = np.random.RandomState(0)
    n_rows = 1_000_000
    frame = pd.DataFrame(
        {f"float {i}": rng.standard_normal(n_rows) for i in range(30)}
        | {f"integer {i}": rng.randint(0, 100, n_rows) for i in range(10)}
        | {
            f"category {i}": pd.Categorical.from_codes(
                rng.randint(0, 10, n_rows), [f"value {j}" for j in range(10)]
            )
            for i in range(10)
        }
    )
    codes = rng.randint(0, 2, n_rows).astype(np.intp)
    declared = dict.fromkeys(frame.filter(like="float"), (-4.0, 4.0))
    declared |= dict.fromkeys(frame.filter(like="integer"), (0, 99))
    domain = PrivateMarginals(declared)._read(frame)
    start = time.perf_counter()
    exact = count_cells(domain, frame, codes, 2, by_class=True)
    of_counts = time.perf_counter() - start
    counts = MarginalCounts(n_tables=50).for_share(0.1, 1.0, DELTA)
    start = time.perf_counter()
    counts.release(exact)
    row = {
        "n_rows": n_rows,
        "n_columns": frame.shape[1],
        "n_cells": len(exact),
        "counts": of_counts,
        "noise": time.perf_counter() - start,
    }
    print(row, flush=True)
    save("marginals", "time", [row])


TABLES = {
    "adult": partial(comparison, "adult"),
    "kddcup99": partial(comparison, "kddcup99"),
    "diabetes": partial(comparison, "diabetes"),
    "few": lambda: [
        comparison(f"adult {n_rows}", FEWER, (1.0,)) for n_rows in (1000, 3000, 6000)
    ],
    "missing": partial(comparison, "adult missing", FEWER[:2] + FEWER[3:], (1.0,)),
    "nonlinear": partial(
        comparison, "nonlinear", FEWER[:2] + FEWER[3:], (0.1, 1.0), range(2)
    ),
    "naive_bayes": naive_bayes,
    "time": times,
}


def main():
    """Measure the named tables, or all."""
    for name in command(__doc__, TABLES).parse_args().tables:
        TABLES[name]()


if __name__ == "__main__":
    main()
