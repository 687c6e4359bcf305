"""What people say about a model is checked, kept on its card, and read with it."""

import json

import numpy as np
import pytest

from sklearn_pate.inspection import PrivacyReport
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.publication import Deployment, PublishedClassifier, publish
from tests.private import NEIGHBOURS, QUESTIONS
from tests.publication.forging import card_of, forge, refused, setting, vote

FULL = {
    "name": "Readmission within 30 days",
    "prediction": "return of a patient within 30 days",
    "one_row": "one stay",
    "unit_name": "hospital",
    "n_units": 60,
    "intended_use": "planning of beds",
    "description": "stays of one year",
    "region": "Germany",
    "sector": "healthcare",
    "curator": "City Hospital",
    "curator_kind": "nonprofit",
    "controller": "City Hospital",
    "model_owner": "data science",
    "contact": "privacy@hospital.example",
    "recipients": "clinics",
    "retention": "five years",
    "data_security": "a room without network",
    "epsilon_justification": "few guesses are right",
    "tuning": "on public rows",
    "audits": ["membership inference: no better than chance"],
    "legal_basis": "consent",
    "impact_assessment": "DPIA 7",
    "authors": ["A. Author", "B. Author"],
}


@pytest.fixture
def saved(tmp_path):
    published = publish(vote(GNMax(sigma=8.0)), deployment=Deployment(**FULL))
    published.save(tmp_path / "model.skops")
    return tmp_path / "model.skops"


# The fields.


def test_every_field_has_a_heading_and_a_question():
    assert QUESTIONS.keys() == FULL.keys() == Deployment.__dataclass_fields__.keys()
    assert Deployment().missing() == [*QUESTIONS]
    assert Deployment(**FULL).missing() == []


def test_a_deployment_comes_back_from_json():
    given = json.loads(json.dumps(Deployment(**FULL).to_dict()))
    assert given == FULL
    assert Deployment(**given) == Deployment(**FULL)
    assert Deployment().to_dict() == {}


def test_texts_are_in_one_line():
    assert Deployment(name=" Model\n  of\u2028beds ").name == "Model of beds"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"name": ""}, r"name='' must be a text of at least one letter; leave it out"),
        ({"name": 3}, "name=3 must be a text"),
        ({"name": "x" * 2001}, "name has 2001 characters, more than 2000; shorten it"),
        ({"name": "a\u202eb"}, r"name has the control character U\+202E"),
        ({"name": "a\x00b"}, r"name has the control character U\+0000"),
        ({"sector": "Health"}, "sector='Health' is unknown; use one of"),
        ({"curator_kind": "firm"}, "curator_kind='firm' is unknown; use one of"),
        ({"audits": "none"}, r"audits='none' must be a list of texts, such as audits="),
        ({"audits": [1]}, "an item of audits=1 must be a text"),
        ({"authors": [""]}, "an item of authors='' must be a text"),
        ({"n_units": 0}, "n_units=0 must be a whole number of at least 1, or None"),
        ({"n_units": True}, "n_units=True must be a whole number"),
        ({"n_units": 2.5}, "n_units=2.5 must be a whole number"),
    ],
)
def test_a_wrong_field_is_refused_with_what_to_do(wrong, message):
    with pytest.raises(ValueError, match=message):
        Deployment(**wrong)


@pytest.mark.parametrize("name", ["patient", "school class", "Straße", "user's phone"])
def test_a_unit_name_is_a_noun(name):
    assert Deployment(unit_name=name).unit_name == name


@pytest.mark.parametrize(
    "name",
    ["a patient", "the patient", "one row", "**x**", "<b>", "id_3", "42", "a b c d"],
)
def test_a_unit_name_that_cannot_follow_one_is_refused(name):
    with pytest.raises(ValueError, match="must be one to three words without an"):
        Deployment(unit_name=name)


def test_a_number_of_numpy_is_a_number():
    assert type(Deployment(n_units=np.int64(7)).n_units) is int


# On the card.


@pytest.mark.slow
def test_the_card_has_what_was_given(saved):
    assert card_of(saved)["deployment"] == FULL
    loaded = PublishedClassifier.load(saved)
    assert loaded.card["deployment"] == FULL
    report = PrivacyReport.from_estimator(loaded)
    assert report.to_dict()["deployment"] == FULL
    assert report.to_dict()["title"] == "Readmission within 30 days, City Hospital"


def test_a_method_of_the_classifier_takes_it_too():
    published = vote(GNMax(sigma=8.0)).publish(deployment=Deployment(name="Beds"))
    assert published.card["deployment"] == {"name": "Beds"}


def test_without_one_the_card_has_an_empty_one():
    assert publish(vote(GNMax(sigma=8.0))).card["deployment"] == {}


def test_a_dictionary_is_refused():
    with pytest.raises(ValueError, match=r"must be a Deployment; create one by Depl"):
        publish(vote(GNMax(sigma=8.0)), deployment={"name": "Beds"})


@pytest.mark.parametrize(("unit", "relation"), NEIGHBOURS)
def test_a_number_that_the_statement_hides_is_refused(unit, relation):
    from tests.inspection.report.reported import Stated

    clf = Stated(unit=unit, relation=relation)
    if relation == "replace-one":
        PrivacyReport.from_estimator(clf, deployment=Deployment(n_units=12407))
        return
    with pytest.raises(ValueError, match=f"n_units=12407 must not be .* one {unit} is"):
        PrivacyReport.from_estimator(clf, deployment=Deployment(n_units=12407))


def test_a_report_on_a_card_takes_no_other_deployment(saved):
    loaded = PublishedClassifier.load(saved)
    same = PrivacyReport.from_estimator(loaded, deployment=Deployment(**FULL))
    assert same.to_dict()["deployment"] == FULL
    with pytest.raises(
        ValueError, match="deployment differs from the deployment on the card"
    ):
        PrivacyReport.from_estimator(loaded, deployment=Deployment(name="Beds"))


# Forged files.


@pytest.mark.parametrize(
    ("forged", "message"),
    [
        ({"name": ["Beds"]}, "must be a text of at least one letter"),
        ({"nickname": "Beds"}, "unexpected keyword argument 'nickname'"),
        ({"sector": "Health"}, "sector='Health' is unknown"),
        (
            {"name": "two  spaces"},
            "its deployment is {'name': 'two  spaces'}, but its other fields give",
        ),
        ({"unit_name": "<b>"}, "must be one to three words"),
    ],
)
def test_a_deployment_that_nobody_can_create_is_refused(saved, forged, message):
    forge(saved, setting(deployment=forged))
    assert message in refused(saved)
