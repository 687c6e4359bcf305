"""The same votes wherever the teachers are trained."""

import subprocess
import sys

import distributed
import lightgbm
import numpy as np
import pytest
import xgboost
from joblib import parallel_config, register_parallel_backend
from joblib._parallel_backends import ThreadingBackend
from joblib._utils import _TracebackCapturingWrapper
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.mechanisms import GNMax
from tests._teachers.polls import poll_teachers
from tests.cases import thorough_but
from tests.private import shard_rows

# Votes must not depend on how many threads there are here.
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("two_threads")]

N_TEACHERS = 12

TEACHERS = {
    "forest on all cores": RandomForestClassifier(5, n_jobs=-1),
    "histogram boosting": HistGradientBoostingClassifier(max_iter=3),
    "search in a shard": GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}, cv=2),
    "xgboost": xgboost.XGBClassifier(n_estimators=3),
    "lightgbm": lightgbm.LGBMClassifier(
        n_estimators=3, min_child_samples=3, n_jobs=1, verbose=-1
    ),
}


@pytest.fixture(scope="module")
def digits_votes(digits):
    X, y = digits

    def poll(estimator):
        votes, problems = poll_teachers(
            estimator,
            X[:800],
            y[:800],
            shard_rows(800, N_TEACHERS, 0),
            X[800:],
            n_classes=10,
            seeds=list(range(N_TEACHERS)),
        )
        assert problems.failures == []
        return votes.counts(np.arange(votes.shape[1]))

    return poll


@pytest.fixture(scope="module")
def alone(digits_votes):
    return {name: digits_votes(teacher) for name, teacher in TEACHERS.items()}


@pytest.fixture(scope="module")
def dask_cluster():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("name", TEACHERS)
@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_votes_do_not_depend_on_the_backend(name, backend, alone, digits_votes):
    with parallel_config(backend=backend, n_jobs=2):
        votes = digits_votes(TEACHERS[name])
    np.testing.assert_array_equal(votes, alone[name])


@pytest.mark.parametrize(
    "name",
    thorough_but(
        TEACHERS.keys() - {"forest on all cores", "histogram boosting"}, TEACHERS
    ),
)
def test_votes_of_a_dask_cluster_are_the_same(name, dask_cluster, alone, digits_votes):
    with parallel_config(backend="dask"):
        votes = digits_votes(TEACHERS[name])
    np.testing.assert_array_equal(votes, alone[name])


class ReadsConfiguration(ClassifierMixin, BaseEstimator):
    """Votes for class 1 where scikit-learn's configuration is the caller's."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.full(X.shape[0], int(get_config()["transform_output"] == "pandas"))


@pytest.mark.parametrize("backend", ["sequential", "loky", "threading"])
def test_every_teacher_has_the_callers_configuration(backend, digits_votes):
    with (
        parallel_config(backend=backend, n_jobs=2),
        config_context(transform_output="pandas"),
    ):
        assert np.all(digits_votes(ReadsConfiguration())[:, 1] == N_TEACHERS)


class VotesForItsWorker(ClassifierMixin, BaseEstimator):
    """Votes for class 1 on a dask worker, for class 0 elsewhere."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        from distributed.worker import thread_state

        on_worker = hasattr(thread_state, "execution_state")
        return np.full(X.shape[0], int(on_worker))


LATE_IMPORT = """
import sys
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from tests._teachers.polls import poll_teachers

class Late(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        return self

    def predict(self, X):
        import torch
        return torch.randint(3, (len(X),)).numpy()

def poll():
    votes, _ = poll_teachers(
        Late(), np.zeros((20, 1)), np.arange(20) % 2, np.split(np.arange(20), 5),
        np.zeros((50, 1)), n_classes=3, seeds=range(5),
    )
    return votes.counts(range(50))

assert "torch" not in sys.modules
first = poll()
assert "torch" in sys.modules
assert np.array_equal(first, poll())
"""


@pytest.mark.thorough
def test_a_teacher_that_is_the_first_to_import_torch_is_seeded_too():
    done = subprocess.run(
        [sys.executable, "-c", LATE_IMPORT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_dask_cluster_does_the_work(dask_cluster, digits_votes):
    with parallel_config(backend="dask"):
        assert np.all(digits_votes(VotesForItsWorker())[:, 1] == N_TEACHERS)


def test_a_whole_fit_on_a_dask_cluster(dask_cluster, blobs):
    X, y, X_public, y_public = blobs
    pate = PATEClassifier(
        RandomForestClassifier(5), n_teachers=30, mechanism=GNMax(1), epsilon=None
    )
    with parallel_config(backend="dask"):
        pate.fit(X, y, X_public=PublicData(X_public))
    assert pate.score(X_public, y_public) > 0.9


class ReturnsErrors(ThreadingBackend):
    """Returns the error of a task as its result, as joblibspark 0.6 does."""

    supports_retrieve_callback = False

    def submit(self, func, callback=None):
        def fail():
            raise ModuleNotFoundError("No module named 'joblib'")

        task = _TracebackCapturingWrapper(fail)
        return self._get_pool().apply_async(task, callback=callback)

    apply_async = submit  # its name before joblib 1.5

    def retrieve_result(self, out, timeout=None):
        return out.get()


def test_an_error_that_a_backend_returns_as_a_result_is_shown(blobs):
    X, y, X_public, _ = blobs
    register_parallel_backend("returns-errors", ReturnsErrors)
    pate = PATEClassifier(LogisticRegression(), n_teachers=5)
    with (
        parallel_config(backend="returns-errors", n_jobs=2),
        pytest.raises(
            RuntimeError,
            match=r"could not run the teachers; .*PYSPARK_PYTHON.*"
            r"ModuleNotFoundError: No module named 'joblib'",
        ),
    ):
        pate.fit(X, y, X_public=PublicData(X_public))
