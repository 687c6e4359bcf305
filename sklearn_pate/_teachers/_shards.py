"""Assignment of private rows to teachers, independent of X and y.

One unit of privacy may change one teacher only. An assignment that depended on labels
or features (such as a stratified split) would let one changed row move other rows
between teachers.
"""

import hashlib
import re
from decimal import Decimal
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_pate._inputs._containers import check_container
from sklearn_pate._inputs._labels import is_missing

__all__ = [
    "group_ids",
    "hold_out_groups",
    "hold_out_rows",
    "one_row_of_groups",
    "shard_groups",
    "shard_rows",
]

# Integers above this are not exact in float64.
_LARGEST_EXACT_FLOAT = 2**53

# How numpy and pandas write whole floats, booleans and missing values among strings.
_WHOLE_FLOAT_SPELLED = re.compile(r"-?\d+\.0")
_EXPONENT_SPELLED = re.compile(r"-?\d{1,20}(\.\d{1,20})?e\+\d\d")
_BOOLEAN_SPELLED = {"True": "1", "False": "0"}
_MISSING_SPELLED = {"", "nan", "NaN", "None", "<NA>", "NaT"}
# Longer ids are hashed, as numpy stores every id of an array at the longest width.
_LONGEST_ID = 200
# Booleans, integers, floats, text, and objects.
_ID_KINDS = "biufUTO"


def shard_rows(n_rows: int, n_teachers: int, seed: int) -> list[NDArray[np.intp]]:
    """Cut a random permutation of the rows into nearly equal shards of row indices.

    It depends on public numbers only (neighbours replace a row), so that replacing a
    row changes one shard (Papernot et al. 2017, Section 2.1). `seed` may be public.
    """
    if n_rows < n_teachers:
        raise ValueError(
            f"n_teachers={n_teachers} is more than the private rows, "
            f"n_samples={n_rows}; lower n_teachers or pass more rows."
        )
    return np.array_split(np.random.RandomState(seed).permutation(n_rows), n_teachers)


def hold_out_rows(n_rows: int, share: float, seed: int) -> NDArray[np.bool_]:
    """Choose a random share of the rows, at least one, to be public and unprotected.

    The choice depends on public numbers only; `seed` may be public.
    """
    n_public = max(1, round(share * n_rows))
    is_public = np.zeros(n_rows, dtype=bool)
    is_public[np.random.RandomState(seed).permutation(n_rows)[:n_public]] = True
    return is_public


def group_ids(groups: Any) -> tuple[NDArray[np.str_], NDArray[np.intp]]:
    """Return distinct ids in one spelling, and the index of each row's id.

    A row without an id has index -1 and must not be used: any person may own it.
    numpy changes the type of all ids when one of another type is added: 5 becomes 5.0,
    "5" or "5.0". All are spelled "5" here; two ids with one spelling are one group,
    which protects both. Types whose spelling numpy changes irreversibly are refused.
    The result and the errors are as sensitive as the ids.
    """
    check_container("groups", groups)
    values, largest = _one_by_one(groups)
    spelled = [_spell(one, largest) for one in values]
    has_id = np.array([one is not None for one in spelled], dtype=bool)
    if not np.any(has_id):
        raise ValueError(
            "groups holds no id at all; pass a whole number or a string for every row."
        )
    known = np.array([one for one in spelled if one is not None], dtype=str)
    ids, group_of_known = np.unique(known, return_inverse=True)
    group_of_row = np.full(len(spelled), -1, dtype=np.intp)
    group_of_row[has_id] = group_of_known
    return ids, group_of_row


def _one_by_one(groups: Any) -> tuple[list[Any], int]:
    """List ids unchanged, with the bound below which their floats are exact."""
    largest = _LARGEST_EXACT_FLOAT
    if hasattr(type(groups), "columns"):
        groups = np.asarray(groups)
    # An array with a missing id would turn all integers into floats.
    if hasattr(groups, "to_pylist"):  # pyarrow
        return groups.to_pylist(), largest
    if hasattr(groups, "to_list"):  # pandas and polars
        return groups.to_list(), largest
    # numpy must not respell ids of several types that have no common type yet.
    dtype = None if hasattr(groups, "dtype") else object
    array = np.asarray(groups, dtype=dtype)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(
            f"groups has shape {array.shape}; pass one group id for each row, of shape "
            "(n_rows,)."
        )
    if array.dtype.kind not in _ID_KINDS:
        raise _unreadable(f"an id of type {array.dtype}")
    if array.dtype.kind == "f":
        largest = min(largest, 2 ** (int(np.finfo(array.dtype).nmant) + 1))
    return array.tolist(), largest


def _spell(group_id: Any, largest: int) -> str | None:
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
    if len(text) > _LONGEST_ID:
        return hashlib.blake2b(_encoded(text)).hexdigest()
    return text


def _spell_text(text: str) -> str:
    """Undo numpy's spelling of numbers beside strings, and of strings."""
    text = str.__str__(text).rstrip("\0")  # as arrays of fixed width do
    text = _BOOLEAN_SPELLED.get(text, text)
    if _EXPONENT_SPELLED.fullmatch(text):
        whole = Decimal(text).to_integral_value()
        text = str(int(whole)) if whole == Decimal(text) else text
    text = text[:-2] if _WHOLE_FLOAT_SPELLED.fullmatch(text) else text
    return "0" if text == "-0" else text


def _unreadable(what: str) -> ValueError:
    return ValueError(
        f"groups holds {what}, which numpy may respell beside other ids; pass a whole "
        "number or a string for every row."
    )


def _encoded(text: str) -> bytes:
    # Python's strings may hold surrogates, which plain UTF-8 refuses.
    return text.encode("utf-8", "surrogatepass")


def shard_groups(ids: NDArray[np.str_], n_teachers: int, seed: int) -> NDArray[np.intp]:
    """Assign each group to a shard by a keyed hash of its id; `seed` may be public.

    Adding or removing a group moves no other group. Shards are equal in expectation
    only, and may be empty. The result and the errors are sensitive: they depend on the
    groups. `n_teachers` must be chosen independently of their number.
    """
    if len(ids) == 1:
        raise ValueError(
            "groups holds one group only, so that one teacher would be trained on all "
            "rows; pass the id of a person, not of the whole data set."
        )
    if len(ids) < n_teachers:
        raise ValueError(
            f"n_teachers={n_teachers} is more than the {len(ids)} groups in groups; "
            "lower n_teachers, or pass rows as the unit."
        )
    return np.floor(_keyed_uniform(ids, seed, b"shard") * n_teachers).astype(np.intp)


def hold_out_groups(
    ids: NDArray[np.str_], share: float, seed: int
) -> NDArray[np.bool_]:
    """Choose the groups to be public and unprotected, by keyed hashes below the share.

    The choice of a group does not depend on other groups. The length of the result, the
    number of groups, is sensitive; `seed` may be public.
    """
    return _keyed_uniform(ids, seed, b"public") < share


def one_row_of_groups(
    ids: NDArray[np.str_], group_of_row: NDArray[np.intp], seed: int
) -> NDArray[np.intp]:
    """Choose one row of each group, by a keyed hash of its id and its own rows alone.

    Another group's rows do not matter: one draw for all rows, such as a permutation,
    would choose other rows of many groups when one leaves. A row with index -1 is of no
    group. `seed` may be public; the result is sensitive.
    """
    rows = np.flatnonzero(group_of_row >= 0)
    rows = rows[np.argsort(group_of_row[rows], kind="stable")]
    groups, first, n_rows = np.unique(
        group_of_row[rows], return_index=True, return_counts=True
    )
    words = _keyed_words(ids[groups], seed, b"row")
    return rows[first + (words % n_rows.astype(np.uint64)).astype(np.intp)]


def _keyed_uniform(
    ids: NDArray[np.str_], seed: int, purpose: bytes
) -> NDArray[np.floating]:
    """Map each id to [0, 1) by a keyed hash."""
    # A float64 below 1 has 53 bits.
    return (_keyed_words(ids, seed, purpose) >> np.uint64(11)) * 2.0**-53


def _keyed_words(
    ids: NDArray[np.str_], seed: int, purpose: bytes
) -> NDArray[np.uint64]:
    """Map each id to 64 bits by BLAKE2b (RFC 7693), keyed with `seed` and `purpose`."""
    key = int(seed).to_bytes(8, "little")
    digests = b"".join(
        hashlib.blake2b(
            _encoded(str(one)), digest_size=8, key=key, person=purpose
        ).digest()
        for one in ids
    )
    return np.frombuffer(digests, dtype="<u8")
