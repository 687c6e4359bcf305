from decimal import Decimal, localcontext
from math import comb, floor

import numpy as np
import pytest

from tests.accounting.oracles import DIGITS, noise_table
from tests.private import (
    LARGE_SIGMA,
    DiscreteGaussian,
    DiscreteLaplace,
    sum_rule,
    tie_nodes,
)

# Below LARGE_SIGMA the law comes from a table, above from a formula.
SIGMAS = (
    0.3,
    0.5,
    1.0,
    2.7,
    13.0,
    LARGE_SIGMA - 0.1,
    LARGE_SIGMA,
    40.0,
    64.0,
    777.5,
    5000.0,
)
GAMMAS = (0.001, 0.05, 0.7, 3.0)
# Where F is about 1e-300, 1e-200, ..., and close to 1/2.
DEPTHS = (37, 30, 20, 10, 5, 2, 1, 0.5, 0.1)


def exact_log_cdf(kind, scale, points):
    """ln F and ln (1 - F) with 50 digits, so that neither tail cancels."""
    reach = int(max(abs(z) for z in points)) + 1
    _, cdf = noise_table(kind, scale, reach)
    centre = len(cdf) // 2
    with localcontext(prec=DIGITS):
        # Pr[Z <= z] = 1 - Pr[Z <= -z - 1] by symmetry.
        return [
            float((1 - cdf[-z - 1 + centre]).ln() if z >= 0 else cdf[z + centre].ln())
            for z in points
        ]


def both_tails(scale):
    left = sorted({-floor(depth * scale) for depth in DEPTHS})
    return [*left, *(-z - 1 for z in left if z < 0), -1, 0, 1]


@pytest.mark.slow
@pytest.mark.parametrize("sigma", SIGMAS)
def test_gaussian_cdf_is_right_in_both_tails(sigma):
    points = both_tails(sigma)
    found = DiscreteGaussian(sigma).log_cdf(np.array(points, dtype=float))
    expected = exact_log_cdf("gaussian", sigma, points)
    for z, log_f, exact in zip(points, found, expected, strict=True):
        # On the left ln F is large, so that its absolute error is F's relative one; on
        # the right it is 1 - F that must have its digits, and ln F is close to it.
        margin = {"abs": 1e-10} if z < 0 else {"rel": 1e-9}
        assert log_f == pytest.approx(exact, **margin), z


@pytest.mark.slow
@pytest.mark.parametrize("gamma", GAMMAS)
def test_laplace_cdf_is_right_in_both_tails(gamma):
    points = both_tails(1 / gamma)
    found = DiscreteLaplace(gamma).log_cdf(np.array(points, dtype=float))
    expected = exact_log_cdf("laplace", gamma, points)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("law", "kind", "scale"),
    [(DiscreteGaussian, "gaussian", sigma) for sigma in (0.3, 1.0, 40.0, 100.0)]
    + [(DiscreteLaplace, "laplace", gamma) for gamma in (0.05, 0.7, 3.0)],
)
def test_masses_are_normalised_and_fall_as_they_should(law, kind, scale):
    noise = law(scale)
    points = np.array(both_tails(scale if kind == "gaussian" else 1 / scale))
    mass, _ = noise_table(kind, scale, int(np.abs(points).max()))
    centre = len(mass) // 2
    expected = [float(mass[z + centre].ln()) for z in points]
    np.testing.assert_allclose(noise.log_pmf(points), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("noise", [DiscreteGaussian(3.0), DiscreteLaplace(0.4)])
@pytest.mark.parametrize("step", [-2, -1, 1, 2])
def test_a_step_of_the_mass_is_a_difference_of_two(noise, step):
    points = np.arange(-30.0, 31)
    expected = noise.log_pmf(points + step) - noise.log_pmf(points)
    np.testing.assert_allclose(
        noise.log_pmf_step(points, step), expected, rtol=1e-12, atol=1e-13
    )


@pytest.mark.parametrize("sigma", [0.3, 2.7, 40.0])
def test_gaussian_cdf_goes_on_beyond_its_table(sigma):
    z = -floor(120 * sigma)
    found = DiscreteGaussian(sigma).log_cdf(np.array([z, -z], dtype=float))
    with localcontext(prec=DIGITS):
        exponents = -1 / (2 * Decimal(sigma) ** 2)
        near, far = (
            range(1, floor(30 * sigma) + 2),
            range(-z, -z + floor(3 * sigma) + 9),
        )
        near, far = (sum((exponents * k * k).exp() for k in r) for r in (near, far))
        expected = float((far / (1 + 2 * near)).ln())
    assert found[0] == pytest.approx(expected, rel=1e-5, abs=0)
    assert found[1] == 0


@pytest.mark.parametrize("n", [1, 2, 19, 20])
def test_short_sums_take_every_term(n):
    points, weights = sum_rule(n)
    np.testing.assert_array_equal(points, np.arange(n))
    np.testing.assert_array_equal(weights, 1)


@pytest.mark.slow
@pytest.mark.parametrize("n", [21, 60, 1000, 10**6])
def test_sums_of_polynomials_up_to_degree_39_are_exact(n):
    points, weights = sum_rule(n)
    assert len(points) == 20
    # In units of half the range, so that no power leaves float64.
    middle = (n - 1) / 2
    for degree in (0, 1, 2, 3, 10, 38, 39):
        found = np.sum(weights * (points / middle - 1) ** degree)
        exact = np.sum((np.arange(n) / middle - 1) ** degree)
        assert found == pytest.approx(exact, rel=1e-12, abs=n * 1e-13)


@pytest.mark.parametrize("n_classes", [2, 3, 7, 20])
def test_a_random_priority_among_equals_is_fair(n_classes):
    # int_0^1 u^m (1 - u)^(K - 1 - m) du, the chance to be of rank m.
    points, weights = tie_nodes(1e9, n_classes)
    for m in range(n_classes):
        chance = np.sum(weights * points**m * (1 - points) ** (n_classes - 1 - m))
        assert chance * comb(n_classes - 1, m) * n_classes == pytest.approx(
            1, rel=1e-13
        )


@pytest.mark.parametrize("slope", [0.01, 0.5, 5, 40, 76])
def test_few_points_are_enough_for_a_given_slope(slope):
    points, weights = tie_nodes(slope, 1000)
    assert len(points) < 500
    found = np.sum(weights * np.exp(slope * (points - 1)))
    assert found == pytest.approx(-np.expm1(-slope) / slope, rel=1e-12, abs=0)
