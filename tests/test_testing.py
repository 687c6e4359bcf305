"""Noise from a seed: what repeats, what it states, and where it ends."""

import asyncio
import contextvars
import secrets
import sys
import threading
from contextlib import closing, contextmanager, nullcontext
from itertools import permutations

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import (
    DPNewtonClassifier,
    PATEClassifier,
    PrivacyLeakWarning,
    PrivateMarginals,
    PublicData,
    PublishedClassifier,
    Votes,
)
from sklearn_pate.inspection import audit_mechanism
from sklearn_pate.learners import (
    Clusters,
    DPLinearSVC,
    DPLogisticRegression,
    DPNaiveBayesClassifier,
    PETDLClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.mechanisms import GNMax, NoisyHistogram, Oracle
from sklearn_pate.metrics import private_metrics
from sklearn_pate.model_selection import PrivateSearchCV, fit_and_measure
from sklearn_pate.testing import seeded_noise
from tests.cases import thorough_but
from tests.private import SEEDED, NoiseSource, _noise
from tests.seeding import equal_noise

COUNTS = np.array([[50, 40, 10], [0, 90, 10]])
X, Y = make_blobs(700, centers=3, random_state=0)


def release():
    return NoisyHistogram(sigma=40).release(COUNTS).tolist()


def pate(teacher=None, **parameters):
    given = {"n_teachers": 50, "n_queries": 40, "random_state": 0, **parameters}
    return PATEClassifier(teacher or GaussianNB(), GaussianNB(), **given)


PUBLIC = {"X_public": PublicData(X[500:])}


def fit():
    return pate().fit(X[:500], Y[:500], **PUBLIC)


def draw_and_state():
    """Return noise, and the epsilon of a fit."""
    return NoiseSource().words(8).tolist(), fit().privacy_spent_.epsilon


# Draws


def test_the_same_seed_draws_the_same_noise_and_another_seed_other_noise():
    draws = [equal_noise(seed)(release)() for seed in (0, 0, 1, 2**32, 2**80)]
    assert draws[0] == draws[1]
    assert len({str(one) for one in draws[1:]}) == 4


def test_no_two_sources_draw_equal_noise():
    with equal_noise():
        words = np.array([NoiseSource().words(50) for _ in range(50)])
    assert len(np.unique(words)) == words.size


def test_the_sources_of_a_fit_do_not_depend_on_how_much_another_draws():
    with equal_noise():
        expected = [NoiseSource().words(3).tolist() for _ in range(2)]
    with equal_noise():
        first, second = NoiseSource(), NoiseSource()
        first.words(1000)
        assert second.words(3).tolist() == expected[1]


def test_a_block_inside_a_block_has_its_own_seed():
    with equal_noise(1):
        alone = [release(), release()]
    with equal_noise(1):
        first = release()
        with equal_noise(2):
            other = release()
        assert [first, release()] == alone
    assert other == equal_noise(2)(release)()


def test_a_seed_seeds_every_call_of_a_decorated_function():
    decorated = seeded_noise(3)(release)
    with pytest.warns(PrivacyLeakWarning):
        assert decorated() == decorated()


def test_audits_can_be_repeated():
    @equal_noise()
    def audit():
        return audit_mechanism(GNMax(sigma=2), [3, 2], [2, 3], n_trials=500)

    one, other = audit(), audit()
    assert one == other
    assert np.isfinite(one.epsilon_claimed)


# Where a seed ends


@pytest.mark.slow
def test_nothing_is_seeded_after_the_block():
    with equal_noise():
        assert NoiseSource().is_seeded
    with pytest.raises(ValueError, match="sigma=None"), seeded_noise(0):
        GNMax().answer(COUNTS)
    assert not NoiseSource().is_seeded
    first, epsilon = draw_and_state()
    assert np.isfinite(epsilon)
    assert first != draw_and_state()[0]


@pytest.mark.slow
def test_nothing_is_seeded_in_another_thread():
    found = []
    with seeded_noise(0):
        for _ in range(2):
            thread = threading.Thread(target=lambda: found.append(draw_and_state()))
            thread.start()
            thread.join()
    (first, epsilon), (second, _) = found
    assert first != second
    assert np.isfinite(epsilon)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # filters of threads are one another's
@pytest.mark.parametrize(
    "backend",
    thorough_but(["threading"], ["loky", "multiprocessing", "threading"]),
)
def test_nothing_is_seeded_in_a_worker(backend, monkeypatch):
    monkeypatch.setattr(_noise, "secrets", secrets)  # a fork would copy that of tests
    with seeded_noise(0):
        tasks = (delayed(draw_and_state)() for _ in range(4))
        found = Parallel(n_jobs=2, backend=backend)(tasks)
        assert draw_and_state()[1] == np.inf
    draws, epsilons = zip(*found, strict=True)
    assert len({str(one) for one in draws}) == 4
    assert np.all(np.isfinite(epsilons))


@pytest.mark.slow
def test_a_seed_of_another_thread_does_not_reach_a_fit():
    inside, done = threading.Event(), threading.Event()

    def hold():
        with seeded_noise(0):
            inside.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()
    try:
        assert np.isfinite(fit().privacy_spent_.epsilon)
    finally:
        done.set()
        thread.join()


def seed_of_noise():
    seeds = _noise._seeds()
    return None if seeds is None else seeds.entropy


def block(seed):
    """Suspend within a block."""
    with seeded_noise(seed):
        yield


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_blocks_end_in_any_order_and_each_alone(order):
    blocks = [block(seed) for seed in range(3)]
    for one in blocks:
        next(one)
    left = [None, 0, 1, 2]
    for ended in order:
        assert seed_of_noise() == left[-1]
        blocks[ended].close()
        left.remove(ended)
    assert seed_of_noise() is None


def test_a_block_ends_where_another_thread_ends_it():
    suspended = block(0)
    next(suspended)
    thread = threading.Thread(target=suspended.close)
    thread.start()
    thread.join()
    assert seed_of_noise() is None


def test_a_task_has_its_own_blocks():
    found = {}

    async def task(seed, first, second):
        with seeded_noise(seed):
            first.set()
            await second.wait()
            found[seed] = seed_of_noise()
            await asyncio.sleep(0)  # both blocks are open

    async def honest(first, second):
        await first.wait()
        await second.wait()
        found["honest"] = seed_of_noise()

    async def all_tasks():
        one, other = asyncio.Event(), asyncio.Event()
        tasks = task(1, one, other), task(2, other, one), honest(one, other)
        await asyncio.gather(*tasks)
        found["after"] = seed_of_noise()

    asyncio.run(all_tasks())
    assert found == {1: 1, 2: 2, "honest": None, "after": None}


def test_a_copied_context_is_seeded_in_the_block_and_its_thread_alone():
    found = []
    with seeded_noise(0):
        context = contextvars.copy_context()
        thread = threading.Thread(
            target=lambda: found.append(context.run(seed_of_noise))
        )
        thread.start()
        thread.join()
        assert context.run(seed_of_noise) == 0
    assert [*found, context.run(seed_of_noise)] == [None, None]


# A block that begins or ends between statement and draw


class TeacherWithABlock(GaussianNB):
    """Begins a block, or leaves one to the garbage collector."""

    def __init__(self, change):
        super().__init__()
        self.change = change

    def fit(self, X, y):
        if self.change == "begins":
            SUSPENDED.append(block(0))
            next(SUSPENDED[-1])
        else:
            SUSPENDED.clear()
        return super().fit(X, y)


SUSPENDED = []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The noise is seeded")
@pytest.mark.parametrize("mechanism", ["gnmax", "histogram", "scores"])
@pytest.mark.parametrize("change", ["begins", "ends"])
def test_a_block_that_begins_or_ends_in_a_teacher_stops_the_fit(mechanism, change):
    clf = pate(TeacherWithABlock(change), mechanism=mechanism, n_queries="auto")
    if change == "ends":
        with seeded_noise(1):
            SUSPENDED.append(block(0))
            next(SUSPENDED[0])
    try:
        with pytest.raises(RuntimeError, match="between the privacy statement and"):
            clf.set_params(epsilon=8.0).fit(X[:500], Y[:500], **PUBLIC)
    finally:
        SUSPENDED.clear()
    assert seed_of_noise() is None


BOUNDED = {"data_norm": 20.0, "classes": [0, 1, 2]}
BOX = {"domain": (-15.0, 15.0), "classes": [0, 1, 2]}
linear = DPLogisticRegression(**BOUNDED)
MODEL = LogisticRegression().fit(X[500:], Y[500:])
RELEASES = {
    "votes": lambda X, y: pate().fit(X, y, **PUBLIC),
    "scores": lambda X, y: pate(mechanism="scores", n_queries="auto", epsilon=8.0).fit(
        X, y, **PUBLIC
    ),
    "votes of parties": lambda X, y: pate(
        n_teachers="auto", n_queries="auto", classes=range(3)
    ).fit_from_votes(X[:40], 60 * [np.arange(40) % 3]),
    "counts": lambda X, y: pate(
        synthetic=PrivateMarginals((-15.0, 15.0)), epsilon=20.0, n_queries="auto"
    ).fit(X, y),
    "Newton steps": lambda X, y: DPNewtonClassifier(epsilon=8.0).fit(X, y, **PUBLIC),
    "neighbours": lambda X, y: PrivateKNNClassifier(epsilon=8.0, n_queries=20).fit(
        X, y, **PUBLIC
    ),
    "sum": lambda X, y: PETDLClassifier(
        GaussianNB(), LogisticRegression(), n_teachers=50, batches=Clusters(20)
    ).fit(X, y, **PUBLIC),
    "naive Bayes": lambda X, y: DPNaiveBayesClassifier(**BOX).fit(X, y),
    "objective": lambda X, y: linear.fit(X, y),
    "machine": lambda X, y: DPLinearSVC(method="gaussian", **BOUNDED).fit(X, y),
    "search": lambda X, y: PrivateSearchCV(linear, {"C": [1.0]}, mean_n_trials=2).fit(
        X, y
    ),
    "metrics": lambda X, y: private_metrics(MODEL, X, y, epsilon=8.0),
    "fit and metrics": lambda X, y: fit_and_measure(linear, X, y, metrics_epsilon=8.0),
}


@contextmanager
def change_at_the_first_source(change):
    """Call a function at the start of `NoiseSource()`, as a collector might."""
    code = NoiseSource.__init__.__code__

    def watch(frame, event, argument):
        if event == "call" and frame.f_code is code:
            sys.setprofile(None)
            change()

    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(None)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")  # of useless noise, too
@pytest.mark.parametrize("change", ["begins", "ends"])
@pytest.mark.parametrize("name", RELEASES)
def test_no_noise_follows_a_statement_of_the_other_kind(name, change):
    suspended = block(0)
    if change == "ends":
        next(suspended)
    end = suspended.close if change == "ends" else lambda: next(suspended)
    refused = pytest.raises(RuntimeError, match="between the privacy statement and")
    if name == "search":  # which creates its source before its statement
        refused = nullcontext()
    with closing(suspended), refused, change_at_the_first_source(end):
        released = RELEASES[name](X[:500], Y[:500])
        assert np.isinf(released.privacy_spent_.epsilon) == (change == "begins")


# What a seeded fit states


@pytest.mark.slow
def test_a_seeded_fit_has_no_guarantee():
    with equal_noise():
        clf = fit()
    spent = clf.privacy_spent_
    assert spent.epsilon == np.inf
    assert np.all(spent.curve.values == np.inf)
    assert spent.profile.delta_at(100.0) == 1
    assert spent.mu is None
    assert spent.assumptions[-1] == SEEDED
    assert spent.facts.randomness == "seeded"
    assert clf.mechanism_.cost(40, 3).epsilon(1e-5) <= 1


@pytest.mark.slow
def test_a_source_that_was_made_in_the_block_stays_seeded_and_so_does_its_cost():
    votes = Votes.of_counts(COUNTS, n_teachers=100)
    with equal_noise():
        oracle = Oracle(votes, GNMax(sigma=40), n_queries=2)
    assert np.all(oracle.curve.values == np.inf)
    honest = Oracle(votes, GNMax(sigma=40), n_queries=2)
    assert np.all(np.isfinite(honest.curve.values))


@pytest.mark.slow
def test_the_analysis_of_a_seeded_fit_is_not_published():
    parties = 60 * [np.arange(40) % 3]
    pate = PATEClassifier(GaussianNB(), GaussianNB(), classes=range(3))
    with equal_noise():
        pate.fit_from_votes(X[:40], parties)
    with pytest.raises(ValueError, match="The noise of this fit was seeded"):
        pate.privacy_analysis_.sanitize()


@pytest.mark.slow
def test_the_warning_comes_once_a_block_and_does_not_show_the_seed():
    with pytest.warns(PrivacyLeakWarning) as caught, seeded_noise(271828):
        release(), fit()
    texts = [str(one.message) for one in caught]
    assert sum("seeded" in text for text in texts) == 1
    assert not any("271828" in text for text in texts)


@pytest.mark.slow
def test_an_honest_model_is_published_and_read_in_a_block(tmp_path):
    clf = fit()
    with seeded_noise(0):
        clf.publish().save(tmp_path / "model.skops")
        loaded = PublishedClassifier.load(tmp_path / "model.skops")
    assert loaded.privacy_spent_ == clf.privacy_spent_


@pytest.mark.parametrize("seed", [None, -1, 0.5, True, "0", [0]])
def test_what_is_no_seed_is_refused(seed):
    with pytest.raises(ValueError, match=r"seed=.* must be"), seeded_noise(seed):
        pytest.fail("it was entered")
