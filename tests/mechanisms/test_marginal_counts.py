"""Noisy counts by column and class: their cost, their noise, their calibration."""

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from tests.private import MarginalCounts, NoiseSource, gdp_epsilon, largest_gdp_mu

DELTA = 1e-5
# Squared distance of neighbours for each table.
REPLACED, ADDED = 2, 1


@pytest.mark.parametrize(
    ("add_remove", "per_table"), [(False, REPLACED), (True, ADDED)]
)
@pytest.mark.parametrize("n_tables", [1, 14])
def test_the_curve_is_that_of_gaussian_noise_on_all_tables(
    n_tables, add_remove, per_table
):
    counts = MarginalCounts(30.0, n_tables=n_tables, add_remove=add_remove)
    curve = counts.cost(1, 2).curve
    rho = per_table * n_tables / (2 * 30.0**2)
    np.testing.assert_allclose(curve.values, rho * curve.orders, rtol=1e-12)
    assert counts.mu**2 == pytest.approx(per_table * n_tables / (30.0**2 - 2.25))


@pytest.mark.parametrize("n_classes", [2, 10])
@pytest.mark.parametrize("n_queries", [0, 1, 2000])
def test_the_cost_depends_on_no_number_of_queries_or_classes(n_queries, n_classes):
    counts = MarginalCounts(30.0, n_tables=5)
    stated = counts.cost(n_queries, n_classes).epsilon(DELTA)
    assert stated == gdp_epsilon(counts.mu, DELTA)


def test_the_stated_cost_is_above_that_of_the_same_gaussian_noise():
    counts = MarginalCounts(30.0, n_tables=5)
    exact = pld.from_gaussian_mechanism(
        30.0, sensitivity=np.sqrt(10), value_discretization_interval=1e-4
    ).get_epsilon_for_delta(DELTA)
    assert exact < counts.cost(1, 2).epsilon(DELTA) < 1.005 * exact


@pytest.mark.parametrize(
    ("unit", "relation"),
    [("row", "replace-one"), ("group", "add-remove-or-change")],
)
def test_units_are_replaced_or_all_changes_are_hidden(unit, relation):
    assert MarginalCounts(30.0).relation(unit) == relation
    assert MarginalCounts(30.0, add_remove=True).relation(unit) == "add-remove"


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("epsilon", [0.1, 1, 8])
@pytest.mark.parametrize("add_remove", [False, True])
def test_a_share_is_of_the_squared_mu(share, epsilon, add_remove):
    counts = MarginalCounts(n_tables=14, add_remove=add_remove)
    ready = counts.for_share(share, epsilon, DELTA)
    of_all = largest_gdp_mu(epsilon, DELTA) ** 2
    # The noise is rounded up to six digits.
    assert share * (1 - 1e-4) < ready.mu**2 / of_all <= share
    assert counts.sigma is None


def test_noise_that_is_given_is_not_calibrated():
    with pytest.raises(ValueError, match=r"MarginalCounts\(sigma=3\) both set"):
        MarginalCounts(3).for_share(0.1, 1.0, DELTA)


def test_noise_that_cannot_be_drawn_is_an_error_about_the_columns():
    with pytest.raises(ValueError, match="on each count of 14 columns, more than the"):
        MarginalCounts(n_tables=14).for_share(0.1, 1e-5, 1e-9)


@pytest.mark.parametrize("n_tables", [0, -1, 1.5, True, None])
def test_a_number_of_tables_that_is_none_is_refused(n_tables):
    with pytest.raises(ValueError, match="n_tables"):
        MarginalCounts(3, n_tables=n_tables).cost(1, 2)


@pytest.mark.parametrize("sigma", [None, 0, -1, np.nan, np.inf, "3", 2**21])
def test_noise_that_is_none_is_refused(sigma):
    with pytest.raises(ValueError, match="sigma"):
        MarginalCounts(sigma).release([1, 2, 3], NoiseSource())


def test_all_counts_get_independent_noise_of_sigma_empty_ones_too():
    exact = np.repeat([0, 1000], 20_000)
    noise = MarginalCounts(20.0, n_tables=3).release(exact, NoiseSource()) - exact
    assert noise.dtype == np.int64
    for part in np.split(noise, 2):
        assert abs(part.mean()) < 5 * 20 / np.sqrt(len(part))
        assert part.std() == pytest.approx(20, rel=0.03)
    assert abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) < 5 / np.sqrt(len(noise))


def test_two_releases_have_different_noise():
    counts, exact = MarginalCounts(20.0), np.zeros(100, dtype=int)
    assert not np.array_equal(*(counts.release(exact, NoiseSource()) for _ in range(2)))


class Twice(MarginalCounts):
    """Releases all counts twice."""

    def _curve(self, *args):
        return 2 * super()._curve(*args)


def test_a_subclass_has_the_cost_of_its_own_curve():
    curve = Twice(30.0).cost(1, 2).curve
    assert Twice(30.0).cost(1, 2).epsilon(DELTA) == curve.quiet_epsilon(DELTA)
