"""The ledger entry of a fit, repeated fits, and the fitted state."""

import copy
import json
import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import (
    BudgetExceededError,
    PATEClassifier,
    PrivacyLeakWarning,
    PrivacyLedger,
    PublicData,
    PublicDataWarning,
    PublishedClassifier,
)
from sklearn_pate.learners import PrivateKNNClassifier
from sklearn_pate.mechanisms import GNMax, NoisyHistogram, Oracle
from sklearn_pate.students import UncertaintyQueries
from tests.private import NeighbourVotes, NoiseSource, PoissonSampler
from tests.seeding import equal_noise

PLANTED = 98765.4321


def make(**parameters):
    defaults = {
        "student": GaussianNB(),
        "mechanism": GNMax(sigma=20.0),
        "n_queries": 60,
        "epsilon": None,
        "random_state": 0,
    }
    return PrivateKNNClassifier(**(defaults | parameters))


def fit(blobs, **parameters):
    X, y, X_public, _ = blobs
    return make(**parameters).fit(X, y, X_public=PublicData(X_public))


# Randomness


def test_random_state_fixes_queries_but_neither_samples_nor_noise(blobs):
    one, other = (fit(blobs, mechanism=NoisyHistogram(20.0)) for _ in range(2))
    np.testing.assert_array_equal(one.queried_indices_, other.queried_indices_)
    assert not np.array_equal(one.histograms_, other.histograms_)


def test_samples_differ_between_fits_where_there_is_no_noise(blobs):
    quiet = {"mechanism": GNMax(sigma=0.01), "n_neighbors": 1, "random_state": 0}
    X, _, X_public, _ = blobs
    labels = np.arange(600) // 60  # of ten neighbours, perhaps ten
    np.random.default_rng(0).shuffle(labels)
    one, other = (
        make(**quiet).fit(X, labels, X_public=PublicData(X_public)).answers_
        for _ in range(2)
    )
    assert not np.array_equal(one, other)


def test_seeded_noise_repeats_samples_and_noise(blobs):
    def histograms(seed):
        with equal_noise(seed):
            return fit(blobs, mechanism=NoisyHistogram(20.0)).histograms_

    np.testing.assert_array_equal(histograms(0), histograms(0))
    assert not np.array_equal(histograms(0), histograms(1))


# The ledger


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "patients.sqlite", epsilon=10, delta=1e-5)


def test_a_fit_is_charged_its_cost_before_any_sample_or_noise_is_drawn(
    blobs, ledger, monkeypatch
):
    draw = NoiseSource.words

    def watched(self, shape):
        assert len(PrivacyLedger(ledger.path).entries()) == 1
        return draw(self, shape)

    monkeypatch.setattr(NoiseSource, "words", watched)
    knn = fit(blobs, ledger=ledger)
    (charge,) = ledger.entries()
    assert charge.share == ledger.budget_fractions(knn.privacy_spent_.curve)[0]
    assert charge.epsilon == knn.privacy_spent_.epsilon
    assert (
        "60 queries to 120 teachers, SampledMechanism(mechanism=GNMax(sigma=20.0), "
        "sampling_rate=0.15)"
    ) in charge.description


def test_the_same_fit_gets_the_same_answers_at_no_further_charge(
    blobs, ledger, monkeypatch
):
    first = fit(blobs, ledger=ledger)

    def draw(self, shape):
        pytest.fail("a sample or noise was drawn")

    monkeypatch.setattr(NoiseSource, "words", draw)
    again = fit(blobs, ledger=ledger)
    np.testing.assert_array_equal(again.answers_, first.answers_)
    assert len(ledger.entries()) == 1
    assert again.privacy_spent_ == first.privacy_spent_


ANOTHER_FIT = {
    "n_neighbors": {"n_neighbors": 121},
    "sampling_rate": {"sampling_rate": 0.2},
    "metric": {"metric": "cosine"},
    "representation": {"representation": PCA(1)},
    "the noise": {"mechanism": GNMax(sigma=21.0)},
    "histogram": {"mechanism": NoisyHistogram(20.0)},
    "n_queries": {"n_queries": 61},
    "random_state": {"random_state": 1},
    "unknown": {"random_state": None},
}


@pytest.mark.slow
@pytest.mark.parametrize("case", ANOTHER_FIT)
def test_anything_else_is_another_fit_and_charged(blobs, ledger, case):
    fit(blobs, ledger=ledger)
    fit(blobs, ledger=ledger, **ANOTHER_FIT[case])
    assert len(ledger.entries()) == 2


def test_a_killed_fit_goes_on_with_the_answers_it_paid_for(blobs, ledger, monkeypatch):
    rounds = {"query_strategy": UncertaintyQueries(n_rounds=3), "ledger": ledger}
    draw, n_drawn = PoissonSampler.draw, []

    def killed(self, n_units):
        if len(n_drawn) == 45:
            raise KeyboardInterrupt
        n_drawn.append(None)
        return draw(self, n_units)

    with monkeypatch.context() as patched:
        patched.setattr(PoissonSampler, "draw", killed)
        with pytest.raises(KeyboardInterrupt):
            fit(blobs, **rounds)
    assert len(ledger.entries()) == 1
    n_drawn.clear()
    monkeypatch.setattr(
        PoissonSampler,
        "draw",
        lambda self, n_units: n_drawn.append(None) or draw(self, n_units),
    )
    knn = fit(blobs, **rounds)
    assert len(knn.answers_) == 60
    # It died between a draw and its storing: that round is paid for again.
    assert len(ledger.entries()) == 2
    assert len(n_drawn) < 60, "what was stored is not drawn again"


@pytest.mark.slow
def test_a_fit_beyond_the_budget_draws_nothing_and_names_the_affordable_epsilon(
    blobs, tmp_path
):
    ledger = PrivacyLedger(tmp_path / "small.sqlite", epsilon=1, delta=1e-5)
    wanted = {"mechanism": "gnmax", "ledger": ledger}
    with pytest.raises(BudgetExceededError, match=r"epsilon=\d\S* would fit") as caught:
        fit(blobs, epsilon=3.0, **wanted)
    assert ledger.entries() == []
    suggested = float(str(caught.value).split("epsilon=")[-1].split()[0])
    fit(blobs, epsilon=suggested, **wanted)
    assert 0.5 < ledger.spent <= 1
    tiny = PrivacyLedger(tmp_path / "tiny.sqlite", epsilon=0.1, delta=1e-5)
    with pytest.raises(BudgetExceededError, match=r"n_queries=\d+ would fit"):
        fit(blobs, ledger=tiny)
    assert tiny.entries() == []


@pytest.mark.thorough
def test_rows_that_are_replaced_and_rows_that_are_added_have_ledgers_of_their_own(
    blobs, ledger
):
    X, y, X_public, _ = blobs
    fit(blobs, ledger=ledger)
    pate = PATEClassifier(GaussianNB(), n_queries=5, epsilon=0.5, ledger=ledger)
    with pytest.raises(ValueError, match="unit='row' with relation='add-remove', but"):
        pate.fit(X, y, X_public=PublicData(X_public))
    assert len(ledger.entries()) == 1


# Fitted state


class Peeking(TransformerMixin, BaseEstimator):
    """Remembers what it is fitted on, and even what it transforms."""

    def fit(self, X, y=None):
        self.rows_ = [X]
        return self

    def transform(self, X):
        self.rows_.append(X)
        return X


@pytest.fixture(scope="module", params=["row", "group"])
def fitted(request, blobs):
    X, y, _, _ = blobs
    X = X.copy()
    X[::7, 0] = PLANTED
    groups = np.arange(600) // 2 if request.param == "group" else None
    knn = make(
        student=LogisticRegression(max_iter=1000),
        representation=Peeking(),
        public_size=0.3,
        privacy_unit=request.param,
    )
    with pytest.warns(PublicDataWarning):
        knn.fit(X, y, groups=groups)
    knn.representation.fit(X)  # to look at, as one does
    return knn, X


def reachable(root):
    """Yield every object that pickle would reach."""
    seen, todo = {}, [root]
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, (str, bytes, int, float, type)):
            continue
        seen[id(one)] = one
        yield one
        if isinstance(one, dict):
            todo += [*one.keys(), *one.values()]
        elif isinstance(one, (list, tuple, set)):
            todo += one
        elif hasattr(one, "__getstate__"):
            todo.append(one.__getstate__())


@pytest.mark.slow
def test_the_object_graph_holds_no_private_row_and_no_vote(fitted):
    knn, X = fitted
    n_private = len(X) - len(knn.public_indices_)
    for one in reachable(knn):
        assert not isinstance(one, (NeighbourVotes, Oracle, PoissonSampler))
        if isinstance(one, np.ndarray):
            assert len(X) not in one.shape, "something with one entry a row"
            assert n_private not in one.shape, "one entry a private row"


def test_saved_bytes_hold_no_private_row(fitted):
    knn, X = fitted
    private = np.setdiff1d(np.arange(len(X)), knn.public_indices_)
    secrets = [row.tobytes() for row in X[private]]
    assert all(secret in pickle.dumps(X) for secret in secrets)
    saved = pickle.dumps(knn)
    assert [secret for secret in secrets if secret in saved] == []
    assert knn.public_indices_.tobytes() not in saved


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, "pickle"])
def test_a_duplicate_predicts_and_keeps_the_statement_only(fitted, duplicate):
    knn, X = fitted
    if duplicate == "pickle":
        copied = pickle.loads(pickle.dumps(knn))
    else:
        copied = duplicate(knn)
    assert not hasattr(copied, "public_indices_")
    assert copied.privacy_spent_ == knn.privacy_spent_
    np.testing.assert_array_equal(copied.predict_proba(X), knn.predict_proba(X))


def test_the_student_is_published_with_its_statement(fitted, tmp_path):
    knn, X = fitted
    published = knn.publish()
    card = published.card
    json.dumps(card, allow_nan=False)
    assert (card["n_teachers"], card["n_queries"]) == (120, 60)
    assert (card["unit"], card["relation"]) == (knn.privacy_unit, "add-remove")
    published.save(tmp_path / "student.skops")
    loaded = PublishedClassifier.load(tmp_path / "student.skops")
    np.testing.assert_array_equal(loaded.predict(X), knn.predict(X))
    assert loaded.privacy_spent_ == knn.privacy_spent_


def test_a_student_of_seeded_noise_is_published_as_void(blobs):
    with equal_noise():
        knn = fit(blobs, mechanism=GNMax(20.0))
    with pytest.warns(PrivacyLeakWarning, match="no privacy guarantee"):
        published = knn.publish()
    assert published.card["epsilon"] is None
