"""A model file, which runs no code when it is loaded, and its card beside it."""

import hashlib
import os
import secrets
import warnings
import zipfile
from importlib import import_module
from io import BytesIO
from pathlib import Path

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

# Each is named: whoever could name any attribute of our modules could call functions
# that they import.
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
            "baselines.linear._dp_linear.DPLinearSVC",
            "baselines.linear._dp_linear.DPLogisticRegression",
            "baselines.linear._norm_bounds.Bounds",
            "students._distillation.DistillationClassifier",
            "students._graph.GraphSelfTrainingClassifier",
            "students.networks._augmentation.ImageAugmentation",
            "students.networks._augmentation.TabularAugmentation",
        )
    )
)
# Earlier ones run code that is hidden in a file (CVE-2025-54412).
OLDEST_SKOPS = (0, 12)


def import_skops():
    """Import skops.

    Returns
    -------
    skops_io : module
        ``skops.io``.

    Raises
    ------
    ImportError
        If it is missing, or older than what can be trusted.
    """
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
            f"skops {skops.__version__} can be made to run code by a forged file; pip "
            "install 'sklearn-pate[publish]' for a later one."
        )
    return skops_io


def paths_of(path):
    """Name the two files.

    Parameters
    ----------
    path : str or path-like
        The model file.

    Returns
    -------
    model_path : Path
        The model file.

    card_path : Path
        The card beside it.

    Raises
    ------
    ValueError
        If it does not end in ".skops".
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"path={path!r} must be a str or a path, such as 'a.skops'.")
    path = Path(path)
    if path.suffix != ".skops":
        raise ValueError(
            f"path={str(path)!r} must end in '.skops'; the card has the same name, "
            "with '.json'."
        )
    return path, path.with_suffix(".json")


def type_names(trusted):
    """Name the types that a user trusts.

    Parameters
    ----------
    trusted : collection of str or type
        As :meth:`PublishedClassifier.load` takes it.

    Returns
    -------
    names : set of str
        Full names.

    Raises
    ------
    ValueError
        If it is something else.
    """
    if isinstance(trusted, (list, tuple, set, frozenset)):
        names = {full_name(one) if isinstance(one, type) else one for one in trusted}
        if all(isinstance(name, str) for name in names):
            return names
    raise ValueError(
        f"trusted={trusted!r} must be a list of types or of their full names, such as "
        "['sklearn.tree._tree.Tree']."
    )


def write_all(contents):
    """Write all files under other names, then rename them in order.

    Parameters
    ----------
    contents : dict of Path to bytes
        What each is to hold.
    """
    written = []
    try:
        for path, content in contents.items():
            temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
            with open(temporary, "xb") as file:
                written.append((temporary, path))
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for temporary, path in written:
            os.replace(temporary, path)
    finally:
        for temporary, _ in written:
            temporary.unlink(missing_ok=True)


def read_pair(path):
    """Read a model file and its card, and check one against the other.

    Parameters
    ----------
    path : str or path-like
        The model file.

    Returns
    -------
    model : bytes
        Not loaded.

    card : dict
        Without the sha256 of the model file, which is right.

    paths : tuple of Path
        Of model and card, for errors.

    Raises
    ------
    FileNotFoundError
        If one of them is missing.

    ValueError
        If one is damaged, edited, or not the other's.
    """
    model_path, card_path = paths_of(path)
    model = bounded.read_file(model_path, "the model", bounded.LARGEST_MODEL)
    text = bounded.read_file(card_path, "the privacy card", bounded.LARGEST_CARD)
    card = parse_card(text, card_path)
    if hashlib.sha256(model).hexdigest() != card.pop("sha256"):
        raise ValueError(
            f"{model_path} does not have the sha256 that {card_path} names: one of "
            "them is damaged, was changed, or belongs to another model."
        )
    if embedded_card(model, model_path) != canonical_text(card):
        raise ValueError(
            f"{card_path} differs from the copy of the card inside {model_path}: it "
            "was edited."
        )
    check_card(card, card_path)
    return model, card, (model_path, card_path)


def add_card(saved, text):
    """Put a copy of the card into a model file.

    Parameters
    ----------
    saved : bytes
        What skops wrote, a zip archive.

    text : bytes
        The card.

    Returns
    -------
    model : bytes
        All members anew, without the time of day and the time zone in which they were
        saved.
    """
    # What compresses so well that it would not be read again is stored as it is.
    for packing in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
        packed = BytesIO()
        with (
            zipfile.ZipFile(BytesIO(saved)) as source,
            zipfile.ZipFile(packed, "w") as archive,
        ):
            for member in source.namelist():
                _add(archive, member, source.read(member), packing)
            _add(archive, bounded.CARD_MEMBER, text, packing)
        if len(saved) + len(text) <= bounded.room(packed.tell()):
            break
    return packed.getvalue()


def embedded_card(model, path):
    """Read the copy of the card; nothing is loaded.

    Parameters
    ----------
    model : bytes
        The model file.

    path : Path
        Where it is, for the error.

    Returns
    -------
    text : bytes
        The card.

    Raises
    ------
    ValueError
        If there is none.
    """
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


def untrusted_types(skops_io, model, path):
    """Name the types in a model file that skops does not trust; nothing is loaded.

    Parameters
    ----------
    skops_io : module
        ``skops.io``.

    model : bytes
        The model file.

    path : Path
        Where it is, for the error.

    Returns
    -------
    names : set of str
        Full names.

    Raises
    ------
    ValueError
        If skops cannot read it.
    """
    try:
        return set(skops_io.get_untrusted_types(data=model))
    except Exception as error:
        raise ValueError(
            f"{path} is no file that skops can read ({bounded.printable(error)})."
        ) from error


def unpack(skops_io, model, trusted):
    """Load what skops saved.

    Parameters
    ----------
    skops_io : module
        ``skops.io``.

    model : bytes
        The model file.

    trusted : collection of str
        Full names of types.

    Returns
    -------
    content : dict
        The parts of a published classifier.
    """
    with warnings.catch_warnings():
        # One for the whole says as much as one for every tree of a forest.
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        return skops_io.loads(model, trusted=sorted(trusted))


def _add(archive, member, content, packing):
    info = zipfile.ZipInfo(member)  # dated 1980
    info.compress_type = packing
    archive.writestr(info, content)
