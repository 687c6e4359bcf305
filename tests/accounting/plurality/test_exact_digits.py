"""Exact costs against 50 digits."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from tests.accounting.oracles import (
    DIGITS,
    distinct_neighbours,
    exact_divergence,
    exact_law,
    exact_local_costs,
    neighbours,
    noise_table,
)
from tests.accounting.plurality.costs import by_kind, cost
from tests.private import NoisyCheck, log_moment


def random_example(kind, rng):
    """A scale, counts and orders with an exact cost that can be computed quickly."""
    many = rng.random() < 0.2
    if kind == "gaussian":
        scale = float(np.exp(rng.uniform(np.log(0.4), np.log(1.2 if many else 5))))
        span = rng.uniform(0, 30) * scale
    else:
        scale = float(np.exp(rng.uniform(np.log(0.7), np.log(3))))
        span = rng.uniform(0, 40) / scale
    if many:
        counts = np.repeat(
            rng.integers(0, int(span) + 2, size=2), rng.integers(1, 11, 2)
        )
    else:
        n_classes = rng.choice([2, 3, 4], p=[0.4, 0.4, 0.2])
        counts = rng.integers(0, int(span) + 2, size=n_classes)
    orders = 1 + np.exp(rng.uniform(np.log(0.05), np.log(60), size=2))
    return scale, [int(n) for n in rng.permutation(counts)], np.sort(orders)


@pytest.mark.slow
@by_kind
def test_every_cost_is_right_to_nine_digits(kind):
    rng = np.random.default_rng(5)
    least, deepest = 1, 0
    for _ in range(25):
        scale, counts, orders = random_example(kind, rng)
        found = cost(kind, scale, [counts], orders)
        exact = np.array(exact_local_costs(kind, scale, counts, orders), dtype=float)
        # Where probabilities leave float64, so may their share of the cost.
        np.testing.assert_allclose(found, exact, rtol=1e-9, atol=1e-27)
        least = min([least, *exact[exact > 1e-18]])
        law = exact_law(kind, scale, counts)
        deepest = min(deepest, *(float(p.ln()) for p in law))
    assert least < 1e-10  # or the cases would be too easy
    assert deepest < -25


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "scale"),
    [
        ("gaussian", 3.0),
        ("gaussian", 8.0),
        ("laplace", 0.7),
        ("gumbel", 0.7),
        ("flip", 0.7),
    ],
)
def test_divergences_far_below_the_precision_of_probabilities_keep_their_digits(
    kind, scale
):
    gap = {"gaussian": int(13 * scale), "laplace": 60, "gumbel": 60, "flip": 60}[kind]
    for order in (1.1, 2, 3):
        for counts in ([gap, 0], [gap, 3, 1]):
            found = cost(kind, scale, [counts], [order])[0]
            exact = float(exact_local_costs(kind, scale, counts, [order])[0])
            assert found == pytest.approx(exact, rel=1e-9, abs=0)
            assert found < 1e-9


@pytest.mark.parametrize("order", [1.05, 2, 7.5, 64])
def test_the_divergence_of_close_laws_keeps_its_digits(order):
    # a r goes from where g(r) is a series to where it is not.
    for size in np.geomspace(1e-6, 0.1, 40) / order:
        with localcontext(prec=DIGITS):
            q = [Decimal("0.75"), Decimal("0.25")]
            p = [q[0] * Decimal(size).exp()]
            p.append(1 - p[0])
            ratio = np.array([float((a / b).ln()) for a, b in zip(p, q, strict=True)])
            exact = (Decimal(order) - 1) * exact_divergence(p, q, order)
        log_q = np.log(np.array(q, dtype=float))
        found = log_moment(log_q[None], ratio[None], order)[0]
        assert found == pytest.approx(float(exact), rel=1e-10, abs=0)


@pytest.mark.thorough
@pytest.mark.parametrize("sigma", [64.0, 90.0])
def test_costs_under_wide_noise_are_right_to_nine_digits(sigma):
    # Here the law comes from a formula, and sums go over every few votes.
    for counts in ([250, 0], [140, 100, 10]):
        found = cost("gaussian", sigma, [counts], [2, 20])
        exact = np.array(
            exact_local_costs("gaussian", sigma, counts, [2, 20]), dtype=float
        )
        np.testing.assert_allclose(found, exact, rtol=1e-9)


@pytest.mark.parametrize("counts", [[6, 5], [4, 4, 1], [9, 3, 3, 0]])
def test_the_joint_cost_with_a_check_is_right_to_nine_digits(counts):
    threshold, sigma_check, sigma, order = 7, 2.5, 1.7, 5.5

    def joint(counts):
        _, cdf = noise_table("gaussian", sigma_check, 40)
        fails = cdf[threshold - 1 - max(counts) + len(cdf) // 2]
        with localcontext(prec=DIGITS):
            answers = [(1 - fails) * p for p in exact_law("gaussian", sigma, counts)]
            return [fails, *answers]

    here = joint(counts)
    exact = max(
        exact_divergence(*pair, order)
        for moved in distinct_neighbours(counts)
        for pair in ((here, joint(moved)), (joint(moved), here))
    )
    check = NoisyCheck(threshold, sigma_check)
    found = cost("gaussian", sigma, [counts], [order], check=check)[0]
    assert found == pytest.approx(float(exact), rel=1e-9, abs=0)


@pytest.mark.parametrize("direction", ["both", "forward"])
@pytest.mark.parametrize("order", [40, 60])
@pytest.mark.parametrize("counts", [[90, 10], [90, 40, 10]])
def test_costs_of_tens_of_nats_are_right_too(direction, order, counts):
    # They come from an outcome with probability below 1e-600.
    found = cost("gaussian", 1.0, [counts], [order], direction=direction)[0]
    here = exact_law("gaussian", 1.0, counts)
    laws = [exact_law("gaussian", 1.0, list(n)) for n in neighbours(counts)]
    exact = max(exact_divergence(here, law, order) for law in laws)
    if direction == "both":
        exact = max(exact, *(exact_divergence(law, here, order) for law in laws))
    assert found == pytest.approx(float(exact), rel=1e-9, abs=0)


def test_a_small_cost_that_comes_from_a_rarest_outcome_keeps_its_digits():
    # e^{-1602} times the 20th power of e^{79}.
    found = cost("gaussian", 1.0, [[90, 10]], [20])[0]
    exact = exact_local_costs("gaussian", 1.0, [90, 10], [20])[0]
    assert found == pytest.approx(float(exact), rel=1e-9, abs=0)
