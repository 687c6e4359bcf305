"""Ids of groups, in one spelling for all containers and types."""

import hashlib
import re
from decimal import Decimal
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_pate._inputs._containers import as_objects, check_container
from sklearn_pate._inputs._labels import is_missing

__all__ = ["group_ids", "spelled_ids"]

_Texts = NDArray[np.bytes_]

# Integers above this are not exact in float64.
_LARGEST_EXACT_FLOAT = 2**53

# How numpy and pandas write whole floats, booleans and missing values among strings.
_WHOLE_FLOAT_SPELLED = re.compile(r"-?\d+\.0")
_EXPONENT_SPELLED = re.compile(r"-?\d{1,20}(\.\d{1,20})?e\+\d\d")
_BOOLEAN_SPELLED = {"True": "1", "False": "0"}
_MISSING_SPELLED = {"", "nan", "NaN", "None", "<NA>", "NaT"}
_ODD_WORDS = [b"-0", *map(str.encode, {*_BOOLEAN_SPELLED, *_MISSING_SPELLED})]
# Longer ids are hashed, as numpy stores every id of an array at the longest width.
_LONGEST_ID = 200
# Booleans, integers, floats, text, and objects.
_ID_KINDS = "biufUTO"


def group_ids(groups: Any) -> tuple[_Texts, NDArray[np.intp]]:
    """Return distinct ids in one spelling, and the index of each row's id.

    A row without an id has index -1 and must not be used: any person may own it. The
    result and the errors are as sensitive as the ids.
    """
    texts, has_id = spelled_ids(groups)
    if not np.any(has_id):
        raise ValueError(
            "groups holds no id at all; pass a whole number or a string for every row."
        )
    ids, group_of_known = np.unique(texts[has_id], return_inverse=True)
    group_of_row = np.full(len(texts), -1, dtype=np.intp)
    group_of_row[has_id] = group_of_known
    return ids, group_of_row


def spelled_ids(groups: Any, name: str = "groups") -> tuple[_Texts, NDArray[np.bool_]]:
    """Spell each id as UTF-8 in one way, and return which rows have an id.

    numpy changes the type of all ids when one of another type is added: 5 becomes 5.0,
    "5" or "5.0". All are spelled "5" here; two ids with one spelling are one group,
    which protects both. Types whose spelling numpy changes irreversibly are refused.
    `name` stands for the ids in messages.
    """
    check_container(name, groups)
    try:
        return _spelled(_as_array(groups))
    except _UnreadableIdError as error:
        raise ValueError(f"{name} {error}") from None


def _spelled(values: NDArray[Any]) -> tuple[_Texts, NDArray[np.bool_]]:
    kind = values.dtype.kind
    if kind in "biu":
        whole = values.astype(np.uint8) if kind == "b" else values
        return whole.astype(bytes), np.ones(len(values), dtype=bool)
    listed = values.tolist()
    if kind == "U" or {*map(type, listed)} <= {str, np.str_}:
        texts = values.astype(str)
        if texts.itemsize <= 4 * _LONGEST_ID:
            return _spelled_texts(texts)
    largest = _LARGEST_EXACT_FLOAT
    if kind == "f":
        largest = min(largest, 2 ** (int(np.finfo(values.dtype).nmant) + 1))
    return _spelled_one_by_one(listed, largest)


def _as_array(groups: Any) -> NDArray[Any]:
    """Return ids as an array, unchanged."""
    if hasattr(type(groups), "columns"):
        groups = np.asarray(groups)
    if isinstance(getattr(groups, "dtype", None), np.dtype):
        array = np.asarray(groups)
    else:
        # An array with a missing id would turn all integers into floats, and several
        # types without a common type into text.
        for method in ("to_pylist", "to_list"):  # pyarrow; pandas and polars
            if hasattr(groups, method):
                groups = getattr(groups, method)()
                break
        array = as_objects(groups)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise _UnreadableIdError(
            f"has shape {array.shape}; pass one group id for each row, of shape "
            "(n_rows,)."
        )
    if array.dtype.kind not in _ID_KINDS:
        raise _unreadable(f"an id of type {array.dtype}")
    return array


def _spelled_texts(values: NDArray[np.str_]) -> tuple[_Texts, NDArray[np.bool_]]:
    """Spell text, of which little has another spelling."""
    codes = values.view(np.uint32) if values.flags.c_contiguous else np.array([128])
    if codes.max(initial=0) < 128:
        texts = values.astype(bytes)
    else:
        # Python's strings may hold surrogates, which plain UTF-8 refuses.
        texts = np.strings.encode(values, "utf-8", "surrogatepass")
    odd = np.isin(texts, _ODD_WORDS) | np.strings.endswith(texts, b".0")
    odd |= np.strings.find(texts, b"e+") >= 0
    has_id = np.ones(len(texts), dtype=bool)
    rows = np.flatnonzero(odd)
    if rows.size:
        respelled, has_id[rows] = _spelled_one_by_one(values[rows].tolist())
        texts[rows] = respelled  # none is longer than before
    return texts, has_id


def _spelled_one_by_one(
    values: list[Any], largest: int = _LARGEST_EXACT_FLOAT
) -> tuple[_Texts, NDArray[np.bool_]]:
    """Spell ids of any type, whose floats are exact below `largest`."""
    spelled = [_spell(one, largest) for one in values]
    texts = np.array([b"" if one is None else one for one in spelled], dtype=bytes)
    return texts, np.array([one is not None for one in spelled], dtype=bool)


def _spell(group_id: Any, largest: int) -> bytes | None:
    """Return the unique spelling of an id, None for a missing one."""
    if is_missing(group_id):
        return None
    if isinstance(group_id, (Integral, np.bool_)):  # includes True and False
        text = str(int(group_id))
    elif isinstance(group_id, (float, np.floating)):
        if not -largest < group_id < largest or int(group_id) != group_id:
            raise _unreadable("a fraction, or a float too large to be exact")
        text = str(int(group_id))
    elif isinstance(group_id, str):
        text = _spell_text(group_id)
        if text in _MISSING_SPELLED:
            return None
    else:
        raise _unreadable(f"an id of type {type(group_id).__name__}")
    encoded = text.encode("utf-8", "surrogatepass")
    if len(text) > _LONGEST_ID:
        return hashlib.blake2b(encoded).hexdigest().encode()
    return encoded


def _spell_text(text: str) -> str:
    """Undo numpy's spelling of numbers beside strings, and of strings."""
    text = str.__str__(text).rstrip("\0")  # as arrays of fixed width do
    text = _BOOLEAN_SPELLED.get(text, text)
    if _EXPONENT_SPELLED.fullmatch(text):
        whole = Decimal(text).to_integral_value()
        text = str(int(whole)) if whole == Decimal(text) else text
    text = text[:-2] if _WHOLE_FLOAT_SPELLED.fullmatch(text) else text
    return "0" if text == "-0" else text


class _UnreadableIdError(ValueError):
    """Ids that cannot be read, in words that follow their name."""


def _unreadable(what: str) -> _UnreadableIdError:
    return _UnreadableIdError(
        f"holds {what}, which numpy may respell beside other ids; pass a whole number "
        "or a string for every row."
    )
