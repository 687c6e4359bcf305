"""Private learners on six tables. Writes results/six_tables.json.

adult, kddcup99, diabetes, stroke, credit_default, obesity
                                every learner against epsilon
few, missing, nonlinear         some of them with few rows, missing values, strong
                                interactions
components                      some of them where the class depends on one component
time                            seconds of the counts

Takes about two hours. Finished fits are kept in files of lines, so that an interrupted
run resumes. Seeds are those of shards, learners and rows; the noise is not seeded.
Ranges and categories are from the descriptions of the data. Teachers are trained once
for each seed. Of a patient, learners of single rows get one row.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import time
import warnings
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pandas as pd
from scipy.stats import entropy
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    log_loss,
    roc_auc_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from benchmarks.learners.data import (
    ADULT_CAPS,
    ADULT_RANGES,
    DIABETES_CAPS,
    DIABETES_RANGES,
    KDD_CAPS,
    KDD_CATEGORIES,
    KDD_RANGES,
    _diagnosis,
    _specialty,
    component,
    load,
)
from benchmarks.learners.settings import linear_net, own_epsilon
from benchmarks.record import WORK, command, kept_results, save, summary
from benchmarks.tables.files import FILES, load_file
from sklearn_pate import PATEClassifier, PrivateMarginals, PublicData
from sklearn_pate._synthetic._marginals import count_cells
from sklearn_pate.learners import (
    DPLogisticRegression,
    DPNaiveBayesClassifier,
    DPNewtonClassifier,
    DPSGDClassifier,
)
from sklearn_pate.mechanisms._noise import NoiseSource
from sklearn_pate.mechanisms._noisy_sum import MarginalCounts
from sklearn_pate.students import TableRepresentation

EPSILONS = (0.25, 0.5, 1.0, 2.0)
SEEDS = range(5)
# Fits of few rows are quick, and differ more; those of many rows are slow.
SEEDS_OF = {
    "stroke": range(20),
    "obesity": range(20),
    "kddcup99": range(2),
    "diabetes": range(2),
}
# Of teachers, of DP-SGD, and of learners on public features.
SLOW = ("PATE", "DP-SGD", "public features")
SEEDS_OF_SLOW = {"stroke": 5, "obesity": 5, "kddcup99": 1, "diabetes": 1}
DELTA = 1e-5
N_GROUPS = 45_000
PUBLIC_FEATURES = TableRepresentation(basis="rbf", random_state=0)
# Of learners of single rows, for each of these for replacing one row.
OWN_EPSILONS = {}
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
    if source == "component":
        return component(int(part)), (-8.0, 8.0)
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


def fit_newton(data, domain, epsilon, seed, *, rows="public", **parameters):
    """Fit noisy Newton steps."""
    clf = DPNewtonClassifier(**parameters)
    return fit_with(clf, data, domain, epsilon, seed, rows=rows)


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


def fit_teachers(
    data, domain, epsilon, seed, *, mechanism, teacher=None, rows="public"
):
    """Fit PATE by its defaults; teachers of a seed are trained once."""
    clf = PATEClassifier(teacher, mechanism=mechanism, memory=str(WORK / "votes"))
    if data.groups_train is not None:
        # By the rule for rows, from the public number of patients.
        times = 1 if mechanism != "scores" else 3 if teacher is None else 2
        clf.set_params(n_teachers=round(times * N_GROUPS**0.5))
    return fit_with(clf, data, domain, epsilon, seed, rows=rows)


def one_row_of_each(data, seed):
    """Return rows for learners of single rows: of each group, one at random."""
    if data.groups_train is None:
        return np.arange(len(data.y_train))
    order = np.random.RandomState(seed).permutation(len(data.y_train))
    _, first = np.unique(data.groups_train[order], return_index=True)
    return np.sort(order[first])


def fit_row_learner(clf, data, epsilon, seed, *, on_public):
    """Fit a learner of single rows, on public features or on encoded columns.

    Its own epsilon is for adding or removing a row, and smaller than this one.
    """
    rows = one_row_of_each(data, seed)
    X, X_test, public = data.X_train[rows], data.X_test, {}
    if on_public:
        clf.set_params(representation=PUBLIC_FEATURES)
        X, X_test = data.frame_train.iloc[rows], data.frame_test
        public["X_public"] = PublicData(data.frame_public)

    def plan(own):
        planned = clone(clf).set_params(epsilon=own)
        return planned.plan_privacy(X, data.y_train[rows], **public)

    key = data.name, type(clf), on_public, epsilon
    if key not in OWN_EPSILONS:
        OWN_EPSILONS[key] = own_epsilon(plan, epsilon)
    clf.set_params(epsilon=OWN_EPSILONS[key])
    return clf.fit(X, data.y_train[rows], **public), X_test


def fit_linear(data, domain, epsilon, seed, *, on_public=False):
    """Fit logistic regression by Gaussian objective perturbation."""
    clf = DPLogisticRegression(method="gaussian", delta=DELTA)
    if not on_public:
        # The columns of a category sum to a constant, which replaces an intercept.
        clf.set_params(data_norm=1.0, fit_intercept=False)
    return fit_row_learner(clf, data, epsilon, seed, on_public=on_public)


def fit_dp_sgd(data, domain, epsilon, seed, *, on_public=False):
    """Fit a linear map, with the batches of Abadi et al. (2016) for MNIST."""
    n_features = data.X_train.shape[1]
    if on_public:
        n_features = clone(PUBLIC_FEATURES).fit(data.frame_public).n_components_
    net = linear_net(n_features, len(np.unique(data.y_test)))
    clf = DPSGDClassifier(net, delta=DELTA, random_state=seed)
    return fit_row_learner(clf, data, epsilon, seed, on_public=on_public)


def fit_not_private(data, domain, epsilon, seed, *, clf, on_public=False):
    """Fit without privacy, on every row."""
    if not on_public:
        return clf.fit(data.X_train, data.y_train), data.X_test
    features = clone(PUBLIC_FEATURES).fit(data.frame_public)
    clf.fit(features.transform(data.frame_train), data.y_train)
    return clf, features.transform(data.frame_test)


def fit_naive_bayes(data, domain, epsilon, seed):
    """Fit naive Bayes of the counts, at the whole epsilon."""
    clf = DPNaiveBayesClassifier(domain, epsilon=epsilon, random_state=seed)
    arguments = {}
    if data.groups_train is not None:
        clf.set_params(privacy_unit="group", classes=[0, 1])
        arguments["groups"] = data.groups_train
    return clf.fit(data.frame_train, data.y_train, **arguments), data.frame_test


BOOSTING = HistGradientBoostingClassifier(random_state=0)
LOGISTIC = LogisticRegression(max_iter=2000)
#: Learners at every epsilon.
LEARNERS = {
    "DPNewton": fit_newton,
    "DPNewton, linear": partial(fit_newton, basis="linear"),
    "DPNewton, public_size": partial(fit_newton, rows="public_size"),
    "DPNewton, no public rows": partial(fit_newton, rows="synthetic"),
    "naive Bayes, no public rows": fit_naive_bayes,
    "PATE, mean scores": partial(fit_teachers, mechanism="scores"),
    "PATE, votes": partial(fit_teachers, mechanism="gnmax"),
    "objective perturbation, public features": partial(fit_linear, on_public=True),
    "objective perturbation, columns": fit_linear,
    "DP-SGD, public features": partial(fit_dp_sgd, on_public=True),
    "DP-SGD, columns": fit_dp_sgd,
}
#: Forest on the columns, categories as numbers.
FOREST = make_pipeline(
    make_column_transformer(
        (
            OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
            make_column_selector(dtype_include=["category", "object"]),
        ),
        remainder="passthrough",
    ),
    RandomForestClassifier(min_samples_leaf=3),
)
#: Learners at epsilon 1.
AT_ONE = {
    "PATE, mean scores, forests": partial(
        fit_teachers, mechanism="scores", teacher=FOREST
    ),
    "PATE, votes, forests": partial(fit_teachers, mechanism="gnmax", teacher=FOREST),
    "PATE, mean scores, no public rows": partial(
        fit_teachers, mechanism="scores", rows="synthetic"
    ),
}
#: Curved features without public rows, for strong interactions.
CURVED = {
    "DPNewton, no public rows, rbf": partial(fit_newton, rows="synthetic", basis="rbf")
}
#: Learners without noise.
NOT_PRIVATE = {
    "not private, logistic, public features": partial(
        fit_not_private, clf=LOGISTIC, on_public=True
    ),
    "not private, logistic, columns": partial(fit_not_private, clf=LOGISTIC),
    "not private, boosting, columns": partial(fit_not_private, clf=BOOSTING),
}
ALL = LEARNERS | AT_ONE | CURVED | NOT_PRIVATE
FEWER = (
    "DPNewton",
    "DPNewton, no public rows",
    "objective perturbation, columns",
    "naive Bayes, no public rows",
)


def measured(name, label, epsilon, seed):
    """Fit one learner, and score it on the evaluated rows.

    Patients weigh the same, however many rows they have, as in the fits.
    """
    warnings.simplefilter("ignore")
    data, domain = case(name)
    y, weights = data.y_test, np.ones(len(data.y_test))
    if data.groups_test is not None:
        _, group, sizes = np.unique(
            data.groups_test, return_inverse=True, return_counts=True
        )
        weights = 1 / sizes[group]
    start = time.process_time()
    fitted, X = ALL[label](data, domain, epsilon, seed)
    seconds = time.process_time() - start
    predicted, probabilities = fitted.predict(X), fitted.predict_proba(X)
    scores = probabilities if len(fitted.classes_) > 2 else probabilities[:, 1]
    is_last = np.arange(len(fitted.classes_)) == len(fitted.classes_) - 1
    weighted = {"sample_weight": weights}
    return {
        "auc": roc_auc_score(y, scores, multi_class="ovr", **weighted),
        "auc_of_rows": roc_auc_score(y, scores, multi_class="ovr"),
        "accuracy": accuracy_score(y, predicted, **weighted),
        "balanced_accuracy": balanced_accuracy_score(y, predicted, **weighted),
        "log_loss": log_loss(y, probabilities, **weighted),
        # Of a constant: the shares of the evaluated rows.
        "constant": entropy(np.bincount(y, weights)),
        "mean": np.average(probabilities[:, -1], weights=weights),
        "predicted": np.average(is_last[predicted], weights=weights),
        "share": np.average(is_last[y], weights=weights),
        "seconds": seconds,
    }


def comparison(name):
    """Measure every learner on a data set, and write its table."""
    keys, n_slow = [], SEEDS_OF_SLOW.get(name, 2)
    for label in LEARNERS:
        seeds, epsilons = SEEDS_OF.get(name, SEEDS), EPSILONS
        if any(one in label for one in SLOW):
            seeds = range(n_slow)
            # Fits of a minute or more.
            if n_slow == 1 and "PATE" not in label:
                epsilons = (1.0,)
        keys += [(name, label, one, seed) for one in epsilons for seed in seeds]
    n_seeds = min(n_slow, 2)
    keys += [(name, one, 1.0, seed) for one in AT_ONE for seed in range(n_seeds)]
    keys += [(name, one, None, 0) for one in NOT_PRIVATE]
    save("six_tables", name, rows_of(f"six_tables {name}", keys))


def turn(name, learners, epsilons=(1.0,), seeds=SEEDS):
    """Measure some learners on a data set where something turns."""
    keys = [
        (name, label, epsilon, seed)
        for seed in seeds
        for epsilon in epsilons
        for label in learners
    ]
    save("six_tables", name, rows_of(f"six_tables {name}", keys))


def rows_of(table, keys):
    """Return a row for each learner and epsilon, of stored fits and new ones."""
    rows = {}
    for key, result in zip(keys, kept_results(table, keys, measured), strict=True):
        rows.setdefault(key[:-1], []).append(result)
    return [
        {
            "data": name,
            "learner": label,
            "epsilon": epsilon,
            "n_seeds": len(found),
            **{score: summary([one[score] for one in found]) for score in found[0]},
        }
        for (name, label, epsilon), found in rows.items()
    ]


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
    counts.release(exact, NoiseSource())
    row = {
        "n_rows": n_rows,
        "n_columns": frame.shape[1],
        "n_cells": len(exact),
        "counts": of_counts,
        "noise": time.perf_counter() - start,
    }
    print(row, flush=True)
    save("six_tables", "time", [row])


TABLES = {
    **{name: partial(comparison, name) for name in ("adult", "kddcup99", "diabetes")},
    **{name: partial(comparison, name) for name in FILES},
    "few": lambda: [turn(f"adult {n_rows}", FEWER) for n_rows in (1000, 3000, 6000)],
    "missing": partial(turn, "adult missing", FEWER[:2] + FEWER[3:]),
    "nonlinear": partial(
        turn,
        "nonlinear",
        (*FEWER[:2], *FEWER[3:], *CURVED),
        (0.1, 1.0),
        range(1),
    ),
    "components": lambda: [
        turn(
            f"component {place}",
            ("DPNewton", "PATE, mean scores", "naive Bayes, no public rows"),
            (0.25, 0.5, 1.0, 2.0),
        )
        for place in (1, 5, 12, 20)
    ],
    "time": times,
}


def main():
    """Measure the named tables, or all."""
    for name in command(__doc__, TABLES).parse_args().tables:
        TABLES[name]()
