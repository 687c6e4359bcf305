"""Reading files of bounded size, packed or not, and what they say."""

import json
import os
import zipfile
from io import BytesIO

__all__ = [
    "INDEX_MEMBER",
    "LARGEST_CARD",
    "LARGEST_INDEX",
    "LARGEST_MODEL",
    "check_sizes",
    "printable",
    "read_file",
    "read_index",
    "read_member",
    "room",
    "with_plain_members",
]

# No card, index or model is larger than this, in bytes, packed or not.
LARGEST_CARD = 2**24
LARGEST_INDEX = 2**28
LARGEST_MODEL = 2**31
# A few kilobytes of a forged file could fill the memory all the same. Unpacked, a model
# has at most 16 MiB and a hundred times the bytes of its file; forests have ten times.
_UNPACKED, _RATIO = 2**24, 100
# Each bracket or comma of the index may take an object in memory. It has this many more
# than the file has bytes at most; forests have a fifth as many as bytes.
_PARTS, _MOST_PARTS = 2**18, 2**23
_MOST_MEMBERS = 2**17
# Other members that are archives are unpacked when they are loaded.
_AS_IT_IS = (None, "BytesNode", "BytearrayNode")
INDEX_MEMBER = "schema.json"
CARD_MEMBER = "privacy_card.json"
# Their readers stop at a number of bytes that is given.
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def read_file(path, what, limit):
    """Read a file.

    Parameters
    ----------
    path : Path
        Where it is.

    what : str
        What it is, for the error.

    limit : int
        The number of bytes that it may have.

    Returns
    -------
    content : bytes
        All of it.

    Raises
    ------
    FileNotFoundError
        If it is missing.

    ValueError
        If it has more bytes.
    """
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


def read_member(archive, name, limit):
    """Read one member of an archive, of bounded size.

    Parameters
    ----------
    archive : zipfile.ZipFile
        Open.

    name : str
        The member.

    limit : int
        The number of bytes that it may have.

    Returns
    -------
    content : bytes
        All of it.

    Raises
    ------
    ValueError
        If it has more bytes, or is packed in a way whose size is not bounded.
    """
    info = archive.getinfo(name)
    if info.compress_type not in _PACKINGS:
        raise ValueError(f"{name} is packed by method {info.compress_type}")
    if info.file_size > limit:
        raise ValueError(f"{name} is larger than {limit} bytes")
    with archive.open(info) as member:
        # Without a number, it would unpack more than that, and then cut it off.
        return member.read(info.file_size + 1)


def room(size):
    """Bound the size of what is packed in a model file.

    Parameters
    ----------
    size : int
        Bytes of the file.

    Returns
    -------
    room : int
        Bytes that its members may have in all.
    """
    return min(LARGEST_MODEL, _UNPACKED + _RATIO * size)


def read_index(archive, size):
    """Read the index of a model file, which takes bounded memory once parsed.

    Parameters
    ----------
    archive : zipfile.ZipFile
        The model file.

    size : int
        Bytes of the file.

    Returns
    -------
    index : bytes
        Not parsed.

    Raises
    ------
    ValueError
        If it is larger than may be, or has more parts.
    """
    index = read_member(archive, INDEX_MEMBER, min(room(size), LARGEST_INDEX))
    most = min(_PARTS + size, _MOST_PARTS)
    if sum(map(index.count, (b"[", b"{", b",", b"\\u"))) > most:
        raise ValueError(f"{INDEX_MEMBER} has more than {most} parts")
    return index


def with_plain_members(model, path):
    """Unpack all members of a model file, of bounded size in all.

    Parameters
    ----------
    model : bytes
        The model file.

    path : Path
        Where it is, for the error.

    Returns
    -------
    model : bytes
        The same members, not compressed, nor what archives among them hold: nothing
        that reads it has to unpack more than there is.

    Raises
    ------
    ValueError
        If it is no such file, or larger than may be.
    """
    try:
        with zipfile.ZipFile(BytesIO(model)) as archive:
            loaders = _loaders(read_index(archive, len(model)))
        return _unpacked(model, room(len(model)), loaders)[0]
    except Exception as error:
        raise ValueError(
            f"{path} is no file that skops can read ({printable(error)})."
        ) from error


def check_sizes(model, text):
    """Raise unless a model and its card can be read again.

    Parameters
    ----------
    model : bytes
        The model file.

    text : bytes
        Its card.

    Raises
    ------
    ValueError
        If one of them is larger than may be.
    """
    for what, size, limit in (
        ("privacy card", len(text), LARGEST_CARD),
        ("model", len(model), LARGEST_MODEL),
    ):
        if size > limit:
            raise ValueError(
                f"The {what} has {size} bytes, and files of more than {limit} are not "
                "read again; publish a smaller student."
            )
    try:
        with_plain_members(model, "The model")
    except ValueError as error:
        raise ValueError(f"{error} Publish a smaller student.") from error


def printable(error):
    """Write an error of another package, with whatever a forged file put into it.

    Parameters
    ----------
    error : Exception or str
        Any.

    Returns
    -------
    text : str
        Without characters that move or reorder others where it is printed.
    """
    return "".join(
        one if one.isprintable() else f"\\u{{{ord(one):x}}}" for one in str(error)
    )


def _unpacked(packed, left, loaders=None):
    """Store an archive's members as they are; return it, and the bytes still left."""
    if packed.count(b"PK\x01\x02") > _MOST_MEMBERS:  # each begins the entry of one
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
            # Sparse matrices are saved so; nothing reads an archive in one of these.
            if content.startswith(b"PK") and loaders and loaders[name] not in _AS_IT_IS:
                content, left = _unpacked(content, left)
            archive.writestr(zipfile.ZipInfo(name), content)
    return plain.getvalue(), left


def _loaders(index):
    """Return what reads each member that an index names, each for one object."""
    objects = {}

    def note(node):
        name, identity = node.get("file"), node.get("__id__")
        one = (identity, node.get("__loader__"))
        # skops reads a member again for each object with another identity, or none.
        if isinstance(name, str) and (
            not identity or objects.setdefault(name, one) != one
        ):
            raise ValueError(f"{INDEX_MEMBER} names {name} for two objects")

    json.loads(index, object_hook=note)
    loaders = {name: loader for name, (_, loader) in objects.items()}
    return loaders | dict.fromkeys((INDEX_MEMBER, CARD_MEMBER))
