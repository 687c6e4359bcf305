"""Content of a privacy report: correct, complete, and without private values."""

import json
import os
import pickle
import stat
import struct
from dataclasses import asdict, replace

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_pate import PATEClassifier, PrivacyLedger, PublicData
from sklearn_pate.accounting import PrivacyProfile, compose_profiles
from sklearn_pate.mechanisms import GNMax
from tests.inspection.report.reported import (
    CANARY,
    LOOSE,
    QUALITY,
    Stated,
    every_format,
    linear,
    pate,
    report_on,
    rows,
    seeded,
)
from tests.private import KINDS, NEIGHBOURS, QUALITY_ROWS_PUBLIC, sources_of


@pytest.fixture
def ledger(tmp_path):
    folder = tmp_path / CANARY
    folder.mkdir()
    return PrivacyLedger(
        folder / "patients.sqlite",
        epsilon=8,
        delta=1e-5,
        key_file=folder / f"{CANARY}.secret",
    )


def charged(ledger, spent):
    ledger.charge(
        spent.curve,
        delta=1e-5,
        unit=spent.unit,
        relation=spent.relation,
        description="40 queries",
        dataset="d" * 64,
        fit="f" * 64,
    )
    return ledger


# Guarantee.


def test_its_facts_are_those_of_the_statement():
    clf = pate()
    facts, spent = report_on(clf).to_dict(), clf.privacy_spent_
    assert facts["private"] is True
    assert facts["internal"] is False
    assert facts["epsilon"] == spent.epsilon
    assert facts["statement"] == spent.in_one_line()
    for name in (
        *("delta", "unit", "relation", "release", "neighbours", "mechanism"),
        *("n_teachers", "n_queries"),
    ):
        assert facts[name] == getattr(spent, name)
    assert facts["assumptions"] == [asdict(one) for one in spent.assumptions]


def test_bounds_on_attackers_follow_from_the_whole_profile():
    clf = pate()
    promise, spent = report_on(clf).to_dict()["promise"], clf.privacy_spent_
    right = promise["guesses"]["right_at_most"]
    assert right == np.ceil(1000 * spent.attack_accuracy())
    for line in promise["detections"]:
        most = spent.detection_rate(line["false_alarms"] / 1000)
        assert line["detected_at_most"] == np.ceil(1000 * most)
    for line in promise["several"]:
        of_units = spent.profile.of_units(line["units"])
        most = of_units.attack_accuracy()
        assert line["guesses"]["right_at_most"] == np.ceil(1000 * most)
        total = line["units"] * spent.epsilon
        assert total <= line["epsilon"] < total + 1e-3
        exact = of_units.delta_at(total)
        assert exact * (1 - 1e-9) <= line["delta"] < 1.1 * exact


def test_they_are_below_those_of_one_pair_of_epsilon_and_delta():
    clf = pate()
    promise, (epsilon, delta) = report_on(clf).to_dict()["promise"], clf.privacy_spent_
    of_pair = PrivacyProfile([0, epsilon], [np.tanh(epsilon / 2) + delta, delta])
    for line in promise["several"]:
        right = 1000 * of_pair.of_units(line["units"]).attack_accuracy()
        assert line["guesses"]["right_at_most"] <= np.ceil(right)
    assert promise["guesses"]["right_at_most"] < 1000 * of_pair.attack_accuracy()
    for line in promise["detections"]:
        most = of_pair.detection_rate(line["false_alarms"] / 1000)
        assert line["detected_at_most"] < 1000 * most


def test_a_pure_statement_is_bounded_like_randomised_response():
    clf = Stated(epsilon=1.0, delta=0.0, curve=LOOSE)
    promise = report_on(clf).to_dict()["promise"]
    assert promise["guesses"]["right_at_most"] == np.ceil(1000 * np.e / (1 + np.e))
    several = {one["units"]: one for one in promise["several"]}
    assert several[3]["epsilon"] == 3
    assert several[3]["delta"] == 0
    # Three steps of the most that randomised response moves a probability.
    first = np.linspace(0, 1, 100_001)
    moved = first
    for _ in range(3):
        moved = np.minimum(np.e * moved, 1 - (1 - moved) / np.e)
    right = 1000 * (1 + np.max(moved - first)) / 2
    assert several[3]["guesses"]["right_at_most"] == np.ceil(right)


@pytest.mark.slow
def test_the_figures_of_two_classes_at_epsilon_one():
    mechanism = GNMax().prepared(
        n_teachers=250, n_queries=100, n_classes=2, epsilon=1.0, delta=1e-5
    )
    epsilon = mechanism.cost(100, 2).epsilon(1e-5)
    profile = mechanism.cost(100, 2).profile.thinned(epsilon, 1e-5)
    curve = mechanism.cost(100, 2).curve
    stated = {"epsilon": epsilon, "curve": curve, "profile": profile}
    text = report_on(Stated(**stated)).to_markdown()
    assert "With this model, at most 554 times." in text
    assert "| 100 | 156 |" in text


def test_epsilon_is_never_shown_below_its_value():
    shown = report_on(Stated(epsilon=1.2341, delta=0.0))
    assert "epsilon=1.235" in shown.to_markdown()
    assert "epsilon=1.234" not in shown.to_markdown()
    assert repr(shown) == "PrivacyReport('Privacy report', epsilon=1.235, delta=0.0)"


@pytest.mark.parametrize(("unit", "relation"), NEIGHBOURS)
def test_every_unit_is_explained_with_its_neighbours_verbatim(unit, relation):
    text = report_on(Stated(unit=unit, relation=relation)).to_markdown()
    assert NEIGHBOURS[unit, relation] in text
    assert f"one {unit}" in text
    has_two_changes = "These data sets are two changes apart" in text
    assert has_two_changes == (relation == "add-remove")


@pytest.mark.parametrize(
    ("release", "unit", "relation", "kind"),
    [
        ("answers", "row", "replace-one", "teachers"),
        ("answers", "group", "add-remove-or-change", "teachers"),
        ("answers", "party", "replace-one", "parties"),
        ("answers", "group", "add-remove", "neighbours"),
        ("sum", "party", "replace-one", "sums"),
        ("model", "row", "add-remove", "learner"),
        ("search", "group", "add-remove-or-change", "search"),
    ],
)
def test_the_kind_of_a_fit_is_read_from_fields(release, unit, relation, kind):
    stated = {"release": release, "unit": unit, "relation": relation}
    clf = Stated(**stated, n_teachers=20, n_queries=40, mechanism="NoisySum(")
    assert report_on(clf).to_dict()["kind"] == kind


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 8.0, 30.0])
def test_a_bound_under_which_nearly_all_guesses_are_right_is_called_weak(epsilon):
    report = report_on(Stated(epsilon=epsilon, delta=0.0, curve=LOOSE))
    weak = np.exp(epsilon) / (1 + np.exp(epsilon)) > 0.99
    assert report.to_dict()["promise"]["weak"] == weak
    assert ("This guarantee is weak" in report.to_markdown()) == weak


def test_a_seeded_fit_has_no_guarantee_in_any_format():
    report = report_on(seeded(1234567891))
    facts = json.loads(report.to_json())
    assert facts["private"] is False
    assert facts["epsilon"] is None
    assert facts["promise"] is facts["costs"] is None
    for text in every_format(report).values():
        assert "1234567891" not in text
    for text in (report.to_html(), report.to_markdown()):
        assert "No privacy guarantee." in text
        assert "1000 cases" not in text
        assert "to sign" not in text
        assert "is protected" not in text


# Privacy cost.


def shown_pairs(clf):
    return [
        (one["epsilon"], one["delta"], one["stated"])
        for one in report_on(clf).to_dict()["costs"]["pairs"]
    ]


def test_the_table_of_the_profile_is_rounded_up_and_has_the_stated_pair():
    clf = pate()
    spent, pairs = clf.privacy_spent_, shown_pairs(clf)
    assert [delta for _, delta, stated in pairs if stated] == [spent.delta]
    for epsilon, delta, _ in pairs:
        assert spent.delta_at(epsilon) <= delta
        assert spent.epsilon_at(delta) <= epsilon
    assert [epsilon for epsilon, _, _ in pairs] == sorted(
        epsilon for epsilon, _, _ in pairs
    )
    assert pairs[0][:2] == (0.0, pytest.approx(spent.delta_at(0), rel=0.1))
    assert pairs[-1][1] == 1e-9


def test_a_pure_profile_ends_at_its_epsilon():
    pairs = shown_pairs(linear())
    assert pairs[-1] == (1.0, 0.0, True)
    assert all(delta > 0 for _, delta, _ in pairs[:-1])
    assert report_on(linear()).to_dict()["costs"]["two"]["epsilon"] == 2


def test_deltas_that_the_profile_does_not_resolve_are_left_out():
    profile = PrivacyProfile([0.0, 0.5, 1.0], [0.2, 1e-3, 1e-5])
    pairs = shown_pairs(Stated(epsilon=1.0, profile=profile))
    assert pairs[-1] == (1.0, 1e-5, True)


def test_two_fits_cost_what_their_curves_or_profiles_add_up_to():
    clf = pate()
    two = report_on(clf).to_dict()["costs"]["two"]
    spent = clf.privacy_spent_
    both = compose_profiles([spent.profile, spent.profile])
    exact = both.epsilon_at(two["delta"])
    assert exact < (spent.curve + spent.curve).to_epsilon(two["delta"])
    assert exact <= two["epsilon"] < exact + 1e-3
    right = both.attack_accuracy()
    assert two["guesses"]["right_at_most"] == pytest.approx(1000 * right, abs=2)


# Values that it must not show.


@pytest.mark.slow
def test_no_format_shows_a_parameter_or_a_value(tmp_path, ledger):
    X, y = rows()
    X = X.copy()
    X[3, 0] = 98765.4321
    frozen = FrozenEstimator(StandardScaler().fit(X[500:] + 271828.1828))
    clf = PATEClassifier(
        make_pipeline(StandardScaler(), GaussianNB(priors=[0.123123, 0.5, 0.376877])),
        make_pipeline(frozen, LogisticRegression(C=0.777123)),
        n_teachers=20,
        n_queries=40,
        mechanism=GNMax(sigma=12),
        epsilon=None,
        ledger=ledger,
        memory=tmp_path / CANARY / "votes",
        random_state=161803398,
    )
    clf.fit(X[:500], y[:500], X_public=PublicData(X[500:]))
    figures = {
        f"{getattr(clf.privacy_analysis_, name):.6g}"
        for name in ("epsilon", "optimal_epsilon", "paper_epsilon")
    }
    secrets = {CANARY, str(tmp_path), "161803398", "98765", "271828", "0.777123"}
    of_teacher = {"0.123123", "GaussianNB"}
    for made in (clf, clf.publish()):
        for ledgers in ({}, {"ledger": ledger}):
            for text in every_format(report_on(made, **ledgers)).values():
                for secret in secrets | of_teacher | figures:
                    assert secret not in text


def test_it_keeps_nothing_of_the_estimator():
    report = report_on(pate())
    report.to_dict()["promise"]["guesses"]["right_at_most"] = 1
    assert report.to_dict()["promise"]["guesses"]["right_at_most"] > 500
    X, _ = rows()
    values = {struct.pack("<d", value) for value in X[:500].ravel()}
    pickled = pickle.dumps(report)
    assert not any(value in pickled for value in values)


# Internal or not.


def test_figures_of_private_rows_make_it_internal():
    report = report_on(pate(), **QUALITY, quality_is_public=False)
    assert report.internal
    assert "internal" in repr(report)
    assert json.loads(report.to_json())["internal"] is True
    assert report.to_markdown().startswith("> **INTERNAL: do not publish")
    assert "0.8125" in report.to_markdown()
    body = report.to_html().partition("<body>")[2]
    assert body.index("INTERNAL: do not publish") < body.index("<h1>")
    assert "<title>INTERNAL DRAFT: " in report.to_html()


def test_figures_of_public_rows_are_one_more_thing_to_sign():
    report = report_on(pate(), **QUALITY, quality_is_public=True)
    facts = report.to_dict()
    assert not report.internal
    assert "INTERNAL" not in report.to_html() + report.to_markdown()
    *stated, last = facts["assumptions"]
    assert stated == [asdict(one) for one in pate().privacy_spent_.assumptions]
    assert last == asdict(QUALITY_ROWS_PUBLIC)
    assert facts["quality"]["figures"] == QUALITY["quality"]


def test_the_history_of_a_ledger_makes_it_internal(ledger):
    spent = pate().privacy_spent_
    report = report_on(pate(), ledger=charged(ledger, spent))
    [entry] = ledger.entries()
    history = report.to_dict()["ledger"]
    assert report.internal
    assert history["spent"] >= ledger.spent - 1e-12
    [shown] = history["entries"]
    assert shown["who"] == entry.who
    assert shown["what"] == "40 queries"
    assert shown["epsilon"] >= entry.epsilon - 1e-9
    assert entry.who in report.to_markdown()
    assert entry.who not in report_on(pate()).to_markdown()


def test_an_empty_ledger_has_a_history_too(ledger):
    report = report_on(pate(), ledger=ledger)
    assert report.internal
    assert "in 0 entries" in report.to_markdown()


def test_a_ledger_of_another_unit_is_refused(ledger):
    stated = {"unit": "group", "relation": "add-remove-or-change"}
    charged(ledger, replace(pate().privacy_spent_, **stated))
    with pytest.raises(ValueError, match="ledger protects unit='group' with relation="):
        report_on(pate(), ledger=ledger)


def test_a_ledger_of_another_relation_is_refused(ledger):
    charged(ledger, replace(pate().privacy_spent_, relation="add-remove"))
    with pytest.raises(ValueError, match="unit='row' with relation='add-remove', but"):
        report_on(pate(), ledger=ledger)


# Files.


@pytest.mark.parametrize("suffix", ["html", "md", "json"])
def test_the_ending_of_a_file_is_its_format(tmp_path, suffix):
    report, path = report_on(pate()), tmp_path / f"report.{suffix}"
    report.save(str(path))
    written = {
        "html": report.to_html,
        "md": report.to_markdown,
        "json": report.to_json,
    }
    assert path.read_text(encoding="utf-8") == written[suffix]()
    assert [*tmp_path.iterdir()] == [path]


def test_an_internal_report_is_not_saved_by_accident(tmp_path):
    report, path = (
        report_on(pate(), **QUALITY, quality_is_public=False),
        tmp_path / "report.html",
    )
    with pytest.raises(ValueError, match="This report is internal, because it has fig"):
        report.save(path)
    assert not path.exists()
    report.save(path, internal=True)
    assert "INTERNAL" in path.read_text()
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_is_replaced_only_on_demand(tmp_path):
    report, path = report_on(pate()), tmp_path / "report.md"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        report.save(path)
    assert path.read_text() == "mine"
    report.save(path, overwrite=True)
    assert path.read_text() == report.to_markdown()


@pytest.mark.parametrize("path", ["report.pdf", "report", "report.HTML ", 3, None])
def test_other_endings_are_refused(tmp_path, path):
    path = tmp_path / path if isinstance(path, str) else path
    with pytest.raises(ValueError, match=r"must (end in one of|be a str)"):
        report_on(pate()).save(path)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="create it first"):
        report_on(pate()).save(tmp_path / "nowhere" / "report.md")


@pytest.mark.parametrize("kind", KINDS)
def test_no_reference_is_listed_twice(kind):
    addresses = [url for _, url in sources_of({"kind": kind, "assumptions": []})]
    assert len(set(addresses)) == len(addresses) > 5
