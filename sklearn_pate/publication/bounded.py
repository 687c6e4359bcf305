"""Reading files of bounded size, packed or not, and what they say."""

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
    "read_member",
    "with_plain_members",
]

# No card, index or model is larger than this, in bytes, packed or not. A few kilobytes
# of a forged file could fill the memory otherwise.
LARGEST_CARD = 2**24
LARGEST_INDEX = 2**28
LARGEST_MODEL = 2**31
INDEX_MEMBER = "schema.json"
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
        The same members, not compressed: nothing that reads it has to unpack more than
        there is.

    Raises
    ------
    ValueError
        If it is no such file, or larger than may be.
    """
    plain, left = BytesIO(), LARGEST_MODEL
    try:
        with (
            zipfile.ZipFile(BytesIO(model)) as source,
            zipfile.ZipFile(plain, "w") as archive,
        ):
            names = source.namelist()
            if len(set(names)) < len(names):
                raise ValueError("a member occurs twice")
            for name in names:
                limit = min(left, LARGEST_INDEX) if name == INDEX_MEMBER else left
                content = read_member(source, name, limit)
                left -= len(content)
                archive.writestr(zipfile.ZipInfo(name), content)
    except Exception as error:
        raise ValueError(
            f"{path} is no file that skops can read ({printable(error)})."
        ) from error
    return plain.getvalue()


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
    with zipfile.ZipFile(BytesIO(model)) as archive:
        sizes = {info.filename: info.file_size for info in archive.infolist()}
    for what, size, limit in (
        ("privacy card", len(text), LARGEST_CARD),
        ("index of the model", sizes[INDEX_MEMBER], LARGEST_INDEX),
        ("model", max(sum(sizes.values()), len(model)), LARGEST_MODEL),
    ):
        if size > limit:
            raise ValueError(
                f"The {what} has {size} bytes, and files of more than {limit} are not "
                "read again; publish a smaller student."
            )


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
