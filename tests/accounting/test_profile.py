"""Properties of any privacy profile."""

import json

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from sklearn_pate.accounting import DEFAULT_ORDERS, PrivacyProfile, RdpCurve
from tests.private import (
    adaptive_profile,
    curve_profile,
    gaussian_profile,
    gaussian_tests,
    gdp_delta,
    lower_hull,
)

# Round-off of one chord.
EXACT = 1e-14
GRID = np.linspace(-6, 12, 361)

deltas = st.floats(0, 1)
pairs = st.lists(st.tuples(st.floats(0, 10), deltas), min_size=1, max_size=8)
profiles = st.one_of(
    pairs.map(lambda found: lower_hull(*zip(*found, strict=True))),
    st.floats(1e-3, 4).map(gaussian_profile),
    st.builds(
        adaptive_profile,
        st.builds(gaussian_tests, st.floats(0.01, 0.5)),
        st.integers(0, 40),
    ),
    st.floats(0.05, 3).map(
        lambda mu: curve_profile(RdpCurve(DEFAULT_ORDERS, DEFAULT_ORDERS * mu**2 / 2))
    ),
)


@pytest.mark.slow
@given(profiles)
def test_delta_decreases_and_is_convex_in_the_exponential_of_epsilon(profile):
    found = profile.delta_at(GRID)
    assert np.all((found >= 0) & (found <= 1))
    assert np.all(np.diff(found) <= EXACT)
    slopes = np.diff(found) / np.diff(np.exp(GRID))
    # A difference of deltas has the round-off of both.
    error = 4 * EXACT / np.diff(np.exp(GRID))
    assert np.all(slopes[:-1] <= slopes[1:] + error[:-1] + error[1:])


@pytest.mark.slow
@given(profiles, st.floats(0, 20))
def test_delta_at_a_negative_epsilon_is_that_of_the_other_order(profile, epsilon):
    mirrored = 1 - np.exp(-epsilon) * (1 - profile.delta_at(epsilon))
    assert profile.delta_at(-epsilon) == pytest.approx(mirrored, abs=EXACT)


@pytest.mark.slow
@given(profiles, st.floats(0, 12))
def test_the_epsilon_of_a_delta_is_the_smallest_one(profile, epsilon):
    delta = profile.delta_at(epsilon)
    found = profile.epsilon_at(delta)
    # Where delta hardly changes, many epsilons have it up to round-off.
    is_flat = profile.delta_at(epsilon + 1e-6) >= delta - EXACT
    assert found <= epsilon + 1e-6 or is_flat
    assert profile.delta_at(found) == pytest.approx(delta, rel=1e-9, abs=EXACT)


@pytest.mark.slow
@given(profiles, st.floats(0, 1))
def test_every_epsilon_that_is_found_has_its_delta(profile, delta):
    epsilon = profile.epsilon_at(delta)
    if np.isfinite(epsilon):
        assert profile.delta_at(epsilon) <= delta + EXACT
    else:
        assert profile.delta_at(1e9) > delta


@pytest.mark.slow
@given(profiles, profiles)
def test_an_intersection_is_below_both(first, second):
    both = first.intersect(second).delta_at(GRID)
    # Deltas below 1e-13 are left out.
    slack = EXACT + 1e-13
    assert np.all(
        both <= np.minimum(first.delta_at(GRID), second.delta_at(GRID)) + slack
    )


@pytest.mark.slow
@given(st.lists(profiles, min_size=1, max_size=3))
def test_the_largest_of_several_is_above_all(several):
    largest = PrivacyProfile.largest(several).delta_at(GRID)
    for one in several:
        assert np.all(largest >= one.delta_at(GRID) - EXACT)


@pytest.mark.slow
@given(profiles, st.floats(1e-9, 0.5))
def test_a_thinned_profile_is_above_and_has_the_stated_pair(profile, delta):
    epsilon = profile.epsilon_at(delta)
    assume(epsilon > 0)
    thinned = profile.thinned(epsilon, delta)
    assert np.all(thinned.delta_at(GRID) >= profile.delta_at(GRID) - EXACT)
    if np.isfinite(epsilon):
        assert thinned.epsilon_at(delta) <= epsilon * (1 + EXACT)
        assert thinned.epsilon_at(delta) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.thorough
@given(st.floats(0.05, 1), st.integers(1, 200))
def test_a_thinned_profile_has_fewer_points_and_nearly_the_same_deltas(mu, n_answers):
    profile = adaptive_profile(gaussian_tests(0.05 * mu), n_answers)
    thinned = profile.thinned(profile.epsilon_at(1e-5), 1e-5)
    assert thinned.epsilons.size <= 250
    resolved = profile.deltas > 1e-10
    epsilons = profile.epsilons[resolved]
    assert np.all(thinned.delta_at(epsilons) <= 1.006 * profile.delta_at(epsilons))


@pytest.mark.thorough
@given(st.floats(0.02, 1.5), st.integers(1, 4))
def test_the_cost_of_several_units_is_above_the_true_one(mu, n_units):
    found = gaussian_profile(mu).of_units(n_units)
    for epsilon in 0.0, mu, 3 * mu, 10 * mu:
        assert gdp_delta(epsilon, n_units * mu) <= found.delta_at(epsilon)


@pytest.mark.thorough
@given(profiles, st.integers(1, 4), st.floats(0, 3))
def test_the_cost_of_several_units_is_at_most_that_of_one_pair(
    profile, n_units, epsilon
):
    # Vadhan (2017), Lemma 2.2.
    of_pair = profile.delta_at(epsilon) * np.exp(epsilon * np.arange(n_units)).sum()
    found = profile.of_units(n_units).delta_at(n_units * epsilon)
    # Only the profile's own points are tried as steps.
    near = profile.epsilons[profile.epsilons <= epsilon][-1]
    of_nearest = profile.delta_at(near) * np.exp(near * np.arange(n_units)).sum()
    assert found <= max(of_pair, min(of_nearest, 1)) * (1 + 1e-9) + 1e-12


def test_several_units_cost_less_than_by_one_pair():
    profile = gaussian_profile(0.3)
    epsilon = profile.epsilon_at(1e-6)
    of_pair = 1e-6 * np.exp(epsilon * np.arange(3)).sum()
    assert profile.of_units(3).epsilon_at(of_pair) < 0.97 * 3 * epsilon


def test_several_units_have_no_profile_beyond_any_useful_epsilon():
    profile = PrivacyProfile([0.0, 800.0], [0.5, 0.0])
    assert profile.of_units(2).delta_at(0.0) == 1


def test_small_deltas_keep_their_digits_beside_large_ones():
    profile = PrivacyProfile([0.0, 1.0], [1.0, 1e-300])
    assert profile.delta_at(1.0) == profile.delta_at(2.0) == 1e-300
    assert 0.9e-15 < profile.delta_at(np.nextafter(1.0, 0) - 5e-16) < 2e-15
    # Pairs that hypothesis found: the first delta was rounded below the second one.
    hull = lower_hull([7.21147744e-26, 3.0], [1e-12, 1e-12])
    assert hull.deltas[0] >= 1e-12


def test_the_smallest_numbers_can_be_thinned():
    assert lower_hull([2.0], [5e-324]).thinned(2.0, 5e-324).delta_at(2.0) == 5e-324


def test_one_unit_has_the_profile_itself():
    profile = gaussian_profile(0.5)
    assert profile.of_units(1) == profile


@pytest.mark.slow
@given(profiles, st.floats(0, 1))
def test_the_best_guess_is_at_least_as_good_as_without_the_release(profile, prior):
    accuracy = profile.attack_accuracy(prior)
    assert max(prior, 1 - prior) - EXACT <= accuracy <= 1
    assert accuracy == pytest.approx(profile.attack_accuracy(1 - prior), abs=EXACT)


def test_the_best_guess_between_two_gaussians_is_right_as_often_as_it_is():
    profile = gaussian_profile(1.0)
    assert profile.attack_accuracy() == pytest.approx(ndtr(0.5), abs=1e-6)
    for prior in 0.05, 0.3, 0.8:
        cut = np.log(prior / (1 - prior))
        right = prior * ndtr(0.5 + cut) + (1 - prior) * ndtr(0.5 - cut)
        assert profile.attack_accuracy(prior) == pytest.approx(right, abs=1e-5)


@pytest.mark.slow
@given(profiles, st.floats(0, 1), st.floats(0, 1))
def test_detections_increase_with_false_alarms_and_are_not_fewer(profile, one, other):
    few, many = sorted((one, other))
    found, more = profile.detection_rate(few), profile.detection_rate(many)
    assert few - EXACT <= found <= 1
    # Exactly 0 is a limit that no point of the profile attains.
    assert found <= more + EXACT or few == 0


@pytest.mark.parametrize("false_alarms", [1e-4, 0.01, 0.1, 0.5, 0.9])
def test_detections_of_a_gaussian_test_are_its_power(false_alarms):
    power = ndtr(ndtri(false_alarms) + 1)
    found = gaussian_profile(1.0).detection_rate(false_alarms)
    assert power <= found <= 1.001 * power


@pytest.mark.slow
@given(profiles)
def test_pairs_as_json_make_the_same_profile(profile):
    written = json.dumps([profile.epsilons.tolist(), profile.deltas.tolist()])
    assert PrivacyProfile(*json.loads(written)) == profile


@given(pairs, st.floats(0.5, 1))
def test_the_hull_of_valid_pairs_is_valid(found, truth):
    def exact(epsilon):
        """Delta of an answer that is true with this probability."""
        ratio = np.exp(epsilon)
        return np.maximum(truth - ratio * (1 - truth), np.maximum(1 - ratio, 0))

    epsilons, deltas = np.array(found).T
    hull = lower_hull(epsilons, np.maximum(deltas, exact(epsilons)))
    assert np.all(hull.delta_at(GRID) >= exact(GRID) - EXACT)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PrivacyProfile([], []), r"epsilons has shape \(0,\)"),
        (lambda: PrivacyProfile([0, 1], [0.5]), r"deltas \(1,\)"),
        (lambda: PrivacyProfile([0.1], [0.5]), "must increase strictly from 0"),
        (lambda: PrivacyProfile([0, np.inf], [1, 0]), "must increase strictly from 0"),
        (lambda: PrivacyProfile([0, 1, 1], [1, 0.5, 0]), "must increase strictly"),
        (lambda: PrivacyProfile([0, 1], [0.5, 0.6]), "must not increase"),
        (lambda: PrivacyProfile([0], [1.5]), "between 0 and 1"),
        (lambda: PrivacyProfile([0], [np.nan]), "between 0 and 1"),
        (lambda: gaussian_profile(1).delta_at(np.nan), "epsilon=nan must be a number"),
        (lambda: gaussian_profile(1).epsilon_at(-0.1), "delta=-0.1 must be a number"),
        (lambda: gaussian_profile(1).attack_accuracy(2), "prior=2 must be"),
        (lambda: gaussian_profile(1).detection_rate("a"), "false_alarms='a' must be"),
        (lambda: gaussian_profile(1).of_units(0), "n_units=0 must be"),
        (lambda: gaussian_profile(1).of_units(1.5), "n_units=1.5 must be"),
    ],
)
def test_values_out_of_range_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_profile_cannot_be_changed():
    profile = gaussian_profile(1.0)
    with pytest.raises(ValueError, match="read-only"):
        profile.deltas[0] = 0.0


def test_no_false_alarm_is_told_beyond_the_range_of_exponentials():
    profile = PrivacyProfile([0.0, 800.0], [0.5, 0.1])
    assert profile.detection_rate(false_alarms=0.0) == 0.1
