"""Which row goes to which teacher, decided without a look at X or y.

One person may change one teacher only. An assignment that depended on labels or
features (a stratified split, say) would let one changed row move other rows between
teachers.
"""

import hashlib
import re
from decimal import Decimal
from numbers import Integral

import numpy as np

from sklearn_pate._inputs._containers import check_container
from sklearn_pate._inputs._labels import is_missing

__all__ = [
    "group_ids",
    "hold_out_groups",
    "hold_out_rows",
    "shard_groups",
    "shard_rows",
]

# Whole numbers beyond this are no longer exact in float64.
_LARGEST_EXACT_FLOAT = 2**53

# How numpy and pandas write whole floats, booleans and missing values among strings.
_WHOLE_FLOAT_SPELLED = re.compile(r"-?\d+\.0")
_EXPONENT_SPELLED = re.compile(r"-?\d{1,20}(\.\d{1,20})?e\+\d\d")
_BOOLEAN_SPELLED = {"True": "1", "False": "0"}
_MISSING_SPELLED = {"", "nan", "NaN", "None", "<NA>", "NaT"}
# Longer ids are hashed: numpy gives every id of an array the room of the longest.
_LONGEST_ID = 200
# Booleans, integers, floats, text, and objects, which are read one by one.
_ID_KINDS = "biufUTO"


def shard_rows(n_rows, n_teachers, seed):
    """Cut a random permutation of the rows into nearly equal parts.

    The cut depends on public numbers only, and so is public itself; replacing a row
    changes what is in one shard. The rows in a shard are as private as ever.

    Parameters
    ----------
    n_rows : int
        Number of rows; public, as neighbours replace a row.

    n_teachers : int
        Number of shards.

    seed : int
        Seed of the permutation. It may be known to anyone.

    Returns
    -------
    shards : list of n_teachers ndarrays of int
        Row indices; sizes differ by at most one.

    Raises
    ------
    ValueError
        If there are fewer rows than teachers.

    Notes
    -----
    Disjoint shards: Papernot et al. 2017, Section 2.1. What is proved of a vote by one
    teacher carries over to a row, as a row is behind one teacher's votes only.

    Examples
    --------
    >>> from sklearn_pate._teachers import shard_rows
    >>> shards = shard_rows(10, 3, seed=0)
    >>> [len(shard) for shard in shards]
    [4, 3, 3]
    >>> sorted(row for shard in shards for row in shard.tolist())
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    if n_rows < n_teachers:
        raise ValueError(
            f"n_teachers={n_teachers} is more than the private rows, "
            f"n_samples={n_rows}; lower n_teachers or bring more rows."
        )
    return np.array_split(np.random.RandomState(seed).permutation(n_rows), n_teachers)


def hold_out_rows(n_rows, share, seed):
    """Choose a random share of the rows to be public.

    The people in them get **no protection**: a student may quote their rows. The choice
    depends on public numbers only.

    Parameters
    ----------
    n_rows : int
        Number of rows; public, as neighbours replace a row.

    share : float
        Share of the rows to hold out, in (0, 1).

    seed : int
        Seed of the choice. It may be known to anyone.

    Returns
    -------
    is_public : ndarray of bool of shape (n_rows,)
        True for about ``share * n_rows`` rows, and for at least one.

    Examples
    --------
    >>> from sklearn_pate._teachers import hold_out_rows
    >>> is_public = hold_out_rows(10, 0.2, seed=0)
    >>> int(is_public.sum())
    2
    """
    n_public = max(1, round(share * n_rows))
    is_public = np.zeros(n_rows, dtype=bool)
    is_public[np.random.RandomState(seed).permutation(n_rows)[:n_public]] = True
    return is_public


def group_ids(groups):
    """Bring group ids into one spelling, so that their hash never moves.

    numpy changes the type of all ids when one of another type joins: 5 becomes 5.0, or
    "5", or "5.0". All are spelled "5" here. Two ids that are spelled alike count as one
    group, which protects both together. Other types than integers, whole floats and
    strings are refused, as they would be respelled in ways that cannot be undone.

    A row without an id could be anyone's. It belongs to no group, and must not be used:
    left out, it tells nothing, whoever it is about.

    What comes back is as sensitive as the ids: it says who is in the data, and with how
    many rows. So is an error, as one id of another type is enough for it.

    Parameters
    ----------
    groups : array-like of shape (n_rows,) or (n_rows, 1)
        Whole numbers or strings; True and False count as 1 and 0. Missing are None,
        NaN, and how numpy and pandas spell them, such as "" and "nan".

    Returns
    -------
    ids : ndarray of str of shape (n_groups,)
        The distinct ids.

    group_of_row : ndarray of int of shape (n_rows,)
        Index into `ids`; -1 for a row without an id.

    Raises
    ------
    ValueError
        If there is not one entry a row, all ids are missing, or one is neither a string
        nor a whole number, such as a date, bytes or a fraction, or is a float too large
        to tell whole numbers apart (2^53, or less for a narrower type).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pate._teachers import group_ids
    >>> ids, group_of_row = group_ids([7, 5, 7, None])
    >>> ids.tolist(), group_of_row.tolist()
    (['5', '7'], [1, 0, 1, -1])
    >>> ids, _ = group_ids(np.array([7.0, 5.0, 7.0]))
    >>> ids.tolist()
    ['5', '7']
    """
    check_container("groups", groups)
    values, largest = _one_by_one(groups)
    spelled = [_spell(one, largest) for one in values]
    has_id = np.array([one is not None for one in spelled], dtype=bool)
    if not np.any(has_id):
        raise ValueError(
            "groups holds no id at all; give every row a whole number or a string."
        )
    known = np.array([one for one in spelled if one is not None], dtype=str)
    ids, group_of_known = np.unique(known, return_inverse=True)
    group_of_row = np.full(len(spelled), -1, dtype=np.intp)
    group_of_row[has_id] = group_of_known
    return ids, group_of_row


def _one_by_one(groups):
    """List ids as they are, with the bound of floats that are exact among them."""
    largest = _LARGEST_EXACT_FLOAT
    if hasattr(type(groups), "columns"):  # one, perhaps
        groups = np.asarray(groups)
    # In an array, a missing id among integers makes floats of all.
    if hasattr(groups, "to_pylist"):  # pyarrow
        return groups.to_pylist(), largest
    if hasattr(groups, "to_list"):  # pandas and polars
        return groups.to_list(), largest
    # What has no type yet gets none in which ids of several types would be respelled.
    dtype = None if hasattr(groups, "dtype") else object
    array = np.asarray(groups, dtype=dtype)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(
            f"groups has shape {array.shape}; pass one group id a row, of shape "
            "(n_rows,)."
        )
    if array.dtype.kind not in _ID_KINDS:
        raise _unreadable(f"an id of type {array.dtype}")
    if array.dtype.kind == "f":
        largest = min(largest, 2 ** (np.finfo(array.dtype).nmant + 1))
    return array.tolist(), largest


def _spell(group_id, largest):
    """Return the one spelling of an id, None for a missing one."""
    if is_missing(group_id):
        return None
    if isinstance(group_id, (Integral, np.bool_)):  # True and False among them
        text = str(int(group_id))
    elif isinstance(group_id, (float, np.floating)):
        if not abs(group_id) < largest or int(group_id) != group_id:
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


def _spell_text(text):
    """Undo what numpy does to numbers beside strings, and to strings."""
    text = str.__str__(text).rstrip("\0")  # arrays of fixed width do the same
    text = _BOOLEAN_SPELLED.get(text, text)
    if _EXPONENT_SPELLED.fullmatch(text):
        whole = Decimal(text).to_integral_value()
        text = str(int(whole)) if whole == Decimal(text) else text
    text = text[:-2] if _WHOLE_FLOAT_SPELLED.fullmatch(text) else text
    return "0" if text == "-0" else text


def _unreadable(what):
    return ValueError(
        f"groups holds {what}, which numpy may respell when another id joins; give "
        "every row a whole number or a string."
    )


def _encoded(text):
    # Python's strings may hold halves of characters, which plain UTF-8 refuses.
    return text.encode("utf-8", "surrogatepass")


def shard_groups(ids, n_teachers, seed):
    """Assign each group to a shard by a keyed hash of its id.

    Adding or removing a group moves no other group, as a neighbour relation on groups
    requires. Shards are equal in expectation only, and some may be empty.

    What comes back is sensitive: how many groups there are, and which shards are empty,
    depends on who is in the data. So does the error.

    Parameters
    ----------
    ids : ndarray of str of shape (n_groups,)
        Distinct group ids, see :func:`group_ids`.

    n_teachers : int
        Number of shards, chosen without a look at the number of groups.

    seed : int
        The key. It may be known to anyone: the guarantee is that of fixed shards.

    Returns
    -------
    shard_of_group : ndarray of int of shape (n_groups,)
        In ``range(n_teachers)``.

    Raises
    ------
    ValueError
        If there is one group only, or fewer groups than teachers.

    Notes
    -----
    Disjoint shards: Papernot et al. 2017, Section 2.1, there of rows. The hash is
    keyed BLAKE2b (Saarinen, Aumasson 2015, RFC 7693), whose bits are read as a number
    in [0, 1).

    Examples
    --------
    >>> from sklearn_pate._teachers import group_ids, shard_groups
    >>> ids, _ = group_ids(["ann", "bob", "cem", "dee"])
    >>> shard_groups(ids, 3, seed=0)
    array([2, 0, 1, 2])
    >>> without_bob, _ = group_ids(["ann", "cem", "dee"])
    >>> shard_groups(without_bob, 3, seed=0)  # nobody else has moved
    array([2, 1, 2])
    """
    if len(ids) == 1:
        raise ValueError(
            "groups holds one group only, so that a single teacher would see every "
            "row; pass the id of a person, not of the whole data set."
        )
    if len(ids) < n_teachers:
        raise ValueError(
            f"n_teachers={n_teachers} is more than the {len(ids)} groups in groups; "
            "lower n_teachers, or pass rows as the unit."
        )
    return np.floor(_keyed_uniform(ids, seed, b"shard") * n_teachers).astype(np.intp)


def hold_out_groups(ids, share, seed):
    """Choose the groups to be public: those whose keyed hash falls below the share.

    The people in them get **no protection**: a student may quote their rows. What comes
    back is sensitive all the same: its length is the number of groups.

    Parameters
    ----------
    ids : ndarray of str of shape (n_groups,)
        Distinct group ids, see :func:`group_ids`.

    share : float
        Expected share of the groups to hold out, in (0, 1).

    seed : int
        The key, for another hash than that of :func:`shard_groups`. It may be known to
        anyone.

    Returns
    -------
    is_public : ndarray of bool of shape (n_groups,)
        Whether each group is public; no group's fate depends on another group.

    Notes
    -----
    Keyed BLAKE2b (Saarinen, Aumasson 2015, RFC 7693), as for shards.

    Examples
    --------
    >>> from sklearn_pate._teachers import group_ids, hold_out_groups
    >>> ids, group_of_row = group_ids(["ann", "bob", "ann", "cem", "dee"])
    >>> is_public = hold_out_groups(ids, 0.5, seed=0)
    >>> is_public
    array([False, False,  True, False])
    >>> is_public[group_of_row]  # of each row
    array([False, False, False,  True, False])
    """
    return _keyed_uniform(ids, seed, b"public") < share


def _keyed_uniform(ids, seed, purpose):
    """Map each id to a number in [0, 1), by a hash keyed with `seed` and `purpose`."""
    key = int(seed).to_bytes(8, "little")
    digests = b"".join(
        hashlib.blake2b(
            _encoded(str(one)), digest_size=8, key=key, person=purpose
        ).digest()
        for one in ids
    )
    # 53 bits are all that fits into a float64 below 1.
    return (np.frombuffer(digests, dtype="<u8") >> np.uint64(11)) * 2.0**-53
