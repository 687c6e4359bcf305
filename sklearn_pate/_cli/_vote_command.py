"""Command ``vote``: the votes of one site, whose rows stay there."""

import argparse
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from sklearn_pate._cli._options import (
    Parser,
    check_outputs,
    labels_like,
    plain_warnings,
    read_estimator,
    read_private,
    read_public,
    whole_number,
)
from sklearn_pate._cli._study_command import Study, read_key
from sklearn_pate._inputs._labels import check_classes, class_indices
from sklearn_pate._inputs._odd_values import warn_of_text
from sklearn_pate._teachers._shards import rows_of_shards, shard_of
from sklearn_pate._votes._votes import Votes
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.distributed import cast_votes

DESCRIPTION = """\
Train the teachers of one site on its private rows, and write their votes on the public
rows to a file for the command fit-votes. Rows and models stay at the site. The file
holds vote counts without noise, and is sensitive.
"""
EPILOG = """\
examples:
  %(prog)s --study study.json --key study.key --site north --data north.csv \\
      --public public.csv --label readmitted --group patient \\
      --teacher teacher.py -o north.votes

teacher.py is executed. It has a line such as:
  teacher = LogisticRegression()
"""
NAMES = {"site": "--site", "n_jobs": "--jobs"}


def add_to(parser: Parser) -> None:
    """Add the description and the options of the command to its parser."""
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    for option, what in (
        ("--study", "the study, as the command study wrote it"),
        ("--key", "the key file of the study"),
        ("--data", "private rows of this site, .csv or .parquet"),
        ("--public", "public rows of the study; their columns are the features"),
        (
            "--teacher",
            "Python file, WHICH IS EXECUTED and defines teacher, an unfitted "
            "classifier; or a .skops file of one, of types that skops trusts",
        ),
    ):
        parser.add_argument(option, type=Path, metavar="FILE", required=True, help=what)
    parser.add_argument("--site", metavar="NAME", required=True, help="this site")
    parser.add_argument(
        "--label", metavar="COLUMN", required=True, help="column of the label"
    )
    parser.add_argument(
        "--group",
        metavar="COLUMN",
        help="column of the id of a group, such as a patient, if groups are the unit "
        "of privacy of the study",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        required=True,
        help="file of votes to write, such as north.votes",
    )
    parser.add_argument(
        "--jobs",
        type=whole_number,
        metavar="N",
        default=1,
        help="number of processes that train teachers, -1 for all cores (default: 1)",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace an existing file"
    )
    parser.set_defaults(run=run, parser=parser, names=NAMES)


def run(given: argparse.Namespace) -> int:
    """Train the teachers of a site, and write their votes."""
    check_outputs([given.output], overwrite=given.overwrite)
    study, key = Study.read(given.study), read_key(given.key)
    study.check_key(key, given.key)
    study.check_site(given.site)
    public = read_public(given.public)
    study.check_public_rows(public, given.public)
    with plain_warnings(given.parser):
        warn_of_text(public)
    _check_columns(given, study, public)
    if given.jobs == 0:
        raise ValueError("n_jobs=0 is no number of processes; pass 1 or more, or -1.")
    teacher = read_estimator(given.teacher, "teacher")
    X, y, ids = _private_rows(given, study, public)
    n_left_out = np.count_nonzero(class_indices(y, check_classes(study.classes)) < 0)
    if n_left_out == len(y):
        raise ValueError(
            f"No label in column {given.label!r} of {given.data} is one of the classes "
            f"{study.classes} of the study; compare their spelling."
        )
    try:
        shards = shard_of(ids, study.n_teachers, key)
    except ValueError as error:
        raise ValueError(f"{given.data}, column {given.group!r}: {error}") from None
    rows = rows_of_shards(shards, study.n_teachers)
    tasks = (
        delayed(_cast)(
            teacher,
            X.iloc[of_shard],
            y[of_shard],
            public,
            classes=study.classes,
            shard=shard,
            seed=study.seed,
        )
        for shard, of_shard in enumerate(rows)
    )
    voted = Parallel(n_jobs=given.jobs, return_as="generator")(tasks)
    votes = dict(enumerate(_followed(voted, given.parser.prog, study.n_teachers)))
    if not any(np.any(of_shard >= 0) for of_shard in votes.values()):
        raise ValueError(
            f"All teachers failed; correct {given.teacher}, and try it on a few rows."
        )
    Votes.from_shards(
        votes,
        public,
        classes=study.classes,
        n_teachers=study.n_teachers,
        key=key,
        privacy_unit=study.privacy_unit,
        site=given.site,
    ).save(given.output)
    print(
        f"{given.output}: vote counts of {counted(study.n_teachers, 'teacher')} on "
        f"{counted(len(public), 'public row')}, without noise.\n"
        "They are sensitive: send this file to the one who runs fit-votes, and to "
        "nobody else.\n"
        f"Rows used: {len(y) - n_left_out}. Rows left out, as their label is no class: "
        f"{n_left_out}."
    )
    return 0


def _check_columns(given: argparse.Namespace, study: Study, public: Any) -> None:
    """Check the columns of the label and of the group against the study."""
    if (given.group is not None) != (study.privacy_unit == "group"):
        raise ValueError(
            "The study protects groups, so that --group is needed; name the column of "
            "their ids."
            if given.group is None
            else "The study protects rows, not groups; leave --group out."
        )
    for name in (given.label, given.group):
        if name in public.columns:
            raise ValueError(
                f"Column {name!r} is in {given.public}, and so is a feature; a label "
                "or an id cannot be one."
            )


def _private_rows(
    given: argparse.Namespace, study: Study, public: Any
) -> tuple[Any, NDArray[np.object_], Any]:
    """Read the features, the labels and the ids of the private rows."""
    others = [given.label] if given.group is None else [given.label, given.group]
    X, columns = read_private(given.data, public, others)
    ids = np.arange(len(X)) if given.group is None else columns[given.group]
    return X, labels_like(columns[given.label], study.classes), ids


def _cast(*arguments: Any, **options: Any) -> tuple[NDArray[np.integer], list[str]]:
    """Return the votes of a shard, and warnings, which a process could not show."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        votes = cast_votes(*arguments, **options)
    return votes, [str(one.message) for one in caught]


def _followed(
    voted: Iterator[tuple[NDArray[np.integer], list[str]]], program: str, n_shards: int
) -> Iterator[NDArray[np.integer]]:
    """Write progress and warnings to stderr, and pass the votes on."""
    for n_done, (votes, messages) in enumerate(voted, start=1):
        for message in messages:
            print(f"{program}: warning: {message}", file=sys.stderr)
        if sys.stderr.isatty():
            print(
                f"{program}: {n_done} of {counted(n_shards, 'teacher')}",
                file=sys.stderr,
            )
        yield votes
