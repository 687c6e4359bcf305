"""Commands ``study``, ``vote`` and ``fit-votes`` of several sites, and their files."""

import argparse
import json
import secrets
import sys
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from sklearn_pate._cli._options import (
    check_own_files,
    chosen_mechanism,
    open_ledger,
    plain_warnings,
)
from sklearn_pate._cli._sum_commands import run_study_of_sums, save_released
from sklearn_pate._cli._tables import (
    check_labels,
    labels_like,
    named_columns,
    read_estimator,
    read_private,
    read_public,
)
from sklearn_pate._estimators._isolation import MAX_SEED
from sklearn_pate._inputs._file_content import (
    check_can_write,
    digest_of_rows,
    key_commitment,
    write_files,
)
from sklearn_pate._inputs._known_columns import warn_of_text
from sklearn_pate._inputs._labels import PublicData, check_classes
from sklearn_pate._pate import PATEClassifier
from sklearn_pate._teachers._shards import rows_of_shards, shard_of
from sklearn_pate._votes._votes import VoteHeader, Votes
from sklearn_pate.accounting._value_checks import (
    check_count,
    counted,
    printable,
)
from sklearn_pate.distributed import cast_votes
from sklearn_pate.distributed._study import check_site, check_sites, read_fields
from sklearn_pate.publication._model_file import (
    import_skops,
    paths_of,
)

_FORMAT = {"format": "sklearn_pate study", "format_version": 1}


@dataclass(frozen=True)
class VoteStudy:
    """What all sites have in common that send votes without noise. May be public."""

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
        object.__setattr__(self, "sites", check_sites(self.sites))

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
        values = read_fields(path.read_bytes(), "study", str(path))
        values = {name: one for name, one in values.items() if name not in _FORMAT}
        try:
            if values.keys() != {one.name for one in fields(cls)}:
                raise ValueError("its fields are not those of a study")
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
                f"{path} differs from the public rows of the study in a name, a type "
                "or a value; ask for the file again."
            )

    def check_key(self, key: bytes, path: Path) -> None:
        """Check that a key is that of the study."""
        if key_commitment(key) != self.key:
            raise ValueError(
                f"{path} is not the key of the study; ask for the key file that was "
                "written with it."
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
                    f"{path} is from site {printable(min(unknown))!r}, which is not in "
                    "the study; leave this file out."
                )
            header = header.merged(votes.header, str(path), "the study")
            parts.append(votes)
        missing = [site for site in self.sites if site not in header.shards]
        if missing:
            raise ValueError(
                f"No file has the votes of {', '.join(missing)}; pass the files of all "
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
            f"{path} is not a key file; pass the one that the command study wrote."
        )
    return key


def run_study(given: argparse.Namespace) -> None:
    """Write a study: of masked sums for a model, or of votes for a collector."""
    of_votes = {"classes": given.classes, "teachers": given.teachers}
    if given.estimator is not None:
        for name in ("classes", "teachers", "unit", "seed", "key"):
            if name in given.options_given:
                raise ValueError(
                    f"--{name} is for votes without noise, but --estimator is given; "
                    f"leave it out, and choose such settings in {given.estimator}."
                )
        run_study_of_sums(given)
        return
    for name in ("rows", "colluding", "epsilon", "delta"):
        if name in given.options_given:
            raise ValueError(
                f"--{name} is for sums, but --estimator is missing; pass --estimator, "
                "or leave it out."
            )
    missing = [name for name, value in of_votes.items() if value is None]
    if missing:
        raise ValueError(
            f"--{missing[0]} is missing; pass it, or --estimator for sums that nobody "
            "sees."
        )
    _write_vote_study(given)


def _write_vote_study(given: argparse.Namespace) -> None:
    """Write a study of votes, and its key."""
    if given.output.resolve() == given.key.resolve():
        raise ValueError(
            "The study and its key cannot be one file; pass different "
            "names as --output and --key."
        )
    check_can_write([given.output, given.key], overwrite=None)
    public, key = read_public(given.public), secrets.token_bytes(32)
    with plain_warnings(given.parser):
        warn_of_text(public)
    study = VoteStudy(
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
        f"{counted(study.n_teachers, 'teacher')} each, {n_sites * study.n_teachers} in "
        f"all, on {counted(len(public), 'public row')}. This file may be "
        f"published.\n{given.key}: the key that assigns patients to shards. Send it to "
        "the sites only."
    )


def run_vote(given: argparse.Namespace) -> None:
    """Train the teachers of a site, and write their votes."""
    check_own_files(
        [given.output],
        [given.study, given.key, given.public, given.data, given.teacher],
    )
    check_can_write([given.output], overwrite=given.overwrite)
    study, key = VoteStudy.read(given.study), read_key(given.key)
    study.check_key(key, given.key)
    check_site(given.site, study.sites)
    public = read_public(given.public)
    study.check_public_rows(public, given.public)
    with plain_warnings(given.parser):
        warn_of_text(public)
    _check_unit(given, study)
    others = named_columns(given, public.columns)
    if given.jobs == 0:
        raise ValueError(
            "n_jobs=0 is not a number of processes; pass 1 or more, or -1."
        )
    teacher = read_estimator(given.teacher, "teacher")
    X, columns = read_private(given.data, public, others)
    y = labels_like(columns[given.label], study.classes)
    ids = columns.get(given.group, np.arange(len(X)))
    codes = check_labels(y, study.classes, given.data, given.label)
    n_left_out = np.count_nonzero(codes < 0)
    try:
        shards = shard_of(ids, study.n_teachers, key)
    except ValueError as error:
        raise ValueError(f"{given.data}, column {given.group!r}: {error}") from None
    rows = rows_of_shards(shards, study.n_teachers)
    found = [np.unique(codes[one][codes[one] >= 0]) for one in rows]
    n_of_one = sum(len(classes) == 1 for classes in found)
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
        f"{counted(len(public), 'public row')}, without noise.\nThey are sensitive: "
        "send this file only to the person who runs fit-votes.\nRows used: "
        f"{len(y) - n_left_out}. Rows left out because their label is not a class: "
        f"{n_left_out}.\nShards with rows of one class: {n_of_one}. Their teachers "
        "always vote for this class.\n"
        "If there are many such shards, use fewer teachers."
    )


def run_fit_votes(given: argparse.Namespace) -> None:
    """Train a student on the votes of all sites, and write it with its card."""
    outputs = [*paths_of(given.output), *([given.report] if given.report else [])]
    # No answer is released unless all files can be written.
    check_own_files(
        outputs,
        [given.study, given.public, given.ledger, given.student, *given.votes],
    )
    check_can_write(outputs, overwrite=given.overwrite)
    import_skops()
    study, public = VoteStudy.read(given.study), read_public(given.public)
    study.check_public_rows(public, given.public)
    votes, ledger = study.merge(given.votes, len(public)), open_ledger(given.ledger)
    student = given.student and read_estimator(given.student, "student")
    pate = PATEClassifier(
        student=student,
        classes=study.classes,
        epsilon=given.epsilon,
        delta=given.delta,
        n_queries=given.queries,
        mechanism=chosen_mechanism(given),
        ledger=ledger,
        # So that a ledger knows the command again.
        random_state=None if ledger is None else 0,
    )
    with plain_warnings(given.parser):
        # The privacy is spent on the next line.
        pate.fit_from_votes(PublicData(public), votes, privacy_unit=study.privacy_unit)
        save_released(pate.publish(), given)
    print(pate.privacy_spent_)
    print(
        f"\nWritten: {', '.join(map(str, outputs[:2]))}. These files may be published."
    )
    if given.report:
        print(
            f"Written as a draft: {outputs[-1]}. Complete it with the command report."
        )


def _check_unit(given: argparse.Namespace, study: VoteStudy) -> None:
    """Raise unless a group is named exactly if the study protects groups."""
    if (given.group is not None) != (study.privacy_unit == "group"):
        raise ValueError(
            "The study protects groups; pass --group with the column of group ids."
            if given.group is None
            else "The study protects rows, not groups; leave --group out."
        )


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
            teachers = counted(n_shards, "teacher")
            print(f"{program}: {n_done} of {teachers}", file=sys.stderr)
        yield votes
