"""A poll that was killed goes on where it stopped; and what is kept stays private."""

import multiprocessing
import os
import signal
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import torch
from joblib.externals.loky import get_reusable_executor
from sklearn.datasets import make_blobs
from sklearn.tree import DecisionTreeClassifier
from skorch import NeuralNetClassifier

from sklearn_pate import PATEClassifier, PublicData, TeacherWarning
from tests._teachers.diary import (
    N_TEACHERS,
    N_WORKERS,
    SLOW,
    Diary,
    poll,
    poll_in_a_session_of_its_own,
)

N_KILLS = 5
PLANTED = 98765.4321


@pytest.fixture
def diary(tmp_path):
    folder = tmp_path / "diary"
    folder.mkdir()
    return folder


def n_fits(diary):
    return len(list(diary.iterdir()))


@pytest.mark.thorough
def test_a_poll_that_is_killed_again_and_again_goes_on_where_it_stopped(
    diary, tmp_path
):
    memory = tmp_path / "memory"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([poll.__module__])
    rng = np.random.default_rng()
    for n_begun in rng.permutation(N_KILLS) + 1:
        # Anything from before the first fit to after some of them.
        stop_at = n_fits(diary) + n_begun
        process = context.Process(
            target=poll_in_a_session_of_its_own,
            args=(str(diary), str(memory), stop_at + N_WORKERS),
        )
        process.start()
        while n_fits(diary) < stop_at and process.is_alive():
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.03))
        if process.is_alive():
            os.killpg(process.pid, signal.SIGKILL)
        process.join()
    n_kept = len(list(memory.rglob("*.pkl")))
    assert 0 < n_kept < N_TEACHERS, "each of them was killed half-way"
    slow = Diary(str(diary), seconds=SLOW)
    resumed = poll(slow, memory)
    assert n_fits(diary) <= N_TEACHERS + N_WORKERS * N_KILLS
    again = n_fits(diary)
    np.testing.assert_array_equal(poll(slow, memory), resumed)
    assert n_fits(diary) == again, "everything had been kept"
    np.testing.assert_array_equal(poll(Diary(str(diary)), memory=None), resumed)


def test_processes_and_this_process_share_what_is_kept(diary, tmp_path):
    rows = np.zeros((1000, 300))
    rows[:, :2] = make_blobs(1000, random_state=0)[0]
    data = rows[:800], rows[800:]  # shards of a megabyte are mapped into memory
    first = poll(Diary(str(diary)), tmp_path, n_jobs=2, n_teachers=2, data=data)
    assert n_fits(diary) == 2
    second = poll(Diary(str(diary)), tmp_path, n_jobs=1, n_teachers=2, data=data)
    assert n_fits(diary) == 2
    np.testing.assert_array_equal(first, second)


@pytest.mark.thorough
def test_a_second_folder_in_one_process_keeps_everything_too(diary, tmp_path):
    for folder in ("first", "second"):
        get_reusable_executor().shutdown()  # new workers have no folder
        poll(Diary(str(diary)), tmp_path / folder, n_jobs=2)
    poll(Diary(str(diary)), tmp_path / "second")
    assert n_fits(diary) == 2 * N_TEACHERS


def frame(library):
    def convert(X):
        return library.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": ["x"] * len(X)})

    return convert


class IgnoresText(Diary):
    def fit(self, X, y):
        return super().fit(np.asarray(X)[:, :2].astype(float), y)

    def predict(self, X):
        return super().predict(np.asarray(X)[:, :2].astype(float))


@pytest.mark.parametrize(
    ("estimator", "convert"),
    [
        (IgnoresText, frame(pd)),
        (IgnoresText, frame(pl)),
        (Diary, sp.csr_array),
        (Diary, np.float32),
    ],
    ids=["pandas", "polars", "sparse", "float32"],
)
def test_rows_of_any_kind_are_recognised(estimator, convert, diary, tmp_path):
    X, _ = make_blobs(1000, random_state=0)
    for _ in range(2):
        data = convert(X[:800]), convert(X[800:])
        poll(estimator(str(diary)), tmp_path, data=data)
        assert n_fits(diary) == N_TEACHERS


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 3)

    def forward(self, X):
        return self.layer(X)


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [(1, 2), (2, 1)])
def test_frames_of_several_types_are_recognised_in_any_process(n_jobs, diary, tmp_path):
    X, _ = make_blobs(1000, random_state=0)
    X = pd.DataFrame({"whole": X[:, 0].astype(int), "fraction": X[:, 1]})
    for n in n_jobs:
        poll(IgnoresText(str(diary)), tmp_path, n_jobs=n, data=(X[:800], X[800:]))
    assert n_fits(diary) == N_TEACHERS


def test_networks_are_recognised(tmp_path):
    X = make_blobs(1000, random_state=0)[0].astype(np.float32)
    net = NeuralNetClassifier(
        Net,
        criterion=torch.nn.CrossEntropyLoss,
        max_epochs=1,
        train_split=None,
        verbose=0,
    )
    for _ in range(2):
        poll(net, tmp_path, n_teachers=3, data=(X[:800], X[800:]))
    kept = list(tmp_path.rglob("*.pkl"))
    assert len(kept) == 3


@pytest.mark.parametrize("what", ["private rows one", "public rows", "parameter"])
def test_what_changed_is_trained_again_and_nothing_else(what, diary, tmp_path):
    X, _ = make_blobs(1000, random_state=0)
    poll(Diary(str(diary)), tmp_path, data=(X[:800], X[800:]))
    changed, seconds = X.copy(), 0.0
    if what == "private rows one":
        changed[17] += 1
    elif what == "public rows":
        changed[801] += 1
    else:
        seconds = 1e-6
    poll(Diary(str(diary), seconds), tmp_path, data=(changed[:800], changed[800:]))
    trained = n_fits(diary) - N_TEACHERS
    assert trained == (1 if what == "private rows one" else N_TEACHERS)


class FailsOnce(Diary):
    def fit(self, X, y):
        before = len(list(Path(self.folder).iterdir()))
        super().fit(X, y)
        if before == 0:
            raise MemoryError("not now")
        return self


def test_a_teacher_that_failed_is_trained_again(diary, tmp_path):
    with_gap = poll(FailsOnce(str(diary)), tmp_path)
    assert with_gap.sum(axis=1).max() == N_TEACHERS - 1
    complete = poll(FailsOnce(str(diary)), tmp_path)
    assert complete.sum(axis=1).min() == N_TEACHERS
    assert n_fits(diary) == N_TEACHERS + 1


# The parameter of PATEClassifier


def fit(diary, memory, **parameters):
    X, y = make_blobs(1000, centers=3, random_state=0)
    X[0] = PLANTED
    pate = PATEClassifier(
        Diary(str(diary)),
        DecisionTreeClassifier(),
        n_teachers=N_TEACHERS,
        mechanism="gnmax",
        memory=memory,
        **({"random_state": 0} | parameters),
    )
    return pate.fit(X[:800], y[:800], X_public=PublicData(X[800:]))


@pytest.mark.slow
@pytest.mark.parametrize("as_parameter", [str, Path, joblib.Memory])
def test_another_fit_with_other_noise_trains_no_teacher_and_has_its_cost(
    as_parameter, diary, tmp_path, capfd
):
    fit(diary, as_parameter(tmp_path), epsilon=1.0)
    first = n_fits(diary)
    assert first > N_TEACHERS / 2
    again = fit(diary, as_parameter(tmp_path), epsilon=2.0, n_queries=20)
    assert n_fits(diary) == first + 1  # a rehearsal on public rows
    assert again.privacy_spent_.epsilon == pytest.approx(2.0, rel=1e-3)
    assert "".join(capfd.readouterr()) == "", "joblib.Memory prints arguments"


def test_another_random_state_polls_again(diary, tmp_path):
    fit(diary, tmp_path)
    first = n_fits(diary)
    fit(diary, tmp_path, random_state=1)
    assert n_fits(diary) > first + N_TEACHERS / 2


def test_what_is_kept_can_be_read_by_this_user_only(diary, tmp_path):
    previous = os.umask(0)
    try:
        fit(diary, tmp_path / "memory")
    finally:
        os.umask(previous)
    kept = tmp_path / "memory"
    assert [one.name for one in kept.iterdir()] == ["sklearn_pate"]
    if os.name == "posix":
        assert stat.S_IMODE((kept / "sklearn_pate").stat().st_mode) == 0o700


@pytest.mark.thorough
def test_workers_elsewhere_write_to_the_same_private_folder(
    diary, tmp_path, monkeypatch
):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    monkeypatch.chdir(there)
    get_reusable_executor().shutdown()
    with joblib.parallel_config(n_jobs=2):
        joblib.Parallel()(joblib.delayed(os.getcwd)() for _ in range(4))
        monkeypatch.chdir(here)
        fit(diary, "votes", n_jobs=2)
    assert list(there.iterdir()) == []
    assert len(list((here / "votes").rglob("*.pkl"))) > N_TEACHERS / 2


def test_no_private_row_is_written_down(diary, tmp_path):
    fit(diary, tmp_path / "memory")
    files = [one for one in (tmp_path / "memory").rglob("*") if one.is_file()]
    assert len(files) > N_TEACHERS / 2
    secrets = [np.float64(PLANTED).tobytes(), b"98765.43"]
    assert not any(secret in one.read_bytes() for one in files for secret in secrets)


IN_MAIN = """
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier
from tests._teachers.diary import poll

def clean(X):
    return X

poll(make_pipeline(FunctionTransformer(clean), DecisionTreeClassifier()), "votes")
"""


@pytest.mark.thorough
def test_functions_that_may_change_unseen_are_refused(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", IN_MAIN],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert "something in it is defined in __main__" in done.stderr
    assert not list(tmp_path.rglob("*.pkl"))


def test_an_estimator_without_a_module_is_refused(tmp_path):
    class Local(DecisionTreeClassifier):
        pass

    with pytest.raises(
        ValueError, match="define their classes and functions in a module"
    ):
        poll(Local(), tmp_path)


class Warns(Diary):
    def fit(self, X, y):
        warnings.warn("a row is odd", stacklevel=1)
        return super().fit(X, y)


def test_warnings_of_kept_teachers_are_kept_too(diary, tmp_path):
    pate = PATEClassifier(
        Warns(str(diary)),
        DecisionTreeClassifier(),
        n_teachers=5,
        memory=tmp_path,
        random_state=0,
    )
    X, y = make_blobs(1000, random_state=0)
    for _ in range(2):
        with pytest.warns(TeacherWarning):
            pate.fit(X[:800], y[:800], X_public=PublicData(X[800:]))
        assert len(pate.privacy_analysis_.teacher_warnings) == 5
