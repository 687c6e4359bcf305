"""What answers cost by each account, and how fast it is computed.

published_votes     the vote counts that the 2018 paper published, by every account
default_mechanism   the noises at equal agreement with the plurality
worst_case          the tight worst case of GNMax beside the classical one
speed               seconds and peak memory

Run one of them with ``python benchmarks/accounting.py speed``, all of them without a
name; results go to results/accounting.json. All but `worst_case` read the folder
``pate2018_votes`` of SKLEARN_PATE_DATA.

Seconds are processor time on one core, on which a busy machine tells less than on time
by the clock, but does tell: leave the machine alone for `speed`. Each of its rows is
one call in a fresh process, the best of three such processes, or of one where that took
more than ten seconds.

Two peers are short of what is measured here. dp-accounting has no analysis of PATE that
depends on the votes: its row is its data-independent accountant on as many Gaussian
answers. autodp, which has Theorem 6 for one query at one order, is not installed
with the tests, and left out.
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
from record import save, summary
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from sklearn_pate.accounting import DEFAULT_ORDERS, bounds, local_cost
from sklearn_pate.accounting.plurality._exact import log_losing
from sklearn_pate.accounting.plurality._noisy_counts import (
    GaussianPlurality,
    LaplacePlurality,
)
from sklearn_pate.accounting.plurality._outcomes import (
    GumbelPlurality,
    PermuteAndFlipPlurality,
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
    return np.load(folder / f"{data.lower()}_250_teachers.npy")


# ------------------------------------------------------------------- published votes

# Data, gamma, queries, delta and what the 2017 paper prints. Its text says scale 20,
# gamma 0.05, of SVHN, too, but its figures are those of gamma 0.1.
PAPER_2017 = (
    ("SVHN", 0.1, 500, 1e-6, 5.04),
    ("SVHN", 0.1, 1000, 1e-6, 8.19),
    ("SVHN", 0.05, 500, 1e-6, None),
    ("SVHN", 0.05, 1000, 1e-6, None),
    ("MNIST", 0.05, 100, 1e-5, 2.04),
    ("MNIST", 0.05, 1000, 1e-5, 8.03),
    ("Adult", 0.05, 500, 1e-5, 2.66),
)
# Data, threshold and both noises, queries, delta, what the 2018 paper prints, and
# how many answers it gave.
PAPER_2018 = (
    ("MNIST", (200, 150.0, 40.0), 640, 1e-5, 1.97, 286),
    ("Adult", (300, 200.0, 40.0), 1500, 1e-5, 1.68, 524),
    ("SVHN", (300, 200.0, 40.0), 8500, 1e-6, 4.96, None),
)


def published_votes():
    """Compute the cost of the papers' queries by every account."""
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
        rows.append(row | all_accounts(LNMax(gamma), counts, delta))
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
            account = capped.account_curve(n_queries, counts.shape[1])
            row |= {
                "tight_capped": account.to_epsilon(delta),
                "classical_capped": (checks + answer * n_answers).to_epsilon(delta),
            }
        rows.append(row | all_accounts(mechanism, counts, delta))
        print(json.dumps(rows[-1]), flush=True)
    return rows


def all_accounts(mechanism, counts, delta):
    """Return epsilon by each account that the mechanism offers.

    The release of a cost is drawn several times, which the guarantee of one release
    does not cover: these votes are public anyway.
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
        "tight": mechanism.account_curve(n_queries, n_classes).to_epsilon(delta),
    }


# ----------------------------------------------------------------- default mechanism

# Each mechanism from its scale in votes.
NOISES = {
    "GNMax": lambda scale: GNMax(scale),
    "LNMax": lambda scale: LNMax(1 / scale),
    "GumbelMax": lambda scale: GumbelMax(1 / scale),
    "PermuteAndFlip": lambda scale: PermuteAndFlip(1 / scale),
}
AGREEMENTS = (0.9, 0.95, 0.98)
# Noise below the first changes no answer but ties.
SCALES = (0.25, 10_000.0)


def default_mechanism():
    """Price 1000 answers at equal agreement with the plurality without noise.

    ConfidentGNMax is not among them: it answers fewer queries, which is another
    trade-off.
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
                    worst = mechanism.account_curve(*counts.shape)
                    row |= {
                        "worst_case": worst.to_epsilon(DELTA),
                        "exact": mechanism.local_curve(counts).to_epsilon(DELTA),
                    }
                rows.append(row)
                print(json.dumps(row), flush=True)
    return rows


def scale_for(noise, counts, agreement):
    """Find the scale at which answers agree with the plurality so often, or None."""

    def excess(log_scale):
        plurality = noise(math.exp(log_scale))._plurality()
        return -np.mean(np.expm1(log_losing(plurality, counts))) - agreement

    low, high = np.log(SCALES)
    if excess(low) < 0:
        return None
    return float(np.exp(brentq(excess, low, high, xtol=1e-5)))


# ------------------------------------------------------------------------ worst case


def worst_case():
    """Price GNMax answers on ten classes, tightly and classically."""
    rows = []
    for sigma in (40.0, 100.0):
        for n_answers in (40, 100, 286, 500, 1000):
            tight = GNMax(sigma).account_curve(n_answers, 10).to_epsilon(DELTA)
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
    """Pick orders all over the range of the default ones."""
    return DEFAULT_ORDERS[np.linspace(0, DEFAULT_ORDERS.size - 1, n_orders).astype(int)]


def votes(kind, n_queries, n_classes):
    """Draw vote counts: random ones, distinct ones, or published ones again and again.

    Random votes agree less than published ones, and so cost more to cost exactly.
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
    """Compose GNMax answers, whatever the votes, by dp-accounting."""
    import dp_accounting

    accountant = dp_accounting.rdp.RdpAccountant(orders)
    # Two counts move by one each: the noise multiplier is sigma over sqrt(2).
    answer = dp_accounting.GaussianDpEvent(SIGMA / math.sqrt(2))
    accountant.compose(answer, n_answers)
    return accountant.get_epsilon(DELTA)


def task(what, kind, n_queries, n_classes, n_orders):
    """Return a call to be measured, with its input made."""
    orders = some_orders(n_orders)
    if what == "dp-accounting":
        import dp_accounting  # noqa: F401 # its import is not measured either

        return lambda: dp_accountant(n_queries, orders)
    if what == "calibration":
        public = {"n_teachers": N_TEACHERS, "n_queries": n_queries}
        return lambda: GNMax().prepared(
            n_classes=n_classes, epsilon=1.0, delta=DELTA, **public
        )
    if what == "tight worst case":
        return lambda: GNMax(SIGMA).account_curve(n_queries, n_classes)
    counts = votes(kind, n_queries, n_classes)
    if what == "Theorem 6":
        return lambda: bounds.gaussian_2018(counts, SIGMA, orders)
    if what == "Theorem 6, plain loop":
        return lambda: plain_loop(counts, SIGMA, orders)
    plurality = PLURALITIES[what.removeprefix("exact, ")]
    return lambda: local_cost(plurality, counts, orders)


def peak_mebibytes():
    """Return the most memory that this process ever held (Linux)."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


def measure_here(arguments):
    """Run one task in this process and print what it took."""
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
    """Run one task in fresh processes, and keep the least of each figure."""
    command = [sys.executable, __file__, "--measured", json.dumps(arguments)]
    runs = []
    while len(runs) < N_RUNS and (not runs or runs[-1]["seconds"] < LONG):
        run = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        runs.append(json.loads(run.stdout))
    names = ("what", "votes", "n_queries", "n_classes", "n_orders")
    row = dict(zip(names, arguments, strict=True)) | {"n_runs": len(runs)}
    row |= {name: min(run[name] for run in runs) for name in runs[0]}
    print(json.dumps(row), flush=True)
    return row


def speed_tasks():
    """List what is measured: what, votes, queries, classes and orders."""
    sizes = [10**k for k in range(2, 7)]
    tasks = []
    for what in ("Theorem 6", "Theorem 6, plain loop"):
        tasks += [(what, "repeated", n, 10, 100) for n in sizes]
        tasks += [(what, "distinct", 100_000, 10, 100)]
        tasks += [(what, "repeated", 10_000, 10, n) for n in (40, 385)]
        tasks += [(what, "random", 10_000, k, 100) for k in (2, 10, 100, 1000)]
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
    """Measure seconds and peak memory, after a look at whether both loops agree."""
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
    """Measure what was asked for, or everything."""
    if sys.argv[1:2] == ["--measured"]:
        measure_here(json.loads(sys.argv[2]))
        return
    for name in sys.argv[1:] or TABLES:
        facts = {}
        if name == "speed":
            facts = {
                "seeds": [0],
                "dp_accounting": importlib.metadata.version("dp-accounting"),
            }
        save("accounting", {name: TABLES[name]()}, **facts)


if __name__ == "__main__":
    main()
