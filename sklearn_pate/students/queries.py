"""Which public rows to ask about."""

import numpy as np

__all__ = ["random_queries"]


def random_queries(n_public, n_queries, seed):
    """Choose public rows at random, each at most once.

    Parameters
    ----------
    n_public : int
        Number of public rows.

    n_queries : int
        How many to choose; at most `n_public`.

    seed : int
        Seed of the choice.

    Returns
    -------
    indices : ndarray of int of shape (n_queries,)
        Distinct public rows, in random order.
    """
    return np.random.RandomState(seed).permutation(n_public)[:n_queries]
