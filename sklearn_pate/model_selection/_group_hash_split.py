"""Split of rows by keyed hashes of their groups."""

from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state

from sklearn_pate._estimators._seeding import MAX_SEED
from sklearn_pate._teachers import group_ids, hold_out_groups
from sklearn_pate.accounting._counted import counted
from sklearn_pate.accounting._value_checks import check_count

__all__ = ["GroupHashSplit"]


class GroupHashSplit(BaseCrossValidator):
    """Training and test rows by a keyed hash of each row's group.

    The part of a group depends on its id and on no other row: a patient who is added or
    removed moves no other. A private fit on one part, with the same groups as its
    unit of privacy, then has its guarantee for the whole table. Splits that count,
    shuffle or sort the groups, such as GroupShuffleSplit and GroupKFold, move many
    groups when one leaves: no privacy statement covers a fit on their parts.

    Parameters
    ----------
    test_size : float, default=0.25
        Share of the groups in the test part, in expectation; between 0 and 1.

    n_splits : int, default=1
        Number of independent splits. Each fit on one of them has its own privacy cost.

    random_state : int, RandomState instance or None, default=None
        Key of the hashes. It need not be secret. To split one part again, use another
        number than before: the same one would select the same groups.

    See Also
    --------
    sklearn_pate.PrivacyLedger : Sum of the costs of several fits.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pate.model_selection import GroupHashSplit
    >>> patient = np.repeat(np.arange(10), 2)
    >>> split = GroupHashSplit(test_size=0.3, random_state=1)
    >>> train, test = next(split.split(patient, groups=patient))
    >>> bool(set(patient[train]) & set(patient[test]))
    False
    """

    # As in scikit-learn's splitters by group: routed to `split` without a request.
    __metadata_request__split = {"groups": True}  # noqa: RUF012

    def __init__(
        self,
        test_size: float = 0.25,
        n_splits: int = 1,
        *,
        random_state: Any = None,
    ) -> None:
        self.test_size = test_size
        self.n_splits = n_splits
        self.random_state = random_state

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the rows of the training part and of the test part.

        Parameters
        ----------
        X : array-like of shape (n_rows, ...)
            Not read.

        y : array-like of shape (n_rows,), default=None
            Not read.

        groups : array-like of shape (n_rows,)
            An id for each row: whole numbers or strings. A row without an id is in
            neither part, as any person may own it.

        Yields
        ------
        train : ndarray of int
            Rows of the training part.

        test : ndarray of int
            Rows of the test part.

        Raises
        ------
        ValueError
            If a parameter or an id cannot be used, or if a part is empty. The message
            is for the data holder.
        """
        check_count("n_splits", self.n_splits)
        share = self.test_size
        if not isinstance(share, Real) or not 0 < float(share) < 1:
            raise ValueError(
                f"test_size={share!r} must be a share between 0 and 1, such as 0.25."
            )
        if groups is None:
            raise ValueError("GroupHashSplit needs groups, an id for each row.")
        ids, group_of_row = group_ids(groups)
        rng = check_random_state(self.random_state)
        for seed in rng.randint(MAX_SEED, size=self.n_splits).tolist():
            # One more value for rows without a group, at index -1.
            in_test = np.append(
                hold_out_groups(ids, float(share), seed, b"test"), False
            )
            is_test = in_test[group_of_row]
            train = np.flatnonzero(~is_test & (group_of_row >= 0))
            test = np.flatnonzero(is_test)
            if not (len(train) and len(test)):
                raise ValueError(
                    f"random_state={self.random_state!r} and test_size={share!r} leave "
                    f"one part of {counted(len(ids), 'group')} empty; use another "
                    "random_state. A "
                    "part that was split before needs another one than the first split."
                )
            yield train, test

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits.

        Parameters
        ----------
        X : object, default=None
            Not read.

        y : object, default=None
            Not read.

        groups : object, default=None
            Not read.

        Returns
        -------
        n_splits : int
            Number of splits.
        """
        return self.n_splits
