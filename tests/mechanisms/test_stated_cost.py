"""The smaller of two costs is stated: that of a Renyi curve, and the exact one."""

import numpy as np
import pytest

from sklearn_pate.accounting import calibrate_noise
from sklearn_pate.accounting.bounds import gaussian_worst_case
from sklearn_pate.mechanisms import (
    ConfidentGNMax,
    GNMax,
    GumbelMax,
    InteractiveGNMax,
    LNMax,
    MeanScores,
    NoisyHistogram,
    NoisySum,
    PermuteAndFlip,
)
from sklearn_pate.testing import seeded_noise
from tests.private import (
    SEEDED,
    NoiseSource,
    adaptive_profile,
    as_drawn,
    curve_profile,
    gaussian_plurality,
    gdp_epsilon,
    plurality_tests,
)
from tests.seeding import equal_noise

DELTA = 1e-5


class Classical(GNMax):
    """States the cost of 2018."""

    def _cost(self, n_queries, n_answers, n_classes, orders):
        return gaussian_worst_case(self.sigma, orders) * n_answers


class Twice(NoisyHistogram):
    """Releases every histogram twice."""

    def _cost(self, n_queries, n_answers, n_classes, orders):
        return gaussian_worst_case(self.sigma, orders) * (2 * n_answers)


class WithPilot(GNMax):
    """Releases something else first, and adds its cost to the curve of the fit."""

    def _curve(self, n_queries, n_classes, orders):
        answers = super()._curve(n_queries, n_classes, orders)
        return answers + gaussian_worst_case(5, orders)


class InformedChecks(ConfidentGNMax):
    """Also releases what decides whether a query is answered."""

    def _answer(self, counts, noise):
        return super()._answer(counts, noise)


class SummedTwice(NoisySum):
    """Releases every sum twice, and states the sum of both costs."""

    def _curve(self, n_queries, n_classes, orders):
        return 2 * super()._curve(n_queries, n_classes, orders)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize(("sigma", "n_queries"), [(3, 1), (10, 7), (40, 100)])
def test_answers_have_their_exact_cost(sigma, n_queries, n_classes):
    mechanism = GNMax(sigma)
    exact = adaptive_profile(plurality_tests(sigma, n_classes), n_queries)
    by_curve = mechanism.cost(n_queries, n_classes).curve.quiet_epsilon(DELTA)
    stated = mechanism.cost(n_queries, n_classes).epsilon(DELTA)
    assert stated == min(exact.epsilon_at(DELTA), by_curve)
    assert stated < 0.98 * by_curve or sigma == 3
    profile = mechanism.cost(n_queries, n_classes).profile
    epsilons = np.linspace(0, 3, 50)
    assert np.all(profile.delta_at(epsilons) <= exact.delta_at(epsilons) + 1e-13)


RENYI_ONLY = [
    (GNMax(2.9), 10, 2),
    (GNMax(2.9), 10, 3),
    (GNMax(10_001), 100, 2),
    (GNMax(5000), 100_001, 2),
    (Classical(40), 100, 2),
    (Twice(40), 100, 2),
    (WithPilot(40), 100, 2),
    (SummedTwice(noise_scale=20), 1, 2),
    (ConfidentGNMax(200, 2.5, 40), 100, 2),
    (InformedChecks(200, 150, 40), 100, 2),
    (LNMax(0.05), 100, 3),
    (GumbelMax(2), 100, 2),
    (PermuteAndFlip(1e-5), 100, 2),
]


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "n_queries", "n_classes"), RENYI_ONLY)
def test_other_answers_have_the_cost_of_their_curve(mechanism, n_queries, n_classes):
    cost = mechanism.cost(n_queries, n_classes)
    assert cost.epsilon(DELTA) == cost.curve.quiet_epsilon(DELTA)
    assert cost.profile == curve_profile(cost.curve)


EXACT = [
    (ConfidentGNMax(200, 60, 20, max_answers=20), 60, 2),
    (ConfidentGNMax(200, 60, 20, max_answers=20), 60, 5),
    (InteractiveGNMax(200, 60, 20, max_answers=20, n_teachers=250), 60, 2),
    (LNMax(0.05), 100, 2),
    (GumbelMax(0.02), 100, 2),
    (GumbelMax(0.02), 100, 7),
    (PermuteAndFlip(0.02), 100, 7),
]


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "n_queries", "n_classes"), EXACT)
def test_other_answers_cost_less_than_their_curve(mechanism, n_queries, n_classes):
    cost = mechanism.cost(n_queries, n_classes)
    by_curve, stated = cost.curve.quiet_epsilon(DELTA), cost.epsilon(DELTA)
    assert 0.9 * by_curve < stated < 0.99 * by_curve
    assert cost.profile.epsilon_at(DELTA) == pytest.approx(stated, rel=1e-9)


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12, 1e-30, 1e-200])
@pytest.mark.parametrize(("sigma", "n_queries"), [(3, 1), (40, 100), (20, 600)])
def test_the_stated_cost_is_never_above_that_of_the_curve(sigma, n_queries, delta):
    mechanism = GNMax(sigma)
    by_curve = mechanism.cost(n_queries, 2).curve.quiet_epsilon(delta)
    assert mechanism.cost(n_queries, 2).epsilon(delta) <= by_curve


@pytest.mark.parametrize(("sigma", "n_queries"), [(5, 1), (40, 100), (100, 3000)])
def test_histograms_have_the_exact_cost_of_gaussian_noise(sigma, n_queries):
    mechanism = NoisyHistogram(sigma)
    mu = np.sqrt(2 * n_queries / (sigma**2 - 2.25))
    for n_classes in 2, 10:
        stated = mechanism.cost(n_queries, n_classes).epsilon(DELTA)
        assert stated == pytest.approx(gdp_epsilon(mu, DELTA), rel=1e-9)
        profile = mechanism.cost(n_queries, n_classes).profile
        assert stated <= profile.epsilon_at(DELTA) <= 1.0002 * stated


def test_the_sum_of_several_parts_has_the_exact_cost_of_gaussian_noise():
    mechanism = NoisySum(2.0, n_parts=3)
    stated = mechanism.cost(4, 10).epsilon(DELTA)
    assert stated == pytest.approx(gdp_epsilon(np.sqrt(2 * 3 * 4) / 2, DELTA), rel=1e-6)


@pytest.mark.parametrize("mechanism", [GNMax(40), NoisyHistogram(40), NoisySum(2.0)])
def test_seeded_noise_has_no_profile(mechanism):
    honest = mechanism.cost(10, 2)
    assert as_drawn(honest) == (honest, ())
    with seeded_noise(0):
        assert mechanism.cost(10, 2).epsilon(DELTA) == honest.epsilon(DELTA)
        cost, assumptions = as_drawn(honest)
    assert cost.epsilon(DELTA) == np.inf
    assert cost.profile.delta_at(100.0) == 1
    assert assumptions == (SEEDED,)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "n_queries"),
    [
        pytest.param(0.5, 40, marks=pytest.mark.thorough),
        (1, 100),
        pytest.param(2, 286, marks=pytest.mark.thorough),
    ],
)
def test_two_classes_need_seven_per_cent_less_noise_than_by_the_curve(
    epsilon, n_queries
):
    ready = GNMax().prepared(
        n_teachers=250, n_queries=n_queries, n_classes=2, epsilon=epsilon
    )
    assert 0.999 * epsilon < ready.cost(n_queries, 2).epsilon(DELTA) <= epsilon
    by_curve = calibrate_noise(
        lambda sigma, orders: GNMax(sigma).cost(n_queries, 2, orders=orders).curve,
        epsilon=epsilon,
        delta=DELTA,
    )
    assert 0.92 * by_curve < ready.sigma < 0.935 * by_curve


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 1, 5, 40])
def test_noise_of_one_answer_is_calibrated_from_below(epsilon):
    ready = GNMax().prepared(n_teachers=250, n_queries=1, n_classes=2, epsilon=epsilon)
    # Six digits of sigma, and its precision.
    assert 0.995 * epsilon < ready.cost(1, 2).epsilon(DELTA) <= epsilon


@pytest.mark.parametrize("counts", [[3, 3], [103, 100], [0, 7]])
def test_an_answer_of_two_depends_on_the_difference_and_a_coin_only(counts):
    n_draws, sigma = 5000, 3
    sources = [equal_noise()(NoiseSource)() for _ in range(4)]
    counts = np.tile(counts, (n_draws, 1))
    answers = gaussian_plurality(counts, sigma, sources[0])
    # Votes for both classes add nothing.
    np.testing.assert_array_equal(
        answers, gaussian_plurality(counts + 1000, sigma, sources[1])
    )
    noisy = counts + sources[2].discrete_gaussian(sigma, counts.shape)
    difference = noisy[:, 0] - noisy[:, 1]
    expected = (difference < 0).astype(int)
    is_tie = difference == 0
    sources[3].discrete_gaussian(sigma, counts.shape)
    expected[is_tie] = sources[3].argmax(np.zeros((is_tie.sum(), 2)))  # the coin
    np.testing.assert_array_equal(answers, expected)


class Louder:
    """A mix-in that releases more than the mechanism beside it."""

    def _answer(self, counts, noise):
        return noise.argmax(self.release(counts, noise))


def test_a_mixin_that_releases_more_drops_the_exact_cost():
    class LoudGNMax(Louder, GNMax):
        pass

    class LoudScores(MeanScores):
        def estimate(self, *given):
            return super().estimate(*given)

    assert GNMax(sigma=5).cost(10, 2).exact is not None
    assert LoudGNMax(sigma=5).cost(10, 2).exact is None
    assert MeanScores(noise_scale=5).cost(10, 2).exact is not None
    assert LoudScores(noise_scale=5).cost(10, 2).exact is None


def answering_twice(kind, **methods):
    """Return a subclass that draws each answer twice, at twice the cost."""

    def respond(self, *given):
        kind.respond(self, *given)
        return kind.respond(self, *given)

    def _cost(self, *given):
        return kind._cost(self, *given) * 2

    return type("Twice", (kind,), {"respond": respond, "_cost": _cost} | methods)


@pytest.mark.parametrize(
    "mechanism",
    [
        NoisyHistogram(sigma=5),
        ConfidentGNMax(20, sigma_threshold=20, sigma=5),
        InteractiveGNMax(20, sigma_threshold=20, sigma=5, n_teachers=60),
    ],
)
def test_a_subclass_without_tests_of_an_answer_has_no_exact_cost(mechanism):
    kind = answering_twice(type(mechanism), _answer_tests=lambda self, n_classes: None)
    assert mechanism.cost(10, 3).exact is not None
    assert kind(**mechanism.get_params()).cost(10, 3).exact is None


def test_a_method_that_a_class_gets_later_drops_the_exact_cost():
    class Later(GNMax):
        pass

    assert Later(sigma=5).cost(10, 3).exact is not None
    Later._cost = answering_twice(GNMax)._cost
    assert Later(sigma=5).cost(10, 3).exact is None
    expected = Later(sigma=5).cost(10, 3).curve.to_epsilon(1e-5)
    assert Later(sigma=5).cost(10, 3).epsilon(1e-5) == expected


def test_an_exact_cost_does_not_hold_for_the_release_of_another_parent():
    class Stated(GNMax):
        def _exact(self, *given):
            return super()._exact(*given)

    both = type("Both", (Stated, answering_twice(GNMax)), {})
    assert Stated(sigma=5).cost(10, 3).exact is not None
    assert both(sigma=5).cost(10, 3).exact is None


@pytest.mark.thorough
def test_noise_is_calibrated_by_the_cost_that_a_subclass_states():
    class Overridden(GNMax):
        def cost(self, *given, **named):
            return super().cost(*given, **named)

    planned = {"n_teachers": 60, "n_queries": 10, "n_classes": 3, "epsilon": 1.0}
    ready = Overridden().prepared(**planned)
    assert ready.cost(10, 3).epsilon(1e-5) == pytest.approx(1.0, rel=1e-3)
    assert ready.cost(10, 3).exact is None
    assert ready.sigma > GNMax().prepared(**planned).sigma
