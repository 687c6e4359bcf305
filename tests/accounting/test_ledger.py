"""PrivacyLedger: budget, entries, report and errors."""

import copy
import os
import pickle
import re
import sqlite3
from contextlib import closing
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from sklearn_pate import BudgetExceededError, LedgerError, PATEClassifier, PrivacyLedger
from sklearn_pate.accounting import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting.bounds import pure_dp_curve
from sklearn_pate.learners import DPLogisticRegression
from sklearn_pate.mechanisms import PermuteAndFlip
from tests.accounting.charges import WHAT, charge, curve
from tests.private import costs, largest_gdp_mu, total_costs


def test_an_entry_is_read_when_the_file_is_opened_again(path, ledger):
    assert ledger.spent == 0
    assert charge(ledger) == 1
    again = PrivacyLedger(path)
    assert (again.epsilon, again.delta) == (3, 1e-6)
    assert again.spent == ledger.spent > 0
    assert ledger.spent == pytest.approx(
        ledger.budget_fractions(curve(0.01))[0], rel=1e-12
    )
    (entry,) = again.entries()
    assert (entry.number, entry.description) == (1, "a test")
    assert entry.share == ledger.budget_fractions(curve(0.01))[0]
    assert entry.epsilon == curve(0.01).to_epsilon(1e-6)


def test_a_cost_that_exceeds_the_budget_is_refused(ledger):
    n_charged = 0
    while ledger.fits(curve(0.013)):
        charge(ledger, 0.013)
        n_charged += 1
    with pytest.raises(BudgetExceededError, match=r"take .*is left\.") as refused:
        charge(ledger, 0.013)
    fits = r"(\S+) times this cost would fit .* a release of epsilon=(\S+)\.$"
    n_times, epsilon = map(float, re.search(fits, str(refused.value)).groups())
    assert ledger.fits(curve(0.013) * n_times)
    assert not ledger.fits(curve(0.013) * (1.01 * n_times))
    assert epsilon == pytest.approx((curve(0.013) * n_times).to_epsilon(1e-6), rel=0.01)
    assert len(ledger.entries()) == n_charged
    total = curve(0.013) * n_charged
    assert total.to_epsilon(1e-6) <= 3 < (total + curve(0.013)).to_epsilon(1e-6)
    assert ledger.fits(curve(0.001))
    assert not ledger.fits(curve(0.013))


def test_an_infinite_cost_is_refused(ledger):
    infinite = RdpCurve(DEFAULT_ORDERS, np.full(DEFAULT_ORDERS.size, np.inf))
    with pytest.raises(BudgetExceededError, match="no finite cost, as with seeded"):
        ledger.charge(infinite, **WHAT)
    assert ledger.entries() == []


def test_the_first_entry_sets_unit_and_relation(ledger):
    charge(ledger, unit="group", relation="add-remove-or-change")
    with pytest.raises(ValueError, match="protects unit='group' with relation='add-"):
        charge(ledger)
    assert len(ledger.entries()) == 1
    assert "add or remove one group" in ledger.report()


@pytest.mark.parametrize("unit", ["row", "group", "person"])
def test_a_unit_that_leaves_the_relation_open_is_refused(ledger, unit):
    with pytest.raises(ValueError, match=f"unit='{unit}' needs a relation, got None"):
        charge(ledger, unit=unit, relation=None)
    assert ledger.entries() == []


def test_a_unit_with_one_relation_needs_no_relation_argument(ledger):
    charge(ledger, unit="party", relation=None)
    charge(ledger, unit="party", relation="replace-one")
    assert "change all votes of one party" in ledger.report()


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, pickle.dumps, "clone"])
def test_every_copy_is_the_same_ledger(ledger, how):
    pate = PATEClassifier(LogisticRegression(), ledger=ledger)
    if how == "clone":
        other = clone(clone(pate)).ledger
    elif how is pickle.dumps:
        other = pickle.loads(pickle.dumps(pate)).ledger
    else:
        other = how(ledger)
    charge(other)
    assert other == ledger
    assert ledger.spent == other.spent > 0


def test_a_copy_elsewhere_reads_no_file_until_it_is_used(path, ledger):
    kept = pickle.dumps(PATEClassifier(ledger=ledger))
    path.unlink()
    pate = pickle.loads(kept)
    assert "patients.sqlite" in repr(pate.ledger)
    with pytest.raises(LedgerError, match=r"there is no such file\. Restore it: a new"):
        charge(pate.ledger)
    assert not path.exists()


def test_a_relative_path_belongs_to_the_folder_it_was_created_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = PrivacyLedger("patients.sqlite", epsilon=3, delta=1e-6)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    charge(ledger)
    assert PrivacyLedger(tmp_path / "patients.sqlite").spent > 0


WRONG_LEDGERS = {
    "one half of a budget": (
        {"epsilon": 3},
        "epsilon=3 and delta=None together are one budget",
    ),
    "the other half": (
        {"delta": 1e-6},
        "epsilon=None and delta=1e-06 together are one budget",
    ),
    "no epsilon": ({"epsilon": 0, "delta": 1e-6}, "epsilon=0 must be a positive"),
    "infinite": ({"epsilon": np.inf, "delta": 1e-6}, "epsilon=inf must be a positive"),
    "negative": ({"epsilon": -1, "delta": 1e-6}, "epsilon=-1 must be a positive"),
    "no delta": ({"epsilon": 3, "delta": 0}, "delta=0 must be a number strictly"),
    "delta of one": ({"epsilon": 3, "delta": 1}, "delta=1 must be a number strictly"),
    "delta is text": ({"epsilon": 3, "delta": "1"}, "delta='1' must be a number"),
    "small order": ({"epsilon": 3, "delta": 1e-6, "orders": 1.5}, "use larger orders"),
    "tiny": ({"epsilon": 1e-6, "delta": 1e-6}, "or a larger epsilon"),
    "order of one": ({"epsilon": 3, "delta": 1e-6, "orders": [1, 9]}, "greater than 1"),
    "no order": ({"epsilon": 3, "delta": 1e-6, "orders": []}, "non-zero length"),
}


@pytest.mark.parametrize("case", WRONG_LEDGERS)
def test_a_wrong_budget_makes_no_file(path, case):
    parameters, message = WRONG_LEDGERS[case]
    with pytest.raises(ValueError, match=message):
        PrivacyLedger(path, **parameters)
    assert os.listdir(path.parent) == []


@pytest.mark.parametrize("wrong", [3, None, "", "a\0b"])
def test_a_path_that_is_no_file_is_refused(wrong):
    with pytest.raises(ValueError, match=r"path=.* must name a file, such as 'pat"):
        PrivacyLedger(wrong, epsilon=3, delta=1e-6)


def test_a_budget_cannot_be_changed_afterwards(path, ledger):
    PrivacyLedger(path, epsilon=3, delta=1e-6)
    with pytest.raises(
        ValueError, match=r"differ from the budget of .* fixed at 3.0 and"
    ):
        PrivacyLedger(path, epsilon=4, delta=1e-6)
    with pytest.raises(ValueError, match="differ from the budget of"):
        PrivacyLedger(path, epsilon=3, delta=1e-7)
    with pytest.raises(ValueError, match="differ from the Renyi orders of"):
        PrivacyLedger(path, epsilon=3, delta=1e-6, orders=[30])


def test_an_object_that_is_no_curve_is_refused(ledger):
    class Refund(RdpCurve):
        def __init__(self):
            self.__dict__.update(orders=DEFAULT_ORDERS, values=-DEFAULT_ORDERS)

    for wrong in (Refund(), SimpleNamespace(orders=[9], values=[-1]), 0.1):
        with pytest.raises(ValueError, match="is not an RdpCurve; pass the worst-case"):
            ledger.charge(wrong, **WHAT)
    assert ledger.entries() == []


def test_a_curve_that_ends_too_early_has_another_message_than_an_infinite_one(ledger):
    with pytest.raises(
        BudgetExceededError, match=r"The Renyi curve ends at order 4, but .*"
    ):
        ledger.charge(RdpCurve([2, 4], [0, 0]), **WHAT)


@pytest.mark.parametrize(
    "changes", [{"description": None}, {"unit": ["row"]}, {"dataset": 5}]
)
def test_names_of_an_entry_must_be_text(ledger, changes):
    with pytest.raises(ValueError, match="must be a str"):
        charge(ledger, **changes)


def test_numbers_of_other_types_and_repeated_orders_are_the_same_budget(path):
    for _ in range(2):
        ledger = PrivacyLedger(
            path, epsilon=Fraction(9), delta=1e-6, orders=[16, 32, 16]
        )
    assert ledger.filter.finite_orders == (16, 32)
    assert PrivacyLedger(path).filter == ledger.filter


def test_with_several_orders_the_fraction_left_is_exact(path):
    ledger = PrivacyLedger(path, epsilon=3, delta=1e-6, orders=[8, 64])
    steep = RdpCurve(DEFAULT_ORDERS, 2e-6 * DEFAULT_ORDERS**3)
    flat = RdpCurve(DEFAULT_ORDERS, np.full(DEFAULT_ORDERS.size, 0.3))
    ledger.charge(steep, **WHAT)
    ledger.charge(flat, **WHAT)
    for one in (steep, flat, curve(0.01)):
        share, left = ledger.budget_fractions(one)
        assert ledger.fits(one * (0.999 * left / share))
        assert not ledger.fits(one * (1.001 * left / share))


PURE_HALF = {
    "randomised response": pure_dp_curve(0.5),
    "the same at all orders": RdpCurve(
        DEFAULT_ORDERS, np.full(DEFAULT_ORDERS.size, 0.5), pure_epsilon=0.5
    ),
    "permute-and-flip": PermuteAndFlip(c=0.25).cost(1, 10).curve,
}


@pytest.mark.parametrize("case", PURE_HALF)
def test_pure_costs_take_no_more_than_the_sum_of_their_epsilons(ledger, case):
    for n_charged in range(6):
        assert ledger.spent == pytest.approx(n_charged / 6)
        assert ledger.budget_fractions(PURE_HALF[case])[0] == pytest.approx(1 / 6)
        ledger.charge(PURE_HALF[case], **WHAT)
    with pytest.raises(BudgetExceededError, match=r"take 16\.67% .* 0\.00% is left"):
        ledger.charge(PURE_HALF[case], **WHAT)
    assert [entry.share for entry in ledger.entries()] == pytest.approx([1 / 6] * 6)
    assert "epsilon=3.000 so far" in ledger.report()


def test_a_pure_fit_takes_no_more_than_its_epsilon_of_the_budget(ledger):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.integers(2, size=200)
    clf = DPLogisticRegression(epsilon=0.5, data_norm=3, ledger=ledger).fit(X, y)
    assert clf.privacy_spent_.delta == 0
    assert ledger.spent == pytest.approx(0.5 / 3)


def test_many_small_pure_costs_take_their_renyi_cost(ledger):
    small = pure_dp_curve(0.05) * 100
    assert ledger.budget_fractions(small)[0] < 0.8 < 5 / 3


def test_fractions_add_up_when_a_gaussian_cost_follows_pure_ones(ledger):
    ledger.charge(pure_dp_curve(0.5), **WHAT)
    ledger.charge(pure_dp_curve(0.1), **WHAT)
    ledger.charge(curve(0.01), **WHAT)
    shares = [entry.share for entry in ledger.entries()]
    assert sum(shares) == pytest.approx(ledger.spent)
    assert shares[0] > 0.5 / 3, (
        "the sum of pure epsilons is no bound with a Gaussian cost"
    )
    share, left = ledger.budget_fractions(pure_dp_curve(0.5))
    assert ledger.fits(pure_dp_curve(0.5) * 0.1)
    assert share == pytest.approx(shares[0])
    assert left == pytest.approx(1 - ledger.spent)


def test_a_cost_with_delta_is_not_admitted_beside_a_sum_of_pure_ones(ledger):
    for _ in range(5):
        ledger.charge(pure_dp_curve(0.5), **WHAT)
    with pytest.raises(BudgetExceededError, match=r"and 0\.00% is left"):
        ledger.charge(curve(0.001), **WHAT)
    ledger.charge(pure_dp_curve(0.5), **WHAT)


@pytest.mark.parametrize(
    ("unit", "relation"), [("row", "replace-one"), ("group", "add-remove-or-change")]
)
def test_a_cost_for_added_rows_is_refused_with_its_conversion(ledger, unit, relation):
    what = {"unit": unit, "relation": relation}
    charge(ledger, **what)
    with pytest.raises(
        ValueError, match=r"add_remove_to_replace_one\(spent\.curve\) is a proved"
    ):
        charge(ledger, unit=unit, relation="add-remove")
    charge(ledger, **what, rho=0.01)
    assert len(ledger.entries()) == 2


def test_a_cost_for_changed_rows_is_no_cost_for_added_ones(ledger):
    charge(ledger, relation="add-remove")
    with pytest.raises(ValueError, match="gives no bound"):
        charge(ledger, relation="replace-one")


def test_a_cost_for_changed_groups_holds_for_added_ones(ledger):
    charge(ledger, unit="group", relation="add-remove")
    message = r"'add-remove-or-change' includes 'add-remove', so that spent\.curve is a"
    with pytest.raises(ValueError, match=message):
        charge(ledger, unit="group", relation="add-remove-or-change")


def test_the_sum_in_the_file_is_that_of_all_entries(path):
    ledger = PrivacyLedger(path, epsilon=3, delta=1e-6, orders=[6.0, 40.0])
    rng = np.random.default_rng(0)
    for exponent in rng.uniform(-16, -3, size=30):
        charge(ledger, 10**exponent)
    with ledger.reading() as file:
        [totals] = total_costs(file)
        entries = costs(file)
    exact = [*zip(*entries, strict=True)][:-1]
    assert totals[:-1] == [sum(map(Fraction, of_order)) for of_order in exact]
    assert totals[-1] == np.inf  # the pure epsilon of Gaussian noise
    with sqlite3.connect(path) as file:
        file.execute("UPDATE limits SET spent = 'x'")
    file.close()
    with pytest.raises(LedgerError, match="sum of a ledger's costs is damaged"):
        charge(ledger)


def test_the_report_shows_guarantee_budget_and_entries(path, ledger):
    assert "nothing was charged yet" in ledger.report()
    charge(ledger, 0.01, description="first", dataset="wards")
    charge(ledger, 0.02, description="second", dataset="wards")
    report = str(ledger)
    text = " ".join(report.split())
    assert "(epsilon=3.0, delta=1e-06)-differentially private" in text
    assert "replace one row" in report
    spent, left = f"{ledger.spent:.2%}", f"{1 - ledger.spent:.2%}"
    assert f"{spent} of this budget is spent, in 2 entries, and {left} is left" in text
    estimate = (curve(0.01) + curve(0.02)).to_epsilon(1e-6)
    assert f"epsilon={estimate:.3f} so far" in report
    assert [line.split()[0] for line in report.splitlines()[-2:]] == ["1", "2"]
    assert report.splitlines()[-1].endswith("second")


def test_what_is_left_admits_a_gaussian_release_of_the_stated_epsilon(ledger):
    charge(ledger, 0.03)
    (epsilon,) = re.findall(r"noise of epsilon=(\S+)", " ".join(str(ledger).split()))
    mu = largest_gdp_mu(float(epsilon), ledger.delta)
    assert ledger.fits(curve(mu**2 / 2))
    assert not ledger.fits(curve(1.02 * mu**2 / 2))


CONTROLS = ["\n", "\x1b[2J", "\r", "\x00", "\u2028", "\u202e", "\ud800"]


@pytest.mark.parametrize("control", CONTROLS, ids=ascii)
@pytest.mark.parametrize("name", ["description", "dataset", "fit"])
def test_a_text_that_could_forge_a_line_is_not_recorded(ledger, name, control):
    with pytest.raises(ValueError, match=rf"{name}=.* the control character U\+"):
        charge(ledger, **{name: f"a{control}2  2026-01-01 00:00:00  0.00%"})
    assert ledger.entries() == []


@pytest.mark.parametrize("text", ["é", "中", "می‌خواهم", "😀"])
def test_a_text_may_be_of_any_language(ledger, text):
    charge(ledger, description=text, dataset=text)
    assert ledger.spent > 0


@pytest.mark.parametrize("column", ["time", "who", "dataset", "fit", "description"])
def test_texts_of_a_file_from_elsewhere_are_shown_printable(path, ledger, column):
    charge(ledger)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(f"UPDATE charges SET {column} = ?", ("\n\u202e".join("ab"),))
        file.execute("UPDATE budget SET created = ?", ("2026\x1b[2J",))
    (entry,) = ledger.entries()
    assert getattr(entry, column) == r"a\u{a}\u{202e}b"
    report = ledger.report()
    assert report.replace("\n", "").isprintable()


def test_a_name_of_a_user_is_recorded_printable(ledger, monkeypatch):
    monkeypatch.setenv("LOGNAME", "eve\n2  2026-01-01")
    charge(ledger)
    (entry,) = ledger.entries()
    assert entry.who.startswith(r"eve\u{a}2")


def test_entries_make_a_table(ledger):
    pandas = pytest.importorskip("pandas")
    charge(ledger)
    table = pandas.DataFrame(ledger.entries())
    assert table.loc[0, "share"] == pytest.approx(ledger.spent, rel=1e-12)
