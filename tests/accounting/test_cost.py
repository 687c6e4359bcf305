"""Costs of releases, and their sums."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_pate.accounting import compose_profiles
from sklearn_pate.mechanisms import GNMax, LNMax, MeanScores, NoisyHistogram, NoisySum
from tests.private import MarginalCounts, gdp_epsilon

DELTA = 1e-5


@pytest.mark.slow
@given(st.floats(5, 500), st.floats(5, 500))
def test_squares_of_mu_add_up(one, other):
    first, second = NoisyHistogram(one).cost(3, 2), NoisyHistogram(other).cost(2, 2)
    both, mu = first + second, np.hypot(first.mu, second.mu)
    assert both.mu == mu
    assert both.epsilon(DELTA) <= gdp_epsilon(mu, DELTA)


def test_answers_after_a_gaussian_release_cost_what_both_profiles_do():
    first, answers = MarginalCounts(30.0).cost(1), GNMax(40.0).cost(50, 2)
    both = first + answers
    apart = compose_profiles([first.profile, answers.profile]).epsilon_at(DELTA)
    assert max(first.epsilon(DELTA), answers.epsilon(DELTA)) < both.epsilon(DELTA)
    # Both are upper bounds on grids of their own.
    assert both.epsilon(DELTA) == pytest.approx(apart, rel=1e-4)
    assert (answers + first).epsilon(DELTA) == both.epsilon(DELTA)


def test_several_gaussian_releases_before_answers_have_squares_of_mu_that_add_up():
    one, other = NoisyHistogram(30.0).cost(1, 2), NoisyHistogram(40.0).cost(2, 2)
    answers = GNMax(40.0).cost(50, 2)
    both = (one + other) + answers
    assert (one + (other + answers)).epsilon(DELTA) == both.epsilon(DELTA)


@pytest.mark.slow
def test_without_a_gaussian_release_only_curves_add_up():
    one = LNMax(0.05).cost(20, 2)
    both = one + one
    assert both.exact is None
    assert both.epsilon(DELTA) == (2 * one.curve).to_epsilon(DELTA)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism", [GNMax(20.0), LNMax(0.1), MeanScores(noise_scale=5.0), NoisySum(9.0)]
)
def test_delta_and_epsilon_belong_together(mechanism):
    cost = mechanism.cost(2, 2)
    epsilon = cost.profile.epsilon_at(DELTA)
    assert cost.delta(epsilon) == pytest.approx(DELTA, rel=1e-6)
    # The curve may be below its profile, which has finitely many points.
    assert 0.999 * epsilon < cost.epsilon(DELTA) <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize(
    ("one", "other", "named"),
    [
        (
            MarginalCounts(9.0, add_remove=True).cost(1),
            GNMax(9.0).cost(1),
            "add-remove",
        ),
        (GNMax(9.0).cost(1), GNMax(9.0).cost(1, unit="group"), "unit='group'"),
    ],
)
def test_costs_of_other_units_or_relations_do_not_add_up(one, other, named):
    with pytest.raises(ValueError, match=named):
        one + other


def test_seeded_noise_has_no_finite_cost():
    cost = GNMax(9.0).cost(1).unbounded()
    assert cost.exact is None
    assert cost.mu is None
    assert cost.epsilon(DELTA) == (cost + GNMax(9.0).cost(1)).epsilon(DELTA) == np.inf
