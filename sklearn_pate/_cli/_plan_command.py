"""``plan``: what a fit would cost, and how often its answers would be right."""

import argparse
import json
from typing import Any

from sklearn_pate._base._parameters import as_mechanism
from sklearn_pate._cli._options import (
    add_mechanism,
    number,
    whole_number,
)
from sklearn_pate.inspection import plan_fit

__all__ = ["add_to"]

DESCRIPTION = """\
Plan a fit of PATEClassifier before any data is touched: how many teachers, how much
noise, which epsilon may be published, and how often a noisy answer is the class that
most teachers voted for. The plan depends on no private value and may be published.
"""
EPILOG = """\
examples:
  30000 private rows, 100 queries to the teachers, at epsilon 1:
    %(prog)s --rows 30000 --queries 100

  the same, with ten classes and more noise:
    %(prog)s --rows 30000 --queries 100 --classes 10 --epsilon 0.5

  patients with several rows each; their number is private, so name the teachers:
    %(prog)s --unit group --teachers 250 --queries 100

What decides accuracy is the lead of the most-voted class in units of the noise. More
teachers make the lead longer, in votes; fewer queries make the noise smaller.
"""
NAMES = {
    "n_rows": "--rows",
    "n_teachers": "--teachers",
    "n_queries": "--queries",
    "n_classes": "--classes",
    "epsilon": "--epsilon",
    "delta": "--delta",
    "mechanism": "--mechanism",
    "threshold": "--threshold",
    "privacy_unit": "--unit",
    "margins": "--margins",
}


def add_to(commands: Any) -> None:
    """Add the command.

    Parameters
    ----------
    commands : argparse action
        What ``add_subparsers`` returns.
    """
    parser = commands.add_parser(
        "plan",
        help="teachers, noise, epsilon and label accuracy, before any data is touched",
        description=DESCRIPTION,
        epilog=EPILOG,
    )
    parser.add_argument(
        "--rows",
        type=whole_number,
        metavar="N",
        help="number of private rows; leave it out with --unit group, where it is not "
        "public",
    )
    parser.add_argument(
        "--queries",
        type=whole_number,
        metavar="N",
        required=True,
        help="number of queries, each about one public row. More queries teach the "
        "student more, and mean more noise in each answer (required)",
    )
    parser.add_argument(
        "--classes",
        type=whole_number,
        metavar="N",
        default=2,
        help="number of classes (default: 2)",
    )
    parser.add_argument(
        "--teachers",
        type=_auto_or_whole_number,
        metavar="N",
        default="auto",
        help='number of teachers, or "auto", the square root of the number of rows '
        "(default: auto)",
    )
    parser.add_argument(
        "--epsilon",
        type=number,
        metavar="X",
        default=1.0,
        help="the epsilon that is to be published; smaller is more private "
        "(default: 1)",
    )
    parser.add_argument(
        "--delta",
        type=number,
        metavar="X",
        default=1e-5,
        help="the probability that epsilon does not cover; choose it well below one "
        "over the number of rows (default: 1e-5)",
    )
    parser.add_argument(
        "--unit",
        choices=("row", "group"),
        default="row",
        metavar="UNIT",
        help="whom the statement protects: one row, or all rows of one group, such as "
        "a patient (row or group, default: row)",
    )
    add_mechanism(parser)
    parser.add_argument(
        "--margins",
        type=number,
        nargs="+",
        metavar="SHARE",
        default=[0.1, 0.2, 0.4, 0.6, 0.8, 1.0],
        help="shares of the teachers by which the most-voted class leads every other "
        "class: how often is the answer right there? (default: 0.1 0.2 0.4 0.6 0.8 1)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run, parser=parser, names=NAMES)


def run(given: argparse.Namespace) -> int:
    """Print a plan.

    Parameters
    ----------
    given : Namespace
        The options.

    Returns
    -------
    code : int
        0.

    Raises
    ------
    ValueError
        If an option cannot work.
    """
    mechanism = as_mechanism(given.mechanism, "answers")
    if given.threshold is not None:
        if given.mechanism != "confident":
            raise ValueError(
                f"threshold={given.threshold!r} goes with mechanism=confident, and not "
                f"with mechanism={given.mechanism}; leave it out."
            )
        mechanism.set_params(threshold=given.threshold)
    plan = plan_fit(
        n_rows=given.rows,
        n_teachers=given.teachers,
        n_queries=given.queries,
        n_classes=given.classes,
        epsilon=given.epsilon,
        delta=given.delta,
        mechanism=mechanism,
        privacy_unit=given.unit,
        margins=given.margins,
    )
    print(json.dumps(plan.to_dict(), indent=2) if given.json else plan)
    return 0


def _auto_or_whole_number(text):
    return text if text == "auto" else whole_number(text)
