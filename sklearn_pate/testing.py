"""Repeatable noise, for research and tests."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from sklearn_pate.accounting._value_checks import check_count
from sklearn_pate.mechanisms._noise import noise_from

__all__ = ["seeded_noise"]


@contextmanager
def seeded_noise(seed: int) -> Iterator[None]:
    """Seed the noise within a block, so that results can be repeated.

    Seeded noise is for research and tests only. A seed **voids every guarantee**, as an
    attacker with the seed can subtract the noise. A fit in the ``with`` block states an
    infinite epsilon in the privacy statement, in the ledger, and on the privacy card.
    With one seed, equal fits in equal order draw equal noise. Two fits in one block
    never share noise.

    The seed holds in the current thread and task of asyncio, until the block ends. Fits
    in other threads or in worker processes, such as processes of joblib, draw noise
    from the operating system and state the usual epsilon. A fit raises RuntimeError if
    a block begins or ends between its privacy statement and its noise.

    Parameters
    ----------
    seed : int
        Seed, which must be at least 0. The seed is not stored and not printed.

    Yields
    ------
    None
        The block.

    Raises
    ------
    ValueError
        If `seed` is not an integer of at least 0.

    Warns
    -----
    PrivacyLeakWarning
        When the first noise in the block is drawn.

    Examples
    --------
    >>> import warnings
    >>> from sklearn_pate import PrivacyLeakWarning
    >>> from sklearn_pate.mechanisms import NoisyHistogram
    >>> from sklearn_pate.testing import seeded_noise
    >>> warnings.simplefilter("ignore", PrivacyLeakWarning)
    >>> released = []
    >>> for _ in range(2):
    ...     with seeded_noise(0):
    ...         released.append(NoisyHistogram(sigma=20).release([[100, 0, 0]]))
    >>> bool((released[0] == released[1]).all())
    True
    """
    check_count("seed", seed, 0, np.inf)
    with noise_from(np.random.SeedSequence(seed)):
        yield
