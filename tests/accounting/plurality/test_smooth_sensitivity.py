import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import log_ndtr, logsumexp, ndtri
from scipy.stats import norm

from sklearn_pate.accounting import RdpCurve
from tests.private import (
    VoteCosts,
    gaussian_optimal_cost,
    pure_optimal_cost,
    release_parameters,
    sanitize,
    smooth_sensitivity_cost,
)

PARAMETERS = {"order": 8.0, "smoothness": 0.02, "noise_scale": 7.0, "delta": 1e-5}
NOISE = np.arange(-120, 121)


def published_cost(order, smoothness, noise_scale):
    """The formula of the 2018 paper (Theorem 23, as coded), which is no upper bound."""
    if 2 * order * smoothness >= 1:
        return np.inf
    return order * np.exp(2 * smoothness) / noise_scale**2 + (
        -np.log1p(-2 * order * smoothness) / 2 + order * smoothness
    ) / (order - 1)


def by_quadrature(order, mean, scale, other_mean, other_scale):
    """Compute D_a(N(mean, scale^2) || N(other_mean, other_scale^2))."""
    # The integrand is itself a Gaussian, so that its bulk is known.
    precision = order / scale**2 - (order - 1) / other_scale**2
    assert precision > 0
    centre = order * mean / scale**2 - (order - 1) * other_mean / other_scale**2
    centre, width = centre / precision, precision**-0.5
    x, step = np.linspace(centre - 12 * width, centre + 12 * width, 4001, retstep=True)
    log_integrand = order * norm.logpdf(x, mean, scale)
    log_integrand += (1 - order) * norm.logpdf(x, other_mean, other_scale)
    return (logsumexp(log_integrand) + math.log(step)) / (order - 1)


def law_of_argmax(counts, weight):
    """Compute the exact law of the argmax with discrete noise, ties broken evenly."""
    law = weight(NOISE) / weight(NOISE).sum()
    values = np.arange(-120, 121 + max(counts))
    at = np.zeros((len(counts), values.size))
    for j, count in enumerate(counts):
        at[j, count : count + NOISE.size] = law
    below = np.cumsum(at, axis=1) - at
    nodes, weights = np.polynomial.legendre.leggauss(len(counts))
    result = np.zeros(len(counts))
    for node, share in zip((nodes + 1) / 2, weights / 2, strict=True):
        beats = below + node * at
        for j in range(len(counts)):
            result[j] += share * np.sum(at[j] * np.delete(beats, j, 0).prod(axis=0))
    return result


def gaussian(sigma):
    return lambda z: np.exp(-(z**2) / (2 * sigma**2))


def laplace(gamma):
    return lambda z: np.exp(-gamma * np.abs(z))


def all_votes(n_teachers, n_classes):
    """List the counts of all votes, abstentions included."""
    return [
        counts
        for counts in itertools.product(range(n_teachers + 1), repeat=n_classes)
        if sum(counts) <= n_teachers
    ]


def distance(first, second):
    """Return how many teachers must change to get from one count to another."""
    change = np.subtract(first, second)
    return int(max(change[change > 0].sum(), -change[change < 0].sum()))


def log_losing(counts, weight):
    law = law_of_argmax(counts, weight)
    return math.log(np.delete(law, np.argmax(counts)).sum())


def threshold_step(n_teachers, threshold, sigma):
    """Return log Pr[pass] and log Pr[fail] by largest count, discrete noise."""
    law = gaussian(sigma)(NOISE) / gaussian(sigma)(NOISE).sum()
    passing = [law[NOISE + count >= threshold].sum() for count in range(n_teachers + 1)]
    return np.log(passing), np.log1p(-np.array(passing))


MECHANISMS = {
    "gaussian": (gaussian(3.0), {"sigma": 3.0, "pure_epsilon": None}, False),
    "small gaussian": (gaussian(1.8), {"sigma": 1.8, "pure_epsilon": None}, False),
    "laplace": (laplace(0.4), {"sigma": None, "pure_epsilon": 0.8}, False),
    "confident": (gaussian(3.0), {"sigma": 3.0, "pure_epsilon": None}, True),
    "confident laplace": (laplace(0.4), {"sigma": None, "pure_epsilon": 0.8}, True),
}


@pytest.fixture(params=MECHANISMS)
def small(request):
    """Give all votes of six teachers, their table and their places in it."""
    weight, noise, confident = MECHANISMS[request.param]
    steps = threshold_step(6, 4, 2.0) if confident else (None, None)
    table = VoteCosts(5.0, 6, **noise, log_pass=steps[0], log_fail=steps[1])
    votes = all_votes(6, 3)
    log_q = np.array([log_losing(counts, weight) for counts in votes])
    largest = np.max(votes, axis=1) if confident else None
    return votes, table, table.locate(log_q, largest), log_q, steps


# --- the cost of the release


def test_the_published_cost_is_far_below_a_divergence_it_should_bound():
    order, smoothness, scale = 30, 0.016, 10.13
    truth = by_quadrature(
        order, 0, scale, math.exp(-smoothness), scale * math.exp(-smoothness)
    )
    assert truth == pytest.approx(2.598, abs=5e-4)
    published = published_cost(order, smoothness, scale)
    assert published == pytest.approx(0.374, abs=5e-4)
    ours = smooth_sensitivity_cost(order, smoothness, scale)
    assert ours == pytest.approx(truth, rel=1e-9)


@pytest.mark.slow
@given(
    order=st.floats(1.05, 60),
    product=st.floats(0.001, 0.45),
    scale=st.floats(0.3, 50),
    quantile=st.floats(0, 3),
    share=st.floats(-1, 1),
    way=st.sampled_from([-1, 1]),
)
def test_no_neighbouring_release_costs_more(
    order, product, scale, quantile, share, way
):
    smoothness = product / order
    cost = smooth_sensitivity_cost(order, smoothness, scale, quantile)
    assume(cost < np.inf)
    other = math.exp(share * smoothness)  # its smooth sensitivity, ours being 1
    mean = quantile * scale
    other_mean = way * min(1, other) + quantile * scale * other
    truth = by_quadrature(order, mean, scale, other_mean, scale * other)
    assert truth <= cost * (1 + 1e-6) + 1e-9


def test_a_release_without_a_guarantee_costs_infinity():
    assert smooth_sensitivity_cost(30, 0.02, 10) == np.inf
    assert smooth_sensitivity_cost(2, 400, 10) == np.inf
    assert published_cost(30, 0.02, 10) == np.inf


# --- the cost and its sensitivity


@pytest.mark.slow
def test_the_table_is_never_below_the_optimal_cost(small):
    _, table, queries, log_q, (log_pass, _) = small
    if log_pass is not None:
        return
    if table.is_gaussian:
        sigma = math.sqrt(2.25 + 2 / (table.cell * table.width / (1 + 1e-6)) ** 2)
        exact = gaussian_optimal_cost(log_q, sigma, 5.0)[0]
    else:
        exact = pure_optimal_cost(log_q, 0.8, 5.0)[0]
    costs = table.costs[queries]
    assert np.all(costs >= exact * (1 - 1e-9))
    assert np.all(costs <= exact * 1.02)


@pytest.mark.parametrize("name", ["confident", "confident laplace"])
def test_no_neighbour_of_a_query_with_a_threshold_costs_more(name):
    weight, noise, _ = MECHANISMS[name]
    log_pass, log_fail = threshold_step(6, 4, 2.0)
    order = 5.0
    table = VoteCosts(order, 6, **noise, log_pass=log_pass, log_fail=log_fail)
    votes = all_votes(6, 3)
    answers = np.array([law_of_argmax(counts, weight) for counts in votes])
    largest = np.max(votes, axis=1)
    passes = np.exp(log_pass[largest])[:, np.newaxis]
    laws = np.hstack([1 - passes, passes * answers])
    q = [np.delete(a, np.argmax(v)).sum() for a, v in zip(answers, votes, strict=True)]
    bounds = table.costs[table.locate(np.log(q), largest)]
    for i, j in itertools.permutations(range(len(votes)), 2):
        if distance(votes[i], votes[j]) == 1:
            moment = np.sum(laws[i] ** order * laws[j] ** (1 - order))
            assert math.log(moment) / (order - 1) <= min(bounds[i], bounds[j])


@pytest.mark.slow
def test_local_sensitivities_cover_every_change_of_one_query(small):
    votes, table, (rows, cells), _, _ = small
    costs = table.costs[rows, cells]
    sensitivities = np.array(
        [
            list(table.local_sensitivities((rows[[i]], cells[[i]])))
            for i in range(len(votes))
        ]
    )
    assert sensitivities.shape == (len(votes), 7)
    distances = np.array([[distance(a, b) for b in votes] for a in votes])
    changes = np.abs(costs[:, np.newaxis] - costs)
    local = np.where(distances == 1, changes, 0).max(axis=1)
    assert np.all(local <= sensitivities[:, 0] * (1 + 1e-12) + 1e-15)
    for d in range(7):
        within = np.where(distances <= d, local, 0).max(axis=1)
        assert np.all(within <= sensitivities[:, d] * (1 + 1e-12) + 1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("smoothness", [0.01, 0.3])
def test_smooth_sensitivity_is_smooth_over_lists_of_queries(small, smoothness):
    votes, table, (rows, cells), _, _ = small
    near = [[j for j, b in enumerate(votes) if distance(a, b) <= 1] for a in votes]
    rng = np.random.default_rng(0)
    for _ in range(150):
        first = rng.integers(len(votes), size=3)
        # One teacher votes on every query, and may change every vote.
        second = np.array([rng.choice(near[i]) for i in first])
        (cost, sensitivity), (other, others) = (
            (
                table.total((rows[i], cells[i])),
                table.smooth_sensitivity((rows[i], cells[i]), smoothness),
            )
            for i in (first, second)
        )
        assert abs(cost - other) <= min(sensitivity, others) * (1 + 1e-12)
        ratio = math.log(sensitivity / others)
        assert abs(ratio) <= smoothness * (1 + 1e-9)


# --- the release


def test_a_draw_at_the_lower_quantile_releases_the_cost_itself():
    log_q = np.full(50, math.log(0.01))
    released = sanitize(
        log_q, n_teachers=100, sigma=20.0, normal=-ndtri(0.975), **PARAMETERS
    )
    exact = gaussian_optimal_cost(log_q, 20.0, 8.0).sum()
    assert exact <= released.cost <= 1.01 * exact + 0.001
    cost = smooth_sensitivity_cost(8.0, 0.02, 7.0, ndtri(0.975))
    assert released.release_cost == cost
    epsilon = RdpCurve([8.0], [released.cost + cost]).quiet_epsilon(1e-5)
    assert epsilon <= released.epsilon <= epsilon + 0.001
    assert released.epsilon == round(released.epsilon, 3)


def test_all_that_is_released_follows_from_one_number_and_public_ones():
    # Other votes, same released cost: nothing else may differ.
    low = {"n_teachers": 100, "sigma": 20.0, "normal": -100.0, **PARAMETERS}
    first = sanitize(np.log(np.full(50, 0.3)), **low)
    second = sanitize(np.log(np.full(50, 1e-4)), **low)
    assert first.cost == 0
    assert first == second


def test_the_released_cost_is_at_most_the_worst_case():
    log_q = np.full(50, math.log(0.01))
    released = sanitize(log_q, n_teachers=100, sigma=20.0, normal=1e9, **PARAMETERS)
    assert released.cost == pytest.approx(50 * 8.0 / 400, abs=1e-3)


@pytest.mark.slow
def test_noise_comes_from_the_operating_system_whatever_the_seed():
    log_q = np.full(50, math.log(0.01))
    costs = set()
    for _ in range(5):
        np.random.seed(0)
        costs.add(sanitize(log_q, n_teachers=100, sigma=20.0, **PARAMETERS).cost)
    assert len(costs) > 1


def test_the_curve_of_the_exact_local_cost_is_refused():
    curve = RdpCurve([2.0, 8.0], [0.1, 0.3])
    with pytest.raises(TypeError, match="exact local cost cannot be sanitized"):
        sanitize(curve, n_teachers=100, sigma=20.0, **PARAMETERS)


def test_a_sanitized_cost_cannot_be_edited():
    released = sanitize([-3.0], n_teachers=10, pure_epsilon=0.1, **PARAMETERS)
    with pytest.raises(dataclasses.FrozenInstanceError):
        released.epsilon = 0.0


def test_a_release_with_a_threshold_costs_less_without_agreement():
    n_teachers = 100
    margins = (np.arange(n_teachers + 1) - 60) / 30.0
    steps = {"log_pass": log_ndtr(margins), "log_fail": log_ndtr(-margins)}
    log_q = np.full(50, math.log(0.6))
    common = {"n_teachers": n_teachers, "sigma": 10.0, **PARAMETERS}
    common["normal"] = -ndtri(0.975)
    alone = sanitize(log_q, **common)
    guarded = sanitize(log_q, largest_counts=np.full(50, 20), **steps, **common)
    assert guarded.cost < alone.cost


@pytest.mark.thorough
def test_release_parameters_are_usable_and_depend_on_no_votes():
    parameters = release_parameters(200, 100, 1e-5, sigma=20.0)
    assert parameters == release_parameters(200, 100, 1e-5, sigma=20.0)
    log_q = np.full(200, math.log(0.01))
    released = sanitize(
        log_q, n_teachers=100, sigma=20.0, delta=1e-5, normal=0.0, **parameters
    )
    worst = RdpCurve([parameters["order"]], [200 * parameters["order"] / 400])
    assert released.epsilon < worst.quiet_epsilon(1e-5)


@pytest.mark.slow
def test_release_parameters_accept_pure_noise():
    parameters = release_parameters(100, 100, 1e-5, pure_epsilon=0.1)
    cost = smooth_sensitivity_cost(
        parameters["order"],
        parameters["smoothness"],
        parameters["noise_scale"],
        ndtri(parameters["confidence"]),
    )
    assert cost < 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"order": 1.0}, "order"),
        ({"order": 60.0}, "no guarantee"),
        ({"smoothness": 0.0}, "smoothness"),
        ({"noise_scale": -1.0}, "noise_scale"),
        ({"confidence": 0.3}, "confidence"),
        ({"delta": 2.0}, "delta"),
        ({"n_teachers": 0}, "n_teachers"),
        ({"sigma": None}, "exactly one"),
        ({"pure_epsilon": 0.1}, "exactly one"),
        ({"sigma": 1.2}, "sigma"),
        ({"sigma": None, "pure_epsilon": -1.0}, "pure_epsilon"),
        ({"log_q": [0.5]}, "log_q"),
        ({"log_pass": [-1.0]}, "passed together"),
        ({"log_pass": [-1.0], "log_fail": [-1.0]}, "shape"),
        ({"log_pass": [-0.7] * 11, "log_fail": [-np.inf] * 11}, "finite"),
        ({"log_pass": [-0.7] * 11, "log_fail": [-0.1] * 11}, "sum to 1"),
        ({"log_pass": [np.log(0.5)] * 11, "log_fail": [np.log(0.5)] * 11}, "largest"),
        (
            {
                "log_pass": [np.log(0.5)] * 11,
                "log_fail": [np.log(0.5)] * 11,
                "largest_counts": [11],
            },
            "n_teachers=10",
        ),
    ],
)
def test_wrong_arguments_are_refused(changes, message):
    arguments = {"log_q": [-1.0], "n_teachers": 10, "sigma": 5.0, **PARAMETERS}
    with pytest.raises(ValueError, match=message):
        sanitize(**(arguments | changes))
