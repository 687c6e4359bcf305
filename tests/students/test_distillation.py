"""Soft labels, and classifiers that learn from them."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from sklearn_pate.students import DistillationClassifier
from tests.private import soften

COUNTS = arrays(
    np.int64,
    st.tuples(st.integers(1, 5), st.integers(2, 6)),
    elements=st.integers(-300, 300),
)
TEMPERATURES = st.floats(0.01, 100)
LOGISTIC = LogisticRegression(tol=1e-8, max_iter=2000)


@pytest.mark.slow
@given(counts=COUNTS, temperature=TEMPERATURES)
def test_soft_labels_are_powers_of_the_counts_that_sum_to_one(counts, temperature):
    soft = soften(counts, temperature)
    np.testing.assert_allclose(soft.sum(axis=1), 1)
    for row, probabilities in zip(counts, soft, strict=True):
        if row.max() <= 0:
            np.testing.assert_allclose(probabilities, 1 / len(row))
            continue
        top = probabilities[row.argmax()]
        for count, probability in zip(row.tolist(), probabilities, strict=True):
            relative = (max(count, 0) / int(row.max())) ** (1 / temperature)
            assert probability == pytest.approx(top * relative, rel=1e-9, abs=1e-300)


@pytest.mark.slow
@given(counts=COUNTS, temperature=TEMPERATURES, scale=st.integers(1, 1000))
def test_soft_labels_may_be_softened_later_and_counts_scaled(
    counts, temperature, scale
):
    at_once = soften(counts, temperature)
    np.testing.assert_allclose(soften(soften(counts), temperature), at_once, atol=1e-12)
    np.testing.assert_allclose(soften(scale * counts, temperature), at_once, atol=1e-12)


@pytest.mark.parametrize("temperature", [1e-6, 1e6])
def test_extreme_temperatures_give_the_plurality_or_equal_probabilities(temperature):
    soft = soften([[250, 100, 3]], temperature)
    np.testing.assert_allclose(
        soft, [[1, 0, 0]] if temperature < 1 else [[1 / 3] * 3], atol=1e-4
    )


@pytest.mark.parametrize(
    ("histograms", "temperature", "message"),
    [
        ([3, 1], 1, r"histograms has shape \(2,\)"),
        ([[3], [1]], 1, r"histograms has shape \(2, 1\)"),
        ([[np.nan, 1]], 1, "histograms holds NaN or infinity"),
        ([[3, 1]], 0, "temperature=0 must be a number strictly between 0 and inf"),
        ([[3, 1]], np.inf, "temperature=inf must be"),
        ([[3, 1]], True, "temperature=True must be"),
        ([[3, 1]], "hot", "temperature='hot' must be"),
    ],
)
def test_invalid_histograms_and_temperatures_are_refused(
    histograms, temperature, message
):
    with pytest.raises(ValueError, match=message):
        soften(histograms, temperature)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "student",
    [
        DistillationClassifier(RandomForestClassifier(10)),
        DistillationClassifier(LinearSVC()),
        DistillationClassifier(
            make_pipeline(StandardScaler(), LogisticRegression()), temperature=0.5
        ),
    ],
)
def test_check_estimator_has_no_failures(student):
    results = check_estimator(student, on_fail=None, on_skip=None)
    failed = [one for one in results if one["status"] not in ("passed", "skipped")]
    assert failed == []


@pytest.fixture(scope="module")
def tenths():
    """Rows, and soft labels that are whole tenths of three classes."""
    rng = np.random.RandomState(0)
    X = rng.normal(size=(60, 2))
    cuts = np.sort(rng.randint(0, 11, size=(60, 2)), axis=1)
    return X, np.diff(cuts, axis=1, prepend=0, append=10)


@pytest.mark.parametrize(
    "estimator",
    [LOGISTIC, make_pipeline(StandardScaler(), LOGISTIC)],
    ids=["weights", "copies"],
)
def test_a_soft_label_becomes_a_proportional_number_of_rows_of_each_class(
    tenths, estimator
):
    X, counts = tenths
    student = DistillationClassifier(estimator).fit(X, counts)
    # Ten rows for each, one for each tenth; weights are a tenth of that.
    rows, classes = np.repeat(np.arange(60), 10), np.tile(np.arange(3), 60)
    labels = np.repeat(classes, counts.ravel())
    expected = clone(estimator)
    if isinstance(expected, LogisticRegression):
        expected.set_params(C=0.1)
    expected.fit(X[rows], labels)
    np.testing.assert_allclose(
        student.predict_proba(X), expected.predict_proba(X), atol=1e-4
    )


@pytest.mark.slow
def test_copies_approximate_probabilities_that_are_no_tenths():
    probabilities = np.tile([0.93, 0.04, 0.03], (4000, 1))
    nearest = KNeighborsClassifier(4000 * 10)  # predicts the shares of the labels
    student = DistillationClassifier(nearest).fit(np.zeros((4000, 1)), probabilities)
    np.testing.assert_allclose(
        student.predict_proba([[0.0]]), probabilities[:1], atol=1e-3
    )


@pytest.mark.parametrize("soft", [True, False])
def test_a_row_without_any_vote_teaches_no_class_in_particular(tenths, soft):
    X, counts = tenths
    estimator = LOGISTIC if soft else KNeighborsClassifier(10)
    student = DistillationClassifier(estimator).fit(
        np.vstack([X, [[50.0, 50.0]]]), np.vstack([counts, [[-5, 0, -9]]])
    )
    assert student.classes_.tolist() == [0, 1, 2]
    if not soft:
        alone = student.predict_proba([[50.0, 50.0]])
        np.testing.assert_allclose(alone, 1 / 3, atol=0.1)


def noisy_votes(y, sigma, rng):
    """Histograms of 100 teachers, 60 of them right, with noise."""
    others = rng.multinomial(40, np.full(10, 0.1), size=len(y))
    votes = others + 60 * np.eye(10, dtype=int)[y]
    return np.rint(votes + rng.normal(scale=sigma, size=votes.shape)).astype(int)


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [LogisticRegression(C=0.1), make_pipeline(PCA(30), LogisticRegression(C=0.01))],
    ids=["weights", "copies"],
)
def test_histograms_teach_more_than_answers_at_the_same_privacy_cost(digits, estimator):
    X, y = digits[0] / 16, digits[1]
    rng = np.random.RandomState(0)
    # At one epsilon, a histogram's noise is 1.25 times that of an answer.
    answers = noisy_votes(y[:1000], 40, rng).argmax(axis=1)
    histograms = noisy_votes(y[:1000], 50, rng)
    hard = DistillationClassifier(estimator).fit(X[:1000], answers)
    soft = DistillationClassifier(estimator).fit(X[:1000], histograms)
    assert soft.score(X[1000:], y[1000:]) > hard.score(X[1000:], y[1000:]) + 0.01


def test_class_labels_train_the_estimator_unchanged(digits):
    X, y = digits[0][:500], digits[1][:500]
    names = np.array(list("abcdefghij"))[y]
    student = DistillationClassifier(SVC()).fit(X, names)
    assert student.classes_.tolist() == list("abcdefghij")
    np.testing.assert_array_equal(student.predict(X), SVC().fit(X, names).predict(X))
    np.testing.assert_array_equal(
        student.decision_function(X), SVC().fit(X, y).decision_function(X)
    )


class WithoutGaps(LogisticRegression):
    """Wants the labels 0..m-1, as xgboost does."""

    def fit(self, X, y, sample_weight=None):
        if not np.array_equal(np.unique(y), np.arange(len(np.unique(y)))):
            raise ValueError("gaps")
        return super().fit(X, y, sample_weight=sample_weight)


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), WithoutGaps(), KNeighborsClassifier()]
)
@pytest.mark.parametrize("named", [[0, 3], [0, 2, 3]])
def test_a_class_that_no_row_names_keeps_its_column(tenths, estimator, named):
    X, counts = tenths
    histograms = np.full((60, 4), -1)
    histograms[:, named] = counts[:, : len(named)]
    student = DistillationClassifier(estimator).fit(X, histograms)
    assert student.classes_.tolist() == [0, 1, 2, 3]
    probabilities = student.predict_proba(X)
    assert probabilities.shape == (60, 4)
    assert not probabilities[:, 1].any()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert set(student.predict(X)) <= set(named)
    if hasattr(student, "decision_function"):
        scores = student.decision_function(X)
        assert np.all(scores[:, 1] < scores[:, named].min())
        assert np.all(np.isfinite(scores))  # as calibration and chains need them
        np.testing.assert_array_equal(scores.argmax(axis=1), student.predict(X))


def test_two_classes_have_one_column_of_scores(tenths):
    X, counts = tenths
    student = DistillationClassifier(LOGISTIC).fit(X, counts[:, :2])
    assert student.decision_function(X).shape == (60,)
    assert student.predict_proba(X).shape == (60, 2)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[3, -1], [2, 0], [9, -4]], "holds one class only, 0"),
        ([[3, np.nan], [2, 0], [9, 4]], "NaN or infinity"),
        ([[[3, 1]], [[2, 2]], [[9, 1]]], "array with dim 3"),
        ([[1, 2], [2, 1]], "inconsistent numbers of samples"),
        ([1, 1, 1], "one class only; pass"),
    ],
)
def test_labels_that_teach_nothing_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        DistillationClassifier(LOGISTIC).fit(np.eye(3), y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"temperature": -1}, "temperature=-1 must be"),
        ({"estimator": StandardScaler()}, r"StandardScaler\(\) is not a classifier"),
    ],
)
def test_bad_parameters_are_named_before_any_work(parameters, message):
    with pytest.raises(ValueError, match=message):
        DistillationClassifier(**parameters).fit(None, None)


def test_sparse_rows_and_frames_are_repeated_too(tenths):
    pd = pytest.importorskip("pandas")
    X, counts = tenths
    dense = DistillationClassifier(LOGISTIC).fit(X, counts).predict_proba(X)
    sparse = sp.csr_matrix(X)
    student = DistillationClassifier(LOGISTIC).fit(sparse, counts)
    np.testing.assert_allclose(student.predict_proba(sparse), dense, atol=1e-4)
    frame = pd.DataFrame(X, columns=["age", "dose"])
    by_name = ColumnTransformer([("keep", "passthrough", ["age", "dose"])])
    student = DistillationClassifier(make_pipeline(by_name, LOGISTIC))
    student.fit(frame, pd.DataFrame(counts))
    assert student.feature_names_in_.tolist() == ["age", "dose"]
    assert student.predict_proba(frame).shape == (60, 3)


def test_a_seed_repeats_a_fit(tenths):
    X, counts = tenths
    student = DistillationClassifier(RandomForestClassifier(5), random_state=0)
    first, second = (student.fit(X, counts).predict_proba(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)
