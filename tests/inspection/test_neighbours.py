import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from sklearn_pate import PATEClassifier, PrivacyLedger, PublicData
from sklearn_pate.inspection import audit_neighbours
from sklearn_pate.learners import PrivateKNNClassifier
from sklearn_pate.mechanisms import GNMax
from tests.private import PrivateRows, epsilon_lower_bound

X_PUBLIC = PublicData(np.linspace(-0.01, 0.01, 10)[:, None])
N_TEACHERS = 72


def make(**parameters):
    # Trees memorise their rows; and the audit looks at answers, not at the student.
    defaults = {"n_teachers": 100, "epsilon": 1.0, "query_strategy": "random"}
    defaults |= {"estimator": DecisionTreeClassifier(), "student": DummyClassifier()}
    return PATEClassifier(**(defaults | parameters))


def dealt(n_teachers):
    """Rows whose votes depend on their teachers; one label differs.

    Class 1 is at 5. The rows of class 0 are, in turn, at 0, where the public rows are,
    and at 9. Where they are dealt in their order, every other teacher gets two at 0 and
    is for class 0. Without the row in the middle, those after it move up by one
    teacher: then every teacher gets one of the rows at 0.
    """
    x0 = np.where(np.arange(2 * n_teachers) % 2 == 0, 0.0, 9.0)
    x0 = np.insert(x0, n_teachers, 9.0)
    X = np.concatenate([x0, np.full(2 * n_teachers, 5.0)])[:, None]
    y = np.concatenate([np.zeros(len(x0), int), np.ones(2 * n_teachers, int)])
    changed = y.copy()
    changed[n_teachers] = 1
    return (X, y), (X, changed)


def deal_by_class(private, n_teachers, key):
    teacher = np.empty(private.n_rows, dtype=int)
    for code in np.unique(private.codes):
        rows = np.flatnonzero(private.codes == code)
        teacher[rows] = np.arange(len(rows)) % n_teachers
    return [np.flatnonzero(teacher == one) for one in range(n_teachers)]


class NearestRow(ClassifierMixin, BaseEstimator):
    """Predicts the label of the nearest row, fast, as it checks nothing."""

    def fit(self, X, y):
        self.X_, self.y_, self.classes_ = X[:, 0], y, np.unique(y)
        return self

    def predict(self, X):
        return self.y_[np.abs(X - self.X_).argmin(axis=1)]


def in_two_worlds(n_runs, **parameters):
    pate = make(
        estimator=NearestRow(),
        n_teachers=N_TEACHERS,
        epsilon=None,
        mechanism=GNMax(sigma=15.1),
        random_state=0,
        **parameters,
    )
    return audit_neighbours(pate, *dealt(N_TEACHERS), X_public=X_PUBLIC, n_runs=n_runs)


@pytest.mark.thorough
def test_one_changed_label_does_not_contradict_the_package():
    result = in_two_worlds(20)
    assert 0.9 < result.epsilon_claimed < 1
    assert not result.contradicted


@pytest.mark.thorough
def test_shards_that_look_at_labels_are_found(monkeypatch):
    monkeypatch.setattr(PrivateRows, "shards", deal_by_class)
    assert in_two_worlds(80).contradicted


@pytest.mark.thorough
def test_a_teacher_that_gets_all_rows_is_found(monkeypatch):
    monkeypatch.setattr(
        PrivateRows,
        "shards",
        lambda private, n_teachers, key: [np.arange(private.n_rows)] * n_teachers,
    )
    X, y = np.arange(300.0)[:, None], np.arange(300) % 2
    changed = np.where(np.arange(300) == 0, 1, y)
    result = audit_neighbours(
        make(estimator=NearestRow(), vote="plain", random_state=0),
        (X, y),
        (X, changed),
        X_public=X_PUBLIC,
        n_runs=80,
    )
    assert result.contradicted
    assert "contradicts the claim of epsilon=1.000" in str(result)


@pytest.mark.thorough
def test_a_statistic_of_ones_own_and_a_group_that_is_removed():
    rng = np.random.default_rng(0)
    X, y, groups = rng.normal(size=(40, 1)), np.arange(40) % 2, np.arange(40) // 2
    stays = groups != 7
    result = audit_neighbours(
        make(n_teachers=4, privacy_unit="group", classes=[0, 1]),
        (X, y, groups),
        (X[stays], y[stays], groups[stays]),
        X_public=rng.normal(size=(5, 1)),
        statistic=lambda pate: pate.answers_.sum(),
        n_runs=10,
    )
    assert not result.contradicted
    assert "of 5 trials" in result.evidence


@pytest.mark.parametrize("number", [0.0, np.inf, -np.inf])
@pytest.mark.parametrize("nan_is_first", [True, False])
def test_nan_differs_from_all_numbers(number, nan_is_first):
    scores = [np.full(400, np.nan), np.full(400, number)]
    confidence = {"delta": 1e-5, "confidence": 0.9999}
    bound, evidence = epsilon_lower_bound(
        *scores[:: 1 if nan_is_first else -1], **confidence
    )
    # As for two numbers that differ: 200 of 200 trials against none.
    assert (bound, evidence) == epsilon_lower_bound(
        np.ones(400), np.zeros(400), **confidence
    )
    assert bound > 2.9


def test_nan_on_both_data_sets_counts_by_its_share_alone():
    rng = np.random.default_rng(0)
    few, some, many = (
        np.where(rng.random(2000) < share, np.nan, 0.0) for share in (0.1, 0.1, 0.9)
    )
    confidence = {"delta": 0, "confidence": 0.9999}
    assert epsilon_lower_bound(few, some, **confidence)[0] < 0.3
    assert 1.5 < epsilon_lower_bound(few, many, **confidence)[0] < np.log(9)


@pytest.mark.parametrize(
    "change",
    [
        lambda X, y: (X, y),
        lambda X, y: (X, 1 - y),
        lambda X, y: (X[1:], y[1:]),
        lambda X, y: (X[:-1], y[:-1]),
        lambda X, y: (X, y, y),
    ],
)
def test_data_sets_that_are_no_neighbours_are_refused(change):
    data = dealt(4)[0]
    with pytest.raises(ValueError, match="neighbouring_data"):
        audit_neighbours(make(n_teachers=4), data, change(*data), X_public=X_PUBLIC)


def test_groups_that_are_no_neighbours_are_refused():
    X, y = dealt(4)[0]
    groups = np.arange(len(y)) // 2
    other = np.where(groups == 3, 4, groups)  # one group joins another: two changed
    with pytest.raises(ValueError, match="differ in 2 groups"):
        audit_neighbours(
            make(n_teachers=4, privacy_unit="group"),
            (X, y, groups),
            (X, y, other),
            X_public=X_PUBLIC,
        )


@pytest.mark.slow
def test_what_an_audit_fits_is_not_charged(tmp_path):
    ledger = PrivacyLedger(tmp_path / "patients.sqlite", epsilon=3, delta=1e-6)
    pate = make(n_teachers=10, ledger=ledger, random_state=0)
    result = audit_neighbours(pate, *dealt(10), X_public=X_PUBLIC, n_runs=5)
    assert not result.contradicted
    assert ledger.entries() == []


def near_and_far(n_far):
    """Rows far from all queries, and the same with one more, which is near."""
    X, y = np.full((n_far, 1), 10.0), np.zeros(n_far, dtype=int)
    return (np.append(X, [[0.0]], axis=0), np.append(y, 1)), (X, y)


@pytest.mark.thorough
def test_answers_of_neighbours_are_looked_at_too(monkeypatch):
    knn = PrivateKNNClassifier(
        DummyClassifier(),
        mechanism=GNMax(sigma=1),
        epsilon=None,
        n_neighbors=1,
        sampling_rate=0.002,
        query_strategy="random",
        delta=0.01,
        classes=[0, 1],
        random_state=0,
    )
    audited = {"X_public": X_PUBLIC, "n_runs": 60}
    assert not audit_neighbours(knn, *near_and_far(30), **audited).contradicted
    monkeypatch.setattr(
        "sklearn_pate.mechanisms._noisy_training.PoissonSampler.draw",
        lambda self, n_units: np.ones(n_units, dtype=bool),
    )
    assert audit_neighbours(knn, *near_and_far(30), **audited).contradicted


@pytest.mark.parametrize(
    ("estimator", "X_public", "message"),
    [
        (
            LogisticRegression(),
            X_PUBLIC,
            "statistic=None compares answers to queries, but est",
        ),
        (make(public_size=0.2), None, "about the same public rows, but X_public=None"),
    ],
)
def test_a_fit_without_answers_to_compare_is_refused(estimator, X_public, message):
    with pytest.raises(ValueError, match=message):
        audit_neighbours(estimator, *dealt(4), X_public=X_public)
