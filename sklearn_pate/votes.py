"""Sealed ballots: what the teachers said, for the mechanism's eyes only."""

import numpy as np

__all__ = ["Votes"]


class Votes:
    """The teachers' votes on the public rows. Sensitive.

    The votes are handed out as counts to a mechanism, are not shown by `repr`, and
    cannot be pickled or copied.

    Parameters
    ----------
    votes_by_teacher : ndarray of int of shape (n_teachers, n_public)
        Class indices in ``range(n_classes)``, -1 for an abstention.

    n_classes : int
        Number of classes.
    """

    __slots__ = ("_by_teacher", "_n_classes")

    def __init__(self, votes_by_teacher, n_classes):
        votes = np.asarray(votes_by_teacher)
        if votes.ndim != 2 or votes.dtype.kind != "i":
            raise ValueError(
                f"votes_by_teacher has shape {votes.shape} and dtype {votes.dtype}; "
                "pass signed integers of shape (n_teachers, n_public)."
            )
        if votes.size and (votes.min() < -1 or votes.max() >= n_classes):
            raise ValueError(
                f"votes_by_teacher must lie between -1 and n_classes - 1 = "
                f"{n_classes - 1}; -1 stands for an abstention."
            )
        self._by_teacher = votes
        self._n_classes = n_classes

    @property
    def shape(self):
        """Number of teachers and number of public rows."""
        return self._by_teacher.shape

    @property
    def n_classes(self):
        """Number of classes."""
        return self._n_classes

    def counts(self, indices):
        """Count the votes on some public rows.

        Parameters
        ----------
        indices : array-like of int of shape (n_queries,)
            Public rows.

        Returns
        -------
        counts : ndarray of shape (n_queries, n_classes), dtype int64
            Votes per class. A row sums to the number of teachers that did not abstain.
        """
        votes = self._by_teacher[:, np.asarray(indices, dtype=np.intp)]
        return np.stack(
            [np.count_nonzero(votes == k, axis=0) for k in range(self._n_classes)],
            axis=1,
        )

    def __repr__(self):
        n_teachers, n_public = self.shape
        return f"Votes(<sealed>, n_teachers={n_teachers}, n_public={n_public})"

    def __reduce_ex__(self, protocol):
        raise TypeError(
            "Votes are sensitive and cannot be pickled or copied; publish answers only."
        )
