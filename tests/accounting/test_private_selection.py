"""Costs of the best of K trials, against laws that are computed outcome by outcome."""

from decimal import Decimal, localcontext
from itertools import islice
from math import factorial

import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from sklearn_pate.accounting import RdpCurve, calibrate_noise
from sklearn_pate.accounting.bounds import (
    gaussian_worst_case,
    pure_dp_curve,
    threshold_worst_case,
)
from sklearn_pate.accounting.composition import (
    TruncatedNegativeBinomial,
    TruncatedPoisson,
    upper_envelope,
)

ORDERS = 1 + 2.0 ** np.arange(-4, 9, 0.25)
LAWS = {
    "logarithmic": lambda mean: TruncatedNegativeBinomial.of_mean(0, mean),
    "geometric": lambda mean: TruncatedNegativeBinomial.of_mean(1, mean),
    "poisson": TruncatedPoisson.of_mean,
}
each_law = pytest.mark.parametrize("name", LAWS)
means = st.floats(1.01, 200)
# Probabilities of up to six outcomes, from the worst to the best.
weights = st.lists(st.floats(-12, 0), min_size=2, max_size=6)


def generating_function(law, x):
    """E[x^K] in closed form; x may hold values up to 1."""
    if isinstance(law, TruncatedPoisson):
        return np.expm1(law.rate * x) / np.expm1(law.rate)
    if law.eta == 1:
        return law.gamma * x / (1 - (1 - law.gamma) * x)
    return np.log1p(-(1 - law.gamma) * x) / np.log(law.gamma)


def best_of_trials(law, base):
    """The law of the best outcome, when the number of trials has the given law."""
    return np.diff(generating_function(law, np.append(0, np.minimum(base.cumsum(), 1))))


def divergences(p, q, orders=ORDERS):
    """Renyi divergence at each order, the larger of the two directions."""
    log_p, log_q, orders = np.log(p), np.log(q), orders[:, None]
    moments = [
        logsumexp(orders * one + (1 - orders) * other, axis=1)
        for one, other in [(log_p, log_q), (log_q, log_p)]
    ]
    return np.maximum(*moments) / (orders[:, 0] - 1)


def two_laws(of_one, of_other):
    """Two laws on equally many outcomes, all of them possible."""
    n = min(len(of_one), len(of_other))
    laws = [np.exp(np.array(one[:n])) for one in (of_one, of_other)]
    return [law / law.sum() for law in laws]


@each_law
@given(mean=means)
def test_a_law_has_the_given_mean(name, mean):
    law = LAWS[name](mean)
    assert law.mean == pytest.approx(mean, rel=1e-9)


@each_law
@pytest.mark.parametrize("mean", [1.2, 10, 30])
def test_probabilities_add_up_to_one_and_to_the_mean(name, mean):
    law = LAWS[name](mean)
    with localcontext(prec=60):
        probabilities = list(islice(law.probabilities(), 25_000))
        total = sum(probabilities)
        expected = sum(k * p for k, p in enumerate(probabilities, 1))
        assert abs(total - 1) < Decimal("1e-40")
        assert float(expected) == pytest.approx(mean, rel=1e-9)


@each_law
@pytest.mark.parametrize("mean", [1.2, 10])
def test_probabilities_are_those_of_the_papers_definition(name, mean):
    law = LAWS[name](mean)
    k = np.arange(1, 40)
    if name == "poisson":
        factorials = np.array([float(factorial(one)) for one in k])
        expected = law.rate**k / factorials / np.expm1(law.rate)
    else:
        expected = (1 - law.gamma) ** k
        if name == "geometric":
            expected *= law.gamma / (1 - law.gamma)
        else:
            expected /= k * np.log(1 / law.gamma)
    found = [float(p) for p in islice(law.probabilities(), len(k))]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.slow
@each_law
@given(mean=st.floats(1.01, 20), x=st.floats(0, 1))
def test_generating_functions_are_those_of_the_probabilities(name, mean, x):
    law = LAWS[name](mean)
    terms = (
        float(p) * x**k for k, p in enumerate(islice(law.probabilities(), 2000), 1)
    )
    assert sum(terms) == pytest.approx(generating_function(law, x), abs=1e-9)


@pytest.mark.slow
@each_law
@given(mean=means, of_one=weights, of_other=weights)
def test_no_best_of_trials_costs_more_than_its_cost(name, mean, of_one, of_other):
    law = LAWS[name](mean)
    base = two_laws(of_one, of_other)
    curve = RdpCurve(ORDERS, np.maximum(divergences(*base), 0))
    cost = divergences(*(best_of_trials(law, one) for one in base))
    # Differences of generating functions are off by a few units of 1e-16.
    smallest = min(best_of_trials(law, one).min() for one in base)
    if smallest > 1e-9:
        assert np.all(cost <= law.cost(curve).values + 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["logarithmic", "geometric"])
@given(mean=means, epsilon=st.floats(0.01, 4), of_one=weights, tilt=weights)
def test_no_best_of_pure_trials_costs_more_than_its_pure_cost(
    name, mean, epsilon, of_one, tilt
):
    law = LAWS[name](mean)
    one, shape = two_laws(of_one, tilt)
    # Moving by half of epsilon either way, and normalising, is epsilon-DP.
    ranks = (shape - shape.min()) / max(np.ptp(shape), 1e-12)
    other = one * np.exp(epsilon * (ranks - 0.5))
    other /= other.sum()
    ratio = np.abs(np.log(other / one)).max()
    best = [best_of_trials(law, base) for base in (one, other)]
    if min(one.min() for one in best) > 1e-9:
        cost = np.abs(np.log(best[0] / best[1])).max()
        assert cost <= law.pure_cost(ratio, pure_dp_curve(ratio)) + 1e-5


@pytest.mark.parametrize("name", ["logarithmic", "geometric"])
def test_the_pure_cost_is_reached(name):
    law, epsilon = LAWS[name](1e5), 1.0
    rise = np.exp(epsilon)
    # Nearly always the worst outcome, and the middle one far more rarely than the best.
    one, other = ([1, 1e-4 * rise, 1e-2], [1, 1e-4, 1e-2 * rise])
    base = [np.array([2 - sum(law_), *law_[1:]]) for law_ in (one, other)]
    best = [best_of_trials(law, law_) for law_ in base]
    reached = np.abs(np.log(best[0] / best[1])).max()
    pure = law.pure_cost(epsilon, pure_dp_curve(epsilon))
    assert pure - 0.05 < reached < pure


@pytest.mark.slow
@each_law
@pytest.mark.parametrize("mean", [2, 10, 100])
@pytest.mark.parametrize("sigma", [0.7, 5, 40])
def test_costs_are_those_of_another_library(name, mean, sigma):
    law, curve = LAWS[name](mean), gaussian_worst_case(sigma)
    if name == "poisson":
        # It implements the law without the condition of at least one trial.
        its_mean, shape, orders = law.rate, np.inf, curve.orders
        values, more = curve.values, np.log(mean / law.rate) / (curve.orders - 1)
    else:
        its_mean, shape, more = mean, {"logarithmic": 0, "geometric": 1}[name], 0
        # At order 1, where it multiplies the cost by 0.
        orders, values = np.append(1, curve.orders), np.append(0, curve.values)
    known = rdp_privacy_accountant._compute_rdp_repeat_and_select(
        orders, values, its_mean, shape
    )
    known = known[-len(curve.orders) :] + more
    # What holds at an order holds below it.
    known = np.minimum.accumulate(known[::-1])[::-1]
    np.testing.assert_allclose(law.cost(curve).values, known, rtol=1e-7)


@pytest.mark.parametrize("name", ["logarithmic", "geometric"])
@given(mean=means, epsilon=st.floats(0.1, 10))
def test_the_cost_of_pure_trials_has_the_pure_cost_as_its_limit(name, mean, epsilon):
    law = LAWS[name](mean)
    curve = pure_dp_curve(epsilon)
    pure = law.pure_cost(epsilon, curve)
    assert law.cost(curve).values[-1] == pytest.approx(pure, abs=1e-3)
    assert pure <= (2 + law.eta) * epsilon


def test_poisson_has_no_pure_cost():
    assert TruncatedPoisson.of_mean(10).pure_cost(1.0, pure_dp_curve(1.0)) is None


@each_law
def test_costs_rise_with_the_expected_number_of_trials(name):
    curve = gaussian_worst_case(40.0)
    costs = [LAWS[name](mean).cost(curve).to_epsilon(1e-5) for mean in (2, 10, 100)]
    assert curve.to_epsilon(1e-5) < costs[0] < costs[1] < costs[2]


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1, 2])
def test_ten_logarithmic_trials_cost_about_twice_a_fit(epsilon):
    law = LAWS["logarithmic"](10)
    sigma = calibrate_noise(gaussian_worst_case, epsilon=epsilon, delta=1e-5)
    best = law.cost(gaussian_worst_case(sigma))
    assert best.to_epsilon(1e-5) < 2.2 * epsilon
    assert law.pure_cost(epsilon, pure_dp_curve(epsilon)) <= 2 * epsilon


@each_law
def test_a_trial_without_a_finite_cost_gives_an_infinite_cost(name):
    curve = RdpCurve(ORDERS, np.full(len(ORDERS), np.inf))
    assert np.all(np.isinf(LAWS[name](10).cost(curve).values))


@each_law
@pytest.mark.parametrize("mean", [1, 0.5, -1, np.nan, np.inf, "ten"])
def test_a_number_of_trials_that_cannot_be_expected_is_refused(name, mean):
    with pytest.raises(ValueError, match="mean_n_trials="):
        LAWS[name](mean)


@pytest.mark.slow
@given(of_one=weights, of_other=weights)
def test_the_cost_of_a_random_choice_is_the_largest_one(of_one, of_other):
    # Two candidates, each with its own pair of laws; the choice is published too.
    first = two_laws(of_one, of_other)
    second = two_laws(of_other, of_one[::-1])
    curves = [
        RdpCurve(ORDERS, np.maximum(divergences(*pair), 0)) for pair in (first, second)
    ]
    mixed = [np.append(0.3 * a, 0.7 * b) for a, b in zip(first, second, strict=True)]
    assert np.all(divergences(*mixed) <= upper_envelope(curves).values + 1e-9)


def test_costs_at_different_orders_are_refused():
    with pytest.raises(ValueError, match="different Renyi orders"):
        upper_envelope([gaussian_worst_case(1), gaussian_worst_case(1, ORDERS)])


@given(st.floats(0.5, 50))
def test_the_cost_of_a_noisy_score_is_that_of_its_law(sigma):
    reach = int(12 * sigma) + 2
    z = np.arange(-reach, reach + 2)
    p, q = (np.exp(-((z - shift) ** 2) / (2 * sigma**2)) for shift in (0, 1))
    orders = np.array([1.5, 2, 3])
    cost = divergences(p / p.sum(), q / q.sum(), orders)
    assert np.all(cost <= threshold_worst_case(sigma, orders).values + 1e-9)


@each_law
@pytest.mark.parametrize("more", [3e-16, 1e-14, 1e-12, 1e-9, 1e-6])
def test_hardly_more_than_one_trial_costs_no_less_than_it_does(name, more):
    law = LAWS[name](1 + more)
    with localcontext(prec=60):
        probabilities = islice(law.probabilities(), 60)
        mean = sum(k * of_k for k, of_k in enumerate(probabilities, start=1))
    assert law.mean >= float(mean) * (1 - 3e-16)
    assert law.mean == pytest.approx(1 + more, rel=3e-15)


@each_law
def test_very_many_trials_have_a_law(name):
    assert LAWS[name](1e100).mean == pytest.approx(1e100)
