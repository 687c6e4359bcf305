"""Command that measures scores at several epsilons."""

import argparse
import json
import secrets
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, Self

from sklearn_pate._cli._options import (
    Parser,
    check_outputs,
    list_of_texts,
    plain_warnings,
    read_public,
    whole_number,
)
from sklearn_pate._estimators._isolation import MAX_SEED
from sklearn_pate._inputs._file_content import (
    digest_of_rows,
    key_commitment,
    strict_json,
    write_files,
)
from sklearn_pate._inputs._labels import check_classes
from sklearn_pate._inputs._odd_values import warn_of_text
from sklearn_pate._votes._votes import VoteHeader, Votes
from sklearn_pate.accounting._value_checks import check_count, counted
from sklearn_pate.publication._model_file import printable

_FORMAT = {"format": "sklearn_pate study", "format_version": 1}
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


@dataclass(frozen=True)
class Study:
    """What all sites of a study have in common. It may be public."""

    #: All labels that count, sorted.
    classes: list[Any]
    #: Number of shards, and so of teachers, of each site.
    n_teachers: int
    #: Unit of privacy that a shard holds whole: "row" or "group".
    privacy_unit: Literal["row", "group"]
    #: Names of the sites.
    sites: list[str]
    #: SHA-256 of the public rows.
    public_rows: str
    #: Commitment to the key that assigns ids to shards.
    key: str
    #: Seed of the teachers.
    seed: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", check_classes(self.classes).tolist())
        self.empty_header()  # its checks
        check_count("seed", self.seed, 0, MAX_SEED)
        if not isinstance(self.sites, list) or not all(
            isinstance(site, str) and site.isprintable() and site.strip()
            for site in self.sites
        ):
            raise ValueError(f"sites={self.sites!r} must be a list of names.")
        if not 1 <= len(self.sites) == len(set(self.sites)):
            raise ValueError(
                f"sites={self.sites!r} must name at least one site, each once."
            )

    def empty_header(self) -> VoteHeader:
        """Return the header of votes before any site has voted."""
        return VoteHeader(
            unit=self.privacy_unit,
            n_teachers=self.n_teachers,
            public_rows=self.public_rows,
            key=self.key,
            shards={},
        )

    def to_json(self) -> str:
        """Write the study as a text that `read` takes."""
        return json.dumps(_FORMAT | asdict(self), indent=2) + "\n"

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the file of a study."""
        try:
            values = strict_json(path.read_bytes())
            form = {name: values.pop(name) for name in _FORMAT}
        except (AttributeError, KeyError, TypeError, ValueError):
            raise ValueError(
                f"{path} is no study; pass the file that the command study wrote."
            ) from None
        if form != _FORMAT:
            raise ValueError(
                f"{path} has format {printable(str(form['format_version']))}, and this "
                f"version reads format {_FORMAT['format_version']}; install the "
                "version of sklearn-pate that wrote it."
            )
        try:
            if values.keys() != {one.name for one in fields(cls)}:
                raise ValueError("its fields are others")
            return cls(**values)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{path} was changed ({printable(error).rstrip('.')}); ask for it "
                "again."
            ) from None

    def check_public_rows(self, X_public: Any, path: Path) -> None:
        """Check that public rows are those of the study, bit by bit."""
        if digest_of_rows(X_public) != self.public_rows:
            raise ValueError(
                f"{path} does not hold the public rows of the study, or differs from "
                "them in a name, a type or a bit; ask for the file again."
            )

    def check_key(self, key: bytes, path: Path) -> None:
        """Check that a key is that of the study."""
        if key_commitment(key) != self.key:
            raise ValueError(
                f"{path} is not the key of the study; ask for the key file that was "
                "written with it."
            )

    def check_site(self, site: str) -> None:
        """Check that a site takes part in the study."""
        if site not in self.sites:
            raise ValueError(
                f"site={site!r} is not one of the sites of the study, "
                f"{', '.join(self.sites)}; correct the name."
            )

    def merge(self, paths: list[Path], n_public: int) -> Votes:
        """Add up the votes in the files of all sites, on so many public rows."""
        header, parts = self.empty_header(), []
        for path in paths:
            votes = Votes.load(path)
            assert votes.header is not None  # as of all votes in files
            if votes.classes.tolist() != self.classes:
                raise ValueError(
                    f"{path} has other classes than the study; ask its site to vote "
                    "again with the same study."
                )
            if votes.n_public != n_public:
                raise ValueError(
                    f"{path} has votes on {counted(votes.n_public, 'public row')}, and "
                    f"the study has {n_public}; ask its site to vote again."
                )
            unknown = votes.header.shards.keys() - {*self.sites}
            if unknown:
                raise ValueError(
                    f"{path} is of site {printable(min(unknown))!r}, which is not in "
                    "the study; leave this file out."
                )
            header = header.merged(votes.header, str(path), "the study")
            parts.append(votes)
        missing = [site for site in self.sites if site not in header.shards]
        if missing:
            raise ValueError(
                f"No file has the votes of {', '.join(missing)}; name the files of all "
                "sites of the study."
            )
        return Votes.merge(parts)


def read_key(path: Path) -> bytes:
    """Read a key file: the key in hexadecimal digits."""
    try:
        key = bytes.fromhex(path.read_text(encoding="ascii"))
    except ValueError:
        key = b""
    if not key:
        raise ValueError(
            f"{path} is no key file; pass the one that the command study wrote."
        )
    return key


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
    write_files({given.key: f"{key.hex()}\n".encode()}, mode=0o600)
    write_files({given.output: study.to_json().encode()})
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
