"""Networks that Opacus trained, in one account with answers."""

import dp_accounting
import numpy as np
import pytest

from sklearn_pate import PrivacyLedger
from sklearn_pate.accounting import DEFAULT_ORDERS, OtherRelease, RdpCurve
from sklearn_pate.mechanisms import GNMax

pytest.importorskip("opacus")
from opacus.accountants import GaussianAccountant, PRVAccountant, RDPAccountant
from opacus.accountants.analysis import rdp as opacus_rdp

DELTA = 1e-5
# Where sampled Gaussian noise has a closed form.
WHOLE = DEFAULT_ORDERS[np.isin(DEFAULT_ORDERS, 1 + 2.0 ** np.arange(7))]
STEPS = {"noise_multiplier": 1.1, "sample_rate": 0.01}


def trained(kind=RDPAccountant, n_steps=40):
    accountant = kind()
    for _ in range(n_steps):
        accountant.step(**STEPS)
    return accountant


def test_one_account_over_a_network_and_answers_is_the_same_in_three_libraries():
    answers = GNMax(40).cost(100, 10, orders=WHOLE).curve
    theirs = answers.to_dp_accounting("add-remove-or-change")
    step = dp_accounting.PoissonSampledDpEvent(
        STEPS["sample_rate"], dp_accounting.GaussianDpEvent(STEPS["noise_multiplier"])
    )
    theirs.compose(step, 40)
    network = OtherRelease.from_opacus(trained()).curve
    network = RdpCurve(WHOLE, network.values[np.isin(DEFAULT_ORDERS, WHOLE)])
    ours = answers + network
    by_hand = answers.values + opacus_rdp.compute_rdp(
        q=STEPS["sample_rate"],
        noise_multiplier=STEPS["noise_multiplier"],
        steps=40,
        orders=WHOLE,
    )
    of_opacus, _ = opacus_rdp.get_privacy_spent(orders=WHOLE, rdp=by_hand, delta=DELTA)
    epsilon = ours.quiet_epsilon(DELTA)
    assert theirs.get_epsilon(DELTA) == pytest.approx(epsilon, rel=1e-9)
    assert of_opacus == pytest.approx(epsilon, rel=1e-9)
    np.testing.assert_allclose(ours.values, theirs.rdp, rtol=1e-9)
    np.testing.assert_allclose(ours.values, by_hand, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:GDP accounting is experimental")
@pytest.mark.parametrize("kind", [RDPAccountant, PRVAccountant, GaussianAccountant])
def test_every_accountant_of_opacus_is_counted_by_its_steps(kind):
    release = OtherRelease.from_opacus(trained(kind))
    exact = OtherRelease.from_opacus(trained())
    assert release.curve == exact.curve
    assert release.relation == "add-remove"
    # Its own figure rounds orders, or the law of the loss, in another way.
    assert release.curve.to_epsilon(DELTA) > 0.9 * trained().get_epsilon(DELTA)


def test_steps_of_two_kinds_add_up():
    accountant = trained(n_steps=3)
    accountant.step(noise_multiplier=2.0, sample_rate=0.1)
    one = RDPAccountant()
    one.step(noise_multiplier=2.0, sample_rate=0.1)
    both = OtherRelease.from_opacus(accountant).curve
    apart = (OtherRelease.from_opacus(each).curve for each in (trained(n_steps=3), one))
    assert both == sum(apart, start=RdpCurve(DEFAULT_ORDERS, 0 * DEFAULT_ORDERS, 0.0))


def test_releases_of_several_libraries_add_up_in_a_ledger(tmp_path):
    ledger = PrivacyLedger(tmp_path / "patients.sqlite", epsilon=3, delta=1e-6)
    quiet = RDPAccountant()
    quiet.step(noise_multiplier=8.0, sample_rate=0.01)
    releases = [
        OtherRelease.from_opacus(quiet).to_relation("replace-one"),
        OtherRelease.from_pure(0.05, relation="replace-one"),
        OtherRelease.from_zcdp(0.001, relation="replace-one"),
    ]
    for release in releases:
        release.charge(ledger, dataset="patients", fit=release.description)
    entries = ledger.entries()
    assert [entry.description for entry in entries] == [
        release.description for release in releases
    ]
    assert 0 < ledger.spent < 1


def test_an_accountant_before_the_training_is_refused():
    with pytest.raises(ValueError, match="empty history"):
        OtherRelease.from_opacus(RDPAccountant())
