"""Attacks on the privacy claims. Writes results/audits.json.

mechanisms    lower bounds of epsilon and the claim, 20 audits of each mechanism
defects       audits of code with planted defects
neighbours    neighbouring data sets, without a defect

Takes about a quarter of an hour on one core. No noise is seeded. Every audit has
confidence 1 - 1e-4, that is, contradicts a true claim once in 10,000 audits at most.

"epsilon_exact" is the limit of the lower bound for infinitely many trials at these
counts, computed from the exact distribution of the answers. It differs from the claim,
as other counts may be worse, and a Renyi curve is not tight at every delta; it differs
from "epsilon_lower", as the number of trials is finite.
"""

import math
import os
from contextlib import contextmanager
from itertools import product

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from scipy.optimize import brentq
from scipy.signal import fftconvolve
from scipy.stats import multinomial
from sklearn.dummy import DummyClassifier
from sklearn.tree import DecisionTreeClassifier

from benchmarks.record import command, save, summary
from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate._teachers._private_rows import PrivateRows
from sklearn_pate._votes._votes import STEPS
from sklearn_pate.accounting.plurality._discrete_noise import NoisyCheck
from sklearn_pate.accounting.plurality._exact import (
    GaussianPlurality,
    GumbelPlurality,
    LaplacePlurality,
    PermuteAndFlipPlurality,
)
from sklearn_pate.inspection import (
    audit_mechanism,
    audit_neighbours,
)
from sklearn_pate.mechanisms import (
    ConfidentGNMax,
    GNMax,
    GumbelMax,
    InteractiveGNMax,
    LNMax,
    NoisyHistogram,
    NoisySum,
    Oracle,
    PermuteAndFlip,
)
from sklearn_pate.mechanisms._noise import NoiseSource

N_AUDITS = 20
DELTAS = (1e-5, 1e-2)
TIE, MOVED = (10, 10), (11, 9)


def measured(audits):
    """Summarize repeated audits of one claim."""
    claimed = audits[0].epsilon_claimed
    lower = summary([audit.epsilon_lower for audit in audits])
    return {
        "delta": audits[0].delta,
        "confidence": audits[0].confidence,
        "epsilon_claimed": claimed,
        "epsilon_lower": lower,
        "lower_to_claimed": lower["mean"] / claimed,
        "n_audits": len(audits),
        "n_contradicted": sum(audit.contradicted for audit in audits),
    }


# ------------------------------------------------------------------------- mechanisms

ONCE = {"n_queries": 1, "n_trials": 100_000}
OFTEN = {"n_queries": 20, "n_trials": 20_000}

# One teacher votes for one class, or for the other, in each of five parts.
SURE, CONTRARY = (STEPS, 0) * 5, (0, STEPS) * 5

# Mechanism, distribution of its answers (the scale of its noise, if all counts are
# released), a noisy check before it, counts, neighbouring counts, size.
MECHANISMS = (
    (LNMax(gamma=0.5), LaplacePlurality(0.5), None, (6, 1), (5, 2), ONCE),
    (GumbelMax(c=0.5), GumbelPlurality(0.5), None, (9, 1), (8, 2), ONCE),
    (PermuteAndFlip(c=0.5), PermuteAndFlipPlurality(0.5), None, (6, 1), (5, 2), ONCE),
    (GNMax(sigma=4), GaussianPlurality(4), None, TIE, MOVED, ONCE),
    (GNMax(sigma=5), GaussianPlurality(5), None, TIE, MOVED, OFTEN),
    (
        ConfidentGNMax(10, 8, 5),
        GaussianPlurality(5),
        NoisyCheck(10, 8),
        TIE,
        MOVED,
        OFTEN,
    ),
    (
        InteractiveGNMax(1, 8, 5, n_teachers=20),
        GaussianPlurality(5),
        NoisyCheck(11, 8),  # an undecided student expects 10 of 20
        TIE,
        MOVED,
        OFTEN,
    ),
    (NoisyHistogram(sigma=5), 5, None, TIE, MOVED, OFTEN),
    (NoisySum(noise_scale=4, n_parts=5), 4 * STEPS, None, SURE, CONTRARY, ONCE),
)


def mechanisms():
    """Return lower bounds and claims."""
    rows = []
    for mechanism, plurality, check, counts, neighbour, size in MECHANISMS:
        for delta in DELTAS:
            audits = [
                audit_mechanism(mechanism, counts, neighbour, delta=delta, **size)
                for _ in range(N_AUDITS)
            ]
            found = measured(audits)
            distributions = [
                differences(plurality, votes, size["n_queries"])
                if isinstance(plurality, int)
                else answers(plurality, check, votes, size["n_queries"])
                for votes in (counts, neighbour)
            ]
            exact = exact_epsilon(*distributions, delta=delta)
            rows.append(
                {
                    "mechanism": repr(mechanism),
                    "counts": counts,
                    "neighbour": neighbour,
                    **size,
                    **found,
                    "epsilon_exact": exact,
                    "lower_to_exact": found["epsilon_lower"]["mean"] / exact,
                }
            )
            print(
                f"{mechanism!r} delta={delta:g}: {found['epsilon_lower']['mean']:.3f} "
                f"of {exact:.3f} of {found['epsilon_claimed']:.3f}, "
                f"{found['n_contradicted']} of {N_AUDITS} contradicted"
            )
    return rows


def answers(plurality, check, counts, n_queries):
    """Compute the distribution of the number of each answer, out of `n_queries`."""
    counts = np.array([counts], dtype=float)
    one_query = np.exp(plurality.log_probabilities(counts, np.ones_like(counts)))[0]
    if check is not None:
        passes, fails = np.exp(check.log_probabilities(counts.max()))
        one_query = np.append(passes * one_query, fails)
    numbers = [
        (*most, n_queries - sum(most))
        for most in product(range(n_queries + 1), repeat=len(one_query) - 1)
        if sum(most) <= n_queries
    ]
    return multinomial.pmf(numbers, n_queries, one_query / one_query.sum())


def differences(sigma, counts, n_queries):
    """Compute the distribution of the sum of all pair differences, a sufficient one."""
    reach = math.ceil(12 * sigma)
    noise = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2))
    total = np.ones(1)
    for _ in range(n_queries * len(counts)):
        total = fftconvolve(total, noise / noise.sum()).clip(min=0)  # round-off
    shift = n_queries * (sum(counts[::2]) - sum(counts[1::2]))
    margin = n_queries * sum(counts)
    return np.pad(total, (margin + shift, margin - shift))


def exact_epsilon(first, second, delta):
    """Find the smallest epsilon for delta between two distributions, in both orders."""

    def excess(epsilon):
        return max(
            np.maximum(p - np.exp(epsilon) * q, 0).sum()
            for p, q in ((first, second), (second, first))
        )

    return brentq(lambda epsilon: excess(epsilon) - delta, 0, 50)


# ---------------------------------------------------------------------------- defects


@contextmanager
def planted(owner, name, defect):
    """Replace a method or function within a block."""
    original = getattr(owner, name)
    setattr(owner, name, lambda *args, **kwargs: defect(original, *args, **kwargs))
    try:
        yield
    finally:
        setattr(owner, name, original)


def answer_again(answer, oracle, rows, probabilities=None):
    """Answer a repeated query with new noise, and charge it once."""
    oracle._answer_of.clear()
    oracle.n_charged = 0
    oracle._answers_left = len(rows)
    return answer(oracle, rows, probabilities)


def deal_by_class(shards, private, n_teachers, key):
    """Assign the rows of each class in turn: stratified shards."""
    teacher = np.empty(private.n_rows, dtype=int)
    for code in np.unique(private.codes):
        rows = np.flatnonzero(private.codes == code)
        teacher[rows] = np.arange(len(rows)) % n_teachers
    return [np.flatnonzero(teacher == one) for one in range(n_teachers)]


def defects(n_audits=3):
    """Return audits of planted defects; factor 1 is without a defect."""
    rows = []

    def add(defect, audit, **facts):
        found = measured([audit() for _ in range(n_audits)])
        rows.append({"defect": defect, **facts, **found})
        print(
            f"{defect} {facts}: {found['epsilon_lower']['mean']:.3f} of "
            f"{found['epsilon_claimed']:.3f}, {found['n_contradicted']} of {n_audits}"
        )

    for factor, delta in product((1, 1.5, 2, 3, 4), DELTAS):
        with (
            planted(
                NoiseSource,
                "discrete_gaussian",
                lambda draw, noise, sigma, shape, f=factor: draw(
                    noise, sigma / f, shape
                ),
            ),
            planted(
                NoiseSource,
                "discrete_laplace",
                lambda draw, noise, gamma, shape, f=factor: draw(
                    noise, gamma * f, shape
                ),
            ),
        ):
            for mechanism in (
                GNMax(sigma=5),
                NoisyHistogram(sigma=5),
                ConfidentGNMax(10, 8, 5),
                LNMax(gamma=0.2),
            ):
                add(
                    "noise divided by a factor",
                    lambda m=mechanism, d=delta: audit_mechanism(
                        m, TIE, MOVED, delta=d, **OFTEN
                    ),
                    mechanism=repr(mechanism),
                    factor=factor,
                )
    for n_repeats, mechanism in product(
        (2, 5, 10, 40), (GNMax(sigma=4), NoisyHistogram(sigma=4))
    ):
        with planted(Oracle, "answer", answer_again):
            add(
                "a repeated query is answered anew",
                lambda m=mechanism, n=n_repeats: audit_mechanism(
                    m, TIE, MOVED, n_trials=20_000, n_repeats=n
                ),
                mechanism=repr(mechanism),
                n_repeats=n_repeats,
            )
    with planted(PrivateRows, "shards", deal_by_class):
        add(
            "rows are assigned by class",
            lambda: stratified_shards(48, 11.9, 100),
        )
    return rows


# ------------------------------------------------------------------------- neighbours


def stratified_shards(n_teachers, sigma, n_runs, n_queries=6):
    """Audit neighbours in which one changed label moves rows of stratified shards.

    Class 1 is at 5. The rows of class 0 are, in turn, at 0, where the public rows are,
    and at 9. Without the row in the middle, later rows move to the next teacher.
    """
    x0 = np.where(np.arange(2 * n_teachers) % 2 == 0, 0.0, 9.0)
    x0 = np.insert(x0, n_teachers, 9.0)
    X = np.concatenate([x0, np.full(2 * n_teachers, 5.0)])[:, None]
    y = np.concatenate([np.zeros(len(x0), int), np.ones(2 * n_teachers, int)])
    changed = y.copy()
    changed[n_teachers] = 1
    return compare(X, y, changed, n_teachers, sigma, n_runs, n_queries)


def one_of_two_teachers(sigma, n_runs, n_queries=6):
    """Audit neighbours in which one of two teachers changes its vote."""
    X, y, changed = np.zeros((2, 1)), np.array([0, 1]), np.array([0, 0])
    return compare(X, y, changed, 2, sigma, n_runs, n_queries)


def compare(X, y, changed, n_teachers, sigma, n_runs, n_queries):
    """Audit neighbouring data sets with different labels."""
    pate = PATEClassifier(
        DecisionTreeClassifier(),
        DummyClassifier(),
        n_teachers=n_teachers,
        epsilon=None,
        mechanism=GNMax(sigma=sigma),
        query_strategy="random",
        representation=None,
        classes=[0, 1],
        random_state=0,
    )
    return audit_neighbours(
        pate,
        (X, y),
        (X, changed),
        X_public=PublicData(np.linspace(-0.01, 0.01, n_queries)[:, None]),
        n_runs=n_runs,
    )


def neighbours():
    """Return audits of whole fits without a defect."""
    rows = []
    found = measured([stratified_shards(48, 11.9, 100) for _ in range(3)])
    rows.append({"audit": "audit_neighbours", "n_teachers": 48, "n_runs": 100, **found})
    print(rows[-1])
    found = measured([one_of_two_teachers(1.0, 100) for _ in range(5)])
    rows.append({"audit": "audit_neighbours", "n_teachers": 2, "n_runs": 100, **found})
    print(rows[-1])
    return rows


TABLES = {
    "mechanisms": mechanisms,
    "defects": defects,
    "neighbours": neighbours,
}


def main():
    """Measure the named tables, or all."""
    for table in command(__doc__, TABLES).parse_args().tables:
        save("audits", table, TABLES[table]())
