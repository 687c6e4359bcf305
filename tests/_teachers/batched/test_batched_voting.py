"""Votes of teachers that are trained at once."""

import random

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, TransformerMixin

from sklearn_pate._teachers import shard_rows
from tests._teachers.batched.networks import (
    SGD,
    SHUFFLE,
    LooksUp,
    Wanders,
    Warns,
    make_net,
    one_by_one,
    poll,
)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("at_once", [True, False])
def test_rows_that_are_not_finite_are_left_out_of_their_shard(images, at_once, value):
    net = make_net(**SGD) if at_once else one_by_one(make_net(**SGD))
    shards = shard_rows(1000, 10, 0)
    X, y = images
    odd = X.copy()
    odd[shards[3][5], 0] = value
    rows, problems = poll(net, (odd, y), shards=shards)
    left_out = list(shards)
    left_out[3] = np.delete(shards[3], 5)
    without, _ = poll(net, images, shards=left_out)
    np.testing.assert_array_equal(rows, without)
    assert problems.dropped == [(3, 1)]
    assert not problems


@pytest.mark.parametrize("one_class_more", [False, True])
def test_a_shard_that_empties_moves_its_own_votes_only(images, one_class_more):
    y = images[1][:1000]
    shards = [*shard_rows(990, 9, 0), np.arange(990, 1000)]
    codes = y.copy()
    codes[990:] = 3 if one_class_more else -1
    net = make_net(**SHUFFLE)
    before, _ = poll(net, images, shards=shards)
    after, problems = poll(net, images, shards=shards, codes=codes)
    assert not problems
    moved = after - before
    if one_class_more:
        moved[:, 3] -= 1
    assert np.all(moved <= 0)
    assert np.all(moved.sum(axis=1) == -1)


@pytest.mark.slow
def test_votes_are_as_good_as_those_of_one_by_one(images):
    net = make_net(module__dropout=0.1, max_epochs=30, lr=0.03, **SGD, **SHUFFLE)
    y_public = images[1][1000:]
    accuracy = [
        np.mean(poll(each, images)[0][np.arange(len(y_public)), y_public]) / 10
        for each in (net, one_by_one(net))
    ]
    assert accuracy[0] > 0.8
    # Their draws of dropout differ: by 0.005 over assignments of rows, as measured.
    assert accuracy[0] == pytest.approx(accuracy[1], abs=0.01)


@pytest.mark.slow
@pytest.mark.usefixtures("two_threads")
def test_votes_do_not_depend_on_n_jobs_or_memory(images, tmp_path):
    net = make_net(module__dropout=0.3, **SGD, **SHUFFLE)
    expected, _ = poll(net, images, n_teachers=20)
    for options in ({"n_jobs": 2}, {"memory": str(tmp_path), "n_jobs": 2}):
        found, _ = poll(net, images, n_teachers=20, **options)
        np.testing.assert_array_equal(found, expected)


def test_memory_keeps_each_teacher_of_a_block(images, tmp_path):
    X, y = images
    net = make_net(**SHUFFLE)
    first, _ = poll(net, images, memory=str(tmp_path))
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("output.pkl")}
    assert len(kept) == 10
    changed = X.copy()
    changed[17] = 0
    poll(net, (changed, y), memory=str(tmp_path))
    now = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("output.pkl")}
    assert len(now) == 11
    assert kept.items() <= now.items()
    again, _ = poll(net, images, memory=str(tmp_path))
    np.testing.assert_array_equal(again, first)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_poll_of_networks_leaves_no_trace(images, n_jobs, capfd):
    states = random.getstate(), np.random.get_state()[1], torch.get_rng_state()
    n_threads, done = torch.get_num_threads(), []
    net = make_net(Wanders)
    poll(net, images, n_jobs=n_jobs, on_teacher_done=lambda: done.append(1))
    assert len(done) == 10
    assert random.getstate() == states[0]
    np.testing.assert_array_equal(np.random.get_state()[1], states[1])
    assert torch.equal(torch.get_rng_state(), states[2])
    assert torch.get_num_threads() == n_threads
    assert "".join(capfd.readouterr()) == ""


def test_warnings_are_kept_for_each_teacher_and_not_shown(images):
    _, problems = poll(make_net(Warns), images)
    assert {teacher for teacher, _ in problems.warnings} == set(range(10))
    assert {text for _, text in problems.warnings} == {"UserWarning: look here"}


class Halves(TransformerMixin, BaseEstimator):
    """Fails on a shard with a row that starts with a large number."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        if X[:, 0].max() > 1:
            raise RuntimeError("this shard is sick")
        return (X / 2).astype(np.float32)

    def __sklearn_is_fitted__(self):
        return True


def test_a_shard_that_has_no_representation_abstains_alone(images):
    X, y = images
    net = make_net(**SHUFFLE)
    halved, _ = poll(net, ((X / 2).astype(np.float32), y))
    seen = {"representation": Halves()}
    as_seen = np.concatenate([X[:1000], X[1000:] / 2]).astype(np.float32)
    found, problems = poll(net, (as_seen, y), **seen)
    np.testing.assert_array_equal(found, halved)
    assert not problems
    as_seen[17, 0] = 5
    after, problems = poll(net, (as_seen, y), **seen)
    assert [text for _, text in problems.failures] == [
        "RuntimeError: this shard is sick"
    ]
    assert np.all(found - after >= 0)
    assert np.all((found - after).sum(axis=1) == 1)


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_would_fail_a_whole_block_ends_the_poll(images, n_jobs):
    X, y = images
    X = X.copy()
    X[17, 0] = 300
    net = make_net(LooksUp)
    with pytest.raises(ValueError, match=r"nothing was answered.*index 300 is out of"):
        poll(net, (X, y), n_jobs=n_jobs)
    alone, problems = poll(one_by_one(net), (X, y), n_jobs=n_jobs)
    assert len(problems.failures) == 1
    assert np.all(alone.sum(axis=1) == 9)
