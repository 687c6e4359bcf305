"""Progress of fits in a terminal."""

import io
import warnings
from contextlib import redirect_stderr

import distributed
import numpy as np
import pytest
from joblib import parallel_config
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import (
    DPNewtonClassifier,
    PATEClassifier,
    PrivateMarginals,
    PublicData,
    PublicDataWarning,
)
from sklearn_pate.learners import (
    Clusters,
    DPNaiveBayesClassifier,
    DPSGDClassifier,
    PETDLClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.model_selection import PrivateSearchCV

TEACHERS = "training teachers 15/15"
ANSWERS = ["querying 40/40", "training the student: done"]
VOTES = [
    "reading the rows: done",
    "calibrating the noise: done",
    "preparing public rows: done",
    "testing the student on public rows: done",
    "testing a teacher on public rows: done",
    "GNMax(sigma=1), PrivacySpent",
    TEACHERS,
    *ANSWERS,
]
DOMAIN = {0: tuple(range(-16, 20, 4)), 1: tuple(range(-16, 20, 4))}
NAIVE_BAYES = DPNaiveBayesClassifier(domain=DOMAIN)


def voting(**parameters):
    given = {"mechanism": GNMax(1), "n_queries": 40, "verbose": 1, **parameters}
    return PATEClassifier(GaussianNB(), n_teachers=15, epsilon=None, **given)


def fit(estimator, blobs, *, public=True):
    X, y, X_public, _ = blobs
    given = {"X_public": PublicData(X_public)} if public else {}
    return estimator.fit(X, y, **given)


def lines_of(call, *args, **named):
    """Return what a call writes to the error stream, by line, without a statement."""
    stream = io.StringIO()
    with redirect_stderr(stream):
        call(*args, **named)
    lines = stream.getvalue().splitlines()
    assert all(one.startswith("[sklearn_pate] ") for one in lines)
    return [
        one.removeprefix("[sklearn_pate] ").partition("(epsilon")[0] for one in lines
    ]


@pytest.mark.parametrize("verbose", [1, True])
def test_verbose_writes_a_line_for_each_phase_in_order(blobs, verbose):
    assert lines_of(fit, voting(verbose=verbose), blobs) == VOTES


def test_the_statement_is_written_before_the_first_teacher(blobs, capfd):
    clf = fit(voting(), blobs)
    before, teachers, _ = capfd.readouterr().err.partition(TEACHERS)
    assert f"GNMax(sigma=1), {clf.privacy_spent_!r}" in before
    assert teachers


@pytest.mark.parametrize("parameters", [{}, {"verbose": 0}, {"verbose": False}])
def test_a_fit_writes_nothing_by_default(blobs, parameters, capfd):
    clf = PATEClassifier(GaussianNB(), n_teachers=15, **parameters)
    with warnings.catch_warnings(action="ignore"):
        fit(clf, blobs)
    assert tuple(capfd.readouterr()) == ("", "")


@pytest.mark.parametrize("verbose", [-1, 0.5, "auto", None])
@pytest.mark.parametrize(
    "estimator", [voting(), PrivateSearchCV(NAIVE_BAYES, {})], ids=["PATE", "search"]
)
def test_other_values_of_verbose_are_refused(blobs, estimator, verbose):
    with pytest.raises(ValueError, match=rf"verbose={verbose!r} must be a bool or an"):
        fit(estimator.set_params(verbose=verbose), blobs)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_teachers_in_other_processes_and_threads_are_counted(blobs, backend):
    with parallel_config(backend=backend, n_jobs=2):
        assert lines_of(fit, voting(), blobs) == VOTES


@pytest.mark.thorough
def test_teachers_on_a_cluster_are_counted(blobs):
    with (
        distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=":0"),
        parallel_config(backend="dask"),
    ):
        assert lines_of(fit, voting(), blobs) == VOTES


def test_newton_steps(blobs):
    newton = DPNewtonClassifier(epsilon=8, verbose=1)
    lines = lines_of(fit, newton, blobs)
    assert lines == [
        "reading the rows: done",
        "calibrating the noise: done",
        "preparing public rows: done",
        f"{newton.mechanism_.in_one_line()}, PrivacySpent",
        "representing the rows: done",
        "summing rows 5/5",
    ]


def test_scores_and_a_student(blobs):
    student = LogisticRegression()
    scores = PATEClassifier(
        GaussianNB(), student, n_teachers=15, mechanism="scores", epsilon=8, verbose=1
    )
    lines = lines_of(fit, scores, blobs)
    after = lines.index(TEACHERS) + 1
    assert lines[after:] == ["summing scores 3/3", ANSWERS[-1]]


@pytest.mark.slow
def test_synthetic_rows(blobs):
    newton = DPNewtonClassifier(
        synthetic=PrivateMarginals(DOMAIN), epsilon=8, verbose=1
    )
    assert "drawing synthetic rows: done" in lines_of(fit, newton, blobs, public=False)


def test_petdl(blobs):
    student = LogisticRegression()
    petdl = PETDLClassifier(
        GaussianNB(), student, n_teachers=15, batches=Clusters(20), epsilon=8, verbose=1
    )
    lines = lines_of(fit, petdl, blobs)
    after = lines.index(TEACHERS) + 1
    assert lines[after:] == ["releasing the sum: done", ANSWERS[-1]]


def test_private_knn(blobs):
    knn = PrivateKNNClassifier(LogisticRegression(), n_queries=40, epsilon=8, verbose=1)
    assert lines_of(fit, knn, blobs)[-3:] == ["representing the rows: done", *ANSWERS]


@pytest.mark.slow
def test_dp_sgd():
    from tests.learners.networks import N_CLASSES, N_FEATURES, network

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, N_FEATURES)), rng.integers(N_CLASSES, size=300)
    lines = lines_of(DPSGDClassifier(network(), epsilon=8, verbose=1).fit, X, y)
    assert lines[-1] == "training in steps 3/3"


def test_an_adaptive_strategy_counts_its_queries(blobs):
    lines = lines_of(fit, voting(query_strategy="uncertainty"), blobs)
    assert [one for one in lines if one.startswith("querying")] == ["querying 40/40"]


@pytest.mark.slow
def test_each_fit_of_a_search_is_shown(blobs):
    search = GridSearchCV(voting(), {"n_queries": [40]}, cv=2)
    assert lines_of(fit, search, blobs) == 3 * VOTES


@pytest.mark.slow
def test_a_private_search_shows_neither_trials_nor_their_number(blobs):
    search = PrivateSearchCV(voting(), {"n_queries": [40]}, mean_n_trials=3, verbose=1)
    assert lines_of(fit, search, blobs) == [
        "planning the search: done",
        "fitting a secret number of candidates: done",
    ]


@pytest.mark.slow
def test_a_search_on_disjoint_rows_counts_candidates(blobs):
    grid = {"epsilon": [0.5, 1]}
    search = PrivateSearchCV(
        NAIVE_BAYES, grid, n_trials_distribution="disjoint", verbose=1
    )
    assert lines_of(fit, search, blobs, public=False) == [
        "planning the search: done",
        "fitting candidates 2/2",
    ]


def test_a_student_that_is_a_private_classifier_shows_no_phases(blobs):
    inner = voting(n_queries=15, public_size=0.5, classes=[0, 1, 2])
    with pytest.warns(PublicDataWarning):
        lines = lines_of(fit, voting(student=inner.set_params(n_teachers=3)), blobs)
    assert lines == VOTES


def test_a_failed_fit_shows_the_phases_before_it_and_the_next_fit_all(blobs):
    def fail():
        with pytest.raises(ValueError, match="n_queries=10000 is more"):
            fit(voting(n_queries=10_000), blobs)

    assert lines_of(fail) == VOTES[:1]
    assert lines_of(fit, voting(), blobs) == VOTES


def test_a_closed_stream_does_not_end_a_fit(blobs):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    with redirect_stderr(Closed()):
        assert hasattr(fit(voting(), blobs), "student_")


def test_votes_from_elsewhere(blobs):
    *_, X_public, _ = blobs
    labels = np.random.default_rng(0).integers(3, size=(15, len(X_public)))
    pate = voting(classes=range(3)).set_params(n_teachers="auto")
    lines = lines_of(pate.fit_from_votes, PublicData(X_public), labels)
    assert lines[-2:] == ANSWERS
    assert TEACHERS not in lines
