"""Tests of ScoreSteps: exact cost of three adaptive steps, estimate, guards."""

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from numpy.testing import assert_allclose
from scipy.linalg import helmert
from sklearn.linear_model import LogisticRegression

from sklearn_pate._votes._unit_updates import UnitUpdates
from sklearn_pate.inspection.audits._statistics import epsilon_lower_bound
from sklearn_pate.mechanisms import ScoreSteps
from sklearn_pate.students._score_basis import ScoreBasis

SHARES = (0.15, 0.25, 0.6)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
def test_calibrated_noise_costs_at_most_epsilon(epsilon):
    mechanism = ScoreSteps().prepared(epsilon=epsilon, delta=1e-5)
    assert 0.999 * epsilon < mechanism.stated_epsilon(3, 4, 1e-5) <= epsilon


def test_the_cost_is_that_of_three_gaussians_by_dp_accounting():
    noise_scale, delta = 4.0, 1e-5
    accountant = PLDAccountant()
    for share in SHARES:
        multiplier = noise_scale / (2 * np.sqrt(share))
        accountant.compose(dp_event.GaussianDpEvent(multiplier))
    stated = ScoreSteps(noise_scale=noise_scale).stated_epsilon(3, 2, delta)
    assert_allclose(stated, accountant.get_epsilon(delta), rtol=2e-4)


def released(X, y, X_public, noise_scale, n_classes):
    basis = ScoreBasis(8, rbf=False).fit(X_public)
    values = basis.transform(X_public)
    updates = UnitUpdates(
        X,
        y,
        None,
        basis.transform,
        n_units=len(X),
        size=values.shape[1] * (n_classes - 1),
        n_steps=3,
    )
    mechanism = ScoreSteps(noise_scale=noise_scale)
    return mechanism.estimate(updates, values, n_classes), basis


@pytest.mark.parametrize("n_classes", [2, 4])
def test_with_little_noise_it_is_nearly_the_logistic_regression(n_classes):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((30_000, 5))
    scores = X @ rng.standard_normal((5, n_classes)) / 2
    y = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
    estimate, basis = released(X[2000:], y[2000:], X[:2000], 0.5, n_classes)
    values = basis.transform(X[2000:])
    exact = LogisticRegression(C=1e6, fit_intercept=False).fit(values, y[2000:])
    coef = exact.coef_ if n_classes > 2 else np.vstack([-exact.coef_, exact.coef_]) / 2
    expected = (coef @ values.T).T
    expected -= expected.mean(axis=1, keepdims=True)
    read = values @ estimate.coefficients @ helmert(n_classes)
    assert np.corrcoef(read.ravel(), expected.ravel())[0, 1] > 0.99
    assert_allclose(np.std(read), np.std(expected), rtol=0.1)


@pytest.mark.parametrize("factor", [3, 20, 100])
def test_public_rows_that_vary_less_do_no_harm_in_scale(factor):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((20_000, 3))
    y = (X[:, 0] + rng.logistic(size=20_000) / 3 > 0).astype(int)
    estimate, basis = released(X, y, X[:2000] / factor, 1.0, 2)
    scores = (basis.transform(X) @ estimate.coefficients)[:, 0]
    assert np.mean((scores < 0) == y) > 0.82


def test_coordinates_follow_from_public_numbers():
    mechanism = ScoreSteps().prepared(epsilon=1.0)
    assert mechanism.n_coordinates(10**6, 10**6, 2) == mechanism.max_coordinates
    assert mechanism.n_coordinates(10**6, 1000, 2) == 100
    few = mechanism.n_coordinates(10_000, 10**6, 2)
    assert 5 < mechanism.n_coordinates(10_000, 10**6, 5) < few < 500
    assert mechanism.n_coordinates(10, 10, 2) == 5


# Audit: one unit against another, by the likelihood ratio of all steps


def audit(n_trials=4000, delta=0.01, double=1):
    mechanism = ScoreSteps(noise_scale=2.0)
    X_public = np.random.RandomState(0).standard_normal((100, 1))
    basis = ScoreBasis(2, rbf=False).fit(X_public)
    values = basis.transform(X_public)
    X = np.array([[3.0]])

    def ratios(code):
        found = np.zeros(n_trials)
        for trial in range(n_trials):
            updates = UnitUpdates(
                np.repeat(X, double, axis=0),
                np.full(double, code),
                None,
                basis.transform,
                n_units=1,
                size=2,
                n_steps=3,
            )
            for step, noisy in mechanism.estimate(updates, values, 2).steps:
                one, other = (
                    step.rounded(step.updates(basis.transform(X), np.array([label])))
                    for label in (0, 1)
                )
                found[trial] += np.vdot(noisy, (one - other)[0])
        return found

    lower, _ = epsilon_lower_bound(ratios(0), ratios(1), delta=delta, confidence=0.9999)
    return lower, mechanism.stated_epsilon(3, 2, delta)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn_pate.PublicDataWarning")
def test_the_honest_mechanism_passes_its_audit():
    lower, claimed = audit()
    assert 0.1 * claimed < lower < claimed


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn_pate.PublicDataWarning")
def test_a_unit_that_is_counted_three_times_is_found():
    lower, claimed = audit(double=3)
    assert lower > claimed


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn_pate.PublicDataWarning")
def test_missing_clipping_is_found(monkeypatch):
    from sklearn_pate._votes._unit_updates import UpdateStep

    monkeypatch.setattr(
        UpdateStep,
        "rounded",
        lambda self, updates: np.rint(
            4 * updates.reshape(len(updates), -1) / self.unit
        ),
    )
    lower, claimed = audit()
    assert lower > claimed
