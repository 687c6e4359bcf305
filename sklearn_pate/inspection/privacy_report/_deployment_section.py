"""Sections of a privacy report: facts of the statement, use and responsibilities."""

from typing import Any

from sklearn_pate.accounting._assumptions import Assumption
from sklearn_pate.accounting._statement_facts import HEADINGS, sentences_of
from sklearn_pate.inspection.privacy_report._blocks import Section, Table, Text
from sklearn_pate.publication._deployment import QUESTIONS

__all__ = ["deployment_section", "fields_section", "missing_in", "unit_assumption"]

# Fields that readers of a report ask for.
_ASKED = (
    "name",
    "intended_use",
    "description",
    "curator",
    "contact",
    "epsilon_justification",
    "tuning",
    "audits",
    "legal_basis",
    "impact_assessment",
)
_UNITS = {
    "row": ("each {name} has one row", "Does any {name} have several rows?"),
    "group": ("each {name} has one id", "Does any {name} have several ids?"),
    "party": ("each {name} is one party", "Did any {name} send labels several times?"),
}


def missing_in(deployment: dict[str, Any]) -> list[str]:
    """List the fields that a report asks for and that are not filled in."""
    return [name for name in _ASKED if name not in deployment]


def unit_assumption(unit: str, unit_name: str) -> Assumption:
    """Return the assumption that the unit of privacy is what the user calls it."""
    sentence, question = (text.format(name=unit_name) for text in _UNITS[unit])
    return Assumption(
        "unit-named",
        sentence,
        f"{question} The guarantee for this {unit_name} is then weaker: see the table.",
    )


def deployment_section(facts: dict[str, Any]) -> Section:
    """Write the description by the people responsible, with lines to fill in."""
    given, rows = facts["deployment"], []
    for name, (heading, question) in QUESTIONS.items():
        if name in given:
            value = given[name]
            text = "; ".join(value) if isinstance(value, list) else str(value)
            rows.append((heading, text))
        elif name in facts["to_fill_in"]:
            rows.append((heading, f"to fill in: {question}"))
    text = "Given by the people responsible for the data, and not checked here."
    table = Table("Description", ("Subject", "Description"), tuple(rows))
    return Section("Use and responsibilities", [Text(text), table])


def fields_section(facts: dict[str, Any]) -> Section:
    """Write the facts that follow from the statement, one a line."""
    words = sentences_of(facts["facts"])
    rows = tuple((HEADINGS[name], text) for name, text in words.items())
    table = Table(
        "Facts that follow from the statement", ("Subject", "Statement"), rows
    )
    return Section("Statement", [table])
