"""Files of published models, with bounds on what is read, and students in them."""

import hashlib
import json
import os
import platform
import sys
import warnings
import zipfile
from collections.abc import Collection, Iterator
from copy import copy, deepcopy
from importlib import import_module
from io import BytesIO
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning

from sklearn_pate._estimators._kinds import is_of, last_step, with_last_step
from sklearn_pate.accounting._value_checks import printable
from sklearn_pate.publication._privacy_card import (
    VERSION,
    canonical_text,
    check_card,
    full_name,
    parse_card,
)
from sklearn_pate.stored_types import OWN_BUILDER, OWN_NETWORKS, TRAINED_NETWORK

_LEAVES = (str, bytes, int, float, type, FunctionType, ModuleType)
# Largest sizes in bytes, compressed or not.
LARGEST_CARD = 2**24
LARGEST_INDEX = 2**28
LARGEST_MODEL = 2**31
# A few kilobytes of a forged file could unpack to fill the memory. An unpacked model
# has at most 16 MiB plus a hundred times the bytes of its file; forests have ten times.
_UNPACKED, _RATIO = 2**24, 100
# Each bracket or comma of the index may create an object. Their number is at most this
# plus the bytes of the file; forests have a fifth as many as bytes.
_PARTS, _MOST_PARTS = 2**18, 2**23
_MOST_MEMBERS = 2**17
# Archives that these loaders read are not unpacked on loading; others are.
_KEEPS_ARCHIVES = (None, "BytesNode", "BytearrayNode")
INDEX_MEMBER = "schema.json"
CARD_MEMBER = "privacy_card.json"
# Compressions whose readers stop at a given number of bytes.
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# Earlier versions run code that is hidden in a file (CVE-2025-54412).
OLDEST_SKOPS = (0, 12)


def read_file(path: Path, what: str, limit: int) -> bytes:
    """Read a file of at most `limit` bytes; `what` names it in errors."""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size > limit:
                raise ValueError(
                    f"{path} is larger than {limit} bytes, the limit for {what}."
                )
            return file.read()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{path} is missing: it is {what} of a published classifier. Keep the two "
            "files of a classifier in one folder."
        ) from None


def read_member(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    """Read one member of an open archive, if its size is bounded by `limit` bytes."""
    info = archive.getinfo(name)
    if info.compress_type not in _PACKINGS:
        raise ValueError(f"{name} is packed by method {info.compress_type}")
    if info.file_size > limit:
        raise ValueError(f"{name} is larger than {limit} bytes")
    with archive.open(info) as member:
        # read() without a size would unpack more, and then discard it.
        return member.read(info.file_size + 1)


def max_unpacked(size: int) -> int:
    """Bound the total size of the members of a model file of `size` bytes."""
    return min(LARGEST_MODEL, _UNPACKED + _RATIO * size)


def read_index(archive: zipfile.ZipFile, size: int) -> bytes:
    """Read the index of a model file, unparsed; parsing it takes bounded memory."""
    index = read_member(archive, INDEX_MEMBER, min(max_unpacked(size), LARGEST_INDEX))
    most = min(_PARTS + size, _MOST_PARTS)
    if sum(map(index.count, (b"[", b"{", b",", b"\\u"))) > most:
        raise ValueError(f"{INDEX_MEMBER} has more than {most} parts")
    return index


def with_plain_members(model: bytes, path: Path | str) -> bytes:
    """Store all members of a model file without compression, also in nested archives.

    A reader of the result cannot unpack more than there is.
    """
    try:
        with zipfile.ZipFile(BytesIO(model)) as archive:
            loaders = _loaders(read_index(archive, len(model)))
        return _unpacked(model, max_unpacked(len(model)), loaders)[0]
    except Exception as error:
        raise ValueError(
            f"{path} is no file that skops can read ({printable(error)})."
        ) from error


def check_sizes(model: bytes, text: bytes) -> None:
    """Raise ValueError if a model or its card is too large to be read again."""
    for what, size, limit in (
        ("privacy card", len(text), LARGEST_CARD),
        ("model", len(model), LARGEST_MODEL),
    ):
        if size > limit:
            raise ValueError(
                f"The {what} has {size} bytes, but only {limit} can be read again; "
                "publish a smaller student."
            )


def check_can_unpack(model: bytes) -> None:
    """Raise ValueError if a model has too much in it to be read again."""
    try:
        with_plain_members(model, "The model")
    except ValueError as error:
        raise ValueError(f"{error} Publish a smaller student.") from error


def _unpacked(
    packed: bytes, left: int, loaders: dict[str, Any] | None = None
) -> tuple[bytes, int]:
    """Store an archive's members uncompressed; return it and the bytes left."""
    if packed.count(b"PK\x01\x02") > _MOST_MEMBERS:  # one per member
        raise ValueError(f"an archive has more than {_MOST_MEMBERS} members")
    plain = BytesIO()
    with (
        zipfile.ZipFile(BytesIO(packed)) as source,
        zipfile.ZipFile(plain, "w") as archive,
    ):
        names = source.namelist()
        if len(set(names)) < len(names):
            raise ValueError("a member occurs twice")
        for name in names:
            if loaders is not None and name not in loaders:
                raise ValueError(f"its index does not name {name}")
            content = read_member(source, name, left)
            left -= len(content)
            # Sparse matrices are saved as archives; deeper ones are never read.
            if (
                loaders
                and content.startswith(b"PK")
                and loaders[name] not in _KEEPS_ARCHIVES
            ):
                content, left = _unpacked(content, left)
            archive.writestr(zipfile.ZipInfo(name), content)
    return plain.getvalue(), left


def _loaders(index: bytes) -> dict[str, Any]:
    """Map each member that the index names to its loader; each is of one object."""
    objects: dict[str, Any] = {}

    def note(node: dict[str, Any]) -> None:
        name, identity = node.get("file"), node.get("__id__")
        one = (identity, node.get("__loader__"))
        # skops reads a member once per identity, and each time without one.
        if isinstance(name, str) and (
            not identity or objects.setdefault(name, one) != one
        ):
            raise ValueError(f"{INDEX_MEMBER} names {name} for two objects")

    json.loads(index, object_hook=note)
    loaders = {name: loader for name, (_, loader) in objects.items()}
    return loaders | dict.fromkeys((INDEX_MEMBER, CARD_MEMBER))


def import_skops() -> ModuleType:
    """Import skops.io; raise ImportError if skops is missing or too old to be safe."""
    try:
        skops = import_module("skops")
        skops_io = import_module("skops.io")
    except ModuleNotFoundError as error:
        if error.name != "skops":
            raise
        raise ImportError(
            "Saving and loading a PublishedClassifier needs skops; pip install skops."
        ) from error
    if tuple(int(part) for part in skops.__version__.split(".")[:2]) < OLDEST_SKOPS:
        raise ImportError(
            f"skops {skops.__version__} may run code in a forged file; pip install "
            "--upgrade skops."
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


def read_pair(
    path: str | os.PathLike[str],
) -> tuple[bytes, dict[str, Any], tuple[Path, Path]]:
    """Read a model file, unparsed, and its card, and check one against the other.

    The card is returned without the sha256 of the model file; the paths are for errors.
    """
    paths = paths_of(path)
    model = read_file(paths[0], "the model", LARGEST_MODEL)
    text = read_file(paths[1], "the privacy card", LARGEST_CARD)
    return model, checked_card(model, text, paths), paths


def checked_card(model: bytes, text: bytes, paths: tuple[Path, Path]) -> dict[str, Any]:
    """Read the card of a model file without its sha256; check one against the other."""
    model_path, card_path = paths
    card = parse_card(text, card_path)
    if hashlib.sha256(model).hexdigest() != card.pop("sha256"):
        raise ValueError(
            f"{model_path} does not have the sha256 on {card_path}. One of them is "
            "damaged, was changed, or belongs to another model; get both files again."
        )
    if embedded_card(model, model_path) != canonical_text(card):
        raise ValueError(
            f"{card_path} was edited: it differs from the copy of the card inside "
            f"{model_path}. Get both files again."
        )
    check_card(card, card_path)
    return card


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
            _add(archive, CARD_MEMBER, text, packing)
        if len(saved) + len(text) <= max_unpacked(packed.tell()):
            break
    return packed.getvalue()


def embedded_card(model: bytes, path: Path) -> bytes:
    """Read the copy of the card in a model file; nothing is loaded."""
    try:
        with zipfile.ZipFile(BytesIO(model)) as archive:
            return read_member(archive, CARD_MEMBER, LARGEST_CARD)
    except Exception as error:
        raise ValueError(
            f"{path} holds no copy of its privacy card, as it was not written by "
            f"save() ({printable(error)})."
        ) from error


def untrusted_types(skops_io: ModuleType, model: bytes, path: Path) -> set[str]:
    """Name the types in a model file that skops does not trust; nothing is loaded."""
    try:
        return set(skops_io.get_untrusted_types(data=model))
    except Exception as error:
        raise ValueError(
            f"{path} is no file that skops can read ({printable(error)})."
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


def without_caches(student: Any) -> Any:
    """Copy a fitted student without caches, callbacks and histories.

    `memory` of a Pipeline, and callbacks and history of skorch networks, name folders
    of this machine. The copy predicts the same.
    """
    student = deepcopy(student)
    for one in reachable(student):
        if isinstance(one, BaseEstimator) and _is_folder(vars(one).get("memory")):
            one.memory = None
        if is_of(one, "skorch") and hasattr(one, "callbacks_"):
            one.callbacks, one.callbacks_ = None, []
            one.history_ = type(one.history_)()
    return student


def taken_apart(student: Any) -> dict[str, Any]:
    """Separate a network at the end of a student from its weights, to save both.

    "weights" are arrays; they are missing for other students.
    """
    network = last_step(student)
    if not _is_built_again(network):
        return {"student": student}
    network = copy(network)
    module = network.__dict__.pop("module_")
    weights = {name: tensor.numpy() for name, tensor in module.state_dict().items()}
    return {"student": with_last_step(student, network), "weights": weights}


def restored(content: dict[str, Any]) -> Any:
    """Restore the student from the parts that `taken_apart` returned.

    ValueError is raised if another model came with weights, a network came without, or
    its module has tensors beside them.
    """
    student = content["student"]
    network, has_weights = last_step(student), "weights" in content
    if has_weights != _is_built_again(network):
        which = "with" if has_weights else "without"
        raise ValueError(f"a {type(network).__name__} {which} weights")
    if not has_weights:
        return student
    torch = import_module("torch")
    parametrize = import_module("torch.nn.utils.parametrize")
    # On "meta", no memory is taken until the shapes have been compared.
    with torch.device("meta"):
        module = network._make_module()
    for layer in list(module.modules()):
        if parametrize.is_parametrized(layer):  # trained modules are not
            for name in list(layer.parametrizations):
                parametrize.remove_parametrizations(layer, name)
            layer._load_state_dict_pre_hooks.clear()
    weights = content["weights"].items()
    weights = {name: torch.from_numpy(array) for name, array in weights}
    module.load_state_dict(weights, assign=True)
    if any(isinstance(one, torch.Tensor) and one.is_meta for one in reachable(module)):
        raise ValueError(
            f"a {type(module).__name__} with tensors that are not in its state_dict; "
            "register them as persistent buffers"
        )
    network.module_ = module.eval()
    return student


def reachable(root: Any) -> Iterator[Any]:
    """Yield every object reachable through attributes and items, once.

    Texts, numbers, functions, modules and classes are left out.
    """
    seen: dict[int, Any] = {}
    todo = [root]
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, _LEAVES):
            continue
        seen[id(one)] = one
        yield one
        if isinstance(one, dict):
            todo += one.values()
        elif isinstance(one, (list, tuple, set)):
            todo += one
        elif isinstance(one, np.ndarray) and one.dtype.hasobject:
            todo += one.ravel().tolist()
        todo += getattr(one, "__dict__", {}).values()


def _is_folder(memory: Any) -> bool:
    return isinstance(memory, (str, os.PathLike)) or hasattr(memory, "location")


def _is_built_again(network: Any) -> bool:
    """Check that a network's module, without its weights, follows from parameters."""
    name = full_name(type(network))
    if name == TRAINED_NETWORK:
        return isinstance(network.module, type)
    if name not in OWN_NETWORKS:
        return False
    return network.module is None or full_name(type(network.module)) == OWN_BUILDER


def versions_of(model: Any) -> dict[str, str]:
    """Return the versions of Python and of every package that a model uses."""
    packages = {"numpy", "sklearn", "sklearn_pate"}
    for one in reachable(model):
        packages.update(kind.__module__.partition(".")[0] for kind in type(one).__mro__)
    found = {
        name: getattr(sys.modules.get(name), "__version__", None) for name in packages
    }
    found["scikit-learn"] = found.pop("sklearn")
    # In some packages it is a module, which prints with its path.
    named = {
        name: str(version)  # of torch, it is an instance of a subclass
        for name, version in sorted(found.items())
        if isinstance(version, str) and VERSION.fullmatch(version)
    }
    return {"python": platform.python_version()} | named
