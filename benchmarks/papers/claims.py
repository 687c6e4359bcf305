"""Claims of the papers, with the figures measured here and verdicts."""

import functools
from dataclasses import dataclass

from benchmarks.reporting import markdown

REPRODUCED = "reproduced"
BETTER = "better"
NOT_REPRODUCED = "not reproduced"
VOID = "void"
NOT_MEASURED = "not measured"
VERDICTS = (REPRODUCED, BETTER, NOT_REPRODUCED, VOID, NOT_MEASURED)
#: Largest difference of a figure that is reproduced.
EPSILON_SHARE = 0.02
POINTS = 1.0
NEEDS_SVHN = "needs the official training files of SVHN, which are not at hand"


@dataclass(frozen=True)
class Row:
    """A claim of a paper: what it prints, what was measured here, and the verdict."""

    claim: str
    printed: str
    here: str
    verdict: str
    source: str = ""
    remark: str = ""

    def __post_init__(self):
        if self.verdict not in VERDICTS:
            raise ValueError(f"{self.verdict!r} is none of {VERDICTS}.")

    @property
    def is_listed(self):
        """Whether the claim was measured; tests are named by the reference."""
        is_tested = self.verdict == REPRODUCED and self.source.startswith("tests/")
        return self.verdict != NOT_MEASURED and not is_tested

    def cells(self):
        """Return the cells of a line of the table."""
        here = f"{self.here} ({self.remark})" if self.remark else self.here
        return [self.claim, self.printed, here, self.verdict]


def epsilon_verdict(printed, measured):
    """Judge an epsilon by its bound on the same kind of votes."""
    close = abs(measured - printed) <= EPSILON_SHARE * printed
    return REPRODUCED if close else NOT_REPRODUCED


def accuracy_verdict(printed, measured):
    """Judge an accuracy in percent."""
    if abs(measured - printed) <= POINTS:
        return REPRODUCED
    return BETTER if measured > printed else NOT_REPRODUCED


def student_verdict(printed, measured):
    """Judge a student by its pair of accuracy in percent and epsilon."""
    (accuracy, epsilon), (our_accuracy, our_epsilon) = printed, measured
    is_close = our_accuracy >= accuracy - POINTS
    if is_close and our_epsilon < (1 - EPSILON_SHARE) * epsilon:
        return BETTER
    return accuracy_verdict(accuracy, our_accuracy)


def student_figures(row, epsilon="epsilon"):
    """Return accuracy in percent and epsilon of a measured student."""
    return 100 * row["accuracy"]["mean"], row[epsilon]["mean"]


def command_of(results):
    """Return the script and the table that measured results."""
    return results["command"].removeprefix("python -m benchmarks ")


def claims_table(rows):
    """Let a function that returns claims write their table; `rows` returns them."""

    @functools.wraps(rows)
    def table():
        shown = [row for row in rows() if row.is_listed]
        header = ["claim", "printed", "here", "verdict"]
        lines = markdown(header, [row.cells() for row in shown], rule="---")
        sources = dict.fromkeys(
            f"`{row.source}`" for row in shown if row.source[:6] not in ("", "tests/")
        )
        return f"{lines}\n\nMeasured by {', '.join(sources)}."

    table.rows = rows  # type: ignore[attr-defined]
    return table


def only(results, **values):
    """Return the only row of a table with these values."""
    [row] = [
        row
        for row in results["rows"]
        if all(row.get(name) == value for name, value in values.items())
    ]
    return row
