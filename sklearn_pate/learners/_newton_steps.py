"""Newton's method on noisy sums of the clipped vectors of private rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert
from scipy.special import softmax
from scipy.stats import entropy

from sklearn_pate._votes._sums import STEPS
from sklearn_pate.exceptions import PublicDataWarning, warn_user
from sklearn_pate.mechanisms._mean_scores import MOST_VALUES, exceeds_noise, shrunk
from sklearn_pate.mechanisms._noisy_training import NewtonSteps

# Largest number of functions of a table.
OF_TABLE = 500
# Functions for each unit of the square root of G, mu and the units of privacy; more
# where the first ones matter most. Measured on tables, and on images.
_COORDINATES, _ORDERED, _FEWEST = 0.029, 0.25, 5
# Public rows for each function, as their covariance stands for that of private rows.
_ROWS_PER_COORDINATE = 10
# Variance of the noise on the coefficients of a table, over that of the sample.
_MOST_NOISE = 4
# Radius of the clipping, in root mean squares of a vector under the model.
_RADIUS, _SMALLEST, _LARGEST = 0.9, 0.5, 2.5
# Curvature that is added, and below which none is counted, relative to its mean and to
# that of equal probabilities: public rows may vary less than private ones.
_RIDGE, _FLOOR = 0.1, 0.4
# Curvature of private rows, relative to that of public rows, that is worth a warning.
_UNLIKE = 2.0
# Least gain of log-loss that is signal, relative to the entropy of the class shares.
_LEAST_GAIN = 0.005
# Standard deviations of noise by which a mean must differ from what counts say.
_SURE = 2.0
# Share of a mean probability that a correction leaves at least; smallest mean
# probability, in units of equal shares; and number of iterations towards it.
_LEFT, _LEAST_MEAN, _MOST_ITERATIONS = 0.3, 1e-3, 200
# Probabilities differ from 0 and 1 by round-off below this.
_NEGLIGIBLE = 1e-9
# Numbers of the vectors that are computed at once.
_AT_ONCE = 2**21
# Bytes of the values of the basis that are kept from the first step for later ones.
_MOST_KEPT = 2**29
# Bytes of an array beside its numbers; a group of one row has few of these.
_OF_ARRAY = 200
# Groups are many, and each needs it.
_contrasts = cache(helmert)


def n_coordinates(
    mechanism: NewtonSteps,
    n_units: int,
    n_public: int,
    n_classes: int,
    *,
    most: int = OF_TABLE,
    ordered: bool = False,
    evenness: float = 1.0,
) -> int:
    """Compute the number of functions that noise, classes and public rows allow.

    More where the first ones matter most (`ordered`), and at most `most`. `evenness` is
    1 for classes of equal shares, and near 0 where one has nearly all units: the
    variance of the labels, relative to that of equal shares.
    """
    mu, n_values = _mu(mechanism), n_classes - 1
    by_unit = _ORDERED / n_values if ordered else _COORDINATES
    allowed = min(by_unit * np.sqrt(evenness) * n_units * mu, MOST_VALUES / n_values)
    if not ordered:
        allowed = min(allowed, _MOST_NOISE / 4 * mu**2 * n_units / n_values)
    return min(
        most,
        max(_FEWEST, int(allowed)),
        max(_FEWEST, n_public // _ROWS_PER_COORDINATE),
    )


def _mu(mechanism: NewtonSteps) -> float:
    """Return mu of all steps together, without its rounding."""
    return 2 / mechanism.noise_scale


def evenness_of(shares: NDArray[np.float64]) -> float:
    """Compute G of the shares of classes: 1 for equal ones, near 0 for a rare class."""
    n_classes = len(shares)
    return float((1 - np.sum(shares**2)) * n_classes / (n_classes - 1))


@dataclass(frozen=True)
class Step:
    """Vector that each unit contributes in one step, such as its clipped gradient.

    The model is p(x) = softmax(b(x) coef H), with values b(x) of a public basis and the
    Helmert matrix H. The vector of a row with label y is the outer product of
    b(x) `left` and (e_y - p(x)) H' `right`; that of a group is the mean over its rows.
    It is clipped to the ball of `radius` and rounded.

    **Sensitivity.** `share` is the step's part of the squared length of all vectors of
    a unit: a vector v has v.v <= share STEPS^2, which `rounded` checks in exact
    arithmetic before v is added. If one unit's v becomes v', or is added or removed,
    the sum moves by |v' - v| <= 2 sqrt(share) STEPS.
    """

    coef: NDArray[np.float64]
    left: NDArray[np.float64]
    right: NDArray[np.float64]
    radius: float
    share: float

    @classmethod
    def of_mean(
        cls, coef: NDArray[np.float64], share: float, radius: float = np.sqrt(2)
    ) -> Self:
        """Return the step whose vectors are e_y - p(x), which are no longer than that.

        The first function of the basis is constant.
        """
        constant = np.eye(len(coef), 1)
        return cls(coef, constant, np.eye(coef.shape[1]), radius, share)

    @property
    def size(self) -> int:
        """Number of values of a vector."""
        return self.left.shape[1] * self.right.shape[1]

    @property
    def longest(self) -> int:
        """Largest length of a vector, rounded down."""
        return int(np.sqrt(self.share) * STEPS)

    @property
    def unit(self) -> float:
        """Length that one unit of a vector stands for."""
        # Rounding makes it longer by sqrt(size) / 2 at most; 1 is for round-off.
        return self.radius / (self.longest - np.sqrt(self.size) / 2 - 1)

    def factors(
        self, values: NDArray[np.float64], codes: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Compute the factors of the vector of each row; zeros for an index of -1."""
        H = _contrasts(self.coef.shape[1] + 1)
        residuals = -softmax(values @ self.coef @ H, axis=1)
        residuals[np.arange(len(codes)), codes] += 1  # the last one for -1
        residuals[codes < 0] = 0
        return values @ self.left, residuals @ H.T @ self.right

    def rounded(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Clip and round vectors, one a unit; zeros for those that are too long.

        Whole numbers below 2^53 are exact in float64, and so are their sums.
        """
        flat = vectors.reshape(len(vectors), -1)
        with np.errstate(all="ignore"):
            lengths = np.linalg.norm(flat, axis=1, keepdims=True)
            scales = np.minimum(1, self.radius / lengths) / self.unit
            whole = np.rint(flat * np.where(lengths > 0, scales, 0))
        # The privacy cost rests on this check alone: nothing above is trusted.
        within = np.all(np.abs(whole) <= self.longest, axis=1)  # false for NaN
        whole[~within] = 0
        whole[np.einsum("ij,ij->i", whole, whole) > self.longest**2] = 0
        return whole


class PrivateRows:
    """Represented private rows, with the sums of their clipped vectors. Sensitive.

    Rows are read in blocks, which are the groups where groups are the unit: each is
    computed on its own, as the position of its rows depends on other groups. Values of
    the basis depend on a step's number of functions alone, and are kept as far as
    memory allows. Rows without a class index (-1) or a group (-1) contribute nothing.
    `values_of` computes the first functions of the basis at rows; `size` is the largest
    number of values of a vector.
    """

    def __init__(
        self,
        X: NDArray[np.float64],
        codes: NDArray[np.intp],
        group_of_row: NDArray[np.intp] | None,
        values_of: Callable[[NDArray[np.float64], int], NDArray[np.float64]],
        *,
        size: int,
    ) -> None:
        self._X = X
        self._codes = codes
        self._group_of_row = group_of_row
        self._values_of = values_of
        self._size = size
        self._keep_of(0)

    def _keep_of(self, n_functions: int) -> None:
        self._n_functions = n_functions
        self._kept: dict[int, NDArray[np.float64]] = {}
        self._n_free = _MOST_KEPT

    def sum(self, step: Step) -> NDArray[np.int64]:
        """Add up the clipped vectors of all units, without a warning. Sensitive."""
        if len(step.coef) != self._n_functions:
            self._keep_of(len(step.coef))
        total = np.zeros(step.size)
        with np.errstate(all="ignore"):
            for place, rows in enumerate(self._blocks()):
                values, codes = self._values(place, rows), self._codes[rows]
                total += step.rounded(self._vectors(step, values, codes)).sum(axis=0)
        return total.astype(np.int64)

    def _vectors(
        self, step: Step, values: NDArray[np.float64], codes: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """Compute the vectors of a block: one of each row, or one of a group."""
        left, right = step.factors(values, codes)
        if self._group_of_row is None:
            return left[:, :, np.newaxis] * right[:, np.newaxis, :]
        return (left.T @ right / len(left))[np.newaxis]

    def _blocks(self) -> Iterator[slice | NDArray[np.intp]]:
        """Yield the rows of each block; no row is left out, so that others stay."""
        if self._group_of_row is None:
            n_rows = max(1, _AT_ONCE // self._size)
            for start in range(0, len(self._codes), n_rows):
                yield slice(start, start + n_rows)
            return
        order = np.argsort(self._group_of_row, kind="stable")
        order = order[self._group_of_row[order] >= 0]
        ends = np.flatnonzero(np.diff(self._group_of_row[order])) + 1
        yield from np.split(order, ends) if len(order) else ()

    def _values(
        self, place: int, rows: slice | NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """Return values of the basis at a block of rows."""
        values = self._kept.get(place)
        if values is None:
            values = self._values_of(self._X[rows], self._n_functions)
            n_bytes = values.nbytes + _OF_ARRAY
            if n_bytes <= self._n_free:
                self._kept[place] = values
                self._n_free -= n_bytes
        return values


class Newton:
    """Newton's method on noisy sums of gradients, with the curvature of public rows.

    The first sum gives the shares of the classes, and so the number of functions; the
    last one corrects the mean probabilities, and others too with `intercept_only`. All
    it reads may be published: released sums and counts, public rows and numbers.
    """

    def __init__(
        self,
        mechanism: NewtonSteps,
        values: NDArray[np.float64],
        n_units: int,
        start: NDArray[np.float64],
        allowed: Callable[[float], int],
        shares: NDArray[np.float64] | None = None,
        *,
        intercept_only: bool = False,
    ) -> None:
        self.coef = np.zeros((1, start.shape[1]))
        self._known_shares = shares
        self._intercept_only = intercept_only
        self._start = start
        self._values = values
        self._n_units = n_units
        self._allowed = allowed
        self._mechanism = mechanism
        self._shares = list(mechanism.shares)
        self._scale = 1.0
        self._last: _Move | None = None
        #: Whether the coefficients of the last step can hardly be told from noise.
        self.is_noise = False

    def step(self) -> Step:
        """Return the next step, at the coefficients so far."""
        n_left, share = len(self._shares), self._shares[0]
        is_first = n_left == len(self._mechanism.shares)
        if n_left == 1 or (self._intercept_only and not is_first):
            return Step.of_mean(self.coef, share)
        if is_first:
            # All probabilities are equal: e_y - p is shorter.
            n_classes = self.coef.shape[1] + 1
            return Step.of_mean(self.coef, share, np.sqrt(1 - 1 / n_classes))
        self._curvature = Curvature.at(self._values, self.coef, self._scale)
        left, right = self._curvature.left_root(-1), self._curvature.right_root(-1)
        return Step(self.coef, left, right, self._radius, share)

    def move(self, step: Step, released: NDArray[np.int64]) -> None:
        """Move the coefficients, by the noisy sum of a step."""
        n_left = len(self._shares)
        unit = step.unit / self._n_units
        variance = (self._mechanism._sigma * unit) ** 2
        mean = unit * released.astype(np.float64)
        if n_left == len(self._mechanism.shares):
            self._choose_functions(mean, variance)
        elif n_left == 1 or self._intercept_only:
            self._correct_mean(mean, variance)
        else:
            self._follow(mean.reshape(self.coef.shape), variance)
        self._shares.pop(0)

    def _choose_functions(self, mean: NDArray[np.float64], variance: float) -> None:
        """Choose the number of functions by the shares of the classes."""
        n_classes = len(mean) + 1
        shares = 1 / n_classes + mean @ _contrasts(n_classes)
        shares = np.maximum(shares, min(np.sqrt(variance), 0.5 / n_classes))
        self.class_shares = shares / shares.sum()
        n_functions = self._allowed(evenness_of(self.class_shares))
        self._start = self._start[:n_functions]
        self._values = self._values[:, :n_functions]
        self.coef = self._start
        # Balances the noise, which grows with the radius, and the bias by clipping.
        size, mu = self.coef.size, _mu(self._mechanism)
        noise = 4 * size / (mu**2 * self._n_units)  # over that of samples
        radius = float(np.clip(_RADIUS * noise ** (-1 / 3), _SMALLEST, _LARGEST))
        self._radius = radius * np.sqrt(size)

    def _follow(self, gradient: NDArray[np.float64], variance: float) -> None:
        """Take a Newton step along a noisy mean of gradients."""
        coef, curvature, last = self.coef, self._curvature, self._last
        variance += 1 / self._n_units  # of sampling
        gradient = curvature.applied(gradient, 1)
        if last is not None:
            ratio = last.ratio(coef, gradient, variance)
            if ratio > 1:  # the last move was too far: go back to its best part
                coef = last.coef + (coef - last.coef) / ratio
                gradient = last.gradient + (gradient - last.gradient) / ratio
                self._scale *= ratio
                curvature = curvature.times(ratio)
        self._last = _Move(coef, gradient, curvature, variance)
        change = curvature.applied(coef - self._start, 1)
        change += curvature.applied(gradient, -1)
        variances = np.full(len(coef), variance)
        # Half of the squared length is the gain of log-loss. With many rows, clipping
        # and public rows leave some without signal. Counts may give more at the start.
        least = 2 * _LEAST_GAIN * entropy(self.class_shares) / variance
        is_told = self._start.any() or exceeds_noise(change, variances, least)
        self.is_noise = not is_told
        change = shrunk(change, variances, first=8)
        self.coef = self._start + curvature.applied(change, -1)

    def _correct_mean(self, mean: NDArray[np.float64], variance: float) -> None:
        """Move the intercept: clipping takes more from labels of a rare class.

        `mean` is the noisy mean of e_y - p(x), which is shrunk towards what the shares
        of the classes would give, if known. Mean probabilities of public rows move by
        it.
        """
        n_classes = len(mean) + 1
        H = _contrasts(n_classes)
        scores = self._values @ self.coef @ H
        before = softmax(scores, axis=1).mean(axis=0)
        expected, noise = np.zeros_like(mean), len(mean) * variance
        if self._known_shares is not None:
            expected, noise = H @ (self._known_shares - before), _SURE**2 * noise
        squared = float(np.sum((mean - expected) ** 2))
        kept = max(0.0, 1 - noise / squared) if squared else 0.0
        mean = expected + kept * (mean - expected)
        after = np.maximum(before + mean @ H, _LEFT * before)
        self.coef = self.coef.copy()
        self.coef[0] += H @ _shift(scores, after)

    def warn_if_unlike(self, *, held_out: bool) -> None:
        """Warn of public rows that vary less than private ones, by released sums."""
        if self._scale > _UNLIKE:
            remedy = (
                "a larger public_size" if held_out else "rows of the same population"
            )
            warn_user(
                f"The private rows vary {self._scale:.1f} times as much as the public "
                "rows in the features that matter: the public rows are unlike them, "
                "which makes predictions worse. This figure is computed from the "
                f"release alone. Use {remedy}.",
                PublicDataWarning,
            )


@dataclass(frozen=True)
class Curvature:
    """Mean Hessian of the log-loss, as a factor by coordinates and one by classes."""

    left: NDArray[np.float64]
    right: NDArray[np.float64]

    @classmethod
    def at(
        cls, values: NDArray[np.float64], coef: NDArray[np.float64], scale: float
    ) -> Self:
        """Compute it at public rows, times a scale, with a ridge."""
        n_classes = coef.shape[1] + 1
        H = _contrasts(n_classes)
        probabilities = softmax(values @ coef @ H, axis=1)
        weights = (1 - np.sum(probabilities**2, axis=1)) / (n_classes - 1)
        weights = np.maximum(weights, _FLOOR / n_classes)
        by_coordinate = (values.T * weights) @ values / len(values)
        second = probabilities.T @ probabilities / len(values)
        by_class = H @ (np.diag(probabilities.mean(axis=0)) - second) @ H.T
        # The mean over classes is part of the first factor. Where the model is sure of
        # all public rows, nothing but round-off is left.
        mean = np.trace(by_class) / (n_classes - 1)
        by_class = by_class / mean if mean > _NEGLIGIBLE else np.eye(n_classes - 1)
        return cls(scale * _with_ridge(by_coordinate), _with_ridge(by_class))

    def times(self, scale: float) -> Self:
        """Multiply it by a number."""
        return replace(self, left=scale * self.left)

    def left_root(self, sign: int) -> NDArray[np.float64]:
        """Compute the root of the first factor, or of its inverse."""
        return _root(self.left, sign)

    def right_root(self, sign: int) -> NDArray[np.float64]:
        """Compute the root of the second factor, or of its inverse."""
        return _root(self.right, sign)

    def applied(self, coef: NDArray[np.float64], sign: int) -> NDArray[np.float64]:
        """Multiply coefficients by the root, or by its inverse."""
        return self.left_root(sign) @ coef @ self.right_root(sign)


@dataclass(frozen=True)
class _Move:
    """Start of a move: coefficients, noisy gradient and its variance, curvature."""

    coef: NDArray[np.float64]
    gradient: NDArray[np.float64]
    curvature: Curvature
    variance: float

    def ratio(
        self,
        coef: NDArray[np.float64],
        gradient: NDArray[np.float64],
        variance: float,
    ) -> float:
        """Compare the curvature along the move with the one that was assumed.

        The secant of the gradients, relative to the public curvature; 1 if it exceeds
        that by no more than two standard deviations of its noise.
        """
        move = coef - self.coef
        assumed = float(np.sum(self.curvature.applied(move, 1) ** 2))
        if assumed == 0:
            return 1.0
        ratio = float(np.vdot(move, self.gradient - gradient)) / assumed
        noise = np.sqrt((self.variance + variance) / assumed)
        return ratio if ratio > 1 + 2 * noise else 1.0


def _with_ridge(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    size = len(matrix)
    if size == 1:
        return matrix
    return matrix + _RIDGE * np.trace(matrix) / size * np.eye(size)


def _root(matrix: NDArray[np.float64], sign: int) -> NDArray[np.float64]:
    """Compute the symmetric square root of a matrix, or of its inverse."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * values ** (sign / 2)) @ vectors.T


def _shift(
    scores: NDArray[np.float64], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute what must be added to scores for given mean probabilities.

    By iterative proportional fitting, whose every step comes closer.
    """
    n_classes = scores.shape[1]
    target = np.maximum(shares, _LEAST_MEAN / n_classes)
    target = target / target.sum()
    shift = np.zeros(n_classes)
    for _ in range(_MOST_ITERATIONS):
        found = softmax(scores + shift, axis=1).mean(axis=0)
        if np.abs(found - target).max() < _NEGLIGIBLE:
            break
        shift += np.log(target) - np.log(np.maximum(found, _NEGLIGIBLE))
    return shift
