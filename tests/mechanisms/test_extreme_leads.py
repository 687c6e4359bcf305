"""Exact costs of votes with extreme leads, against enumerations with many digits."""

from itertools import permutations, product

import mpmath
import numpy as np
import pytest
from mpmath import exp, factorial, fsum, log, mpf

from sklearn_pate.mechanisms import (
    ConfidentGNMax,
    GNMax,
    GumbelMax,
    InteractiveGNMax,
    LNMax,
    NoisyHistogram,
    PermuteAndFlip,
)
from tests.cases import thorough_but
from tests.private import LOCAL_ORDERS, ROUNDING

FAR = 10**4
EXTREMES = {
    2: [(0, 0), (1, 0), (FAR, 0), (0, FAR), (FAR, FAR), (FAR, FAR - 1), (3000, 1000)],
    3: [(0, 0, 0), (FAR, 0, 0), (0, FAR, FAR), (FAR, FAR - 1, 1), (60, 30, 0)],
}
SCALES = [1e-3, 0.7, 5.0, 300.0, 1e5]
KINDS = {
    "GNMax": lambda scale, threshold: GNMax(scale),
    "LNMax": lambda scale, threshold: LNMax(1 / scale),
    "GumbelMax": lambda scale, threshold: GumbelMax(1 / scale),
    "PermuteAndFlip": lambda scale, threshold: PermuteAndFlip(1 / scale),
    "NoisyHistogram": lambda scale, threshold: NoisyHistogram(scale),
    "ConfidentGNMax": lambda scale, threshold: ConfidentGNMax(
        threshold, 1.5 * scale, scale
    ),
    "InteractiveGNMax": lambda scale, threshold: InteractiveGNMax(
        threshold, 1.5 * scale, scale, n_teachers=FAR
    ),
}
# The first costs its worst case for any votes, the other as with a check.
NOT_ENUMERATED = ("NoisyHistogram", "InteractiveGNMax")
WITH_CHECKS = ("ConfidentGNMax", "InteractiveGNMax")


def cost(mechanism, counts, orders=LOCAL_ORDERS):
    """The cost of each vote alone, of shape (n_votes, n_orders)."""
    options = {}
    if mechanism.needs_probabilities:
        options["probabilities"] = [np.full(len(counts[0]), 1e-3)]
    return np.array(
        [mechanism.local_curve([one], orders, **options).values for one in counts]
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "scale"),
    [
        pytest.param(
            *(kind, scale),
            # The worst case of wide Laplace noise takes seconds.
            marks=pytest.mark.thorough
            if scale in (5.0, 300.0) or (kind == "LNMax" and scale > 1)
            else (),
        )
        for kind in KINDS
        for scale in SCALES
    ],
)
def test_the_cost_of_extreme_leads_is_a_number_within_the_worst_case(kind, scale):
    for threshold in (2, FAR, 10**12) if kind in WITH_CHECKS else (None,):
        mechanism = KINDS[kind](scale, threshold)
        for n_classes, counts in EXTREMES.items():
            worst = mechanism.cost(1, n_classes, orders=LOCAL_ORDERS).curve.values
            found = cost(mechanism, counts)
            assert np.all(found >= 0)  # and no NaN
            assert np.all(found <= worst * (1 + ROUNDING))


class Noise:
    """Law of whole noise, with many digits."""

    def __init__(self, exponent, reach):
        weights = [exp(exponent(mpf(z))) for z in range(-reach, reach + 1)]
        total = fsum(weights)
        self.reach = reach
        self.masses = [one / total for one in weights]
        self.sums = [mpf(0)]
        for one in self.masses:
            self.sums.append(self.sums[-1] + one)

    def mass(self, z):
        return self.masses[z + self.reach] if abs(z) <= self.reach else mpf(0)

    def below(self, z):
        """Pr[Z < z]."""
        return self.sums[min(max(z + self.reach, 0), 2 * self.reach + 1)]


def law_of_noise(noise, counts):
    """The law of the plurality; ties are broken at random."""
    found = []
    for j, own in enumerate(counts):
        others = [n for i, n in enumerate(counts) if i != j]
        terms = []
        for value in range(own - noise.reach, own + noise.reach + 1):
            for tied in product((0, 1), repeat=len(others)):
                term = noise.mass(value - own) / (1 + sum(tied))
                for n, is_tied in zip(others, tied, strict=True):
                    term *= (noise.mass if is_tied else noise.below)(value - n)
                terms.append(term)
        found.append(fsum(terms))
    return found


def law_of_gumbel(c, counts):
    weights = [exp(c * (n - max(counts))) for n in counts]
    return [one / fsum(weights) for one in weights]


def law_of_flips(c, counts):
    """The first class in random order that is accepted."""
    accepts = [exp(c * (n - max(counts))) for n in counts]
    found = [mpf(0)] * len(counts)
    for order in permutations(range(len(counts))):
        left = 1 / factorial(len(counts))
        for j in order:
            found[j] += left * accepts[j]
            left *= 1 - accepts[j]
    return found


def with_check(law, noise, threshold):
    """No answer, or an answer, where the largest count is checked."""

    def checked(counts):
        fails = noise.below(threshold - max(counts))
        passes = noise.below(max(counts) - threshold + 1)
        return [fails, *(passes * one for one in law(counts))]

    return checked


def neighbours(counts):
    """All votes after one is moved, added or withdrawn."""
    for loser, gainer in product([None, *range(len(counts))], repeat=2):
        moved = list(counts)
        if loser is not None:
            moved[loser] -= 1
        if gainer is not None:
            moved[gainer] += 1
        if min(moved) >= 0 and tuple(moved) != tuple(counts):
            yield tuple(moved)


def largest_divergence(pairs, order):
    """Return the largest divergence of the laws of a pair, in both directions."""
    order = mpf(order)
    moments = [
        fsum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True))
        for one in pairs
        for p, q in (one, one[::-1])
    ]
    return log(max(moments)) / (order - 1)


def gaussian(sigma):
    return Noise(lambda z: -(z**2) / (2 * mpf(sigma) ** 2), reach=int(45 * sigma))


def laws():
    """Mechanisms, and their laws."""
    noise = gaussian(2)
    laplace = Noise(lambda z: -abs(z), reach=300)
    return {
        "GNMax": (GNMax(2.0), lambda n: law_of_noise(noise, n)),
        "LNMax": (LNMax(1.0), lambda n: law_of_noise(laplace, n)),
        "GumbelMax": (GumbelMax(1.0), lambda n: law_of_gumbel(1, n)),
        "PermuteAndFlip": (PermuteAndFlip(1.0), lambda n: law_of_flips(1, n)),
        "ConfidentGNMax": (
            ConfidentGNMax(30, 2.0, 2.0),
            with_check(lambda n: law_of_noise(noise, n), noise, 30),
        ),
    }


ORDERS = [1.05, 2, 8, 64]
LEADS = [(0, 0), (5, 0), (25, 1), (40, 3), (60, 0), (60, 60), (60, 59)]
LEADS += [(40, 0, 0), (30, 30, 0), (30, 29, 3), (0, 0, 30)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    thorough_but(
        ["GNMax", "GumbelMax", "PermuteAndFlip"],
        ["GNMax", "LNMax", "GumbelMax", "PermuteAndFlip", "ConfidentGNMax"],
    ),
)
def test_the_cost_of_a_lead_is_that_of_an_enumeration(kind):
    with mpmath.workdps(330):
        mechanism, law = laws()[kind]
        found = cost(mechanism, LEADS, ORDERS)
        for counts, costs in zip(LEADS, found, strict=True):
            own = law(counts)
            pairs = [(own, law(other)) for other in neighbours(counts)]
            for order, one in zip(ORDERS, costs, strict=True):
                true = largest_divergence(pairs, order)
                assert one >= true * (1 - 1e-9) - 1e-290
                assert one <= true * (1 + 1e-6) + 1e-27
