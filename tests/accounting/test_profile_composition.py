"""Composition of privacy profiles, against closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_pate.accounting import PrivacyProfile, compose_profiles
from sklearn_pate.mechanisms import GNMax
from tests.private import gaussian_profile, gdp_delta


@pytest.mark.thorough
@given(st.floats(0.01, 2.0), st.floats(0.01, 2.0))
def test_gaussian_releases_compose_to_a_gaussian_one(first, second):
    profile = compose_profiles([gaussian_profile(first), gaussian_profile(second)])
    mu = np.hypot(first, second)
    for epsilon in mu * np.array([0.0, 0.5, 1.0, 2.0, 4.0]):
        exact = gdp_delta(epsilon, mu)
        assert exact <= profile.delta_at(epsilon) <= 1.01 * exact + 1e-10


@pytest.mark.thorough
@given(st.floats(0.05, 1.5), st.floats(0.05, 1.5))
def test_pure_releases_compose_to_their_known_profile(first, second):
    def laws(epsilon):
        p = 1 / (1 + np.exp(-epsilon))
        return np.array([p, 1 - p]), np.array([1 - p, p])

    pairs = [PrivacyProfile([0.0, e], [np.tanh(e / 2), 0.0]) for e in (first, second)]
    profile = compose_profiles(pairs)
    p, q = (
        np.outer(one, other)
        for one, other in zip(laws(first), laws(second), strict=True)
    )
    for epsilon in np.linspace(0, first + second, 7)[:-1]:
        exact = np.maximum(p - np.exp(epsilon) * q, 0).sum()
        assert exact <= profile.delta_at(epsilon) * (1 + 1e-12)
        assert profile.delta_at(epsilon) <= exact + 2e-3
    assert profile.delta_at(first + second + 0.01) < 1e-9


def test_a_pair_composes_by_adding_both_numbers_at_least():
    one = PrivacyProfile([0.0, 1.0], [0.5, 1e-6])
    both = compose_profiles([one, one])
    # Basic composition is an upper bound, up to the rounding of the grid.
    assert both.delta_at(2.01) <= 2e-6
    assert both.delta_at(2.01) >= 1.9e-6


def test_two_fits_cost_less_than_twice_and_more_than_one_of_both():
    mechanism = GNMax(42.5)
    one, both = (mechanism.cost(n, 2).profile for n in (100, 200))
    composed = compose_profiles([one, one])
    assert both.epsilon_at(1e-5) < composed.epsilon_at(1e-5) < 2 * one.epsilon_at(1e-5)
    assert compose_profiles([one]) is one


def test_a_release_without_a_guarantee_has_none_together():
    none = PrivacyProfile([0.0], [1.0])
    assert compose_profiles([gaussian_profile(0.5), none]).delta_at(3.0) >= 1 - 1e-9


def test_no_profiles_are_refused():
    with pytest.raises(ValueError, match="profiles is empty"):
        compose_profiles([])


def test_profiles_beyond_what_is_resolved_are_upper_bounds():
    wide = PrivacyProfile([0.0, 1000.0], [0.5, 0.0])
    assert compose_profiles([wide, wide]).delta_at(400.0) >= 0.4
