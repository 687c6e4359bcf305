"""Releases of other libraries: the real packages, closed forms, and refusals."""

import sys

import dp_accounting
import numpy as np
import pytest
from dp_accounting.rdp import RdpAccountant

from sklearn_pate import PrivacyLedger
from sklearn_pate.accounting import (
    DEFAULT_ORDERS,
    OtherRelease,
    PrivacyProfile,
)
from sklearn_pate.exceptions import BudgetExceededError
from sklearn_pate.learners import DPLogisticRegression
from sklearn_pate.mechanisms import GNMax

DELTA = 1e-5


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "patients.sqlite", epsilon=3, delta=1e-6)


# Accountants of dp-accounting


@pytest.mark.slow
@pytest.mark.parametrize(
    ("relation", "name"),
    [
        ("add-remove", "ADD_OR_REMOVE_ONE"),
        ("add-remove-or-change", "ADD_OR_REMOVE_ONE"),
        ("replace-one", "REPLACE_ONE"),
    ],
)
def test_a_curve_becomes_an_accountant(relation, name):
    curve = GNMax(40).cost(100, 10).curve
    accountant = curve.to_dp_accounting(relation)
    assert accountant.neighboring_relation.name == name
    assert accountant.get_epsilon(DELTA) == pytest.approx(curve.to_epsilon(DELTA))
    orders, values = np.asarray(accountant.orders), np.asarray(accountant.rdp)
    resolved = curve.orders <= 1024
    assert np.array_equal(orders[orders > 1], curve.orders[resolved])
    assert np.array_equal(values[orders > 1], curve.values[resolved])


def test_a_statement_becomes_an_accountant_with_its_relation():
    X, y = np.eye(2)[[0, 1] * 20], [0, 1] * 20
    learner = DPLogisticRegression(epsilon=1, feature_bounds=(0, 1), classes=[0, 1])
    spent = learner.plan_privacy(X, y)
    accountant = spent.to_dp_accounting()
    assert accountant.neighboring_relation.name == "REPLACE_ONE"
    assert accountant.get_epsilon(DELTA) == pytest.approx(1, rel=0.02)


@pytest.mark.slow
def test_an_accountant_for_replaced_rows_refuses_a_sample_of_rows():
    accountant = GNMax(40).cost(100, 10).curve.to_dp_accounting("replace-one")
    step = dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.GaussianDpEvent(1.0))
    with pytest.raises(dp_accounting.UnsupportedEventError):
        accountant.compose(step)


def test_a_version_that_would_forget_the_cost_is_refused(monkeypatch):
    monkeypatch.setattr(RdpAccountant, "rdp", property(lambda self: 0 * self.orders))
    with pytest.raises(RuntimeError, match="would count it as 0"):
        GNMax(40).cost(1, 2).curve.to_dp_accounting("replace-one")


def test_seeded_noise_stays_without_a_guarantee():
    curve = GNMax(40).cost(1, 2).curve.unbounded()
    assert curve.to_dp_accounting("replace-one").get_epsilon(DELTA) == np.inf


# Constructors


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0])
def test_a_pure_guarantee_has_the_divergence_of_randomised_response(epsilon):
    release = OtherRelease.from_pure(epsilon, relation="replace-one")
    p = 1 / (1 + np.exp(-epsilon))
    for order in (2.0, 5.0):
        at = int(np.flatnonzero(np.isclose(DEFAULT_ORDERS, order))[0])
        exact = np.log(
            p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)
        ) / (order - 1)
        assert release.curve.values[at] == pytest.approx(exact, rel=1e-9)
    assert release.curve.pure_epsilon == epsilon


def test_a_zero_concentrated_guarantee_has_a_straight_curve():
    release = OtherRelease.from_zcdp(0.02, relation="replace-one")
    accountant = RdpAccountant(DEFAULT_ORDERS)
    accountant.compose(dp_accounting.ZCDpEvent(0.02))
    np.testing.assert_allclose(release.curve.values, accountant.rdp, rtol=1e-12)


def test_an_event_is_composed_at_our_orders():
    event = dp_accounting.GaussianDpEvent(5.0)
    release = OtherRelease.from_dp_accounting(event, relation="add-remove")
    np.testing.assert_allclose(release.curve.values, DEFAULT_ORDERS / 50, rtol=1e-9)
    with pytest.raises(ValueError, match="relation='swap' does not apply to an event"):
        OtherRelease.from_dp_accounting(event, relation="swap")


@pytest.mark.thorough
def test_an_event_of_samples_is_composed_without_a_line_per_order(caplog):
    step = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.1))
    with caplog.at_level("WARNING"):
        release = OtherRelease.from_dp_accounting(step, relation="add-remove")
    assert not caplog.records
    accountant = RdpAccountant().compose(step)
    assert release.curve.to_epsilon(DELTA) == pytest.approx(
        accountant.get_epsilon(DELTA), rel=0.01
    )


def test_a_ledger_of_dp_accounting_is_an_event():
    accountant = RdpAccountant().compose(dp_accounting.GaussianDpEvent(5.0), 3)
    release = OtherRelease.from_dp_accounting(accountant.ledger, relation="add-remove")
    np.testing.assert_allclose(release.curve.values, 3 * DEFAULT_ORDERS / 50, rtol=1e-9)


def test_a_pair_enters_an_empty_ledger(ledger):
    pair = OtherRelease.from_approximate(0.5, 1e-7, relation="add-remove")
    pair.charge(ledger)
    OtherRelease.from_pure(0.01, relation="add-remove").charge(ledger)
    assert ledger.spent == pytest.approx(0.51 / 3)
    with pytest.raises(BudgetExceededError, match="may only be the first entry"):
        pair.charge(ledger)


def test_a_pair_above_the_delta_of_the_budget_is_refused(ledger):
    release = OtherRelease.from_approximate(0.1, 2e-6, relation="add-remove")
    with pytest.raises(
        BudgetExceededError, match="The release has delta=2e-06, which is above"
    ):
        release.charge(ledger)


@pytest.mark.parametrize("wrong", [None, 1.0, RdpAccountant()])
def test_other_objects_are_refused(wrong):
    with pytest.raises(TypeError, match=r"DpEvent .*pass accountant\.ledger"):
        OtherRelease.from_dp_accounting(wrong, relation="add-remove")


@pytest.mark.parametrize("epsilon", [0, -1.0, np.inf, "1"])
def test_an_epsilon_out_of_range_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon="):
        OtherRelease.from_pure(epsilon, relation="add-remove")
    with pytest.raises(ValueError, match="epsilon="):
        OtherRelease.from_approximate(epsilon, 1e-6, relation="add-remove")


def test_a_unit_has_only_its_own_relations():
    with pytest.raises(ValueError, match="unit='group' with relation='replace-one'"):
        OtherRelease.from_pure(0.1, unit="group", relation="replace-one")
    with pytest.raises(ValueError, match="rho=0 must be"):
        OtherRelease.from_zcdp(0, relation="add-remove")


# Relations and ledgers


def test_a_removed_and_an_added_row_are_a_replaced_one():
    for one, two in (
        (OtherRelease.from_pure(0.1, relation="add-remove"), 0.2),
        (OtherRelease.from_zcdp(0.02, relation="add-remove"), None),
    ):
        replaced = one.to_relation("replace-one")
        assert replaced.relation == "replace-one"
        if two:
            assert replaced.curve.pure_epsilon == two
        else:
            exact = 4 * 0.02 * DEFAULT_ORDERS
            resolved = DEFAULT_ORDERS < 1000
            np.testing.assert_allclose(
                replaced.curve.values[resolved], exact[resolved], rtol=0.02
            )
            assert np.all(replaced.curve.values >= exact * (1 - 1e-9))


def test_a_pair_is_converted_as_a_change_of_two_units():
    one = OtherRelease.from_approximate(0.5, 1e-7, relation="add-remove")
    two = one.to_relation("replace-one")
    assert two.profile.epsilon_at((1 + np.exp(0.5)) * 1e-7) <= 1.0
    assert two.profile == one.profile.of_units(2)


def test_groups_may_be_changed_where_they_may_be_removed():
    one = OtherRelease.from_pure(0.1, unit="group", relation="add-remove")
    assert one.to_relation("add-remove-or-change").curve.pure_epsilon == 0.2
    wide = OtherRelease.from_pure(0.1, unit="group", relation="add-remove-or-change")
    assert wide.to_relation("add-remove").curve == wide.curve
    assert one.to_relation("add-remove") is one


def test_a_replaced_row_says_nothing_about_a_removed_one(ledger):
    release = OtherRelease.from_pure(0.1, relation="replace-one")
    with pytest.raises(
        ValueError, match="'replace-one' gives no bound for 'add-remove'"
    ):
        release.to_relation("add-remove")
    release.charge(ledger)
    with pytest.raises(ValueError, match="Such costs do not add up"):
        OtherRelease.from_pure(0.1, relation="add-remove").charge(ledger)
    assert len(ledger.entries()) == 1


def test_the_relation_of_a_curve_is_checked():
    with pytest.raises(ValueError, match="relation='swap' is unknown"):
        GNMax(40).cost(1, 2).curve.to_dp_accounting("swap")


def test_packages_that_are_missing_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting.rdp", None)
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(ImportError, match="pip install dp-accounting"):
        GNMax(40).cost(1, 2).curve.to_dp_accounting("replace-one")
    with pytest.raises(ImportError, match="pip install dp-accounting"):
        OtherRelease.from_dp_accounting(object(), relation="add-remove")


def test_a_release_without_a_profile_is_charged_by_its_curve(ledger):
    release = OtherRelease.from_zcdp(0.01, relation="replace-one")
    assert release.profile is None
    release.charge(ledger)
    assert ledger.entries()[0].epsilon == pytest.approx(release.curve.to_epsilon(DELTA))
    assert isinstance(
        OtherRelease.from_approximate(1, 1e-9, relation="add-remove").profile,
        PrivacyProfile,
    )
