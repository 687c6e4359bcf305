"""Releases of other libraries: the real packages, closed forms, and refusals."""

import sys

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
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
def test_a_curve_becomes_an_accountant_and_a_curve_again(relation, name):
    curve = GNMax(40).cost(100, 10).curve
    accountant = curve.to_dp_accounting(relation)
    assert accountant.neighboring_relation.name == name
    assert accountant.get_epsilon(DELTA) == pytest.approx(curve.to_epsilon(DELTA))
    back = OtherRelease.from_dp_accounting(accountant)
    resolved = curve.orders <= 1024
    assert np.array_equal(back.curve.orders, curve.orders[resolved])
    assert np.array_equal(back.curve.values, curve.values[resolved])
    assert back.relation == ("replace-one" if name == "REPLACE_ONE" else "add-remove")


def test_a_statement_becomes_an_accountant_with_its_relation():
    X, y = np.eye(2)[[0, 1] * 20], [0, 1] * 20
    learner = DPLogisticRegression(epsilon=1, feature_bounds=(0, 1), classes=[0, 1])
    spent = learner.plan_privacy(X, y)
    accountant = spent.to_dp_accounting()
    assert accountant.neighboring_relation.name == "REPLACE_ONE"
    assert accountant.get_epsilon(DELTA) == pytest.approx(1, rel=0.02)


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
    with pytest.raises(ValueError, match="relation=None is none of an event"):
        OtherRelease.from_dp_accounting(event)


@pytest.mark.slow
def test_an_event_of_samples_is_composed_without_a_line_per_order(caplog):
    step = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.1))
    with caplog.at_level("WARNING"):
        release = OtherRelease.from_dp_accounting(step, relation="add-remove")
    assert not caplog.records
    accountant = RdpAccountant().compose(step)
    assert release.curve.to_epsilon(DELTA) == pytest.approx(
        accountant.get_epsilon(DELTA), rel=0.01
    )


def test_a_loss_distribution_gives_a_profile_and_the_curve_of_its_events():
    accountant = PLDAccountant()
    accountant.compose(dp_accounting.GaussianDpEvent(5.0))
    release = OtherRelease.from_dp_accounting(accountant)
    np.testing.assert_allclose(release.curve.values, DEFAULT_ORDERS / 50, rtol=1e-9)
    assert release.profile.epsilon_at(DELTA) == pytest.approx(
        accountant.get_epsilon(DELTA), rel=0.01
    )
    for epsilon in (0.0, 0.3, 0.777):
        exact = accountant.get_delta(epsilon)
        assert release.profile.delta_at(epsilon) >= exact * (1 - 1e-9)


def test_a_loss_distribution_without_a_curve_is_charged_by_one_pair(ledger):
    accountant = PLDAccountant()
    accountant.compose(dp_accounting.dp_event.DiscreteLaplaceDpEvent(0.2, 1), 3)
    accountant.compose(dp_accounting.GaussianDpEvent(20.0))
    release = OtherRelease.from_dp_accounting(accountant)
    assert not np.any(np.isfinite(release.curve.values))
    release.charge(ledger)
    assert 0 < ledger.spent < 0.5
    OtherRelease.from_zcdp(0.001, relation="add-remove").charge(ledger)
    assert ledger.spent < 0.5
    with pytest.raises(BudgetExceededError, match="as the first entry alone"):
        release.charge(ledger)


def test_a_pair_above_the_delta_of_the_budget_is_refused(ledger):
    release = OtherRelease.from_approximate(0.1, 2e-6, relation="add-remove")
    with pytest.raises(BudgetExceededError, match="Its delta of 2e-06 is above that"):
        release.charge(ledger)


def test_an_accountant_of_a_special_record_is_refused():
    special = RdpAccountant(
        neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_SPECIAL
    )
    with pytest.raises(ValueError, match="counts for REPLACE_SPECIAL"):
        OtherRelease.from_dp_accounting(special)
    with pytest.raises(ValueError, match="counts for ADD_OR_REMOVE_ONE, and relation="):
        OtherRelease.from_dp_accounting(RdpAccountant(), relation="replace-one")


@pytest.mark.parametrize("wrong", [None, 1.0, "rdp"])
def test_other_objects_are_refused(wrong):
    with pytest.raises(TypeError, match="RdpAccountant, a PLDAccountant or a DpEvent"):
        OtherRelease.from_dp_accounting(wrong)
    with pytest.raises(TypeError, match="has no history of steps"):
        OtherRelease.from_opacus(wrong)


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


# OpenDP


@pytest.fixture
def opendp():
    package = pytest.importorskip("opendp.prelude")
    package.enable_features("contrib", "honest-but-curious")
    return package


def noisy_sum(dp, noise, size=None, distance="symmetric_distance"):
    domain = dp.vector_domain(dp.atom_domain(bounds=(0, 1), T=int), size=size)
    return (domain, getattr(dp, distance)()) >> dp.t.then_sum() >> noise


def test_laplace_noise_of_opendp_is_pure(opendp):
    measurement = noisy_sum(opendp, opendp.m.then_laplace(scale=2.0))
    release = OtherRelease.from_opendp(measurement)
    assert (release.relation, release.curve.pure_epsilon) == ("add-remove", 0.5)
    three = OtherRelease.from_opendp(measurement, n_rows=3, unit="group")
    assert three.curve.pure_epsilon == measurement.map(3)


def test_gaussian_noise_of_opendp_is_zero_concentrated(opendp):
    measurement = noisy_sum(opendp, opendp.m.then_gaussian(scale=2.0))
    release = OtherRelease.from_opendp(measurement)
    np.testing.assert_allclose(
        release.curve.values, measurement.map(1) * DEFAULT_ORDERS, rtol=1e-12
    )


def test_a_domain_of_a_fixed_size_has_only_replaced_rows(opendp):
    """At distance 1, where there is no neighbour, OpenDP's map is 0."""
    measurement = noisy_sum(opendp, opendp.m.then_laplace(scale=2.0), size=100)
    assert measurement.map(1) == 0
    release = OtherRelease.from_opendp(measurement)
    assert (release.relation, release.curve.pure_epsilon) == ("replace-one", 0.5)


@pytest.mark.parametrize("n_rows", [1, 2, 3, 4])
def test_several_rows_of_a_domain_of_a_fixed_size_are_replaced(opendp, n_rows):
    """Three removed rows would be counted as one changed row."""
    measurement = noisy_sum(opendp, opendp.m.then_laplace(scale=2.0), size=100)
    release = OtherRelease.from_opendp(measurement, n_rows=n_rows)
    assert release.relation == "replace-one"
    assert release.curve.pure_epsilon == measurement.map(2 * n_rows) == n_rows / 2


def test_a_composition_for_distances_without_neighbours_is_refused(opendp):
    """Its parts may release the exact sum, whose map is 0 at distance 1."""
    domain = opendp.vector_domain(opendp.atom_domain(T=int), size=100)
    composition = opendp.c.make_adaptive_composition(
        domain, opendp.symmetric_distance(), opendp.max_divergence(), 1, [0.5, 0.5]
    )
    assert composition.map(1) == 1
    with pytest.raises(ValueError, match="make it with d_in=2 or more"):
        OtherRelease.from_opendp(composition)


def test_distances_of_changed_rows_are_for_replaced_ones(opendp):
    domain = opendp.vector_domain(opendp.atom_domain(bounds=(0, 1), T=int), size=100)
    for distance in ("change_one_distance", "insert_delete_distance"):
        rows = domain, getattr(opendp, distance)()
        to_sets = {
            "change_one_distance": opendp.t.then_metric_unbounded,
            "insert_delete_distance": opendp.t.then_unordered,
        }[distance]
        measurement = (
            rows >> to_sets() >> opendp.t.then_sum() >> opendp.m.then_laplace(2.0)
        )
        release = OtherRelease.from_opendp(measurement)
        assert (release.relation, release.curve.pure_epsilon) == ("replace-one", 0.5)


def test_a_group_needs_its_number_of_rows(opendp):
    measurement = noisy_sum(opendp, opendp.m.then_laplace(scale=2.0))
    with pytest.raises(ValueError, match="n_rows=None with unit='group'"):
        OtherRelease.from_opendp(measurement, unit="group")
    for wrong in (0, -1, 1.5):
        with pytest.raises(ValueError, match=f"n_rows={wrong} with unit='row'"):
            OtherRelease.from_opendp(measurement, n_rows=wrong)
    fixed = noisy_sum(opendp, opendp.m.then_laplace(scale=2.0), size=100)
    with pytest.raises(ValueError, match="unit='group' with relation='replace-one'"):
        OtherRelease.from_opendp(fixed, n_rows=2, unit="group")


def test_a_pair_of_opendp_enters_an_empty_ledger(opendp, ledger):
    gaussian = noisy_sum(opendp, opendp.m.then_gaussian(scale=5.0))
    pair = opendp.c.make_fix_delta(opendp.c.make_zCDP_to_approxDP(gaussian), 1e-7)
    release = OtherRelease.from_opendp(pair)
    epsilon, delta = pair.map(1)
    assert release.profile.delta_at(epsilon) == delta
    release.charge(ledger)
    OtherRelease.from_pure(0.01, relation="add-remove").charge(ledger)
    assert ledger.spent == pytest.approx((epsilon + 0.01) / 3)
    with pytest.raises(BudgetExceededError, match="as the first entry alone"):
        release.charge(ledger)


def test_measurements_of_numbers_or_of_other_costs_are_refused(opendp):
    alone = opendp.m.make_laplace(
        opendp.atom_domain(T=float, nan=False),
        opendp.absolute_distance(T=float),
        scale=1.0,
    )
    with pytest.raises(ValueError, match="input distance AbsoluteDistance"):
        OtherRelease.from_opendp(alone)
    gaussian = noisy_sum(opendp, opendp.m.then_gaussian(scale=5.0))
    smoothed = opendp.c.make_zCDP_to_approxDP(gaussian)
    with pytest.raises(ValueError, match="cost in SmoothedMaxDivergence"):
        OtherRelease.from_opendp(smoothed)
    with pytest.raises(TypeError, match=r"measurement=1\.0 must be a Measurement"):
        OtherRelease.from_opendp(1.0)


def test_the_domain_of_a_data_frame_is_refused(opendp):
    """Its margins may declare the number of rows as public."""
    count = opendp.user_domain("frames", lambda _: True)
    release = opendp.m.make_user_measurement(
        count,
        opendp.symmetric_distance(),
        opendp.max_divergence(),
        lambda _: 0,
        lambda d_in: float(d_in),
    )
    with pytest.raises(ValueError, match="in which more than the rows may be public"):
        OtherRelease.from_opendp(release)


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
    with pytest.raises(ValueError, match="'replace-one' bounds none for 'add-remove'"):
        release.to_relation("add-remove")
    release.charge(ledger)
    with pytest.raises(ValueError, match="such costs do not add up"):
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
        OtherRelease.from_dp_accounting(object())


def test_a_release_without_a_profile_is_charged_by_its_curve(ledger):
    release = OtherRelease.from_zcdp(0.01, relation="replace-one")
    assert release.profile is None
    release.charge(ledger)
    assert ledger.entries()[0].epsilon == pytest.approx(release.curve.to_epsilon(DELTA))
    assert isinstance(
        OtherRelease.from_approximate(1, 1e-9, relation="add-remove").profile,
        PrivacyProfile,
    )


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["ADD_OR_REMOVE_ONE", "REPLACE_ONE"])
@pytest.mark.parametrize(
    "event",
    [
        dp_accounting.GaussianDpEvent(1.0),
        dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(5.0), 4),
        dp_accounting.LaplaceDpEvent(2.0),
    ],
)
def test_no_cost_of_a_loss_distribution_is_below_its_own(event, relation):
    relation = dp_accounting.NeighboringRelation[relation]
    accountant = PLDAccountant(relation)
    if not accountant.supports(event):
        pytest.skip("dp-accounting has no cost for it")
    accountant.compose(event)
    release = OtherRelease.from_dp_accounting(accountant)
    for delta in (1e-3, 1e-5, 1e-7):
        least = accountant.get_epsilon(delta) * (1 - 1e-3)
        assert release.curve.quiet_epsilon(delta) >= least
        assert release.profile.epsilon_at(delta) >= least
