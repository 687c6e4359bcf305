"""The picture of what goes where: the private side, the door, the public side."""

import re
import textwrap
from collections.abc import Sequence
from html import escape
from itertools import groupby, pairwise
from typing import Literal, NamedTuple

__all__ = ["KINDS", "Station", "draw_data_flow", "stations_of", "tell_data_flow"]

#: What a fit is made of, as far as a picture tells.
KINDS = ("teachers", "parties", "sums", "neighbours", "learner", "search")


class Station(NamedTuple):
    """A box of the picture.

    Parameters
    ----------
    side : {"private", "door", "public"}
        Who sees what is in it: the data holder, nobody, everybody.

    title : str
        What it is.

    text : str
        What happens there.
    """

    side: Literal["private", "door", "public"]
    title: str
    text: str


def stations_of(
    kind: str,
    *,
    unit: str = "row",
    n_teachers: int | None = None,
    n_queries: int | None = None,
    mechanism: str | None = None,
    model: str | None = None,
) -> list[Station]:
    """List the boxes of the picture, with numbers or without.

    Parameters
    ----------
    kind : {"teachers", "parties", "sums", "neighbours", "learner", "search"}
        What was fitted: PATEClassifier on rows, or on votes of parties;
        PETDLClassifier; PrivateKNNClassifier; a learner without teachers; the winner of
        a PrivateSearchCV.

    unit : str, default="row"
        What is in one shard only.

    n_teachers : int, default=None
        Number of teachers, parties or neighbours. None draws the general picture.

    n_queries : int, default=None
        Number of queries.

    mechanism : str, default=None
        What adds noise.

    model : str, default=None
        What is published.

    Returns
    -------
    stations : list of Station
        In the order in which data go through them.
    """
    teachers = f"{n_teachers or 'Many'} teachers"
    to_queries = f"to {n_queries} queries " if n_queries else ""
    noise = mechanism or "adds noise to each count, and gives the largest"
    rows = Station(
        "private", "Private rows", f"cut into shards; one {unit} is in one only"
    )
    student = Station(
        "public",
        "Student",
        f"{f'{model}: ' if model else ''}learns from answers and public rows, and "
        "predicts",
    )
    answers = Station(
        "public", "Answers", f"{to_queries}about public rows: all that gets out"
    )
    return {
        "teachers": [
            rows,
            Station("private", teachers, "each learns from one shard, and votes"),
            Station("door", "Noise", noise),
            answers,
            student,
        ],
        "parties": [
            Station("private", "Rows of each party", "stay where they are"),
            Station(
                "private",
                f"{n_teachers or 'Many'} parties",
                "each labels the public rows: its votes",
            ),
            Station("door", "Noise", noise),
            answers,
            student,
        ],
        "sums": [
            rows,
            Station(
                "private",
                teachers,
                "each says what it thinks, as a vector of bounded length",
            ),
            Station("door", "Noise", mechanism or "added once, to the sum"),
            Station("public", "Noisy sum", "about public rows: all that gets out"),
            student,
        ],
        "neighbours": [
            Station("private", "Private rows", "nothing is trained on them"),
            Station(
                "private",
                "Secret samples",
                "a fresh one for each query, whose "
                f"{f'{n_teachers} ' if n_teachers else ''}nearest rows vote",
            ),
            Station("door", "Noise", noise),
            answers,
            student,
        ],
        "learner": [
            Station("private", "Private rows", "never leave this side"),
            Station(
                "door",
                "Training with noise",
                mechanism or "hides what any row contributed",
            ),
            Station("public", "Model", f"{f'{model}: ' if model else ''}predicts"),
        ],
        "search": [
            Station("private", "Private rows", "some to fit on, some to score on"),
            Station("private", "Private fits", "a secret number of them"),
            Station("door", "Noisy scores", mechanism or "choose the best fit"),
            Station(
                "public",
                "The best",
                f"{f'{model}, ' if model else ''}with its parameters; all other fits "
                "are gone",
            ),
        ],
    }[kind]


def tell_data_flow(stations: Sequence[Station]) -> str:
    """Say the picture in words, for who cannot see it.

    Parameters
    ----------
    stations : sequence of Station
        As :func:`stations_of` lists them.

    Returns
    -------
    text : str
        One line.
    """
    return " -> ".join(f"[{SIDES[one.side]}] {one.title}" for one in stations)


SIDES = {"private": "private side", "door": "the door", "public": "public side"}

_TITLE, _TEXT = 14, 12  # sizes of letters
_LINE = 16
_WIDTH, _WIDE = 138, 284  # of a box, side by side and one below the other
_ARROW, _PAD, _LABEL = 24, 9, 22
_MOST_LINES = 8
_CUT = "\N{ZERO WIDTH SPACE} "

STYLE = """\
.flow-private{fill:#f9e4e0}.flow-door{fill:#f5e6b8}.flow-public{fill:#dcecf7}
.flow-box{fill:#fff;stroke:#57606a}.flow-arrow{stroke:#1b1f24;fill:#1b1f24}
.flow{max-width:100%;height:auto}
.flow text{fill:#1b1f24;font-family:system-ui,-apple-system,"Segoe UI",sans-serif}
@media screen and (prefers-color-scheme:dark){
.flow-private{fill:#4a2620}.flow-door{fill:#4a3b10}.flow-public{fill:#173a52}
.flow-box{fill:#14171a;stroke:#a6adb5}.flow-arrow{stroke:#e6e8ea;fill:#e6e8ea}
.flow text{fill:#e6e8ea}}
"""


class _Box(NamedTuple):
    station: Station
    title: list[str]
    text: list[str]
    x: float
    y: float
    width: float
    height: float


def draw_data_flow(stations: Sequence[Station], *, across: bool = True) -> str:
    """Draw the picture as an SVG element, to be put into a page as it is.

    Parameters
    ----------
    stations : sequence of Station
        As :func:`stations_of` lists them.

    across : bool, default=True
        From left to right, about 780 wide; otherwise from top to bottom, 300 wide, for
        narrow pages.

    Returns
    -------
    svg : str
        One element with colours for light and dark pages, and its words as the
        alternative text. It loads nothing.

    Examples
    --------
    >>> from sklearn_pate.inspection.privacy_report import _data_flow
    >>> svg = _data_flow.draw_data_flow(_data_flow.stations_of("teachers"))
    >>> svg.startswith("<svg") and "Private rows" in svg
    True
    """
    boxes = _lay_out(stations, across)
    width = boxes[-1].x + boxes[-1].width + _PAD
    height = max(box.y + box.height for box in boxes) + _PAD
    name = f"flow-{'across' if across else 'down'}"
    drawn = [
        *(_zone(zone, width, height, across) for zone in _zones(boxes)),
        *(_arrow(one, other, across) for one, other in pairwise(boxes)),
        *(_box(box) for box in boxes),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="flow {name}" role="img" '
        f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}" '
        f'aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">What goes where</title>'
        f'<desc id="{name}-desc">{escape(_describe(stations))}</desc>'
        f"<style>{STYLE}</style>{''.join(drawn)}</svg>"
    )


def _describe(stations):
    return " Then: ".join(
        f"{SIDES[one.side].capitalize()}: {one.title}, {one.text}." for one in stations
    )


def _lay_out(stations, across):
    width = _WIDTH if across else _WIDE
    written = [
        (one, _wrap(one.title, width, _TITLE), _wrap(one.text, width, _TEXT))
        for one in stations
    ]
    heights = [_LINE * (len(title) + len(text)) + 18 for _, title, text in written]
    boxes = []
    x = y = float(_PAD)
    last = None
    for (station, title, text), height in zip(written, heights, strict=True):
        enters = station.side != last
        if across:
            x += _PAD if enters and last is not None else 0
            box = _Box(station, title, text, x, _LABEL + 8, width, max(heights))
            x += width + _ARROW
        else:
            y += (_LABEL if enters else 0) + (_PAD if enters and last else 0)
            box = _Box(station, title, text, x, y, width, height)
            y += height + _ARROW
        boxes.append(box)
        last = station.side
    return boxes


def _wrap(text, width, size):
    """Cut a text into lines; letters are about 0.55 times as wide as high."""
    n_letters = int((width - 16) / (0.55 * size))
    # Long names may be cut where a word in them begins.
    text = re.sub(r"(?<=\()(?=\S)", _CUT, text)
    words = [
        re.sub(r"(?<=[a-z])(?=[A-Z])|(?<==)", _CUT, word)
        if len(word) > n_letters
        else word
        for word in text.split(" ")
    ]
    lines = textwrap.wrap(" ".join(words), n_letters, max_lines=_MOST_LINES)
    return [line.replace(_CUT, "").replace(_CUT.strip(" "), "") for line in lines]


def _zones(boxes):
    return [list(zone) for _, zone in groupby(boxes, lambda box: box.station.side)]


def _zone(zone, width, height, across):
    first, last = zone[0], zone[-1]
    side = first.station.side
    x, y = first.x - _PAD, first.y - _LABEL
    wide = last.x + last.width + _PAD - x if across else width
    high = height - y if across else last.y + last.height + _PAD - y
    return (
        f'<rect class="flow-{side}" x="{x:g}" y="{y:g}" width="{wide:g}" '
        f'height="{high:g}" rx="6"/>'
        f'<text x="{first.x:g}" y="{y + 15:g}" font-size="11" font-weight="600" '
        f'letter-spacing="0.5">{SIDES[side].upper()}</text>'
    )


def _arrow(one, other, across):
    if across:
        y = one.y + one.height / 2
        tip = other.x - 1
        line = f"M{one.x + one.width + 2:g} {y:g}H{tip - 6:g}"
        head = f"M{tip:g} {y:g}l-7 -4v8z"
    else:
        x = one.x + one.width / 2
        tip = other.y - 1
        line = f"M{x:g} {one.y + one.height + 2:g}V{tip - 6:g}"
        head = f"M{x:g} {tip:g}l-4 -7h8z"
    return (
        f'<path class="flow-arrow" fill="none" stroke-width="1.5" d="{line}"/>'
        f'<path class="flow-arrow" stroke="none" d="{head}"/>'
    )


def _box(box):
    lines = [(line, _TITLE, 600) for line in box.title]
    lines += [(line, _TEXT, 400) for line in box.text]
    words = "".join(
        f'<text x="{box.x + 8:g}" y="{box.y + 20 + _LINE * place:g}" '
        f'font-size="{size}" font-weight="{weight}">{escape(line)}</text>'
        for place, (line, size, weight) in enumerate(lines)
    )
    return (
        f'<rect class="flow-box" x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" '
        f'height="{box.height:g}" rx="4"/>{words}'
    )
