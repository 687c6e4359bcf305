"""Sections of a privacy report: facts of the statement, use and responsibilities."""

from typing import Any

from sklearn_pate.accounting._assumptions import Assumption
from sklearn_pate.accounting._statement_facts import HEADINGS, sentences_of
from sklearn_pate.inspection.privacy_report._blocks import (
    Block,
    Section,
    Table,
    Text,
)
from sklearn_pate.inspection.privacy_report._guarantee import number_text
from sklearn_pate.publication._deployment import QUESTIONS

__all__ = [
    "deployment_section",
    "evidence_section",
    "fields_section",
    "missing_in",
    "unit_assumption",
]

# Fields that readers of a report ask for.
_ASKED = (
    "name",
    "intended_use",
    "description",
    "curator",
    "controller",
    "model_owner",
    "contact",
    "recipients",
    "retention",
    "epsilon_justification",
    "tuning",
    "audits",
    "legal_basis",
    "impact_assessment",
)
_TO_FILL_IN = "to fill in: "
_BY_GROUP = "accuracy on public rows of each group of people, such as by sex or age"
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
    lines = [_line(facts, name) for name in QUESTIONS if name != "audits"]
    text = "Given by the people responsible for the data, and not checked here."
    rows = tuple(line for line in lines if line is not None)
    table = Table("Description", ("Subject", "Description"), rows)
    return Section("Use and responsibilities", [Text(text), table], starts_page=True)


def _line(facts: dict[str, Any], name: str) -> tuple[str, str] | None:
    """Write a field that is given, or asked for."""
    heading, question = QUESTIONS[name]
    if name in facts["deployment"]:
        value = facts["deployment"][name]
        return heading, "; ".join(value) if isinstance(value, list) else str(value)
    return (
        (heading, f"{_TO_FILL_IN}{question}") if name in facts["to_fill_in"] else None
    )


def evidence_section(facts: dict[str, Any]) -> Section:
    """Write audits and figures of quality, with lines to fill in."""
    quality, blocks = facts["quality"], []
    slots = [_line(facts, "audits")]
    if facts["private"] and (quality is None or not quality["by_group"]):
        slots.append(("Quality by group", f"{_TO_FILL_IN}{_BY_GROUP}"))
    rows = tuple(slot for slot in slots if slot is not None)
    if rows:
        blocks.append(Table("Audits and groups", ("Subject", "Evidence"), rows))
    return Section("Evidence", [*blocks, *_quality(quality)])


def _quality(quality: dict[str, Any] | None) -> list[Block]:
    if quality is None:
        return []
    rows = tuple(
        (name, number_text(value)) for name, value in quality["figures"].items()
    )
    text = (
        "Given by the author of this page, and not checked here. Computed on "
        f"{'public' if quality['public'] else 'private'} rows: "
        f"{quality['evaluated_on']}"
    )
    blocks: list[Block] = [
        Table("Figures of quality", ("Name", "Value"), rows),
        Text(text),
    ]
    if not quality["public"]:
        blocks.append(Text("No guarantee covers these figures.", is_warning=True))
    return blocks


def fields_section(facts: dict[str, Any]) -> Section:
    """Write the facts that follow from the statement, one a line."""
    words = sentences_of(facts["facts"])
    rows = tuple((HEADINGS[name], text) for name, text in words.items())
    table = Table(
        "Facts that follow from the statement", ("Subject", "Statement"), rows
    )
    return Section("Statement", [table])
