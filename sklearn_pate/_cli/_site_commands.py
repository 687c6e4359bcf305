"""Commands ``study``, ``vote`` and ``fit-votes`` of several sites, and their files."""

import argparse
import json
import re
import runpy
import secrets
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import is_classifier

from sklearn_pate._cli._options import chosen_mechanism, plain_warnings
from sklearn_pate._estimators._isolation import MAX_SEED
from sklearn_pate._inputs._file_content import (
    check_can_write,
    digest_of_rows,
    key_commitment,
    strict_json,
    write_files,
)
from sklearn_pate._inputs._known_columns import warn_of_text
from sklearn_pate._inputs._labels import PublicData, check_classes, class_indices
from sklearn_pate._inputs._odd_values import as_words, read_numbers, without_words
from sklearn_pate._pate import PATEClassifier
from sklearn_pate._teachers._shards import rows_of_shards, shard_of
from sklearn_pate._votes._votes import VoteHeader, Votes
from sklearn_pate.accounting._value_checks import (
    check_count,
    counted,
    optional_module,
    printable,
)
from sklearn_pate.distributed import cast_votes
from sklearn_pate.inspection import PrivacyReport
from sklearn_pate.publication import PublishedClassifier
from sklearn_pate.publication._model_file import (
    LARGEST_MODEL,
    import_skops,
    paths_of,
    read_file,
    unpack,
    untrusted_types,
    with_plain_members,
)
from sklearn_pate.stored_types import OF_MODELS

_FORMAT = {"format": "sklearn_pate study", "format_version": 1}
_WHOLE_NUMBER = r"[+-]?\d{1,18}"
_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_BOOLEANS = {"True": 1.0, "False": 0.0}
# For a missing number; in a column of text they are text, perhaps a class or an id.
_MISSING = ["NA", "N/A", "n/a", "NaN", "nan", "None", "null", "NULL", "<NA>"]


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
                f"sites={self.sites!r} must name at least one site, and no site twice."
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
                f"{path} is not a study; pass the file that the command study wrote."
            ) from None
        if form != _FORMAT:
            raise ValueError(
                f"{path} has format {printable(str(form['format_version']))}, and this "
                f"version reads format {_FORMAT['format_version']}; install the "
                "version of sklearn-pate that wrote it."
            )
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

    def check_site(self, site: str) -> None:
        """Check that a site takes part in the study."""
        if site not in self.sites:
            raise ValueError(
                f"site={site!r} is not one of the sites of the study "
                f"({', '.join(self.sites)}); correct the name."
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


def read_public(path: Path) -> Any:
    """Read public rows as a dataframe of pandas."""
    frame = _read(path)
    if 0 in frame.shape:
        raise ValueError(f"{path} has no rows; pass the public rows.")
    if path.suffix == ".csv":
        # Not by pandas, whose versions read some digits as different bits.
        for name in frame.columns:
            frame[name] = _typed(frame[name])
    return frame


def read_private(
    path: Path, X_public: Any, others: Sequence[str]
) -> tuple[Any, dict[str, list[Any]]]:
    """Read the columns of the public rows as their types, and some other columns.

    Each value is read on its own: a column whose type was guessed would be read in
    another way if one row held an odd value.
    """
    pandas = optional_module("pandas", "pandas")
    frame = _read(path)
    missing = [one for one in (*X_public.columns, *others) if one not in frame.columns]
    if missing:
        raise ValueError(
            f"{path} has no column {', '.join(map(repr, missing))}; it needs the "
            "columns of the public rows and the columns that options name."
        )
    if len(frame) == 0:
        raise ValueError(f"{path} has no rows; pass the rows of this site.")
    columns = {}
    for name, kind in X_public.dtypes.items():
        column = frame[name]
        try:
            if kind.kind == "b":
                values = [_BOOLEANS.get(value, value) for value in column.tolist()]
                column = pandas.Series(values, dtype=object, name=name)
            if kind.kind in "biuf":
                column = read_numbers(column.to_frame())[:, 0]
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}: {printable(error)}") from None
        columns[name] = column
    return pandas.DataFrame(columns), {name: frame[name].tolist() for name in others}


def read_rows(
    path: Path, model: PublishedClassifier, others: Sequence[str]
) -> tuple[Any, dict[str, list[Any]]]:
    """Read the features of a model, and some other columns.

    Each cell of a CSV file is read on its own: as a number if it is one, else as text.
    """
    frame = _read(path)
    columns = getattr(model, "feature_names_in_", None)
    names = [one for one in frame.columns if one not in others]
    if columns is not None:
        names = columns.tolist()
    missing = [one for one in (*names, *others) if one not in frame.columns]
    if missing:
        raise ValueError(
            f"{path} has no column {', '.join(map(repr, missing))}; it needs the "
            "features of the model and the columns that options name."
        )
    if len(names) != model.n_features_in_ or len(frame) == 0:
        raise ValueError(
            f"{path} has {counted(len(frame), 'row')} of "
            f"{counted(len(names), 'feature')}, but the model has "
            f"{model.n_features_in_}; pass only the features of the model, in the "
            "order of the fit."
        )
    X = frame[names]
    if path.suffix == ".csv":
        X = X.apply(lambda column: column.map(_cell).astype(object))
    read = {name: frame[name].tolist() for name in others}
    return (X if columns is not None else X.to_numpy()), read


def _cell(text: Any) -> Any:
    """Read a cell of a CSV file as a number if it is one, NaN if it is missing."""
    if not isinstance(text, str) or text in _MISSING:
        return np.nan
    if re.fullmatch(_NUMBER, text):
        return float(text)
    return _BOOLEANS.get(text, text)


def labels_like(labels: list[Any], classes: list[Any]) -> NDArray[np.object_]:
    """Read each label as the type of the classes, text or number."""
    return as_words(labels) if isinstance(classes[0], str) else without_words(labels)


def _typed(column: Any) -> Any:
    """Convert a column of text to whole numbers, numbers or booleans, if all are."""
    texts = column[column.notna() & ~column.isin(_MISSING)]
    if texts.isin([*_BOOLEANS]).all() and len(texts) == len(column):
        return column.map(_BOOLEANS).astype(bool)
    if not texts.str.fullmatch(_NUMBER).all():
        return column
    if len(texts) == len(column) and texts.str.fullmatch(_WHOLE_NUMBER).all():
        return column.map(int).astype(np.int64)
    return read_numbers(column.to_frame())[:, 0]


def _read(path: Path) -> Any:
    """Read a file as a dataframe; all of a CSV file is text, or missing if empty."""
    if path.suffix not in (".csv", ".parquet"):
        raise ValueError(
            f"{path} must end in .csv or .parquet, the format of the file."
        )
    pandas = optional_module("pandas", "pandas")
    try:
        if path.suffix == ".parquet":
            parquet = optional_module("pyarrow.parquet", "pyarrow")
            return parquet.read_table(path).to_pandas(ignore_metadata=True)
        frame = pandas.read_csv(path, dtype=str, keep_default_na=False, na_values=[""])
    except ValueError as error:
        raise ValueError(
            f"{path} cannot be read: {printable(error).rstrip('.')}."
        ) from None
    if not isinstance(frame.index, pandas.RangeIndex):
        raise ValueError(
            f"{path} has rows with more values than the first line has names; give "
            "each column a name."
        )
    return frame


def read_estimator(path: Path, name: str) -> Any:
    """Read a classifier: the variable `name` of a Python file, or a skops file.

    The Python file is executed.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file; correct the path of --{name}.")
    if path.suffix == ".py":
        found = _executed(path, name)
    elif path.suffix == ".skops":
        found = _unpacked(path)
    else:
        raise ValueError(f"{path} must end in .py or .skops, the format of the file.")
    if isinstance(found, type) or not hasattr(found, "fit") or not is_classifier(found):
        raise ValueError(
            f"{name} in {path} is a {type(found).__name__}, not a classifier; define "
            f"an unfitted classifier, such as {name} = LogisticRegression()."
        )
    return found


def _executed(path: Path, name: str) -> Any:
    """Execute a Python file, as Python does, and return one of its variables."""
    folder = str(path.resolve().parent)  # it may import files beside it
    sys.path.insert(0, folder)
    try:
        variables = runpy.run_path(str(path))
    except (
        Exception,
        SystemExit,
    ) as error:  # an exit code would be that of the command
        raise ValueError(
            f"{path} failed with {type(error).__name__}: {printable(str(error))}."
        ) from error
    finally:
        sys.path.remove(folder)
    if name not in variables:
        raise ValueError(
            f"{path} defines no {name}; add a line such as {name} = "
            "LogisticRegression()."
        )
    return variables[name]


def _unpacked(path: Path) -> Any:
    """Load a skops file, if skops trusts all its types."""
    skops_io = import_skops()
    packed = with_plain_members(read_file(path, "an estimator", LARGEST_MODEL), path)
    unknown = untrusted_types(skops_io, packed, path) - OF_MODELS
    if unknown:
        raise ValueError(
            f"{path} holds types that skops does not trust: "
            f"{printable(', '.join(sorted(unknown)))}; pass a Python file that defines "
            "this estimator."
        )
    try:
        return unpack(skops_io, packed, OF_MODELS)
    except Exception as error:
        raise ValueError(
            f"{path} cannot be loaded ({type(error).__name__}: {printable(error)})."
        ) from error


def run_study(given: argparse.Namespace) -> None:
    """Write a study and its key."""
    if given.output.resolve() == given.key.resolve():
        raise ValueError(
            "The study and its key cannot be one file; pass different "
            "names as --output and --key."
        )
    check_can_write([given.output, given.key], overwrite=None)
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
        f"{counted(study.n_teachers, 'teacher')} each, {n_sites * study.n_teachers} in "
        f"all, on {counted(len(public), 'public row')}. This file may be "
        f"published.\n{given.key}: the key that assigns patients to shards. Send it to "
        "the sites only."
    )


def run_vote(given: argparse.Namespace) -> None:
    """Train the teachers of a site, and write their votes."""
    check_can_write([given.output], overwrite=given.overwrite)
    study, key = Study.read(given.study), read_key(given.key)
    study.check_key(key, given.key)
    study.check_site(given.site)
    public = read_public(given.public)
    study.check_public_rows(public, given.public)
    with plain_warnings(given.parser):
        warn_of_text(public)
    _check_columns(given, study, public)
    if given.jobs == 0:
        raise ValueError(
            "n_jobs=0 is not a number of processes; pass 1 or more, or -1."
        )
    teacher = read_estimator(given.teacher, "teacher")
    others = [name for name in (given.label, given.group) if name is not None]
    X, columns = read_private(given.data, public, others)
    y = labels_like(columns[given.label], study.classes)
    ids = columns.get(given.group, np.arange(len(X)))
    codes = class_indices(y, check_classes(study.classes))
    n_left_out = np.count_nonzero(codes < 0)
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
    check_can_write(outputs, overwrite=given.overwrite)
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
    print(pate.privacy_spent_)
    print(
        f"\nWritten: {', '.join(map(str, outputs[:2]))}. These files may be published."
    )
    if given.report:
        print(
            f"Written as a draft: {outputs[-1]}. Complete it with the command report."
        )


def _check_columns(given: argparse.Namespace, study: Study, public: Any) -> None:
    """Check the columns of the label and of the group against the study."""
    if (given.group is not None) != (study.privacy_unit == "group"):
        raise ValueError(
            "The study protects groups; pass --group with the column of group ids."
            if given.group is None
            else "The study protects rows, not groups; leave --group out."
        )
    for name in (given.label, given.group):
        if name in public.columns:
            raise ValueError(
                f"Column {name!r} is in {given.public}, which makes it a feature; "
                "choose a label and a group id that are not features."
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
