"""Nothing that happens on private rows reaches trackers, logs or streams."""

import json
import logging
import os
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
from joblib import parallel_config
from joblib.externals.loky import get_reusable_executor
from sklearn import model_selection
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.inspection import audit_neighbours
from sklearn_pate.learners import (
    DPLogisticRegression,
    PETDLClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.model_selection import PrivateSearchCV
from tests.loud import SECRET, Loud, Quiet
from tests.private import autologging_off, muted

BACKENDS = [("sequential", 1), ("threading", 2), ("loky", 2)]


def pate_of(teacher, student=None, **parameters):
    """Return a small PATEClassifier; no tracker patches its student, unless given."""
    return PATEClassifier(
        teacher,
        student=Quiet() if student is None else student,
        n_teachers=4,
        n_queries=20,
        query_strategy="random",  # no k-means on public rows, which is recorded
        mechanism=GNMax(sigma=1),
        epsilon=None,
        classes=range(3),
        **parameters,
    )


def fit(model, blobs, backend="sequential", n_jobs=1):
    X, y, X_public, _ = blobs
    with parallel_config(backend=backend), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of teachers that mlflow makes warn
        return model.set_params(n_jobs=n_jobs).fit(
            X[:200], y[:200], X_public=PublicData(X_public)
        )


class Store:
    """A fresh folder that mlflow tracks to."""

    def __init__(self, mlflow, path):
        self.uri = path.as_uri()
        self.path = path
        self._mlflow = mlflow

    def runs(self):
        return self._mlflow.search_runs(
            search_all_experiments=True, output_format="list"
        )

    def estimators(self):
        return sorted(run.data.tags["estimator_name"] for run in self.runs())

    def numbers_of_rows(self):
        """Return how many rows the data sets have of which there is a hash."""
        return {
            json.loads(one.dataset.profile)["features_shape"][0]
            for run in self.runs()
            for one in run.inputs.dataset_inputs
        }


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of packages that it imports
        pytest.importorskip("mlflow", reason="mlflow is not installed")
        import mlflow.sklearn

        store = Store(mlflow, tmp_path / "runs")
        mlflow.set_tracking_uri(store.uri)
        mlflow.sklearn.autolog(log_models=False)
        yield store
        mlflow.sklearn.autolog(disable=True)
    mlflow.set_tracking_uri(None)


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "n_jobs"), BACKENDS)
@pytest.mark.parametrize(
    "teacher",
    [
        DecisionTreeClassifier(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9]}, cv=2),
    ],
    ids=["tree", "pipeline", "search"],
)
def test_no_run_of_a_teacher_exists(store, blobs, teacher, backend, n_jobs):
    fit(pate_of(teacher), blobs, backend, n_jobs)
    assert store.runs() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "n_jobs"),
    [*BACKENDS[:2], pytest.param(*BACKENDS[2], marks=pytest.mark.thorough)],
)
def test_a_teacher_that_turns_autologging_on_is_not_recorded(
    store, blobs, backend, n_jobs
):
    from tests.autologged import Autologged

    fit(pate_of(Autologged(store.uri)), blobs, backend, n_jobs)
    assert store.runs() == []


@pytest.mark.slow
def test_a_model_of_a_teacher_is_not_recorded(store, blobs):
    import mlflow

    mlflow.sklearn.autolog()  # models, too
    fit(pate_of(DecisionTreeClassifier()), blobs)
    assert store.runs() == []
    assert mlflow.search_logged_models(output_format="list") == []


def test_autologging_turned_on_during_a_fit_does_not_record_teachers(store, blobs):
    from tests.autologged import Resetting

    fit(pate_of(Resetting()), blobs)
    assert store.runs() == []


@pytest.mark.slow
def test_a_student_is_recorded_and_its_teachers_are_not(store, blobs):
    fit(pate_of(DecisionTreeClassifier(), student=GaussianNB()), blobs)
    assert store.estimators() == ["GaussianNB"]


@pytest.mark.slow
def test_autologging_is_on_again_after_a_fit(store, blobs):
    X, y, _, _ = blobs
    fit(pate_of(DecisionTreeClassifier()), blobs)
    LogisticRegression().fit(X, y)
    assert store.estimators() == ["LogisticRegression"]


@pytest.mark.slow
def test_autologging_is_on_again_after_a_fit_that_failed(store, blobs):
    X, y, _, _ = blobs
    with pytest.raises(ValueError, match="max_depth"):
        fit(pate_of(DecisionTreeClassifier(max_depth=-1)), blobs)
    LogisticRegression().fit(X, y)
    assert store.estimators() == ["LogisticRegression"]


def test_integrations_that_were_off_stay_off(store, blobs):
    import mlflow

    X, y, _, _ = blobs
    mlflow.sklearn.autolog(disable=True)
    fit(pate_of(DecisionTreeClassifier()), blobs)
    LogisticRegression().fit(X, y)
    assert store.runs() == []


@pytest.mark.slow
def test_the_last_block_turns_autologging_on(store, blobs):
    X, y, _, _ = blobs
    first, second = autologging_off(), autologging_off()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    LogisticRegression().fit(X, y)
    assert store.runs() == []
    second.__exit__(None, None, None)
    LogisticRegression().fit(X, y)
    assert store.estimators() == ["LogisticRegression"]


@pytest.mark.slow
def test_a_fit_inside_a_disabled_block_of_mlflow_keeps_it_disabled(store, blobs):
    X, y, X_public, _ = blobs
    pate = pate_of(DecisionTreeClassifier(), student=GaussianNB())
    params = {"X_public": PublicData(X_public)}
    # By its module: what was imported before is not patched.
    model_selection.cross_val_score(pate, X[:200], y[:200], cv=2, params=params)
    assert store.runs() == []


@pytest.mark.slow
@pytest.mark.parametrize("distribution", ["logarithmic", "disjoint"])
def test_no_run_of_a_trial_exists(store, blobs, distribution):
    X, y, X_public, _ = blobs
    frozen = FrozenEstimator(PCA(2).fit(X_public))  # this is recorded
    pate = pate_of(DecisionTreeClassifier(), student=GaussianNB())
    search = PrivateSearchCV(
        make_pipeline(frozen, pate),
        {"pateclassifier__n_queries": [10, 20]},
        n_trials_distribution=distribution,
        mean_n_trials=2,
        classes=range(3),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X, y, pateclassifier__X_public=PublicData(X_public))
    assert store.estimators() == ["PCA"]
    assert store.numbers_of_rows() == {len(X_public)}


@pytest.mark.slow
def test_no_run_of_a_plan_exists(store, blobs):
    X, y, X_public, _ = blobs
    frozen = FrozenEstimator(PCA(2).fit(X_public))
    learner = DPLogisticRegression(data_norm=10)
    search = PrivateSearchCV(
        make_pipeline(frozen, learner), {"dplogisticregression__C": [1.0]}
    )
    search.plan_privacy(X, y)
    assert store.estimators() == ["PCA"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "learner",
    [
        PrivateKNNClassifier(
            n_neighbors=20, mechanism=GNMax(5), epsilon=None, student=Quiet()
        ),
        PETDLClassifier(
            DecisionTreeClassifier(),
            n_teachers=4,
            noise_scale=0.01,
            epsilon=None,
            student=Quiet(),
        ),
    ],
    ids=["knn", "petdl"],
)
def test_rows_that_a_representation_transforms_are_not_recorded(store, blobs, learner):
    X, y, X_public, _ = blobs
    learner.set_params(representation=PCA(2), classes=range(3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner.fit(X, y, X_public=PublicData(X_public))
    assert store.numbers_of_rows() == {len(X_public)}


@pytest.mark.slow
def test_no_run_of_an_audit_exists(store, blobs):
    X, y, X_public, _ = blobs
    pate = pate_of(DecisionTreeClassifier(), student=GaussianNB())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = np.where(np.arange(len(y)) == 0, 1 - y, y)
        audit_neighbours(pate, (X, y), (X, other), X_public=X_public, n_runs=2)
    assert store.runs() == []


_IMPORTED_LATER = """
import sys, warnings
from pathlib import Path
from sklearn.tree import DecisionTreeClassifier
from tests._estimators.test_hooks import fit, pate_of
from sklearn.datasets import make_blobs

X, y = make_blobs(300, centers=3, random_state=3)
blobs = X[:200], y[:200], X[200:], y[200:]
fit(pate_of(DecisionTreeClassifier()), blobs)
assert "mlflow" not in sys.modules
warnings.simplefilter("ignore")
import mlflow.sklearn

mlflow.set_tracking_uri(Path(sys.argv[1]).as_uri())
mlflow.sklearn.autolog(log_models=False)
fit(pate_of(DecisionTreeClassifier()), blobs)
print(len(mlflow.search_runs()), "runs")
"""


@pytest.mark.thorough
def test_mlflow_is_not_imported_and_may_be_later(store, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTED_LATER, tmp_path / "later"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout == "0 runs\n", done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "n_jobs"),
    [*BACKENDS[:2], pytest.param(*BACKENDS[2], marks=pytest.mark.thorough)],
)
def test_output_and_logs_of_a_teacher_stay_in_its_task(
    blobs, capfd, caplog, backend, n_jobs
):
    get_reusable_executor().shutdown()  # new workers write where this test reads
    fit(pate_of(Loud()), blobs, backend, n_jobs)
    print("after")
    logging.getLogger("after").critical("after")
    assert SECRET not in "".join(capfd.readouterr())
    assert caplog.messages == ["after"]


def test_the_text_of_a_teacher_can_be_printed_after_a_fit(blobs, capsys):
    pate = fit(pate_of(Loud(), student=Loud()), blobs)
    assert capsys.readouterr().out.count(SECRET) == 1  # the student learns
    pate.predict(blobs[0])
    assert capsys.readouterr().out.count(SECRET) == 1


def test_other_threads_print_and_log_while_one_is_muted(capsys, caplog):
    def tell():
        print("another")
        logging.getLogger("another").critical("another")

    with muted():
        print(SECRET)
        other = threading.Thread(target=tell)
        other.start()
        other.join()
        logging.getLogger("muted").critical(SECRET)
    assert capsys.readouterr().out == "another\n"
    assert caplog.messages == ["another"]


def test_streams_and_records_are_restored_after_an_exception():
    before = sys.stdout, sys.stderr, logging.getLogRecordFactory()
    with pytest.raises(KeyError), muted(), muted():
        raise KeyError
    assert (sys.stdout, sys.stderr, logging.getLogRecordFactory()) == before


def test_a_handler_that_a_muted_thread_makes_writes_afterwards(capsys):
    with muted():
        handler = logging.StreamHandler(sys.stdout)
    handler.emit(logging.makeLogRecord({"msg": "later"}))
    assert capsys.readouterr().out == "later\n"


def test_a_filter_of_the_user_finds_what_its_factory_adds():
    before = logging.getLogRecordFactory()

    def with_request(*arguments, **named):
        record = before(*arguments, **named)
        record.request = 7
        return record

    logger = logging.getLogger("a teacher's")
    seen = []
    logger.addFilter(lambda record: seen.append(record.request) or True)
    logging.setLogRecordFactory(with_request)
    try:
        with muted():
            logger.warning("private")
    finally:
        logging.setLogRecordFactory(before)
    assert seen == [7]


def test_a_muting_stream_restored_after_its_block_is_removed():
    own = sys.stdout
    try:
        with muted():
            kept = sys.stdout
        sys.stdout = kept
        with muted():
            pass
        assert sys.stdout is own
    finally:
        sys.stdout = own
