"""Command ``study``: what sites that share no row agree on, and their key."""

import argparse
import secrets
from pathlib import Path
from typing import Any

from sklearn_pate._cli._data_files import read_public
from sklearn_pate._cli._options import (
    Parser,
    check_outputs,
    list_of_texts,
    plain_warnings,
    whole_number,
)
from sklearn_pate._cli._study import Study
from sklearn_pate._inputs._column_types import warn_of_text
from sklearn_pate._inputs._digest import digest_of_rows
from sklearn_pate._inputs._key import key_commitment
from sklearn_pate.accounting._counted import counted
from sklearn_pate.publication._model_file import write_all

__all__ = ["add_to"]

DESCRIPTION = """\
Write the study of several sites, such as hospitals, that want one model and share no
row: the classes, the number of teachers, the unit of privacy, the sites, and hashes of
the public rows and of a new random key, by which all sites assign patients to shards.
The study may be public. The key file is for the sites.
"""
EPILOG = """\
examples:
  five hospitals with 20 teachers each, which protect each patient:
    %(prog)s --public public.csv --classes no,yes --teachers 20 \\
        --sites north,south,east,west,centre -o study.json --key study.key

Then each site runs the command vote, and one of them, or another party, fit-votes.
The plan of such a fit, with 5 x 20 teachers:
  plan --unit group --teachers 100 --queries 500
"""
NAMES = {
    "classes": "--classes",
    "n_teachers": "--teachers",
    "sites": "--sites",
    "seed": "--seed",
}


def add_to(parser: Parser) -> None:
    """Add the description and the options of the command to its parser."""
    parser.description, parser.epilog = DESCRIPTION, EPILOG
    parser.add_argument(
        "--public",
        type=Path,
        metavar="FILE",
        required=True,
        help="public rows without labels, .csv or .parquet; each of their columns is "
        "a feature",
    )
    parser.add_argument(
        "--classes",
        type=_labels,
        metavar="A,B",
        required=True,
        help="all labels that count, separated by commas; whole numbers if all of them "
        "are, text otherwise",
    )
    parser.add_argument(
        "--teachers",
        type=whole_number,
        metavar="N",
        required=True,
        help="number of teachers of each site; not counted from private rows",
    )
    parser.add_argument(
        "--sites",
        type=list_of_texts,
        metavar="A,B",
        required=True,
        help="names of the sites, separated by commas",
    )
    parser.add_argument(
        "--unit",
        choices=("row", "group"),
        default="group",
        metavar="UNIT",
        help="unit of privacy: group (default), such as all rows of a patient, or row",
    )
    parser.add_argument(
        "--seed",
        type=whole_number,
        metavar="N",
        default=0,
        help="seed of the teachers, which may be public (default: 0)",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        default=Path("study.json"),
        help="file of the study (default: study.json)",
    )
    parser.add_argument(
        "--key",
        type=Path,
        metavar="FILE",
        default=Path("study.key"),
        help="new key file, which only you can read (default: study.key)",
    )
    parser.set_defaults(run=run, parser=parser, names=NAMES)


def run(given: argparse.Namespace) -> int:
    """Write a study and its key."""
    if given.output.resolve() == given.key.resolve():
        raise ValueError("The study and its key are two files; name both.")
    check_outputs([given.output, given.key], overwrite=None)
    public, key = read_public(given.public), secrets.token_bytes(32)
    with plain_warnings(given.parser):
        warn_of_text(public)
    study = Study(
        classes=given.classes,
        n_teachers=given.teachers,
        privacy_unit=given.unit,
        sites=given.sites,
        public_rows=digest_of_rows(public),
        key=key_commitment(key),
        seed=given.seed,
    )
    write_all({given.key: f"{key.hex()}\n".encode()}, mode=0o600)
    write_all({given.output: study.to_json().encode()})
    n_sites = len(study.sites)
    print(
        f"{given.output}: {counted(n_sites, 'site')} with "
        f"{counted(study.n_teachers, 'teacher')} each, "
        f"{n_sites * study.n_teachers} in all, on "
        f"{counted(len(public), 'public row')}. It may be public.\n"
        f"{given.key}: the key that assigns patients to shards. Send it to the sites "
        "only."
    )
    return 0


def _labels(text: str) -> list[Any]:
    """Parse labels: whole numbers if all of them are, text otherwise."""
    labels = list_of_texts(text)
    try:
        return [int(label) for label in labels]
    except ValueError:
        return labels
