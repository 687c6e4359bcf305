"""Sums of clipped updates of single rows or groups, in whole numbers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import helmert
from scipy.special import softmax

from sklearn_pate._votes._soft_votes import STEPS

__all__ = ["UnitUpdates", "UpdateStep"]

# Numbers of the updates that are computed at once.
_AT_ONCE = 2**21
# Bytes of the values of the basis that are kept from the first step for later ones.
_MOST_KEPT = 2**29
# Bytes of an array beside its numbers; a group of one row has few of these.
_OF_ARRAY = 200


@dataclass(frozen=True)
class UpdateStep:
    """Update that each unit sends in one step: its gradient, whitened and clipped.

    The model is p(x) = softmax(b(x) coef H), with values b(x) of a public basis and the
    Helmert matrix H. The update of a row with label y is the outer product of
    b(x) `left` and (e_y - p(x)) H' `right`; that of a group is the mean over its rows.
    It is clipped to the ball of `radius` and rounded.

    **Sensitivity.** `share` is the step's part of the squared length of all updates of
    a unit: an update v has v.v <= share STEPS^2, which `UnitUpdates` checks in exact
    arithmetic before it adds v. If one unit's v becomes v', or is added or removed, the
    sum moves by |v' - v| <= 2 sqrt(share) STEPS.
    """

    coef: NDArray[np.float64]
    left: NDArray[np.float64]
    right: NDArray[np.float64]
    radius: float
    share: float

    @property
    def longest(self) -> int:
        """Largest length of an update, rounded down."""
        return int(np.sqrt(self.share) * STEPS)

    @property
    def unit(self) -> float:
        """Length that one unit of an update stands for."""
        # Rounding makes it longer by sqrt(size) / 2 at most; 1 is for round-off.
        return self.radius / (self.longest - np.sqrt(self.coef.size) / 2 - 1)

    def factors(
        self, values: NDArray[np.float64], codes: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Compute the factors of the update of each row; zeros for an index of -1."""
        H = helmert(self.coef.shape[1] + 1)
        residuals = -softmax(values @ self.coef @ H, axis=1)
        residuals[np.arange(len(codes)), codes] += 1  # the last one for -1
        residuals[codes < 0] = 0
        return values @ self.left, residuals @ H.T @ self.right

    def rounded(self, updates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Clip and round updates, one a unit; zeros for those that are too long.

        Whole numbers below 2^53 are exact in float64, and so are their sums.
        """
        flat = updates.reshape(len(updates), -1)
        with np.errstate(all="ignore"):
            lengths = np.linalg.norm(flat, axis=1, keepdims=True)
            scales = np.minimum(1, self.radius / lengths) / self.unit
            whole = np.rint(flat * np.where(lengths > 0, scales, 0))
        # The privacy cost rests on this check alone: nothing above is trusted.
        within = np.all(np.abs(whole) <= self.longest, axis=1)  # false for NaN
        whole[~within] = 0
        whole[np.einsum("ij,ij->i", whole, whole) > self.longest**2] = 0
        return whole


class UnitUpdates:
    """Updates of the rows, or groups of rows, of a table. Sensitive.

    Like :class:`~sklearn_pate.Votes`, they are passed to a mechanism only, are not
    shown by `repr`, and cannot be pickled or copied. They are queried in steps: `take`
    sets the step, which may depend on earlier releases.

    `transform` computes the values of the basis at rows of `X`, which do not depend on
    the step and are kept as far as memory allows. Rows without a class index (-1) send
    nothing. With `group_of_row`, units are groups, -1 for none; each is computed on its
    own, as the position of its rows depends on other groups.
    """

    __slots__ = (
        "_X",
        "_codes",
        "_group_of_row",
        "_kept",
        "_n_free",
        "_n_steps",
        "_n_units",
        "_step",
        "_taken",
        "_transform",
        "size",
    )

    def __init__(
        self,
        X: NDArray[np.float64],
        codes: NDArray[np.intp],
        group_of_row: NDArray[np.intp] | None,
        transform: Callable[[NDArray[np.float64]], NDArray[np.float64]],
        *,
        n_units: int,
        size: int,
        n_steps: int,
    ) -> None:
        self._X = X
        self._codes = codes
        self._group_of_row = group_of_row
        self._transform = transform
        self._n_units = n_units
        self._n_steps = n_steps
        self._step: UpdateStep | None = None
        self._taken = -1
        self._kept: dict[int, NDArray[np.float64]] = {}
        self._n_free = _MOST_KEPT
        self.size = size

    @property
    def shape(self) -> tuple[int, int]:
        """Number of units, which is public, and number of steps."""
        return self._n_units, self._n_steps

    @property
    def n_classes(self) -> int:
        """Number of values that a step has."""
        return self.size

    def take(self, step: UpdateStep) -> int:
        """Set the next step, and return its number."""
        self._step, self._taken = step, self._taken + 1
        return self._taken

    def counts(self, indices: ArrayLike) -> NDArray[np.int64]:
        """Return the sum of the updates of the current step. Sensitive."""
        step = self._step
        if step is None or np.asarray(indices).tolist() != [self._taken]:
            raise IndexError("Only the current step has a sum; call take first.")
        total = np.zeros(self.size)
        for updates in self._updates(step):
            total += step.rounded(updates).sum(axis=0)
        return total.astype(np.int64)[np.newaxis]

    def _updates(self, step: UpdateStep) -> Iterator[NDArray[np.float64]]:
        """Yield the updates of units, some at a time."""
        if self._group_of_row is None:
            n_rows = max(1, _AT_ONCE // self.size)
            for start in range(0, len(self._codes), n_rows):
                block = slice(start, start + n_rows)
                left, right = self._factors(step, start, block)
                yield left[:, :, np.newaxis] * right[:, np.newaxis, :]
            return
        order = np.argsort(self._group_of_row, kind="stable")
        order = order[self._group_of_row[order] >= 0]
        ends = np.flatnonzero(np.diff(self._group_of_row[order])) + 1
        for group, rows in enumerate(np.split(order, ends) if len(order) else ()):
            left, right = self._factors(step, group, rows)
            yield (left.T @ right / len(rows))[np.newaxis]

    def _factors(
        self, step: UpdateStep, place: int, rows: NDArray[np.intp] | slice
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        values = self._kept.get(place)
        if values is None:
            # No row is left out, so that the others stay where they are.
            values = self._transform(self._X[rows])
            n_bytes = values.nbytes + _OF_ARRAY
            if n_bytes <= self._n_free:
                self._kept[place] = values
                self._n_free -= n_bytes
        return step.factors(values, self._codes[rows])

    def __repr__(self) -> str:
        n_units, n_steps = self.shape
        return f"UnitUpdates(<private>, {n_units=}, {n_steps=})"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(
            "Updates of rows are sensitive and cannot be pickled or copied; publish "
            "what a mechanism releases only."
        )
