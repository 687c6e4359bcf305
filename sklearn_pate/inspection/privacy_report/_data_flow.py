"""Data flow of a fit: private data, noise, public results."""

import textwrap
from collections.abc import Sequence
from html import escape
from typing import Literal, NamedTuple

from sklearn_pate.accounting._counted import counted

__all__ = ["KINDS", "Step", "data_flow_lines", "draw_data_flow", "flow_of"]

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
                "each trained on one shard; they send class probabilities as a "
                "function of a row, of bounded length",
            ),
            Step("noise", "Noise", mechanism or "added to the sum of the functions"),
            Step("public", "Mean score function", only),
            Step(
                "public",
                "Student",
                f"{of_model}the released function or trained on it, used to predict",
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


STYLE = """\
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
        f"</desc><style>{STYLE}</style>{''.join(drawn)}</svg>"
    )


def _text(x: int, y: int, text: str, attributes: str = "") -> str:
    return f'<text x="{x}" y="{y}"{attributes}>{escape(text)}</text>'
