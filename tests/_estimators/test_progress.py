"""Progress of fits in a terminal."""

import io
import sys
import warnings
from contextlib import redirect_stderr
from types import SimpleNamespace

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
    PrivacyUtilityWarning,
    PrivateMarginals,
    PublicData,
    PublicDataWarning,
)
from sklearn_pate.learners import (
    DPNaiveBayesClassifier,
    DPSGDClassifier,
    PETDLClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.metrics import private_metrics
from sklearn_pate.model_selection import PrivateSearchCV

TEACHERS = [f"training teachers {done:2}/15" for done in range(16)]
VOTES = [
    "reading the rows ...",
    "preparing public rows ...",
    "calibrating the noise ...",
    "testing the student on public rows ...",
    "testing a teacher on public rows ...",
    *TEACHERS,
    "querying  0/40",
    "querying 40/40",
    "training the student ...",
]
DOMAIN = {0: tuple(range(-16, 20, 4)), 1: tuple(range(-16, 20, 4))}
NAIVE_BAYES = DPNaiveBayesClassifier(domain=DOMAIN)


def voting(**parameters):
    given = {"mechanism": GNMax(1), "n_queries": 40, **parameters}
    return PATEClassifier(GaussianNB(), n_teachers=15, epsilon=None, **given)


def fit(estimator, blobs, stream=None, *, public=True):
    X, y, X_public, _ = blobs
    given = {"X_public": PublicData(X_public)} if public else {}
    with redirect_stderr(sys.stderr if stream is None else stream):
        return estimator.fit(X, y, **given)


def test_a_terminal_shows_phases_and_counts_in_order(blobs, terminal):
    fit(voting(), blobs, terminal)
    assert terminal.lines == VOTES


def test_nothing_stays_in_the_terminal(blobs, terminal):
    fit(voting(), blobs, terminal)
    *_, last, at_cursor = terminal.getvalue().split("\r")
    assert "\n" not in terminal.getvalue()
    assert (last.strip(), at_cursor) == ("", "")


def test_a_shorter_line_covers_a_longer_one(blobs, terminal):
    fit(voting(), blobs, terminal)
    shown = ""
    for line in terminal.getvalue().split("\r")[:-1]:
        shown = line + shown[len(line) :]  # as a terminal does
        assert shown.rstrip() == line.rstrip()


def test_a_line_is_no_wider_than_the_terminal(blobs, terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    fit(voting(), blobs, terminal)
    assert max(map(len, terminal.getvalue().split("\r"))) == 29


def test_a_stream_that_is_no_terminal_gets_nothing(blobs, capfd):
    fit(voting(), blobs)
    assert tuple(capfd.readouterr()) == ("", "")


def test_verbose_0_shows_nothing(blobs, terminal):
    fit(voting(verbose=0), blobs, terminal)
    assert terminal.getvalue() == ""


def test_verbose_1_keeps_a_line_for_each_phase_also_in_a_file(blobs, capfd):
    clf = fit(voting(verbose=1), blobs)
    assert capfd.readouterr().err.replace("[sklearn_pate] ", "").splitlines() == [
        "reading the rows: done",
        "preparing public rows: done",
        "calibrating the noise: done",
        "testing the student on public rows: done",
        "testing a teacher on public rows: done",
        f"GNMax(sigma=1), {clf.privacy_spent_!r}",
        "training teachers 15/15",
        "querying 40/40",
        "training the student: done",
    ]


@pytest.mark.parametrize("verbose", [-1, 0.5, "always", None])
@pytest.mark.parametrize(
    "estimator", [voting(), PrivateSearchCV(NAIVE_BAYES, {})], ids=["PATE", "search"]
)
def test_other_values_of_verbose_are_refused(blobs, estimator, verbose):
    with pytest.raises(ValueError, match=rf"verbose={verbose!r} must be 'auto'"):
        fit(estimator.set_params(verbose=verbose), blobs)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_teachers_in_other_processes_and_threads_are_counted(blobs, terminal, backend):
    with parallel_config(backend=backend, n_jobs=2):
        fit(voting(), blobs, terminal)
    assert terminal.lines == VOTES


@pytest.mark.slow
def test_teachers_on_a_cluster_are_counted(blobs, terminal):
    with (
        distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=":0"),
        parallel_config(backend="dask"),
    ):
        fit(voting(), blobs, terminal)
    assert terminal.lines == VOTES


def test_newton_steps(blobs, terminal):
    fit(DPNewtonClassifier(epsilon=8), blobs, terminal)
    assert terminal.lines == [
        "reading the rows ...",
        "calibrating the noise ...",
        "preparing public rows ...",
        "representing the rows ...",
        *[f"summing rows {done}/5" for done in range(6)],
    ]


def test_scores_and_a_student(blobs, terminal):
    student = LogisticRegression()
    scores = PATEClassifier(
        GaussianNB(), student, n_teachers=15, mechanism="scores", epsilon=8
    )
    fit(scores, blobs, terminal)
    after = terminal.lines.index(TEACHERS[-1]) + 1
    assert terminal.lines[after:] == [
        *[f"summing scores {done}/2" for done in range(3)],
        "training the student ...",
    ]


def test_synthetic_rows(blobs, terminal):
    newton = DPNewtonClassifier(synthetic=PrivateMarginals(DOMAIN), epsilon=8)
    fit(newton, blobs, terminal, public=False)
    assert "drawing synthetic rows ..." in terminal.lines


def test_petdl(blobs, terminal):
    student = LogisticRegression()
    petdl = PETDLClassifier(
        GaussianNB(), student, n_teachers=15, public_batch_size=20, epsilon=8
    )
    fit(petdl, blobs, terminal)
    after = terminal.lines.index(TEACHERS[-1]) + 1
    assert terminal.lines[after:] == [
        "releasing the sum ...",
        "training the student ...",
    ]


def test_private_knn(blobs, terminal):
    knn = PrivateKNNClassifier(LogisticRegression(), n_queries=40, epsilon=8)
    fit(knn, blobs, terminal)
    assert terminal.lines[-4:] == ["representing the rows ...", *VOTES[-3:]]


@pytest.mark.slow
def test_dp_sgd(terminal):
    from tests.learners.networks import N_CLASSES, N_FEATURES, network

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, N_FEATURES)), rng.integers(N_CLASSES, size=300)
    with redirect_stderr(terminal):
        DPSGDClassifier(network(), epsilon=8).fit(X, y)
    assert terminal.lines[-1] == "training in steps 3/3"


def test_an_adaptive_strategy_counts_its_queries(blobs, terminal):
    fit(voting(query_strategy="uncertainty"), blobs, terminal)
    shown = [one for one in terminal.lines if one.startswith("querying")]
    assert (shown[0], shown[-1]) == ("querying  0/40", "querying 40/40")
    assert shown == sorted(shown)
    assert len(shown) > 3


def test_each_fit_of_a_search_is_shown(blobs, terminal):
    fit(GridSearchCV(voting(), {"n_queries": [40]}, cv=2), blobs, terminal)
    assert terminal.lines == 3 * VOTES


def test_a_private_search_shows_neither_trials_nor_their_number(blobs, terminal):
    search = PrivateSearchCV(voting(), {"n_queries": [40]}, mean_n_trials=3)
    fit(search, blobs, terminal)
    assert terminal.lines == [
        "planning the search ...",
        "fitting a secret number of candidates ...",
    ]


def test_a_search_on_disjoint_rows_counts_candidates(blobs, terminal):
    grid = {"epsilon": [0.5, 1]}
    search = PrivateSearchCV(NAIVE_BAYES, grid, n_trials_distribution="disjoint")
    fit(search, blobs, terminal, public=False)
    assert terminal.lines == [
        "planning the search ...",
        *[f"fitting candidates {done}/2" for done in range(3)],
    ]


def test_a_student_that_is_a_private_classifier_shows_no_phases(blobs, terminal):
    inner = voting(n_queries=15, public_size=0.5, classes=[0, 1, 2], verbose=1)
    with pytest.warns(PublicDataWarning):
        fit(voting(student=inner.set_params(n_teachers=3)), blobs, terminal)
    assert terminal.lines == VOTES


@pytest.mark.parametrize("by_group", [False, True])
def test_scoring_for_metrics(blobs, terminal, by_group):
    """The number of groups is private."""
    X, y, *_ = blobs
    model = GaussianNB().fit(X[:100], y[:100])
    groups = np.arange(500) // 2 if by_group else None
    with redirect_stderr(terminal):
        private_metrics(model, X[100:], y[100:], epsilon=20.0, groups=groups)
    if by_group:
        assert {*terminal.lines} == {"scoring rows ..."}
    else:
        done = [*range(0, 500, 3), 500]
        assert terminal.lines == [f"scoring rows {one:3}/500" for one in done]


def test_a_failed_fit_leaves_no_line(blobs, terminal):
    with pytest.raises(ValueError, match="n_queries=10000 is more"):
        fit(voting(n_queries=10_000), blobs, terminal)
    assert terminal.getvalue().split("\r")[-2].strip() == ""
    fit(voting(), blobs, terminal)  # the next one is shown
    assert terminal.lines[-1] == VOTES[-1]


def test_a_closed_terminal_does_not_end_a_fit(blobs):
    class Closed(io.StringIO):
        def isatty(self):
            return True

        def write(self, text):
            raise BrokenPipeError

    assert hasattr(fit(voting(), blobs, Closed()), "student_")


@pytest.mark.slow
def test_a_warning_starts_at_the_left_of_the_terminal(blobs, terminal, monkeypatch):
    before = []
    monkeypatch.setattr(
        "warnings.showwarning", lambda *_, **__: before.append(terminal.getvalue())
    )
    with warnings.catch_warnings():
        warnings.simplefilter("always", PrivacyUtilityWarning)
        fit(voting(mechanism=GNMax(200)), blobs, terminal)
    assert [text[-1] for text in before] == ["\r"]


def test_a_notebook_shows_phases_in_one_output(blobs, monkeypatch):
    shown = []

    class OutStream(io.StringIO):
        """As that of a kernel, no terminal."""

        __module__ = "ipykernel.iostream"

    class Output:
        def update(self, content, *, raw):
            shown.append(content["text/plain"])

    def display(content, *, raw, display_id):
        assert shown == []
        Output().update(content, raw=raw)
        return Output()

    kernel = SimpleNamespace(display=display)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(display=kernel))
    monkeypatch.setitem(sys.modules, "IPython.display", kernel)
    stream = OutStream()
    fit(voting(), blobs, stream)
    assert shown == [*(f"[sklearn_pate] {phase}" for phase in VOTES), ""]
    assert stream.getvalue() == ""


def test_votes_from_elsewhere(blobs, terminal):
    *_, X_public, _ = blobs
    labels = np.random.default_rng(0).integers(3, size=(15, len(X_public)))
    pate = voting(classes=range(3)).set_params(n_teachers="auto")
    with redirect_stderr(terminal):
        pate.fit_from_votes(PublicData(X_public), labels)
    assert terminal.lines[-3:] == VOTES[-3:]
    assert "training teachers" not in "".join(terminal.lines)
