"""The JSON Schema of the privacy card, which the site publishes, is that of cards."""

import json
import re
from pathlib import Path

import pytest

from sklearn_pate.mechanisms import GNMax
from sklearn_pate.publication import Deployment, publish
from tests._aggregation.synthetic_fits import fit as fit_on_synthetic
from tests.cases import thorough_but
from tests.private import _FIELDS, FORMAT, FORMAT_VERSION
from tests.publication.forging import FITS, OTHER_FITS, vote
from tests.publication.learners import LEARNERS

SLOW = {"search", "disjoint search", "search of networks"}
SCHEMA = json.loads(
    (Path(__file__).parents[2] / "docs/_static/privacy-card.schema.json").read_text()
)
TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def is_of(value, name):
    return isinstance(value, TYPES[name]) and (
        name == "boolean" or not isinstance(value, bool)
    )


def violations(value, schema, place="card"):
    """List where a value differs from a schema, for the keywords of ours."""
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(is_of(value, name) for name in names):
        return [f"{place}: type"]
    found = [
        f"{place}: {keyword}"
        for keyword, is_valid in {
            "const": lambda wanted: value == wanted,
            "enum": lambda allowed: value in allowed,
            "minimum": lambda least: value is None or value >= least,
            "maximum": lambda most: value <= most,
            "minItems": lambda least: len(value) >= least,
            "maxItems": lambda most: len(value) <= most,
            "pattern": lambda pattern: re.search(pattern, value),
            "required": lambda required: value is None or {*required} <= {*value},
        }.items()
        if keyword in schema and not is_valid(schema[keyword])
    ]
    if isinstance(value, dict):
        known = schema.get("properties", {})
        other = schema.get("additionalProperties", True)
        for name, one in value.items():
            inner = known.get(name, other)
            if inner is False:
                found.append(f"{place}.{name}: unknown")
            elif inner is not True:
                found += violations(one, inner, f"{place}.{name}")
    elif isinstance(value, list):
        inner = schema.get("prefixItems", len(value) * [schema.get("items", {})])
        for place_of, (one, of_one) in enumerate(zip(value, inner, strict=False)):
            found += violations(one, of_one, f"{place}.{place_of}")
    return found


def test_the_schema_has_the_fields_of_a_card():
    assert set(SCHEMA["properties"]) == {*_FIELDS, "sha256"}
    assert SCHEMA["required"] == [*SCHEMA["properties"]]
    assert SCHEMA["properties"]["format"]["const"] == FORMAT
    assert SCHEMA["properties"]["format_version"]["const"] == FORMAT_VERSION


@pytest.mark.slow
@pytest.mark.parametrize("kind", FITS | OTHER_FITS)
def test_a_card_is_as_the_schema_says(honest, kind):
    card = json.loads(honest(kind).with_suffix(".json").read_text())
    assert violations(card, SCHEMA) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", thorough_but(LEARNERS.keys() - SLOW, LEARNERS))
def test_a_card_of_a_learner_is_as_the_schema_says(name, originals):
    assert violations(originals(name).card, SCHEMA) == ["card: required"]  # sha256


def test_a_card_about_synthetic_rows_is_as_the_schema_says():
    card = publish(fit_on_synthetic("votes")).card
    assert violations(card, SCHEMA) == ["card: required"]


def test_a_described_card_is_as_the_schema_says():
    deployment = Deployment(
        name="Model", n_units=60, sector="healthcare", audits=["none yet"]
    )
    card = publish(vote(GNMax(sigma=8.0)), deployment=deployment).card
    assert violations(card, SCHEMA) == ["card: required"]


@pytest.mark.parametrize("field", _FIELDS)
def test_a_card_with_a_field_of_another_type_is_not(honest, field):
    card = json.loads(honest("GNMax").with_suffix(".json").read_text())
    other = 1 if isinstance(card[field], str | list | dict) else "text"
    [violation] = violations(card | {field: other}, SCHEMA)
    assert violation.startswith(f"card.{field}: ")
