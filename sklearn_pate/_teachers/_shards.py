"""Shards of private rows: keyed hashes of positions and of group ids."""

import hashlib
import re
from decimal import Decimal
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_pate._estimators._isolation import MAX_SEED
from sklearn_pate._inputs._containers import as_objects, check_container
from sklearn_pate._inputs._file_content import key_bytes
from sklearn_pate._inputs._labels import is_missing
from sklearn_pate.accounting._value_checks import check_count, counted

_Words = NDArray[np.uint64]

# Texts hashed at once. Their words fit in the processor's cache, and below the size at
# which memory comes from the system and goes back each time.
_BLOCK = 2**12
_START = b"somepseudorandomlygeneratedbytes"
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
#: Error of a fit with a single group.
ONE_GROUP = (
    "groups has only one group, so that one teacher would be trained on all rows; pass "
    "one id per person, not one for the whole data set."
)


def keyed_words(texts: NDArray[np.bytes_], key: bytes, purpose: bytes) -> _Words:
    """Map each text to 64 bits by SipHash-2-4, keyed with `key` for a purpose.

    Aumasson, Bernstein (2012), "SipHash: a fast short-input PRF". The texts are UTF-8
    without NULs at the end, which arrays of bytes do not keep. SipHash takes 128 bits:
    these are BLAKE2b (RFC 7693) of the key, personalised with the purpose.
    """
    words_of_key = np.frombuffer(
        hashlib.blake2b(key, digest_size=16, person=purpose).digest(), dtype="<u8"
    )
    hashed = np.empty(len(texts), dtype=np.uint64)
    for start in range(0, len(texts), _BLOCK):
        block = texts[start : start + _BLOCK]
        lengths = np.strings.str_len(block)
        for n_whole in np.unique(lengths // 8).tolist():
            rows = np.flatnonzero(lengths // 8 == n_whole)
            hashed[start + rows] = siphash(block[rows], lengths[rows], words_of_key)
    return hashed


def siphash(
    texts: NDArray[np.bytes_], lengths: NDArray[np.intp], key: _Words
) -> _Words:
    """Hash texts with the same number of whole words of 8 bytes."""
    n_words = int(lengths[0]) // 8 + 1
    padded = texts.astype(f"S{8 * n_words}").view(np.uint8).reshape(len(texts), -1)
    padded[:, -1] = lengths % 256
    words = padded.view("<u8")
    state = [
        np.full(len(texts), one ^ of_key)
        for one, of_key in zip(
            np.frombuffer(_START, dtype=">u8").astype(np.uint64),
            [*key, *key],
            strict=True,
        )
    ]
    for place in range(n_words):
        word = np.ascontiguousarray(words[:, place], dtype=np.uint64)
        state[3] ^= word
        _mix(state, 2)
        state[0] ^= word
    state[2] ^= np.uint64(0xFF)
    _mix(state, 4)
    found: _Words = state[0] ^ state[1] ^ state[2] ^ state[3]
    return found


def _mix(state: list[_Words], n_rounds: int) -> None:
    """Apply rounds of SipHash in place."""
    for _ in range(n_rounds):
        for first, second, by, turned in (
            (0, 1, 13, True),
            (2, 3, 16, False),
            (0, 3, 21, False),
            (2, 1, 17, True),
        ):
            state[first] += state[second]
            state[second] = _turned(state[second], by) ^ state[first]
            if turned:
                state[first] = _turned(state[first], 32)


def _turned(words: _Words, by: int) -> _Words:
    return (words << np.uint64(by)) | (words >> np.uint64(64 - by))


def group_ids(groups: Any, n_rows: int) -> tuple[_Texts, NDArray[np.intp]]:
    """Return distinct ids in one spelling, and the index of each row's id.

    A row without an id has index -1 and must not be used: any person may own it. The
    result and the errors are as sensitive as the ids.
    """
    texts, has_id = spelled_ids(groups)
    if len(texts) != n_rows:
        raise ValueError(
            f"groups has {counted(len(texts), 'value')} and X has "
            f"{counted(n_rows, 'row')}; pass one group id for each row."
        )
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
        f"holds {what}, which numpy may change beside other ids; pass a whole number "
        "or a string for every row."
    )


def shard_of(ids: Any, n_teachers: int, key: int | bytes) -> NDArray[np.intp]:
    """Assign each row to a shard by a keyed hash of its id.

    The shard of an id depends on no other id, and is equal in every partition, site and
    type of container. All rows of a patient are thus in one shard. Adding or removing a
    patient changes one shard. A fit with ``random_state=key`` assigns these shards to
    its `groups`, or to the positions 0, 1, ... of its rows.

    Parameters
    ----------
    ids : array-like of shape (n_rows,)
        An id for each row: whole numbers or strings. 5, 5.0, "5" and "5.0" are the same
        id. If rows are the unit of privacy, use positions in the whole table.

    n_teachers : int
        Number of shards. The number must be chosen independently of the private data.

    key : int or bytes
        Key of the hash: a number from 0 to ``2**64 - 1``, or non-empty bytes. The key
        need not be secret: the privacy guarantee holds for any assignment by ids alone.

    Returns
    -------
    shards : ndarray of int of shape (n_rows,)
        Shards from 0 to ``n_teachers - 1``, of equal size in expectation. Shards are
        sensitive, as they depend on the ids.

    Raises
    ------
    ValueError
        If a row has no id, or an id whose spelling numpy may change, such as a fraction
        or a date. Also if `key` or `n_teachers` is invalid. The message is sensitive.

    Notes
    -----
    The shard is h times `n_teachers`, divided by ``2**32`` and rounded down. Here h is
    the upper half of SipHash-2-4 (Aumasson, Bernstein 2012, "SipHash: a fast
    short-input PRF") of the id as text, under a key that BLAKE2b derives from `key`.

    Examples
    --------
    >>> from sklearn_pate.distributed import shard_of
    >>> shard_of(["ann", "bob", "ann"], 100, key=0)
    array([24, 30, 24])
    """
    check_count("n_teachers", n_teachers)
    texts, has_id = spelled_ids(ids, "ids")
    n_missing = np.count_nonzero(~has_id)
    if n_missing:
        raise ValueError(
            f"ids has no id in {n_missing} of {counted(len(has_id), 'row')}; drop "
            "these rows, as they may belong to any person."
        )
    return _shard_spelled(texts, n_teachers, key)


def shard_groups(
    ids: NDArray[np.bytes_], n_teachers: int, key: int | bytes
) -> NDArray[np.intp]:
    """Assign each group to a shard by a keyed hash of its id; `key` may be public.

    Adding or removing a group moves no other group. Shards are equal in expectation
    only, and may be empty. The result and the errors are sensitive: they depend on the
    groups. `n_teachers` must be chosen independently of their number.
    """
    if len(ids) == 1:
        raise ValueError(ONE_GROUP)
    if len(ids) < n_teachers:
        raise ValueError(
            f"n_teachers={n_teachers} is more than the {len(ids)} groups in groups; "
            "lower n_teachers, or pass rows as the unit."
        )
    return _shard_spelled(ids, n_teachers, key)


def _shard_spelled(
    ids: NDArray[np.bytes_], n_teachers: int, key: int | bytes
) -> NDArray[np.intp]:
    """Assign each spelled id to a shard."""
    return shard_of_hash(shard_hashes(ids, key), n_teachers)


def shard_hashes(ids: NDArray[np.bytes_], key: int | bytes) -> NDArray[np.uint32]:
    """Return the upper half of the keyed hash of each spelled id."""
    words = keyed_words(ids, key_bytes(key), b"shard")
    return (words >> np.uint64(32)).astype(np.uint32)


def shard_of_hash(hashes: NDArray[np.uint32], n_teachers: int) -> NDArray[np.intp]:
    """Assign hashes to shards in whole numbers: all have the same share of 2^32."""
    wide = hashes.astype(np.uint64) * np.uint64(n_teachers)
    return (wide >> np.uint64(32)).astype(np.intp)


def shard_rows(
    n_rows: int, n_teachers: int, key: int | bytes
) -> list[NDArray[np.intp]]:
    """Assign each row to a shard by a keyed hash of its position; list their rows.

    It depends on public numbers only (neighbours replace a row), so that replacing a
    row changes one shard (Papernot et al. 2017, Section 2.1). `key` may be public.
    """
    check_n_rows(n_rows, n_teachers)
    return rows_of_shards(shard_of(np.arange(n_rows), n_teachers, key), n_teachers)


def check_n_rows(n_rows: int, n_teachers: int) -> None:
    """Raise ValueError if there are more teachers than rows."""
    if n_rows < n_teachers:
        raise ValueError(
            f"n_teachers={n_teachers} is more than the number of private rows, "
            f"n_samples={n_rows}; lower n_teachers or pass more rows."
        )


def rows_of_shards(shards: NDArray[np.intp], n_teachers: int) -> list[NDArray[np.intp]]:
    """List the rows of each shard, in their order."""
    ends = np.cumsum(np.bincount(shards, minlength=n_teachers))
    return np.split(np.argsort(shards, kind="stable"), ends[:-1])


def teacher_seeds(seed: int, teachers: NDArray[np.integer]) -> list[int]:
    """Return the seed of each teacher, which does not depend on their number."""
    words = keyed_words(teachers.astype(bytes), key_bytes(seed), b"teacher")
    seeds: list[int] = (words % np.uint64(MAX_SEED)).tolist()
    return seeds


def hold_out_rows(n_rows: int, share: float, seed: int) -> NDArray[np.bool_]:
    """Choose a random share of the rows, at least one, to be public and unprotected.

    The choice depends on public numbers only; `seed` may be public.
    """
    n_public = max(1, round(share * n_rows))
    is_public = np.zeros(n_rows, dtype=bool)
    is_public[np.random.RandomState(seed).permutation(n_rows)[:n_public]] = True
    return is_public


def hold_out_groups(
    ids: NDArray[np.bytes_], share: float, seed: int, purpose: bytes = b"public"
) -> NDArray[np.bool_]:
    """Choose a share of the groups, by keyed hashes below it.

    The choice of a group does not depend on other groups. Choices for one purpose say
    nothing about those for another. The length of the result, the number of groups, is
    sensitive; `seed` may be public.
    """
    # A float64 below 1 has 53 bits.
    words = keyed_words(ids, key_bytes(seed), purpose) >> np.uint64(11)
    return words * 2.0**-53 < share


def one_row_of_groups(
    ids: NDArray[np.bytes_], group_of_row: NDArray[np.intp], seed: int
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
    words = keyed_words(ids[groups], key_bytes(seed), b"row")
    return rows[first + (words % n_rows.astype(np.uint64)).astype(np.intp)]
