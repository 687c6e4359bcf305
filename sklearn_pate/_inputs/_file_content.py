"""Files: written whole, strict JSON, and digests of rows and keys."""

import hashlib
import json
import math
import os
import secrets
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from sklearn_pate._inputs._containers import (
    check_container,
    column_names,
    column_of,
    is_frame,
)
from sklearn_pate._inputs._labels import is_missing, public_table

_LARGEST_KEY = 2**64
# The curves of the fits of a search need 6, and each search around it 2 more.
_LARGEST_DEPTH = 16
_LONGEST_INTEGER = 100


def digest_of_rows(X_public: Any) -> str:
    """Return the SHA-256 of public rows: names, types and values of all columns.

    Rows that differ by one bit have another digest. Raises ValueError for a value that
    is neither a number, nor text, nor missing.
    """
    X = public_table(X_public)
    check_container("X_public", X)
    hashed = hashlib.sha256()
    if is_frame(X):
        parts: list[Any] = [
            part
            for column, name in enumerate(column_names(X) or ())
            for part in (str(name), column_of(X, column))
        ]
    elif sp.issparse(X):
        rows = X.tocsr()
        parts = ["sparse", list(rows.shape), rows.data, rows.indices, rows.indptr]
    else:
        array = np.asarray(X)
        parts = ["array", list(array.shape), array.ravel()]
    for part in parts:
        content = _content(part)
        hashed.update(len(content).to_bytes(8, "little") + content)
    return hashed.hexdigest()


def _content(values: Any) -> bytes:
    """Return the bytes of a column, or of a name."""
    if isinstance(values, str):
        return values.encode("utf-8", "surrogatepass")
    array = np.asarray(values)
    if array.dtype.kind in "biufmM":
        array = array.astype(array.dtype.newbyteorder("<"))
        return f"{array.dtype.str} ".encode() + array.tobytes()
    return b"".join(map(_value, array.tolist()))


def _value(value: Any) -> bytes:
    if is_missing(value):
        content = b"missing"
    elif isinstance(value, str):
        content = b"text " + value.encode("utf-8", "surrogatepass")
    elif isinstance(value, (Real, np.bool_)):
        content = b"number " + repr(float(value)).encode()
    else:
        raise ValueError(
            f"X_public holds a value of type {type(value).__name__}; make it a number "
            "or text, so that sites can compare their public rows."
        )
    return len(content).to_bytes(8, "little") + content


def key_bytes(key: int | bytes) -> bytes:
    """Return the bytes of a key, or raise ValueError."""
    if isinstance(key, bytes):
        if key:
            return key
    elif (
        isinstance(key, Integral)
        and not isinstance(key, bool)
        and 0 <= key < _LARGEST_KEY
    ):
        return int(key).to_bytes(8, "little")
    raise ValueError(
        "key must be a whole number from 0 to 2**64 - 1, or bytes, such as "
        "secrets.token_bytes(32)."
    )


def key_commitment(key: int | bytes) -> str:
    """Return a hash that only this key has; it does not reveal a random key."""
    committed = hashlib.sha256(b"sklearn_pate key of shards\0" + key_bytes(key))
    return committed.hexdigest()


def check_can_write(
    paths: Iterable[Path], *, overwrite: bool | None, name: str = ""
) -> None:
    """Check that files can be written, before work is done for them.

    `name` is that of a parameter. None for `overwrite` refuses files that exist without
    a way to replace them.
    """
    for path in paths:
        if not path.parent.is_dir():
            raise FileNotFoundError(
                f"There is no folder {path.parent} for {name}{str(path)!r}; create it "
                "first."
            )
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a folder; choose another path.")
        if path.exists() and not overwrite:
            replace = ", or pass overwrite=True to replace it"
            advice = "" if overwrite is None else replace
            raise FileExistsError(
                f"{path} exists already; choose another path{advice}."
            )


def write_files(contents: Mapping[Path, bytes], mode: int = 0o666) -> None:
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


def strict_json(content: bytes) -> Any:
    """Read a text, or raise ValueError unless it is strict JSON of bounded depth."""
    try:
        value = json.loads(
            content,
            parse_constant=_refuse,
            parse_float=_finite,
            parse_int=_short,
            object_pairs_hook=_without_duplicates,
        )
        _check_depth(value)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not strict JSON ({error})") from None
    return value


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(_LARGEST_DEPTH):
        level = [
            one
            for item in level
            if isinstance(item, (list, dict))
            for one in (item.values() if isinstance(item, dict) else item)
        ]
    if level:
        raise ValueError(f"it is nested more than {_LARGEST_DEPTH} deep")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


def _short(text: str) -> int:
    if len(text) > _LONGEST_INTEGER:
        raise ValueError("a number is too long")
    return int(text)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice")
    return found
