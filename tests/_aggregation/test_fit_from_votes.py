"""Votes that were collected elsewhere: one party is the unit."""

import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from sklearn_pate import (
    PATEClassifier,
    PrivacyLeakWarning,
    PublicData,
    StudentWarning,
    Votes,
)
from sklearn_pate.mechanisms import GNMax
from tests.private import shard_rows, teacher_seeds

N_PARTIES = 40
NAMES = np.array(["ill", "unsure", "well"])


@pytest.fixture
def votes_by_teacher(blobs):
    """Labels of parties that trained on their own rows."""
    X, y, X_public, _ = blobs
    return np.array(
        [
            DecisionTreeClassifier().fit(X[rows], NAMES[y[rows]]).predict(X_public)
            for rows in shard_rows(len(X), N_PARTIES, 0)
        ]
    )


def make(**parameters):
    defaults = {"classes": NAMES, "mechanism": GNMax(sigma=1), "epsilon": None}
    defaults |= {"student": LogisticRegression(), "random_state": 0}
    return PATEClassifier(**(defaults | parameters))


def test_a_student_learns_from_votes_alone(blobs, votes_by_teacher):
    _, _, X_public, y_public = blobs
    pate = make().fit_from_votes(PublicData(X_public), votes_by_teacher)
    assert pate.score(X_public, NAMES[y_public]) > 0.9
    assert pate.predict_proba(X_public).shape == (300, 3)
    assert pate.n_features_in_ == 2


def test_sealed_votes_and_label_arrays_are_the_same(blobs, votes_by_teacher):
    X_public = blobs[2]
    counted = Votes.from_labels(votes_by_teacher, NAMES)
    one = make().fit_from_votes(X_public, counted)
    other = make().fit_from_votes(X_public, (labels for labels in votes_by_teacher))
    assert one.privacy_spent_ == other.privacy_spent_
    np.testing.assert_array_equal(
        one.privacy_analysis_.plurality, other.privacy_analysis_.plurality
    )
    np.testing.assert_array_equal(
        one.queried_indices_,
        other.queried_indices_,
    )


@pytest.mark.slow
def test_polling_elsewhere_gives_what_polling_here_gives(blobs):
    X, y, X_public, _ = blobs
    here = PATEClassifier(
        DecisionTreeClassifier(),
        n_teachers=N_PARTIES,
        mechanism=GNMax(sigma=1),
        epsilon=None,
        classes=[0, 1, 2],
        random_state=0,
    ).fit(X, y, X_public=PublicData(X_public))
    seeds = teacher_seeds(0, np.arange(N_PARTIES))
    elsewhere = [
        DecisionTreeClassifier(random_state=seed)
        .fit(X[rows], y[rows])
        .predict(X_public)
        for seed, rows in zip(seeds, shard_rows(len(X), N_PARTIES, 0), strict=True)
    ]
    there = make(classes=[0, 1, 2]).fit_from_votes(X_public, elsewhere)
    np.testing.assert_array_equal(here.queried_indices_, there.queried_indices_)
    np.testing.assert_array_equal(
        here.privacy_analysis_.plurality, there.privacy_analysis_.plurality
    )
    assert here.privacy_spent_.curve == there.privacy_spent_.curve


@pytest.mark.thorough
def test_the_statement_is_about_parties(blobs, votes_by_teacher):
    pate = make(mechanism="gnmax", epsilon=2.0).fit_from_votes(
        blobs[2], votes_by_teacher
    )
    spent = pate.privacy_spent_
    assert 1.99 < spent.epsilon <= 2.0
    assert spent.unit == "party"
    assert spent.n_teachers == N_PARTIES
    for part in (
        "Change all votes of one party",
        "from its own data alone",
        "has data at one party only",
    ):
        assert part in spent.in_one_line()
    assert "columns of" not in spent.in_one_line()


def test_what_is_saved_holds_no_vote(blobs, votes_by_teacher):
    pate = make().fit_from_votes(blobs[2], votes_by_teacher)
    copied = pickle.loads(pickle.dumps(pate))
    assert not hasattr(copied, "privacy_analysis_")
    np.testing.assert_array_equal(copied.answers_, pate.answers_)


def test_one_party_changes_one_vote_a_row_whatever_it_sends(blobs, votes_by_teacher):
    classes = NAMES.tolist()
    before = Votes.from_labels(votes_by_teacher, classes).counts(range(300))
    for malicious in (["well"] * 300, [None] * 300, [-1] * 300):
        changed = [malicious, *votes_by_teacher[1:]]
        after = Votes.from_labels(changed, classes).counts(range(300))
        assert np.abs(before - after).max() <= 1
        assert np.abs(before - after).sum(axis=1).max() <= 2


@pytest.mark.thorough
def test_five_votes_drown_at_a_small_epsilon(blobs, votes_by_teacher):
    # What the docstring says: a handful of parties cannot be heard.
    pate = make(mechanism="gnmax", epsilon=1.0, n_queries=50)
    pate.fit_from_votes(blobs[2], votes_by_teacher[:5])
    assert pate.mechanism_.sigma > 5 * 5


@pytest.mark.slow
def test_a_refit_on_votes_forgets_the_rows_held_out_before(blobs, votes_by_teacher):
    X, y, X_public, _ = blobs
    pate = make(student=None, public_size=0.2)
    with pytest.warns(UserWarning, match="are not protected"):
        pate.set_params(n_teachers=10).fit(X, NAMES[y])
    pate.set_params(public_size=None, n_teachers="auto")
    pate.fit_from_votes(X_public, votes_by_teacher)
    assert not hasattr(pate, "public_indices_")


def test_unanimous_parties_give_a_constant_student(blobs):
    with pytest.warns(StudentWarning, match="one class"):
        pate = make().fit_from_votes(blobs[2], [["ill"] * 300] * N_PARTIES)
    assert set(pate.predict(blobs[2])) == {"ill"}


@pytest.mark.parametrize("privacy_unit", ["row", "group"])
def test_the_unit_is_a_party_for_any_privacy_unit(
    privacy_unit, blobs, votes_by_teacher
):
    pate = make(privacy_unit=privacy_unit).fit_from_votes(blobs[2], votes_by_teacher)
    assert pate.privacy_spent_.unit == "party"


def test_a_delta_of_one_over_the_parties_warns(blobs, votes_by_teacher):
    with pytest.warns(PrivacyLeakWarning, match="1 / n_parties = 1 / 40"):
        make(delta=0.03).fit_from_votes(blobs[2], votes_by_teacher)
