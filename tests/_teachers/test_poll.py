import gc
import json
import os
import random
import stat
import time
import warnings
import weakref
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from joblib import parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_info

from tests._teachers.polls import poll_teachers
from tests.cases import thorough_but
from tests.private import shard_rows

N_TEACHERS = 10


def poll(
    estimator, X, codes, X_public, *, n_jobs=1, n_classes=3, shards=None, **kwargs
):
    return poll_teachers(
        estimator,
        X,
        codes,
        shard_rows(X.shape[0], N_TEACHERS, 0) if shards is None else shards,
        X_public,
        n_classes=n_classes,
        seeds=list(range(N_TEACHERS)),
        n_jobs=n_jobs,
        **kwargs,
    )


def wide(X):
    """Add empty columns until the array is large enough for a memory map."""
    return np.hstack([X, np.zeros((len(X), 500))])


def counts(votes):
    return votes.counts(np.arange(votes.shape[1]))


class Constant(ClassifierMixin, BaseEstimator):
    """Votes for a fixed value."""

    def __init__(self, value=0):
        self.value = value

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.full(X.shape[0], self.value)


class Fails(Constant):
    """Fails on a shard that holds the row in which the first feature is `poison`."""

    def __init__(self, value=0, poison=None):
        super().__init__(value)
        self.poison = poison

    def fit(self, X, y):
        if self.poison is None or self.poison in X[:, 0]:
            raise RuntimeError("this teacher is sick")
        return self


# Each teacher learns from its shard alone


def test_a_teacher_depends_on_its_own_shard_only(blobs):
    X, y, X_public, _ = blobs
    shards = shard_rows(len(X), N_TEACHERS, 0)
    votes, problems = poll(DecisionTreeClassifier(random_state=0), X, y, X_public)
    by_hand = np.zeros((len(X_public), 3), dtype=int)
    for seed, shard in enumerate(shards):
        tree = DecisionTreeClassifier(random_state=seed).fit(X[shard], y[shard])
        by_hand[np.arange(len(X_public)), tree.predict(X_public)] += 1
    np.testing.assert_array_equal(counts(votes), by_hand)
    assert not problems


def test_replacing_one_row_changes_one_teacher_only(blobs):
    X, y, X_public, y_public = blobs
    X_changed, y_changed = X.copy(), y.copy()
    X_changed[17], y_changed[17] = X_public[0], (y_public[0] + 1) % 3
    estimator = DecisionTreeClassifier(max_features=1)
    before, _ = poll(estimator, X, y, X_public)
    after, _ = poll(estimator, X_changed, y_changed, X_public)
    moved = np.abs(counts(before) - counts(after)).sum(axis=1)
    assert set(moved.tolist()) <= {0, 2}
    assert moved.any()


@pytest.mark.parametrize("backend", ["sequential", "loky", "threading"])
@pytest.mark.parametrize(
    ("estimator", "convert"),
    [
        (RandomForestClassifier(5), np.asfortranarray),
        (RandomForestClassifier(5), pd.DataFrame),
        (KNeighborsClassifier(3), sp.csr_array),
        (KNeighborsClassifier(3), wide),
    ],
)
def test_votes_do_not_depend_on_backend_or_container(
    blobs, estimator, convert, backend
):
    X, y, X_public, _ = blobs
    expected, _ = poll(estimator, X, y, X_public)
    with parallel_config(backend=backend, n_jobs=2):
        found, _ = poll(estimator, convert(X), y, convert(X_public), n_jobs=None)
    np.testing.assert_array_equal(counts(found), counts(expected))


class DrawsGlobally(DecisionTreeClassifier):
    """Draws from every global generator, as often as its labels say."""

    def fit(self, X, y):
        for _ in range(int(y.sum())):
            random.random(), np.random.rand(), torch.rand(1)
        self.draw_ = random.random() + np.random.rand() + torch.rand(1).item()
        return super().fit(X, y)

    def predict(self, X):
        return np.full(X.shape[0], int(self.draw_ * 1000) % 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "backend",
    ["sequential", "threading", pytest.param("loky", marks=pytest.mark.thorough)],
)
def test_teachers_do_not_share_global_generators(blobs, backend):
    X, y, X_public, _ = blobs
    changed = y.copy()
    changed[shard_rows(len(X), N_TEACHERS, 0)[0][0]] += 1
    with parallel_config(backend=backend, n_jobs=2):
        before, _ = poll(DrawsGlobally(), X, y % 2, X_public, n_jobs=None)
        after, _ = poll(DrawsGlobally(), X, changed % 2, X_public, n_jobs=None)
    moved = np.abs(counts(before) - counts(after)).sum(axis=1)
    assert moved.max() <= 2, "one changed row changed more than one teacher"


def test_global_generators_come_back_as_they_were(blobs):
    X, y, X_public, _ = blobs
    states = [random.getstate(), np.random.get_state()[1], torch.get_rng_state()]
    poll(DrawsGlobally(), X, y, X_public)
    assert random.getstate() == states[0]
    np.testing.assert_array_equal(np.random.get_state()[1], states[1])
    assert torch.equal(torch.get_rng_state(), states[2])


def test_teachers_have_different_randomness_even_with_a_fixed_random_state(blobs):
    X, y, X_public, _ = blobs
    same = [np.arange(len(X))] * N_TEACHERS
    votes, _ = poll(
        RandomForestClassifier(1, random_state=0), X, y, X_public, shards=same
    )
    assert np.any(np.sum(counts(votes) > 0, axis=1) > 1)


# Abstentions


def test_a_failing_teacher_abstains_and_the_others_vote(blobs):
    X, y, X_public, _ = blobs
    votes, problems = poll(Fails(1, poison=X[17, 0]), X, y, X_public)
    assert np.all(counts(votes) == [0, N_TEACHERS - 1, 0])
    [(teacher, error)] = problems.failures
    assert 17 in shard_rows(len(X), N_TEACHERS, 0)[teacher]
    assert error == "RuntimeError: this teacher is sick"


def test_an_empty_shard_abstains_without_a_problem(blobs):
    X, y, X_public, _ = blobs
    shards = [*shard_rows(len(X), N_TEACHERS - 1, 0), np.array([], dtype=int)]
    votes, problems = poll(Constant(2), X, y, X_public, shards=shards)
    assert np.all(counts(votes) == [0, 0, N_TEACHERS - 1])
    assert not problems


def test_a_shard_with_one_class_votes_for_it_without_fitting(blobs):
    X, y, X_public, _ = blobs
    order = np.argsort(y)
    shards = np.array_split(order, N_TEACHERS)  # by class: most hold one class only
    votes, problems = poll(LogisticRegression(), X, y, X_public, shards=shards)
    assert not problems
    assert np.all(counts(votes).sum(axis=1) == N_TEACHERS)
    assert np.all(counts(votes)[:, 0] >= 3)


def test_rows_without_a_class_are_dropped_inside_their_shard(blobs):
    X, y, X_public, _ = blobs
    codes = np.where(np.arange(len(y)) % 2, y, -1)
    votes, _ = poll(DecisionTreeClassifier(random_state=0), X, codes, X_public)
    shards = [shard[shard % 2 == 1] for shard in shard_rows(len(X), N_TEACHERS, 0)]
    expected, _ = poll(
        DecisionTreeClassifier(random_state=0), X, y, X_public, shards=shards
    )
    np.testing.assert_array_equal(counts(votes), counts(expected))


class Odd(Fails):
    """Teacher whose predictions are no class indices after a fit on the poison."""

    def __init__(self, value=0, poison=None, odd=None):
        super().__init__(value, poison)
        self.odd = odd

    def fit(self, X, y):
        self.odd_ = self.poison in X[:, 0]
        return self

    def predict(self, X):
        return np.full(X.shape[0], self.odd if self.odd_ else self.value)


@pytest.mark.parametrize("odd", ["0", None, 1j])
def test_a_teacher_that_predicts_no_class_index_abstains(blobs, odd):
    X, y, X_public, _ = blobs
    votes, problems = poll(Odd(1, poison=X[17, 0], odd=odd), X, y, X_public)
    assert np.all(counts(votes) == [0, N_TEACHERS - 1, 0])
    assert "class index" in problems.failures[0][1]


class Warns(Constant):
    def fit(self, X, y):
        warnings.warn(f"the first row is {X[0]}", stacklevel=1)
        return self


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_warnings_of_teachers_are_kept_and_not_shown(blobs, n_jobs):
    X, y, X_public, _ = blobs  # a shown warning would be an error here
    votes, problems = poll(Warns(1), X, y, X_public, n_jobs=n_jobs)
    assert np.all(counts(votes) == [0, N_TEACHERS, 0])
    assert [teacher for teacher, _ in problems.warnings] == list(range(N_TEACHERS))
    assert "UserWarning: the first row is" in problems.warnings[0][1]


@pytest.mark.parametrize("value", [-1, 3, 1e9, np.nan])
def test_predictions_out_of_range_are_abstentions(blobs, value):
    X, y, X_public, _ = blobs
    with pytest.raises(ValueError, match="No teacher cast a vote"):
        poll(Constant(value), X, y, X_public)


def test_all_teachers_failing_raises_with_the_first_error(blobs):
    X, y, X_public, _ = blobs
    with pytest.raises(
        ValueError,
        match=r"All teachers .* in training\. Try estimator\.fit .*is sick",
    ):
        poll(Fails(), X, y, X_public)


def test_all_teachers_failing_on_public_rows_raises_with_their_name(
    blobs,
):
    X, y, X_public, _ = blobs
    with pytest.raises(
        ValueError,
        match=r"in predict on X_public\. Try .* then predict on X_public\. "
        r"Its error .* rows\): ValueError: X has 3 features",
    ):
        poll(DecisionTreeClassifier(), X, y, np.hstack([X_public, X_public[:, :1]]))


def test_the_text_of_a_failure_on_public_rows_names_them(blobs):
    X, y, X_public, _ = blobs
    _, problems = poll(Odd(1, poison=X[17, 0], odd="0"), X, y, X_public)
    assert problems.failures[0][1].startswith("on X_public, ValueError: predict")


# Forget, and leave nothing behind


def test_fitted_teachers_are_dropped_one_by_one(blobs):
    X, y, X_public, _ = blobs
    alive, most_alive = weakref.WeakSet(), []

    class Remembered(DecisionTreeClassifier):
        def fit(self, X, y):
            super().fit(X, y)
            alive.add(self)
            most_alive.append(len(alive))
            return self

    poll(Remembered(), X, y, X_public)
    gc.collect()
    assert len(alive) == 0
    assert max(most_alive) < N_TEACHERS / 2


class ListsTemporaryFiles(Constant):
    """Writes down the mode of every temporary file that its worker could read."""

    def __init__(self, value=0, folder=None, report=None):
        super().__init__(value)
        self.folder = folder
        self.report = report

    def fit(self, X, y):
        found = {
            str(path): stat.S_IMODE(path.stat().st_mode)
            for path in Path(self.folder).rglob("*")
        }
        Path(self.report, f"{os.getpid()}-{time.time_ns()}.json").write_text(
            json.dumps(found)
        )
        return self


def test_temporary_files_are_private_and_removed(blobs, tmp_path, monkeypatch):
    folder, report = tmp_path / "temporary", tmp_path / "report"
    folder.mkdir()
    report.mkdir()
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(folder))
    X, y, X_public, _ = blobs
    shards = [np.arange(len(X))] * N_TEACHERS
    teacher = ListsTemporaryFiles(0, str(folder), str(report))
    poll(teacher, wide(X), y, wide(X_public), shards=shards, n_jobs=2)
    seen = {}
    for path in report.iterdir():
        seen.update(json.loads(path.read_text()))
    assert any(path.endswith(".pkl") for path in seen), "no memory map was used"
    top = [mode for path, mode in seen.items() if Path(path).parent == folder]
    assert top
    assert set(top) == {0o700}
    for _ in range(1200):
        if not list(folder.rglob("*.pkl")):
            break
        time.sleep(0.1)  # joblib's resource tracker is a process of its own
    assert not list(folder.rglob("*.pkl"))


class ChangesPublicRows(Constant):
    """Votes for class 1 if the public rows are unchanged, and changes them."""

    def predict(self, X):
        votes = np.full(X.shape[0], int(np.all(X == 7)))
        X[:] = 0
        return votes


@pytest.mark.parametrize("n_jobs", thorough_but([1], [1, 2]))
def test_changes_of_public_rows_do_not_reach_other_teachers(blobs, n_jobs):
    X, y, _, _ = blobs
    X_public = np.full((400, 500), 7.0)
    votes, problems = poll(ChangesPublicRows(), X, y, X_public, n_jobs=n_jobs)
    assert not problems
    assert np.all(counts(votes) == [0, N_TEACHERS, 0])
    assert np.all(X_public == 7)


def test_scaling_in_place_inside_a_teacher_is_harmless(blobs):
    X, y, X_public, _ = blobs

    def vote(copy):
        scaler = StandardScaler(copy=copy)
        return poll(make_pipeline(scaler, LogisticRegression()), X, y, X_public)[0]

    np.testing.assert_array_equal(counts(vote(copy=False)), counts(vote(copy=True)))


class CountsItsPickles:
    pickled = 0

    def __reduce__(self):
        CountsItsPickles.pickled += 1
        return (CountsItsPickles, ())


def test_of_a_frame_each_task_is_sent_its_shard_only(blobs):
    _, y, _, _ = blobs
    X = pd.DataFrame({"x": [CountsItsPickles() for _ in y]})
    CountsItsPickles.pickled = 0
    poll(Constant(), X, y, pd.DataFrame({"x": np.zeros(3)}), n_jobs=2)
    assert CountsItsPickles.pickled == len(y)


# Threads and progress


class ThreadCounter(Constant):
    """Votes for class 1 if every library has one thread, else for class 0."""

    def predict(self, X):
        limits = [library["num_threads"] for library in threadpool_info()]
        single = all(limit == 1 for limit in [*limits, torch.get_num_threads()])
        return np.full(X.shape[0], int(single))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_every_teacher_has_one_thread_and_ours_come_back(blobs, n_jobs):
    X, y, X_public, _ = blobs
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        votes, _ = poll(ThreadCounter(), X, y, X_public, n_jobs=n_jobs)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert np.all(counts(votes) == [0, N_TEACHERS, 0])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress_counts_every_teacher(blobs, n_jobs):
    X, y, X_public, _ = blobs
    done = []
    poll(
        Constant(),
        X,
        y,
        X_public,
        n_jobs=n_jobs,
        on_teacher_done=lambda: done.append(1),
    )
    assert len(done) == N_TEACHERS
