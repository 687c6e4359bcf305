"""Sections of a report on the guarantee and the deployment."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from sklearn_pate.accounting._assumptions import Assumption
from sklearn_pate.accounting._statement import HEADINGS, sentences_of, write_epsilon
from sklearn_pate.inspection.report._blocks import (
    QUESTIONS,
    TEXTS,
    THOUSAND,
    Block,
    Bullets,
    Section,
    Table,
    Text,
)
from sklearn_pate.metrics import PrivateMetrics

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
# Columns of a table of metrics.
_MOST_COLUMNS = 4
_TO_FILL_IN = "to fill in: "
_BY_SUBPOPULATION = "accuracy on public rows of each, such as by sex or age"
PARAGRAPHS: dict[str, str] = TEXTS["paragraphs"]


def guarantee_sections(facts: dict[str, Any]) -> list[Section]:
    """Write the sections about the guarantee, its unit and its limits."""
    if facts["private"]:
        return [_protection(facts), _unit_of_privacy(facts), _limits(facts)]
    if facts["not_covered"]:
        return [_no_protection(facts), _not_covered(facts)]
    return [_no_protection(facts)]


def conclusion_of(facts: dict[str, Any]) -> str:
    """Summarise the guarantee in two or three sentences."""
    if facts["epsilon"] is None:
        return (
            "No privacy guarantee. Epsilon of this fit is infinite: treat the model "
            "like the private data."
        )
    if not facts["private"]:
        names = ", ".join(one["name"] for one in facts["not_covered"])
        return (
            f"No privacy guarantee for this pipeline. In front of the classifier, "
            f"{names} may have learned from private rows."
        )
    promise = facts["promise"]
    weak = "This guarantee is weak. " if promise["weak"] else ""
    return (
        f"{weak}Suppose that a fair coin decides {_guessed(facts)}. An attacker who "
        "has all that is published, and the data of everybody else, guesses the "
        f"outcome correctly in {at_most(promise['guesses'])} cases; without the "
        f"publication, in {promise['guesses']['by_chance']}."
    )


def _guessed(facts: dict[str, Any]) -> str:
    """Write the guess of an attacker about one unit, by the user's name for it."""
    unit, name = facts["unit"], facts["deployment"].get("unit_name")
    texts = TEXTS["unit"][unit]
    if name is None:
        words = {"one": texts["one"], "are": "is", "they": "it", "have": "has"}
    else:
        words = {"one": texts["named"].format(name=name)}
        words |= {"are": "are", "they": "they", "have": "have"}
    return texts["guess"][facts["relation"]].format(**words)


def at_most(guesses: Mapping[str, int]) -> str:
    """Write the largest number of correct guesses."""
    right, of = guesses["right_at_most"], guesses["of"]
    return f"at most {right} of {of}" if right < of else f"perhaps all of {of}"


def epsilon_text(cost: Mapping[str, Any]) -> str:
    """Write epsilon with three decimals, rounded up, or "inf"."""
    return "inf" if cost["epsilon"] is None else write_epsilon(cost["epsilon"])


def number_text(value: float) -> str:
    """Write a number with as few digits as identify it."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def figure_text(value: float | Mapping[str, float]) -> str:
    """Write a figure of quality, or one for each subpopulation."""
    if isinstance(value, Mapping):
        return "; ".join(f"{name} {number_text(one)}" for name, one in value.items())
    return number_text(value)


def estimate_text(one: Mapping[str, float | None]) -> str:
    """Write an estimate with its interval."""
    if one["value"] is None:
        return "hidden by the noise"
    return f"{one['value']:.3f} ({one['low']:.3f} to {one['high']:.3f})"


def named_estimates(
    figures: Mapping[str, Any],
) -> dict[str, Mapping[str, float | None]]:
    """Return estimates by name, with the class in the name if they have one."""
    named: dict[str, Mapping[str, float | None]] = {}
    for name, one in figures.items():
        text = name.replace("roc_auc", "AUC").replace("_", " ")
        of_class = {} if "low" in one else one
        named |= {f"{text} of {label}": inner for label, inner in of_class.items()}
        if "low" in one:
            named[text] = one
    return named


def _title(facts: dict[str, Any]) -> str:
    name = facts["deployment"].get("unit_name", facts["unit"])
    return f"Protection of one {name}"


def _no_protection(facts: dict[str, Any]) -> Section:
    if facts["epsilon"] is None:
        text = PARAGRAPHS["void"]
    else:
        text = (
            "There is no limit on what an attacker can learn. The classifier alone "
            f"would be {_differentially_private(facts)} if all steps in front of it "
            "had been fitted on public rows only."
        )
    return Section(_title(facts), [Text(text, is_warning=True)])


def _differentially_private(cost: Mapping[str, Any]) -> str:
    """Write the cost of a fit, of metrics, or of both."""
    return (
        f"(epsilon={epsilon_text(cost)}, delta={number_text(cost['delta'])})-"
        "differentially private"
    )


def _protection(facts: dict[str, Any]) -> Section:
    promise, blocks = facts["promise"], [Text(_guarantee(facts))]
    if promise["weak"]:
        once = promise["wrong_once_in"]
        often = "more than a million" if once is None else f"{once:,}"
        text = PARAGRAPHS["weak"].format(often=often)
        blocks.append(Text(text, is_warning=True))
    return Section(_title(facts), [*blocks, _comparison(facts)])


def _comparison(facts: dict[str, Any]) -> Table:
    """Compare the bound with examples that everybody can compute."""
    guesses = facts["promise"]["guesses"]
    right = guesses["right_at_most"]
    of_this = (right, "This publication, at most")
    examples = [(int(number), text) for number, text in TEXTS["examples"].items()]
    rows = sorted([*examples, of_this], key=lambda row: row[0])
    return Table(
        "What the number means",
        (f"Correct guesses, of {guesses['of']}", "Example"),
        tuple((str(number), text) for number, text in rows),
    )


def attackers_section(facts: dict[str, Any]) -> Section:
    """Write what is meant by an attacker, and how certain one can be."""
    rows = tuple(
        (str(one["false_alarms"]), str(one["detected_at_most"]))
        for one in facts["promise"]["detections"]
    )
    return Section(
        "Attackers",
        [
            Text(PARAGRAPHS["attackers"]),
            Text(PARAGRAPHS["certainty"]),
            Table(
                "False alarms and detections",
                ("False alarms allowed, of 1000", "Detections at most, of 1000"),
                rows,
            ),
        ],
    )


def _guarantee(facts: dict[str, Any]) -> str:
    metrics, cost = facts["metrics"], facts
    covered = f"The fit is {_differentially_private(facts)}"
    if metrics is not None:
        cost = metrics["total"]
        covered += (
            f", the release of its metrics is {_differentially_private(metrics)}, and "
            f"both together are {_differentially_private(cost)}"
        )
    text = (
        f"{covered}. {'Its' if metrics is None else 'Their'} noise limits guesses: a "
        "fair coin selects one of two data sets that differ in one "
        f"{facts['unit']}, and an attacker has both, and what is published from the "
        "selected one. They "
        f"identify it in {at_most(facts['promise']['guesses'])} cases; without the "
        f"publication, in {THOUSAND // 2}."
    )
    if not cost["delta"]:
        return text
    one_in = int(1 / Fraction(repr(cost["delta"])))  # down: a larger probability
    return (
        f"{text} Delta, a probability of at most 1 in {one_in:,}, is not covered by "
        "epsilon; these figures include it."
    )


def _unit_of_privacy(facts: dict[str, Any]) -> Section:
    unit = TEXTS["unit"][facts["unit"]]
    text = unit["text"]
    if facts["relation"] == "add-remove":
        text += f" {PARAGRAPHS['add-remove'].format(unit=facts['unit'])}"
    table = Table(
        f"Guarantee for {unit['examples']}",
        (
            f"k {unit['plural']}",
            *("epsilon", "delta", "Correct guesses at most, of 1000"),
        ),
        tuple(map(_line_of_several, facts["promise"]["several"])),
    )
    change = Text(
        f"Change of the data that the guarantee covers: {facts['neighbours']}."
    )
    return Section("Unit of privacy", [Text(text), change, table])


def _line_of_several(one: dict[str, Any]) -> tuple[str, str, str, str]:
    right = str(one["guesses"]["right_at_most"])
    if one["delta"] >= 1:
        return str(one["units"]), "no guarantee", "", right
    return str(one["units"]), f"{one['epsilon']:.3f}", number_text(one["delta"]), right


def _limits(facts: dict[str, Any]) -> Section:
    kind, two_fits = facts["kind"], facts["costs"]["two_fits"]
    covered = (
        "the named search alone, and no choice around it"
        if kind == "search"
        else "this fit alone, and no search or choice around it"
    )
    has_public_rows = kind not in ("counts", "learner") and facts["n_tables"] is None
    words = {
        "epsilon": f"{two_fits['epsilon']:.3f}",
        "delta": number_text(two_fits["delta"]),
        "guesses": at_most(two_fits["guesses"]),
        "covered": covered,
    }
    texts = dict(TEXTS["limits"])
    if facts["metrics"] is not None:
        texts["Quality of the model"] += f" {PARAGRAPHS['covered-metrics']}"
    items = tuple(
        (subject, text.format(**words))
        for subject, text in texts.items()
        if has_public_rows or subject != "Public rows"
    )
    return Section("Limits of the guarantee", [Bullets(items)])


def _not_covered(facts: dict[str, Any]) -> Section:
    text = (
        "These parts of the pipeline are in front of the private classifier. The "
        "guarantee does not hold unless they were fitted on public rows only."
    )
    items = tuple((one["name"], one["what"]) for one in facts["not_covered"])
    title = "Parts without a guarantee"
    return Section(title, [Text(text, is_warning=True), Bullets(items)])


def missing_in(
    deployment: dict[str, Any],
    quality: dict[str, Any] | None = None,
    metrics: PrivateMetrics | None = None,
) -> list[str]:
    """List what a report asks for and is not given: fields, figures of quality."""
    missing = [name for name in _ASKED if name not in deployment]
    figures = {} if quality is None else quality["figures"]
    is_given = any(isinstance(one, dict) for one in figures.values()) or (
        metrics is not None and len(metrics.subgroups_) > 1
    )
    return missing if is_given else [*missing, "quality"]


def unit_assumption(unit: str, unit_name: str) -> Assumption:
    """Return the assumption that the unit of privacy is what the user calls it."""
    texts = TEXTS["unit"][unit]
    question = texts["question"].format(name=unit_name)
    return Assumption(
        "unit-named",
        texts["confirmed"].format(name=unit_name),
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
    """Write audits, figures of quality and metrics, with lines to fill in."""
    figures = {} if facts["quality"] is None else facts["quality"]["figures"]
    rows = [_line(facts, "audits")]
    rows += [(name, figure_text(value)) for name, value in figures.items()]
    if "quality" in facts["to_fill_in"]:
        text = f"{_TO_FILL_IN}{_BY_SUBPOPULATION}"
        rows.append(("Quality by subpopulation", text))
    lines = tuple(row for row in rows if row is not None)
    blocks: list[Block] = []
    if lines:
        blocks.append(Table("Audits and quality", ("Subject", "Result"), lines))
    blocks += [*_notes(facts["quality"]), *_metrics(facts["metrics"])]
    return Section("Evidence", blocks)


def _metrics(metrics: dict[str, Any] | None) -> list[Block]:
    """Write private metrics, by subgroup, and their own statement."""
    if metrics is None:
        return []
    columns = {"All rows": named_estimates(metrics["figures"])}
    columns |= {
        one["subgroup"]: named_estimates(one["figures"])
        for one in metrics["by_subgroup"]
    }
    tables: list[Block] = []
    for start in range(0, len(columns), _MOST_COLUMNS):
        shown = dict([*columns.items()][start : start + _MOST_COLUMNS])
        rows = tuple(
            (name, *(estimate_text(one[name]) for one in shown.values()))
            for name in columns["All rows"]
        )
        caption = "Metrics on private rows, with 95 % intervals"
        more = ", more subgroups" if start else ""
        tables.append(Table(f"{caption}{more}", ("Metric", *shown), rows))
    text = PARAGRAPHS["metrics"].format(
        statement=metrics["statement"],
        total=_differentially_private(metrics["total"]),
    )
    return [*tables, Text(text)]


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
