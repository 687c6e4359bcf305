"""Blocks of a report: texts, lists, figures and their style."""

import textwrap
from collections.abc import Iterable, Sequence
from decimal import Decimal
from html import escape
from typing import Literal, NamedTuple, TypeAlias

from sklearn_pate.accounting._statement import round_up
from sklearn_pate.accounting._value_checks import counted, read_table, read_text

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
    mechanism: str | None = None,
    model: str | None = None,
    measured: bool = False,
) -> list[Step]:
    """List the steps of a fit of one of the KINDS, in order.

    `n_teachers` is a number of teachers, parties or neighbours, and `n_tables` one of
    columns whose noisy counts public rows are drawn from. A `measured` model has
    metrics. Without numbers and names, the steps are those of any such fit.
    """
    only = "the first release" if measured else "the only release"
    words = {
        "unit": unit,
        "teachers": _counted_or_many(n_teachers, "teacher", "teachers"),
        "parties": _counted_or_many(n_teachers, "party", "parties"),
        "nearest": counted(n_teachers, "nearest row") if n_teachers else "nearest rows",
        "to_queries": f"to {counted(n_queries, 'query')} " if n_queries else "",
        "only": only if n_tables is None else "the second release",
        "model": f"{model}: " if model else "",
        "best": f"{model}, " if model else "",
        "columns": counted(n_tables, "column"),
        "use": "used" if kind == "newton" else "queried and learned from",
    }
    before = [] if n_tables is None else TEXTS["synthetic"]["flow"]
    steps = [Step(*(part.format(**words) for part in step)) for step in before]
    for zone, title, text in TEXTS["flow"][kind]:
        text = mechanism if zone == "noise" and mechanism else text.format(**words)
        steps.append(Step(zone, title.format(**words), text))
    if measured:
        steps += [Step(*step) for step in TEXTS["measured"]["flow"]]
    return steps


def _counted_or_many(number: int | None, one: str, several: str) -> str:
    return f"Many {several}" if number is None else counted(number, one)


_ZONES = {"private": "Private", "noise": "Mechanism", "public": "Public"}


def data_flow_lines(steps: Sequence[Step]) -> list[str]:
    """Write each step as one sentence: the text alternative of the picture."""
    return [f"{_ZONES[one.zone]}. {one.title}: {one.text}." for one in steps]


# Pixels: letters are 8 wide at most, on average of a line; each box has 26 above it
# (arrow, zone), and 8 below.
WIDTH, _LETTER, _LINE, _ABOVE, _BELOW = 440, 8, 17, 26, 8


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


def svg_text(x: int, y: int, text: str, *, bold: bool = False) -> str:
    """Write a line of text."""
    title = ' class="flow-title"' if bold else ""
    return f'<text x="{x}" y="{y}"{title}>{escape(text)}</text>'


def svg_arrow(x: int, top: int, bottom: int) -> str:
    """Draw an arrow down."""
    return f'<path class="flow-arrow" d="M{x} {top}V{bottom - 7}m-4 0h8l-4 7z"/>'


def svg_picture(title: str, description: str, height: int, parts: Iterable[str]) -> str:
    """Return an SVG element of the width of a data flow, with a text alternative."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="flow" role="img" '
        f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'aria-labelledby="flow-title flow-desc">'
        f'<title id="flow-title">{escape(title)}</title>'
        f'<desc id="flow-desc">{escape(description)}</desc>'
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


class Sources(NamedTuple):
    """List of (reference, address) pairs."""

    items: tuple[tuple[str, str], ...]


Block: TypeAlias = Text | Bullets | Table | Picture | Sources


class Section(NamedTuple):
    """Titled part of the report, on a new printed page if it starts one."""

    title: str
    blocks: list[Block]
    starts_page: bool = False
