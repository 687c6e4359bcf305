"""Which row goes to which teacher, decided without a look at X or y.

One person may change one teacher only. An assignment that depended on labels or
features (a stratified split, say) would let one changed row move other rows between
teachers.
"""

import hashlib
import re
from numbers import Integral, Real

import numpy as np

__all__ = [
    "group_ids",
    "hold_out_groups",
    "hold_out_rows",
    "shard_groups",
    "shard_rows",
]

# Whole numbers beyond this are no longer exact in float64.
_LARGEST_EXACT_FLOAT = 2**53

# How numpy writes floats and booleans among strings.
_WHOLE_FLOAT_SPELLED = re.compile(r"-?\d+\.0")
_BOOLEAN_SPELLED = {"True": "1", "False": "0"}


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
    >>> from sklearn_pate.teachers import shard_rows
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
    >>> from sklearn_pate.teachers import hold_out_rows
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
    group, which protects both together.

    What comes back is as sensitive as the ids: it says who is in the data, and with how
    many rows. So do the errors, which quote an id.

    Parameters
    ----------
    groups : array-like of shape (n_rows,) or (n_rows, 1)
        Whole numbers or strings.

    Returns
    -------
    ids : ndarray of str of shape (n_groups,)
        The distinct ids.

    group_of_row : ndarray of int of shape (n_rows,)
        Index into `ids`.

    Raises
    ------
    ValueError
        If there is not one id a row, or an id is missing, or a number that is not whole
        or too large for a float to hold exactly (2^53).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pate.teachers import group_ids
    >>> ids, group_of_row = group_ids([7, 5, 7])
    >>> ids.tolist(), group_of_row.tolist()
    (['5', '7'], [1, 0, 1])
    >>> ids, _ = group_ids(np.array([7.0, 5.0, 7.0]))
    >>> ids.tolist()
    ['5', '7']
    """
    groups = np.asarray(groups)
    if groups.ndim == 2 and groups.shape[1] == 1:
        groups = groups[:, 0]
    if groups.ndim != 1:
        raise ValueError(
            f"groups has shape {groups.shape}; pass one group id a row, of shape "
            "(n_rows,)."
        )
    spelled = np.array([_spell(one) for one in groups.tolist()], dtype=str)
    return np.unique(spelled, return_inverse=True)


def _spell(group_id):
    if isinstance(group_id, Integral):  # True and False among them
        return str(int(group_id))
    if isinstance(group_id, Real):
        group_id = float(group_id)
        if not abs(group_id) < _LARGEST_EXACT_FLOAT or not group_id.is_integer():
            raise ValueError(
                f"groups holds {group_id!r}; a missing or fractional group id protects "
                "nobody. Give every row a whole number or a string."
            )
        return str(int(group_id))
    text = str(group_id)
    if group_id is None or text in ("<NA>", "NaT", "nan", ""):
        raise ValueError(
            f"groups holds a missing id ({group_id!r}); give every row a whole number "
            "or a string."
        )
    text = _BOOLEAN_SPELLED.get(text, text)
    return text[:-2] if _WHOLE_FLOAT_SPELLED.fullmatch(text) else text


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
    >>> from sklearn_pate.teachers import group_ids, shard_groups
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
    >>> from sklearn_pate.teachers import group_ids, hold_out_groups
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
            str(one).encode(), digest_size=8, key=key, person=purpose
        ).digest()
        for one in ids
    )
    # 53 bits are all that fits into a float64 below 1.
    return (np.frombuffer(digests, dtype="<u8") >> np.uint64(11)) * 2.0**-53
