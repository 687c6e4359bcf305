"""Files of votes that travel between sites. Sensitive."""

import hashlib
import json
import os
import secrets
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_pate._inputs._strict_json import strict_json

__all__ = ["read_votes", "write_votes"]

_FIRST_LINE = b"sklearn_pate votes, format 1\n"


def write_votes(
    path: str | os.PathLike[str], header: dict[str, Any], counts: NDArray[Any]
) -> None:
    """Write counts behind a header of plain values; only this user can read them."""
    path = Path(path)
    content = counts.astype(counts.dtype.newbyteorder("<")).tobytes()
    header = header | {
        "shape": list(counts.shape),
        "bytes": counts.itemsize,
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    # Complete, or not there: a part that was cut off could be sent.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:
            file.write(_FIRST_LINE + json.dumps(header).encode() + b"\n" + content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def read_votes(
    path: str | os.PathLike[str],
) -> tuple[dict[str, Any], NDArray[np.unsignedinteger[Any]]]:
    """Read the header and the counts of a file, or raise ValueError."""
    with open(path, "rb") as file:
        if file.readline(len(_FIRST_LINE)) != _FIRST_LINE:
            raise ValueError(
                f"{path} is no file of votes; pass one that Votes.save or "
                "the command vote wrote."
            )
        text, content = file.readline(), file.read()
    try:
        header = strict_json(text)
        whole = hashlib.sha256(content).hexdigest() == header["sha256"]
        kind = np.dtype(f"<u{header['bytes']}")
        counts = np.frombuffer(content, dtype=kind).reshape(header["shape"])
    except (KeyError, OverflowError, TypeError, ValueError):
        whole = False
    if not whole:
        raise ValueError(
            f"{path} was cut off or changed; ask its site to send it again."
        )
    return header, counts
