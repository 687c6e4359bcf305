"""The words of a privacy report: from facts to sections that every format renders."""

from typing import Any

from sklearn_pate.inspection.privacy_report._blocks import (
    Bullets,
    Checks,
    Picture,
    Section,
    Signatures,
    Sources,
    Table,
    Text,
)
from sklearn_pate.inspection.privacy_report._data_flow import stations_of
from sklearn_pate.inspection.privacy_report._guarantee import (
    at_most,
    epsilon_text,
    number_text,
    promise_sections,
)
from sklearn_pate.inspection.privacy_report._sources import sources_of

__all__ = ["banner_of", "may_be_published", "sections_of"]

_HOW = {
    "teachers": (
        "Many teachers learn, each from rows that no other teacher sees, and vote on "
        "public rows. One {unit} reaches one teacher only, and so changes one vote on "
        "each query. Noise is added to the votes, and hides it. The student never "
        "sees a private row: it learns from the noisy answers."
    ),
    "parties": (
        "Each party labels the public rows: these are its votes. Noise is added to the "
        "votes, and hides those of any one party. The student learns from the noisy "
        "answers alone."
    ),
    "sums": (
        "Many teachers learn, each from rows that no other teacher sees, and say what "
        "they think of public rows as a vector of bounded length. Noise is added to "
        "the sum of all vectors, once, and hides any one of them. The student learns "
        "from the noisy sum."
    ),
    "neighbours": (
        "For each query about a public row, a fresh secret sample of the private "
        "rows is drawn, and the nearest of them vote. Noise is added to the votes. The "
        "student learns from the noisy answers alone."
    ),
    "learner": (
        "The model learns from the private rows themselves. What one row can change is "
        "bounded, and noise is added that hides it."
    ),
    "search": (
        "A secret number of private fits is made, each with a setting that is drawn at "
        "random, and scored with noise on rows that it has not seen. The best one is "
        "published, and nothing about the others."
    ),
}
_COUNTED = {"parties": "Parties", "neighbours": "Neighbours that vote"}


def sections_of(facts: dict[str, Any]) -> list[Section]:
    """Write the report.

    Parameters
    ----------
    facts : dict
        As ``collect_facts`` returns them.

    Returns
    -------
    sections : list of Section
        In order. Text is plain, and not yet escaped for any format.
    """
    sections = [*promise_sections(facts), _assumptions(facts), _how_it_works(facts)]
    if facts["costs"] is not None:
        sections.append(_costs(facts))
    sections.append(_parameters(facts))
    if facts["quality"] is not None:
        sections.append(_quality(facts["quality"]))
    if facts["ledger"] is not None:
        sections.append(_account(facts["ledger"]))
    return [*sections, _versions(facts), _references(facts)]


def banner_of(facts: dict[str, Any]) -> str | None:
    """Write the warning of an internal report.

    Parameters
    ----------
    facts : dict
        As ``collect_facts`` returns them.

    Returns
    -------
    banner : str or None
        None if the report may be published.
    """
    if not facts["internal"]:
        return None
    why = ", and ".join(facts["internal_because"])
    return f"INTERNAL: do not publish this page. No privacy statement covers it: {why}."


def may_be_published(facts: dict[str, Any]) -> str:
    """Say who may see the page.

    Parameters
    ----------
    facts : dict
        As ``collect_facts`` returns them.

    Returns
    -------
    text : str
        A sentence.
    """
    if facts["internal"]:
        return "For the data holder only."
    if facts["private"]:
        return "May be published with the model."
    return "This page may be published. The model may not."


def _assumptions(facts):
    if not facts["private"]:
        text = "Nothing is promised, and nothing is to be signed. The fit took it that:"
        items = tuple((one["sentence"], "") for one in facts["assumptions"])
        return Section("Assumptions", [Text(text), Bullets(items)])
    text = (
        "The promise rests on what the software cannot know. Somebody who knows the "
        "data has to confirm, one by one, that:"
    )
    items = tuple((one["sentence"], one["question"]) for one in facts["assumptions"])
    blocks = [Text(text), Checks(items)]
    if facts["model_file"] is not None:
        blocks.append(Text(_which_model(facts)))
    roles = ("Data holder", "Data protection")
    return Section("Assumptions to sign", [*blocks, Signatures(roles)])


def _which_model(facts):
    file = facts["model_file"]
    when = "" if facts["published"] is None else f", published on {facts['published']}"
    return (
        f"This is about the model in {file['name']}{when}, and about no other. The "
        f"sha256 of this file is {file['sha256']}."
    )


def _how_it_works(facts):
    kind, unit = facts["kind"], facts["unit"]
    stations = stations_of(
        kind,
        unit=unit,
        n_teachers=facts["n_teachers"],
        n_queries=facts["n_queries"],
        mechanism=facts["mechanism"],
        model=facts["model"],
    )
    caption = "What goes where. The private side stays with the data holder."
    words = Text(_HOW[kind].format(unit=unit))
    if not facts["private"]:
        words = Text("Whatever the picture shows, nothing is promised.", warns=True)
    return Section("How it works", [words, Picture(stations, caption)])


def _costs(facts):
    costs = facts["costs"]
    rows = tuple(
        (
            number_text(one["delta"]),
            f"{one['epsilon']:.3f}",
            "as stated" if one["stated"] else "",
        )
        for one in costs["at"]
    )
    text = (
        "One fit has many costs: the smaller the delta, the larger the epsilon. All "
        "of these hold at once."
    )
    blocks = [
        Text(text),
        Table("The cost of this fit", ("delta", "epsilon", "Note"), rows),
    ]
    if costs["beside_the_curve"]:
        text = (
            "The stated cost was computed more sharply than those at other deltas, "
            "which come from the Renyi curve of the fit and may be larger than need be."
        )
        blocks.append(Text(text))
    one = costs["one_question"]
    if one is not None:
        text = (
            f"An equal share of this cost, for one of {facts['n_queries']} queries, "
            f"is epsilon={one['epsilon']:.3f} at delta={number_text(one['delta'])}. "
            "Renyi costs add up; epsilon grows more slowly."
        )
        blocks.append(Text(text))
    return Section("What it cost", blocks)


def _parameters(facts):
    alone = facts["not_covered"] and facts["epsilon"] is not None
    of_what = ", of the classifier without what is in front of it" if alone else ""
    file = facts["model_file"] or {"name": None, "sha256": None}
    named = {
        "Model file": file["name"],
        "Its sha256": file["sha256"],
        "Published on": facts["published"],
        "Classifier": facts["classifier"],
        "What predicts": facts["model"],
        "Mechanism": facts["mechanism"],
        _COUNTED.get(facts["kind"], "Teachers"): facts["n_teachers"],
        "Queries": facts["n_queries"],
        "Unit": facts["unit"],
        "Neighbour relation": facts["relation"],
        "epsilon": epsilon_text(facts) + of_what,
        "delta": number_text(facts["delta"]),
        "Classes": facts["n_classes"],
        "Features": facts["n_features"],
    }
    rows = tuple((name, str(one)) for name, one in named.items() if one is not None)
    table = Table("What the fit is made of", ("Name", "Value"), rows)
    return Section("Parameters", [table])


def _quality(quality):
    rows = tuple(
        (name, number_text(value)) for name, value in quality["figures"].items()
    )
    text = (
        "As given by whoever made this page, and not checked here. Computed on: "
        f"{quality['evaluated_on']}"
    )
    blocks = [Text(text), Table("Figures of quality", ("Name", "Value"), rows)]
    if quality["public"]:
        blocks.append(Text("These rows are said to be public: see the assumptions."))
    else:
        text = "These rows are private. No promise covers what is computed on them."
        blocks.append(Text(text, warns=True))
    return Section("Quality", blocks)


def _account(account):
    charges = account["charges"]
    times = "1 charge" if len(charges) == 1 else f"{len(charges)} charges"
    text = (
        "All that is charged to this account, now and later, is together "
        f"(epsilon={number_text(account['epsilon'])}, "
        f"delta={number_text(account['delta'])})-differentially private, however each "
        "release was chosen in view of the ones before. Who sees all of it guesses "
        f"right in {at_most(account['guesses'])} cases. {account['spent']:.2%} of this "
        f"budget is spent, in {times}. Look whether this fit is among them: this page "
        "cannot tell."
    )
    blocks = [Text(text)]
    if charges:
        head = ("Charge", "Time (UTC)", "Who", "What", "Data, fit", "epsilon (delta)")
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
            for one in charges
        )
        caption = f"Charges since {account['created']} (UTC)"
        blocks.append(Table(caption, (*head, "Share"), rows))
    return Section("The account of these data", blocks)


def _versions(facts):
    rows = tuple(facts["versions"].items())
    return Section("Versions", [Table("Made with", ("Package", "Version"), rows)])


def _references(facts):
    return Section("References", [Sources(sources_of(facts))])
