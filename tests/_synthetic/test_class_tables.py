"""Tests of what is made of noisy counts by class, without a privacy cost."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, softmax
from sklearn.metrics import log_loss

from tests.private import (
    ClassTables,
    n_bins_for,
    nearest_on_simplex,
    spread_log_odds,
    summed,
)

N_UNITS, SIGMA = 10_000, 40.0
SHARES = np.array([0.95, 0.05])
# A column that tells the classes apart, and two that do not.
PROBABILITIES = [
    np.array([[0.9, 0.1], [0.3, 0.7]]),
    np.full((2, 4), 1 / 4),
    np.full((2, 20), 1 / 20),
]
EXACT = [N_UNITS * SHARES[:, np.newaxis] * one for one in PROBABILITIES]


def noisy(random_state, exact=EXACT, sigma=SIGMA):
    return [
        np.rint(one + sigma * random_state.standard_normal(one.shape)) for one in exact
    ]


def released(seed=0, n_units=N_UNITS, exact=EXACT, sigma=SIGMA):
    tables = noisy(np.random.RandomState(seed), exact, sigma)
    return ClassTables.of_counts(tables, sigma, n_units)


@pytest.mark.slow
@given(
    values=st.lists(st.integers(-50, 50), min_size=2, max_size=6),
    total=st.integers(1, 100),
)
def test_the_nearest_table_is_the_one_of_a_quadratic_programme(values, total):
    values = np.array(values, dtype=float)
    found = nearest_on_simplex(values, total)
    assert np.all(found >= 0)
    np.testing.assert_allclose(found.sum(), total)
    programme = minimize(
        lambda x: np.sum((x - values) ** 2),
        np.full(len(values), total / len(values)),
        jac=lambda x: 2 * (x - values),
        bounds=[(0, None)] * len(values),
        constraints={"type": "eq", "fun": lambda x: x.sum() - total},
        method="SLSQP",
        options={"ftol": 1e-12},
    )
    assume(programme.success)
    np.testing.assert_allclose(found, programme.x, atol=1e-4)


def test_totals_of_rows_are_projected_each_on_its_own():
    values = np.array([[5.0, -9, 3], [1, 1, 1]])
    found = nearest_on_simplex(values, np.array([[4.0], [6.0]]))
    np.testing.assert_allclose(found, [[3, 0, 1], [2, 2, 2]])


def test_class_shares_are_unbiased_and_as_noisy_as_stated():
    drawn = [released(seed) for seed in range(400)]
    shares = np.array([one.shares[1] for one in drawn])
    std = drawn[0].shares_std
    assert abs(np.mean(shares) - SHARES[1]) < 5 * std / np.sqrt(len(shares))
    assert np.std(shares) == pytest.approx(std, rel=0.15)


@pytest.mark.parametrize("n_units", [N_UNITS, None])
def test_tables_have_one_total_for_each_class(n_units):
    found = released(n_units=n_units)
    total = N_UNITS if n_units else pytest.approx(N_UNITS, abs=6 * 2 * SIGMA)
    for table in found.tables:
        assert np.all(table >= 0)
        np.testing.assert_allclose(table.sum(axis=1), found.tables[0].sum(axis=1))
        assert table.sum() == (pytest.approx(total) if n_units else total)


@pytest.mark.parametrize("n_units", [60, None])
def test_counts_that_are_all_negative_give_probabilities(n_units):
    tables = [np.full((2, 3), -9), np.full((2, 2), -5)]
    found = ClassTables.of_counts(tables, 10.0, n_units)
    np.testing.assert_allclose(found.shares, 0.5)
    np.testing.assert_allclose(found.tables[0], (n_units or 1) / 6)
    temperature, intercepts = found.calibrated(found.log_odds())
    assert 0 < temperature <= 1
    assert np.isfinite(intercepts).all()


def test_the_moment_is_that_of_rows_with_these_counts():
    found = released()
    odds = found.log_odds()
    classes, cells = found.draw(200_000, seed=1)
    scores = summed(odds, cells)
    own = scores[np.arange(len(classes)), classes]
    seen = np.mean(own - scores @ found.shares)
    assert found.moment(odds) == pytest.approx(seen, rel=0.05)


def test_noise_alone_has_no_moment_to_speak_of():
    exact = [np.full((2, 20), N_UNITS / 40)] * 5
    found = released(exact=exact)
    assert found.signal < 0.7


@pytest.mark.parametrize("copies", [1, 2, 4])
def test_rows_tell_how_far_columns_repeat_each_other(copies):
    # Each column is there several times, so that log-odds are too large by as much.
    exact = [PROBABILITIES[0] * EXACT[1].sum(axis=1, keepdims=True)] * copies
    found = released(exact=exact, sigma=0.1)
    odds = found.log_odds()
    _, [cells] = ClassTables.of_counts(exact[:1], 0.1, N_UNITS).draw(20_000, 0)
    scores = summed(odds, [cells] * copies)
    temperature, intercepts = found.calibrated(odds, scores)
    assert temperature == pytest.approx(1 / copies, rel=0.1)
    means = softmax(temperature * scores + intercepts, axis=1).mean(axis=0)
    np.testing.assert_allclose(means, found.shares, rtol=1e-3)


@pytest.mark.parametrize("sigma", [0.1, 30.0, 200.0])
def test_without_rows_columns_may_repeat_each_other_and_log_loss_stays_low(sigma):
    # Columns come in pairs of copies, of 20 columns.
    rng = np.random.RandomState(0)
    first = rng.dirichlet([5] * 4, size=(10, 2))
    exact = [N_UNITS * SHARES[:, np.newaxis] * one for one in first]
    found = released(exact=[*exact, *exact], sigma=sigma)
    odds = found.log_odds()
    temperature, intercepts = found.calibrated(odds)
    classes, cells = ClassTables.of_counts(exact, 0.1, N_UNITS).draw(20_000, 1)
    scores = summed(odds, [*cells, *cells])
    constant = log_loss(classes, np.tile(SHARES, (len(classes), 1)))
    tempered = softmax(temperature * scores + intercepts, axis=1)
    assert log_loss(classes, tempered) < constant + 0.002
    assert log_loss(classes, tempered) < log_loss(
        classes, softmax(scores + np.log(found.shares), axis=1)
    )


def test_all_is_the_same_for_the_same_counts():
    one, other = (made.calibrated(made.log_odds()) for made in (released(), released()))
    assert one[0] == other[0]
    np.testing.assert_array_equal(one[1], other[1])


def test_a_cell_that_is_none_does_not_count():
    odds = [np.array([[1.0, 2.0], [3.0, 4.0]])] * 2
    cells = [np.array([0, -1, 1]), np.array([1, 0, -1])]
    np.testing.assert_array_equal(summed(odds, cells), [[3, 7], [1, 3], [2, 4]])


def test_more_rows_and_less_noise_give_more_bins():
    numbers = [n_bins_for(n, 2, 40.0) for n in (10, 3000, 30_000, 300_000, 10**9)]
    assert numbers == [4, 4, 8, 32, 32]
    assert n_bins_for(3000, 20, 4.0) < 8 < n_bins_for(3000, 2, 1.0)


def test_log_odds_are_spread_until_their_probabilities_are_calibrated():
    random_state = np.random.RandomState(0)
    is_second = random_state.uniform(size=50_000) < 0.2
    # Those of calibrated probabilities have a variance of the gap within a class.
    calibrated = np.log(0.25) + 3 * (is_second - 0.5)
    drawn = calibrated + 0.7 * np.sqrt(3) * random_state.standard_normal(len(is_second))
    found = spread_log_odds(drawn, 0.2, 3.0)
    assert expit(found).mean() == pytest.approx(0.2, abs=1e-6)
    within = found - 3.0 * is_second
    assert found.std() / drawn.std() == pytest.approx(1.2, abs=0.1)
    assert within.var() > 1.3 * (drawn - 3.0 * is_second).var()


@pytest.mark.parametrize("gap", [None, 0.1, -1.0])
def test_log_odds_that_vary_enough_are_shifted_alone(gap):
    drawn = np.random.RandomState(0).standard_normal(1000)
    found = spread_log_odds(drawn, 0.3, gap)
    assert expit(found).mean() == pytest.approx(0.3, abs=1e-6)
    np.testing.assert_allclose(found - found.mean(), drawn - drawn.mean())
