"""Balanced votes: their rule, neighbours, and where votes stay plain."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from sklearn_pate import (
    PrivateMarginals,
    PublicData,
)
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.students import ReweightedClassifier
from tests._aggregation.balanced_fits import (
    X_PUBLIC,
    X,
    Y,
    audit_fits,
    counts_of,
    fit,
    make,
)
from tests.private import (
    STEPS,
    PrivateRows,
    StoredSums,
    VoteForm,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_pate.PrivacyUtilityWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_pate.StudentWarning"),
]


# The vote


class Known:
    """A teacher of given probabilities, one row each for the public rows."""

    def __init__(self, probabilities):
        self.probabilities = np.asarray(probabilities, dtype=float)
        self.classes_ = np.arange(self.probabilities.shape[1])

    def predict_proba(self, X):
        return self.probabilities


class Predicting:
    """A teacher without probabilities."""

    def __init__(self, codes):
        self.codes = np.asarray(codes)

    def predict(self, X):
        return self.codes


def votes_of(teacher, n_rows, n_classes):
    return VoteForm(n_classes, balanced=True).read(teacher, np.zeros((n_rows, 1)))


def by_definition(rows):
    """Return the first class that exceeds its mean most, -1 if none does."""
    means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    votes = []
    for row in rows:
        excess = [one - mean for one, mean in zip(row, means, strict=True)]
        votes.append(excess.index(max(excess)) if max(excess) > 0 else -1)
    return votes


# Twentieths, so that classes tie often, and others differ by more than rounding.
TWENTIETHS = st.integers(2, 4).flatmap(
    lambda n_classes: arrays(
        np.int64,
        st.tuples(st.integers(1, 9), st.just(n_classes)),
        elements=st.integers(0, 20),
    )
)


@pytest.mark.slow
@given(numerators=TWENTIETHS, seed=st.integers(0, 2**32 - 1))
def test_a_vote_is_for_the_class_that_exceeds_its_mean_most(numerators, seed):
    expected = by_definition(
        [[Fraction(int(n), 20) for n in row] for row in numerators]
    )
    round_off = 1e-13 * np.random.RandomState(seed).standard_normal(numerators.shape)
    for probabilities in (numerators / 20, numerators / 20 + round_off):
        assert_array_equal(votes_of(Known(probabilities), *numerators.shape), expected)


@pytest.mark.slow
@given(codes=st.lists(st.integers(-1, 3), min_size=1, max_size=12))
def test_a_prediction_votes_as_a_probability_of_one(codes):
    known = [
        [Fraction(one == code) for one in range(3)] for code in codes if 0 <= code < 3
    ]
    expected = np.full(len(codes), -1)
    expected[[0 <= code < 3 for code in codes]] = by_definition(known)
    assert_array_equal(votes_of(Predicting(codes), len(codes), 3), expected)


def test_a_class_that_a_teacher_has_not_seen_gets_no_vote():
    teacher = Known([[0.9, 0.1], [0.2, 0.8]])
    teacher.classes_ = np.array([0, 2])
    assert_array_equal(votes_of(teacher, 2, 3), [0, 2])


@pytest.mark.filterwarnings("ignore:overflow")
def test_huge_scores_raise_no_error():
    assert_array_equal(votes_of(Known([[1e308, 0.0], [1e308, 1.0]]), 2, 2), [-1, 1])


@pytest.mark.slow
def test_constant_teachers_abstain():
    assert not counts_of(fit(DummyClassifier())).any()
    assert counts_of(fit(DummyClassifier(), vote="plain")).any()


@pytest.mark.slow
@pytest.mark.parametrize("n_positive", [0, 1])
def test_teachers_of_one_class_abstain_and_raise_no_error(n_positive):
    y = np.zeros(len(Y), dtype=int)
    y[:n_positive] = 1
    counts = counts_of(fit(LogisticRegression(), data=(X, y)))
    assert counts.sum(axis=1).max() == n_positive
    assert counts_of(fit(data=(X, y), vote="plain")).sum(axis=1).min() == 20


@pytest.mark.slow
@pytest.mark.parametrize(
    "teacher",
    [
        LogisticRegression(),
        LogisticRegression(class_weight="balanced"),
        LinearSVC(class_weight="balanced"),
        RandomForestClassifier(5),
    ],
    ids=repr,
)
def test_both_classes_get_many_votes_whatever_the_teachers_weigh(teacher):
    votes = counts_of(fit(teacher, n_teachers=10)).sum(axis=0)
    assert 0.2 < votes[1] / votes.sum() < 0.8


# Neighbours


class Sent:
    """What teachers sent in a fit, and the exact counts of its classes."""

    def __init__(self, monkeypatch, **changes):
        self.votes, self.sums = [], []
        read, constant, draw = VoteForm.read, VoteForm.constant, StoredSums.draw

        def keep(work):
            def kept(*given):
                self.votes.append(work(*given))
                return self.votes[-1]

            return kept

        def kept_sum(stored, number, total):
            self.sums.append(total())
            return draw(stored, number, total)

        with monkeypatch.context() as patch:
            # In order of the shards; those of the rehearsal come first.
            patch.setattr(VoteForm, "read", keep(read))
            patch.setattr(VoteForm, "constant", keep(constant))
            patch.setattr(StoredSums, "draw", kept_sum)
            self.counts = counts_of(fit(**changes))
        self.votes = np.array(self.votes[-20:])


CHANGES = {
    "label": (0, None),
    "row": (1, -3.0),
    "huge": (2, 1e300),
    "gone": (4, np.nan),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_a_replaced_row_moves_the_votes_of_one_teacher(monkeypatch, change):
    row, value = CHANGES[change]
    other, labels = X.copy(), Y.copy()
    labels[row] = 1 - Y[row]
    if value is not None:
        other[row] = value
    before, after = (Sent(monkeypatch, data=data) for data in ((X, Y), (other, labels)))
    check_neighbours(before, after)
    moved = np.zeros(2, dtype=int)
    moved[[labels[row], Y[row]]] = STEPS, -STEPS
    assert_array_equal(after.sums[0] - before.sums[0], moved)


@pytest.mark.slow
def test_a_group_moves_the_votes_of_one_teacher(monkeypatch):
    groups = np.arange(len(Y)) // 3
    kept = groups != 0  # its rows come first, so that those of all others move

    def sent(rows):
        given = {"groups": groups[rows], "privacy_unit": "group"}
        return Sent(monkeypatch, data=(X[rows], Y[rows]), **given)

    before, after = sent(np.full(len(Y), True)), sent(kept)
    check_neighbours(before, after)
    left = before.sums[0] - after.sums[0]
    assert left.min() >= 0
    assert 0 < left.sum() <= STEPS


def check_neighbours(before, after):
    changed = (before.votes != after.votes).any(axis=1)
    assert np.count_nonzero(changed) == 1
    moved = after.counts - before.counts
    assert moved.any()
    assert moved.max() <= 1
    assert moved.min() >= -1
    assert np.abs(moved).sum(axis=1).max() <= 2
    [exact], [other] = before.sums, after.sums
    assert np.sum((exact - other) ** 2) <= 2 * STEPS**2


# Audits: planted defects are found


def answers_at_the_row(fitted):
    answers = np.zeros(20)
    answers[fitted.queried_indices_] = fitted.answers_
    return answers[:10].sum() - answers[10:].sum()


@pytest.mark.thorough
def test_votes_of_teachers_that_get_all_rows_are_found(monkeypatch):
    assert not audit_fits(answers_at_the_row, n_teachers=90).contradicted

    def all_rows_to_all(private, n_teachers, key):
        return [np.arange(private.n_rows)] * n_teachers

    monkeypatch.setattr(PrivateRows, "shards", all_rows_to_all)
    assert audit_fits(answers_at_the_row, n_teachers=90).contradicted


@pytest.mark.slow
def test_a_vote_that_depends_on_two_shards_is_found(monkeypatch):
    honest = PrivateRows.shards

    def overlapping(private, n_teachers, key):
        shards = honest(private, n_teachers, key)
        following = [*shards[1:], shards[0]]
        return [np.union1d(*both) for both in zip(shards, following, strict=True)]

    monkeypatch.setattr(PrivateRows, "shards", overlapping)
    with pytest.raises(AssertionError, match=r"2\)? == 1"):
        test_a_replaced_row_moves_the_votes_of_one_teacher(monkeypatch, "row")


# What stays plain, and what is refused


@pytest.mark.slow
@pytest.mark.parametrize(
    "parameters",
    [
        {"vote": "plain"},
        {"mechanism": GNMax(sigma=5.0), "epsilon": None},
        {"student": LinearSVC()},
        {"synthetic": PrivateMarginals((-6, 6), by_class=False, n_rows=100)},
    ],
    ids=lambda one: next(iter(one)),
)
def test_votes_stay_plain_where_shares_have_no_use(parameters):
    clf = make(**parameters)
    public = {} if "synthetic" in parameters else {"X_public": PublicData(X_PUBLIC)}
    fitted = clf.fit(X, Y, **public)
    assert not hasattr(fitted, "class_shares_")
    assert not isinstance(fitted.student_, ReweightedClassifier)
    assert not fitted.privacy_spent_.class_count
    assert "count of each class" not in str(fitted.privacy_spent_)
    with pytest.raises(ValueError, match="but plain votes are counted here"):
        clone(clf).set_params(threshold=0.3).fit(X, Y, **public)


def test_plain_votes_are_votes_by_default():
    fitted = fit(mechanism="auto", n_queries="auto", vote="plain")
    assert isinstance(fitted.mechanism_, GNMax)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["confident", "interactive"])
def test_thresholds_of_a_mechanism_apply_to_balanced_votes(mechanism):
    fitted = fit(mechanism=mechanism)
    assert 0 < np.count_nonzero(fitted.answers_ >= 0) < 100
    assert fitted.class_shares_ == pytest.approx(np.bincount(Y) / len(Y), abs=0.04)
    assert fitted.privacy_spent_.class_count
    assert fitted.privacy_spent_.epsilon <= 8


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"vote": "soft"}, "vote='soft'"),
        ({"threshold": 1.5}, "threshold=1.5"),
        ({"threshold": "mean"}, "threshold='mean'"),
        ({"threshold": 0.5, "vote": "plain"}, "set threshold='auto'"),
        ({"threshold": 0.5, "classes": [0, 1, 2]}, "threshold=0.5 is for two classes"),
    ],
)
def test_wrong_parameters_are_refused_before_any_charge(ledger, parameters, message):
    with pytest.raises(ValueError, match=message):
        fit(ledger=ledger, **parameters)
    assert not ledger.entries()
