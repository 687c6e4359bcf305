"""Labels spread over a graph, and the classifier that learns from them."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.students import GraphSelfTrainingClassifier

NEAREST = KNeighborsClassifier(n_neighbors=1)  # has the number of its training rows


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "student",
    [
        pytest.param(
            GraphSelfTrainingClassifier(RandomForestClassifier(10)),
            marks=pytest.mark.thorough,
        ),
        GraphSelfTrainingClassifier(LinearSVC()),
        GraphSelfTrainingClassifier(
            LogisticRegression(), StandardScaler(), n_rounds=2, random_state=0
        ),
    ],
)
def test_check_estimator_has_no_failures(student):
    results = check_estimator(student, on_fail=None, on_skip=None)
    failed = [one for one in results if one["status"] not in ("passed", "skipped")]
    assert failed == []


@pytest.fixture(scope="module")
def few_labels(digits):
    """Digits, of which 40 are labelled."""
    X, y = digits
    labels = np.full(len(y), -1)
    rows = np.random.RandomState(0).permutation(1400)[:40]
    labels[rows] = y[rows]
    return X, y, labels


def test_few_labels_teach_far_more_with_a_graph_than_alone(few_labels):
    X, y, labels = few_labels
    svc = SVC(C=10)
    student = GraphSelfTrainingClassifier(svc).fit(X[:1400], labels[:1400])
    alone = svc.fit(X[labels >= 0], labels[labels >= 0])
    for rows in (slice(1400), slice(1400, None)):
        assert student.score(X[rows], y[rows]) > alone.score(X[rows], y[rows]) + 0.08


def test_the_most_confident_rows_are_labelled_better_than_the_others(few_labels):
    X, y, labels = few_labels
    student = GraphSelfTrainingClassifier(NEAREST).fit(X, labels)
    right = student.transduction_ == y
    confidence = student.label_distributions_.max(axis=1)
    assert (
        right[confidence > np.quantile(confidence, 0.15)].mean() > right.mean() + 0.03
    )


@pytest.mark.slow
def test_a_representation_is_for_distances_only(few_labels):
    X, _, labels = few_labels
    rng = np.random.RandomState(0)
    drowned = np.hstack([X, 100 * rng.normal(size=(len(X), 20))])
    first = FunctionTransformer(lambda X: X[:, :64])
    student = GraphSelfTrainingClassifier(NEAREST, first).fit(drowned, labels)
    plain = GraphSelfTrainingClassifier(NEAREST).fit(X, labels)
    np.testing.assert_array_equal(student.transduction_, plain.transduction_)
    assert student.estimator_.n_features_in_ == 84


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    alpha=st.floats(0.01, 0.999),
    n_neighbors=st.integers(1, 40),
)
def test_label_distributions_are_the_formula_solved_directly(seed, alpha, n_neighbors):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(30, 2))
    y = rng.permutation(np.repeat([-1, 0, 1, 2], [15, 5, 5, 5]))
    student = GraphSelfTrainingClassifier(
        NEAREST, alpha=alpha, n_neighbors=n_neighbors
    ).fit(X, y)

    squared = ((X[:, None] - X) ** 2).sum(axis=-1)
    weights = np.zeros((30, 30))
    for i in range(30):
        nearest = np.argsort(squared[i])[1 : n_neighbors + 1]
        weights[i, nearest] = np.exp(-4 * squared[i, nearest] / squared[i, nearest[-1]])
    weights += weights.T
    degree = weights.sum(axis=1)
    smooth = weights / np.sqrt(np.outer(degree, degree))
    spread = np.linalg.inv(np.eye(30) - alpha * smooth) @ np.eye(4)[y][:, :3]
    # The three classes have equally many labels, and so get the same mass.
    spread /= spread.sum(axis=0)
    found = student.label_distributions_
    np.testing.assert_allclose(found.sum(axis=1), 1)
    reached = spread.max(axis=1) > 1e-5
    expected = spread[reached] / spread[reached].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found[reached], expected, atol=1e-4)


def three_islands(rng):
    """Three islands of 40 rows, one of them without any label."""
    X = np.repeat([[0, 0], [100, 0], [0, 100]], 40, axis=0) + rng.normal(size=(120, 2))
    y = np.full(120, -1)
    y[:3], y[40] = 0, 1
    return X, y


def test_rows_that_no_label_reaches_get_the_class_shares_and_teach_nothing():
    X, y = three_islands(np.random.RandomState(0))
    student = GraphSelfTrainingClassifier(NEAREST, share=1.0).fit(X, y)
    # Three labels and one, and one more of each.
    np.testing.assert_allclose(
        student.label_distributions_[80:], np.tile([4 / 6, 2 / 6], (40, 1))
    )
    assert student.transduction_[:80].tolist() == 40 * [0] + 40 * [1]
    assert student.estimator_.n_samples_fit_ == 80


def test_the_share_is_taken_from_each_class_at_least_one_row():
    X, y = three_islands(np.random.RandomState(1))
    for share, n_rows in ((0.6, 24 + 24), (0.51, 21 + 21), (1e-6, 2)):
        student = GraphSelfTrainingClassifier(NEAREST, share=share).fit(X, y)
        assert student.estimator_.n_samples_fit_ == n_rows


def test_a_wrong_answer_is_overruled_by_its_neighbours():
    X, y = three_islands(np.random.RandomState(2))
    y[:20], y[40:50] = 0, 1
    y[4] = 1
    student = GraphSelfTrainingClassifier(NEAREST).fit(X, y)
    assert student.transduction_[4] == 0
    assert student.predict(X[4:5]) == [0]


def test_no_class_with_a_single_label_is_lost():
    X, y = three_islands(np.random.RandomState(3))
    y[:40] = 0
    y[7] = 5
    student = GraphSelfTrainingClassifier(LogisticRegression(), n_rounds=3).fit(X, y)
    assert student.classes_.tolist() == [0, 1, 5]
    assert student.estimator_.classes_.tolist() == [0, 1, 2]
    assert student.transduction_[7] == 5
    assert student.predict_proba(X).shape == (120, 3)


@pytest.mark.parametrize("y", [[0, 1, -1, -1, -1, 0], [0, 1, 0, 1, 0, 1]])
def test_equal_rows_give_no_nan(y):
    X = np.zeros((6, 2))
    student = GraphSelfTrainingClassifier(NEAREST, n_neighbors=2).fit(X, y)
    assert np.all(np.isfinite(student.label_distributions_))


def test_minus_one_is_a_class_where_only_one_other_label_occurs():
    X, _ = three_islands(np.random.RandomState(4))
    y = np.repeat([-1, 1], 60)
    student = GraphSelfTrainingClassifier(NEAREST).fit(X, y)
    assert student.classes_.tolist() == [-1, 1]
    student.fit(X, np.repeat([-1, 1, 0], 40))
    assert student.classes_.tolist() == [0, 1]
    student.fit(X, np.repeat(["-1", "1", "0"], 40))
    assert student.classes_.tolist() == ["-1", "0", "1"]
    with pytest.raises(ValueError, match="one class only; pass"):
        student.fit(X, np.full(120, -1))


@pytest.mark.slow
def test_further_rounds_train_on_confident_predictions(few_labels):
    X, y, labels = few_labels
    logistic = LogisticRegression(max_iter=1000)
    scores = [
        GraphSelfTrainingClassifier(logistic, n_rounds=n_rounds)
        .fit(X[:1400] / 16, labels[:1400])
        .score(X[1400:] / 16, y[1400:])
        for n_rounds in (1, 2, 3)
    ]
    assert min(scores) > max(scores) - 0.03
    assert len(set(scores)) > 1


def test_sparse_rows_spread_labels_as_dense_ones_do():
    X, y = three_islands(np.random.RandomState(5))
    student = GraphSelfTrainingClassifier(LinearSVC())
    dense = student.fit(X, y).label_distributions_
    sparse = student.fit(sp.csr_matrix(X), y).label_distributions_
    np.testing.assert_allclose(sparse, dense, atol=1e-6)


def test_columns_are_found_by_name():
    pd = pytest.importorskip("pandas")
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(
        {"age": rng.normal(size=100), "town": rng.choice(["x", "y"], size=100)}
    )
    y = np.where(frame["age"] > 0, "old", "young")
    columns = ColumnTransformer(
        [("scale", StandardScaler(), ["age"]), ("code", OneHotEncoder(), ["town"])]
    )
    student = GraphSelfTrainingClassifier(
        make_pipeline(columns, LogisticRegression()), columns
    ).fit(frame, y)
    assert student.score(frame, y) > 0.9
    assert student.feature_names_in_.tolist() == ["age", "town"]


@pytest.mark.slow
def test_a_seed_repeats_a_fit_and_none_leaves_the_parts_as_they_are(few_labels):
    X, _, labels = few_labels
    X, labels = X[:500], labels[:500]
    forest = RandomForestClassifier(5, random_state=7)
    seeded = GraphSelfTrainingClassifier(forest, PCA(5), random_state=0)
    first, second = (seeded.fit(X, labels).predict_proba(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert seeded.estimator_.estimator.random_state != 7
    left = GraphSelfTrainingClassifier(forest).fit(X, labels)
    assert left.estimator_.estimator.random_state == 7


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 1}, r"alpha=1 must be a number strictly between 0 and 1"),
        ({"alpha": "much"}, r"alpha='much' must be"),
        ({"share": 0}, r"share=0 must be a number above 0 and at most 1"),
        ({"n_neighbors": 0}, r"n_neighbors=0 must be a whole number"),
        ({"n_rounds": 1.5}, r"n_rounds=1.5 must be a whole number"),
        ({"n_rounds": 2}, r"n_rounds=2 needs predict_proba"),
        ({"estimator": PCA()}, r"estimator=PCA\(\) is not a classifier"),
        ({"representation": LinearSVC()}, r"LinearSVC\(\) is not a transformer"),
    ],
)
def test_bad_parameters_are_named_before_any_work(parameters, message):
    student = GraphSelfTrainingClassifier(LinearSVC()).set_params(**parameters)
    with pytest.raises(ValueError, match=message):
        student.fit(None, None)


@pytest.mark.slow
def test_labels_that_do_not_converge_are_reported():
    X, y = np.arange(12000.0)[:, np.newaxis], np.full(12000, -1)
    y[[0, -1]] = 0, 1
    student = GraphSelfTrainingClassifier(NEAREST, n_neighbors=2, alpha=1 - 1e-12)
    with pytest.warns(ConvergenceWarning, match="lower alpha"):
        student.fit(X, y)


@pytest.mark.thorough
def test_as_a_student_it_learns_more_from_a_hundred_answers(digits):
    X, y = digits[0] / 16, digits[1]

    def mean_score(student):
        # Over several draws of queries, as the noise turns some answers.
        fits = (
            PATEClassifier(
                LogisticRegression(max_iter=2000),
                student,
                n_teachers=10,
                mechanism=GNMax(sigma=0.5),
                epsilon=None,
                n_queries=100,
                random_state=seed,
            ).fit(X[:700], y[:700], X_public=PublicData(X[700:1500]))
            for seed in range(4)
        )
        return np.mean([pate.score(X[1500:], y[1500:]) for pate in fits])

    graph = mean_score(GraphSelfTrainingClassifier(SVC(C=10)))
    assert graph > mean_score(SVC(C=10)) + 0.01


# Soft labels


def test_certain_soft_labels_are_labels(few_labels):
    X, _, labels = few_labels
    soft = np.eye(10)[labels] * (labels >= 0)[:, np.newaxis]
    by_label, same = (
        GraphSelfTrainingClassifier(NEAREST).fit(X, y) for y in (labels, soft)
    )
    assert_array_equal(by_label.label_distributions_, same.label_distributions_)
    assert_array_equal(by_label.transduction_, same.transduction_)


def test_neighbours_correct_wrong_soft_labels(few_labels):
    X, y, _ = few_labels
    rng = np.random.default_rng(0)
    named = np.where(rng.uniform(size=len(y)) < 0.3, rng.integers(10, size=len(y)), y)
    soft = 0.05 + 0.5 * np.eye(10)[named]
    student = GraphSelfTrainingClassifier(NEAREST).fit(X, soft)
    assert np.mean(named == y) < 0.8
    assert np.mean(student.transduction_ == y) > 0.95


@pytest.mark.slow
def test_a_released_function_teaches_on_all_public_rows(digits):
    X, y = digits
    clf = PATEClassifier(
        n_teachers=50,
        mechanism="scores",
        student=GraphSelfTrainingClassifier(SVC(C=10), share=0.9),
        epsilon=8.0,
        random_state=0,
    ).fit(X[:1000], y[:1000], X_public=PublicData(X[1000:1500]))
    again = GraphSelfTrainingClassifier(SVC(C=10), share=0.9)
    again.fit(X[1000:1500], clf.soft_answers_)
    assert_array_equal(clf.student_.transduction_, again.transduction_)
    assert clf.score(X[1500:], y[1500:]) > 0.7
