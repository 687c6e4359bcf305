"""Command ``fit-votes``: a student of the votes of all sites, and its card."""

import argparse
import textwrap
from pathlib import Path

from sklearn_pate._aggregation._fit_plan import WIDTH
from sklearn_pate._cli._options import (
    Parser,
    add_mechanism,
    auto_or_whole_number,
    check_outputs,
    chosen_mechanism,
    number,
    plain_warnings,
    read_estimator,
    read_public,
)
from sklearn_pate._cli._study_command import Study
from sklearn_pate._inputs._labels import PublicData
from sklearn_pate._pate import PATEClassifier
from sklearn_pate.inspection import PrivacyReport
from sklearn_pate.publication._model_file import import_skops, paths_of

DESCRIPTION = """\
Train a student on noisy answers from the votes of all sites of a study, and write it
with its privacy card: files that may be published. VOTES are the files that the command
vote wrote at each site. They hold counts without noise: run this where they may be
seen, and delete them afterwards.
"""
EPILOG = """\
examples:
  %(prog)s north.votes south.votes --study study.json --public public.csv \\
      -o model.skops --report report.html

  at another epsilon, with a student of your own:
    %(prog)s *.votes --study study.json --public public.csv --epsilon 2 \\
        --queries 500 --student student.py -o model.skops

student.py is executed. It has a line such as:
  student = LogisticRegression()

Each run is a release with its own privacy cost, also if its model is deleted.
"""
NAMES = {
    "path": "--output",
    "epsilon": "--epsilon",
    "delta": "--delta",
    "n_queries": "--queries",
    "mechanism": "--mechanism",
    "threshold": "--threshold",
}


def add_to(parser: Parser) -> None:
    """Add the description and the options of the command to its parser."""
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    parser.add_argument(
        "votes", nargs="+", type=Path, metavar="VOTES", help="the votes of a site"
    )
    parser.add_argument(
        "--study", type=Path, metavar="FILE", required=True, help="the study"
    )
    parser.add_argument(
        "--public",
        type=Path,
        metavar="FILE",
        required=True,
        help="public rows of the study, .csv or .parquet",
    )
    parser.add_argument(
        "--student",
        type=Path,
        metavar="FILE",
        help="Python file, WHICH IS EXECUTED and defines student, an unfitted "
        "classifier; or a .skops file of one, of types that skops trusts (default: the "
        "student of PATEClassifier)",
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
        "over the number of patients (default: 1e-5)",
    )
    parser.add_argument(
        "--queries",
        type=auto_or_whole_number,
        metavar="N",
        default="auto",
        help='number of public rows that are labelled; "auto" (default): at most 2000',
    )
    add_mechanism(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        required=True,
        help="model to write, a .skops file; its card has the same name, with .json",
    )
    parser.add_argument(
        "--report",
        type=_page,
        metavar="FILE",
        help="privacy report to write, .html or .md",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace existing files"
    )
    parser.set_defaults(run=run, parser=parser, names=NAMES)


def run(given: argparse.Namespace) -> int:
    """Train a student on the votes of all sites, and write it with its card."""
    outputs = [*paths_of(given.output), *([given.report] if given.report else [])]
    # No answer is released unless all files can be written.
    check_outputs(outputs, overwrite=given.overwrite)
    import_skops()
    study, public = Study.read(given.study), read_public(given.public)
    study.check_public_rows(public, given.public)
    votes = study.merge(given.votes, len(public))
    student = given.student and read_estimator(given.student, "student")
    pate = PATEClassifier(
        student=student,
        classes=study.classes,
        epsilon=given.epsilon,
        delta=given.delta,
        n_queries=given.queries,
        mechanism=chosen_mechanism(given),
    )
    with plain_warnings(given.parser):
        # The privacy is spent on the next line.
        pate.fit_from_votes(PublicData(public), votes, privacy_unit=study.privacy_unit)
        released = pate.publish()
        released.save(given.output, overwrite=given.overwrite)
        if given.report:
            report = PrivacyReport.from_estimator(released, model_file=given.output)
            report.save(given.report, overwrite=given.overwrite)
    written = ", ".join(map(str, outputs))
    print(textwrap.fill(str(pate.privacy_spent_), WIDTH))
    print(f"\nWritten, and may be published: {written}.")
    return 0


def _page(text: str) -> Path:
    """Parse the path of a report."""
    path = Path(text)
    if path.suffix not in (".html", ".md"):
        raise argparse.ArgumentTypeError(f"{text!r} must end in .html or .md")
    return path
