import threading

import numpy as np
import pytest
import torch
from joblib import Parallel, delayed, parallel_config
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import cross_val_score
from threadpoolctl import threadpool_info

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.mechanisms import GNMax
from tests.private import one_thread

pytestmark = pytest.mark.usefixtures("two_threads")


def limits():
    blas = [
        one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"
    ]
    return [*blas, torch.get_num_threads()]


def test_the_last_one_to_leave_restores():
    before = limits()
    assert max(before) > 1, "nothing to limit on this machine"
    second_is_in, first_is_out = threading.Event(), threading.Event()
    seen = []

    def second():
        with one_thread():
            second_is_in.set()
            first_is_out.wait()
            seen.extend(limits())

    thread = threading.Thread(target=second)
    with one_thread():
        thread.start()
        second_is_in.wait()
    first_is_out.set()
    thread.join()
    assert set(seen) == {1}, "the second one lost its limit when the first one left"
    assert limits() == before


def test_polls_in_several_threads_leave_the_limits_alone(blobs):
    X, y, X_public, _ = blobs
    before = limits()
    pate = PATEClassifier(
        HistGradientBoostingClassifier(max_iter=2),
        n_teachers=4,
        mechanism=GNMax(sigma=1),
        epsilon=None,
    )
    with parallel_config(backend="threading", n_jobs=2):
        scores = cross_val_score(
            pate, X, y, cv=4, params={"X_public": PublicData(X_public)}
        )
    assert np.all(np.isfinite(scores))
    assert limits() == before


def test_every_thread_gets_its_own_openmp_limit():
    def limited():
        with one_thread():
            return [
                one["num_threads"]
                for one in threadpool_info()
                if one["user_api"] == "openmp"
            ]

    for seen in Parallel(n_jobs=2, backend="threading")(
        delayed(limited)() for _ in range(6)
    ):
        assert set(seen) <= {1}
