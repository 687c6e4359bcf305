"""Reading of model files and cards with bounded size and memory."""

import json
import os
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

__all__ = [
    "INDEX_MEMBER",
    "LARGEST_CARD",
    "LARGEST_INDEX",
    "LARGEST_MODEL",
    "check_sizes",
    "max_unpacked",
    "printable",
    "read_file",
    "read_index",
    "read_member",
    "with_plain_members",
]

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


def read_file(path: Path, what: str, limit: int) -> bytes:
    """Read a file of at most `limit` bytes; `what` names it in errors."""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size > limit:
                raise ValueError(f"{path} is larger than {what} may be, {limit} bytes.")
            return file.read()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{path} is missing: {what} of a published classifier, which is saved as "
            "two files side by side."
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
                f"The {what} has {size} bytes, more than the {limit} that can be read "
                "again; publish a smaller student."
            )
    try:
        with_plain_members(model, "The model")
    except ValueError as error:
        raise ValueError(f"{error} Publish a smaller student.") from error


def printable(error: Exception | str) -> str:
    """Escape characters that could hide or reorder others when an error is printed."""
    return "".join(
        one if one.isprintable() else f"\\u{{{ord(one):x}}}" for one in str(error)
    )


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
