"""A report says what people have said, asks for the rest, and reads well aloud."""

import re

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.preprocessing import StandardScaler

from sklearn_pate import DPNewtonClassifier, PrivateMarginals, PublicData
from sklearn_pate.mechanisms import NoisyHistogram
from sklearn_pate.publication import Deployment
from tests.inspection.report.reported import (
    LOOSE,
    Page,
    Stated,
    linear,
    markdown_tables,
    pate,
    report_on,
    seeded,
)
from tests.private import HEADINGS, NEIGHBOURS, QUESTIONS, conclusion_of, missing_in

SIZED = {"release": "answers", "n_teachers": 20, "n_queries": 40}


def table_of(report, subject):
    """Read the table whose first column has a subject."""
    [table] = [
        table
        for table in Page(report.to_html()).tables
        if subject in [row[0] for row in table]
    ]
    assert table in markdown_tables(report.to_markdown())
    return dict(map(tuple, table[1:]))


@pytest.mark.slow
@pytest.mark.parametrize(("unit", "relation"), NEIGHBOURS)
def test_the_first_sentence_names_the_unit_as_people_do(unit, relation):
    clf = Stated(unit=unit, relation=relation, **SIZED)
    plain = conclusion_of(report_on(clf).to_dict())
    named = report_on(clf, deployment=Deployment(unit_name="patient"))
    first = conclusion_of(named.to_dict())
    assert f"**{first}**" in named.to_markdown()
    assert plain in str(clf.privacy_spent_).replace("\n             ", " ")
    assert f"one {unit}" in plain
    assert "one patient" in first
    assert "one row" not in first
    assert "## Protection of one patient" in named.to_markdown()


@pytest.mark.parametrize("unit", ["row", "group", "party"])
def test_that_the_unit_is_a_patient_is_signed(unit):
    relation = "add-remove-or-change" if unit == "group" else "replace-one"
    clf = Stated(unit=unit, relation=relation, **SIZED)
    report = report_on(clf, deployment=Deployment(unit_name="patient"))
    [one] = [
        one for one in report.to_dict()["assumptions"] if one["code"] == "unit-named"
    ]
    assert one["sentence"].startswith("each patient ")
    assert one["question"] in report.to_markdown()
    assert "unit-named" not in str(report_on(clf).to_dict()["assumptions"])
    assert "unit-named" not in str(clf.privacy_spent_.assumptions)


@pytest.mark.slow
def test_missing_fields_are_lines_to_fill_in():
    report = report_on(pate())
    subjects = ("Intended use", "Controller", "Audits")
    lines = {
        name: text for one in subjects for name, text in table_of(report, one).items()
    }
    assert "does not exclude" in lines.pop("Public rows")
    assert all(text.startswith("to fill in: ") for text in lines.values())
    *names, last = report.to_dict()["to_fill_in"]
    asked = [QUESTIONS[name][0] for name in names]
    assert last == "quality"
    assert sorted(lines) == sorted([*asked, "Quality by subpopulation"])
    assert {"Controller", "Recipients", "Retention", "Legal basis"} <= lines.keys()


def test_a_given_field_is_shown_and_no_longer_asked_for():
    given = {
        "intended_use": "planning of beds",
        "retention": "five years",
        "audits": ["one", "two"],
        "n_units": 500,
    }
    report = report_on(pate(), deployment=Deployment(**given))
    lines = table_of(report, "Controller")
    assert table_of(report, "Prediction")["Intended use"] == "planning of beds"
    assert lines["Retention"] == "five years"
    assert table_of(report, "Audits")["Audits"] == "one; two"
    assert lines["Number of units"] == "500"
    assert lines["Contact"].startswith("to fill in: ")
    assert {"intended_use", "audits"} & {*report.to_dict()["to_fill_in"]} == set()


def test_figures_by_subpopulation_are_the_evidence_that_is_asked_for():
    by_sex = {"women": 0.85, "men": 0.83}
    report = report_on(
        pate(),
        quality={"accuracy": 0.84, "accuracy by sex": by_sex},
        evaluated_on="100 public rows",
        quality_is_public=True,
    )
    evidence = table_of(report, "Audits")
    assert [*evidence] == ["Audits", "accuracy", "accuracy by sex"]
    assert evidence["accuracy by sex"] == "women 0.85; men 0.83"
    assert "quality" not in report.to_dict()["to_fill_in"]
    with pytest.raises(ValueError, match="finite number, or a dict with one for each"):
        report_on(
            pate(),
            quality={"accuracy by sex": {"women": "good"}},
            evaluated_on="100 public rows",
            quality_is_public=True,
        )


@pytest.mark.parametrize(
    "quality", [{"accuracy": 0.8, "accuracy ": 0.9}, {"by age": {1: 0.7, "1": 0.6}}]
)
def test_figures_with_equal_names_are_refused(quality):
    with pytest.raises(ValueError, match="several names with the same text"):
        report_on(
            pate(), quality=quality, evaluated_on="public rows", quality_is_public=True
        )


def test_audits_are_shown_when_nothing_is_left_to_fill_in():
    words = dict.fromkeys(missing_in({}), "some words") | {"audits": ["one"]}
    del words["quality"]
    report = report_on(
        pate(),
        deployment=Deployment(**words),
        quality={"accuracy by sex": {"women": 0.85, "men": 0.83}},
        evaluated_on="100 public rows",
        quality_is_public=True,
    )
    assert report.to_dict()["to_fill_in"] == []
    assert "DRAFT" not in report.to_html() + report.to_markdown()
    assert "May be published with the model." in report.to_markdown()
    assert table_of(report, "Audits")["Audits"] == "one"


def test_what_is_to_be_filled_in_and_signed_is_before_the_appendix():
    headings = re.findall("(?m)^## (.*)$", report_on(pate()).to_markdown())
    first, appendix = (
        headings[: headings.index("Appendix")],
        headings[headings.index("Appendix") :],
    )
    assert first[-3:] == ["Responsibilities", "Evidence", "Assumptions to sign"]
    assert {"Method", "Attackers", "Privacy cost", "Statement"} <= {*appendix}


@pytest.mark.parametrize(("epsilon", "right"), [(np.log(3), 750), (np.log(9), 900)])
def test_the_examples_have_the_bound_of_their_epsilon(epsilon, right):
    report = report_on(Stated(epsilon=epsilon - 1e-6, delta=0.0, curve=LOOSE))
    _, comparison, *_ = Page(report.to_html()).tables
    numbers = [int(number) for number, _ in comparison[1:]]
    assert numbers == sorted(numbers)
    of_epsilon = [text for number, text in comparison if number == str(right)]
    assert "This publication, at most" in of_epsilon
    assert f"epsilon {epsilon:.1f}" in "".join(of_epsilon)


@pytest.mark.slow
def test_the_statement_is_shown_field_by_field():
    clf = pate(mechanism=NoisyHistogram(sigma=8.0))
    lines = table_of(report_on(clf), "Composition")
    sentences = clf.privacy_spent_.facts.sentences()
    assert lines == {HEADINGS[name]: text for name, text in sentences.items()}
    assert {"mu", "rho"} <= lines.keys()
    assert "mu" not in table_of(report_on(linear()), "Composition")


def test_nothing_is_promised_or_asked_for_without_a_guarantee():
    report = report_on(seeded())
    text = report.to_markdown()
    assert "## Statement" not in text
    assert "to fill in" not in text
    assert report.to_dict()["to_fill_in"] == []


@pytest.mark.slow
def test_model_and_organisation_are_the_title_unless_there_is_another():
    deployment = Deployment(name="Beds", curator="City Hospital")
    title = report_on(pate(), deployment=deployment).to_dict()["title"]
    assert title == "Beds, City Hospital"
    other = report_on(pate(), deployment=deployment, title="Wards")
    assert other.to_dict()["title"] == "Wards"


def test_words_of_people_are_words_in_every_format():
    nasty = "<script>alert(1)</script> | [link](x) `code`"
    report = report_on(pate(), deployment=Deployment(contact=nasty))
    assert "<script" not in report.to_html()
    assert "[link]" not in report.to_markdown()
    assert table_of(report, "Contact")["Contact"] == nasty


def test_a_report_with_lines_to_fill_in_is_a_draft():
    report = report_on(pate(), deployment=Deployment(name="Beds"))
    text, page = report.to_markdown(), report.to_html()
    assert text.startswith("> **DRAFT: do not sign or publish this page.")
    assert "May be published" not in text
    assert "<title>DRAFT: Beds</title>" in page
    banner = text.partition("**")[2].partition("**")[0]
    asked = [QUESTIONS[name][0] for name in report.to_dict()["to_fill_in"][:-1]]
    assert all(heading in banner for heading in asked)


@pytest.mark.slow
def test_the_head_names_the_controller_or_has_room_for_the_name():
    unknown = report_on(pate()).to_markdown()
    assert "Controller: to fill in: organisation responsible by law. Privacy" in unknown
    known = report_on(pate(), deployment=Deployment(controller="City Hospital"))
    assert "\n\nController: City Hospital. Privacy report" in known.to_markdown()
    assert "Controller" not in report_on(seeded()).to_markdown()


@pytest.mark.slow
def test_the_page_states_whether_the_model_holds_public_rows():
    X, y = make_blobs(1500, centers=2, random_state=0)
    X, y, X_public = X[:1000], y[:1000], PublicData(X[1000:])
    newton = DPNewtonClassifier(epsilon=3.0).fit(X, y, X_public=X_public)
    chosen = DPNewtonClassifier(epsilon=3.0, representation=StandardScaler())
    synthetic = DPNewtonClassifier(synthetic=PrivateMarginals((-20, 20)), epsilon=3.0)
    for clf, text in (
        (newton, "holds no public row, but statistics"),
        (chosen.fit(X, y, X_public=X_public), "may hold public rows"),
        (pate(), "may hold public rows"),
        (linear(), "names no public rows, and no synthetic rows"),
        (synthetic.fit(X, y), "drawn from noisy counts of 2 columns"),
    ):
        assert text in table_of(report_on(clf), "Prediction")["Public rows"]


def test_something_else_is_refused():
    with pytest.raises(ValueError, match=r"must be a Deployment; create one by"):
        report_on(pate(), deployment={"name": "Beds"})


@pytest.mark.parametrize("unit", ["row", "group", "party"])
def test_a_wrong_assumption_about_people_costs_what_two_units_cost(unit):
    relation = "add-remove-or-change" if unit == "group" else "replace-one"
    report = report_on(Stated(unit=unit, relation=relation, **SIZED))
    [wrong] = [
        table
        for table in markdown_tables(report.to_markdown())
        if table[0][0] == "False assumption"
    ]
    two = report.to_dict()["promise"]["several"][1]
    shown = f"epsilon={two['epsilon']:.3f}, delta={two['delta']:g}"
    assert wrong[1][1:] == [shown, str(two["guesses"]["right_at_most"])]
    assert wrong[2] == [
        "A label was known only from the private rows",
        "none for a person who alone has it",
        "1000",
    ]


def test_people_in_rows_that_were_wrongly_called_public_have_no_guarantee():
    text = report_on(pate()).to_markdown()
    line = (
        "| The public rows are not public | none for the people in these rows | 1000 |"
    )
    assert line in text
    assert line not in report_on(linear()).to_markdown()


def test_withdrawal_has_the_bound_for_several_units():
    report = report_on(pate())
    ten = report.to_dict()["promise"]["several"][-1]
    right = f"at most {ten['guesses']['right_at_most']} of 1000"
    assert f"For 10 rows together, {right} guesses are right." in report.to_markdown()
