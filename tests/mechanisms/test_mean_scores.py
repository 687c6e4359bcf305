"""Tests of MeanScores: exact cost of adaptive steps, estimate, bad input."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from numpy.testing import assert_allclose

from sklearn_pate.mechanisms import MeanScores
from tests.private import (
    LONGEST_CLASS,
    LONGEST_VALUE,
    STEPS,
    TeacherScores,
    direction_vector,
    exceeds_noise,
    gdp_epsilon,
    gdp_mu,
    sum_of_classes,
)


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_calibrated_noise_costs_at_most_epsilon(epsilon, delta):
    mechanism = MeanScores().prepared(epsilon=epsilon, delta=delta)
    spent = mechanism.cost(2, 10).epsilon(delta)
    assert 0.999 * epsilon < spent <= epsilon


def test_all_steps_cost_as_much_as_one_release_of_their_lengths():
    sigma, delta = 5000.0, 1e-6
    together = MeanScores(noise_scale=sigma / STEPS).cost(2, 2).epsilon(delta)
    steps = [gdp_mu(sigma, 4 * share * STEPS**2) for share in (0.03, 0.92, 0.05)]
    assert_allclose(together, gdp_epsilon(np.linalg.norm(steps), delta), rtol=1e-9)


def test_the_cost_is_that_of_gaussians_by_dp_accounting():
    noise_scale, delta = 4.0, 1e-5
    accountant = PLDAccountant()
    for share in (0.03, 0.92, 0.05):
        multiplier = noise_scale / (2 * np.sqrt(share))
        accountant.compose(dp_event.GaussianDpEvent(multiplier))
    stated = MeanScores(noise_scale=noise_scale).cost(2, 2).epsilon(delta)
    assert_allclose(stated, accountant.get_epsilon(delta), rtol=2e-4)


def test_the_renyi_curve_is_that_of_a_gaussian():
    curve = MeanScores(noise_scale=4.0).cost(2, 5).curve
    assert_allclose(curve.values, curve.orders * 4 / (2 * 4.0**2))


def test_a_part_of_a_fit_costs_as_much_as_the_fit():
    mechanism = MeanScores(noise_scale=4.0)
    costs = [mechanism.cost(n, 2).epsilon(1e-5) for n in (0, 1, 3, 4, 6)]
    assert costs[0] == costs[1] == costs[2] < costs[3] == costs[4]


def test_a_subclass_states_its_renyi_cost():
    class Other(MeanScores):
        def release(self, sums, noise=None):
            return super().release(sums, noise)

    other, known = Other(noise_scale=4.0), MeanScores(noise_scale=4.0)
    curve = known.cost(2, 2).curve
    assert other.cost(2, 2).epsilon(1e-5) == curve.to_epsilon(1e-5)
    assert known.cost(2, 2).epsilon(1e-5) < curve.to_epsilon(1e-5)


def estimates(teachers, noise_scale, n_runs=1, value=0, **parameters):
    shape = teachers[0].shape
    mechanism = MeanScores(noise_scale=noise_scale, **parameters)
    codes = np.arange(len(teachers)) % (shape[1] + 1)
    class_sum = partial(sum_of_classes, codes, None, 1, shape[1] + 1)
    scores = TeacherScores(map(direction_vector, teachers), shape=shape)
    return [
        mechanism.estimate(scores, class_sum, lambda *_: value) for _ in range(n_runs)
    ]


def test_without_much_noise_the_estimate_is_the_direction_of_the_mean():
    rng = np.random.RandomState(0)
    mean = np.array([[0.1], [0.2], [-0.1], [0.05], [0.02], [0.01]])
    teachers = [mean + 0.02 * rng.standard_normal((6, 1)) for _ in range(500)]
    [one] = estimates(teachers, noise_scale=0.01, value=250 * LONGEST_VALUE)
    of_each = [teacher / np.linalg.norm(teacher) for teacher in teachers]
    assert_allclose(one.directions, np.sum(of_each, axis=0), atol=0.5)
    assert_allclose(one.direction, mean / np.linalg.norm(mean), atol=0.01)
    assert_allclose(one.shares, 0.5, atol=1e-3)
    assert_allclose(one.mean_value, 0.5, atol=1e-3)


@pytest.mark.slow
def test_the_noise_of_the_estimate_has_the_stated_variance():
    runs = estimates(30 * [np.zeros((6, 1))], 2.0, n_runs=2000)
    observed = np.var([one.directions[:, 0] for one in runs], axis=0)
    assert_allclose(observed, runs[0].variance, rtol=0.15)
    # That of the slope depends on the noisy count of the units.
    normal = [one.mean_value / one.mean_value_variance**0.5 for one in runs]
    assert_allclose(np.var(normal), 1, rtol=0.15)


@pytest.mark.slow
def test_shrinking_reduces_the_error_of_a_noisy_direction():
    mean = (np.arange(1, 71.0) ** -1)[:, np.newaxis]
    mean /= np.linalg.norm(mean)
    errors = {
        basis: np.mean(
            [
                np.sum((one.direction - mean) ** 2)
                for one in estimates(60 * [mean], 10.0, 50, basis=basis)
            ]
        )
        for basis in ("rbf", "linear")
    }
    assert errors["rbf"] < 0.5 * errors["linear"]


def test_a_direction_has_length_one_unless_there_is_none():
    for teachers in (100 * [np.ones((6, 2))], 100 * [np.zeros((6, 2))]):
        [one] = estimates(teachers, 5.0)
        assert_allclose(np.linalg.norm(one.direction), 1)
    [one] = estimates([np.zeros((0, 2))], 5.0)
    assert one.direction.shape == (0, 2)


@pytest.mark.slow
def test_a_share_is_never_less_than_the_noise_of_its_count():
    for one in estimates(4 * [np.ones((6, 1))], 20.0, n_runs=20):
        assert np.all(one.shares > 0)
        assert one.shares.sum() == pytest.approx(1)


def test_steps_of_which_the_ledger_has_the_noisy_sum_compute_no_exact_one():
    class Kept(dict):
        """Noisy sums, as a ledger entry keeps them."""

        def stored(self):
            return self

        def open(self, n):
            raise AssertionError("all sums are stored")

    drawn = [np.array([300, 200]), np.arange(6), np.array([70])]
    entry = Kept({n: SimpleNamespace(histogram=one) for n, one in enumerate(drawn)})
    scores, asked = TeacherScores([None], shape=(6, 1)), []
    found = MeanScores(noise_scale=3.0).estimate(
        scores, asked.append, lambda *released: asked.append(released), entry
    )
    assert not asked
    assert_allclose(found.classes * LONGEST_CLASS, drawn[0])


def test_the_values_of_rows_are_asked_for_at_the_released_numbers():
    asked = []
    scores = TeacherScores([direction_vector(np.ones((6, 1)))], shape=(6, 1))
    class_sum = partial(sum_of_classes, np.array([0, 1, 1, 1]), None, 1, 2)
    one = MeanScores(noise_scale=1.0).estimate(
        scores, class_sum, lambda *released: asked.append(released) or 0
    )
    [(direction, shares)] = asked
    assert_allclose(direction, one.direction)
    assert_allclose(shares, one.shares)


def test_more_noise_allows_fewer_coordinates():
    counts = [
        MeanScores(noise_scale=scale).n_coordinates(250, 2)
        for scale in (2.0, 20.0, 80.0, 500.0)
    ]
    assert counts == sorted(counts, reverse=True)
    assert (counts[0], counts[-1]) == (MeanScores().max_coordinates, 4)
    assert MeanScores("linear", noise_scale=500.0).n_coordinates(250, 2) == 500


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"basis": "fourier"}, "basis='fourier' of MeanScores is unknown"),
        ({"max_coordinates": 0}, "max_coordinates=0"),
        ({"noise_scale": -1.0}, "noise_scale=-1.0 of MeanScores must be a positive"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        MeanScores(**{"noise_scale": 3.0} | parameters).cost(2, 2).epsilon(1e-5)


def test_noise_beyond_what_can_be_drawn_is_refused():
    with pytest.raises(ValueError, match=r"epsilon=1e-05 needs noise of .* raise eps"):
        MeanScores().prepared(epsilon=1e-5, delta=1e-5)


def test_a_signal_in_the_first_two_coefficients_is_no_noise():
    coefficients = np.ones((10, 1))
    coefficients[:2, 0] = 3.0, 2.2
    assert exceeds_noise(coefficients, np.ones(10))
    assert not exceeds_noise(np.ones((10, 1)), np.ones(10))
