"""Model file, which runs no code when it is loaded, and the card beside it."""

import hashlib
import os
import secrets
import warnings
import zipfile
from collections.abc import Collection, Mapping
from importlib import import_module
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

from sklearn.exceptions import InconsistentVersionWarning

from sklearn_pate.publication import _bounded_files as bounded
from sklearn_pate.publication._privacy_card import (
    canonical_text,
    check_card,
    parse_card,
)
from sklearn_pate.publication._student_state import (
    OWN_BUILDER,
    OWN_NETWORKS,
    TRAINED_NETWORK,
    full_name,
)

__all__ = [
    "TRUSTED",
    "add_card",
    "embedded_card",
    "import_skops",
    "paths_of",
    "read_pair",
    "type_names",
    "unpack",
    "untrusted_types",
    "write_all",
]

# Types by full name: a trusted module would let a file call the functions it imports.
TRUSTED = (
    OWN_NETWORKS
    | frozenset(
        [
            OWN_BUILDER,
            TRAINED_NETWORK,
            "torch.nn.modules.loss.CrossEntropyLoss",
            "torch.nn.modules.loss.NLLLoss",
        ]
    )
    | frozenset(
        f"sklearn_pate.{name}"
        for name in (
            "_estimators._class_codes.ContiguousClasses",
            "_marginals._cells.Bins",
            "_marginals._cells.Values",
            "baselines._naive_bayes.NaiveBayes",
            "baselines.linear._dp_linear.DPLinearSVC",
            "baselines.linear._dp_linear.DPLogisticRegression",
            "baselines.linear._norm_bounds.Bounds",
            "students._distillation.DistillationClassifier",
            "students._image_representation.ImageRepresentation",
            "students._score_basis.ScoreBasis",
            "students._score_function.ScoreFunction",
            "students._table_representation.TableRepresentation",
            "students._table_representation._Numbers",
            "students._table_representation._SparseColumns",
            "students._table_representation._TableColumns",
            "students._graph.GraphSelfTrainingClassifier",
            "students.networks._augmentation.ImageAugmentation",
            "students.networks._augmentation.TabularAugmentation",
        )
    )
)
# Earlier versions run code that is hidden in a file (CVE-2025-54412).
OLDEST_SKOPS = (0, 12)


def import_skops() -> ModuleType:
    """Import skops.io; raise ImportError if skops is missing or too old to be safe."""
    try:
        skops = import_module("skops")
        skops_io = import_module("skops.io")
    except ModuleNotFoundError as error:
        if error.name != "skops":
            raise
        raise ImportError(
            "Saving and loading a PublishedClassifier needs skops; pip install "
            "'sklearn-pate[publish]'."
        ) from error
    if tuple(int(part) for part in skops.__version__.split(".")[:2]) < OLDEST_SKOPS:
        raise ImportError(
            f"skops {skops.__version__} may run code in a forged file; pip install "
            "'sklearn-pate[publish]' for a later version."
        )
    return skops_io


def paths_of(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Return the paths of a model file and of the card beside it."""
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"path={path!r} must be a str or a path, such as 'a.skops'.")
    path = Path(path)
    if path.suffix != ".skops":
        raise ValueError(
            f"path={str(path)!r} must end in '.skops'; the card has the same name, "
            "with '.json'."
        )
    return path, path.with_suffix(".json")


def type_names(trusted: Collection[str | type]) -> set[str]:
    """Return the full names of the types that a user trusts."""
    if isinstance(trusted, (list, tuple, set, frozenset)):
        names = {full_name(one) if isinstance(one, type) else one for one in trusted}
        if all(isinstance(name, str) for name in names):
            return names
    raise ValueError(
        f"trusted={trusted!r} must be a list of types or of their full names, such as "
        "['sklearn.tree._tree.Tree']."
    )


def write_all(contents: Mapping[Path, bytes], mode: int = 0o666) -> None:
    """Write all files under temporary names, then rename them in order."""

    def opener(name: str, flags: int) -> int:
        return os.open(name, flags, mode)

    written = []
    try:
        for path, content in contents.items():
            temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
            with open(temporary, "xb", opener=opener) as file:
                written.append((temporary, path))
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for temporary, path in written:
            os.replace(temporary, path)
    finally:
        for temporary, _ in written:
            temporary.unlink(missing_ok=True)


def read_pair(
    path: str | os.PathLike[str],
) -> tuple[bytes, dict[str, Any], tuple[Path, Path]]:
    """Read a model file, unparsed, and its card, and check one against the other.

    The card is returned without the sha256 of the model file; the paths are for errors.
    """
    model_path, card_path = paths_of(path)
    model = bounded.read_file(model_path, "the model", bounded.LARGEST_MODEL)
    text = bounded.read_file(card_path, "the privacy card", bounded.LARGEST_CARD)
    card = parse_card(text, card_path)
    if hashlib.sha256(model).hexdigest() != card.pop("sha256"):
        raise ValueError(
            f"{model_path} does not have the sha256 on {card_path}: one of them is "
            "damaged, was changed, or belongs to another model."
        )
    if embedded_card(model, model_path) != canonical_text(card):
        raise ValueError(
            f"{card_path} differs from the copy of the card inside {model_path}: it "
            "was edited."
        )
    check_card(card, card_path)
    return model, card, (model_path, card_path)


def add_card(saved: bytes, text: bytes) -> bytes:
    """Add a copy of the card to a model file, whose members get a fixed date."""
    # Members that compress too well to be read again are stored uncompressed.
    for packing in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
        packed = BytesIO()
        with (
            zipfile.ZipFile(BytesIO(saved)) as source,
            zipfile.ZipFile(packed, "w") as archive,
        ):
            for member in source.namelist():
                _add(archive, member, source.read(member), packing)
            _add(archive, bounded.CARD_MEMBER, text, packing)
        if len(saved) + len(text) <= bounded.max_unpacked(packed.tell()):
            break
    return packed.getvalue()


def embedded_card(model: bytes, path: Path) -> bytes:
    """Read the copy of the card in a model file; nothing is loaded."""
    try:
        with zipfile.ZipFile(BytesIO(model)) as archive:
            return bounded.read_member(
                archive, bounded.CARD_MEMBER, bounded.LARGEST_CARD
            )
    except Exception as error:
        raise ValueError(
            f"{path} holds no copy of its privacy card; it was not written by save() "
            f"({bounded.printable(error)})."
        ) from error


def untrusted_types(skops_io: ModuleType, model: bytes, path: Path) -> set[str]:
    """Name the types in a model file that skops does not trust; nothing is loaded."""
    try:
        return set(skops_io.get_untrusted_types(data=model))
    except Exception as error:
        raise ValueError(
            f"{path} is no file that skops can read ({bounded.printable(error)})."
        ) from error


def unpack(
    skops_io: ModuleType, model: bytes, trusted: Collection[str]
) -> dict[str, Any]:
    """Load the parts of a published classifier that skops saved."""
    with warnings.catch_warnings():
        # load() warns once for the whole model.
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        return skops_io.loads(model, trusted=sorted(trusted))


def _add(archive: zipfile.ZipFile, member: str, content: bytes, packing: int) -> None:
    info = zipfile.ZipInfo(member)  # dated 1980
    info.compress_type = packing
    archive.writestr(info, content)
