"""Losses against their definitions, and minimisers against another solver."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from tests.private import HuberHinge, LogisticLoss, minimise
from tests.private import _rounding as rounding
from tests.private import _weighted_sum as weighted_sum

LOSSES = {
    "logistic": LogisticLoss(),
    "hinge": HuberHinge(0.5),
    "narrow hinge": HuberHinge(0.01),
}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


def unit_rows(rng, n_rows, n_weights):
    X = rng.normal(size=(n_rows, n_weights))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


# Losses


@pytest.mark.parametrize("half_width", [0.01, 0.5, 2])
def test_the_hinge_is_that_of_the_paper(half_width):
    h = half_width
    z = np.linspace(-5, 5, 2001)
    expected = [
        0 if one > 1 + h else (1 + h - one) ** 2 / (4 * h) if one >= 1 - h else 1 - one
        for one in z
    ]
    np.testing.assert_allclose(HuberHinge(h).values(z), expected, atol=1e-12)


@pytest.mark.parametrize("margin", [-800.0, -30.0, -1.0, 0.0, 1e-9, 2.0, 40.0, 700.0])
def test_the_logistic_loss_is_that_of_50_digits(margin):
    loss = LogisticLoss()
    with mpmath.workdps(50):
        z = mpmath.mpf(margin)
        other = 1 / (1 + mpmath.exp(z))
        expected = [mpmath.log1p(mpmath.exp(-z)), -other, other * (1 - other)]
    found = [loss.values(np.array([margin])), *loss.derivatives(np.array([margin]))]
    for one, exact in zip(found, expected, strict=True):
        assert one[0] == pytest.approx(float(exact), rel=1e-14, abs=1e-300)


@every_loss
@given(margin=st.floats(-50, 50), ahead=st.floats(1e-6, 10))
def test_losses_have_the_properties_that_the_proofs_require(loss, margin, ahead):
    margins = np.array([margin, margin + ahead])
    slopes, curvatures = loss.derivatives(margins)
    assert np.all((slopes >= -1) & (slopes <= 0)), "never rising, at most as fast as 1"
    rounding = 1 + 1e-15
    assert np.all((curvatures >= 0) & (curvatures <= loss.curvature * rounding))
    rise = slopes[1] - slopes[0]
    assert -1e-12 <= rise <= loss.curvature * ahead + 1e-12, "convex and smooth"
    drop = loss.values(margins)[0] - loss.values(margins)[1]
    assert -slopes[1] * ahead - 1e-9 <= drop <= -slopes[0] * ahead + 1e-9


@every_loss
def test_the_bound_of_the_curvature_is_reached(loss):
    _, curvatures = loss.derivatives(np.linspace(-3, 3, 6001))
    assert curvatures.max() == pytest.approx(loss.curvature)


# Minimisers


@every_loss
@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(0, 60),
    n_weights=st.integers(1, 12),
    regularisation=st.floats(1e-3, 1e3),
    strength=st.sampled_from([0.0, 1.0, 100.0]),
)
def test_the_gradient_at_a_minimiser_is_next_to_zero(
    loss, seed, n_rows, n_weights, regularisation, strength
):
    rng = np.random.default_rng(seed)
    X = unit_rows(rng, n_rows, n_weights)
    signs = rng.choice([-1.0, 1.0], size=n_rows)
    linear_term = strength * rng.normal(size=n_weights)
    weights = minimise(
        X,
        signs,
        loss,
        regularisation=regularisation,
        linear_term=linear_term,
        tolerance=1e-6,
    )
    exact = [np.asarray(one, dtype=np.longdouble) for one in (X, signs, weights)]
    slopes, _ = loss.derivatives((exact[1] * (exact[0] @ exact[2])).astype(float))
    gradient = exact[0].T @ (exact[1] * slopes) + regularisation * exact[2]
    assert np.linalg.norm((gradient + linear_term).astype(float)) <= 1.001e-6


@every_loss
def test_another_solver_finds_the_same_minimiser(loss):
    rng = np.random.default_rng(3)
    X = unit_rows(rng, 5000, 20)  # more than a block of rows
    signs = np.where(X[:, 0] + 0.3 * rng.normal(size=5000) > 0, 1.0, -1.0)
    linear_term = 5 * rng.normal(size=20)

    def objective(weights):
        margins = signs * (X @ weights)
        value = loss.values(margins).sum() + weights @ weights + linear_term @ weights
        slopes, _ = loss.derivatives(margins)
        return value, X.T @ (signs * slopes) + 2 * weights + linear_term

    other = minimize(
        objective, np.zeros(20), jac=True, options={"gtol": 1e-5, "maxiter": 10_000}
    )
    weights = minimise(
        X,
        signs,
        loss,
        regularisation=2.0,
        linear_term=linear_term,
        tolerance=1e-6,
    )
    np.testing.assert_allclose(weights, other.x, atol=1e-4)


def test_a_minimum_that_is_not_reached_is_an_error(monkeypatch):
    monkeypatch.setattr("sklearn_pate.learners._linear._MOST_STEPS", 2)
    rng = np.random.default_rng(0)
    X, signs = unit_rows(rng, 200, 5), rng.choice([-1.0, 1.0], size=200)
    options = {"regularisation": 0.1, "linear_term": np.ones(5), "tolerance": 1e-6}
    with pytest.raises(RuntimeError, match="Do not publish this error"):
        minimise(X, signs, LogisticLoss(), **options)


@pytest.mark.thorough
def test_a_minimum_that_rounding_hides_is_an_error():
    rng = np.random.default_rng(0)
    X, signs = unit_rows(rng, 50, 3), rng.choice([-1.0, 1.0], size=50)
    X = np.repeat(X, 2, axis=1) / np.sqrt(2)  # each column twice
    with pytest.raises(RuntimeError, match="lower C"):
        minimise(
            X,
            signs,
            HuberHinge(0.5),
            regularisation=1e-30,
            linear_term=np.arange(6.0),
            tolerance=1e-6,
        )


@pytest.mark.slow
@every_loss
@pytest.mark.parametrize("n_rows", [1, 127, 128, 129, 3000])
def test_rounding_of_a_gradient_is_within_its_bound(loss, n_rows):
    rng = np.random.default_rng(n_rows)
    X, signs = unit_rows(rng, n_rows, 7), rng.choice([-1.0, 1.0], n_rows)
    X[:, 0] = np.abs(X[:, 0])  # sums that do not cancel out round the most
    for size in (0.01, 1.0, 100.0):
        weights = size * rng.normal(size=7)
        slopes, _ = loss.derivatives(signs * (X @ weights))
        computed = weighted_sum(X, signs * slopes)
        with mpmath.workdps(40):
            margins = [
                mpmath.fdot(map(mpmath.mpf, row), map(mpmath.mpf, weights)) * sign
                for row, sign in zip(X[:500].tolist(), signs[:500], strict=True)
            ]
            if n_rows <= 500:
                exact = [
                    exact_slope(loss, one) * s
                    for one, s in zip(margins, signs, strict=True)
                ]
                true = [mpmath.fdot(exact, column) for column in X.T.tolist()]
            else:  # the sum alone
                true = [
                    mpmath.fdot((signs * slopes).tolist(), column)
                    for column in X.T.tolist()
                ]
            error = mpmath.norm([a - b for a, b in zip(computed, true, strict=True)])
        assert error <= rounding(X.shape, loss, weights, 1.0, np.zeros(7))


def exact_slope(loss, margin):
    if isinstance(loss, LogisticLoss):
        return -1 / (1 + mpmath.exp(margin))
    half_width = mpmath.mpf(loss.half_width)
    return -min(max((1 + half_width - margin) / (2 * half_width), 0), 1)
