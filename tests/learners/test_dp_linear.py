"""Private linear classifiers: accuracy, bounds, statements, the ledger."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from scipy.special import expit
from sklearn.datasets import make_blobs, make_circles
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize

from sklearn_pate import (
    BudgetExceededError,
    PrivacyLeakWarning,
    PrivacyLedger,
    PrivacyUtilityWarning,
)
from sklearn_pate.learners import DPLinearSVC, DPLogisticRegression
from tests.private import METHODS, NoiseSource
from tests.seeding import equal_noise

LEARNERS = {"logistic": DPLogisticRegression, "machine": DPLinearSVC}
every_learner = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
every_method = pytest.mark.parametrize("method", METHODS)
LITTLE_NOISE = {"epsilon": 1e10, "C": 1.0}


@pytest.fixture(scope="module")
def two():
    X, y = make_blobs(400, centers=2, cluster_std=4.0, random_state=0)
    return X, np.array(["no", "yes"])[y]


@pytest.fixture(scope="module")
def three():
    return make_blobs(600, centers=3, cluster_std=3.0, random_state=2)


# Without noise


@every_method
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_with_next_to_no_noise_it_is_logistic_regression(two, method, fit_intercept):
    X, y = two
    norm, constant = np.linalg.norm(X, axis=1).max(), 3.0
    length = np.hypot(norm, constant if fit_intercept else 0)
    options = {"fit_intercept": fit_intercept, "intercept_scaling": constant}
    private = DPLogisticRegression(
        method=method, data_norm=norm, **LITTLE_NOISE, **options
    ).fit(X, y)
    # liblinear's intercept is regularised too.
    plain = LogisticRegression(
        C=1.0,
        solver="liblinear",
        tol=1e-10,
        fit_intercept=fit_intercept,
        intercept_scaling=constant / length,
    ).fit(X / length, y)
    found = np.append(private.coef_ * length, private.intercept_)
    expected = np.append(plain.coef_, plain.intercept_)
    assert np.abs(found - expected).max() < 1e-4 * np.abs(expected).max()
    np.testing.assert_allclose(
        private.predict_proba(X), plain.predict_proba(X / length), atol=1e-5
    )
    np.testing.assert_array_equal(private.predict(X), plain.predict(X / length))


@every_method
def test_with_next_to_no_noise_classes_are_separated_from_the_rest_one_by_one(
    three, method
):
    X, y = three
    norm = np.linalg.norm(X, axis=1).max()
    length = np.hypot(norm, 1)
    private = DPLogisticRegression(method=method, data_norm=norm, **LITTLE_NOISE)
    private.fit(X, y)
    plain = OneVsRestClassifier(
        LogisticRegression(
            C=1.0, solver="liblinear", tol=1e-10, intercept_scaling=1 / length
        )
    ).fit(X / length, y)
    assert private.coef_.shape == (3, 2)
    assert private.intercept_.shape == (3,)
    np.testing.assert_allclose(
        private.decision_function(X), plain.decision_function(X / length), atol=1e-4
    )
    np.testing.assert_allclose(
        private.predict_proba(X), plain.predict_proba(X / length), atol=1e-5
    )


@every_learner
def test_a_value_of_c_for_which_curvature_costs_too_much_is_lowered(two, learner):
    X, y = two
    fitted = learner(data_norm=20, C=1e6).fit(X, y)
    assert fitted.C_ < 10
    kept = learner(data_norm=20, C=1e-3).fit(X, y)
    assert np.isclose(kept.C_, 1e-3)


# Bounds


@every_learner
def test_a_row_beyond_the_norm_counts_as_one_at_the_bound(two, learner):
    X, y = two
    fit = equal_noise()(learner(data_norm=5.0).fit)
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    clipped = X * np.minimum(1, 5 / lengths)
    assert np.any(lengths > 5)
    expected = fit(clipped, y).decision_function(clipped)
    found = fit(X, y).decision_function(X)
    np.testing.assert_allclose(found, expected)
    far = X.copy()
    far[lengths[:, 0] > 5] *= 1000
    np.testing.assert_allclose(fit(far, y).decision_function(far), expected)
    far[lengths[:, 0] > 5] *= 1e250
    assert np.all(np.isfinite(fit(far, y).decision_function(far)))


@every_learner
def test_features_beyond_their_bounds_count_as_at_them(two, learner):
    X, y = two
    low, high = np.array([-3.0, 1.0]), np.array([2.0, 4.0])
    clipped = np.clip(X, low, high)
    with equal_noise():
        unit = learner(feature_bounds=(0, 1))
        expected = unit.fit((clipped - low) / (high - low), y)
    with equal_noise():
        found = learner(feature_bounds=(low, high)).fit(X, y)
    np.testing.assert_allclose(
        found.decision_function(X),
        expected.decision_function((clipped - low) / (high - low)),
    )
    assert found.data_norm_ == pytest.approx(np.sqrt(2))


@every_learner
@pytest.mark.parametrize(
    "bounds",
    [{"data_norm": 30.0}, {"feature_bounds": (-25, [20, 30])}],
    ids=["norm", "features"],
)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_weights_are_in_units_of_the_features(three, learner, bounds, fit_intercept):
    X, y = three
    fitted = learner(fit_intercept=fit_intercept, **bounds).fit(X, y)
    np.testing.assert_allclose(
        fitted.decision_function(X), X @ fitted.coef_.T + fitted.intercept_
    )


def test_the_norm_of_bounded_features_may_be_bounded_further(two):
    X, y = two
    fitted = DPLogisticRegression(feature_bounds=(-20, 20), data_norm=0.5).fit(X, y)
    assert fitted.data_norm_ == 0.5
    assert fitted.privacy_spent_.epsilon == 1


@every_learner
def test_a_norm_that_is_read_from_the_rows_voids_the_statement(two, learner):
    X, y = two
    match = "Without data_norm or feature_bounds"
    with pytest.warns(PrivacyLeakWarning, match=match) as caught:
        fitted = learner().fit(X, y)
    assert caught[0].filename == __file__  # the line of the fit
    spent = fitted.privacy_spent_
    assert spent.epsilon == np.inf
    assert np.all(np.isinf(spent.curve.values))
    assert "read from private rows, which voids privacy" in spent.in_one_line()
    assert fitted.data_norm_ == np.linalg.norm(X, axis=1).max()


def test_rows_of_zeros_have_some_norm():
    with pytest.warns(PrivacyLeakWarning):
        fitted = DPLogisticRegression().fit(np.zeros((10, 2)), np.arange(10) % 2)
    assert fitted.data_norm_ == 1


def test_predictions_are_those_of_the_fit_whatever_is_set_afterwards(two):
    X, y = two
    fitted = DPLogisticRegression(feature_bounds=(-20, 20)).fit(X, y)
    scores = fitted.decision_function(X)
    fitted.set_params(feature_bounds=(-1, 1), intercept_scaling=3.0)
    np.testing.assert_array_equal(fitted.decision_function(X), scores)


# Labels


@every_learner
def test_a_row_of_an_unknown_label_moves_nothing(two, learner):
    X, y = two
    learner = learner(method="gaussian", data_norm=20, classes=["no", "yes"])
    fit = equal_noise()(learner.fit)
    expected = fit(X, y).coef_
    more = np.vstack([X, 9 * X[:50]])
    found = fit(more, np.append(y, ["perhaps"] * 50)).coef_
    np.testing.assert_array_equal(found, expected)


@every_learner
def test_classes_may_be_absent_from_the_rows(two, learner):
    X, y = two
    fitted = learner(data_norm=20, classes=["no", "perhaps", "yes"]).fit(X, y)
    assert fitted.coef_.shape == (3, 2)
    assert list(fitted.classes_) == ["no", "perhaps", "yes"]
    fitted = learner(data_norm=20, classes=["a", "b"]).fit(X, y)
    assert set(fitted.predict(X)) <= {"a", "b"}


def test_probabilities_are_those_of_the_scores(two, three):
    for X, y in (two, three):
        fitted = DPLogisticRegression(data_norm=30).fit(X, y)
        probabilities, scores = fitted.predict_proba(X), fitted.decision_function(X)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        best = fitted.classes_[probabilities.argmax(axis=1)]
        np.testing.assert_array_equal(best, fitted.predict(X))
        if scores.ndim == 1:
            np.testing.assert_allclose(probabilities[:, 1], expit(scores))
        else:
            each = expit(scores)
            np.testing.assert_allclose(
                probabilities, each / each.sum(axis=1, keepdims=True)
            )


def test_a_machine_has_no_probabilities():
    assert not hasattr(DPLinearSVC(), "predict_proba")


# The statement


def test_a_delta_is_only_compared_with_the_rows_where_it_is_spent():
    X, y = np.ones((20_000, 1)), np.arange(20_000) % 2
    # Warnings are errors.
    DPLogisticRegression(delta=1e-4, data_norm=1).plan_privacy(X, y)
    with pytest.warns(PrivacyLeakWarning, match="delta=0.0001 is not below"):
        DPLogisticRegression(method="gaussian", delta=1e-4, data_norm=1).plan_privacy(
            X, y
        )


@every_learner
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
def test_pure_methods_spend_all_of_epsilon_and_no_delta(
    two, three, learner, n_classes, epsilon
):
    X, y = two if n_classes == 2 else three
    for method in ("output", "objective"):
        learnt = learner(method=method, epsilon=epsilon, data_norm=20).fit(X, y)
        spent = learnt.privacy_spent_
        assert tuple(spent) == (epsilon, 0)
        assert (spent.unit, spent.relation) == ("row", "replace-one")
        assert spent.curve.values.max() <= epsilon, "a pure guarantee bounds the curve"
        assert (
            f"{type(learnt).__name__} with {method} perturbation" in spent.in_one_line()
        )
        assert ("for each of 3 problems" in spent.in_one_line()) is (n_classes == 3)


@every_learner
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
def test_gaussian_noise_reaches_epsilon_from_below(
    two, three, learner, n_classes, epsilon
):
    X, y = two if n_classes == 2 else three
    learnt = learner(method="gaussian", epsilon=epsilon, delta=1e-6, data_norm=20)
    spent = learnt.fit(X, y).privacy_spent_
    assert 0.998 * epsilon < spent.epsilon <= epsilon
    assert spent.delta == 1e-6
    assert (spent.unit, spent.relation) == ("row", "add-remove")
    assert spent.curve.to_epsilon(1e-6) == spent.epsilon


def test_a_statement_names_its_assumptions(two):
    X, y = two
    spent = DPLogisticRegression(data_norm=20).fit(X, y).privacy_spent_
    for part in (
        "set of labels",
        "norm of a row are public",
        "floating-point",
        "chosen without private data",
    ):
        assert part in spent.in_one_line()
    assert spent.n_teachers is spent.n_queries is None


@every_method
def test_seeded_noise_repeats_the_weights_and_voids_the_statement(two, method):
    X, y = two
    learner = DPLogisticRegression(method=method, data_norm=20)
    one, other = (equal_noise(3)(learner.fit)(X, y).coef_ for _ in range(2))
    np.testing.assert_array_equal(one, other)
    assert learner.privacy_spent_.epsilon == np.inf


@every_learner
@every_method
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_plan_is_the_statement(two, three, learner, method, n_classes, monkeypatch):
    X, y = two if n_classes == 2 else three
    learner = learner(method=method, data_norm=20)
    with monkeypatch.context() as patch:
        patch.setattr(NoiseSource, "words", lambda *_: pytest.fail("noise was drawn"))
        planned = learner.plan_privacy(X, y)
    assert not hasattr(learner, "coef_")
    assert planned == learner.fit(X, y).privacy_spent_


@every_learner
def test_a_gaussian_fit_does_not_depend_on_the_number_of_rows(two, learner):
    X, y = two
    learner = learner(method="gaussian", data_norm=20, classes=["no", "yes"])
    one, other = (learner.plan_privacy(X[:n], y[:n]) for n in (7, 400))
    assert one == other
    assert learner.fit(X[:7], y[:7]).C_ == learner.fit(X, y).C_


# The ledger


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "patients.sqlite", epsilon=8, delta=1e-5)


@every_method
def test_a_fit_is_charged_before_any_noise_is_drawn(two, ledger, method, monkeypatch):
    draw = NoiseSource.words

    def watched(self, shape):
        assert len(PrivacyLedger(ledger.path).entries()) == 1
        return draw(self, shape)

    monkeypatch.setattr(NoiseSource, "words", watched)
    X, y = two
    learnt = DPLogisticRegression(method=method, data_norm=20, ledger=ledger).fit(X, y)
    (charge,) = ledger.entries()
    assert charge.share == ledger.budget_fractions(learnt.privacy_spent_.curve)[0]
    assert learnt.privacy_spent_.mechanism in charge.description


def test_every_fit_is_a_release_of_its_own(two, ledger):
    X, y = two
    learner = DPLogisticRegression(data_norm=20, ledger=ledger)
    learner.fit(X, y)
    learner.fit(X, y)
    assert len(ledger.entries()) == 2


@every_learner
def test_a_fit_beyond_the_budget_leaves_nothing(two, ledger, learner, monkeypatch):
    monkeypatch.setattr(NoiseSource, "words", lambda *_: pytest.fail("noise was drawn"))
    X, y = two
    learner = learner(epsilon=30.0, data_norm=20, ledger=ledger)
    with pytest.raises(BudgetExceededError):
        learner.fit(X, y)
    assert ledger.entries() == []
    assert not hasattr(learner, "coef_")
    assert not hasattr(learner, "privacy_spent_")


def test_a_solver_that_fails_releases_nothing(two, monkeypatch):
    monkeypatch.setattr("sklearn_pate.learners._linear._MOST_STEPS", 1)
    X, y = two
    learner = DPLogisticRegression(data_norm=20, **LITTLE_NOISE)
    with pytest.raises(RuntimeError, match="did not reach the minimum"):
        learner.fit(X, y)
    assert not hasattr(learner, "coef_")
    assert not hasattr(learner, "privacy_spent_")


# Fitted state


@every_learner
@every_method
@pytest.mark.parametrize("duplicate", [copy.deepcopy, "pickle"])
def test_a_fitted_classifier_holds_only_what_is_released(
    three, learner, method, duplicate
):
    (X, y), learnt = three, learner(method=method, data_norm=20).fit(*three)
    facts = vars(learnt).keys() - learnt.get_params() - {"data_problems_"}
    assert facts == {
        "C_",
        "_bounds",
        "_known_columns",
        "classes_",
        "coef_",
        "data_norm_",
        "intercept_",
        "n_features_in_",
        "mechanism_",
        "privacy_spent_",
    }
    # None of them depends on the rows but by the noisy weights.
    again = learner(method=method, data_norm=20).fit(X[::-1] / 3, y)
    assert learnt.mechanism_.get_params() == again.mechanism_.get_params()
    for name in facts - {"_bounds", "coef_", "intercept_", "mechanism_"}:
        assert str(getattr(learnt, name)) == str(getattr(again, name))
    if duplicate == "pickle":
        copied = pickle.loads(pickle.dumps(learnt))
    else:
        copied = duplicate(learnt)
    assert np.array_equal(copied.predict(X), learnt.predict(X))
    assert copied.privacy_spent_ == learnt.privacy_spent_
    assert not hasattr(copied, "data_problems_")


# Accuracy


@pytest.fixture(scope="module")
def encoded_adult(data_set):
    """Rows of norm 1, made with what is known without them."""
    X, y = data_set("adult", as_frame=True, return_X_y=True)
    columns = [
        np.asarray(X[name])[:, np.newaxis] == np.array(sorted(X[name].cat.categories))
        for name in X.select_dtypes("category")
    ]
    for name, low, high in (
        ("age", 17, 90),
        ("education-num", 1, 16),
        ("hours-per-week", 1, 99),
    ):
        columns.append((np.clip(X[name], low, high) - low) / (high - low))
    for name, cap in (("capital-gain", 100_000), ("capital-loss", 10_000)):
        columns.append(np.log1p(np.clip(X[name], 0, cap)) / np.log1p(cap))
    rows = normalize(np.column_stack(columns).astype(float))
    y = np.asarray(y == ">50K")
    return rows[:30_000], y[:30_000], rows[30_000:], y[30_000:]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("learner", "method", "least"),
    [
        pytest.param(DPLogisticRegression, "output", 0.76, marks=pytest.mark.thorough),
        pytest.param(
            *(DPLogisticRegression, "objective", 0.82), marks=pytest.mark.thorough
        ),
        (DPLogisticRegression, "gaussian", 0.83),
        (DPLinearSVC, "objective", 0.825),
        pytest.param(DPLinearSVC, "gaussian", 0.835, marks=pytest.mark.thorough),
    ],
)
def test_incomes_are_predicted_with_an_epsilon_of_one(
    encoded_adult, learner, method, least
):
    X, y, X_test, y_test = encoded_adult
    learner = learner(method=method, data_norm=1, fit_intercept=False)
    scores = [learner.fit(X, y).score(X_test, y_test) for _ in range(3)]
    assert np.max(scores) > least


@pytest.mark.slow
def test_ten_digits_are_distinguished(digits):
    X, y = digits
    learner = DPLinearSVC(method="gaussian", epsilon=4, feature_bounds=(0, 16))
    learner.set_params(data_norm=4)
    assert learner.fit(X[:1400], y[:1400]).score(X[1400:], y[1400:]) > 0.65


@pytest.mark.slow
def test_random_features_make_a_kernel_machine_and_read_no_row():
    X, y = make_circles(20_000, noise=0.1, factor=0.3, random_state=0)
    sampler = RBFSampler(gamma=1, n_components=50, random_state=0)
    machine = make_pipeline(
        sampler, DPLogisticRegression(method="gaussian", data_norm=np.sqrt(2))
    ).fit(X[:15_000], y[:15_000])
    assert machine.score(X[15_000:], y[15_000:]) > 0.9
    features = machine[0].transform(1000 * X)
    assert np.linalg.norm(features, axis=1).max() <= np.sqrt(2) * (1 + 1e-12)
    blind = sampler.fit(np.zeros_like(X)).transform(1000 * X)
    np.testing.assert_array_equal(blind, features)


@every_learner
@pytest.mark.parametrize(
    "bounds", [{"feature_bounds": (0, 1)}, {"data_norm": 1.0}], ids=["box", "ball"]
)
def test_a_model_of_one_class_is_reported_by_its_released_weights(learner, bounds):
    X = np.random.RandomState(0).uniform(size=(400, 2)) / 2
    y = (X[:, 0] > 0.25).astype(int)
    clf = learner(**bounds, **LITTLE_NOISE, classes=[0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyUtilityWarning)
        clf.fit(X, y)
    with pytest.warns(PrivacyUtilityWarning, match="one class for all of .* rows?"):
        clf.fit(X, 0 * y)
