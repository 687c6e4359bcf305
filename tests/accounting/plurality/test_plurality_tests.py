"""Answers on three and more classes: the tests that dominate them."""

import numpy as np
import pytest
from scipy.special import gammaln, ndtr, ndtri

from sklearn_pate.accounting import PrivacyProfile
from tests.accounting.plurality.adaptive_game import (
    best_delta_of_laws,
    lattice_deltas,
    plurality_law,
    threshold_law,
)
from tests.cases import thorough_but
from tests.private import (
    AnswerSteps,
    _is_coin_and_test,
    _least_coin,
    adaptive_profile,
    gaussian_tests,
    lower_hull,
    plurality_tests,
    two_class_mu,
)

IN_UNITS_OF_MU = np.array([-1, 0, 0.2, 0.5, 0.8, 1.2])


def moved(counts):
    """All neighbours of counts in which one vote moves, begins or ends."""
    for c in range(len(counts)):
        for change in (-1, 1):
            yield tuple(n + change * (i == c) for i, n in enumerate(counts))
        for d in range(len(counts)):
            if c != d:
                yield tuple(n - (i == c) + (i == d) for i, n in enumerate(counts))


def laws_of_neighbours(sigma, votes):
    pairs = [
        (plurality_law(sigma, counts), plurality_law(sigma, other))
        for counts in votes
        for other in moved(counts)
    ]
    p, q = np.array(pairs).transpose(1, 0, 2)
    likely = np.minimum(p, q).min(axis=1) > 1e-12
    p, q = p[likely], q[likely]
    return np.concatenate([p, q]), np.concatenate([q, p])


def leads(sigma, step):
    """Votes of three classes around the worst case, at both sides of it."""
    at = np.unique(np.round(sigma * np.arange(-1.2, 2.01, step)).astype(int))
    return [(100 + x, 100 + y, 100) for x in at for y in at if x >= y]


@pytest.mark.thorough
@pytest.mark.parametrize(("sigma", "n_answers"), [(3, 1), (4, 2), (12, 1), (41, 1)])
def test_no_choice_of_votes_on_three_classes_exceeds_the_profile(sigma, n_answers):
    laws = laws_of_neighbours(sigma, leads(sigma, 0.2 if n_answers == 1 else 0.4))
    profile = adaptive_profile(plurality_tests(sigma, 3), n_answers)
    for epsilon in two_class_mu(sigma) * IN_UNITS_OF_MU:
        assert best_delta_of_laws(*laws, n_answers, epsilon) <= profile.delta_at(
            epsilon
        )


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", thorough_but([4], [4, 7]))
def test_random_votes_of_more_classes_do_not_exceed_the_profile(n_classes):
    sigma = 8
    rng = np.random.default_rng(n_classes)
    votes = [tuple(50 + rng.integers(-8, 9, n_classes)) for _ in range(20)]
    laws = laws_of_neighbours(sigma, votes)
    profile = adaptive_profile(plurality_tests(sigma, n_classes), 1)
    for epsilon in two_class_mu(sigma) * IN_UNITS_OF_MU:
        assert best_delta_of_laws(*laws, 1, epsilon) <= profile.delta_at(epsilon)


@pytest.mark.slow
def test_one_test_of_three_outcomes_in_every_answer_is_below_the_profile():
    sigma, n_answers = 12, 40
    profile = adaptive_profile(plurality_tests(sigma, 3), n_answers)
    p, q = plurality_law(sigma, (108, 108, 100)), plurality_law(sigma, (107, 109, 100))
    # Numbers of answers of each class: a trinomial law.
    i, j = np.meshgrid(*2 * [np.arange(n_answers + 1)], indexing="ij")
    answers = np.stack([i, j, n_answers - i - j])[:, i + j <= n_answers]
    log_n = gammaln(n_answers + 1) - gammaln(answers + 1).sum(axis=0)
    log_p, log_q = (log_n + np.log(law) @ answers for law in (p, q))
    for epsilon in (0.5, 1.0, 2.0):
        delta = np.sum(np.maximum(np.exp(log_p) - np.exp(epsilon + log_q), 0))
        assert epsilon <= profile.epsilon_at(delta) <= 1.15 * epsilon


def exceeded_by(tests, sigma):
    """Check whether a threshold exceeds one more answer after twenty somewhere."""
    steps = AnswerSteps.of(tests)
    one_more = np.zeros(steps.n_points(21))
    for n_before in range(21):
        twenty, one_more = one_more, steps.after_one(one_more, steps.mu_of(n_before))
    grid = steps.step * np.arange(len(one_more))
    after = PrivacyProfile(grid[: len(twenty)], twenty)
    u = two_class_mu(sigma) * np.linspace(-2, 12, 29)
    bound = PrivacyProfile(grid, one_more).delta_at(u)
    at = np.unique(np.round(sigma * np.arange(-1.2, 2.01, 0.1)).astype(int))
    pairs = [
        (threshold_law(sigma, x, y), threshold_law(sigma, x - 1, y + 1))
        for x in at
        for y in at
    ]
    p, q = np.array(pairs + [pair[::-1] for pair in pairs]).transpose(1, 0, 2)
    values = sum(
        p[:, [i]] * after.delta_at(u + np.log(q[:, [i]] / p[:, [i]])) for i in range(3)
    )
    return np.any(values > bound * (1 + 1e-7))


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [12, 41])
def test_no_leads_exceed_one_more_answer_after_twenty(sigma):
    assert not exceeded_by(plurality_tests(sigma, 3), sigma)


@pytest.mark.slow
def test_leads_exceed_one_more_answer_of_two_outcomes_after_twenty():
    """A planted defect: all leads are taken for a coin and a test of two outcomes."""
    sigma = 41
    assert exceeded_by(plurality_tests(sigma, 2), sigma)
    assert exceeded_by(gaussian_tests(1.002 * two_class_mu(sigma)), sigma)


# sigma, answers: certified lower bounds at delta 1e-5, printed with four digits.
LOWER = [
    (40, 40, 0.6521),
    (40, 100, 1.0646),
    pytest.param(40, 286, 1.8940, marks=pytest.mark.thorough),
    (20, 100, 2.2980),
]


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "n_answers", "lower"), LOWER)
def test_ten_classes_cost_within_two_per_cent_of_a_lower_bound(sigma, n_answers, lower):
    profile = adaptive_profile(plurality_tests(sigma, 10), n_answers)
    assert lower - 5e-5 < profile.epsilon_at(1e-5) < 1.02 * lower
    top = profile.epsilons[-1]
    deltas, epsilons = lattice_deltas(two_class_mu(sigma), n_answers, top)[::-1]
    least = lower_hull(epsilons, deltas).epsilon_at(1e-5)
    assert least < profile.epsilon_at(1e-5) < 1.02 * least


@pytest.mark.slow
@pytest.mark.parametrize(
    "sigma",
    [
        *(3, 15, 150, 9999),
        *(
            pytest.param(sigma, marks=pytest.mark.thorough)
            for sigma in (5.5, 8, 33, 60, 999)
        ),
    ],
)
def test_many_classes_cost_a_little_more_than_two(sigma):
    for n_answers in 1, 30:
        two = adaptive_profile(plurality_tests(sigma, 2), n_answers)
        many = adaptive_profile(plurality_tests(sigma, 3), n_answers)
        ratio = many.epsilon_at(1e-6) / two.epsilon_at(1e-6)
        # Rounding of two counts, not of their difference, costs more at small noise.
        assert 1 < ratio < 1.016 + 1.5 / sigma**2


def test_all_tests_are_laws_and_have_their_exchanged_ones():
    tests = plurality_tests(20, 3)
    other = tests.weights * np.exp(tests.shifts)
    for law in tests.weights, other:
        np.testing.assert_allclose(law.sum(axis=1), 1, rtol=0, atol=1e-9)
    forward = {tuple(np.round(row, 9)) for row in np.hstack([tests.weights, other])}
    for row in np.hstack([other, tests.weights]):
        # Those of two outcomes have their outcomes exchanged, too.
        swapped = np.concatenate([row[[1, 0, 2]], row[[4, 3, 5]]])
        assert {tuple(np.round(r, 9)) for r in (row, swapped)} & forward


@pytest.mark.parametrize("mu", [0.05, 0.4])
def test_a_coin_and_a_test_are_found_where_they_exist(mu):
    rng = np.random.default_rng(0)
    w = rng.uniform(0.05, 0.95, 500)
    q_i, q_j = rng.uniform(0.001, 0.999, (2, 500))
    p_i, p_j = (q + rng.uniform(0, 0.9, 500) * (inside(q, mu) - q) for q in (q_i, q_j))
    p = np.stack([w * p_i, (1 - w) * p_j], 1)
    q = np.stack([w * q_i, (1 - w) * q_j], 1)
    p, q = (np.column_stack([law, 1 - law.sum(axis=1)]) for law in (p, q))
    found = _is_coin_and_test(np.log(p), np.log(q), mu)
    assert found.mean() > 0.95  # not all: one coin is tried for each two outcomes


def test_what_is_found_is_dominated_by_tests_of_two_outcomes():
    rng = np.random.default_rng(1)
    mu = 0.3
    p, q = rng.dirichlet([1, 1, 1], (2, 20_000))
    share = rng.uniform(0, 0.5, (20_000, 1))
    q = (1 - share) * p + share * q
    found = _is_coin_and_test(np.log(p), np.log(q), mu)
    assert 0.05 < found.mean() < 0.95
    # The profile of a mixture of tests within mu is below that of the best test of mu.
    for epsilon in (0.0, 0.1, 0.3):
        deltas = np.maximum(p - np.exp(epsilon) * q, 0).sum(axis=1)
        best = best_gaussian_delta(mu, epsilon)
        assert np.all(deltas[found] <= best * (1 + 1e-9))
        assert np.any(deltas[~found] > best)


def inside(q, mu):
    """Probability of the first outcome of the test of mu whose other one is q."""
    return ndtr(ndtri(q) + mu)


def best_gaussian_delta(mu, epsilon):
    x = np.linspace(-8, 8, 20_001)
    q = 0.5 * (1 + np.tanh(x))
    return np.max(inside(q, mu) - np.exp(epsilon) * q)


def test_a_test_further_out_is_not_taken_for_one_within():
    log = np.log(np.array([[0.3, 0.2, 0.5]])), np.log(np.array([[0.2, 0.3, 0.5]]))
    widest = max(
        abs(ndtri(0.3 / w) - ndtri(0.2 / w)) for w in np.linspace(0.31, 1, 1000)
    )
    assert not _is_coin_and_test(*log, 0.1)[0]
    assert _is_coin_and_test(*log, 2 * widest)[0]
    assert np.exp(_least_coin(log[0][:, 0], log[1][:, 0], 0.5))[0] <= 1


@pytest.mark.parametrize("sigma", [0.5, 2.99, 10_001])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_noise_out_of_range_has_no_tests(sigma, n_classes):
    assert plurality_tests(sigma, n_classes) is None
