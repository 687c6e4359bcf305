"""Exact cost of adaptive answers on two classes. Writes results/adaptive_cost.json.

cost       exact epsilon, a certified lower bound, and earlier bounds; times and memory
accuracy   PATE with noise by the Renyi cost, and with noise by the exact cost

Run one of them with ``python benchmarks/adaptive_cost.py cost``, both without a name.
Teachers, shards and students are seeded; the noise is not. Times are processor times.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
import time
import tracemalloc
import warnings

import numpy as np
from learner_data import load
from learners import N_TEACHERS, pate
from numpy.lib.stride_tricks import sliding_window_view
from record import save, summary
from scipy.special import ndtr, ndtri

from sklearn_pate.accounting import bounds, calibrate_noise
from sklearn_pate.accounting._gdp import gdp_epsilon, gdp_mu
from sklearn_pate.accounting.plurality._adaptive_answers import (
    adaptive_profile,
    two_class_mu,
)
from sklearn_pate.mechanisms import GNMax

DELTA = 1e-5
SETTINGS = (
    *((40.0, k) for k in (10, 40, 100, 286, 1000, 2000)),
    (20.0, 100),
    (100.0, 1000),
    (200.0, 2000),
    (300.0, 15000),
)
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
        curve = GNMax(sigma).account_curve(n_answers, 2)
        adaptive_profile.cache_clear()
        tracemalloc.start()
        start = time.process_time()
        profile = adaptive_profile(two_class_mu(sigma), n_answers)
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
                "calibration_seconds": _calibration_seconds(n_answers, exact),
                "peak_megabytes": peak / 1e6,
            }
        )
        print(rows[-1], flush=True)
    save("adaptive_cost", {"cost": rows})


def _calibration_seconds(n_answers, epsilon):
    adaptive_profile.cache_clear()
    start = time.process_time()
    GNMax().prepared(
        n_teachers=N_TEACHERS,
        n_queries=n_answers,
        n_classes=2,
        epsilon=epsilon,
        delta=DELTA,
    )
    return time.process_time() - start


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
    """Answer the same votes with the noise of both costs."""
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
    save("adaptive_cost", {"accuracy": rows}, seeds=[*SEEDS], draws=N_DRAWS)


def _accuracy(data, sigma, seed):
    fitted = pate(data, None, seed, mechanism=GNMax(sigma))
    return fitted.score(data.frame_test, data.y_test)


def _sigmas(data, epsilon, seed):
    """Return the noise of an epsilon by both costs."""
    fitted = pate(data, epsilon, seed)

    def curve(sigma, orders):
        return GNMax(sigma).account_curve(
            fitted.privacy_spent_.n_queries, len(fitted.classes_), orders
        )

    return {
        "renyi": calibrate_noise(curve, epsilon=epsilon, delta=DELTA),
        "exact": fitted.mechanism_.sigma,
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parts = {"cost": cost, "accuracy": accuracy}
    for part in sys.argv[1:] or parts:
        parts[part]()
