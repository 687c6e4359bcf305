"""Parties that trained elsewhere send outputs; a party is the unit."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import PrivacyLeakWarning, PublicData, StudentWarning
from sklearn_pate.learners import Clusters, Hint, PETDLClassifier, RandomBatches
from sklearn_pate.students import FixMatchClassifier
from tests.private import shard_rows
from tests.seeding import equal_noise

N_PARTIES = 30
NAMES = np.array(["ill", "unsure", "well"])


def make(**parameters):
    defaults = {
        "student": GaussianNB(),
        "batches": Clusters(20),
        "classes": NAMES,
        "epsilon": None,
        "noise_scale": 0.3,
        "random_state": 0,
    }
    return PETDLClassifier(**(defaults | parameters))


@pytest.fixture(scope="module")
def outputs(blobs):
    X, y, X_public, _ = blobs
    return [
        GaussianNB().fit(X[rows], NAMES[y[rows]]).predict_proba(X_public)
        for rows in shard_rows(len(X), N_PARTIES, 0)
    ]


def test_a_student_learns_from_outputs_alone(blobs, outputs):
    _, _, X_public, y_public = blobs
    petdl = make().fit_from_outputs(PublicData(X_public), outputs)
    assert petdl.score(X_public, NAMES[y_public]) > 0.9
    assert petdl.released_.shape == (15, 3)
    assert petdl.n_features_in_ == 2
    assert not hasattr(petdl, "public_indices_")


def test_the_statement_is_about_parties(blobs, outputs):
    petdl = make(epsilon=2.0, noise_scale=None).fit_from_outputs(blobs[2], outputs)
    spent = petdl.privacy_spent_
    assert 1.99 < spent.epsilon <= 2.0
    assert (spent.unit, spent.n_teachers, spent.n_queries) == ("party", N_PARTIES, 15)
    for part in ("one party", "from its own data alone", "has data at one party only"):
        assert part in spent.in_one_line()
    assert "columns of" not in spent.in_one_line()


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"weighted": True, "temperature": 2.0},
        {"hint": Hint(1), "student": FixMatchClassifier(max_epochs=1)},
        {"batches": RandomBatches(20)},
    ],
    ids=["plain", "weighted", "hint", "random"],
)
def test_outputs_of_parties_give_the_same_release_as_a_fit(blobs, outputs, parameters):
    X, y, X_public, _ = blobs
    petdl = make(estimator=GaussianNB(), **parameters)
    here = clone(petdl).set_params(n_teachers=N_PARTIES)
    with equal_noise():
        here.fit(X, NAMES[y], X_public=PublicData(X_public))
    with equal_noise():
        there = petdl.fit_from_outputs(X_public, outputs)
    np.testing.assert_array_equal(here.batch_of_row_, there.batch_of_row_)
    np.testing.assert_array_equal(here.released_, there.released_)
    np.testing.assert_array_equal(here.predict_proba(X), there.predict_proba(X))
    if "hint" in parameters:
        np.testing.assert_array_equal(here.similarities_, there.similarities_)


def test_the_order_of_parties_is_of_no_consequence(blobs, outputs):
    fit = equal_noise()(make().fit_from_outputs)
    one, other = (
        fit(blobs[2], (sent for sent in order)).released_
        for order in (outputs, outputs[::-1])
    )
    np.testing.assert_array_equal(one, other)


@pytest.mark.thorough
def test_a_representation_beside_the_outputs_makes_the_hint(blobs, outputs):
    X_public = blobs[2]
    hinted = make(
        hint=Hint(1),
        student=FixMatchClassifier(max_epochs=1),
        noise_scale=1e-3,
    )

    def similarities(pairs):
        with equal_noise():
            return clone(hinted).fit_from_outputs(X_public, pairs).similarities_

    alone = similarities(outputs)
    np.testing.assert_array_equal(alone, similarities([(p, p) for p in outputs]))
    hidden = np.random.default_rng(0).normal(size=(300, 50))
    assert not np.array_equal(alone, similarities([(p, hidden) for p in outputs]))


def test_double_and_single_precision_give_the_same_sum(blobs):
    doubt = np.array([[0.5 - 1e-12, 0.5 + 1e-12, 0], [0, 0.5 - 1e-12, 0.5 + 1e-12]])
    double = doubt[np.minimum(blobs[3], 1)]
    one, other = (
        make().fit_from_outputs(blobs[2], [sent] * N_PARTIES).privacy_analysis_.counts
        for sent in (double, double.astype(np.float32))
    )
    np.testing.assert_array_equal(one, other)


def test_without_a_hint_no_similarities_are_released(blobs, outputs):
    hidden = np.random.default_rng(0).normal(size=(300, 50))
    petdl = make().fit_from_outputs(blobs[2], [(sent, hidden) for sent in outputs])
    assert not hasattr(petdl, "similarities_")
    assert petdl.mechanism_.n_parts == 15


@pytest.mark.slow
def test_no_party_moves_the_sum_further_than_its_sensitivity(blobs, outputs):
    X_public = blobs[2]
    constant = [np.eye(3)[np.full(300, code)] for code in range(3)]
    large = [1e30 * one for one in constant]
    sums = []
    for party in (outputs[0], *constant, *large):
        petdl = make(noise_scale=1e-3)
        petdl.fit_from_outputs(X_public, [party, *outputs[1:]])
        sums.append(petdl.privacy_analysis_.counts / 1024)
    for one in sums:
        for other in sums:
            assert np.linalg.norm(one - other) <= np.sqrt(2 * 15)


def test_what_is_saved_holds_no_output(blobs, outputs):
    petdl = make().fit_from_outputs(blobs[2], outputs)
    copied = pickle.loads(pickle.dumps(petdl))
    assert not hasattr(copied, "privacy_analysis_")
    np.testing.assert_array_equal(copied.released_, petdl.released_)


def test_the_noise_hides_a_few_parties_at_a_small_epsilon(blobs, outputs):
    # The noise hides the outputs of a few parties.
    petdl = make(epsilon=1.0, noise_scale=None).fit_from_outputs(blobs[2], outputs[:5])
    assert petdl.mechanism_.noise_scale > 3 * 5


def test_unanimous_parties_give_a_constant_student(blobs):
    ill = np.eye(3)[np.zeros(300, dtype=int)]
    with pytest.warns(StudentWarning, match="one class"):
        petdl = make().fit_from_outputs(blobs[2], [ill] * N_PARTIES)
    assert set(petdl.predict(blobs[2])) == {"ill"}


@pytest.mark.parametrize("privacy_unit", ["row", "group"])
def test_the_unit_is_a_party_whatever_the_parameter_is(privacy_unit, blobs, outputs):
    petdl = make(privacy_unit=privacy_unit).fit_from_outputs(blobs[2], outputs)
    assert petdl.privacy_spent_.unit == "party"


def test_a_delta_of_one_over_the_parties_warns(blobs, outputs):
    with pytest.warns(PrivacyLeakWarning, match="1 / n_parties = 1 / 30"):
        make(delta=0.04).fit_from_outputs(blobs[2], outputs)


def test_a_refit_on_outputs_forgets_the_rows_held_out_before(blobs, outputs):
    X, y, X_public, _ = blobs
    petdl = make(estimator=LogisticRegression(), public_size=0.3, n_teachers=10)
    with pytest.warns(UserWarning, match="are not protected"):
        petdl.fit(X, NAMES[y])
    petdl.set_params(public_size=None, n_teachers="auto")
    petdl.fit_from_outputs(X_public, outputs)
    assert not hasattr(petdl, "public_indices_")
