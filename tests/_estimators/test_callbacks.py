import itertools

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.mechanisms import GNMax

callback = pytest.importorskip(
    "sklearn.callback", reason="scikit-learn before 1.9 has no callbacks"
)


class Recorder:
    """Counts finished tasks, and looks for anything sensitive on the estimator."""

    def __init__(self):
        self.finished = []
        self.seen_attributes = set()
        self.set_up = self.torn_down = 0

    def setup(self, estimator, context):
        self.set_up += 1

    def teardown(self, estimator, context):
        self.torn_down += 1

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        self.finished.append(context.task_name)
        self.seen_attributes |= {name for name in vars(estimator) if name[-1] == "_"}


@pytest.fixture
def pate():
    return PATEClassifier(
        DecisionTreeClassifier(), n_teachers=15, mechanism=GNMax(1), epsilon=None
    )


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_callbacks_receive_all_phases_every_teacher_and_no_data(pate, blobs, n_jobs):
    X, y, X_public, _ = blobs
    recorder = Recorder()
    pate.set_params(n_jobs=n_jobs).set_callbacks(recorder)
    pate.fit(X, y, X_public=PublicData(X_public))
    tasks = [name for name, _ in itertools.groupby(recorder.finished)]
    assert tasks == [
        "reading the rows",
        "calibrating the noise",
        "preparing public rows",
        "testing the student on public rows",
        "testing a teacher on public rows",
        "training teachers",
        "querying",
        "training the student",
        "fit",
    ]
    assert recorder.finished.count("training teachers") == 15 + 1  # and the phase
    assert recorder.set_up == recorder.torn_down == 1
    assert recorder.seen_attributes <= {"n_features_in_"}


def test_callbacks_are_torn_down_when_the_fit_fails(pate, blobs):
    X, y, X_public, _ = blobs

    class FailsOnPrivateRows(DecisionTreeClassifier):
        def fit(self, X, y):
            if np.min(X) > 50:
                raise ValueError("too large")
            return super().fit(X, y)

    recorder = Recorder()
    pate.set_params(estimator=FailsOnPrivateRows(), student=DecisionTreeClassifier())
    pate.set_callbacks(recorder)
    with pytest.raises(ValueError, match="All teachers"):
        pate.fit(X + 100, y, X_public=PublicData(X_public))
    assert recorder.torn_down == 1


def test_the_progress_bar_of_scikit_learn_shows_teachers(pate, blobs, capsys):
    pytest.importorskip("rich", reason="scikit-learn's ProgressBar needs rich")
    X, y, X_public, _ = blobs
    pate.set_callbacks(callback.ProgressBar())
    pate.fit(X, y, X_public=PublicData(X_public))
    shown = capsys.readouterr().out
    assert "PATEClassifier" in shown
    assert "training teachers" in shown


@pytest.mark.slow
def test_a_search_over_pate_with_callbacks_works(pate, blobs):
    X, y, X_public, _ = blobs
    search = GridSearchCV(pate, {"n_queries": [20, 40]}, cv=2)
    search.set_callbacks(Recorder())
    search.fit(X, y, X_public=PublicData(X_public))
    assert np.isfinite(search.best_score_)


def test_verbose_shows_progress_without_callbacks(pate, blobs, capfd):
    X, y, X_public, _ = blobs
    pate.set_params(verbose=10).fit(X, y, X_public=PublicData(X_public))
    assert "Done" in "".join(capfd.readouterr())


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    "nest",
    [
        lambda logistic: logistic,
        lambda logistic: make_pipeline(StandardScaler(), make_pipeline(logistic)),
        lambda logistic: GridSearchCV(logistic, {"C": [1.0]}, cv=2),
    ],
    ids=["itself", "step of a step", "searched"],
)
def test_callbacks_of_a_teacher_see_no_shard(pate, blobs, nest, n_jobs):
    X, y, X_public, _ = blobs
    monitor = callback.ScoringMonitor(scoring="accuracy")
    logistic = LogisticRegression().set_callbacks(monitor)
    pate.set_params(
        estimator=nest(logistic), student=DecisionTreeClassifier(), n_jobs=n_jobs
    )
    pate.fit(X, y, X_public=PublicData(X_public))
    with pytest.raises(ValueError, match="No logs to retrieve"):
        monitor.get_logs(select="all")
    assert logistic._skl_callbacks == [monitor]  # the user's own has them still
