"""Private metrics beside the true ones. Writes results/private_metrics.json.

coverage                        how often intervals hold, on simulated rows
diabetes, adult, kddcup99       metrics with intervals beside those of the same rows,
                                also by subgroup, and their error over many releases
target                          the errors on 10,000 rows with 11 % positive
others                          Laplace histograms, and AUC by smooth sensitivity
time                            seconds of a measurement

Takes half an hour. An interrupted run of `coverage` resumes. Noise comes from the
operating system. For the histogram of diffprivlib, DIFFPRIVLIB_PYTHON names the Python
of its environment; see `peer_histogram.py`.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from benchmarks.learners.data import load
from benchmarks.record import WORK, command, save
from sklearn_pate._estimators._isolation import MAX_SEED
from sklearn_pate._teachers._shards import group_ids, one_row_of_groups
from sklearn_pate.metrics import private_metrics
from sklearn_pate.metrics._private_metrics import plan_measurement, read_rows

EPSILONS = (0.25, 0.5, 1.0)
DELTA = 1e-5
N_DRAWS = 100
# Draws for each number of simulated rows.
N_COVERED = {500: 1000, 2000: 1000, 20_000: 500}
COVERED = (0.1, 0.5, 1.0)
SHARES = (0.02, 0.1, 0.5)
STRETCHES = {"right scores": 1.0, "overconfident scores": 1.5}
SEPARATION = 1.5
N_BINS = 20
CLASSES = np.array([0, 1])
KEPT = WORK / "private_metrics.jsonl"
AGES = {4: "under 40", 6: "40 to 59", 8: "60 to 79", 10: "80 and over"}
# Values of subgroups, from the documentation of the data.
VALUES = {"sex": ["Female", "Male"], "protocol_type": ["icmp", "tcp", "udp"]}


class GivenScores(ClassifierMixin, BaseEstimator):
    """Fitted model of two classes, whose rows are its scores."""

    n_features_in_ = 1
    classes_ = CLASSES
    _keeps_rows_apart = ()

    def __sklearn_is_fitted__(self):
        return True

    def predict_proba(self, X):
        """Return the scores."""
        return np.column_stack([1 - X[:, 0], X[:, 0]])

    def predict(self, X):
        """Predict by a threshold of one half."""
        return (X[:, 0] > 0.5).astype(int)


class Population:
    """Scores of two classes whose log-odds are normal, of equal variance."""

    def __init__(self, share, stretch):
        self.share, self.stretch = share, stretch
        points = np.linspace(-8, 12, 40_001)
        own = norm.pdf(points, SEPARATION)
        others = norm.pdf(points)
        self.own = share * own / own.sum()
        self.others = (1 - share) * others / others.sum()
        log_odds = self.log_odds(points)
        self.scores = expit(stretch * log_odds)
        found = log_odds > 0
        sensitivity = self.own[found].sum() / share
        specificity = self.others[~found].sum() / (1 - share)
        right = share * sensitivity + (1 - share) * specificity
        predicted = (self.own + self.others)[found].sum()
        squared = self.own * (1 - self.scores) ** 2 + self.others * self.scores**2
        self.metrics = {
            "roc_auc": norm.cdf(SEPARATION / np.sqrt(2)),
            "accuracy": right,
            "balanced_accuracy": (sensitivity + specificity) / 2,
            "sensitivity": sensitivity,
            "specificity": specificity,
            "precision": self.own[found].sum() / predicted,
            "prevalence": share,
            "brier_score": squared.sum(),
        }

    def log_odds(self, points):
        """Return the right log-odds."""
        return logit(self.share) + SEPARATION * points - SEPARATION**2 / 2

    def calibration_error(self, edges):
        """Return the calibration error for bins."""
        places = np.digitize(self.scores, edges)
        both = self.own + self.others
        sizes, own, scores = (
            np.bincount(places, one, len(edges) + 1)
            for one in (both, self.own, both * self.scores)
        )
        return np.sqrt(np.sum((own - scores) ** 2 / np.where(sizes > 0, sizes, 1)))

    def draw(self, n_rows, rng):
        """Draw scores and labels."""
        y = (rng.random(n_rows) < self.share).astype(int)
        log_odds = self.log_odds(rng.normal(size=n_rows) + SEPARATION * y)
        return expit(self.stretch * log_odds), y


def coverage():
    """Measure how often intervals hold. Finished settings are kept in a file."""
    kept = {}
    if KEPT.exists():
        for line in KEPT.read_text().splitlines():
            row = json.loads(line)
            kept[_setting(row)] = row
    KEPT.parent.mkdir(exist_ok=True)
    rows = []
    for label, stretch in STRETCHES.items():
        for share in SHARES:
            for n_rows in N_COVERED:
                for epsilon in COVERED:
                    row = kept.get((label, share, n_rows, epsilon))
                    if row is None:
                        row = _coverage(label, stretch, share, n_rows, epsilon)
                        with KEPT.open("a") as file:
                            file.write(json.dumps(row) + "\n")
                    rows.append(row)
    return rows


def _setting(row):
    return tuple(row[name] for name in ("scores", "share", "n_rows", "epsilon"))


def _coverage(label, stretch, share, n_rows, epsilon):
    population = Population(share, stretch)
    seed = [round(100 * one) for one in (share, stretch, n_rows, epsilon)]
    rng = np.random.default_rng(seed)
    rows = read_rows(np.zeros((n_rows, 1)), np.zeros(n_rows), CLASSES, None, None, [])
    plan = plan_measurement(rows, 2, None, epsilon=epsilon, delta=DELTA)
    found, n_bins = {}, set()
    for _ in range(N_COVERED[n_rows]):
        scores, y = population.draw(n_rows, rng)
        metrics = released(scores, y, plan)
        truth = population.metrics | {
            "calibration_error": population.calibration_error(metrics.edges_[0])
        }
        n_bins.add(len(metrics.middles_[0]))
        for name, one in metrics.items():
            found.setdefault(name, []).append((*one, truth[name]))
    row = {
        "scores": label,
        "share": share,
        "n_rows": n_rows,
        "epsilon": epsilon,
        "n_draws": N_COVERED[n_rows],
        "n_bins": [min(n_bins), max(n_bins)],
        "metrics": {},
    }
    for name, values in found.items():
        value, low, high, truth = np.array(values).T
        row["metrics"][name] = {
            "truth": float(truth.mean()),
            "covered": float(np.mean((low <= truth + 1e-12) & (truth <= high + 1e-12))),
            "width": float(np.mean(high - low)),
            "unknown": float(np.mean(high - low >= 1)),
            # An interval that an end of the range cuts misses on one side only.
            "cut": float(np.mean((low <= 0) | (high >= 1))),
            "rmse": float(np.sqrt(np.nanmean((value - truth) ** 2))),
            "bias": float(np.nanmean(value - truth)),
        }
    print(*_setting(row))
    for name, one in row["metrics"].items():
        print(f"   {name:18}", {key: round(value, 4) for key, value in one.items()})
    sys.stdout.flush()
    return row


def released(scores, y, plan):
    """Release metrics of scores that are known."""
    rows = read_rows(scores[:, np.newaxis], y, CLASSES, None, None, [None])
    return plan.release(GivenScores(), rows, 0, None)


@dataclass(frozen=True)
class Case:
    """Scores of a model on measured rows, with labels and subgroups."""

    scores: np.ndarray
    y: np.ndarray
    subgroups: np.ndarray
    #: Declared values of subgroups; none if these are not measured.
    values: list[str]
    groups: np.ndarray | None

    def __getitem__(self, rows):
        groups = None if self.groups is None else self.groups[rows]
        subgroups = self.subgroups[rows]
        return Case(self.scores[rows], self.y[rows], subgroups, self.values, groups)


@cache
def case(name):
    """Score the evaluated rows of a data set by a logistic regression."""
    data = load(name)
    model = LogisticRegression(C=10, max_iter=2000).fit(data.X_train, data.y_train)
    scores = model.predict_proba(data.X_test)[:, 1]
    frame, groups = data.frame_test, None
    if name == "diabetes":
        subgroups, values = _age_bands(frame["age"]), [*AGES.values()]
        groups = data.groups_test
    else:
        column = {"adult": "sex", "kddcup99": "protocol_type"}[name]
        subgroups, values = frame[column].astype(str).to_numpy(), VALUES[column]
    return Case(scores, data.y_test, subgroups, values, groups)


def _age_bands(ages):
    decades = ages.astype(str).str.extract(r"\[(\d+)-")[0].astype(int).to_numpy() // 10
    ends = np.array([*AGES])
    return np.array([*AGES.values()])[np.searchsorted(ends, decades, side="right")]


def counted(of_case):
    """Return one row of each patient: the one that a release with this seed counts."""
    if of_case.groups is None:
        return of_case
    seed = np.random.RandomState(0).randint(MAX_SEED)
    return of_case[
        one_row_of_groups(*group_ids(of_case.groups, len(of_case.groups)), seed)
    ]


def measure(of_case, epsilon):
    """Release metrics once."""
    by_subgroup = {}
    if of_case.values:
        by_subgroup = {
            "subgroups": of_case.subgroups,
            "subgroup_values": of_case.values,
        }
    return private_metrics(
        GivenScores(),
        of_case.scores[:, np.newaxis],
        of_case.y,
        epsilon=epsilon,
        delta=DELTA,
        groups=of_case.groups,
        random_state=0,
        **by_subgroup,
    )


def true_metrics(scores, y, edges):
    """Compute metrics of rows without noise."""
    predicted = scores > 0.5
    with np.errstate(all="ignore"):
        sensitivity, specificity = predicted[y == 1].mean(), (~predicted[y == 0]).mean()
        precision = y[predicted].mean() if predicted.any() else np.nan
    return {
        "roc_auc": roc_auc_score(y, scores),
        "accuracy": (predicted == y).mean(),
        "balanced_accuracy": (sensitivity + specificity) / 2,
        "sensitivity": sensitivity,
        "specificity": specificity,
        "precision": precision,
        "prevalence": y.mean(),
        "brier_score": ((scores - y) ** 2).mean(),
        "calibration_error": calibration_error(scores, y, edges),
    }


def calibration_error(scores, y, edges):
    """Compute the calibration error for bins, less what sampling adds."""
    places, n_bins = np.digitize(scores, edges), len(edges) + 1
    sizes = np.maximum(np.bincount(places, minlength=n_bins), 1)
    excess = (np.bincount(places, y, n_bins) - np.bincount(places, scores, n_bins)) ** 2
    excess -= np.bincount(places, scores * (1 - scores), n_bins)
    return float(np.sqrt(max(np.sum(excess / sizes), 0) / len(y)))


def sampling_errors(scores, y, edges, n_draws=200):
    """Compute the standard deviation of metrics over samples of as many rows."""
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(n_draws):
        rows = rng.integers(0, len(y), len(y))
        if 0 < y[rows].sum() < len(y):
            drawn.append(true_metrics(scores[rows], y[rows], edges))
    return {name: float(np.nanstd([one[name] for one in drawn])) for name in drawn[0]}


def errors(of_case, epsilon, n_draws=N_DRAWS):
    """Compare releases with the true metrics of the same rows."""
    same = counted(of_case)
    releases = [measure(of_case, epsilon) for _ in range(n_draws)]
    truths = [true_metrics(same.scores, same.y, one.edges_[0]) for one in releases]
    first = releases[0]
    sampling = sampling_errors(same.scores, same.y, first.edges_[0])
    row = {
        "epsilon": epsilon,
        "n_rows": len(same.y),
        "share": float(same.y.mean()),
        "metrics": {},
        "subgroups": {},
    }
    for name in first:
        of_name = [one[name] for one in releases]
        differences = [
            one.value - true[name] for one, true in zip(of_name, truths, strict=True)
        ]
        row["metrics"][name] = {
            "true": float(truths[0][name]),
            "first": [*first[name]],
            "rmse": float(np.sqrt(np.nanmean(np.square(differences)))),
            "bias": float(np.nanmean(differences)),
            "width": float(
                np.mean([one[name].high - one[name].low for one in releases])
            ),
            "sampling": sampling[name],
        }
    for value in of_case.values:  # no row has another
        of_subgroup = first.by_subgroup[value]
        part = same[same.subgroups == value]
        true = true_metrics(part.scores, part.y, first.edges_[0])
        row["subgroups"][value] = {
            "n_rows": len(part.y),
            "metrics": {
                name: {"true": float(true[name]), "first": [*of_subgroup[name]]}
                for name in of_subgroup
            },
        }
    print(json.dumps(row, indent=1), flush=True)
    return row


def data_set(name):
    """Measure one data set at each epsilon."""
    return [errors(case(name), epsilon) for epsilon in EPSILONS]


def ten_thousand():
    """Return 10,000 rows of Diabetes, which stand for themselves."""
    first = case("diabetes")[:10_000]
    return Case(first.scores, first.y, np.full(10_000, "all"), [], None)


def target():
    """Measure 10,000 rows with about 11 % positive, at epsilon 0.5."""
    return [errors(ten_thousand(), 0.5)]


def by_histogram(counts):
    """Compute metrics from a noisy histogram of equal bins and labels, as is."""
    counts = np.maximum(counts, 0)
    middles = (np.arange(N_BINS) + 0.5) / N_BINS
    others, own = counts.T
    below = np.cumsum(others) - others
    total = counts.sum()
    sizes = np.maximum(counts.sum(axis=1), 1)
    excess = ((1 - middles) * own - middles * others) ** 2 / sizes
    above = middles > 0.5
    return {
        "roc_auc": np.sum(own * (below + others / 2)) / (own.sum() * others.sum()),
        "accuracy": (own[above].sum() + others[~above].sum()) / total,
        "calibration_error": np.sqrt(excess.sum() / total),
    }


def histogram(of_case):
    """Count rows by equal bins of scores and by label."""
    edges = np.arange(1, N_BINS) / N_BINS
    places = np.digitize(of_case.scores, edges)
    return np.bincount(2 * places + of_case.y, minlength=2 * N_BINS).reshape(-1, 2)


def auc_by_smooth_sensitivity(of_case, epsilon, rng):
    """Release the AUC alone, with Laplace noise of a smooth sensitivity.

    Boyd, Lantz, Page (2015), "Differential privacy for classifier evaluation", by
    Nissim, Raskhodnikova, Smith (2007). A replaced row is taken from the n rows of one
    label and added to the m of the other at worst, which changes the AUC by at most
    1 / n + 1 / (m + 1).
    """
    beta = epsilon / (2 * np.log(2 / DELTA))
    n_own = int(of_case.y.sum())
    few, many = sorted((n_own, len(of_case.y) - n_own))
    moved = np.arange(few)
    local = 1 / (few - moved) + 1 / (many + moved + 1)
    smooth = np.max(np.exp(-beta * moved) * np.minimum(local, 1))
    auc = roc_auc_score(of_case.y, of_case.scores)
    return np.clip(auc + rng.laplace(scale=2 * smooth / epsilon), 0, 1)


def others():
    """Compare with other releases of the same rows, at the same epsilon."""
    of_case, rng = ten_thousand(), np.random.default_rng(0)
    exact, edges = histogram(of_case), np.arange(1, N_BINS) / N_BINS
    truth = true_metrics(of_case.scores, of_case.y, edges)
    rows = []
    for epsilon in EPSILONS:
        releases = {
            # A replaced row moves two counts.
            "Laplace histogram": [
                by_histogram(exact + rng.laplace(scale=2 / epsilon, size=exact.shape))
                for _ in range(N_DRAWS)
            ],
            "AUC alone, smooth sensitivity": [
                {"roc_auc": auc_by_smooth_sensitivity(of_case, epsilon, rng)}
                for _ in range(N_DRAWS)
            ],
        }
        drawn = _of_diffprivlib(of_case, epsilon)
        if drawn is not None:
            releases["diffprivlib"] = list(map(by_histogram, drawn))
        for label, found in releases.items():
            rows.append({"release": label, "epsilon": epsilon} | _rmse(found, truth))
        own = errors(of_case, epsilon)["metrics"]
        rows.append(
            {"release": "private_metrics", "epsilon": epsilon}
            | {name: own[name]["rmse"] for name in truth}
        )
        print(rows[-len(releases) - 1 :], flush=True)
    return rows


def _rmse(found, truth):
    return {
        name: float(np.sqrt(np.mean([(one[name] - truth[name]) ** 2 for one in found])))
        for name in found[0]
    }


def _of_diffprivlib(of_case, epsilon):
    """Return noisy histograms of diffprivlib, None where it is not installed."""
    python = os.environ.get("DIFFPRIVLIB_PYTHON")
    if python is None:
        return None
    script = Path(__file__).parent / "peer_histogram.py"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        np.savez(path, scores=of_case.scores, y=of_case.y)
        options = ["--epsilon", str(epsilon), "--draws", str(N_DRAWS)]
        done = subprocess.run(
            [python, script, path, "--bins", str(N_BINS), *options],
            capture_output=True,
            check=True,
        )
    return np.array(json.loads(done.stdout))


def times():
    """Measure 100,000 rows, beside their prediction one by one."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000, 20))
    y = (X[:, 0] + rng.standard_normal(100_000) > 1).astype(int)
    model = LogisticRegression().fit(X[:1000], y[:1000])
    start = time.perf_counter()
    for row in range(len(X)):
        model.predict_proba(X[[row]])
        model.predict(X[[row]])
    of_prediction = time.perf_counter() - start
    start = time.perf_counter()
    metrics = private_metrics(model, X, y, epsilon=1.0)
    of_release = time.perf_counter() - start
    start = time.perf_counter()
    str(metrics)
    row = {
        "n_rows": len(X),
        "prediction": of_prediction,
        "release": of_release,
        "intervals": time.perf_counter() - start,
    }
    print(row, flush=True)
    return [row]


TABLES = {
    "coverage": coverage,
    "diabetes": lambda: data_set("diabetes"),
    "adult": lambda: data_set("adult"),
    "kddcup99": lambda: data_set("kddcup99"),
    "target": target,
    "others": others,
    "time": times,
}


def main():
    """Measure the named tables, or all."""
    warnings.simplefilter("ignore")
    for name in command(__doc__, TABLES).parse_args().tables:
        save("private_metrics", name, TABLES[name]())
