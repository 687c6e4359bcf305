"""Privacy costs of answers, and computing times. Writes results/accounting.json.

published_votes     epsilons of the vote counts that the 2018 paper published
default_mechanism   mechanisms at equal agreement with the plurality
worst_case          tight and classical worst case of GNMax
speed               time and peak memory

All but `worst_case` read the folder ``pate2018_votes`` of SKLEARN_PATE_DATA.

Times are processor times on one core. They still depend somewhat on other load: run
`speed` on an idle machine. Each of its rows is one call in a new process, the best of
three processes, or of one if the call took more than ten seconds.

Two other libraries have no equal analysis. dp-accounting has no analysis of PATE that
depends on the votes: its row is the data-independent accountant on the same number of
Gaussian answers. autodp has Theorem 6 for one query at one order only, and is omitted.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import importlib.metadata
import json
import math
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from benchmarks.record import command, save, summary
from sklearn_pate.accounting import DEFAULT_ORDERS, bounds, local_cost
from sklearn_pate.accounting.plurality._exact import (
    GaussianPlurality,
    GumbelPlurality,
    LaplacePlurality,
    PermuteAndFlipPlurality,
    log_losing,
)
from sklearn_pate.mechanisms import (
    ConfidentGNMax,
    GNMax,
    GumbelMax,
    LNMax,
    PermuteAndFlip,
)

N_TEACHERS = 250
DELTA = 1e-5
N_RELEASES = 20
DATA_SETS = ("MNIST", "SVHN", "Adult")


def published(data):
    """Read vote counts of 250 teachers, as the 2018 paper published them."""
    folder = Path(os.environ.get("SKLEARN_PATE_DATA", ".")) / "pate2018_votes"
    path = folder / f"{data.lower()}_250_teachers.npy"
    if not path.exists():
        raise SystemExit(
            f"{path} is missing: the 2018 paper published these vote counts with its "
            "code; SKLEARN_PATE_DATA names the folder of pate2018_votes."
        )
    return np.load(path)


# ------------------------------------------------------------------- published votes

# Data, gamma, queries, delta and the epsilon printed in the 2017 paper. Its text states
# scale 20, gamma 0.05, for SVHN too, but its figures are those of gamma 0.1.
PAPER_2017 = (
    ("SVHN", 0.1, 500, 1e-6, 5.04),
    ("SVHN", 0.1, 1000, 1e-6, 8.19),
    ("SVHN", 0.05, 500, 1e-6, None),
    ("SVHN", 0.05, 1000, 1e-6, None),
    ("MNIST", 0.05, 100, 1e-5, 2.04),
    ("MNIST", 0.05, 1000, 1e-5, 8.03),
    ("Adult", 0.05, 500, 1e-5, 2.66),
)
# Data, threshold and both scales of noise, queries, delta, the epsilon printed in the
# 2018 paper, and its number of answers.
PAPER_2018 = (
    ("MNIST", (200, 150.0, 40.0), 640, 1e-5, 1.97, 286),
    ("Adult", (300, 200.0, 40.0), 1500, 1e-5, 1.68, 524),
    ("SVHN", (300, 200.0, 40.0), 8500, 1e-6, 4.96, None),
)


def published_votes():
    """Compute all epsilons of the papers' queries."""
    rows = []
    for data, gamma, n_queries, delta, printed in PAPER_2017:
        counts = published(data)[:n_queries]
        row = {
            "paper": 2017,
            "data": data,
            "gamma": gamma,
            "printed": printed,
            "strong_composition": bounds.laplace_2017_strong_composition(
                n_queries, gamma, delta
            ),
            "classical": (bounds.laplace_worst_case(gamma) * n_queries).to_epsilon(
                delta
            ),
        }
        rows.append(row | all_epsilons(LNMax(gamma), counts, delta))
        print(json.dumps(rows[-1]), flush=True)
    for data, parameters, n_queries, delta, printed, n_answers in PAPER_2018:
        counts = published(data)[:n_queries]
        threshold, sigma_threshold, sigma = parameters
        checks = bounds.threshold_worst_case(sigma_threshold) * n_queries
        answer = bounds.gaussian_worst_case(sigma)
        row = {
            "paper": 2018,
            "data": data,
            "threshold": threshold,
            "sigma_threshold": sigma_threshold,
            "sigma": sigma,
            "printed": printed,
            "max_answers": n_answers,
            "classical": (checks + answer * n_queries).to_epsilon(delta),
        }
        mechanism = ConfidentGNMax(*parameters)
        if n_answers is not None:
            capped = ConfidentGNMax(*parameters, max_answers=n_answers)
            row |= {
                "tight_capped": capped.cost(n_queries, counts.shape[1]).epsilon(delta),
                "classical_capped": (checks + answer * n_answers).to_epsilon(delta),
            }
        rows.append(row | all_epsilons(mechanism, counts, delta))
        print(json.dumps(rows[-1]), flush=True)
    return rows


def all_epsilons(mechanism, counts, delta):
    """Return the worst-case, exact, sanitised and published epsilons of a mechanism.

    Several sanitised releases are drawn, which a single release's guarantee does not
    cover; these votes are public.
    """
    n_queries, n_classes = counts.shape
    start = time.process_time()
    exact = mechanism.local_curve(counts).to_epsilon(delta)
    seconds = time.process_time() - start
    releases = [
        mechanism.sanitized_cost(counts, n_teachers=N_TEACHERS, delta=delta).epsilon
        for _ in range(N_RELEASES)
    ]
    one_sided = {"direction": "forward"}
    return {
        "n_queries": n_queries,
        "n_classes": n_classes,
        "delta": delta,
        "reproduced": mechanism.paper_epsilon(counts, delta),
        "optimal_forward": mechanism.optimal_curve(counts, **one_sided).to_epsilon(
            delta
        ),
        "optimal": mechanism.optimal_curve(counts).to_epsilon(delta),
        "exact_forward": mechanism.local_curve(counts, **one_sided).to_epsilon(delta),
        "exact": exact,
        "exact_seconds": seconds,
        "sanitized": summary(releases),
        "tight": mechanism.cost(n_queries, n_classes).epsilon(delta),
    }


# ----------------------------------------------------------------- default mechanism

# Mechanisms as functions of the scale in votes.
NOISES = {
    "GNMax": lambda scale: GNMax(scale),
    "LNMax": lambda scale: LNMax(1 / scale),
    "GumbelMax": lambda scale: GumbelMax(1 / scale),
    "PermuteAndFlip": lambda scale: PermuteAndFlip(1 / scale),
}
AGREEMENTS = (0.9, 0.95, 0.98)
# Noise below the first scale changes ties only.
SCALES = (0.25, 10_000.0)


def default_mechanism():
    """Compute the cost of 1000 answers at equal agreement with the plurality.

    ConfidentGNMax is omitted, as it answers fewer queries.
    """
    rows = []
    for data in DATA_SETS:
        counts = published(data)[:1000]
        for agreement in AGREEMENTS:
            for name, noise in NOISES.items():
                scale = scale_for(noise, counts, agreement)
                row = {
                    "data": data,
                    "agreement": agreement,
                    "mechanism": name,
                    "scale": scale,
                    "n_queries": len(counts),
                    "n_classes": counts.shape[1],
                    "delta": DELTA,
                }
                if scale is not None:
                    mechanism = noise(scale)
                    row |= {
                        "worst_case": mechanism.cost(*counts.shape).epsilon(DELTA),
                        "exact": mechanism.local_curve(counts).to_epsilon(DELTA),
                    }
                rows.append(row)
                print(json.dumps(row), flush=True)
    return rows


def scale_for(noise, counts, agreement):
    """Find the scale with this agreement with the plurality, or return None."""

    def excess(log_scale):
        plurality = noise(math.exp(log_scale))._plurality()
        return -np.mean(np.expm1(log_losing(plurality, counts))) - agreement

    low, high = np.log(SCALES)
    if excess(low) < 0:
        return None
    return float(np.exp(brentq(excess, low, high, xtol=1e-5)))


# ------------------------------------------------------------------------ worst case


def worst_case():
    """Compute tight and classical worst cases of GNMax answers on ten classes."""
    rows = []
    for sigma in (40.0, 100.0):
        for n_answers in (40, 100, 286, 500, 1000):
            tight = GNMax(sigma).cost(n_answers, 10).curve.to_epsilon(DELTA)
            curve = bounds.gaussian_worst_case(sigma) * n_answers
            classical = curve.to_epsilon(DELTA)
            # All noisy counts together: two of them are shifted by 1 each.
            mu = math.sqrt(2 * n_answers) / sigma
            histogram = brentq(_excess_delta, 0, classical, args=(mu,))
            rows.append(
                {
                    "sigma": sigma,
                    "n_answers": n_answers,
                    "delta": DELTA,
                    "tight": tight,
                    "histogram": histogram,
                    "classical": classical,
                    "ratio": tight / classical,
                }
            )
    return rows


def _excess_delta(epsilon, mu):
    """Subtract DELTA from the exact delta of mu-Gaussian differential privacy."""
    above, below = ndtr(mu / 2 - epsilon / mu), ndtr(-mu / 2 - epsilon / mu)
    return above - math.exp(epsilon) * below - DELTA


# ----------------------------------------------------------------------------- speed

SIGMA = 40.0
N_RUNS = 3
LONG = 10  # seconds after which one run is enough
PLURALITIES = {
    "Gaussian": GaussianPlurality(SIGMA),
    "Gumbel": GumbelPlurality(0.05),
    "Laplace": LaplacePlurality(0.05),
    "permute-and-flip": PermuteAndFlipPlurality(0.05),
}


def some_orders(n_orders):
    """Choose orders evenly from the default ones."""
    return DEFAULT_ORDERS[np.linspace(0, DEFAULT_ORDERS.size - 1, n_orders).astype(int)]


def votes(kind, n_queries, n_classes):
    """Draw vote counts: "random", "distinct", or "repeated" from the published votes.

    Random votes agree less than published ones, so that their exact cost takes longer.
    """
    rng = np.random.default_rng(0)
    if kind == "repeated":
        rows = np.concatenate([published("MNIST"), published("SVHN")])
        return rows[rng.integers(len(rows), size=n_queries)]
    n_teachers = max(N_TEACHERS, 5 * n_classes)
    shares = rng.dirichlet(np.full(n_classes, 0.3), n_queries + n_queries // 10)
    drawn = rng.multinomial(n_teachers, shares)
    if kind == "distinct":
        drawn = rng.permutation(np.unique(drawn, axis=0))
    return drawn[:n_queries].astype(np.float64)


def plain_loop(counts, sigma, orders):
    """Sum Theorem 6 of Papernot et al. 2018, query by query."""
    total = np.zeros(orders.size)
    for row in counts:
        total += theorem_6(row, sigma, orders)
    return total


def theorem_6(counts, sigma, orders):
    """Bound one query's cost by Theorem 6, with Propositions 7 and 10."""
    worst_case = orders / sigma**2
    plurality = counts.argmax()
    gaps = counts[plurality] - np.delete(counts, plurality)
    log_tails = log_ndtr(-gaps / (math.sqrt(2) * sigma))
    largest = log_tails.max()
    log_q = largest + math.log(np.exp(log_tails - largest).sum())
    log_q = min(log_q, math.log1p(-1 / counts.size))
    mu_2 = sigma * math.sqrt(-log_q)
    mu_1 = mu_2 + 1
    e_1, e_2 = mu_1 / sigma**2, mu_2 / sigma**2
    if mu_2 <= 1 or -log_q <= e_2:
        return worst_case
    if log_q > (mu_2 - 1) * e_2 - mu_2 * (
        math.log1p(1 / (mu_1 - 1)) + math.log1p(1 / (mu_2 - 1))
    ):
        return worst_case
    log_1_q = math.log1p(-math.exp(log_q))
    log_a = log_1_q - math.log1p(-math.exp((log_q + e_2) * (1 - 1 / mu_2)))
    log_b = e_1 - log_q / (mu_1 - 1)
    bound = np.logaddexp(
        log_1_q + (orders - 1) * log_a, log_q + (orders - 1) * log_b
    ) / (orders - 1)
    bound = np.where(orders <= mu_1, np.maximum(bound, 0), np.inf)
    return np.minimum(bound, worst_case)


def dp_accountant(n_answers, orders):
    """Compose GNMax answers independently of the votes by dp-accounting."""
    import dp_accounting

    accountant = dp_accounting.rdp.RdpAccountant(orders)
    # Two counts move by one each: the noise multiplier is sigma over sqrt(2).
    answer = dp_accounting.GaussianDpEvent(SIGMA / math.sqrt(2))
    accountant.compose(answer, n_answers)
    return accountant.get_epsilon(DELTA)


def task(computation, kind, n_queries, n_classes, n_orders):
    """Return a call to be measured, with prepared input."""
    orders = some_orders(n_orders)
    if computation == "dp-accounting":
        import dp_accounting  # noqa: F401 # the import is not measured

        return lambda: dp_accountant(n_queries, orders)
    if computation == "calibration":
        public = {"n_teachers": N_TEACHERS, "n_queries": n_queries}
        return lambda: GNMax().prepared(
            n_classes=n_classes, epsilon=1.0, delta=DELTA, **public
        )
    if computation == "tight worst case":
        return lambda: GNMax(SIGMA).cost(n_queries, n_classes).curve
    counts = votes(kind, n_queries, n_classes)
    if computation == "Theorem 6":
        return lambda: bounds.gaussian_2018(counts, SIGMA, orders)
    if computation == "Theorem 6, plain loop":
        return lambda: plain_loop(counts, SIGMA, orders)
    plurality = PLURALITIES[computation.removeprefix("exact, ")]
    return lambda: local_cost(plurality, counts, orders)


def peak_mebibytes():
    """Return the peak memory of this process (Linux)."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


def measure_here(arguments):
    """Run one task in this process and print its time and memory."""
    call = task(*arguments)
    before = peak_mebibytes()
    start = time.process_time()
    call()
    seconds = time.process_time() - start
    found = {
        "seconds": seconds,
        "peak_mebibytes": peak_mebibytes(),
        "peak_before_mebibytes": before,
    }
    if seconds < LONG:
        start = time.process_time()
        call()
        found["seconds_again"] = time.process_time() - start
    print(json.dumps(found))


def measured(*arguments):
    """Run one task in new processes, and keep the minimum of each figure."""
    script = [sys.executable, "-m", "benchmarks", "accounting"]
    line = [*script, "--measured", json.dumps(arguments)]
    runs = []
    while len(runs) < N_RUNS and (not runs or runs[-1]["seconds"] < LONG):
        run = subprocess.run(line, stdout=subprocess.PIPE, check=True)
        runs.append(json.loads(run.stdout))
    names = ("computation", "votes", "n_queries", "n_classes", "n_orders")
    row = dict(zip(names, arguments, strict=True)) | {"n_runs": len(runs)}
    row |= {name: min(run[name] for run in runs) for name in runs[0]}
    print(json.dumps(row), flush=True)
    return row


def speed_tasks():
    """List the tasks: computation, votes, queries, classes and orders."""
    sizes = [10**k for k in range(2, 7)]
    tasks = []
    for name in ("Theorem 6", "Theorem 6, plain loop"):
        tasks += [(name, "repeated", n, 10, 100) for n in sizes]
        tasks += [(name, "distinct", 100_000, 10, 100)]
        tasks += [(name, "repeated", 10_000, 10, n) for n in (40, 385)]
        tasks += [(name, "random", 10_000, k, 100) for k in (2, 10, 100, 1000)]
    tasks += [("dp-accounting", None, n, 10, 100) for n in sizes]
    tasks += [("dp-accounting", None, 10_000, 10, n) for n in (40, 385)]
    gaussian = "exact, Gaussian"
    tasks += [(gaussian, "repeated", n, 10, 40) for n in sizes]
    tasks += [(gaussian, "random", 1000, k, 40) for k in (2, 10, 100)]
    tasks += [(gaussian, "distinct", 1000, 10, n) for n in (100, 385)]
    tasks += [("calibration", None, 1000, k, DEFAULT_ORDERS.size) for k in (2, 10)]
    tasks += [("tight worst case", None, 1000, k, DEFAULT_ORDERS.size) for k in (2, 10)]
    tasks += [(f"exact, {noise}", "distinct", 10_000, 10, 40) for noise in PLURALITIES]
    tasks += [(f"exact, {noise}", "distinct", 1000, 1000, 40) for noise in PLURALITIES]
    return tasks


def speed():
    """Measure time and peak memory, after a check that both loops agree."""
    counts, orders = votes("distinct", 1000, 10), some_orders(100)
    np.testing.assert_allclose(
        plain_loop(counts, SIGMA, orders),
        bounds.gaussian_2018(counts, SIGMA, orders).values,
        rtol=1e-9,
    )
    return [measured(*arguments) for arguments in speed_tasks()]


TABLES = {
    "published_votes": published_votes,
    "default_mechanism": default_mechanism,
    "worst_case": worst_case,
    "speed": speed,
}


def main():
    """Measure the named tables, or all."""
    if sys.argv[1:2] == ["--measured"]:
        measure_here(json.loads(sys.argv[2]))
        return
    for name in command(__doc__, TABLES).parse_args().tables:
        facts = {}
        if name == "speed":
            facts = {
                "seeds": [0],
                "dp_accounting": importlib.metadata.version("dp-accounting"),
            }
        save("accounting", name, TABLES[name](), **facts)
