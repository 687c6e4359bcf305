"""Tests of noisy Newton steps: exact cost, estimate, audit."""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from sklearn_pate import DPNewtonClassifier, PublicData
from sklearn_pate.students import ScoreFunction
from tests.cases import thorough_but
from tests.private import (
    STEPS,
    Curvature,
    Newton,
    NewtonSteps,
    NoiseSource,
    RepresentedRows,
    ScoreBasis,
    Step,
    StoredSums,
    _epsilon_bound,
    gdp_epsilon,
    gdp_mu,
    n_coordinates,
)
from tests.seeding import equal_noise

# It follows from noise or from public rows that are unlike private ones, on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:The private rows vary")

SHARES = NewtonSteps.shares


# Cost


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_calibrated_noise_costs_at_most_epsilon(epsilon, delta):
    mechanism = NewtonSteps().prepared(epsilon=epsilon, delta=delta)
    spent = mechanism.cost(0, 10).epsilon(delta)
    assert 0.999 * epsilon < spent <= epsilon


def test_the_steps_cost_as_much_as_one_release_of_all_lengths():
    sigma, delta = 5000.0, 1e-6
    together = NewtonSteps(noise_scale=sigma / STEPS).cost(0, 2).epsilon(delta)
    steps = [gdp_mu(sigma, 4 * share * STEPS**2) for share in SHARES]
    assert_allclose(together, gdp_epsilon(np.linalg.norm(steps), delta), rtol=1e-9)


@pytest.mark.slow
def test_the_cost_is_that_of_five_gaussians_by_dp_accounting():
    noise_scale, delta = 4.0, 1e-5
    accountant = PLDAccountant()
    for share in SHARES:
        multiplier = noise_scale / (2 * np.sqrt(share))
        accountant.compose(dp_event.GaussianDpEvent(multiplier))
    stated = NewtonSteps(noise_scale=noise_scale).cost(0, 2).epsilon(delta)
    assert_allclose(stated, accountant.get_epsilon(delta), rtol=2e-4)


def test_the_renyi_curve_is_that_of_a_gaussian():
    curve = NewtonSteps(noise_scale=4.0).cost(0, 5).curve
    assert_allclose(curve.values, curve.orders * 4 / (2 * 4.0**2))


def test_the_shares_sum_to_the_whole_and_are_five():
    assert sum(SHARES) == 1
    assert len(SHARES) == 5  # as statements say


# Estimate


def rows_of(n_classes, n_rows=20_000):
    X, y = make_classification(
        n_rows + 2000,
        6,
        n_informative=5,
        n_redundant=0,
        n_classes=n_classes,
        n_clusters_per_class=1,
        class_sep=0.6,
        flip_y=0.1,
        random_state=0,
    )
    basis = ScoreBasis(30, rbf=True, random_state=0).fit(X[n_rows:])
    return X[:n_rows], y[:n_rows], basis, basis.transform(X[n_rows:])


class Estimate(NamedTuple):
    """Coefficients, and the step and noisy sum of each step."""

    coefficients: Any
    steps: list
    functions: Any


def estimate(rows, n_classes, noise_scale, groups=None, n_units=None, **allowed):
    X, y, basis, values = rows
    start = np.zeros((values.shape[1], n_classes - 1))
    private = RepresentedRows(
        X.__getitem__,
        y,
        groups,
        lambda places: basis.chosen(places).transform,
        size=start.size,
    )
    mechanism = NewtonSteps(noise_scale=noise_scale)
    allowed = {"allowed": lambda evenness: len(values)} | allowed
    newton = Newton(mechanism, values, n_units or len(X), start, **allowed)
    sums, steps = StoredSums(mechanism, None, NoiseSource()), []
    for number in range(len(SHARES)):
        step = newton.step()
        released = sums.draw(number, partial(private.sum, step))
        newton.move(step, released)
        steps.append((step, released))
    return Estimate(newton.coef, steps, newton.functions)


def probabilities(rows, coefficients):
    X, _, basis, _ = rows
    function = ScoreFunction.of_release(coefficients, None, basis)
    return function.probabilities(basis.transform(X))


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 5])
def test_with_hardly_any_noise_the_estimate_is_the_logistic_regression(n_classes):
    rows = rows_of(n_classes)
    X, y, basis, _ = rows
    released = estimate(rows, n_classes, noise_scale=0.02)
    B = basis.transform(X)
    reference = LogisticRegression(C=np.inf, fit_intercept=False, max_iter=2000)
    reference.fit(B, y)
    found = probabilities(rows, released.coefficients)
    expected = reference.predict_proba(B)
    assert np.mean(np.abs(found - expected)) < 0.03
    assert np.mean(found.argmax(axis=1) == expected.argmax(axis=1)) > 0.9

    def loss(p):
        return -np.mean(np.log(p[np.arange(len(y)), y]))

    constant = loss(np.full_like(found, 1 / n_classes))
    assert constant - loss(found) > 0.95 * (constant - loss(expected))


@pytest.mark.slow
def test_later_steps_come_closer():
    rows = rows_of(2, n_rows=4000)
    y = rows[1]
    released = estimate(rows, 2, noise_scale=0.02)

    def loss(coefficients):
        p = probabilities(rows, coefficients)
        return -np.mean(np.log(p[np.arange(len(y)), y]))

    losses = [loss(step.coef) for step, _ in released.steps[1:]]
    assert losses == sorted(losses, reverse=True)


@pytest.mark.slow
def test_groups_of_one_row_are_rows():
    rows = rows_of(2, n_rows=1000)
    one, other = (
        estimate(rows, 2, 0.02, groups).coefficients
        for groups in (None, np.arange(1000))
    )
    assert_allclose(one, other, atol=0.02)


@pytest.mark.thorough
def test_the_noise_has_the_stated_scale_in_every_step():
    rows = rows_of(2, n_rows=1000)
    silent = (rows[0], np.full(1000, -1), *rows[2:])
    runs = [estimate(silent, 2, noise_scale=3.0).steps for _ in range(60)]
    for step in (1, 2, 3):
        noise = np.ravel([steps[step][1] for steps in runs])
        assert_allclose(noise.std(), 3 * STEPS, rtol=0.06)
        assert abs(noise.mean()) < 4 * 3 * STEPS / np.sqrt(noise.size)


def test_the_steps_use_the_shares_and_the_estimate_before():
    steps = estimate(rows_of(2, n_rows=500), 2, noise_scale=1.0).steps
    assert tuple(step.share for step, _ in steps) == SHARES
    assert not steps[1][0].coef.any()
    assert steps[2][0].coef.any()


def test_the_result_is_a_function_of_the_sums_and_of_public_rows():
    rows = rows_of(2, n_rows=500)
    one, other = (equal_noise()(estimate)(rows, 2, 2.0) for _ in range(2))
    assert_array_equal(one.coefficients, other.coefficients)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("n_values", [1, 2, 5])
def test_any_released_coefficients_have_a_curvature(size, n_values):
    rng = np.random.RandomState(0)
    values = rng.standard_normal((50, 4))
    coef = size * rng.standard_normal((4, n_values))
    curvature = Curvature.at(values, coef, 1.0, 0.02)
    for factor in (curvature.left, curvature.right):
        assert np.linalg.eigvalsh(factor).min() > 0


@pytest.mark.thorough
@pytest.mark.parametrize("n_classes", thorough_but([2], [2, 6]))
def test_much_noise_ends_in_finite_coefficients(n_classes):
    rows = rows_of(n_classes, n_rows=3)
    for _ in range(20):
        released = estimate(rows, n_classes, noise_scale=40.0)
        assert np.isfinite(released.coefficients).all()


@pytest.mark.parametrize("factor", [3, 20, 100])
def test_public_rows_that_vary_less_do_no_harm_in_scale(factor):
    rng = np.random.RandomState(0)
    X = rng.standard_normal((20_000, 3))
    y = (X[:, 0] + rng.logistic(size=20_000) / 3 > 0).astype(int)
    basis = ScoreBasis(8, rbf=False).fit(X[:2000] / factor)
    values = basis.transform(X[:2000] / factor)
    released = estimate((X, y, basis, values), 2, 1.0)
    scores = (basis.transform(X) @ released.coefficients)[:, 0]
    assert np.mean((scores < 0) == y) > 0.82


# Functions that are tried, and the slope


@pytest.fixture(scope="module")
def late():
    """Return rows whose label depends on the 12th of 21 components alone."""
    rng = np.random.RandomState(0)
    Z = rng.standard_normal((6000, 21))
    y = (2 * Z[:, 11] + rng.logistic(size=6000) > 1).astype(int)
    X = Z * 0.8 ** np.arange(21)
    basis = ScoreBasis(22, rbf=False).fit(X[5000:])
    return X[:5000], y[:5000], basis, basis.transform(X[5000:])


def tried(n_allowed):
    return {"allowed": lambda evenness: n_allowed, "tried": lambda n, noise: 22}


def test_a_function_beyond_those_that_noise_allows_stays_if_labels_depend_on_it(late):
    X, y, basis, _ = late
    released = estimate(late, 2, 10.0, **tried(5))
    assert {0, 1, 2, 3, 4, 12} <= {*released.functions}
    assert len(released.functions) < 22
    assert len(released.coefficients) == len(released.functions)
    scores = basis.chosen(released.functions).transform(X) @ released.coefficients
    assert roc_auc_score(y == 0, scores[:, 0]) > 0.8
    without = estimate(late, 2, 10.0, allowed=lambda evenness: 5)
    assert_array_equal(without.functions, np.arange(5))


@pytest.mark.slow
def test_functions_of_noise_do_not_stay(late):
    X, y, *others = late
    n_kept = []
    for seed in range(10):
        shuffled = np.random.RandomState(seed).permutation(y)
        released = estimate((X, shuffled, *others), 2, 10.0, **tried(5))
        n_kept.append(len(released.functions))
    assert np.mean(n_kept) < 7  # two of seventeen by chance would be many


@pytest.mark.parametrize("share", [0.5, 0.05])
def test_the_slope_of_probabilities_is_right_for_rare_classes_too(share):
    rng = np.random.RandomState(1)
    X = rng.standard_normal((42_000, 4))
    scores = X @ [1.0, 0.5, -0.5, 0.2]
    noisy = scores + rng.logistic(size=len(X))
    y = (noisy > np.quantile(noisy, 1 - share)).astype(int)
    basis = ScoreBasis(5, rbf=False).fit(X[40_000:])
    rows = X[:40_000], y[:40_000], basis, basis.transform(X[40_000:])
    released = estimate(rows, 2, 2.0)
    p = probabilities(rows, released.coefficients)[:, 1]
    log_odds = np.log(p / (1 - p))[:, np.newaxis]
    [[slope]] = LogisticRegression(C=np.inf).fit(log_odds, rows[1]).coef_
    assert 0.9 < slope < 1.1
    assert p.mean() == pytest.approx(share, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["row", "group"])
def test_a_label_in_a_component_of_small_variance_is_learned(unit):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((9000, 21))
    y = (2 * Z[:, 14] + rng.logistic(size=9000) > 1).astype(int)
    X = (Z * 0.9 ** np.arange(21)) @ np.linalg.qr(rng.standard_normal((21, 21)))[0]
    X /= X.std(axis=0)
    more = {"n_groups": 2500, "privacy_unit": "group"} if unit == "group" else {}
    groups = {"groups": np.arange(7500) // 3} if more else {}
    n_private = 7500 if more else 2500
    clf = DPNewtonClassifier(epsilon=0.5, classes=[0, 1], random_state=0, **more)
    clf.fit(X[:n_private], y[:n_private], X_public=PublicData(X[7500:8500]), **groups)
    scores = clf.predict_proba(X[8500:])[:, 1]
    assert roc_auc_score(y[8500:], scores) > 0.75  # with the first 8 to 10 alone: 0.5


# Number of coordinates


def test_more_noise_allows_fewer_coordinates():
    counts = [
        n_coordinates(NewtonSteps(noise_scale=scale), 10_000, 10_000, 2)
        for scale in (1.0, 5.0, 20.0, 500.0)
    ]
    assert counts == sorted(counts, reverse=True)
    assert (counts[0], counts[-1]) == (500, 5)


def test_the_number_of_coordinates_follows_noise_classes_and_their_shares():
    mechanism = NewtonSteps(noise_scale=4.0)  # mu = 1/2
    assert n_coordinates(mechanism, 1200, 10_000, 2) == 17
    assert n_coordinates(mechanism, 1200, 10_000, 2, evenness=0.25) == 8
    assert n_coordinates(mechanism, 1200, 10_000, 21) == 15
    ordered = [n_coordinates(mechanism, 1200, 10_000, n, ordered=True) for n in (2, 4)]
    assert ordered == [150, 50]


def test_a_coordinate_needs_ten_public_rows():
    mechanism = NewtonSteps(noise_scale=1.0)
    assert n_coordinates(mechanism, 10**6, 200, 2) == 20
    assert n_coordinates(mechanism, 10**6, 1, 2) == 5


def test_the_largest_number_of_coordinates_is_kept():
    assert n_coordinates(NewtonSteps(noise_scale=1.0), 10**6, 10**6, 2, most=3) == 3


@pytest.mark.parametrize("n_classes", [2, 2000, 10**5])
def test_rounding_takes_less_than_half_of_the_shortest_vector(n_classes):
    n = n_coordinates(NewtonSteps(noise_scale=0.1), 10**8, 10**6, n_classes)
    assert np.sqrt(n * (n_classes - 1)) / 2 < np.sqrt(SHARES[1]) * STEPS - 1


# Parameters


def test_bad_noise_is_refused():
    with pytest.raises(ValueError, match=r"noise_scale=-1.0 of NewtonSteps must be a"):
        NewtonSteps(noise_scale=-1.0).cost(0, 2).epsilon(1e-5)


def test_noise_beyond_what_can_be_drawn_is_refused():
    with pytest.raises(ValueError, match=r"epsilon=1e-05 needs noise of .* raise eps"):
        NewtonSteps().prepared(epsilon=1e-5, delta=1e-5)


# Audit: the label of one row is changed; all others contribute nothing


def first_of(X, places):
    return X[:, places]


class Audit(NamedTuple):
    """Lower bounds by trials of epsilon, and of epsilon at delta = 0; its claim."""

    lower: float
    pure: float
    claimed: float


def audit(n_trials=400, delta=0.1):
    """Audit at a large delta, at which few trials show most."""
    # The second of two coordinates is far from zero: its vector must be clipped.
    row, codes = np.array([[1.0, 30.0]]), np.array([0, 1])
    mechanism = NewtonSteps(noise_scale=3.0)
    public = np.sqrt(2) * np.eye(2)
    scores = np.zeros((2, n_trials))
    for own, trial in np.ndindex(2, n_trials):
        private = RepresentedRows(
            row.__getitem__,
            codes[[own]],
            None,
            lambda places: partial(first_of, places=places),
            size=2,
        )
        # With few rows, noise would make the model so sure that a row moves nothing.
        newton = Newton(mechanism, public, 10_000, np.zeros((2, 1)), lambda _: 2)
        sums = StoredSums(mechanism, None, NoiseSource())
        for number in range(len(SHARES)):
            step = newton.step()
            released = sums.draw(number, partial(private.sum, step))
            newton.move(step, released)
            values = first_of(np.vstack([row, row]), step.places)
            left, right = step.factors(values, codes)
            one, other = step.rounded(left[:, :, None] * right[:, None])
            scores[own, trial] += np.vdot(released - (one + other) / 2, one - other)
    # The vectors are each other's mirror image: no trial is needed to choose the event.
    hits = np.count_nonzero(scores > 0, axis=1)
    lower, pure = (_epsilon_bound(*hits, n_trials, one, 1e-4) for one in (delta, 0.0))
    return Audit(lower, pure, mechanism.cost(0, 2).epsilon(delta))


@pytest.mark.thorough
def test_the_honest_mechanism_passes_its_audit():
    found = audit()
    assert found.lower < found.claimed
    assert found.pure > 0


@pytest.mark.thorough
def test_a_unit_that_is_counted_three_times_is_found(monkeypatch):
    exact = RepresentedRows.sum
    monkeypatch.setattr(
        RepresentedRows, "sum", lambda self, step: 3 * exact(self, step)
    )
    found = audit()
    assert found.lower > found.claimed


@pytest.mark.thorough
def test_missing_clipping_is_found(monkeypatch):
    monkeypatch.setattr(
        Step,
        "rounded",
        lambda self, vectors: np.rint(vectors.reshape(len(vectors), -1) / self.unit),
    )
    found = audit()
    assert found.lower > found.claimed


@pytest.mark.thorough
def test_a_slope_beyond_its_share_is_found(monkeypatch):
    honest = Newton._calibration_step
    monkeypatch.setattr(
        Newton,
        "_calibration_step",
        lambda self, share: replace(honest(self, share), share=30.0),
    )
    found = audit()
    assert found.lower > found.claimed


@pytest.mark.thorough
def test_labels_beyond_their_share_are_found(monkeypatch):
    of_mean = Step.of_mean

    def beyond(coef, share, radius=1.5):
        return of_mean(coef, 9.0, radius)

    monkeypatch.setattr(Step, "of_mean", beyond)
    found = audit()
    assert found.lower > found.claimed
