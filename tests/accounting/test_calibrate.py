import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_pate.accounting import calibrate_n_queries, calibrate_noise
from sklearn_pate.accounting.bounds import gaussian_worst_case
from sklearn_pate.mechanisms import (
    ConfidentGNMax,
    GNMax,
    GumbelMax,
    LNMax,
    NoisyHistogram,
    NoisySum,
    PermuteAndFlip,
)
from tests.cases import thorough_but
from tests.private import gdp_epsilon, gdp_mu, largest_gdp_mu, least_noise

targets = st.floats(0.05, 20)
deltas = st.sampled_from([1e-9, 1e-5, 1e-3])


def check_calibration(mechanism, n_classes, epsilon, delta, n_queries):
    ready = mechanism.prepared(
        n_teachers=250,
        n_queries=n_queries,
        n_classes=n_classes,
        epsilon=epsilon,
        delta=delta,
    )

    def cost(mechanism):
        """Stated epsilon, also where the best order is the last one."""
        return mechanism.cost(n_queries, n_classes).quiet_epsilon(delta)

    assert cost(ready) <= epsilon
    parameter = mechanism.noise_parameters[-1]
    scale = getattr(ready, parameter)
    scale = scale if parameter == "sigma" else 1 / scale
    # The tight worst cases are known to about one percent.
    with_less = ready._with_scale(scale * 0.97)
    assert cost(with_less) > epsilon


@pytest.mark.slow
@settings(deadline=None, max_examples=4)
@given(epsilon=targets, delta=deltas, n_queries=st.integers(1, 5000))
@pytest.mark.parametrize(
    "mechanism",
    [
        GNMax(),
        pytest.param(LNMax(), marks=pytest.mark.thorough),
        GumbelMax(),
        PermuteAndFlip(),
        pytest.param(ConfidentGNMax(threshold=200), marks=pytest.mark.thorough),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_calibrated_noise_is_enough_and_hardly_more(
    mechanism, epsilon, delta, n_queries
):
    check_calibration(mechanism, 2, epsilon, delta, n_queries)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "mechanism",
    [
        GNMax(),
        pytest.param(LNMax(), marks=pytest.mark.thorough),
        ConfidentGNMax(threshold=200),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_the_same_holds_with_many_classes(mechanism):
    check_calibration(mechanism, 10, epsilon=1.0, delta=1e-5, n_queries=20)


@given(epsilon=targets, delta=deltas, sigma=st.floats(1, 300))
def test_the_number_of_queries_fits_and_one_more_does_not(epsilon, delta, sigma):
    def cost(n_queries):
        return gaussian_worst_case(sigma) * n_queries

    n_queries = calibrate_n_queries(cost, epsilon=epsilon, delta=delta)
    if n_queries:
        assert cost(n_queries).to_epsilon(delta) <= epsilon
    assert cost(n_queries + 1).to_epsilon(delta) > epsilon


@pytest.mark.slow
def test_confident_keeps_the_ratio_of_its_two_scales():
    ready = ConfidentGNMax(threshold=0.8).prepared(
        n_teachers=250, n_queries=100, n_classes=10, epsilon=1, delta=1e-5
    )
    assert ready.sigma_threshold == pytest.approx(3.75 * ready.sigma)
    assert ready.threshold == 200


def test_a_target_that_no_noise_reaches_is_refused():
    def constant(scale, orders):
        return gaussian_worst_case(1, orders)

    with pytest.raises(ValueError, match=r"epsilon=0\.1 cannot be reached"):
        calibrate_noise(constant, epsilon=0.1, delta=1e-5)


@pytest.mark.slow
@given(
    epsilon=st.floats(1e-3, 10),
    delta=st.sampled_from([1e-9, 1e-3, 0.01, 0.05, 0.0999]),
    excess=st.floats(1e-4, 1e4),
    rough=st.sampled_from([None, 0.9, 1.0, 1.3]),
)
def test_a_search_finds_the_smallest_noise_from_anywhere(epsilon, delta, excess, rough):
    def cost(sigma):
        return gdp_epsilon(gdp_mu(sigma), delta)

    best = (2 / largest_gdp_mu(epsilon, delta) ** 2 + 2.25) ** 0.5
    scale = least_noise(
        cost,
        epsilon=epsilon,
        start=best * excess,
        rough_epsilon_at_scale=rough and (lambda sigma: rough * cost(sigma)),
    )
    assert cost(scale) <= epsilon
    assert best * (1 - 1e-9) <= scale <= best * 1.001


def test_a_search_ends_at_the_largest_noise():
    assert least_noise(lambda scale: 2.0, epsilon=1.0, start=3.0) is None
    assert least_noise(lambda scale: math.inf, epsilon=1.0, start=3.0) is None


def prepared(mechanism, delta):
    if isinstance(mechanism, NoisySum):
        return mechanism.prepared(n_parts=2, epsilon=0.5, delta=delta)
    return mechanism.prepared(
        n_teachers=100, n_queries=3, n_classes=3, epsilon=0.5, delta=delta
    )


MECHANISMS = [
    GNMax(),
    LNMax(),
    GumbelMax(),
    PermuteAndFlip(),
    ConfidentGNMax(),
    NoisyHistogram(),
    NoisySum(),
]


@pytest.mark.parametrize("delta", [0.1, 0.37, 0.999, 1, 0, True, float("nan")])
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda one: type(one).__name__)
def test_a_delta_that_is_no_privacy_is_no_target(mechanism, delta):
    with pytest.raises(ValueError, match=r"^delta=.* strictly between 0 and 0\.1; "):
        prepared(mechanism, delta)


@pytest.mark.slow
@pytest.mark.parametrize(
    "delta", [pytest.param(0.01, marks=pytest.mark.thorough), 0.0999]
)
@pytest.mark.parametrize(
    "mechanism",
    thorough_but([one for one in MECHANISMS if type(one) is not LNMax], MECHANISMS),
    ids=lambda one: type(one).__name__,
)
def test_noise_is_calibrated_at_every_other_delta(mechanism, delta):
    ready = prepared(mechanism, delta)
    spent = ready.cost(
        n_queries=1 if mechanism.released == "sum" else 3, n_classes=3
    ).epsilon(delta)
    assert spent <= 0.5
