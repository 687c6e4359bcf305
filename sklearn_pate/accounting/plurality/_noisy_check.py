"""Whether noisy votes reach a threshold, decided and priced on whole numbers."""

from fractions import Fraction
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_pate.accounting.plurality._discrete_noise import DiscreteGaussian

__all__ = ["NoisyCheck"]

# Thresholds beyond this are as good as infinite; float64 still counts votes from them.
_FARTHEST = 2**50


class NoisyCheck:
    """Whether the largest count, with discrete Gaussian noise, reaches a threshold.

    Mechanisms draw, and accounts cost, what this class decides.

    Parameters
    ----------
    threshold : float
        In votes.

    sigma : float
        Scale of the noise, in votes.

    Notes
    -----
    As counts and noise Z are whole, max_j (n_j - e_j) + Z >= T holds exactly where
    max_j (n_j - t_j) + Z >= 0, with the whole thresholds t_j = ceil(T + e_j). These are
    computed from the rational numbers that the floats are, and from nothing private, so
    that one moved vote changes the largest of the whole numbers n_j - t_j by at most 1.
    A difference n_j - e_j in floating point is rounded otherwise from one count to the
    next, and may pass two whole numbers at once.
    """

    def __init__(self, threshold: float, sigma: float) -> None:
        is_whole = isinstance(threshold, Integral)
        self._exact = Fraction(int(threshold) if is_whole else float(threshold))
        self._threshold = int(self._raised([0], 1)[0])
        self._noise = DiscreteGaussian(sigma)

    def whole_expectations(
        self, expected: ArrayLike, n_teachers: int = 1
    ) -> NDArray[np.int64]:
        """Round expected votes so that whole numbers decide as the exact ones do.

        Parameters
        ----------
        expected : array-like
            What each class is expected to get, and has subtracted from its count:
            votes, or shares of `n_teachers`. Public.

        n_teachers : int, default=1
            What `expected` is multiplied by, exactly.

        Returns
        -------
        votes : ndarray of int64, of the shape of `expected`
            The t_j of the Notes, less the one of a class that is expected to get none.

        Raises
        ------
        ValueError
            If a number is not finite.
        """
        expected = np.asarray(expected)
        if not np.all(np.isfinite(expected)):
            raise ValueError(
                "expected holds NaN or infinity; pass finite numbers of votes."
            )
        distinct, place = np.unique(expected, return_inverse=True)
        thresholds = self._raised(distinct.tolist(), int(n_teachers))
        return (thresholds - self._threshold)[place].reshape(expected.shape)

    def _raised(self, expected, n_teachers):
        """Return ceil(T + n e), of each e, by integer arithmetic."""
        top, bottom = self._exact.as_integer_ratio()
        n_top = n_teachers * bottom
        parts = (value.as_integer_ratio() for value in expected)
        votes = [-(-(top * b + n_top * a) // (bottom * b)) for a, b in parts]
        return np.array(
            [min(max(vote, -_FARTHEST), _FARTHEST) for vote in votes], dtype=np.int64
        )

    def needed(self, largest: NDArray) -> NDArray:
        """Return the least noise with which the check passes.

        Parameters
        ----------
        largest : ndarray
            The largest count, less `whole_expectations` if there are any. Whole.

        Returns
        -------
        needed : ndarray of the same shape
            The check passes where the noise is at least that. Whole.
        """
        return self._threshold - largest

    def log_probabilities(
        self, largest: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Compute the log-probabilities that the check passes and fails.

        Parameters
        ----------
        largest : ndarray
            As for `needed`.

        Returns
        -------
        log_pass, log_fail : ndarray of the same shape
            In nats.
        """
        needed = self.needed(np.asarray(largest, dtype=np.float64))
        return self._noise.log_cdf(-needed), self._noise.log_cdf(needed - 1)
