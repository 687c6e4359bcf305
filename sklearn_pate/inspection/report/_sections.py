"""Sections of a report, with their sources."""

from typing import Any

from sklearn_pate.accounting._assumptions import ROW_BY_ROW
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.inspection.report._blocks import (
    TEXTS,
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
from sklearn_pate.inspection.report._guarantee import (
    PARAGRAPHS,
    at_most,
    attackers_section,
    deployment_section,
    epsilon_text,
    evidence_section,
    fields_section,
    guarantee_sections,
    number_text,
)

_COUNTED = {"parties": "Parties", "neighbours": "Neighbours that vote"}


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
    has_evidence = (
        facts["quality"] is not None
        or facts["metrics"] is not None
        or "audits" in facts["deployment"]
    )
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
