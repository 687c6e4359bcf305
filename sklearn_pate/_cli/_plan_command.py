"""Command ``plan``: privacy cost and label accuracy of a fit, before it is made."""

import argparse
import json
from pathlib import Path

from sklearn_pate._cli._options import (
    Parser,
    add_mechanism,
    auto_or_whole_number,
    chosen_mechanism,
    number,
    whole_number,
)
from sklearn_pate._inputs._file_content import strict_json
from sklearn_pate._synthetic._marginals import PrivateMarginals
from sklearn_pate.inspection import FitPlan, plan_fit, plan_newton_fit
from sklearn_pate.students import GraphSelfTrainingClassifier

DESCRIPTION = """\
Plan a fit of PATEClassifier before any data are read: the number of teachers, the
noise, the publishable epsilon, and how often a noisy answer is the class that most
teachers voted for. Or plan one of DPNewtonClassifier, a private logistic regression
without teachers. The plan depends on no private value and may be published.
"""
EPILOG = """\
examples:
  the default fit to 30000 private rows at epsilon 1:
    %(prog)s --rows 30000

  teachers that answer 100 queries:
    %(prog)s --rows 30000 --queries 100

  the same, with ten classes and more noise:
    %(prog)s --rows 30000 --queries 100 --classes 10 --epsilon 0.5

  no public rows, and a domain of all columns:
    %(prog)s --rows 30000 --domain domain.json

  a DPNewtonClassifier for about 10000 patients, by public knowledge:
    %(prog)s --learner newton --unit group --rows 10000

  teachers for patients, whose number is not read:
    %(prog)s --unit group --teachers 250 --queries 100

Accuracy depends on the lead of the most-voted class, relative to the noise. More
teachers increase the lead, in votes; fewer queries need less noise.
"""
NAMES = {
    "n_units": "--rows",
    "learner": "--learner",
    "n_rows": "--rows",
    "n_teachers": "--teachers",
    "n_queries": "--queries",
    "n_classes": "--classes",
    "epsilon": "--epsilon",
    "delta": "--delta",
    "mechanism": "--mechanism",
    "student": "--student",
    "threshold": "--threshold",
    "privacy_unit": "--unit",
    "class_prior": "--class-prior",
    "synthetic": "--domain",
    "margins": "--margins",
}

# Options of PATEClassifier alone.
_OF_PATE = (
    "queries",
    "teachers",
    "student",
    "class_prior",
    "mechanism",
    "threshold",
    "margins",
)


def add_to(parser: Parser) -> None:
    """Add the description and the options of the command to its parser."""
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    parser.add_argument(
        "--learner",
        choices=("pate", "newton"),
        default="pate",
        metavar="NAME",
        help="pate (default): PATEClassifier; newton: DPNewtonClassifier, without "
        "teachers and queries",
    )
    parser.add_argument(
        "--rows",
        type=whole_number,
        metavar="N",
        help="number of private rows; with --learner newton and --unit group, an "
        "estimate of the number of groups from public knowledge",
    )
    parser.add_argument(
        "--queries",
        type=auto_or_whole_number,
        metavar="N",
        default="auto",
        help="number of public rows that are labelled; more labels need more noise in "
        'each; "auto" (default): 2000, or 100 for --student semi-supervised',
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
        type=auto_or_whole_number,
        metavar="N",
        default="auto",
        help='number of teachers, or "auto" (default): the root of the number of rows',
    )
    parser.add_argument(
        "--epsilon",
        type=number,
        metavar="X",
        default=1.0,
        help="publishable epsilon; smaller is more private (default: 1)",
    )
    parser.add_argument(
        "--delta",
        type=number,
        metavar="X",
        default=1e-5,
        help="probability mass that epsilon does not cover; choose it well below one "
        "over the number of rows (default: 1e-5)",
    )
    parser.add_argument(
        "--unit",
        choices=("row", "group"),
        default="row",
        metavar="UNIT",
        help="unit of privacy: row (default), or group, such as all rows of a patient",
    )
    parser.add_argument(
        "--student",
        choices=("averaging", "semi-supervised"),
        default="averaging",
        metavar="KIND",
        help="averaging (default): averages over many noisy answers, as most "
        "classifiers; semi-supervised: learns from unlabelled rows, too, and needs few "
        "right answers",
    )
    parser.add_argument(
        "--class-prior",
        type=number,
        nargs="+",
        metavar="SHARE",
        help="public shares of the classes, or that of the rarest class alone, to be "
        "warned if answers cannot teach it",
    )
    parser.add_argument(
        "--domain",
        type=Path,
        metavar="FILE",
        help="without public rows: JSON file that declares all columns, such as "
        '{"age": {"range": [17, 90]}, "sex": ["F", "M"]}; rows are then drawn from '
        "noisy counts, whose cost is part of epsilon",
    )
    parser.add_argument(
        "--share",
        type=number,
        metavar="X",
        default=0.1,
        help="share of the cost for the counts of --domain (default: 0.1)",
    )
    add_mechanism(
        parser,
        ("auto", "scores"),
        "auto (default): as PATEClassifier chooses; scores releases the mean of the "
        "teachers' class probabilities, and answers no queries; ",
    )
    parser.add_argument(
        "--margins",
        type=number,
        nargs="+",
        metavar="SHARE",
        default=[0.1, 0.2, 0.4, 0.6, 0.8, 1.0],
        help="leads of the most-voted class over every other, as shares of the "
        "teachers, to compute label accuracy for (default: 0.1 0.2 0.4 0.6 0.8 1)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run, parser=parser, names=NAMES)


def run(given: argparse.Namespace) -> int:
    """Print a plan."""
    plan = _newton_plan(given) if given.learner == "newton" else _pate_plan(given)
    print(json.dumps(plan.to_dict(), indent=2) if given.json else plan)
    return 0


def _newton_plan(given: argparse.Namespace) -> FitPlan:
    """Plan a fit of DPNewtonClassifier, or raise ValueError for unused options."""
    for name in _OF_PATE:
        if getattr(given, name) != given.parser.get_default(name):
            raise ValueError(
                f"learner='newton' has no --{name.replace('_', '-')}; leave it out."
            )
    if given.rows is None:
        raise ValueError(
            "learner='newton' needs the number of rows or groups; pass --rows."
        )
    return plan_newton_fit(
        given.rows,
        n_classes=given.classes,
        epsilon=given.epsilon,
        delta=given.delta,
        privacy_unit=given.unit,
        synthetic=_synthetic(given),
    )


def _pate_plan(given: argparse.Namespace) -> FitPlan:
    """Plan a fit of PATEClassifier."""
    prior = given.class_prior
    return plan_fit(
        n_rows=given.rows,
        n_teachers=given.teachers,
        n_queries=given.queries,
        n_classes=given.classes,
        epsilon=given.epsilon,
        delta=given.delta,
        mechanism=chosen_mechanism(given),
        student=GraphSelfTrainingClassifier() if given.student != "averaging" else None,
        privacy_unit=given.unit,
        class_prior=prior[0] if prior and len(prior) == 1 else prior,
        synthetic=_synthetic(given),
        margins=given.margins,
    )


def _synthetic(given: argparse.Namespace) -> PrivateMarginals | None:
    """Read the file with the domain, if there is one."""
    if given.domain is None:
        return None
    try:
        domain = strict_json(given.domain.read_bytes())
    except (OSError, ValueError) as error:
        raise ValueError(
            f"domain={str(given.domain)!r} cannot be read ({error}); pass a JSON "
            "file with an object by column."
        ) from None
    return PrivateMarginals(domain, share=given.share)
