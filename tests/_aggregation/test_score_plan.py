"""Tests of fits that release mean scores."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.datasets import make_blobs, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import LinearSVC

from sklearn_pate import (
    BudgetExceededError,
    PATEClassifier,
    PrivacyLedger,
    PrivacyUtilityWarning,
    PublicData,
    PublishedClassifier,
    StudentWarning,
)
from sklearn_pate.inspection import PrivacyReport, audit_mechanism, plan
from sklearn_pate.mechanisms import GNMax, MeanScores
from sklearn_pate.students import ScoreFunction, TableRepresentation
from tests.private import LONGEST_CLASS, LONGEST_DIRECTION, LONGEST_VALUE, StoredSums
from tests.seeding import equal_noise

pytestmark = pytest.mark.filterwarnings("error::sklearn_pate.PrivacyUtilityWarning")


@pytest.fixture(scope="module")
def blobs():
    """Return private rows, labels, public rows, and evaluated rows of three classes."""
    X, y = make_blobs(5000, centers=3, cluster_std=1.2, random_state=0)
    return X[:4000], y[:4000], PublicData(X[4000:4400]), X[4400:], y[4400:]


def make(estimator=None, **parameters):
    return PATEClassifier(
        estimator, **{"n_teachers": 100, "epsilon": 4.0, "random_state": 0} | parameters
    )


def fitted(blobs, *arguments, **parameters):
    X, y, X_public, *_ = blobs
    return make(*arguments, **parameters).fit(X, y, X_public=X_public)


@pytest.mark.slow
def test_a_default_fit_releases_mean_scores(blobs):
    clf = fitted(blobs)
    assert isinstance(clf.mechanism_, MeanScores)
    assert isinstance(clf.student_, ScoreFunction)
    assert clf.privacy_spent_.release == "scores"
    assert clf.privacy_spent_.n_queries is None
    assert 3.99 < clf.privacy_spent_.epsilon <= 4
    assert clf.score(*blobs[3:]) > 0.85
    assert_array_equal(clf.queried_indices_, np.arange(400))
    assert_array_equal(clf.answers_, clf.predict(blobs[2].X))
    assert_allclose(clf.soft_answers_, clf.predict_proba(blobs[2].X))


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [
        {"n_queries": 50},
        {"query_strategy": "random"},
        {"mechanism": "histogram"},
        {"mechanism": "gnmax"},
        {"student": SelfTrainingClassifier(LogisticRegression())},
        {"epsilon": None, "mechanism": GNMax(sigma=20)},
    ],
    ids=str,
)
def test_votes_are_answered_where_they_are_asked_for(blobs, parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyUtilityWarning)
        clf = fitted(blobs, **parameters)
    assert clf.privacy_spent_.release == "answers"


@pytest.mark.slow
@pytest.mark.parametrize(
    "teacher",
    [RandomForestClassifier(5), KNeighborsClassifier(3), LinearSVC()],
    ids=lambda one: type(one).__name__,
)
def test_any_teacher_has_scores(blobs, teacher):
    clf = fitted(blobs, teacher)
    assert isinstance(clf.mechanism_, MeanScores)
    assert clf.score(*blobs[3:]) > 0.8
    assert hasattr(clf, "representation_") != isinstance(
        teacher, RandomForestClassifier
    )


@pytest.mark.parametrize(
    "student", [LogisticRegression(), KNeighborsClassifier(20)], ids=repr
)
def test_a_student_learns_from_the_scores(blobs, student):
    clf = fitted(blobs, student=student)
    assert not isinstance(clf.student_, ScoreFunction)
    assert clf.score(*blobs[3:]) > 0.85


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_queries": 10}, "n_queries=10 cannot be combined with mechanism='scores'"),
        (
            {"query_strategy": "random"},
            "query_strategy='random' cannot be combined with mechanism='scores'",
        ),
        (
            {"student": SelfTrainingClassifier(LogisticRegression())},
            "student=.* needs unlabelled rows",
        ),
        ({"mechanism": MeanScores("fourier")}, "basis='fourier'"),
        ({"mechanism": MeanScores(noise_scale=3.0)}, "both set the noise"),
        ({"mechanism": "scores", "threshold": 1.5}, "threshold=1.5"),
        (
            {"mechanism": "scores", "threshold": 0.3},
            "threshold=0.3 is for two classes",
        ),
    ],
)
def test_what_mean_scores_cannot_do_is_refused_before_any_charge(
    blobs, tmp_path, parameters, message
):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=5, delta=1e-5)
    with pytest.raises(ValueError, match=message):
        fitted(blobs, ledger=ledger, **{"mechanism": "scores"} | parameters)
    assert not ledger.entries()


def test_votes_of_parties_have_no_scores(blobs):
    clf = make(mechanism="scores", classes=[0, 1, 2], n_teachers="auto")
    votes = np.zeros((50, 400), dtype=int)
    with pytest.raises(ValueError, match="there are only votes"):
        clf.fit_from_votes(blobs[2], votes)


def test_too_much_noise_is_warned_of_before_any_charge(blobs, tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=5, delta=1e-5)
    with pytest.raises(PrivacyUtilityWarning, match=r"MeanScores\(.*Use n_teachers="):
        fitted(blobs, mechanism="scores", epsilon=0.2, ledger=ledger)
    assert not ledger.entries()


def test_the_plan_is_the_statement_of_the_fit(blobs):
    X, y, X_public, *_ = blobs
    planned = plan(make(), X, y, X_public=X_public)
    clf = fitted(blobs)
    assert not hasattr(planned, "n_queries")
    assert planned.epsilon == clf.privacy_spent_.epsilon
    assert planned.mechanism == clf.privacy_spent_.mechanism
    assert "mean scores of 3 classes" in str(planned)
    assert make().plan_privacy(X, y, X_public=X_public) == clf.privacy_spent_


# Ledger


@pytest.mark.slow
def test_a_repeated_fit_gets_the_same_scores_at_no_cost(blobs, tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=5, delta=1e-5)
    first, second = (fitted(blobs, ledger=ledger) for _ in range(2))
    assert_array_equal(first.soft_answers_, second.soft_answers_)
    assert len(ledger.entries()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("n_answered", [0, 1, 2])
def test_a_fit_killed_between_the_steps_resumes(
    blobs, tmp_path, monkeypatch, n_answered
):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=5, delta=1e-5)
    draw, released = StoredSums.draw, []

    def killed(sums, number, total):
        if len(released) == n_answered:
            raise KeyboardInterrupt
        released.append(draw(sums, number, total))
        return released[-1]

    with monkeypatch.context() as patch:
        patch.setattr(StoredSums, "draw", killed)
        with pytest.raises(KeyboardInterrupt):
            fitted(blobs, ledger=ledger)
    drawn = []
    release = MeanScores.release

    def counted(self, sums, *arguments):
        drawn.append(sums)
        return release(self, sums, *arguments)

    monkeypatch.setattr(MeanScores, "release", counted)
    clf = fitted(blobs, ledger=ledger)
    assert len(drawn) == 3 - n_answered
    assert len(ledger.entries()) == 1
    again = fitted(blobs, ledger=ledger)
    assert len(drawn) == 3 - n_answered
    assert_array_equal(clf.soft_answers_, again.soft_answers_)


def test_a_fit_beyond_the_budget_draws_nothing(blobs, tmp_path, monkeypatch):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=1, delta=1e-5)
    monkeypatch.setattr(MeanScores, "release", None)
    with pytest.raises(BudgetExceededError, match=r"epsilon=0.99\d* would fit|epsilon"):
        fitted(blobs, ledger=ledger)
    assert not ledger.entries()


# Neighbours


def exact_sums(monkeypatch, blobs, X, y, **fit_params):
    """Return the sums of a fit before their noise, which is the same in all fits.

    The noise hides every change, so that later steps are asked the same.
    """
    totals = []

    def kept(self, number, total):
        totals.append(np.asarray(total(), dtype=np.int64).ravel())
        released = np.random.RandomState(number).randint(200, 300, len(totals[-1]))
        return 1000 * released if number == 0 else released

    unit = "group" if fit_params else "row"
    with monkeypatch.context() as patch, equal_noise():
        patch.setattr(StoredSums, "draw", kept)
        clf = make(n_teachers=20, mechanism="scores", privacy_unit=unit)
        clf.set_params(classes=[0, 1, 2]).fit(X, y, X_public=blobs[2], **fit_params)
    assert len(totals) == MeanScores.n_steps
    return totals


def squared_moves(before, after):
    moves = [int(np.vdot(a - b, a - b)) for a, b in zip(after, before, strict=True)]
    distances = [2 * LONGEST_CLASS**2, 4 * LONGEST_DIRECTION**2, 4 * LONGEST_VALUE**2]
    assert np.all(np.array(moves) <= distances)
    return moves


@pytest.mark.parametrize("change", ["label", "row", "missing", "infinite", "huge"])
def test_a_replaced_row_moves_each_sum_within_its_share(monkeypatch, blobs, change):
    X, y = blobs[0][:600], blobs[1][:600]
    other_X, other_y = X.copy(), y.copy()
    if change == "label":
        other_y[3] = (y[3] + 1) % 3
    else:
        values = {"row": -X[3], "missing": np.nan, "infinite": -np.inf, "huge": 1e308}
        other_X[3] = values[change]
    before, after = (
        exact_sums(monkeypatch, blobs, *data) for data in ((X, y), (other_X, other_y))
    )
    moves = squared_moves(before, after)
    assert (moves[0] > 0) == (change == "label")
    assert moves[1] > 0
    assert moves[2] > 0
    if change == "missing":  # the default representation fills in the missing values
        return
    # One teacher alone: every other one has the same vector, to the last bit.
    rest = [exact_sums(monkeypatch, blobs, X, y)[1] for _ in range(2)]
    assert_array_equal(*rest)


def test_a_group_moves_each_sum_within_its_share(monkeypatch, blobs):
    X, y = blobs[0][:600], blobs[1][:600]
    groups = np.arange(600) // 3
    stays = groups != 0  # its rows are the first, so that all others move
    changed = np.where(groups[:, np.newaxis] == 0, np.inf, X)
    group, left, other = (
        exact_sums(monkeypatch, blobs, X_of[kept], y[kept], groups=groups[kept])
        for X_of, kept in ((X, stays | True), (X, stays), (changed, stays | True))
    )
    assert squared_moves(left, group)[0] <= LONGEST_CLASS**2
    assert abs(group[2] - left[2]) <= LONGEST_VALUE
    assert np.all(group[0] >= left[0])
    squared_moves(group, other)


def test_no_warning_depends_on_private_rows(monkeypatch, blobs):
    X, y = blobs[0][:600].copy(), blobs[1][:600]
    X[5], X[6], X[7] = 1e308, -np.inf, np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", StudentWarning)  # of the sums that are noise
        exact_sums(monkeypatch, blobs, X, y)


def test_a_class_of_all_private_rows_raises_no_error(blobs):
    # An error would reveal that no other class occurs.
    X, y, X_public, *_ = blobs
    clf = make(n_teachers=20, mechanism="scores", classes=[0, 1, 2])
    with pytest.warns(StudentWarning, match="predicts one class for all of 400 public"):
        clf.fit(X, np.zeros(len(y), dtype=int), X_public=X_public)


class Refusing(TransformerMixin, BaseEstimator):
    """Representation that refuses rows, prints, warns, and keeps what it has seen."""

    def fit(self, X, y=None):
        self.mean_ = X.mean(axis=0)
        return self

    def transform(self, X):
        if not np.all(np.isfinite(X)):
            raise ValueError(f"refused: {X}")
        print("seen:", len(X))
        warnings.warn(f"seen: {X}", stacklevel=2)
        self.seen_ = X
        return X - self.mean_


def test_a_representation_reveals_nothing_of_a_private_row(monkeypatch, blobs, capsys):
    X, y = blobs[0][:600].copy(), blobs[1][:600]
    X[4], X[5] = 77777, np.nan
    clf = make(
        LogisticRegression(),
        n_teachers=20,
        mechanism="scores",
        representation=Refusing(),
        n_jobs=1,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf.fit(X, y, X_public=blobs[2])
    printed = capsys.readouterr()
    shown = [printed.out, printed.err, *(str(one.message) for one in caught)]
    assert not [one for one in shown if "77777." in one]
    # All public rows, and some of them alone, to measure the time of a private one.
    assert len(printed.out.splitlines()) < 20
    assert np.all(np.isin(clf.representation_.seen_, blobs[2].X))
    codes = {one.code for one in clf.privacy_spent_.assumptions}
    assert {"representation-public", "representation-row-alone"} <= codes


def test_a_representation_of_this_package_needs_no_assumption_on_rows(blobs):
    clf = fitted(blobs, representation=TableRepresentation(), n_teachers=20)
    codes = {one.code for one in clf.privacy_spent_.assumptions}
    assert "representation-row-alone" not in codes


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_the_backend_changes_no_bit(blobs, n_jobs, backend):
    import joblib

    with equal_noise():
        reference = fitted(blobs, n_teachers=60)
    with joblib.parallel_config(backend=backend), equal_noise():
        clf = fitted(blobs, n_teachers=60, n_jobs=n_jobs)
    assert_array_equal(clf.soft_answers_, reference.soft_answers_)


# Data


def test_groups_reach_one_teacher_and_state_their_unit(blobs):
    X, y, X_public, X_test, y_test = blobs
    clf = make(privacy_unit="group").fit(
        X, y, X_public=X_public, groups=np.arange(4000) // 4
    )
    assert clf.privacy_spent_.unit == "group"
    assert clf.privacy_spent_.relation == "add-remove-or-change"
    assert clf.score(X_test, y_test) > 0.85


@pytest.mark.slow
def test_sparse_rows(blobs):
    X, y, X_public, X_test, y_test = blobs
    clf = make().fit(
        sp.csr_matrix(X), y, X_public=PublicData(sp.csr_matrix(X_public.X))
    )
    assert isinstance(clf.mechanism_, MeanScores)
    assert clf.score(sp.csr_matrix(X_test), y_test) > 0.7


@pytest.mark.slow
def test_string_labels_and_columns(blobs):
    X, y, X_public, X_test, y_test = blobs
    names = np.array(["dog", "cat", "eel"])

    def frame(X):
        words = np.where(X[:, 0] > 0, "high", "low")
        return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": words})

    clf = make().fit(frame(X), names[y], X_public=PublicData(frame(X_public.X)))
    assert clf.score(frame(X_test), names[y_test]) > 0.8


@pytest.mark.slow
def test_many_classes():
    X, y = make_blobs(9000, centers=150, n_features=10, random_state=0)
    clf = make(mechanism="scores", epsilon=8.0, n_teachers=50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf.fit(X[:8000], y[:8000], X_public=PublicData(X[8000:8500]))
    assert clf.predict_proba(X[8500:]).shape == (500, 150)


def test_a_single_public_row_gives_a_constant(blobs):
    X, y, X_public, X_test, _ = blobs
    with (
        pytest.warns(StudentWarning, match="one class for all of 1 public row"),
        pytest.warns(PrivacyUtilityWarning, match="X_public has only 1 row"),
    ):
        clf = make().fit(X, y, X_public=PublicData(X_public.X[:1]))
    assert len(np.unique(clf.predict(X_test))) == 1


@pytest.mark.slow
def test_a_rare_class_is_ranked_and_named():
    X, y = make_classification(
        20_000, 10, n_informative=4, weights=[0.93], class_sep=0.8, random_state=0
    )
    clf = make(n_teachers=200, mechanism="scores", threshold="balanced")
    clf.fit(X[:15_000], y[:15_000], X_public=PublicData(X[15_000:16_000]))
    X_test, y_test = X[16_000:], y[16_000:]
    assert clf.student_.threshold is not None
    assert clf.student_.threshold < 0.2
    assert roc_auc_score(y_test, clf.predict_proba(X_test)[:, 1]) > 0.7
    assert balanced_accuracy_score(y_test, clf.predict(X_test)) > 0.62
    plain = clf.set_params(threshold=0.5).fit(
        X[:15_000], y[:15_000], X_public=PublicData(X[15_000:16_000])
    )
    assert balanced_accuracy_score(y_test, plain.predict(X_test)) < 0.6


# Publication


@pytest.mark.slow
def test_a_published_function_predicts_as_before(blobs, tmp_path):
    clf = fitted(blobs)
    clf.publish().save(tmp_path / "model.skops")
    published = PublishedClassifier.load(tmp_path / "model.skops")
    assert_array_equal(published.predict_proba(blobs[3]), clf.predict_proba(blobs[3]))
    assert published.privacy_spent_ == clf.privacy_spent_
    report = PrivacyReport.from_estimator(published)
    assert "mean score model" in report.to_html()


# Audits: planted defects are found


ONE = np.array([[5.0], [0.0], [0.0]])


def audited(**parameters):
    return audit_mechanism(
        MeanScores(noise_scale=2.0),
        ONE,
        -ONE,
        n_trials=10_000,
        delta=0.01,
        **parameters,
    )


@pytest.mark.slow
def test_the_honest_mechanism_passes_its_audit():
    result = audited()
    assert not result.contradicted
    assert result.epsilon_lower > 0.5 * result.epsilon_claimed


@pytest.mark.slow
def test_a_step_that_is_not_charged_is_found(monkeypatch):
    honest = MeanScores._squared_distance
    monkeypatch.setattr(
        MeanScores, "_squared_distance", lambda self, n: 0.3 * honest(self, n)
    )
    assert audited().contradicted


def longer(monkeypatch, name, factor):
    """Let an exact sum of the audit be several times as long."""
    from tests.private import _audits

    honest = getattr(_audits, name)
    monkeypatch.setattr(_audits, name, lambda *one: factor * honest(*one))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["direction_vector", "sum_of_classes"])
def test_a_vector_that_is_too_long_is_found(monkeypatch, name):
    from tests.private import _votes

    monkeypatch.setattr(_votes, "is_direction", lambda vector: True)
    longer(monkeypatch, name, 2 if name == "direction_vector" else 200)
    assert audited().contradicted


@pytest.mark.slow
def test_a_vector_that_is_too_long_adds_nothing(monkeypatch):
    longer(monkeypatch, "direction_vector", 2)
    result = audited()
    assert not result.contradicted
    assert result.epsilon_lower < 0.5 * result.epsilon_claimed


@pytest.mark.slow
def test_a_teacher_that_is_counted_twice_is_found(monkeypatch):
    from tests.private import TeacherScores

    one = TeacherScores.sum
    monkeypatch.setattr(TeacherScores, "sum", lambda self: 2 * one(self))
    assert audited().contradicted


@pytest.mark.slow
def test_a_value_that_is_not_clipped_is_found(monkeypatch):
    from tests.private import _audits

    monkeypatch.setattr(_audits, "LONGEST_VALUE", 10 * LONGEST_VALUE)
    assert audited().contradicted
