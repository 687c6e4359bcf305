"""Sections of a report: guarantee, deployment, evidence, assumptions, appendix."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from sklearn_pate.accounting._assumptions import ROW_BY_ROW, Assumption
from sklearn_pate.accounting._statement import HEADINGS, sentences_of, write_epsilon
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.inspection.report._blocks import (
    QUESTIONS,
    TEXTS,
    THOUSAND,
    Block,
    Bullets,
    Checks,
    Picture,
    Section,
    Signatures,
    Sources,
    Table,
    Text,
    flow_of,
)

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
PARAGRAPHS: dict[str, str] = TEXTS["paragraphs"]
_COUNTED = {"parties": "Parties", "neighbours": "Neighbours that vote"}


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


def epsilon_text(facts: dict[str, Any]) -> str:
    """Write epsilon with three decimals, rounded up, or "inf"."""
    return "inf" if facts["epsilon"] is None else write_epsilon(facts["epsilon"])


def number_text(value: float) -> str:
    """Write a number with as few digits as identify it."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def figure_text(value: float | Mapping[str, float]) -> str:
    """Write a figure of quality, or one for each subpopulation."""
    if isinstance(value, Mapping):
        return "; ".join(f"{name} {number_text(one)}" for name, one in value.items())
    return number_text(value)


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


def _differentially_private(facts: dict[str, Any]) -> str:
    return (
        f"(epsilon={epsilon_text(facts)}, delta={number_text(facts['delta'])})-"
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
    text = (
        f"The fit is {_differentially_private(facts)}. Its noise limits guesses: a "
        "fair coin selects one of two data sets that differ in one "
        f"{facts['unit']}, and an attacker has both, and what is published from the "
        "selected one. They "
        f"identify it in {at_most(facts['promise']['guesses'])} cases; without the "
        f"publication, in {THOUSAND // 2}."
    )
    if not facts["delta"]:
        return text
    one_in = int(1 / Fraction(repr(facts["delta"])))  # down: a larger probability
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
    items = tuple(
        (subject, text.format(**words))
        for subject, text in TEXTS["limits"].items()
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
    deployment: dict[str, Any], quality: dict[str, Any] | None = None
) -> list[str]:
    """List what a report asks for and is not given: fields, figures of quality."""
    missing = [name for name in _ASKED if name not in deployment]
    figures = {} if quality is None else quality["figures"]
    is_given = any(isinstance(one, dict) for one in figures.values())
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


def sources_of(facts: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """List references and their addresses for the mechanism of a fit."""
    kind = facts["kind"]
    if kind == "learner":
        codes = {one["code"] for one in facts["assumptions"]}
        kind = "steps" if ROW_BY_ROW.code in codes else "objective"
    names = [*TEXTS["references"]["every"], *TEXTS["references"][kind]]
    papers = [TEXTS["papers"][name] for name in names]
    return tuple((one["reference"], one["address"]) for one in papers)


def sections_of(facts: dict[str, Any]) -> list[Section]:
    """Write all sections in order, as plain text that is not escaped yet."""
    sections = guarantee_sections(facts)
    if facts["deployment"] or facts["to_fill_in"]:
        sections.append(deployment_section(facts))
    has_evidence = facts["quality"] is not None or "audits" in facts["deployment"]
    if facts["private"] or has_evidence:
        sections.append(evidence_section(facts))
    return [*sections, _assumptions(facts), *_appendix(facts)]


def _appendix(facts: dict[str, Any]) -> list[Section]:
    """Write the sections for readers who check the statement."""
    text = "For readers who check the statement. Nothing below has to be signed."
    sections = [Section("Appendix", [Text(text)], starts_page=True), _method(facts)]
    if facts["private"]:
        sections.append(attackers_section(facts))
    if facts["costs"] is not None:
        sections.append(_costs(facts))
    if facts["private"]:
        sections.append(fields_section(facts))
    sections.append(_parameters(facts))
    if facts["ledger"] is not None:
        sections.append(_ledger(facts["ledger"]))
    packages = Table(
        "Packages", ("Package", "Version"), tuple(facts["versions"].items())
    )
    proofs, section = PARAGRAPHS["proofs"], TEXTS["proofs"].get(facts["kind"])
    if section is not None:
        proofs += f', in its section "{section}"'
    return [
        *sections,
        Section("Versions", [packages]),
        Section("References", [Text(f"{proofs}."), Sources(sources_of(facts))]),
    ]


def banner_of(facts: dict[str, Any]) -> str | None:
    """Write the warning at the top of an internal report."""
    if not facts["internal"]:
        return None
    why = ", and ".join(facts["internal_because"])
    return f"INTERNAL: do not publish this page. No privacy statement covers it: {why}."


def may_be_published(facts: dict[str, Any]) -> str:
    """Write the sentence about publication of page and model."""
    if facts["internal"]:
        return "For the data holder only."
    if facts["private"]:
        return "May be published with the model."
    return "This page may be published. The model may not."


def _assumptions(facts: dict[str, Any]) -> Section:
    if not facts["private"]:
        text = "There is no guarantee. Assumptions of this fit:"
        items = tuple((one["sentence"], "") for one in facts["assumptions"])
        return Section("Assumptions", [Text(text), Bullets(items)])
    text = (
        "The guarantee depends on facts that the software cannot check. A person who "
        "knows the data has to confirm each of them:"
    )
    items = tuple((one["sentence"], one["question"]) for one in facts["assumptions"])
    blocks: list[Block] = [Text(text), Checks(items)]
    file = facts["model_file"]
    if file is not None:
        date = facts["published"]
        when = "" if date is None else f", published on {date}"
        text = (
            f"The signatures apply to the model in {file['name']}{when}, and to no "
            f"other. The sha256 of this file is {file['sha256']}."
        )
        blocks.append(Text(text))
    roles = ("Data holder", "Data protection")
    return Section("Assumptions to sign", [*blocks, Signatures(roles)])


def _method(facts: dict[str, Any]) -> Section:
    kind, unit = facts["kind"], facts["unit"]
    steps = flow_of(
        kind,
        unit=unit,
        n_teachers=facts["n_teachers"],
        n_queries=facts["n_queries"],
        n_tables=facts["n_tables"],
        mechanism=facts["mechanism"],
        model=facts["model"],
    )
    caption = "Data flow. Private data stay with the data holder."
    method, columns = TEXTS["method"][kind], counted(facts["n_tables"], "column")
    if facts["n_tables"] is not None:
        method = f"{TEXTS['synthetic']['method']} {method}"
    text = Text(method.format(unit=unit, columns=columns))
    if not facts["private"]:
        text = Text("Despite the steps shown, there is no guarantee.", is_warning=True)
    return Section("Method", [text, Picture(steps, caption)])


def _costs(facts: dict[str, Any]) -> Section:
    costs = facts["costs"]
    rows = tuple(
        (
            f"{one['epsilon']:.3f}",
            number_text(one["delta"]),
            "as stated" if one["stated"] else "",
        )
        for one in costs["pairs"]
    )
    text = PARAGRAPHS["profile"].format(unit=facts["unit"])
    table = Table("Privacy profile of this fit", ("epsilon", "delta", "Note"), rows)
    blocks: list[Block] = [Text(text), table]
    one = costs["one_query"]
    if one is not None:
        text = (
            "An equal share of this cost, for one of "
            f"{counted(facts['n_queries'], 'query')}, "
            f"is at most epsilon={one['epsilon']:.3f} at "
            f"delta={number_text(one['delta'])}. Epsilon grows more slowly than the "
            "number of queries."
        )
        blocks.append(Text(text))
    return Section("Privacy cost", blocks)


def _parameters(facts: dict[str, Any]) -> Section:
    alone = facts["not_covered"] and facts["epsilon"] is not None
    of_what = ", of the classifier without the steps in front of it" if alone else ""
    file = facts["model_file"] or {"name": None, "sha256": None}
    named = {
        "Model file": file["name"],
        "sha256 of the model file": file["sha256"],
        "Published on": facts["published"],
        "Classifier": facts["classifier"],
        "Predicting model": facts["model"],
        "Mechanism": facts["mechanism"],
        _COUNTED.get(facts["kind"], "Teachers"): facts["n_teachers"],
        "Queries": facts["n_queries"],
        "Columns that are counted": facts["n_tables"],
        "Unit": facts["unit"],
        "Neighbour relation": facts["relation"],
        "epsilon": epsilon_text(facts) + of_what,
        "delta": number_text(facts["delta"]),
        "Classes": facts["n_classes"],
        "Features": facts["n_features"],
    }
    rows = tuple((name, str(one)) for name, one in named.items() if one is not None)
    table = Table("Parameters of the fit", ("Name", "Value"), rows)
    return Section("Parameters", [table])


def _ledger(ledger: dict[str, Any]) -> Section:
    entries = ledger["entries"]
    text = PARAGRAPHS["ledger"].format(
        epsilon=number_text(ledger["epsilon"]),
        delta=number_text(ledger["delta"]),
        guesses=at_most(ledger["guesses"]),
        spent=f"{ledger['spent']:.2%}",
        entries=counted(len(entries), "entry"),
    )
    blocks: list[Block] = [Text(text)]
    if entries:
        head = ("Entry", "Time (UTC)", "User", "Description", "Data, fit")
        rows = tuple(
            (
                str(one["number"]),
                one["time"],
                one["who"],
                one["what"],
                ", ".join(filter(None, (one["dataset"], one["fit"]))),
                f"{one['epsilon']:.3f} ({number_text(one['delta'])})",
                f"{one['share']:.2%}",
            )
            for one in entries
        )
        caption = f"Entries since {ledger['created']} (UTC)"
        blocks.append(Table(caption, (*head, "epsilon (delta)", "Share"), rows))
    return Section("Privacy ledger", blocks)
