"""Exact cost of adaptive answers. Writes results/adaptive_cost.json.

cost        two classes: exact epsilon, a certified lower bound, and earlier bounds;
            times and memory
classes     three and more classes: the same
mechanisms  other mechanisms, with what one adversary reaches
noise       time of the search for noise at epsilon 1
accuracy    PATE with noise by the Renyi cost, and with noise by the exact cost

Teachers, shards and students are seeded; the noise is not. Times are processor times.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
import time
import tracemalloc
import warnings
from dataclasses import replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import gammaln, ndtr, ndtri

from benchmarks.learners.data import load
from benchmarks.learners.settings import N_TEACHERS, pate
from benchmarks.record import command, save, summary
from sklearn_pate.accounting import bounds, calibrate_noise
from sklearn_pate.accounting._calibrate import gdp_epsilon, gdp_mu
from sklearn_pate.accounting._profile import lower_hull
from sklearn_pate.accounting.plurality import _adaptive_answers
from sklearn_pate.accounting.plurality._adaptive_answers import (
    AnswerSteps,
    adaptive_profile,
    check_mu,
    gaussian_tests,
    plurality_tests,
    two_class_mu,
)
from sklearn_pate.mechanisms import (
    ConfidentGNMax,
    GNMax,
    GumbelMax,
    LNMax,
    PermuteAndFlip,
)

DELTA = 1e-5
SETTINGS = (
    *((40.0, k) for k in (10, 40, 100, 286, 1000, 2000)),
    (20.0, 100),
    (100.0, 1000),
    (200.0, 2000),
    (300.0, 15000),
)
CLASSES_SETTINGS = (
    *((40.0, k) for k in (10, 40, 100, 286, 1000)),
    (20.0, 100),
    (100.0, 1000),
    (200.0, 2000),
)
CLASSES = (3, 10, 100)
MECHANISMS = (
    (GumbelMax(0.05), 100, 10),
    (GumbelMax(0.02), 286, 10),
    (PermuteAndFlip(0.02), 100, 10),
    (LNMax(0.05), 100, 2),
    (LNMax(0.02), 286, 2),
    *(
        (ConfidentGNMax(200, 150.0, 40.0, max_answers=100), 1000, n_classes)
        for n_classes in (2, 10)
    ),
    (ConfidentGNMax(200, 100.0, 40.0, max_answers=50), 500, 2),
)
CALIBRATED = (
    GNMax(),
    ConfidentGNMax(),
    GumbelMax(),
    PermuteAndFlip(),
    LNMax(),
)
QUERIES = (100, 286, 1000, 2000)
# The lower bound is computed on so many grids, for at most so many answers.
OFFSETS = 4
MOST_ANSWERS = 2000
EPSILONS = (0.5, 1.0, 2.0)
SEEDS = range(5)
N_DRAWS = 10

# ------------------------------------------------------------------------------ cost


def cost():
    """Compare the exact epsilon with bounds from above and from below."""
    rows = []
    for sigma, n_answers in SETTINGS:
        curve = GNMax(sigma).cost(n_answers, 2).curve
        adaptive_profile.cache_clear()
        tracemalloc.start()
        start = time.process_time()
        profile = adaptive_profile(plurality_tests(sigma, 2), n_answers)
        seconds = time.process_time() - start
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        exact = profile.epsilon_at(DELTA)
        classical = (bounds.gaussian_worst_case(sigma) * n_answers).to_epsilon(DELTA)
        rows.append(
            {
                "sigma": sigma,
                "n_answers": n_answers,
                "delta": DELTA,
                "exact": exact,
                "lower": (
                    lower_bound(two_class_mu(sigma), n_answers, exact)
                    if n_answers <= MOST_ANSWERS
                    else None
                ),
                "renyi": curve.to_epsilon(DELTA),
                "histogram": gdp_epsilon(gdp_mu(sigma, 2.0 * n_answers), DELTA),
                "classical": classical,
                "best_guess": profile.attack_accuracy(),
                "detected_at_a_tenth": profile.detection_rate(0.1),
                "seconds": seconds,
                "calibration_seconds": calibrated(GNMax(), n_answers, 2, exact)[1],
                "peak_megabytes": peak / 1e6,
            }
        )
        print(rows[-1], flush=True)
    save("adaptive_cost", "cost", rows)


def classes():
    """Compare the exact epsilon of three and more classes with bounds."""
    rows = []
    for sigma, n_answers in CLASSES_SETTINGS:
        adaptive_profile.cache_clear()
        _adaptive_answers._tests_of_three_outcomes.cache_clear()
        start = time.process_time()
        tests = plurality_tests(sigma, 3)
        exact = adaptive_profile(tests, n_answers).epsilon_at(DELTA)
        seconds = time.process_time() - start
        two = adaptive_profile(plurality_tests(sigma, 2), n_answers).epsilon_at(DELTA)
        lower = lower_bound(two_class_mu(sigma), n_answers, exact)
        stated = [GNMax(sigma).cost(n_answers, k).epsilon(DELTA) for k in CLASSES]
        renyi = [
            GNMax(sigma).cost(n_answers, k).curve.to_epsilon(DELTA) for k in CLASSES
        ]
        assert max(stated) - min(stated) < 1e-12 > max(renyi) - min(renyi)
        rows.append(
            {
                "sigma": sigma,
                "n_answers": n_answers,
                "n_classes": list(CLASSES),
                "delta": DELTA,
                "exact": stated[0],
                "two_classes": two,
                "lower": lower,
                "renyi": renyi[0],
                "tests_of_three_outcomes": int(np.all(tests.weights > 0, axis=1).sum()),
                "seconds": seconds,
                "calibration_seconds": calibrated(GNMax(), n_answers, 3, exact)[1],
            }
        )
        print(rows[-1], flush=True)
    save("adaptive_cost", "classes", rows)


def mechanisms():
    """Compare the exact epsilon of other mechanisms with what an adversary reaches."""
    rows = []
    for mechanism, n_queries, n_classes in MECHANISMS:
        adaptive_profile.cache_clear()
        start = time.process_time()
        exact = mechanism.cost(n_queries, n_classes).epsilon(DELTA)
        seconds = time.process_time() - start
        checked = isinstance(mechanism, ConfidentGNMax)
        reached = best_fixed_order if checked else same_tie
        rows.append(
            {
                "mechanism": mechanism.in_one_line(),
                "n_queries": n_queries,
                "n_classes": n_classes,
                "delta": DELTA,
                "exact": exact,
                "reached": reached(mechanism, n_queries),
                "renyi": mechanism.cost(n_queries, n_classes).curve.to_epsilon(DELTA),
                "seconds": seconds,
            }
        )
        print(rows[-1], flush=True)
    save("adaptive_cost", "mechanisms", rows)


def same_tie(mechanism, n_queries):
    """Return the epsilon of the same votes in every answer, a certified lower bound.

    Two classes nearly tie: the numbers of answers are binomial.
    """
    n = np.arange(n_queries + 1)
    log_n = gammaln(n_queries + 1) - gammaln(n + 1) - gammaln(n_queries - n + 1)
    best = 0.0
    for lead in range(3):
        counts = np.array([[1000 + lead, 1000], [999 + lead, 1001]])
        log_p, log_q = (
            log_n + n * law[0] + (n_queries - n) * law[1]
            for law in (mechanism._log_law(one[np.newaxis])[0] for one in counts)
        )
        for first, second in ((log_p, log_q), (log_q, log_p)):
            best = max(best, _epsilon_of(first, second))
    return best


def _epsilon_of(log_p, log_q):
    low, high = 0.0, 50.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        delta = np.sum(np.maximum(np.exp(log_p) - np.exp(middle + log_q), 0))
        low, high = (middle, high) if delta > DELTA else (low, middle)
    return low


def best_fixed_order(mechanism, n_queries):
    """Return the largest epsilon of three orders of checks and answers.

    Each is rounded up, by less than .2 %, so that it is nearly what an adversary with
    that order reaches.
    """
    checks = gaussian_tests(check_mu(mechanism.sigma_threshold))
    answers = plurality_tests(mechanism.sigma, 2)
    n_answers = mechanism.answer_cap(n_queries)
    every = n_queries // n_answers
    kinds = [AnswerSteps.of(replace(one, tie=checks.tie)) for one in (checks, answers)]
    step = kinds[0].step
    orders = (
        [0] * n_queries + [1] * n_answers,
        [1] * n_answers + [0] * n_queries,
        ([0] * every + [1]) * n_answers,
    )
    n_points = int(4 / step)
    found = []
    for order in orders:
        deltas = np.zeros(n_points)
        for kind in order:
            deltas = kinds[kind].after_one(deltas, None)
        found.append(lower_hull(step * np.arange(n_points), deltas).epsilon_at(DELTA))
    return max(found)


def noise():
    """Measure how long noise is searched for, by mechanism, queries and classes."""
    rows = []
    for mechanism in CALIBRATED:
        for n_classes in (2, *CLASSES):
            for n_queries in QUERIES:
                found, seconds = calibrated(mechanism, n_queries, n_classes, 1.0)
                rows.append(
                    {
                        "mechanism": type(mechanism).__name__,
                        "n_queries": n_queries,
                        "n_classes": n_classes,
                        "noise": getattr(found, found.noise_parameters[-1]),
                        "seconds": seconds,
                        "again": calibrated(
                            mechanism, n_queries, n_classes, 1.0, cold=False
                        )[1],
                    }
                )
                print(rows[-1], flush=True)
    save("adaptive_cost", "noise", rows)


def calibrated(mechanism, n_queries, n_classes, epsilon, *, cold=True):
    """Return a mechanism with noise for epsilon, and the seconds of the search."""
    if cold:
        for module in list(sys.modules.values()):
            if module.__name__.startswith("sklearn_pate.accounting"):
                for value in vars(module).values():
                    if hasattr(value, "cache_clear"):
                        value.cache_clear()
    start = time.process_time()
    found = mechanism.prepared(
        n_teachers=N_TEACHERS,
        n_queries=n_queries,
        n_classes=n_classes,
        epsilon=epsilon,
        delta=DELTA,
    )
    return found, time.process_time() - start


def lower_bound(mu, n_answers, upper):
    """Return the epsilon of an adversary whose log-ratios are multiples of a step.

    Its tests are inside the curve q = Phi(Phi^-1(p) - mu), and W of the recursion is
    needed at points of the grid only, so that nothing is interpolated.
    """
    steps_of_tie = 48 if n_answers <= 300 else 16
    step = np.log(ndtr(mu / 2) / ndtr(-mu / 2)) / steps_of_tie * (1 - 1e-12)
    # ln(q/p) = -fall and ln((1-q)/(1-p)) = rise, in steps.
    fall, rise = np.meshgrid(*2 * [np.arange(1, 6 * steps_of_tie)], indexing="ij")
    p = np.expm1(rise * step) / (np.exp(rise * step) - np.exp(-fall * step))
    q = p * np.exp(-fall * step)
    inside = q >= ndtr(ndtri(p) - mu)
    # Of tests with equal falls, the one with the largest rise is the most useful.
    rise = np.where(inside, rise, 0).max(axis=1)
    fall, rise = fall[rise > 0, 0], rise[rise > 0]
    p = np.expm1(rise * step) / (np.exp(rise * step) - np.exp(-fall * step))
    # Mirror images (1 - q, 1 - p) as well.
    fall, rise, p = (
        np.concatenate(pair)
        for pair in ((fall, rise), (rise, fall), (p, 1 - p * np.exp(-fall * step)))
    )
    reach = int(max(fall.max(), rise.max()))
    half = int(1.3 * upper / step) + 2
    best = 0.0
    for offset in np.arange(OFFSETS) / OFFSETS:
        u = step * (np.arange(-half - reach, half + reach + 1) + offset)
        # Beyond the grid 1 - e^u and 0 are valid for any number of answers.
        w = np.maximum(-np.expm1(u), 0.0)
        for _ in range(n_answers):
            shifted = sliding_window_view(w, 2 * half + 1)
            values = p[:, None] * shifted[reach - fall]
            values += (1 - p)[:, None] * shifted[reach + rise]
            w[reach:-reach] = values.max(axis=0)
        best = max(best, u[np.flatnonzero(w > DELTA)[-1]])
    return float(best)


# -------------------------------------------------------------------------- accuracy


def accuracy():
    """Answer the same plain votes with the noise of both costs."""
    rows = []
    for name in ("adult", "kddcup99"):
        for epsilon in EPSILONS:
            scores = {"renyi": [], "exact": []}
            for seed in SEEDS:
                data = load(name)
                sigma = _sigmas(data, epsilon, seed)
                for accountant, values in scores.items():
                    values += [
                        _accuracy(data, sigma[accountant], seed) for _ in range(N_DRAWS)
                    ]
            for accountant, values in scores.items():
                rows.append(
                    {
                        "data": name,
                        "epsilon": epsilon,
                        "cost": accountant,
                        "sigma": sigma[accountant],
                        "accuracy": summary(values),
                    }
                )
                print(rows[-1] | {"accuracy": np.mean(values)}, flush=True)
    save("adaptive_cost", "accuracy", rows, seeds=[*SEEDS], draws=N_DRAWS)


def _accuracy(data, sigma, seed):
    fitted = pate(data, None, seed, mechanism=GNMax(sigma), vote="plain")
    return fitted.score(data.frame_test, data.y_test)


def _sigmas(data, epsilon, seed):
    """Return the noise of an epsilon by both costs."""
    fitted = pate(data, epsilon, seed, vote="plain")

    def curve(sigma, orders):
        n_queries = fitted.privacy_spent_.n_queries
        return GNMax(sigma).cost(n_queries, len(fitted.classes_), orders=orders).curve

    return {
        "renyi": calibrate_noise(curve, epsilon=epsilon, delta=DELTA),
        "exact": fitted.mechanism_.sigma,
    }


def main():
    """Measure the named tables, or all."""
    warnings.simplefilter("ignore")
    parts = {
        "cost": cost,
        "classes": classes,
        "mechanisms": mechanisms,
        "noise": noise,
        "accuracy": accuracy,
    }
    for part in command(__doc__, parts).parse_args().tables:
        parts[part]()
