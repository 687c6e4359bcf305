"""Tests of fits that release mean scores."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
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
from sklearn_pate.inspection import PrivacyReport, plan
from sklearn_pate.mechanisms import GNMax, MeanScores
from sklearn_pate.students import ScoreFunction
from tests.private import StoredSums
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


@pytest.mark.thorough
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


@pytest.mark.slow
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
        ({"vote": "plain"}, "vote='plain' cannot be combined with mechanism='scores'"),
        (
            {
                "student": LogisticRegression(),
                "threshold": "balanced",
                "classes": [0, 1],
            },
            "a student of your own predicts by its own rule; set threshold='auto'",
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


@pytest.mark.thorough
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


@pytest.mark.thorough
def test_a_repeated_fit_gets_the_same_scores_at_no_cost(blobs, tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=5, delta=1e-5)
    first, second = (fitted(blobs, ledger=ledger) for _ in range(2))
    assert_array_equal(first.soft_answers_, second.soft_answers_)
    assert len(ledger.entries()) == 1


@pytest.mark.thorough
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


@pytest.mark.thorough
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


@pytest.mark.slow
def test_groups_reach_one_teacher_and_state_their_unit(blobs):
    X, y, X_public, X_test, y_test = blobs
    clf = make(privacy_unit="group").fit(
        X, y, X_public=X_public, groups=np.arange(4000) // 4
    )
    assert clf.privacy_spent_.unit == "group"
    assert clf.privacy_spent_.relation == "add-remove-or-change"
    assert clf.score(X_test, y_test) > 0.85


@pytest.mark.thorough
def test_sparse_rows(blobs):
    X, y, X_public, X_test, y_test = blobs
    clf = make().fit(
        sp.csr_matrix(X), y, X_public=PublicData(sp.csr_matrix(X_public.X))
    )
    assert isinstance(clf.mechanism_, MeanScores)
    assert clf.score(sp.csr_matrix(X_test), y_test) > 0.7


@pytest.mark.thorough
def test_string_labels_and_columns(blobs):
    X, y, X_public, X_test, y_test = blobs
    names = np.array(["dog", "cat", "eel"])

    def frame(X):
        words = np.where(X[:, 0] > 0, "high", "low")
        return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": words})

    clf = make().fit(frame(X), names[y], X_public=PublicData(frame(X_public.X)))
    assert clf.score(frame(X_test), names[y_test]) > 0.8


@pytest.mark.thorough
def test_many_classes():
    X, y = make_blobs(9000, centers=150, n_features=10, random_state=0)
    clf = make(mechanism="scores", epsilon=8.0, n_teachers=50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf.fit(X[:8000], y[:8000], X_public=PublicData(X[8000:8500]))
    assert clf.predict_proba(X[8500:]).shape == (500, 150)


@pytest.mark.slow
def test_a_single_public_row_gives_a_constant(blobs):
    X, y, X_public, X_test, _ = blobs
    with (
        pytest.warns(StudentWarning, match="one class for all of 1 public row"),
        pytest.warns(PrivacyUtilityWarning, match="X_public has only 1 row"),
    ):
        clf = make().fit(X, y, X_public=PublicData(X_public.X[:1]))
    assert len(np.unique(clf.predict(X_test))) == 1


@pytest.mark.thorough
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
