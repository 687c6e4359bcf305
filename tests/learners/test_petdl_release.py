"""The ledger entry of a fit, repeated fits, and the fitted state."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import (
    BudgetExceededError,
    PrivacyLeakWarning,
    PrivacyLedger,
    PublicData,
    PublicDataWarning,
    PublishedClassifier,
    TeacherWarning,
)
from sklearn_pate.accounting import PrivacyAnalysis
from sklearn_pate.learners import Clusters, Hint, PETDLClassifier, RandomBatches
from sklearn_pate.mechanisms import Oracle
from sklearn_pate.students import ConvSmall, DistillationClassifier, FixMatchClassifier
from sklearn_pate.testing import seeded_noise
from tests._teachers.diary import Diary
from tests.cases import thorough_but
from tests.private import NoiseSource, SoftVotes
from tests.seeding import equal_noise

PLANTED = 98765.4321
PLANTED_ERROR = "planted words of a teacher"
NETWORK = {"student": FixMatchClassifier(ConvSmall(4), max_epochs=2)}


class Speaking(Diary):
    """A tree whose fits are counted."""

    def fit(self, X, y):
        super().fit(X, y)
        self.classes_ = self.tree_.classes_
        return self

    def predict_proba(self, X):
        return self.tree_.predict_proba(X)


def make(**parameters):
    defaults = {
        "estimator": GaussianNB(),
        "student": GaussianNB(),
        "n_teachers": 20,
        "batches": Clusters(20),
        "epsilon": None,
        "noise_scale": 3.0,
        "random_state": 0,
    }
    return PETDLClassifier(**(defaults | parameters))


def fit(blobs, **parameters):
    X, y, X_public, _ = blobs
    return make(**parameters).fit(X, y, X_public=PublicData(X_public))


# Randomness


@pytest.mark.slow
@pytest.mark.parametrize(
    "student",
    thorough_but([{}], [NETWORK, NETWORK | {"hint": Hint(2)}, {}]),
    ids=["network", "hint", "bayes"],
)
def test_seeds_of_everything_repeat_the_student(blobs, student):
    one, other = (equal_noise()(fit)(blobs, **student) for _ in range(2))
    np.testing.assert_array_equal(one.released_, other.released_)
    np.testing.assert_array_equal(
        one.predict_proba(blobs[0]), other.predict_proba(blobs[0])
    )
    another = equal_noise(1)(fit)(blobs, **student)
    assert not np.array_equal(one.released_, another.released_)


def test_random_state_fixes_everything_but_the_noise(blobs):
    one, other = fit(blobs), fit(blobs)
    np.testing.assert_array_equal(one.batch_of_row_, other.batch_of_row_)
    np.testing.assert_array_equal(
        one.privacy_analysis_.counts, other.privacy_analysis_.counts
    )
    assert not np.array_equal(one.released_, other.released_)


@pytest.mark.thorough
def test_workers_do_not_change_the_release(blobs):
    hint = {"hint": Hint(1), "student": FixMatchClassifier(max_epochs=1)}
    one, other = (equal_noise()(fit)(blobs, n_jobs=n, **hint) for n in (None, 2))
    np.testing.assert_array_equal(one.released_, other.released_)
    np.testing.assert_array_equal(one.similarities_, other.similarities_)


# The ledger


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "patients.sqlite", epsilon=30, delta=1e-5)


def test_a_fit_is_charged_its_cost_before_any_noise_is_drawn(
    blobs, ledger, monkeypatch
):
    draw = NoiseSource.words

    def watched(self, shape):
        assert len(PrivacyLedger(ledger.path).entries()) == 1
        return draw(self, shape)

    monkeypatch.setattr(NoiseSource, "words", watched)
    petdl = fit(blobs, ledger=ledger)
    (charge,) = ledger.entries()
    assert charge.share == ledger.budget_fractions(petdl.privacy_spent_.curve)[0]
    assert charge.epsilon >= petdl.privacy_spent_.epsilon, "curves are not exact"
    assert "20 teachers, NoisySum(n_parts=15, noise_scale=3.0)" in charge.description


@pytest.mark.thorough
def test_the_same_fit_gets_the_same_release_at_no_further_charge(
    blobs, ledger, monkeypatch
):
    wanted = NETWORK | {"hint": Hint(1), "noise_scale": 8.0, "ledger": ledger}
    first = fit(blobs, **wanted)

    def draw(self, shape):
        pytest.fail("noise was drawn")

    monkeypatch.setattr(NoiseSource, "words", draw)
    again = fit(blobs, **wanted)
    np.testing.assert_array_equal(again.released_, first.released_)
    np.testing.assert_array_equal(again.similarities_, first.similarities_)
    np.testing.assert_array_equal(
        again.predict_proba(blobs[0]), first.predict_proba(blobs[0])
    )
    assert len(ledger.entries()) == 1
    assert again.privacy_spent_ == first.privacy_spent_


ANOTHER_FIT = {
    "the teacher": {"estimator": GaussianNB(var_smoothing=1e-8)},
    "n_teachers": {"n_teachers": 21},
    "the core of batches": {"batches": Clusters(20, core=0.6)},
    "the batches": {"batches": RandomBatches(20)},
    "temperature": {"temperature": 2.0},
    "the weights": {"weighted": True},
    "the bound": {"clipping_bound": 0.5},
    "the noise": {"noise_scale": 9.0},
    "random_state": {"random_state": 1},
}


@pytest.mark.slow
@pytest.mark.parametrize("case", ANOTHER_FIT)
def test_anything_else_is_another_fit_and_charged(blobs, ledger, case):
    wanted = {"noise_scale": 8.0, "ledger": ledger}
    fit(blobs, **wanted)
    fit(blobs, **(wanted | ANOTHER_FIT[case]))
    assert len(ledger.entries()) == 2


def test_collected_outputs_are_charged_and_recognised_too(blobs, ledger):
    outputs = np.random.default_rng(0).dirichlet(np.ones(3), size=(25, 300))
    petdl = make(classes=[0, 1, 2], n_teachers="auto", ledger=ledger)

    def released():
        return petdl.fit_from_outputs(PublicData(blobs[2]), outputs).released_

    first = released()
    assert "25 teachers" in ledger.entries()[0].description
    np.testing.assert_array_equal(released(), first)
    assert len(ledger.entries()) == 1
    outputs[7] = outputs[7, ::-1].copy()
    released()
    assert len(ledger.entries()) == 2


@pytest.mark.slow
def test_a_fit_beyond_the_budget_trains_no_teacher_and_states_what_would_fit(
    blobs, tmp_path
):
    (tmp_path / "diary").mkdir()
    ledger = PrivacyLedger(tmp_path / "small.sqlite", epsilon=1, delta=1e-5)
    wanted = {"estimator": Speaking(str(tmp_path / "diary")), "noise_scale": None}
    wanted["ledger"] = ledger
    with pytest.raises(BudgetExceededError, match=r"epsilon=\d\S* would fit") as caught:
        fit(blobs, epsilon=3.0, **wanted)
    assert ledger.entries() == []
    assert len([*(tmp_path / "diary").iterdir()]) == 1  # on public rows
    suggested = float(str(caught.value).split("epsilon=")[-1].split()[0])
    fit(blobs, epsilon=suggested, **wanted)
    assert 0.95 < ledger.spent <= 1


def test_noise_that_is_too_little_is_refused_with_the_reason(blobs, tmp_path):
    ledger = PrivacyLedger(tmp_path / "small.sqlite", epsilon=1, delta=1e-5)
    with pytest.raises(BudgetExceededError, match="more noise"):
        fit(blobs, noise_scale=0.5, ledger=ledger)
    with pytest.raises(BudgetExceededError, match="no finite cost"), seeded_noise(0):
        fit(blobs, ledger=ledger)
    assert ledger.entries() == []


# What is kept of teachers


@pytest.mark.slow
def test_memory_keeps_the_vectors_of_teachers(blobs, tmp_path):
    diary = tmp_path / "diary"
    diary.mkdir()

    def n_trained(**parameters):
        before = len(list(diary.iterdir()))
        wanted = {"estimator": Speaking(str(diary)), "memory": tmp_path / "kept"}
        sent = fit(blobs, **(wanted | parameters)).privacy_analysis_.counts
        return len(list(diary.iterdir())) - before, sent

    first, sent = n_trained()
    again, remembered = n_trained(noise_scale=9.0, student=LogisticRegression())
    # Each fit begins with a rehearsal on public rows.
    assert (first, again) == (1 + 20, 1)
    np.testing.assert_array_equal(sent, remembered)
    assert n_trained(temperature=2.0)[0] == 1 + 20, "they would say something else"


# Fitted state


class Planted(ClassifierMixin, BaseEstimator):
    """Teacher that stores its rows, and fails on one with a second secret."""

    def fit(self, X, y):
        if np.any(X == -PLANTED):
            raise RuntimeError(PLANTED_ERROR)
        self.rows_ = X
        self.bayes_ = GaussianNB().fit(X, y)
        self.classes_ = self.bayes_.classes_
        return self

    def predict_proba(self, X):
        return self.bayes_.predict_proba(X)


@pytest.fixture(scope="module")
def fitted(blobs):
    X, y, _, _ = blobs
    X = X.copy()
    X[::7, 0] = PLANTED
    X[5, 1] = -PLANTED
    wanted = {"estimator": Planted(), "public_size": 0.3} | NETWORK
    petdl = make(**wanted)
    with pytest.warns((TeacherWarning, PublicDataWarning, PrivacyLeakWarning)):
        petdl.fit(X, y)
    petdl.estimator.fit(X[:5], y[:5])  # to compare with, as one does
    return petdl, X


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
def test_the_object_graph_holds_no_teacher_and_no_vector_of_one(fitted):
    petdl, X = fitted
    for one in reachable(petdl):
        assert not isinstance(one, (SoftVotes, Oracle, PrivacyAnalysis))
        assert not (isinstance(one, Planted) and hasattr(one, "rows_"))
        if isinstance(one, np.ndarray):
            assert len(X) not in one.shape, "something with one entry a private row"
            assert 20 not in one.shape, "something with one entry a teacher"


def test_saved_bytes_hold_no_planted_value(fitted):
    petdl, X = fitted
    secrets = [np.float64(PLANTED).tobytes(), PLANTED_ERROR.encode()]
    secrets.append(petdl.public_indices_.tobytes())
    leaky = pickle.dumps([X, petdl.privacy_analysis_.__dict__])
    assert all(secret in leaky for secret in secrets[:2])
    secrets.append(petdl.privacy_analysis_.counts.tobytes())
    saved = pickle.dumps(petdl)
    assert [secret for secret in secrets if secret in saved] == []


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, "pickle"])
def test_a_duplicate_predicts_and_keeps_the_statement_only(fitted, duplicate):
    petdl, X = fitted
    if duplicate == "pickle":
        copied = pickle.loads(pickle.dumps(petdl))
    else:
        copied = duplicate(petdl)
    for name in ("privacy_analysis_", "public_indices_"):
        assert hasattr(petdl, name)
        assert not hasattr(copied, name)
    assert copied.privacy_spent_ == petdl.privacy_spent_
    np.testing.assert_array_equal(copied.predict_proba(X), petdl.predict_proba(X))


# Publication


@pytest.mark.slow
def test_the_default_student_is_published_without_trust(blobs, tmp_path):
    petdl = fit(blobs, epsilon=50.0, **(NETWORK | {"noise_scale": None}))
    published = petdl.publish()
    assert published.card["epsilon"] <= 50
    assert published.card["n_queries"] == 15
    published.save(tmp_path / "student.skops")
    loaded = PublishedClassifier.load(tmp_path / "student.skops")
    np.testing.assert_array_equal(
        loaded.predict_proba(blobs[0]), petdl.predict_proba(blobs[0])
    )
    assert loaded.privacy_spent_ == petdl.privacy_spent_


@pytest.mark.thorough
def test_a_hinted_student_of_images_and_another_are_published(digits, tmp_path):
    X, y = digits
    soft = DistillationClassifier(LogisticRegression(C=1e-3, max_iter=2000))
    of_images = FixMatchClassifier(ConvSmall(4), image_shape=(8, 8), max_epochs=2)
    for number, student in enumerate(
        [{"student": of_images, "hint": Hint(1)}, {"student": soft}]
    ):
        petdl = make(**student).fit(X[:600], y[:600], X_public=PublicData(X[600:900]))
        petdl.publish().save(tmp_path / f"{number}.skops")
        loaded = PublishedClassifier.load(tmp_path / f"{number}.skops")
        np.testing.assert_array_equal(loaded.predict(X), petdl.predict(X))


@pytest.mark.slow
def test_a_student_of_seeded_noise_is_published_as_void(blobs):
    with equal_noise():
        petdl = fit(blobs)
    with pytest.warns(PrivacyLeakWarning, match="no privacy guarantee"):
        published = petdl.publish()
    assert published.card["epsilon"] is None
