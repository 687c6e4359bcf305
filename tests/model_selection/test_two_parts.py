"""A fit and its metrics on other rows, at the larger of both costs."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression

from sklearn_pate import BudgetExceededError, PATEClassifier, PrivacyLedger, PublicData
from sklearn_pate._teachers._shards import group_ids, hold_out_rows
from sklearn_pate.learners import DPLogisticRegression, PrivateKNNClassifier
from sklearn_pate.metrics import private_metrics
from sklearn_pate.model_selection import fit_and_measure
from sklearn_pate.model_selection._split import split_groups

pytestmark = pytest.mark.slow

X, Y = make_blobs(6000, centers=2, cluster_std=6.0, random_state=0)
LEARNER = DPLogisticRegression(epsilon=1.0, data_norm=40.0, classes=[0, 1])


def test_both_together_cost_the_larger_of_both():
    for epsilon in (0.5, 2.0):
        measured = fit_and_measure(LEARNER, X, Y, metrics_epsilon=epsilon)
        parts = measured.model.privacy_spent_, measured.metrics.privacy_spent_
        assert measured.privacy_spent.epsilon == pytest.approx(
            max(one.profile.epsilon_at(1e-5) for one in parts), rel=1e-9
        )
        both = np.max([one.curve.values for one in parts], axis=0)
        np.testing.assert_array_equal(measured.privacy_spent.curve.values, both)
        assert measured.privacy_spent.profile.delta_at(0.3) >= max(
            one.profile.delta_at(0.3) for one in parts
        ) * (1 - 1e-9)


def test_the_metrics_are_of_rows_that_the_model_was_not_fitted_on():
    measured = fit_and_measure(LEARNER, X, Y, metrics_epsilon=8.0, test_size=0.3)
    n_measured = measured.metrics.confusion_.sum()
    assert n_measured == pytest.approx(0.3 * len(X), abs=100)
    auc = measured.metrics["roc_auc"]
    assert auc.high - auc.low < 0.1
    assert auc.value > 0.6


def test_one_entry_covers_both(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=1.1, delta=1e-5)
    measured = fit_and_measure(LEARNER, X, Y, ledger=ledger)
    (entry,) = ledger.entries()
    assert entry.epsilon == pytest.approx(measured.privacy_spent.epsilon, rel=1e-6)
    with pytest.raises(BudgetExceededError):
        fit_and_measure(LEARNER, X, Y, ledger=ledger)
    assert len(ledger.entries()) == 1


def test_groups_keep_their_part_when_another_one_leaves():
    groups = np.repeat(np.arange(500), 3)
    ids, of_row = group_ids(groups)
    fitted, measured = split_groups(ids, of_row, 0.25, 7, b"measured")
    left = groups != 123
    ids, of_row = group_ids(groups[left])
    fitted_left, measured_left = split_groups(ids, of_row, 0.25, 7, b"measured")
    assert {*groups[fitted]} - {123} == {*groups[left][fitted_left]}
    assert {*groups[measured]} - {123} == {*groups[left][measured_left]}


def test_groups_are_fitted_and_measured():
    groups = np.repeat(np.arange(1500), 4)
    pate = PATEClassifier(
        LogisticRegression(),
        n_teachers=100,
        mechanism="gnmax",
        n_queries=30,
        epsilon=2.0,
        classes=[0, 1],
        privacy_unit="group",
    )
    public = PublicData(make_blobs(300, centers=2, cluster_std=6.0, random_state=0)[0])
    measured = fit_and_measure(pate, X, Y, X_public=public, groups=groups)
    spent = measured.privacy_spent
    assert (spent.unit, spent.relation) == ("group", "add-remove-or-change")
    assert 1.99 < spent.epsilon <= 2.01


# Cases in which both parts change, so that the larger cost would be wrong.


def test_an_added_row_moves_others_between_parts_by_position():
    before = hold_out_rows(1000, 0.25, 3)
    after = hold_out_rows(1001, 0.25, 3)  # the new row is the first
    moved = np.count_nonzero(before != after[1:])
    assert moved > 200


def test_one_permutation_of_groups_moves_others_between_parts():
    groups = np.arange(200)
    some = groups[groups != 17]
    parts = [
        {*np.random.RandomState(0).permutation(one)[: len(one) // 4]}
        for one in (groups, some)
    ]
    assert len((parts[0] ^ parts[1]) - {17}) > 20


def test_a_group_under_another_id_may_change_both_parts():
    parts = set()
    for new_id in range(1000, 1040):
        ids, of_row = group_ids(np.array([new_id, *range(40)]))
        fitted, _ = split_groups(ids, of_row, 0.5, 0, b"measured")
        parts.add(0 in fitted)
    assert parts == {True, False}


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (PrivateKNNClassifier(epsilon=5.0), "relation='add-remove'"),
        (DPLogisticRegression(method="gaussian", data_norm=40.0), "'add-remove'"),
        (LogisticRegression(), "cannot state its privacy cost"),
    ],
)
def test_what_is_not_proved_is_refused(estimator, message):
    with pytest.raises(ValueError, match=message):
        fit_and_measure(estimator, X, Y, X_public=PublicData(X[:100].copy())) if (
            isinstance(estimator, PrivateKNNClassifier)
        ) else fit_and_measure(estimator, X, Y)


def test_two_calls_add_up(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=5, delta=1e-5)
    model = LEARNER.fit(X[:4000], Y[:4000])
    for seed in (0, 1):
        private_metrics(
            model, X[4000:], Y[4000:], epsilon=1.0, ledger=ledger, random_state=seed
        )
    assert len(ledger.entries()) == 2
