"""Assignment of private rows to teachers, independent of X and y.

One unit of privacy may change one teacher only. An assignment that depended on labels
or features (such as a stratified split) would let one changed row move other rows
between teachers.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_pate._estimators._seeding import MAX_SEED
from sklearn_pate._inputs._key import key_bytes
from sklearn_pate._teachers._group_ids import spelled_ids
from sklearn_pate._teachers._keyed_hash import keyed_words
from sklearn_pate.accounting._counted import counted
from sklearn_pate.accounting._value_checks import check_count

__all__ = [
    "ONE_GROUP",
    "check_n_rows",
    "hold_out_groups",
    "hold_out_rows",
    "one_row_of_groups",
    "rows_of_shards",
    "shard_groups",
    "shard_hashes",
    "shard_of",
    "shard_of_hash",
    "shard_rows",
    "teacher_seeds",
]

#: Error of a fit with a single group.
ONE_GROUP = (
    "groups holds one group only, so that one teacher would be trained on all rows; "
    "pass the id of a person, not of the whole data set."
)


def shard_of(ids: Any, n_teachers: int, key: int | bytes) -> NDArray[np.intp]:
    """Assign each row to a shard by a keyed hash of its id.

    An id has the same shard in every partition, site and container, beside any other
    ids: all rows of a patient reach one teacher, and a patient who is added or removed
    changes one shard. The shards of a fit with ``random_state=key`` are those of its
    `groups`, or those of the positions 0, 1, ... of its rows.

    Parameters
    ----------
    ids : array-like of shape (n_rows,)
        An id for each row: whole numbers or strings. 5, 5.0, "5" and "5.0" are one id.
        For rows as the unit of privacy, positions in the whole table.

    n_teachers : int
        Number of shards. It must be chosen independently of the private data.

    key : int or bytes
        Key of the hash: a number from 0 to ``2**64 - 1``, or any bytes but none. It
        need not be secret: the privacy guarantee holds for any assignment by ids alone.

    Returns
    -------
    shards : ndarray of int of shape (n_rows,)
        Shards from 0 to ``n_teachers - 1``, of equal size in expectation. Sensitive:
        they depend on the ids.

    Raises
    ------
    ValueError
        If a row has no id, an id is of a type that numpy may respell, such as a
        fraction or a date, or `key` or `n_teachers` cannot be used. The message is for
        the data holder.

    Notes
    -----
    SipHash-2-4 (Aumasson, Bernstein 2012, "SipHash: a fast short-input PRF") of the
    spelled id, times `n_teachers`, over ``2**64``.

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
            "these rows, as any person may own them."
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
            f"n_teachers={n_teachers} is more than the private rows, "
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
