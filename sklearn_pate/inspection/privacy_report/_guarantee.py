"""The words of a privacy report about the promise itself, and where it ends."""

from fractions import Fraction
from typing import Any, NamedTuple

from sklearn_pate.accounting._statement import write_epsilon
from sklearn_pate.inspection.privacy_report._attack_bounds import THOUSAND
from sklearn_pate.inspection.privacy_report._blocks import Bullets, Section, Table, Text

__all__ = [
    "at_most",
    "epsilon_text",
    "number_text",
    "promise_sections",
    "verdict_of",
]


class _Unit(NamedTuple):
    one: str
    several: str
    guess: str
    what: str
    together: str


_ROW = (
    "The unit of this promise is one row of the training table. A person with one row "
    "is protected as a whole. A person with several rows is not: what is promised is "
    "weaker, as the table shows."
)
_GROUP = (
    "The unit of this promise is one group: all rows that share an id, such as all "
    "visits of one patient. They are protected together, however many they are. A "
    "person with several ids is protected as several groups, and so are several people "
    "together."
)
_TWO_STEPS = (
    " The promise is about one query, whether {one} is in the data. An attacker who "
    "knows that it is, and weighs two contents of it, compares data sets that are two "
    "changes apart: the line for 2 bounds how often they are right."
)
UNITS = {
    ("row", "replace-one"): _Unit(
        "one row",
        "rows",
        "which of two contents one row has, if both are equally likely",
        _ROW,
        "k rows of one person, or of k people",
    ),
    ("group", "add-remove-or-change"): _Unit(
        "one group",
        "groups",
        "whether one group is in the data, or which of two contents it has, if both "
        "answers are equally likely",
        _GROUP,
        "k groups, such as k patients",
    ),
    ("party", "replace-one"): _Unit(
        "one party",
        "parties",
        "which of two sets of votes one party has cast, if both are equally likely",
        "The unit of this promise is one party: whoever sent one array of labels. All "
        "that is behind these labels is protected together. A person whose rows are "
        "with several parties is protected as several parties.",
        "k parties",
    ),
    ("row", "add-remove"): _Unit(
        "one row",
        "rows",
        "whether one row is in the data, if both answers are equally likely",
        _ROW + _TWO_STEPS.format(one="a row"),
        "k rows of one person, or of k people",
    ),
    ("group", "add-remove"): _Unit(
        "one group",
        "groups",
        "whether one group is in the data, if both answers are equally likely",
        _GROUP + _TWO_STEPS.format(one="a group"),
        "k groups, such as k patients",
    ),
}


def promise_sections(facts: dict[str, Any]) -> list[Section]:
    """Write what is promised, to whom, and what is not.

    Parameters
    ----------
    facts : dict
        As ``collect_facts`` returns them.

    Returns
    -------
    sections : list of Section
        In order.
    """
    if facts["private"]:
        return [_what_is_promised(facts), _whom(facts), _what_is_not_said(facts)]
    if facts["not_covered"]:
        return [_what_is_missing(facts), _not_covered(facts)]
    return [_what_is_missing(facts)]


def verdict_of(facts: dict[str, Any]) -> str:
    """Say in a few sentences what is promised.

    Parameters
    ----------
    facts : dict
        As ``collect_facts`` returns them.

    Returns
    -------
    verdict : str
        With its number, if there is one.
    """
    if facts["epsilon"] is None:
        return (
            "Nothing is promised. This fit has no privacy guarantee (epsilon is "
            "infinite): treat the model like the private data themselves."
        )
    if not facts["private"]:
        names = ", ".join(one["name"] for one in facts["not_covered"])
        return (
            "Nothing is promised for this pipeline. In front of the classifier, "
            f"{names} may have learned from private rows."
        )
    unit, guesses = _unit_of(facts), facts["promise"]["guesses"]
    weak = "This promise is weak. " if facts["promise"]["weak"] else ""
    return (
        f"{weak}Whoever sees all that is published, and knows everybody else's data, "
        f"guesses right in {at_most(guesses)} cases {unit.guess}. Blind guessing is "
        f"right in {guesses['by_chance']}."
    )


def at_most(guesses: dict[str, int]) -> str:
    """Say how often an attacker guesses right.

    Parameters
    ----------
    guesses : dict
        With "right_at_most" and "of".

    Returns
    -------
    text : str
        Of so many.
    """
    right, of = guesses["right_at_most"], guesses["of"]
    return f"at most {right} of {of}" if right < of else f"perhaps all of {of}"


def epsilon_text(facts: dict[str, Any]) -> str:
    """Write epsilon as statements do.

    Parameters
    ----------
    facts : dict
        As ``collect_facts`` returns them.

    Returns
    -------
    text : str
        With three decimals, rounded up, or "inf".
    """
    return "inf" if facts["epsilon"] is None else write_epsilon(facts["epsilon"])


def number_text(value: float) -> str:
    """Write a number with all of its digits, and no more.

    Parameters
    ----------
    value : float
        Any.

    Returns
    -------
    text : str
        It reads back as the same number.
    """
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def _unit_of(facts):
    return UNITS[facts["unit"], facts["relation"]]


def _title(facts):
    return f"What an attacker can learn about {_unit_of(facts).one}"


def _what_is_missing(facts):
    if facts["epsilon"] is None:
        text = (
            "Everything, as far as anybody can promise. The noise that should hide "
            "each contribution was seeded, depends on the data, or is not there: the "
            "assumptions below say which."
        )
    else:
        text = (
            "Everything, as far as anybody can promise. The classifier alone would be "
            f"{_exactly(facts)} if what is in front of it had seen public rows only."
        )
    return Section(_title(facts), [Text(text, warns=True)])


def _exactly(facts):
    return (
        f"(epsilon={epsilon_text(facts)}, delta={number_text(facts['delta'])})-"
        "differentially private"
    )


def _what_is_promised(facts):
    promise, blocks = facts["promise"], [Text(_guarantee(facts))]
    if promise["weak"]:
        blocks.append(Text(_weakness(promise), warns=True))
    blocks += [
        Text(
            "An attacker may prefer to be sure. Of 1000 claims that are false, they "
            "take some for true (false alarms); of 1000 that are true, they recognise "
            "at most so many (detections). If nothing were published, they would "
            "recognise as many as there are false alarms."
        ),
        Table(
            "What an attacker can recognise",
            ("False alarms allowed, of 1000", "Detections at most, of 1000"),
            tuple(
                (str(one["false_alarms"]), str(one["detected_at_most"]))
                for one in promise["detections"]
            ),
        ),
        Text(
            "These limits hold for every attacker, whatever they compute and whatever "
            "else they know: all other private data, the public rows, the code, every "
            "setting. They are averages over the noise, which nobody knows."
        ),
    ]
    return Section(_title(facts), blocks)


def _guarantee(facts):
    guesses = at_most(facts["promise"]["guesses"])
    delta = facts["delta"]
    text = (
        f"The fit is {_exactly(facts)}. That limits guesses: a fair coin chooses one "
        f"of two data sets that differ in {_unit_of(facts).one}, and an attacker "
        "who knows both sees what is published from it. They name the right one in "
        f"{guesses} cases; the coin alone gives {THOUSAND // 2}."
    )
    if delta:
        # Rounded down: a larger chance.
        one_in = f"{int(1 / Fraction(repr(delta))):,}"
        text += (
            f" Delta, a chance of at most 1 in {one_in}, is what epsilon does not "
            "cover; it is counted in."
        )
    return text


def _weakness(promise):
    once = promise["wrong_once_in"]
    often = "more than a million" if once is None else f"{once:,}"
    return (
        "This bound is weak: it allows an attacker who is wrong only once in "
        f"{often} guesses. The model may well give away far less than that, but "
        "nobody promises it."
    )


def _whom(facts):
    unit = _unit_of(facts)
    blocks = [
        Text(unit.what),
        Text(f"Exactly: what is hidden is this change of data: {facts['neighbours']}."),
    ]
    table = Table(
        f"What is promised to {unit.together}",
        (f"k {unit.several}", "epsilon", "delta", "Guesses right at most, of 1000"),
        tuple(_line_of_several(one) for one in facts["promise"]["several"]),
    )
    blocks.append(table)
    return Section("Whom the promise protects", blocks)


def _line_of_several(one):
    right = str(one["guesses"]["right_at_most"])
    if one["delta"] >= 1:
        return str(one["units"]), "no promise", "", right
    return str(one["units"]), f"{one['epsilon']:.3f}", number_text(one["delta"]), right


def _what_is_not_said(facts):
    return Section(
        "What the promise does not say",
        [
            Bullets(
                (
                    (
                        "Facts about people in general",
                        "That smoking harms is learned with or without any one person "
                        "in the data, and then holds for this person too. No privacy "
                        "method hides it.",
                    ),
                    ("Other releases", _other_releases(facts["costs"])),
                    ("What was done around the fit", _around(facts["kind"])),
                    *_public_rows(facts["kind"]),
                    (
                        "How good the model is",
                        "No promise covers scores on private rows. They stay inside.",
                    ),
                    (
                        "Side doors",
                        "How long the fit took, its logs, warnings and errors, files "
                        "that it kept to go on after a crash, and the machine it ran "
                        "on may tell something about private rows, too.",
                    ),
                )
            )
        ],
    )


def _other_releases(costs):
    two = costs["two_fits"]
    return (
        "Every release about the same rows adds to what an attacker learns. A ledger "
        "of all of them limits the sum. Two fits like this one together: "
        f"epsilon={two['epsilon']:.3f} at delta={number_text(two['delta'])}."
    )


def _around(kind):
    text = (
        "Whoever tries models, settings or columns on the private rows and keeps the "
        "best has learned from these rows once more. This page covers "
    )
    if kind == "search":
        return f"{text}the search that it names, and none around it."
    return f"{text}this fit alone, and no search or choice around it."


def _public_rows(kind):
    if kind == "learner":
        return ()
    return (("The public rows", "Nobody in them is protected."),)


def _not_covered(facts):
    text = (
        "These parts of the pipeline are in front of the private classifier. Unless "
        "they have seen public rows only, the promise does not hold."
    )
    items = tuple((one["name"], one["what"]) for one in facts["not_covered"])
    return Section("Not covered", [Text(text, warns=True), Bullets(items)])
