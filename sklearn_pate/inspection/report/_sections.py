"""Sections of a report, from blocks of text, lists and pictures."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from html import escape
from typing import Any, Literal, NamedTuple, TypeAlias

from sklearn_pate.accounting._ledger import WHY_SHARES
from sklearn_pate.accounting._statement import (
    HEADINGS,
    HELD_OUT_ROWS,
    PUBLIC_REPRESENTATION,
    PUBLIC_ROWS,
    ROW_BY_ROW,
    Assumption,
    risk_of,
    round_up,
    sentences_of,
    write_epsilon,
)
from sklearn_pate.accounting._value_checks import (
    capitalised,
    counted,
    printable,
    read_table,
    read_text,
)
from sklearn_pate.metrics._results import ReleasedMetrics, with_part

_HERE = "sklearn_pate.inspection.report"
TEXTS = read_table(_HERE, "texts.toml")
PAGE = read_text(_HERE, "page.html")
STYLE, FLOW_STYLE = read_text(_HERE, "style.css"), read_text(_HERE, "flow.css")
#: Heading and question of each field of a Deployment.
QUESTIONS: dict[str, list[str]] = TEXTS["question"]
#: Kinds of fits that differ in their data flow.
KINDS = tuple(TEXTS["flow"])

# A line on every printed page, in browsers that print text in margins.
MARKED_STYLE = """\
@media print{{@page{{@top-center{{content:"{}: do not publish";font-weight:bold}}}}}}
"""
_ZONES = {"private": "Private", "noise": "Mechanism", "public": "Public"}
# Pixels: letters are 8 wide at most, on average of a line; each box has 26 above it
# (arrow, zone), and 8 below.
WIDTH, _LETTER, _LINE, _ABOVE, _BELOW = 440, 8, 17, 26, 8
# Subgroups in a table of metrics.
_MOST_COLUMNS = 3
_COUNTED = {"parties": "Parties", "neighbours": "Neighbours that vote"}
# Fields of a Deployment at the top.
_ON_TOP = ("name", "prediction", "intended_use", "description", "one_row")
_ASKED: dict[str, list[str]] = QUESTIONS | TEXTS["question_of"]


def two_digits_up(delta: float) -> float:
    """Round a delta up to two digits."""
    if delta == 0:
        return 0.0
    places = 1 - Decimal(f"{delta:.1e}").adjusted()
    return min(round_up(delta, places), 1.0)


class Step(NamedTuple):
    """Step of the data flow, in the zone of those who may see its data."""

    zone: Literal["private", "noise", "public"]
    title: str
    text: str


def flow_of(
    kind: str,
    *,
    unit: str = "row",
    n_teachers: int | None = None,
    n_queries: int | None = None,
    n_tables: int | None = None,
    n_coded: int | None = None,
    class_count: bool = False,
    mechanism: str | None = None,
    model: str | None = None,
    measured: bool = False,
) -> list[Step]:
    """List the steps of a fit of one of the KINDS, in order.

    `n_teachers` is a number of teachers, parties or neighbours, and `n_tables` one of
    columns whose noisy counts public rows are drawn from. `n_coded` is one of columns
    whose codes are counted. With a `class_count`, units are counted by class, too. A
    `measured` model has metrics. Without numbers and names, the steps are those of any
    such fit.
    """
    only = "the first release" if measured else "the only release"
    words = {
        "unit": unit,
        "teachers": _counted_or_many(n_teachers, "teacher", "teachers"),
        "parties": _counted_or_many(n_teachers, "party", "parties"),
        "nearest": counted(n_teachers, "nearest row") if n_teachers else "nearest rows",
        "to_queries": f"to {counted(n_queries, 'query')} " if n_queries else "",
        "only": "the second release" if n_tables or n_coded else only,
        "class_count": "a count of each class, and to " if class_count else "",
        "shares": ", and shares of the classes" if class_count else "",
        "model": f"{model}: " if model else "",
        "best": f"{model}, " if model else "",
        "columns": counted(n_tables or n_coded, "column"),
        "use": "used" if kind == "newton" else "queried and learned from",
    }
    before = TEXTS["synthetic"]["flow"] if n_tables else ()
    if n_coded:
        before = TEXTS["codes"]["flow"]
    steps = [Step(*(part.format(**words) for part in step)) for step in before]
    for zone, title, text in TEXTS["flow"][kind]:
        text = mechanism if zone == "noise" and mechanism else text.format(**words)
        steps.append(Step(zone, title.format(**words), text))
    if measured:
        steps += [Step(*step) for step in TEXTS["measured"]["flow"]]
    return steps


def _counted_or_many(number: int | None, one: str, several: str) -> str:
    return f"Many {several}" if number is None else counted(number, one)


def data_flow_lines(steps: Sequence[Step]) -> list[str]:
    """Write each step as one sentence: the text alternative of the picture."""
    return [f"{_ZONES[one.zone]}. {one.title}: {one.text}." for one in steps]


def draw_data_flow(steps: Sequence[Step]) -> str:
    """Draw the steps as one SVG element: a column of boxes on the colour of their zone.

    It has colours for light and dark pages and a text alternative, and loads nothing.
    """
    drawn, y = [], 0
    for number, step in enumerate(steps):
        lines = textwrap.wrap(step.text, (WIDTH - 40) // _LETTER)
        height = _LINE * (1 + len(lines)) + 11
        box, middle = y + _ABOVE, WIDTH // 2
        drawn.append(
            f'<rect class="flow-{step.zone}" x="0" y="{y}" width="{WIDTH}" '
            f'height="{_ABOVE + height + _BELOW}"/><rect class="flow-box" x="10" '
            f'y="{box}" width="{WIDTH - 20}" height="{height}" rx="4"/>'
        )
        if number == 0 or step.zone != steps[number - 1].zone:
            drawn.append(svg_text(10, y + 18, _ZONES[step.zone].upper()))
        if number:
            drawn.append(svg_arrow(middle, y - _BELOW + 2, box - 1))
        drawn.append(svg_text(20, box + _LINE, step.title, bold=True))
        for place, line in enumerate(lines, 2):
            drawn.append(svg_text(20, box + place * _LINE, line))
        y += _ABOVE + height + _BELOW
    return svg_picture("Data flow", " ".join(data_flow_lines(steps)), y, drawn)


def draw_bars(bars: Sequence[tuple[str, float]]) -> str:
    """Draw a bar below each name, as long as its value."""
    longest = max(value for _, value in bars) or 1.0
    drawn = []
    for place, (name, value) in enumerate(bars):
        y, width = 2 * _ABOVE * place, round(WIDTH * value / longest)
        line = textwrap.shorten(name, WIDTH // _LETTER - 12, placeholder=" ...")
        drawn.append(svg_text(0, y + _LINE, f"{line}: {value:.3g}"))
        drawn.append(
            f'<rect class="flow-bar" x="0" y="{y + _ABOVE}" width="{width}" '
            'height="12"/>'
        )
    text = "; ".join(f"{name}: {value:.3g}" for name, value in bars)
    return svg_picture("Importance", text, 2 * _ABOVE * len(bars), drawn)


def svg_text(x: int, y: int, text: str, *, bold: bool = False) -> str:
    """Write a line of text."""
    title = ' class="flow-title"' if bold else ""
    return f'<text x="{x}" y="{y}"{title}>{escape(text)}</text>'


def svg_arrow(x: int, top: int, bottom: int) -> str:
    """Draw an arrow down."""
    return f'<path class="flow-arrow" d="M{x} {top}V{bottom - 7}m-4 0h8l-4 7z"/>'


def svg_picture(title: str, description: str, height: int, parts: Iterable[str]) -> str:
    """Return an SVG element of the width of a data flow, with a text alternative."""
    name = re.sub(r"\W+", "-", title.lower())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="flow" role="img" '
        f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-desc">{escape(description)}</desc>'
        f"<style>{FLOW_STYLE}</style>{''.join(parts)}</svg>"
    )


class Text(NamedTuple):
    """Paragraph, highlighted if it is a warning."""

    text: str
    is_warning: bool = False


class Bullets(NamedTuple):
    """List of (subject, text) pairs, perhaps to be ticked; a text may be empty."""

    items: tuple[tuple[str, str], ...]
    to_tick: bool = False


class Table(NamedTuple):
    """Table whose first column holds the names of its rows, perhaps to be signed."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    to_sign: bool = False


class Picture(NamedTuple):
    """Picture of the data flow."""

    steps: list[Step]
    caption: str


class Bars(NamedTuple):
    """Bars of (name, value) pairs."""

    bars: tuple[tuple[str, float], ...]
    caption: str


class Sources(NamedTuple):
    """List of (reference, address) pairs."""

    items: tuple[tuple[str, str], ...]


Block: TypeAlias = Text | Bullets | Table | Picture | Bars | Sources


class Section(NamedTuple):
    """Titled part of the report, with the class of its element on printed pages."""

    title: str
    blocks: list[Block]
    printed: Literal["", "new-page", "together"] = ""


def sections_of(facts: dict[str, Any]) -> list[Section]:
    """Write all sections in order, as plain text that is not escaped yet."""
    sections = [_model_and_data(facts)]
    if facts["private"]:
        sections += [_protection(facts), _unit_of_privacy(facts), _limits(facts)]
        sections += [_wrong_assumptions(facts), _for_signers(facts)]
    else:
        sections.append(_no_protection(facts))
        if facts["not_covered"]:
            sections.append(_not_covered(facts))
    sections += _responsibilities(facts)
    has_evidence = (
        facts["quality"] is not None
        or facts["metrics"] is not None
        or "audits" in facts["deployment"]
    )
    if facts["private"] or has_evidence:
        sections.append(_evidence(facts))
    if facts["importance"] is not None:
        sections.append(_importance(facts["importance"]))
    return [*sections, *_assumptions(facts), *_appendix(facts)]


def conclusion_of(facts: dict[str, Any]) -> str:
    """Summarise the guarantee in a few sentences."""
    if facts["epsilon"] is None:
        return _words("conclusion of no guarantee")
    if not facts["private"]:
        names = ", ".join(one["name"] for one in facts["not_covered"])
        return _words("conclusion of a pipeline", names=names)
    promise = facts["promise"]
    risk = risk_of(
        facts["unit"],
        facts["relation"],
        promise["guesses"]["right_at_most"],
        "fit" if facts["metrics"] is None else "measured",
        facts["deployment"].get("unit_name"),
    )
    return f"This guarantee is weak. {risk}" if promise["weak"] else risk


def banners_of(facts: dict[str, Any]) -> dict[str, str]:
    """Write the warnings at the top of an internal report and of a draft."""
    banners = {}
    if facts["internal"]:
        why = ", and ".join(facts["internal_because"])
        banners["INTERNAL"] = _words("internal", why=why)
    if facts["to_fill_in"]:
        missing = ", ".join(_ASKED[name][0] for name in facts["to_fill_in"])
        banners["DRAFT"] = _words("draft", missing=missing)
    return banners


def head_of(facts: dict[str, Any]) -> str:
    """Write the line below the title: controller, date and publication."""
    controller = _line(facts, "controller")
    named = f"{': '.join(controller)}. " if controller else ""
    return f"{named}Privacy report, written on {facts['date']}. " + _published(facts)


def _published(facts: dict[str, Any]) -> str:
    if facts["internal"]:
        return "For the data holder only."
    if facts["to_fill_in"]:
        return "To be published when it is complete."
    if facts["private"]:
        return "May be published with the model."
    return "This page may be published. The model may not."


def at_most(guesses: Mapping[str, int]) -> str:
    """Write the largest number of right guesses."""
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


def _is_hidden(one: Mapping[str, float | None]) -> bool:
    return one["value"] is None or (one["low"], one["high"]) == (0, 1)


def estimate_text(one: Mapping[str, float | None]) -> str:
    """Write an estimate with its interval, which is 0 to 1 where the noise hides it."""
    if _is_hidden(one):
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
        named |= {
            with_part(text, printable(label)): inner
            for label, inner in of_class.items()
        }
        if "low" in one:
            named[text] = one
    return named


def missing_in(
    deployment: dict[str, Any],
    quality: dict[str, Any] | None = None,
    metrics: ReleasedMetrics | None = None,
) -> list[str]:
    """List what a report asks for and is not given: fields, figures of quality."""
    missing = [name for name in TEXTS["asked"] if name not in deployment]
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
        f"{question} Otherwise, the guarantee for this {unit_name} is weaker: see the "
        "table.",
    )


def sources_of(facts: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """List references and their addresses for the mechanism of a fit."""
    kind = facts["kind"]
    if kind == "learner":
        codes = {one["code"] for one in facts["assumptions"]}
        kind = "steps" if ROW_BY_ROW.code in codes else "objective"
    names = [*TEXTS["references"]["every"], *TEXTS["references"][kind]]
    papers = [TEXTS["papers"][name] for name in names]
    return tuple((one["reference"], one["address"]) for one in papers)


def _words(paragraph: str, /, **words: object) -> str:
    """Fill in the words of a paragraph."""
    return TEXTS["paragraphs"][paragraph].format(**words)


def _text(paragraph: str, /, *, is_warning: bool = False, **words: object) -> Text:
    """Return a paragraph with its words."""
    return Text(_words(paragraph, **words), is_warning)


def _table(name: str, rows: Iterable[tuple[str, ...]], **words: object) -> Table:
    """Return a table with its caption and heads."""
    caption, *head = (text.format(**words) for text in TEXTS["table"][name])
    return Table(caption, tuple(head), tuple(rows))


def _model(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts about the fit of the model, without its metrics."""
    return facts if facts["model_alone"] is None else facts["model_alone"]


def _title(facts: dict[str, Any]) -> str:
    name = facts["deployment"].get("unit_name", facts["unit"])
    return f"Protection of one {name}"


def _private(cost: Mapping[str, Any]) -> str:
    """Write the cost of a fit, of metrics, or of both as an adjective."""
    pair = f"epsilon={epsilon_text(cost)}, delta={number_text(cost['delta'])}"
    return f"({pair})-differentially private"


def _no_protection(facts: dict[str, Any]) -> Section:
    name = "void" if facts["epsilon"] is None else "classifier alone"
    text = _text(name, is_warning=True, private=_private(_model(facts)))
    return Section(_title(facts), [text])


def _not_covered(facts: dict[str, Any]) -> Section:
    items = tuple((one["name"], one["what"]) for one in facts["not_covered"])
    text = _text("not covered", is_warning=True)
    return Section("Parts without a guarantee", [text, Bullets(items)])


def _model_and_data(facts: dict[str, Any]) -> Section:
    """Write the purpose of the model, its data, and public rows in its file."""
    codes = {one["code"] for one in facts["assumptions"]}
    holds, n_tables = "perhaps rows in the model", _model(facts)["n_tables"]
    if n_tables:
        holds = "synthetic rows"
    elif codes.isdisjoint((PUBLIC_ROWS.code, HELD_OUT_ROWS.code)):
        holds = "no public rows"
    # Another representation holds whatever its fit keeps.
    elif facts["model"] == "ScoreFunction" and PUBLIC_REPRESENTATION.code not in codes:
        holds = "no rows in the model"
    text = _words(holds, columns=counted(n_tables or 0, "column"))
    lines = [*filter(None, (_line(facts, name) for name in _ON_TOP))]
    table = _table("model", [*lines, ("Public rows", text)])
    return Section("Model and data", [table])


def _protection(facts: dict[str, Any]) -> Section:
    guarantee = _words("guarantee", cost=_private(facts))
    if facts["delta"]:
        one_in = int(1 / Fraction(repr(facts["delta"])))  # down: a larger probability
        guarantee += f" {_words('delta', one_in=one_in)}"
    # The bound is compared with examples that everybody can compute.
    guesses = facts["promise"]["guesses"]
    examples = [(int(number), text) for number, text in TEXTS["examples"].items()]
    of_this = (guesses["right_at_most"], "This publication, at most")
    lines = sorted([*examples, of_this], key=lambda line: line[0])
    rows = ((str(number), text) for number, text in lines)
    table = _table("comparison", rows, of=guesses["of"])
    return Section(_title(facts), [Text(guarantee), table])


def _unit_of_privacy(facts: dict[str, Any]) -> Section:
    unit = TEXTS["unit"][facts["unit"]]
    text = unit["text"]
    if facts["relation"] == "add-remove":
        text += f" {_words('add-remove', unit=facts['unit'])}"
    rows = map(_line_of_several, facts["promise"]["several"])
    change = f"The guarantee hides one change: {facts['neighbours']}."
    table = _table("several", rows, **unit)
    return Section("Unit of privacy", [Text(text), Text(change), table])


def _line_of_several(one: dict[str, Any]) -> tuple[str, str, str, str]:
    right = str(one["guesses"]["right_at_most"])
    if one["delta"] >= 1:
        return str(one["units"]), "no guarantee", "", right
    return str(one["units"]), f"{one['epsilon']:.3f}", number_text(one["delta"]), right


def _limits(facts: dict[str, Any]) -> Section:
    kind, two = facts["kind"], facts["costs"]["two"]
    n_tables = _model(facts)["n_tables"]
    has_public_rows = kind not in ("counts", "learner") and n_tables is None
    metrics = "" if facts["metrics"] is None else " with its metrics"
    words = {
        "epsilon": f"{two['epsilon']:.3f}",
        "delta": number_text(two["delta"]),
        "guesses": at_most(two["guesses"]),
        "covered": _words("search" if kind == "search" else "fit", metrics=metrics),
    }
    items = tuple(
        (subject, text.format(**words))
        for subject, text in TEXTS["limits"].items()
        if has_public_rows or subject != "Public rows"
    )
    return Section("Limits of the guarantee", [Bullets(items)])


def _wrong_assumptions(facts: dict[str, Any]) -> Section:
    """Write the guarantee that is left if one assumption is false."""
    codes = [one["code"] for one in facts["assumptions"]]
    two = next(one for one in facts["promise"]["several"] if one["units"] == 2)
    _, epsilon, delta, right = _line_of_several(two)
    for_two = f"epsilon={epsilon}, delta={delta}" if delta else epsilon
    none_right = str(facts["promise"]["guesses"]["of"])
    rows = []
    for code, (wrong, left) in TEXTS["wrong"].items():
        if code in (facts["unit"], *codes):
            is_for_two = left == "for two"
            text = for_two if is_for_two else left
            rows.append((wrong, text, right if is_for_two else none_right))
    text = _text("wrong", unit=facts["unit"])
    return Section("Cost of a wrong assumption", [text, _table("wrong", rows)])


def _for_signers(facts: dict[str, Any]) -> Section:
    """Answer questions of a data protection officer, with the numbers of this page."""
    guesses, several = facts["promise"]["guesses"], facts["promise"]["several"]
    words = {
        "unit": facts["unit"],
        "guesses": at_most(guesses),
        "ten": at_most(several[-1]["guesses"]),
        "k": several[-1]["units"],
        "plural": TEXTS["unit"][facts["unit"]]["plural"],
        "two": f"{facts['costs']['two']['epsilon']:.3f}",
    }
    items = ((name, text.format(**words)) for name, text in TEXTS["signers"].items())
    blocks: list[Block] = [Bullets(tuple(items)), _text("no legal advice")]
    return Section("Questions of a data protection officer", blocks)


def _responsibilities(facts: dict[str, Any]) -> list[Section]:
    """Write the rest of the description by people, with lines to fill in."""
    others = [name for name in QUESTIONS if name not in (*_ON_TOP, "audits")]
    table = _table("description", filter(None, (_line(facts, one) for one in others)))
    return [Section("Responsibilities", [table])] if table.rows else []


def _line(facts: dict[str, Any], name: str) -> tuple[str, str] | None:
    """Write a field that is given, or asked for."""
    heading, question = _ASKED[name]
    if name in facts["deployment"]:
        value = facts["deployment"][name]
        text = "; ".join(value) if isinstance(value, list) else str(value)
        of_outcome = _outcome(facts["outcome"]) if name == "prediction" else None
        return heading, f"{text} ({of_outcome})" if of_outcome else text
    return (heading, f"to fill in: {question}") if name in facts["to_fill_in"] else None


def _evidence(facts: dict[str, Any]) -> Section:
    """Write audits, figures of quality and metrics, with lines to fill in."""
    quality = facts["quality"]
    figures = {} if quality is None else quality["figures"]
    rows = [(name, figure_text(one)) for name, one in figures.items()]
    rows = [*filter(None, (_line(facts, "audits"), *rows, _line(facts, "quality")))]
    blocks: list[Block] = [_table("evidence", rows)] if rows else []
    if quality is not None:
        kind = "public" if quality["public"] else "private"
        on = quality["evaluated_on"]
        blocks.append(_text("figures", kind=kind, evaluated_on=on))
        if not quality["public"]:
            blocks.append(_text("no guarantee of figures", is_warning=True))
    return Section("Evidence", [*blocks, *_metrics(facts)])


def _importance(importance: dict[str, Any]) -> Section:
    """Draw how much each column changes predictions."""
    bars = tuple((one["name"], one["change"]) for one in importance["columns"])
    caption = _words(
        "importance",
        n_shown=len(bars),
        columns=counted(importance["n_columns"], "column"),
    )
    text = _text("uses", change=_words(f"change of {importance['of']}"))
    return Section("What the model uses", [text, Bars(bars, caption)])


def _metrics(facts: dict[str, Any]) -> list[Block]:
    """Write private metrics, by subgroup, with their cost as a part of the whole."""
    metrics = facts["metrics"]
    if metrics is None:
        return []
    caption, *head = TEXTS["table"]["metrics"]
    classes = metrics["classes"]
    if classes is not None and len(classes) == 2:
        caption += f"; a positive row has the label {printable(classes[1])}"
    named = named_estimates(metrics["figures"]).items()
    rows = ((capitalised(name), *_estimate(name, one)) for name, one in named)
    cost = _text(
        "metrics",
        metrics=_private(metrics),
        model=_private(_model(facts)),
        how=_words("larger" if metrics["apart"] else "sum"),
        whole=_private(facts),
    )
    of_all = Table(caption, tuple(head), tuple(rows))
    return [of_all, *_subgroups(metrics["by_subgroup"]), cost]


def _subgroups(by_subgroup: list[dict[str, Any]]) -> Iterator[Block]:
    """Write metrics by subgroup, but for subgroups without a metric that is known."""
    named = {one["subgroup"]: named_estimates(one["figures"]) for one in by_subgroup}
    hidden = [name for name, of in named.items() if all(map(_is_hidden, of.values()))]
    shown = [name for name in named if name not in hidden]
    for start in range(0, len(shown), _MOST_COLUMNS):
        names = shown[start : start + _MOST_COLUMNS]
        rows = [
            (capitalised(metric), *(estimate_text(named[one][metric]) for one in names))
            for metric in named[names[0]]
        ]
        yield _table("subgroups", rows)._replace(head=("Metric", *names))
    if hidden:
        yield _text("hidden", subgroups=", ".join(hidden))


def _estimate(name: str, one: Mapping[str, float | None]) -> tuple[str, str, str]:
    """Write an estimate, its interval and the meaning of the metric."""
    meaning = TEXTS["meaning"].get(name.partition(" of ")[0], "")
    if _is_hidden(one):
        return estimate_text(one), "", meaning
    interval = f"{one['low']:.3f} to {one['high']:.3f}"
    return f"{one['value']:.3f}", interval, meaning


def _assumptions(facts: dict[str, Any]) -> list[Section]:
    """Write the assumptions, those of the engineer apart, with lines to sign."""
    lines: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
    for one in facts["assumptions"]:
        question = one["question"] if facts["private"] else ""
        engineer = facts["private"] and one["for_engineer"]
        lines[engineer].append((capitalised(one["sentence"]), question))
    if not facts["private"]:
        bullets = Bullets(tuple(lines[False]))
        return [Section("Assumptions", [_text("of no guarantee"), bullets])]
    sections = []
    for is_engineer, texts in zip((True, False), TEXTS["signed"].values(), strict=True):
        if not lines[is_engineer]:
            continue
        blocks: list[Block] = [
            Text(texts["text"]),
            Bullets(tuple(lines[is_engineer]), to_tick=True),
        ]
        if facts["model_file"] is not None:
            date = facts["published"]
            when = "" if date is None else f", published on {date}"
            blocks.append(_text("signed file", when=when, **facts["model_file"]))
        rows = tuple((role, "", "", "") for role in texts["roles"])
        blocks.append(Table("Confirmed by", tuple(TEXTS["sign"]), rows, to_sign=True))
        sections.append(Section(texts["title"], blocks, "together"))
    return sections


def _appendix(facts: dict[str, Any]) -> list[Section]:
    """Write the sections for readers who check the statement."""
    sections = [
        Section("Appendix", [_text("appendix")], "new-page"),
        _method(facts),
    ]
    if facts["private"]:
        detections = facts["promise"]["detections"]
        names = ("false_alarms", "detected_at_most")
        rows = (tuple(str(one[name]) for name in names) for one in detections)
        texts = [_text("attackers"), _text("certainty")]
        sections.append(Section("Attackers", [*texts, _table("detections", rows)]))
    if facts["costs"] is not None:
        sections.append(_costs(facts))
    if facts["private"]:
        words = sentences_of(facts["facts"]).items()
        named = {HEADINGS[name]: text for name, text in words}
        if facts["metrics"] is not None:
            named["Model alone"] = facts["model_alone"]["statement"]
            named["Metrics alone"] = facts["metrics"]["statement"]
        sections.append(Section("Statement", [_table("facts", named.items())]))
    sections.append(_parameters(facts))
    if facts["ledger"] is not None:
        sections.append(_ledger(facts["ledger"]))
    proofs, section = _words("proofs"), TEXTS["proofs"].get(facts["kind"])
    if section is not None:
        proofs += f', in its section "{section}"'
    return [
        *sections,
        Section("Versions", [_table("packages", facts["versions"].items())]),
        Section("References", [Text(f"{proofs}."), Sources(sources_of(facts))]),
    ]


def _method(facts: dict[str, Any]) -> Section:
    kind, unit = facts["kind"], facts["unit"]
    numbers = "n_teachers", "n_queries", "n_tables", "n_coded", "class_count"
    names = "unit", *numbers, "mechanism", "model"
    fit = facts | _model(facts)
    measured = facts["metrics"] is not None
    steps = flow_of(kind, **{name: fit[name] for name in names}, measured=measured)
    n_columns = fit["n_tables"] or fit["n_coded"]
    method, columns = TEXTS["method"][kind], counted(n_columns, "column")
    for name, has in (
        ("synthetic", fit["n_tables"]),
        ("codes", fit["n_coded"]),
        ("class count", fit["class_count"]),
    ):
        if has:
            method = f"{TEXTS[name]['method']} {method}"
    if measured:
        method += f" {TEXTS['measured']['method']}"
    text = Text(method.format(unit=unit, columns=columns))
    if not facts["private"]:
        text = _text("despite the steps", is_warning=True)
    return Section("Method", [text, Picture(steps, _words("flow"))])


def _costs(facts: dict[str, Any]) -> Section:
    costs = facts["costs"]
    rows = (
        (
            f"{one['epsilon']:.3f}",
            number_text(one["delta"]),
            "as stated" if one["stated"] else "",
        )
        for one in costs["pairs"]
    )
    text = _text("profile", unit=facts["unit"])
    return Section("Privacy cost", [text, _table("profile", rows)])


def _parameters(facts: dict[str, Any]) -> Section:
    alone = facts["not_covered"] and facts["epsilon"] is not None
    of_what = ", of the classifier without the steps in front of it" if alone else ""
    fit, metrics = _model(facts), facts["metrics"]
    parts = {} if metrics is None else {"the model": fit, "the metrics": metrics}
    file = facts["model_file"] or {"name": None, "sha256": None}
    named = {
        "Model file": file["name"],
        "sha256 of the model file": file["sha256"],
        "Published on": facts["published"],
        "Classifier": facts["classifier"],
        "Predicting model": facts["model"],
        "Mechanism": facts["mechanism"],
        _COUNTED.get(facts["kind"], "Teachers"): fit["n_teachers"],
        "Queries": fit["n_queries"],
        "Columns that are counted": fit["n_tables"] or fit["n_coded"],
        "Unit": facts["unit"],
        "Neighbour relation": facts["relation"],
        "epsilon": epsilon_text(facts) + of_what,
        "delta": number_text(facts["delta"]),
        **{
            f"epsilon of {part} alone": epsilon_text(one) for part, one in parts.items()
        },
        "Outcome": _outcome(facts["outcome"]),
        "Classes": facts["n_classes"],
        "Features": facts["n_features"],
    }
    rows = ((name, str(one)) for name, one in named.items() if one is not None)
    return Section("Parameters", [_table("parameters", rows)])


def _outcome(outcome: dict[str, Any] | None) -> str | None:
    """Describe the range of a number or a time that is predicted, None for a class."""
    if outcome is None:
        return None
    edges = outcome["edges"]
    range_of = f"from {edges[0]:g} to {edges[-1]:g}, in {len(edges) - 1}"
    if outcome["kind"] == "number":
        return f"a number {range_of} bins"
    return f"the time until an event, {range_of} intervals"


def _ledger(ledger: dict[str, Any]) -> Section:
    entries = ledger["entries"]
    text = _text(
        "ledger",
        epsilon=number_text(ledger["epsilon"]),
        delta=number_text(ledger["delta"]),
        guesses=at_most(ledger["guesses"]),
        spent=f"{ledger['spent']:.2%}",
        entries=counted(len(entries), "entry"),
        shares=WHY_SHARES,
    )
    rows = (
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
    table = [_table("ledger", rows, created=ledger["created"])] if entries else []
    return Section("Privacy ledger", [text, *table])
