"""Command ``report``: the privacy report of a released model."""

import argparse
import json
import textwrap
import zipfile
from dataclasses import fields
from io import BytesIO
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from sklearn_pate._aggregation._fit_plan import WIDTH
from sklearn_pate._cli._options import Parser, number
from sklearn_pate._inputs._file_content import strict_json
from sklearn_pate.accounting.ledger._ledger import PrivacyLedger
from sklearn_pate.inspection import PrivacyReport
from sklearn_pate.publication import Deployment, PublishedClassifier
from sklearn_pate.publication._model_file import (
    paths_of,
    printable,
    read_index,
    read_pair,
)

DESCRIPTION = """\
Write the privacy report of a released model: the guarantee, what an attacker can learn
at most, the assumptions to be signed, and the sha256 of the model. MODEL is a file
that clf.publish().save("model.skops") wrote, with its card, model.json, in the same
folder. Only its statement is read, which cannot run code from the file.
"""
EPILOG = """\
examples:
  on the terminal, in Markdown:
    %(prog)s model.skops

  two pages to publish with the model, and an appendix:
    %(prog)s model.skops -o report.html

  with its accuracy on public rows:
    %(prog)s model.skops -o report.html --quality accuracy=0.84 \\
        --public-rows --evaluated-on "2000 rows of the public survey of 2019"

  with its purpose and the people responsible, and as a draft for the registry of
  differential privacy deployments; about.json has the fields of a Deployment, such as
  {"unit_name": "patient", "curator": "City Hospital"}:
    %(prog)s model.skops -o report.html --deployment about.json
    %(prog)s model.skops -o record.yaml --deployment about.json

  for internal auditors, with the history of the ledger:
    %(prog)s model.skops -o report.html --ledger patients.sqlite --internal

A report may be published with its model, unless it has the history of a ledger or
figures that were computed on private rows. Such a report needs --internal, and is
marked as internal.
"""
NAMES = {
    "path": "--output",
    "title": "--title",
    "quality": "--quality",
    "evaluated_on": "--evaluated-on",
    "ledger": "--ledger",
    "overwrite": "--overwrite",
    "deployment": "--deployment",
}


def add_to(parser: Parser) -> None:
    """Add the description and the options of the command to its parser."""
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    parser.add_argument(
        "model", type=_model, metavar="MODEL", help="the model, a .skops file"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="file to write, .html, .md, .json, or .yaml for a registry (default: "
        "Markdown, on the terminal)",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace the file that -o names"
    )
    parser.add_argument("--title", metavar="TEXT", help="title of the report")
    parser.add_argument(
        "--quality",
        type=_figure,
        action="append",
        metavar="NAME=VALUE",
        help="a score, such as accuracy=0.84, or one of a subpopulation, such as "
        "'accuracy by sex=women=0.85'; may be given several times",
    )
    parser.add_argument(
        "--evaluated-on",
        metavar="TEXT",
        help="description of the rows that --quality was computed on",
    )
    rows = parser.add_mutually_exclusive_group()
    rows.add_argument(
        "--public-rows",
        dest="quality_is_public",
        action="store_true",
        default=None,
        help="these rows are public, labels included",
    )
    rows.add_argument(
        "--private-rows",
        dest="quality_is_public",
        action="store_false",
        default=None,
        help="these rows are private: no privacy statement covers the figures",
    )
    parser.add_argument(
        "--ledger",
        metavar="FILE",
        help="a PrivacyLedger, whose history the report shows",
    )
    parser.add_argument(
        "--deployment",
        metavar="FILE",
        help="JSON file with fields of a Deployment, if the card of the model has none",
    )
    parser.add_argument(
        "--internal",
        action="store_true",
        help="write a report even if it must not be published",
    )
    parser.set_defaults(run=run, parser=parser, names=NAMES)


def run(given: argparse.Namespace) -> int:
    """Write a report; an internal one only with ``--internal``."""
    _check_quality(given)
    report = PrivacyReport.from_estimator(
        read_released(given.model),
        title=given.title,
        quality=None if given.quality is None else _quality(given.quality),
        evaluated_on=given.evaluated_on,
        quality_is_public=given.quality_is_public,
        ledger=None if given.ledger is None else _ledger(given.ledger),
        model_file=given.model,
        deployment=None if given.deployment is None else _deployment(given.deployment),
    )
    if report.internal and not given.internal:
        reasons = " and ".join(report.to_dict()["internal_because"])
        raise ValueError(
            f"This report must not be published, because {reasons}; add --internal to "
            "write it for the data holder, or leave these out."
        )
    if given.output is None:
        print(_wrapped(report.to_markdown()))
        return 0
    _, card = paths_of(given.model)
    if Path(given.output).resolve() == card.resolve():
        raise ValueError(
            f"path={given.output!r} is the card of the model; choose another file."
        )
    report.save(given.output, internal=given.internal, overwrite=given.overwrite)
    print(f"{given.output} is written.")
    return 0


def _check_quality(given: argparse.Namespace) -> None:
    """Raise unless figures and the rows they were computed on come together."""
    has_rows = given.evaluated_on is not None or given.quality_is_public is not None
    if given.quality is None and has_rows:
        raise ValueError(
            "--evaluated-on, --public-rows and --private-rows describe figures, and "
            "there are none; add --quality accuracy=0.84, for example."
        )
    if given.quality is not None and given.evaluated_on is None:
        raise ValueError(
            "--quality needs --evaluated-on, a description of the rows that it was "
            "computed on; add it."
        )
    if given.quality is not None and given.quality_is_public is None:
        raise ValueError(
            "--quality was computed on public rows, labels included, or on private "
            "ones; add --public-rows or --private-rows."
        )


def _wrapped(markdown: str) -> str:
    """Wrap the paragraphs and lists of a Markdown text."""
    lines = []
    for line in markdown.splitlines():
        if line.startswith(("|", "#", "    ")) or not line:
            lines.append(line)
            continue
        indent = {"- ": "  ", "> ": "> "}.get(line[:2], "")
        lines += textwrap.wrap(
            line,
            WIDTH,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def _ledger(path: str) -> PrivacyLedger:
    """Open a ledger that exists."""
    if not Path(path).is_file():
        raise ValueError(f"ledger={path!r} is not a file; correct the path.")
    return PrivacyLedger(path)


def _deployment(path: str) -> Deployment:
    """Read the fields of a deployment from a JSON file."""
    if not Path(path).is_file():
        raise ValueError(f"deployment={path!r} is not a file; correct the path.")
    try:
        given = strict_json(Path(path).read_bytes())
    except ValueError as error:
        raise ValueError(
            f"deployment={path!r} cannot be read: {error}; correct it."
        ) from None
    known = [one.name for one in fields(Deployment)]
    if not isinstance(given, dict) or not given.keys() <= {*known}:
        raise ValueError(
            f"deployment={path!r} must have an object whose names are among {known}."
        )
    return Deployment(**given)


def _model(text: str) -> str:
    """Parse the path of a model."""
    try:
        paths_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("path=")) from None
    return text


def _figure(text: str) -> tuple[tuple[str, ...], float]:
    """Parse the names and the value of a score."""
    *names, value = (part.strip() for part in text.split("="))
    if len(names) not in (1, 2) or not all(names):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not NAME=VALUE; write accuracy=0.84, for example"
        )
    return tuple(names), number(value)


def _quality(figures: list[tuple[tuple[str, ...], float]]) -> dict[str, Any]:
    """Join the scores of one name, each of a subpopulation."""
    quality: dict[str, Any] = {}
    for names, value in figures:
        inner = quality.setdefault(names[0], {}) if names[1:] else quality
        if not isinstance(inner, dict) or names[-1] in inner:
            raise ValueError(
                f"quality has {names[0]!r} more than once; give each figure a name of "
                "its own."
            )
        inner[names[-1]] = value
    return quality


class _NotLoaded(ClassifierMixin, BaseEstimator):
    """Stand-in for the student, which a report does not need."""

    def predict(self, X: Any) -> NoReturn:
        raise TypeError("Only the statement of this model was read, not its student.")


def read_released(path: str) -> PublishedClassifier:
    """Read the statement of a released model, without its student.

    Hashes, the copy of the card and the cost are checked as in
    :meth:`PublishedClassifier.load`. Of the model file, a zip archive, only the card
    and two values are read. No type that the file names is imported, so that
    none has to be trusted, and skops is not needed.
    """
    model, card, (model_path, card_path) = read_pair(path)
    try:
        (name, module), stated = _stated(model)
        parts = {
            "student": type(name, (_NotLoaded,), {"__module__": module})(),
            "classes": np.array(card["classes"], dtype=object),
        }
        released = PublishedClassifier._from_parts(parts, card)
    except Exception as error:
        raise ValueError(
            f"{model_path} or {card_path} is damaged: its statement cannot be read "
            f"({type(error).__name__}: {printable(error)})."
        ) from error
    released._take_statement(card_path, *stated)
    return released


def _stated(model: bytes) -> tuple[tuple[str, str], tuple[Any, ...]]:
    """Read the class and module of the student, and the parts of its statement."""
    with zipfile.ZipFile(BytesIO(model)) as archive:
        index = json.loads(read_index(archive, len(model)))["content"]
        names = ("n_classes", "statement")
        stated = tuple(json.loads(index[name]["content"]) for name in names)
        student = index["student"]
        return (student["__class__"], student["__module__"]), stated
