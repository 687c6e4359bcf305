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
from sklearn_pate.inspection.privacy_report._guarantee import figure_text
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
_BY_SUBPOPULATION = "accuracy on public rows of each, such as by sex or age"
_UNITS = {
    "row": ("each {name} has one row", "Does any {name} have several rows?"),
    "group": ("each {name} has one id", "Does any {name} have several ids?"),
    "party": ("each {name} is one party", "Did any {name} send labels several times?"),
}


def missing_in(
    deployment: dict[str, Any], quality: dict[str, Any] | None = None
) -> list[str]:
    """List what a report asks for and is not given: fields, figures of quality."""
    missing = [name for name in _ASKED if name not in deployment]
    figures = {} if quality is None else quality["figures"]
    is_given = any(isinstance(one, dict) for one in figures.values())
    return missing if is_given else [*missing, "quality"]


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
    return Section("Use and responsibilities", [Text(text), table])


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
    figures = {} if facts["quality"] is None else facts["quality"]["figures"]
    rows = [_line(facts, "audits")]
    rows += [(name, figure_text(value)) for name, value in figures.items()]
    if "quality" in facts["to_fill_in"]:
        text = f"{_TO_FILL_IN}{_BY_SUBPOPULATION}"
        rows.append(("Quality by subpopulation", text))
    lines = tuple(row for row in rows if row is not None)
    blocks: list[Block] = [Table("Audits and quality", ("Subject", "Result"), lines)]
    return Section("Evidence", [*blocks, *_notes(facts["quality"])])


def _notes(quality: dict[str, Any] | None) -> list[Text]:
    if quality is None:
        return []
    rows = "public" if quality["public"] else "private"
    text = (
        "Figures of quality are given by the author of this page, and not checked "
        f"here. Computed on {rows} rows: {quality['evaluated_on']}"
    )
    if quality["public"]:
        return [Text(text)]
    return [Text(text), Text("No guarantee covers these figures.", is_warning=True)]


def fields_section(facts: dict[str, Any]) -> Section:
    """Write the facts that follow from the statement, one a line."""
    words = sentences_of(facts["facts"])
    rows = tuple((HEADINGS[name], text) for name, text in words.items())
    table = Table(
        "Facts that follow from the statement", ("Subject", "Statement"), rows
    )
    return Section("Statement", [table])
