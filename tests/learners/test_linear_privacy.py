"""That the noise of a fit is the one that the proofs take, and that they hold."""

import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone

from sklearn_pate.accounting import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting.composition import curvature_cost, gaussian_objective_curve
from sklearn_pate.learners import DPLinearSVC, DPLogisticRegression
from tests.private import (
    METHODS,
    TOLERANCE,
    Bounds,
    HuberHinge,
    LogisticLoss,
    NoiseSource,
    NoisyObjective,
    Task,
    minimise,
    plan_perturbation,
)

LOSSES = {"logistic": LogisticLoss(), "hinge": HuberHinge(0.5)}
LEARNERS = {"logistic": DPLogisticRegression, "hinge": DPLinearSVC}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)

# y x of a row with one feature; 0 is also a row that has no loss
signed = st.floats(-1, 1)
epsilons = st.floats(0.01, 20)


def plan(method, loss, *, C="auto", epsilon=1.0, n_problems=1, n_weights=1, n_rows=100):
    task = Task("", epsilon, 1e-5, loss.curvature, n_problems, n_weights, n_rows)
    return plan_perturbation(method, C, task)


def log_density(w, rows, loss, perturbation):
    """Log-density of the minimiser with one weight, but for what all data share."""
    rows = np.asarray(rows, dtype=float)
    slopes, curvatures = loss.derivatives(np.multiply.outer(w, rows))
    linear_term = -(slopes @ rows) - perturbation.noise.regularisation * w
    jacobian = curvatures @ rows**2 + perturbation.noise.regularisation
    return -np.abs(linear_term) / perturbation.noise.linear_scale + np.log(jacobian)


def largest_ratio(one, other, loss, perturbation):
    """Largest log-ratio of the densities of two minimisers, on a grid."""
    w = np.concatenate([np.linspace(-3, 3, 60_001), np.linspace(-500, 500, 10_001)])
    return np.max(
        log_density(w, one, loss, perturbation)
        - log_density(w, other, loss, perturbation)
    )


# Pure privacy of the objective's noise


@pytest.mark.slow
@every_loss
@settings(max_examples=60)
@given(
    rows=st.lists(signed, max_size=8),
    before=signed,
    after=signed,
    epsilon=epsilons,
    C=st.floats(1e-3, 1e3) | st.just("auto"),
)
def test_no_neighbour_of_the_exact_minimiser_is_beyond_epsilon(
    loss, rows, before, after, epsilon, C
):
    perturbation = plan("objective", loss, epsilon=epsilon, C=C)
    ratio = largest_ratio([*rows, before], [*rows, after], loss, perturbation)
    assert ratio <= epsilon


@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
def test_the_hinge_needs_all_of_the_noise(epsilon):
    loss = LOSSES["hinge"]
    # With this C, the linear term has one sign where the loss of the row is steep and
    # begins to curve.
    perturbation = plan("objective", loss, epsilon=epsilon, C=1 / 2.5)
    needed = largest_ratio([1.0], [-1.0], loss, perturbation)
    assert 0.998 * epsilon < needed <= epsilon
    # The same noise without the cost of the curvature in it would be too little.
    cost = curvature_cost(loss.curvature, perturbation.noise.regularisation)
    too_small = 2 / (2 / perturbation.noise.linear_scale + cost)
    noise = clone(perturbation.noise).set_params(linear_scale=too_small)
    less_noise = replace(perturbation, noise=noise)
    assert largest_ratio([1.0], [-1.0], loss, less_noise) > epsilon


@pytest.mark.slow
@every_loss
@given(
    epsilon=epsilons,
    n_problems=st.integers(1, 10),
    C=st.floats(1e-6, 1e6) | st.just("auto"),
    n_weights=st.integers(1, 500),  # of more, some noise is refused
)
def test_the_parts_of_epsilon_are_all_of_it(loss, epsilon, n_problems, C, n_weights):
    perturbation = plan(
        "objective",
        loss,
        epsilon=epsilon,
        C=C,
        n_problems=n_problems,
        n_weights=n_weights,
    )
    regularisation = perturbation.noise.regularisation
    linear = 2 / perturbation.noise.linear_scale
    curvature = curvature_cost(loss.curvature, regularisation)
    output = 2 * TOLERANCE / regularisation / perturbation.noise.output_scale
    assert min(linear, curvature, output) > 0
    assert n_problems * (linear + curvature + output) == pytest.approx(epsilon)
    assert linear > 0.49 * epsilon / n_problems, "curvature takes half at most"
    assert (perturbation.epsilon, perturbation.delta) == (epsilon, 0)


# Sensitivity of the output


@every_loss
@settings(max_examples=50)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 30),
    C=st.floats(1e-3, 100),
    flip=st.booleans(),
)
def test_no_replaced_row_moves_the_weights_beyond_the_sensitivity(
    loss, seed, n_rows, C, flip
):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    signs = rng.choice([-1.0, 1.0], size=n_rows)
    perturbation = plan("output", loss, C=C, epsilon=0.7, n_problems=2)
    options = {
        "regularisation": perturbation.noise.regularisation,
        "linear_term": np.zeros(3),
        "tolerance": TOLERANCE,
    }
    one = minimise(X, signs, loss, **options)
    signs[0] *= -1
    if not flip:
        X[0] = np.roll(X[0], 1)
    other = minimise(X, signs, loss, **options)
    epsilon_each = np.linalg.norm(one - other) / perturbation.noise.output_scale
    assert epsilon_each <= 0.7 / 2


def test_a_row_can_move_the_weights_by_the_sensitivity():
    loss = LOSSES["hinge"]
    perturbation = plan("output", loss, C=1e-3)
    options = {
        "regularisation": perturbation.noise.regularisation,
        "linear_term": np.zeros(1),
        "tolerance": TOLERANCE,
    }
    one, other = (
        minimise(np.ones((1, 1)), np.array([sign]), loss, **options)
        for sign in (1.0, -1.0)
    )
    assert abs(one - other)[0] / perturbation.noise.output_scale == pytest.approx(
        1, rel=1e-5
    )


# Gaussian noise


@every_loss
@settings(max_examples=30)
@given(
    epsilon=st.floats(0.01, 20),
    n_problems=st.integers(1, 10),
    C=st.floats(1e-6, 1e6) | st.just("auto"),
    n_weights=st.integers(1, 1000),
)
def test_gaussian_noise_is_calibrated_and_never_beyond_epsilon(
    loss, epsilon, n_problems, C, n_weights
):
    perturbation = plan(
        "gaussian",
        loss,
        epsilon=epsilon,
        C=C,
        n_problems=n_problems,
        n_weights=n_weights,
    )
    regularisation = perturbation.noise.regularisation
    minimiser = gaussian_objective_curve(
        perturbation.noise.linear_scale, regularisation, loss.curvature
    )
    shift = 2 * TOLERANCE / regularisation / perturbation.noise.output_scale
    output = RdpCurve(DEFAULT_ORDERS, DEFAULT_ORDERS * shift**2 / 2)
    total = (minimiser + output) * n_problems
    np.testing.assert_allclose(perturbation.curve.values, total.values)
    assert perturbation.epsilon == perturbation.curve.quiet_epsilon(1e-5)
    assert 0.998 * epsilon < perturbation.epsilon <= epsilon
    assert minimiser.quiet_epsilon(1e-5) > 0


def test_gaussian_noise_does_not_depend_on_the_number_of_rows():
    few, many = (plan("gaussian", LOSSES["hinge"], n_rows=n) for n in (10, 10**6))
    assert few.noise.get_params() == many.noise.get_params()
    assert (few.epsilon, few.delta) == (many.epsilon, many.delta)


# The rule for C


@every_loss
@pytest.mark.parametrize("method", METHODS)
def test_auto_regularises_more_where_there_is_more_noise(method, loss):
    def regularisation(**public):
        return plan(method, loss, **({"n_weights": 20} | public)).noise.regularisation

    assert regularisation(epsilon=0.1) > regularisation() > regularisation(epsilon=10)
    assert regularisation(n_weights=80) > regularisation() > regularisation(n_weights=5)
    assert regularisation(n_problems=5) > regularisation()


@every_loss
def test_auto_depends_on_the_number_of_rows_for_noise_on_the_output_only(loss):
    def regularisation(method, n_rows):
        return plan(method, loss, n_weights=20, n_rows=n_rows).noise.regularisation

    assert regularisation("output", 10**6) > regularisation("output", 10**4)
    for method in ("objective", "gaussian"):
        assert regularisation(method, 10**6) == regularisation(method, 10)


# The noise of fits


def many_fits(learner, X, y, n_fits=1000):
    """Weights of many fits, of which the first one alone is planned, for speed."""
    learner.fit(X, y)
    plan = learner._plan(X, y)
    weights = []
    for _ in range(n_fits):
        learner._train(plan.rows, plan.settings, NoiseSource())
        weights.append(learner.coef_)
    return np.array(weights)


def data(n_rows=12, n_features=3):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n_rows, n_features))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.where(X[:, 0] > 0, "yes", "no")


def linear_terms(weights, X, signs, loss, regularisation):
    """The linear terms that make given weights the minimisers."""
    slopes, _ = loss.derivatives(signs * (weights @ X.T))
    return -(slopes * signs) @ X - regularisation * weights


@pytest.fixture(
    scope="module", params=[(m, one) for m in METHODS for one in LOSSES], ids=str
)
def noises(request):
    """The noise of many fits, with the scale that the statement claims."""
    method, name = request.param
    X, y = data()
    learner = LEARNERS[name](method=method, data_norm=1, fit_intercept=False)
    weights = many_fits(learner, X, y)[:, 0]
    perturbation = plan(method, LOSSES[name], n_weights=X.shape[1], n_rows=len(X))
    noise = clone(perturbation.noise).set_params(learner=type(learner).__name__)
    assert learner.privacy_spent_.mechanism == noise.in_one_line()
    signs = np.where(y == "yes", 1.0, -1.0)
    if method == "output":
        exact = minimise(
            X,
            signs,
            LOSSES[name],
            regularisation=perturbation.noise.regularisation,
            linear_term=np.zeros(3),
            tolerance=1e-10,
        )
        return method, weights - exact, perturbation.noise.output_scale
    found = linear_terms(
        weights, X, signs, LOSSES[name], perturbation.noise.regularisation
    )
    return method, found, perturbation.noise.linear_scale


def p_value(sample, law):
    return stats.kstest(sample, law).pvalue


@pytest.mark.slow
def test_the_size_of_the_noise_has_its_law(noises):
    method, found, scale = noises
    lengths = np.linalg.norm(found, axis=1) / scale
    law = stats.chi(3) if method == "gaussian" else stats.gamma(3)
    assert p_value(lengths, law.cdf) > 1e-6
    assert p_value(1.2 * lengths, law.cdf) < 1e-6, "another scale would be seen"


@pytest.mark.slow
def test_the_direction_of_the_noise_is_uniform_and_independent_of_its_size(noises):
    _, found, _ = noises
    lengths = np.linalg.norm(found, axis=1)
    directions = found / lengths[:, np.newaxis]
    # Archimedes: each coordinate of a point on a sphere is uniform.
    for axis in range(3):
        assert p_value(directions[:, axis], stats.uniform(-1, 2).cdf) > 1e-6
    slanted = directions @ np.array([1, -2, 2]) / 3
    assert p_value(slanted, stats.uniform(-1, 2).cdf) > 1e-6
    assert stats.spearmanr(lengths, directions[:, 0]).pvalue > 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_every_problem_draws_its_own_noise(method):
    X = np.eye(3)
    learner = DPLogisticRegression(method=method, data_norm=1, fit_intercept=False)
    weights = many_fits(learner, X, [0, 1, 2], n_fits=200)
    # The same weight of different problems, over fits.
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert stats.spearmanr(weights[:, one, 0], weights[:, other, 0]).pvalue > 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("method", ["objective", "gaussian"])
def test_the_minimiser_gets_noise_that_hides_its_tolerance(method, monkeypatch):
    X, y = data()
    monkeypatch.setattr(
        NoisyObjective, "draw_linear_term", lambda self, noise, n: np.zeros(n)
    )
    learner = DPLogisticRegression(method=method, data_norm=1, fit_intercept=False)
    weights = many_fits(learner, X, y)[:, 0]
    exact = minimise(
        X,
        np.where(y == "yes", 1.0, -1.0),
        LOSSES["logistic"],
        regularisation=1 / learner.C_,
        linear_term=np.zeros(3),
        tolerance=1e-10,
    )
    scale = plan(method, LOSSES["logistic"], n_weights=3).noise.output_scale
    lengths = np.linalg.norm(weights - exact, axis=1) / scale
    law = stats.chi(3) if method == "gaussian" else stats.gamma(3)
    assert p_value(lengths, law.cdf) > 1e-6


def bounds_of(n_features, norm, constant):
    low, width = np.full(n_features, -3.0), np.full(n_features, 7.0)
    return Bounds(low=low, width=width, clips=True, norm=norm, constant=constant)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_row_is_longer_than_one_in_exact_arithmetic(dtype, order):
    rng = np.random.default_rng(0)
    for n_features in (1, 2, 7, 100):
        X = (20 * rng.normal(size=(40, n_features))).astype(dtype).astype(float)
        for norm, constant in ((1.0, 0.0), (0.1, 1.0), (3.0, 0.7)):
            bounds = bounds_of(n_features, norm, constant)
            for row in bounds.rows(np.array(X, order=order)):
                assert sum(Fraction(float(value)) ** 2 for value in row) <= 1


@pytest.mark.neighbours
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_row_that_joins_changes_no_bit_of_other_rows(order):
    bounds = bounds_of(33, 2.0, 1.0)
    X = np.random.default_rng(0).normal(size=(130, 33))
    X[0] = 1e300
    for n_rows in range(2, 131):
        of_all = bounds.rows(np.array(X[:n_rows], order=order))
        of_others = bounds.rows(np.array(X[1:n_rows], order=order))
        assert np.array_equal(of_all[1:], of_others)


@pytest.mark.parametrize("method", METHODS)
def test_weights_are_multiples_of_a_unit_whatever_the_rows_are(method):
    X, y = data()
    for scale in (0.0, 0.3, 1.0):
        clf = DPLogisticRegression(method=method, data_norm=1.0, delta=1e-3, C=1.0)
        clf.fit(scale * X, y)
        noise = float(
            re.search(r"([\d.e+-]+) on the weights", clf.privacy_spent_.in_one_line())[
                1
            ]
        )
        weights = np.append(clf.coef_, clf.intercept_) * np.sqrt(2)
        in_units = weights / 2.0 ** (np.floor(np.log2(noise)) - 20)
        assert np.abs(in_units - np.rint(in_units)).max() <= 1e-3


def test_rows_are_within_the_bound_however_small_it_is():
    nothing = {"low": np.zeros(2), "width": np.ones(2), "clips": False, "constant": 0.0}
    X = np.array([[1e-165, 0.0], [3e-163, 1e-170], [1e300, 1e300], [1e-171, 0.0]])
    rows = Bounds(**nothing, norm=1e-170).rows(X)
    lengths = np.linalg.norm(rows, axis=1)
    np.testing.assert_allclose(lengths, [1, 1, 0, 0.1], rtol=1e-12)
