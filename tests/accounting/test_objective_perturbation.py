"""The cost of a noisy minimiser, against output densities in one dimension."""

import mpmath
import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from dp_accounting.rdp import RdpAccountant
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from sklearn_pate.accounting import DEFAULT_ORDERS, calibrate_noise
from sklearn_pate.accounting.composition import (
    curvature_cost,
    gaussian_objective_curve,
    least_regularisation,
)
from tests.private import HuberHinge, LogisticLoss

ORDERS = np.array([1.02, 1.1, 1.5, 2, 3, 5, 10, 30])
LOSSES = {"logistic": LogisticLoss(), "hinge": HuberHinge(0.5)}

scales = st.floats(0.3, 50)
positive = st.floats(0.01, 100)


class Minimiser:
    """The exact law of the minimiser of a problem with one weight."""

    def __init__(self, rows, loss, regularisation, sigma):
        self.rows = np.asarray(rows, dtype=float)  # y x, one number a row
        self.loss, self.regularisation, self.sigma = loss, regularisation, sigma

    def log_density(self, w):
        margins = np.multiply.outer(w, self.rows)
        slopes, curvatures = self.loss.derivatives(margins)
        linear_term = -(slopes @ self.rows) - self.regularisation * w
        jacobian = curvatures @ self.rows**2 + self.regularisation
        return norm.logpdf(linear_term, scale=self.sigma) + np.log(jacobian)

    def grid(self):
        """Cut where nothing is left, and where a slope has a kink."""
        reach = (12 * self.sigma + np.abs(self.rows).sum()) / self.regularisation
        edges = np.linspace(-reach, reach, 100_001)
        if isinstance(self.loss, HuberHinge):
            rows = self.rows[self.rows != 0]
            for kink in (1 - self.loss.half_width, 1 + self.loss.half_width):
                edges = np.union1d(edges, (kink / rows)[np.abs(kink / rows) < reach])
        return (edges[1:] + edges[:-1]) / 2, np.diff(edges)


def divergences(first, second, orders):
    """Renyi divergences of two laws of a minimiser, by summation."""
    w, cells = max(
        (one.grid() for one in (first, second)), key=lambda grid: len(grid[0])
    )
    p, q = first.log_density(w), second.log_density(w)
    assert np.exp(p) @ cells == pytest.approx(1, abs=1e-5), "it is a density"
    moments = [np.exp(a * p + (1 - a) * q) @ cells for a in orders]
    return np.log(moments) / (orders - 1)


# A data set, and the row that is added to it.
NEIGHBOURS = {
    "nothing and one row": ([], 1.0),
    "another of the kind": ([1.0, 1.0, 1.0], 1.0),
    "one against the others": ([1.0, 0.7, 0.9, 1.0], -1.0),
    "a short row": ([0.5, -1.0], 0.3),
    "many rows": (np.linspace(-1, 1, 41), -1.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("case", NEIGHBOURS)
@pytest.mark.parametrize(("sigma", "regularisation"), [(1, 0.5), (3, 2), (3, 0.1)])
def test_no_order_costs_more_than_the_curve(loss, case, sigma, regularisation):
    rows, added = NEIGHBOURS[case]
    loss = LOSSES[loss]
    fewer = Minimiser(rows, loss, regularisation, sigma)
    more = Minimiser([*rows, added], loss, regularisation, sigma)
    curve = gaussian_objective_curve(
        sigma, regularisation, loss.curvature, orders=ORDERS
    )
    for one, other in ((fewer, more), (more, fewer)):
        assert np.all(divergences(one, other, ORDERS) <= curve.values)


def test_without_the_cost_of_curvature_the_cost_would_be_too_low():
    # Strong noise and a wide quadratic piece, so that most of the noise leaves the row
    # where it is curved, and the row's slope itself costs little.
    loss, sigma = HuberHinge(5.5), 30.0
    regularisation = 0.15 * loss.curvature
    others = [-1.0] * 3
    fewer = Minimiser(others, loss, regularisation, sigma)
    more = Minimiser([*others, 1.0], loss, regularisation, sigma)
    order = np.array([45.0])
    (exact,) = divergences(more, fewer, order)
    (charged,) = gaussian_objective_curve(
        sigma, regularisation, loss.curvature, orders=order
    ).values
    cost = curvature_cost(loss.curvature, regularisation)
    assert charged - 0.2 * cost < exact <= charged


def test_with_less_noise_than_stated_the_cost_would_be_too_low():
    # With this regularisation, weights stay where the hinge is linear.
    loss, sigma, regularisation = HuberHinge(0.5), 2.0, 1e4
    fewer = Minimiser([-1.0], loss, regularisation, sigma)
    more = Minimiser([-1.0, 1.0], loss, regularisation, sigma)
    exact = divergences(more, fewer, ORDERS)
    other = gaussian_objective_curve(
        1.1 * sigma, regularisation, loss.curvature, orders=ORDERS
    )
    assert np.any(exact > other.values)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("epsilon", [0.3, 1, 4])
def test_a_calibrated_minimiser_is_within_epsilon_and_delta(loss, epsilon):
    loss, delta, regularisation = LOSSES[loss], 1e-3, 5.0

    def at_sigma(sigma, orders):
        return gaussian_objective_curve(
            sigma, regularisation, loss.curvature, orders=orders
        )

    sigma = calibrate_noise(at_sigma, epsilon=epsilon, delta=delta)
    assert at_sigma(sigma, DEFAULT_ORDERS).to_epsilon(delta) <= epsilon
    for rows, added in NEIGHBOURS.values():
        fewer = Minimiser(rows, loss, regularisation, sigma)
        more = Minimiser([*rows, added], loss, regularisation, sigma)
        w, cells = more.grid()
        p, q = (np.exp(one.log_density(w)) for one in (fewer, more))
        for one, other in ((p, q), (q, p)):
            excess = np.maximum(one - np.exp(epsilon) * other, 0) @ cells
            assert excess <= delta


@pytest.mark.thorough
@pytest.mark.parametrize("sigma", [0.5, 2, 40])
def test_the_expectation_is_that_of_50_digits(sigma):
    curve = gaussian_objective_curve(sigma, 1e12, 1e-12, orders=ORDERS)
    with mpmath.workdps(50):
        variance = mpmath.mpf(1) / mpmath.mpf(sigma) ** 2
        deviation = mpmath.sqrt(variance)

        def weighted(order):
            def at(t):
                density = mpmath.npdf(t, variance / 2, deviation)
                return mpmath.exp((mpmath.mpf(float(order)) - 1) * max(t, 0)) * density

            return at

        for order, value in zip(ORDERS, curve.values, strict=True):
            peak = (order - 0.5) * variance  # of the tilted law
            cuts = [-60 * deviation, 0, peak / 2, peak, peak + 60 * deviation]
            moment = mpmath.quad(weighted(order), cuts)
            expected = float(mpmath.log(moment) / (mpmath.mpf(float(order)) - 1))
            assert value == pytest.approx(expected, rel=1e-9, abs=1e-12)
            assert value >= expected * (1 - 1e-13)


@given(sigma=scales)
def test_the_cost_is_at_least_that_of_gaussian_noise_on_a_sum(sigma):
    accountant = RdpAccountant(list(ORDERS))
    accountant.compose(GaussianDpEvent(sigma))
    curve = gaussian_objective_curve(sigma, 1e9, 1e-9, orders=ORDERS)
    assert np.all(curve.values >= accountant._rdp * (1 - 1e-12))


@pytest.mark.slow
@given(sigma=scales, regularisation=positive, share=st.floats(0.01, 0.99))
def test_the_cost_is_at_most_that_of_the_paper(sigma, regularisation, share):
    curvature = share * regularisation
    variance = 1 / sigma**2
    power = ORDERS - 1
    log_moment = np.log(2) + power**2 * variance / 2 + norm.logcdf(power / sigma)
    paper = -np.log1p(-share) + variance / 2 + log_moment / power
    curve = gaussian_objective_curve(sigma, regularisation, curvature, orders=ORDERS)
    assert np.all(curve.values <= paper)


@pytest.mark.slow
@given(
    sigma=scales, regularisation=positive, curvature=positive, factor=st.floats(1.01, 9)
)
def test_noise_and_regularisation_save_and_slope_and_curvature_cost(
    sigma, regularisation, curvature, factor
):
    def charged(sigma=sigma, regularisation=regularisation, curvature=curvature, g=1.0):
        return gaussian_objective_curve(sigma, regularisation, curvature, g).values

    assert np.all(charged(sigma=factor * sigma) <= charged())
    assert np.all(charged(regularisation=factor * regularisation) <= charged())
    assert np.all(charged(curvature=factor * curvature) >= charged())
    np.testing.assert_allclose(charged(sigma=factor * sigma, g=factor), charged())


# Curvature alone


@given(regularisation=positive, half_width=st.floats(0.05, 0.9))
def test_the_hinge_attains_the_cost_of_curvature(regularisation, half_width):
    loss = HuberHinge(half_width)
    # Noise that is so strong has the same density for both.
    fewer, more = (
        Minimiser(rows, loss, regularisation, sigma=1e9) for rows in ([0.0], [1.0])
    )
    where_it_is_curved = np.array([1.0])
    first, second = (one.log_density(where_it_is_curved)[0] for one in (more, fewer))
    cost = curvature_cost(loss.curvature, regularisation)
    assert first - second == pytest.approx(cost, rel=1e-6)


@given(epsilon=st.floats(1e-6, 1e4), curvature=positive)
def test_the_least_regularisation_leaves_half_of_epsilon(epsilon, curvature):
    regularisation = least_regularisation(epsilon, curvature)
    if epsilon < 1000:
        cost = curvature_cost(curvature, regularisation)
        assert cost == pytest.approx(epsilon / 2)
    else:
        assert regularisation > 0, "next to none"


@pytest.mark.parametrize("value", [0, -1, np.nan, np.inf])
def test_a_parameter_that_is_not_positive_is_refused(value):
    with pytest.raises(ValueError, match="sigma="):
        gaussian_objective_curve(value, 1.0, 0.25)
    with pytest.raises(ValueError, match="gradient_bound="):
        gaussian_objective_curve(1.0, 1.0, 0.25, value)
    with pytest.raises(ValueError, match="regularisation="):
        curvature_cost(0.25, value)
    with pytest.raises(ValueError, match="curvature="):
        curvature_cost(value, 1.0)
    with pytest.raises(ValueError, match="epsilon="):
        least_regularisation(value, 0.25)
    with pytest.raises(ValueError, match="curvature="):
        least_regularisation(1.0, value)


def test_next_to_no_noise_has_no_bound():
    curve = gaussian_objective_curve(1e-200, regularisation=1.0, curvature=0.25)
    assert np.all(curve.values == np.inf)
