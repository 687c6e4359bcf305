"""Check of noisy votes against a threshold, decided on whole numbers."""

from fractions import Fraction
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sklearn_pate.accounting._value_checks import check_not_masked
from sklearn_pate.accounting.plurality._discrete_noise import DiscreteGaussian

__all__ = ["NoisyCheck"]

# Larger thresholds are treated like this one; in float64, votes are still exact here.
_FARTHEST = 2**50


class NoisyCheck:
    """Check that the largest count with discrete Gaussian noise reaches a threshold.

    Mechanisms and their accounting use the same decisions. `threshold` and `sigma` are
    in votes.

    As counts and noise Z are whole, max_j (n_j - e_j) + Z >= T holds exactly where
    max_j (n_j - t_j) + Z >= 0, with the whole thresholds t_j = ceil(T + e_j). These are
    computed from the rational numbers that the floats represent, and from no private
    value, so that one moved vote changes the largest of the whole numbers n_j - t_j by
    at most 1. A difference n_j - e_j in floating point may be rounded differently for
    neighbouring counts, and change by two whole numbers.
    """

    def __init__(self, threshold: float, sigma: float) -> None:
        is_whole = isinstance(threshold, Integral)
        self._exact = Fraction(int(threshold) if is_whole else float(threshold))
        self._threshold = int(self._raised([0], 1)[0])
        self._noise = DiscreteGaussian(sigma)

    def whole_expectations(
        self, expected: ArrayLike, n_teachers: int = 1
    ) -> NDArray[np.int64]:
        """Round expected votes such that whole numbers decide as the exact ones do.

        `expected` holds the votes to subtract from each count, public: votes, or
        fractions of `n_teachers`, by which they are multiplied exactly. Returns whole
        numbers of the same shape: t_j as above, minus the threshold of a class with no
        expected votes.
        """
        check_not_masked("expected", expected)
        expected = np.asarray(expected)
        if not np.all(np.isfinite(expected)):
            raise ValueError(
                "expected holds NaN or infinity; pass finite numbers of votes."
            )
        distinct, place = np.unique(expected, return_inverse=True)
        thresholds = self._raised(distinct.tolist(), int(n_teachers))
        return (thresholds - self._threshold)[place].reshape(expected.shape)

    def _raised(self, expected: list[Any], n_teachers: int) -> NDArray[np.int64]:
        """Return ceil(T + n e) of each e, by integer arithmetic."""
        top, bottom = self._exact.as_integer_ratio()
        n_top = n_teachers * bottom
        parts = (value.as_integer_ratio() for value in expected)
        votes = [-(-(top * b + n_top * a) // (bottom * b)) for a, b in parts]
        return np.array(
            [min(max(vote, -_FARTHEST), _FARTHEST) for vote in votes], dtype=np.int64
        )

    def needed(self, largest: NDArray[Any]) -> NDArray[Any]:
        """Return the least noise with which the check passes, by largest count.

        `largest` is the largest count, minus `whole_expectations` if there are any.
        """
        return self._threshold - largest

    def log_probabilities(
        self, largest: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Compute the log-probabilities of passing and failing, by largest count."""
        needed = self.needed(np.asarray(largest, dtype=np.float64))
        return self._noise.log_cdf(-needed), self._noise.log_cdf(needed - 1)
