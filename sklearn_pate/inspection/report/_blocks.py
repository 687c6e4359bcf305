"""Blocks of a report: texts, lists, figures and their style."""

import textwrap
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from html import escape
from typing import Literal, NamedTuple, TypeAlias

from sklearn_pate.accounting._value_checks import counted

LIGHT = {
    "page": "#ffffff",
    "ink": "#1b1f24",
    "soft": "#57606a",
    "line": "#b6bec8",
    "stripe": "#f3f5f8",
    "link": "#0b57d0",
    "plain": "#e6eef9",
    "plain-ink": "#12294a",
    "bad": "#fdecd8",
    "bad-ink": "#5a3200",
    "banner": "#8b1a1a",
    "banner-ink": "#ffffff",
}
DARK = {
    "page": "#14171a",
    "ink": "#e6e8ea",
    "soft": "#a6adb5",
    "line": "#4d565f",
    "stripe": "#1f2429",
    "link": "#8ab4f8",
    "plain": "#1a2c45",
    "plain-ink": "#d6e4f8",
    "bad": "#402a0e",
    "bad-ink": "#ffdfb3",
    "banner": "#b3261e",
    "banner-ink": "#ffffff",
}
THOUSAND = 1000

# 60 digits, so that figures are rounded up correctly.
_EXACT = Context(prec=60)
#: Kinds of fits that differ in their data flow.
KINDS = (
    "teachers",
    "parties",
    "scores",
    "newton",
    "sums",
    "neighbours",
    "counts",
    "learner",
    "search",
)


def _variables(palette: dict[str, str]) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in palette.items())


STYLE = f"""\
:root{{color-scheme:light dark;{_variables(LIGHT)}}}
@media screen and (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}
*{{box-sizing:border-box}}
body{{margin:0 auto;padding:1.5rem 1.25rem 3rem;max-width:50rem;background:var(--page);
color:var(--ink);font:1rem/1.55 system-ui,-apple-system,"Segoe UI",sans-serif;
overflow-wrap:break-word}}
h1{{font-size:1.7rem;line-height:1.25;margin:.5rem 0}}
h2{{font-size:1.2rem;line-height:1.3;margin:2.2rem 0 .6rem;padding-top:.6rem;
border-top:1px solid var(--line)}}
p{{margin:.6rem 0}}
.meta,caption,figcaption{{color:var(--soft)}}
.banner{{margin:0 0 1rem;padding:.8rem 1rem;background:var(--banner);
color:var(--banner-ink);border-radius:4px}}
.conclusion{{font-size:1.1rem;padding:.8rem 1rem;border-radius:4px}}
.plain{{background:var(--plain);color:var(--plain-ink)}}
.bad,.warning{{background:var(--bad);color:var(--bad-ink)}}
.warning{{padding:.6rem 1rem;border-radius:4px}}
.gauge{{height:1.4rem;border:1px solid var(--ink);border-radius:4px}}
.gauge div{{height:100%;background:var(--soft)}}
.ends{{display:flex;justify-content:space-between;margin:.2rem 0;color:var(--soft)}}
.scroll{{overflow-x:auto;margin:1rem 0}}
table{{border-collapse:collapse;font-variant-numeric:tabular-nums}}
caption{{text-align:left;padding-bottom:.3rem}}
th,td{{text-align:left;vertical-align:top;padding:.3rem 1.2rem .3rem 0;
border-bottom:1px solid var(--line)}}
th{{font-weight:400}}
td:only-of-type{{overflow-wrap:anywhere}}
thead th{{font-weight:600;vertical-align:bottom}}
ul{{padding-left:1.2rem}}
li{{margin:.35rem 0}}
.checks{{list-style:none;padding:0}}
.checks li{{display:flex;gap:.7rem;margin:.6rem 0}}
.box{{flex:none;width:1rem;height:1rem;margin-top:.25rem;border:1.5px solid var(--ink)}}
.signatures{{width:100%}}
.signatures th:not(:last-child){{width:24%}}
.signatures tbody th,.signatures tbody td{{height:3.2rem;vertical-align:bottom}}
figure{{margin:1rem 0}}
figcaption{{margin-top:.4rem}}
.number{{white-space:nowrap}}
a{{color:var(--link)}}
@media (max-width:700px){{
th,td{{padding-right:.8rem}}
}}
@media print{{
@page{{size:A4;margin:12mm 15mm}}
html{{font-size:9pt}}
body{{max-width:none;padding:0;line-height:1.3}}
h2{{break-after:avoid;margin:.7rem 0 .3rem;padding-top:.3rem}}
p{{margin:.3rem 0}}
ul,.checks li,.scroll,figure{{margin-top:.3rem;margin-bottom:.3rem}}
li{{margin:.15rem 0}}
.signatures tbody th,.signatures tbody td{{height:2.6rem}}
p,li,tr,figure,table{{break-inside:avoid}}
th,td{{padding-top:.06rem;padding-bottom:.06rem}}
tbody th{{width:9rem}}
.signatures,.scroll:has(.signatures){{break-before:avoid}}
.long{{break-inside:auto}}
.new-page{{break-before:page}}
caption{{break-after:avoid}}
.banner,.conclusion,.warning{{border:1.5px solid}}
.banner,.conclusion,.warning,.gauge div{{print-color-adjust:exact;
-webkit-print-color-adjust:exact}}
.scroll{{overflow:visible}}
.scroll td{{overflow-wrap:anywhere;padding-right:.6rem}}
.scroll th{{padding-right:.6rem}}
a{{color:inherit}}
}}
"""

# A line on every printed page, in browsers that print text in margins.
INTERNAL_STYLE = """\
@media print{@page{@top-center{content:"INTERNAL: do not publish";font-weight:bold}}}
"""


def of_thousand(probability: float) -> int:
    """Express a probability as a number of a thousand cases, rounded up."""
    return int(round_up(THOUSAND * probability, 0))


def wrong_once_in(right: float) -> int | None:
    """Compute the number of guesses per wrong guess, None above one million."""
    wrong = 1 - right
    return None if wrong <= 1e-6 else int(round_up(1 / wrong, 0))


def two_digits_up(delta: float) -> float:
    """Round a delta up to two digits."""
    if delta == 0:
        return 0.0
    places = 1 - Decimal(f"{delta:.1e}").adjusted()
    return min(round_up(delta, places), 1.0)


def round_up(value: float, places: int) -> float:
    """Round up to decimal places, as privacy statements round epsilon.

    An excess of at most one billionth of the last place is dropped: floating-point
    arithmetic may have added it.
    """
    with localcontext(_EXACT):
        unit = Decimal(10) ** -places
        scaled = max(Decimal(value) / unit - Decimal("1e-9"), Decimal(0))
        return float(scaled.to_integral_value(rounding=ROUND_CEILING) * unit)


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
    mechanism: str | None = None,
    model: str | None = None,
) -> list[Step]:
    """List the steps of a fit of one of the KINDS, in order.

    `n_teachers` is a number of teachers, parties or neighbours, and `n_tables` one of
    columns whose noisy counts public rows are drawn from. Without numbers and names,
    the steps are those of any such fit.
    """
    only = "the only release" if n_tables is None else "the second release"
    teachers = "Many teachers" if n_teachers is None else counted(n_teachers, "teacher")
    of_model = f"{model}: " if model else ""
    to_queries = f"to {counted(n_queries, 'query')} " if n_queries else ""
    rows = Step(
        "private", "Private rows", f"split into shards; each {unit} is in one shard"
    )
    noise = Step(
        "noise",
        "Noise",
        mechanism or "added to each count; the largest noisy count is the answer",
    )
    answers = Step("public", "Answers", f"{to_queries}about public rows: {only}")
    student = Step(
        "public",
        "Student",
        f"{of_model}trained on answers and public rows, used to predict",
    )
    steps = {
        "teachers": [
            rows,
            Step("private", teachers, "each trained on one shard; they vote"),
            noise,
            answers,
            student,
        ],
        "parties": [
            Step("private", "Rows of each party", "never leave the party"),
            Step(
                "private",
                "Many parties" if n_teachers is None else counted(n_teachers, "party"),
                "each labels the public rows: its votes",
            ),
            noise,
            answers,
            student,
        ],
        "scores": [
            rows,
            Step(
                "private",
                teachers,
                "each trained on one shard; they send a score model each: "
                "coefficients of bounded length",
            ),
            Step("noise", "Noise", mechanism or "added to the sum of the coefficients"),
            Step("public", "Mean scores", only),
            Step(
                "public",
                "Student",
                f"{of_model}the mean score model or trained on it, used to predict",
            ),
        ],
        "newton": [
            Step("private", "Private rows", f"each {unit} is on its own"),
            Step(
                "private",
                "Clipped gradients",
                f"each {unit} contributes one vector of bounded length in each of "
                "three steps",
            ),
            Step("noise", "Noise", mechanism or "added to the sum of the vectors"),
            Step("public", "Noisy sums", f"one in each step: {only}"),
            Step(
                "public",
                "Model",
                f"{of_model}a logistic regression, computed from the noisy sums and "
                "public rows, used to predict",
            ),
        ],
        "sums": [
            rows,
            Step("private", teachers, "each computes one vector of bounded length"),
            Step("noise", "Noise", mechanism or "added once to the sum of the vectors"),
            Step("public", "Noisy sum", f"about public rows: {only}"),
            student,
        ],
        "neighbours": [
            Step("private", "Private rows", "no model is trained on them"),
            Step(
                "private",
                "Secret samples",
                "one for each query; its "
                f"{f'{n_teachers} ' if n_teachers else ''}nearest rows vote",
            ),
            noise,
            answers,
            student,
        ],
        "counts": [
            Step(
                "private",
                "Private rows",
                f"at most one value per column of each {unit} is counted",
            ),
            Step("noise", "Noise", mechanism or "added to each count"),
            Step("public", "Noisy counts", "of the values of each column, by class"),
            Step("public", "Model", f"{of_model}computed from the noisy counts"),
        ],
        "learner": [
            Step("private", "Private rows", "never leave the data holder"),
            Step(
                "noise",
                "Training with noise",
                mechanism or "hides the contribution of each row",
            ),
            Step("public", "Model", f"{of_model}used to predict"),
        ],
        "search": [
            Step("private", "Private rows", "some for fits, the others for scores"),
            Step("private", "Private fits", "their number is secret"),
            Step("noise", "Noisy scores", mechanism or "select the best fit"),
            Step(
                "public",
                "Best fit",
                f"{f'{model}, ' if model else ''}with its parameters; all other fits "
                "are deleted",
            ),
        ],
    }[kind]
    if n_tables is None:
        return steps
    counts = f"of the values in {counted(n_tables, 'column')}: the first release"
    use = "used" if kind == "newton" else "queried and learned from"
    drawn = f"drawn from the noisy counts; {use} as public rows"
    return [
        Step("private", "Private rows", f"each {unit} counts once in a column"),
        Step("noise", "Noisy counts", counts),
        Step("public", "Synthetic rows", drawn),
        *steps,
    ]


_ZONES = {"private": "Private", "noise": "Mechanism", "public": "Public"}


def data_flow_lines(steps: Sequence[Step]) -> list[str]:
    """Write each step as one sentence: the text alternative of the picture."""
    return [f"{_ZONES[one.zone]}. {one.title}: {one.text}." for one in steps]


FLOW_STYLE = """\
.flow-private{fill:#f9e4e0}.flow-noise{fill:#f5e6b8}.flow-public{fill:#dcecf7}
.flow-box{fill:#fff;stroke:#57606a}.flow-arrow{stroke:#1b1f24;fill:#1b1f24}
.flow{max-width:100%;height:auto}
.flow text{fill:#1b1f24;font:13px system-ui,-apple-system,"Segoe UI",sans-serif}
.flow .flow-title{font-weight:600}
@media screen and (prefers-color-scheme:dark){
.flow-private{fill:#4a2620}.flow-noise{fill:#4a3b10}.flow-public{fill:#173a52}
.flow-box{fill:#14171a;stroke:#a6adb5}.flow-arrow{stroke:#e6e8ea;fill:#e6e8ea}
.flow text{fill:#e6e8ea}}
"""
# Pixels: letters are 8 wide at most, on average of a line; each box has 26 above it
# (arrow, zone), and 8 below.
_WIDTH, _LETTER, _LINE, _ABOVE, _BELOW = 440, 8, 17, 26, 8


def draw_data_flow(steps: Sequence[Step]) -> str:
    """Draw the steps as one SVG element: a column of boxes on the colour of their zone.

    It has colours for light and dark pages and a text alternative, and loads nothing.
    """
    drawn, y = [], 0
    for number, step in enumerate(steps):
        lines = textwrap.wrap(step.text, (_WIDTH - 40) // _LETTER)
        height = _LINE * (1 + len(lines)) + 11
        box, middle = y + _ABOVE, _WIDTH // 2
        drawn.append(
            f'<rect class="flow-{step.zone}" x="0" y="{y}" width="{_WIDTH}" '
            f'height="{_ABOVE + height + _BELOW}"/><rect class="flow-box" x="10" '
            f'y="{box}" width="{_WIDTH - 20}" height="{height}" rx="4"/>'
        )
        if number == 0 or step.zone != steps[number - 1].zone:
            drawn.append(_text(10, y + 18, _ZONES[step.zone].upper()))
        if number:
            drawn.append(
                f'<path class="flow-arrow" d="M{middle} {y - _BELOW + 2}V{box - 8}'
                'm-4 0h8l-4 7z"/>'
            )
        drawn.append(_text(20, box + _LINE, step.title, ' class="flow-title"'))
        for place, line in enumerate(lines, 2):
            drawn.append(_text(20, box + place * _LINE, line))
        y += _ABOVE + height + _BELOW
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="flow" role="img" '
        f'width="{_WIDTH}" height="{y}" viewBox="0 0 {_WIDTH} {y}" '
        'aria-labelledby="flow-title flow-desc"><title id="flow-title">Data flow'
        f'</title><desc id="flow-desc">{escape(" ".join(data_flow_lines(steps)))}'
        f"</desc><style>{FLOW_STYLE}</style>{''.join(drawn)}</svg>"
    )


def _text(x: int, y: int, text: str, attributes: str = "") -> str:
    return f'<text x="{x}" y="{y}"{attributes}>{escape(text)}</text>'


class Text(NamedTuple):
    """Paragraph, highlighted if it is a warning."""

    text: str
    is_warning: bool = False


class Bullets(NamedTuple):
    """List of (subject, text) pairs; a text may be empty."""

    items: tuple[tuple[str, str], ...]


class Checks(NamedTuple):
    """Check list of (statement to confirm, question) pairs."""

    items: tuple[tuple[str, str], ...]


class Table(NamedTuple):
    """Table whose first column holds the names of its rows."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Signatures(NamedTuple):
    """Lines to sign, one per role."""

    roles: tuple[str, ...]


class Picture(NamedTuple):
    """Picture of the data flow."""

    steps: list[Step]
    caption: str


class Sources(NamedTuple):
    """List of (reference, address) pairs."""

    items: tuple[tuple[str, str], ...]


Block: TypeAlias = Text | Bullets | Checks | Table | Signatures | Picture | Sources


class Section(NamedTuple):
    """Titled part of the report, on a new printed page if it starts one."""

    title: str
    blocks: list[Block]
    starts_page: bool = False
