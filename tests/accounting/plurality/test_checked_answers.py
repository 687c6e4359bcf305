"""Checks and answers in any order, against the enumeration of all adversaries."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.special import ndtr

from sklearn_pate.mechanisms import ConfidentGNMax
from tests.cases import thorough_but
from tests.private import (
    AnswerSteps,
    adaptive_profile,
    check_mu,
    checked_profile,
    gaussian_tests,
    gdp_epsilon,
    lower_hull,
    plurality_tests,
    two_class_mu,
)


def best_of_orders(mus, numbers, epsilon, thresholds):
    """Largest delta of an adversary who also chooses which kind of test comes next."""

    @cache
    def value(state, left):
        if not any(left):
            return max(0.0, -np.expm1(state))
        best = 0.0
        for kind, mu in enumerate(mus):
            if not left[kind]:
                continue
            after = tuple(n - (i == kind) for i, n in enumerate(left))
            for x in thresholds:
                p, q = ndtr(x + mu / 2), ndtr(x - mu / 2)
                found = p * value(state + np.log(q / p), after)
                found += (1 - p) * value(state + np.log((1 - q) / (1 - p)), after)
                best = max(best, found)
        return best

    return value(float(epsilon), tuple(numbers))


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize("mus", [(0.05, 0.2), (0.3, 0.1)])
def test_no_order_of_checks_and_answers_exceeds_the_profile(mus, numbers):
    thresholds = tuple(np.linspace(-1.5, 1.5, 13 if sum(numbers) == 2 else 7))
    checks, answers = (gaussian_tests(mu) for mu in mus)
    profile = checked_profile(checks, answers, *numbers)
    scale = np.sqrt(numbers[0] * mus[0] ** 2 + numbers[1] * mus[1] ** 2)
    for epsilon in scale * np.array([-0.5, 0.0, 0.2, 0.5, 1.0]):
        found = best_of_orders(mus, numbers, epsilon, thresholds)
        assert found <= profile.delta_at(epsilon)


def fixed_order(kinds, finest):
    """Delta on a grid of steps in an order, from the last one to the first."""
    steps = {kind: AnswerSteps.of(replace(kind, tie=finest.tie)) for kind in set(kinds)}
    deltas = np.zeros(6000)
    for kind in kinds:
        deltas = steps[kind].after_one(deltas, None)
    return lower_hull(steps[finest].step * np.arange(6000), deltas)


@pytest.mark.thorough
@pytest.mark.parametrize("n_classes", thorough_but([2], [2, 3]))
def test_fixed_orders_are_below_the_profile_and_close(n_classes):
    checks = gaussian_tests(check_mu(60))
    answers = plurality_tests(20, n_classes)
    profile = checked_profile(checks, answers, 60, 20)
    rng = np.random.default_rng(0)
    orders = [
        [checks] * 60 + [answers] * 20,
        [answers] * 20 + [checks] * 60,
        ([checks] * 3 + [answers]) * 20,
        list(rng.permutation([checks] * 60 + [answers] * 20)),
    ]
    for order in orders:
        exact = fixed_order(order, checks).epsilon_at(1e-5)
        assert exact < profile.epsilon_at(1e-5) < 1.02 * exact


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [(40, 20), (60, 19)])
def test_an_order_exceeds_the_profile_of_fewer_checks_or_answers(numbers):
    """A planted defect: some checks or an answer are not counted."""
    checks, answers = gaussian_tests(check_mu(60)), plurality_tests(20, 2)
    profile = checked_profile(checks, answers, *numbers)
    exact = fixed_order([checks] * 60 + [answers] * 20, checks)
    assert profile.epsilon_at(1e-5) < exact.epsilon_at(1e-5)


@pytest.mark.slow
def test_the_reference_setting_costs_less_than_its_curve():
    mechanism = ConfidentGNMax(200, 150, 40, max_answers=100)
    by_curve = mechanism.cost(1000, 2).curve.to_epsilon(1e-5)
    stated_epsilon = mechanism.cost(1000, 2).epsilon(1e-5)
    assert 1.25 < stated_epsilon < 0.95 * by_curve


def test_no_answers_cost_as_much_as_the_checks():
    checks, answers = gaussian_tests(0.02), gaussian_tests(0.05)
    alone = adaptive_profile(checks, 30)
    assert checked_profile(checks, answers, 30, 0) == alone
    more = checked_profile(checks, answers, 30, 1)
    assert alone.epsilon_at(1e-5) < more.epsilon_at(1e-5)


def test_more_answers_and_checks_never_cost_less():
    checks, answers = gaussian_tests(0.02), gaussian_tests(0.05)
    for numbers in ([(30, 3), (30, 4), (30, 9)], [(10, 4), (20, 4), (50, 4)]):
        costs = [
            checked_profile(checks, answers, *each).epsilon_at(1e-5) for each in numbers
        ]
        assert np.all(np.diff(costs) > 0)


def test_a_release_before_the_checks_adds_its_cost():
    checks, answers = gaussian_tests(0.02), gaussian_tests(0.05)
    alone = checked_profile(checks, answers, 30, 3)
    after = checked_profile(checks, answers, 30, 3, 0.1)
    mu = np.sqrt(30 * 0.02**2 + 3 * 0.05**2 + 0.1**2)
    assert alone.epsilon_at(1e-5) < after.epsilon_at(1e-5) < gdp_epsilon(mu, 1e-5)


def test_too_many_checks_are_not_resolved():
    checks, answers = gaussian_tests(0.02), gaussian_tests(0.05)
    assert checked_profile(checks, answers, 100_001, 10) is None


def test_checks_without_a_resolved_scale_have_the_cost_of_their_curve():
    mechanism = ConfidentGNMax(200, 2.5, 40, max_answers=5)
    by_curve = mechanism.cost(10, 2).curve.to_epsilon(1e-5)
    assert mechanism.cost(10, 2).epsilon(1e-5) == by_curve
    assert check_mu(2.5) is None
    assert two_class_mu(40) is not None


def test_a_number_of_checks_beyond_all_numbers_has_the_cost_of_its_curve():
    mechanism = ConfidentGNMax(200, 150, 40, max_answers=10)
    n_queries = 10**25
    by_curve = mechanism.cost(n_queries, 2).curve.quiet_epsilon(1e-5)
    assert mechanism.cost(n_queries, 2).epsilon(1e-5) == by_curve
