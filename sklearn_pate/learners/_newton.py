"""Private logistic regression in a public basis, by noisy Newton steps."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import pairwise
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import helmert
from scipy.optimize import minimize_scalar
from scipy.special import softmax
from scipy.stats import entropy
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from sklearn_pate._aggregation._aggregation import (
    ScoredRows,
    represented_rows,
    rows_in_order,
    score_rows,
    warn_if_slow_alone,
)
from sklearn_pate._aggregation._classifier import PublicRowsClassifier
from sklearn_pate._aggregation._codes import check_codes
from sklearn_pate._aggregation._design import check_two_classes, is_given, is_table
from sklearn_pate._aggregation._entry import CountsFor, ReleasePlan, open_entry
from sklearn_pate._aggregation._outlook import (
    why_columns_are_lost,
    why_few_public_rows,
    why_newton_useless,
    why_one_class,
    why_only_noise,
)
from sklearn_pate._aggregation._rows import PublicInputs, split_inputs
from sklearn_pate._estimators._isolation import Seeds, check_cloneable
from sklearn_pate._estimators._progress import (
    CallbackSupportMixin,
    announce,
    phase,
    progress_of,
    steps_of,
    with_callbacks,
)
from sklearn_pate._inputs._containers import Table
from sklearn_pate._inputs._known_columns import KnownColumns
from sklearn_pate._inputs._labels import private_rows_by_position
from sklearn_pate._synthetic._marginals import LogOdds, PrivateMarginals
from sklearn_pate._teachers._private_rows import DataProblems, PrivateRows
from sklearn_pate._votes._votes import STEPS
from sklearn_pate.accounting._calibrate import check_epsilon, largest_gdp_mu
from sklearn_pate.accounting._ledger import PrivacyLedger
from sklearn_pate.accounting._statement import Assumption, PrivacySpent
from sklearn_pate.accounting._value_checks import Constraint
from sklearn_pate.exceptions import PrivacyUtilityWarning, PublicDataWarning, warn_user
from sklearn_pate.mechanisms._noisy_sum import (
    MOST_VALUES,
    StoredSums,
    Threshold,
    check_threshold,
    exceeds_noise,
)
from sklearn_pate.mechanisms._noisy_training import NewtonSteps
from sklearn_pate.publication._model_file import without_caches
from sklearn_pate.students import ImageRepresentation, TableRepresentation
from sklearn_pate.students._basis import (
    ScoreFunction,
    resolve_threshold,
    shift_to_shares,
)

# Largest number of functions of a table.
OF_TABLE = 500
# Functions for each unit of the square root of G, mu and the units of privacy; more
# where the first ones matter most. Measured on tables, and on images.
_COORDINATES, _ORDERED, _FEWEST = 0.029, 0.25, 5
# Functions of a table that are tried, for each that noise allows, if its variance on
# coefficients is below sampling variance; and linear ones that are tried, for each of
# K - 1 values. They stay if they exceed the mean of noise in the first round, and in
# the second by these standard deviations, alone or in a block, and its squared length
# by a factor: each adds noise to all others.
_TRIED, _MOST_TRIED, _TRIED_LINEAR = 2, 1.0, 40
_BEYOND, _WORTH = (4.0, 5.0), 2.3
# Public rows for each function, as their covariance stands for that of private rows.
_ROWS_PER_COORDINATE = 10
# Variance of the noise on the coefficients of a table, over that of the sample.
_MOST_NOISE = 4
# Radius of the clipping, in root mean squares of a vector under the model.
_RADIUS, _SMALLEST, _LARGEST = 0.9, 0.5, 2.5
# Curvature that is added, and below which none is counted, relative to its mean and to
# that of equal probabilities: public rows may vary less than private ones. The floor is
# the first one for much noise, and the second for little.
_RIDGE, _FLOOR, _LEAST_FLOOR = 0.1, 0.4, 0.02
# Noise on the coefficients, over that of the sample, that is little, and that is much.
_LITTLE, _MUCH = 1 / 6, 1 / 2
# Curvature of private rows, relative to that of public rows, that is worth a warning.
_UNLIKE = 1.5
# Least gain of log-loss that is signal, relative to the entropy of the class shares.
_LEAST_GAIN = 0.005
# Standard deviations of noise by which a mean must differ from what counts say.
_SURE = 2.0
# Length to which standardised scores are clipped, and number that products with them
# are divided by, so that they add little to the length of a vector; least and largest
# slope of them that a correction gives, and standard deviation of its logarithm before.
_FARTHEST, _LONGEST, _SLOPES, _OF_SLOPE = 3.0, 6.0, (0.5, 2.0), 0.4
# Share of a mean probability that a correction leaves at least.
_LEFT = 0.3
# Probabilities differ from 0 and 1 by round-off below this.
_NEGLIGIBLE = 1e-9
# Numbers of the vectors that are computed at once.
_AT_ONCE = 2**21
# Bytes of the values of the basis that are kept from the first step for later ones.
_MOST_KEPT = 2**29
# Bytes of an array beside its numbers; a group of one row has few of these.
_OF_ARRAY = 200
# Rows that are computed at once: all of them, or by group.
Rows = slice | NDArray[np.intp]
# Groups are many, and each needs it.
_contrasts = cache(helmert)
_BASES = ("auto", "linear", "rbf")
# Largest number of functions of images, which have more that matter than tables; and
# number of components of sparse rows.
_OF_IMAGES, _OF_SPARSE = 1000, 200
# Share of the squared mu for counts whose log-odds are the features, and where noise
# would hide their coefficients; and the number of features for each of sqrt(G) n mu
# units. Measured on tables.
_OF_COUNTS, _OF_COUNTS_ALONE, _FEATURES_OF_COUNTS = 0.7, 0.95, 0.0286


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
    return min(max(_FEWEST, int(allowed)), most_by_public_rows(most, n_public))


def most_by_public_rows(most: int, n_public: int) -> int:
    """Compute the largest number of functions, by the number of public rows."""
    return min(most, max(_FEWEST, n_public // _ROWS_PER_COORDINATE))


def n_tried(n_allowed: int, n_linear: int, n_classes: int, noise: float = 0.0) -> int:
    """Compute the number of functions whose first gradients decide which ones stay.

    Labels may depend on functions that vary little over public rows. `noise` is its
    variance on the allowed coefficients, over the variance of sampling.
    """
    times = _TRIED if noise < _MOST_TRIED else 1
    return max(times * n_allowed, min(n_linear, 1 + _TRIED_LINEAR // (n_classes - 1)))


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
    #: Places of the functions in the public basis; None for the first ones.
    functions: NDArray[np.intp] | None = None

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
    def places(self) -> NDArray[np.intp]:
        """Array of the places of the functions in the public basis."""
        return np.arange(len(self.coef)) if self.functions is None else self.functions

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
        self, values: NDArray[np.float32], codes: NDArray[np.intp]
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Compute the factors of the vector of each row; zeros for an index of -1."""
        scores, left, right = self._factors
        residuals = -softmax((values @ scores).astype(np.float64), axis=1)
        residuals[np.arange(len(codes)), codes] += 1  # the last one for -1
        residuals[codes < 0] = 0
        return values * left if left.ndim == 1 else values @ left, residuals @ right

    @cached_property
    def _factors(self) -> tuple[NDArray[Any], ...]:
        """Factors of scores, of values and of residuals; a diagonal one as a vector."""
        H, left = _contrasts(self.coef.shape[1] + 1), self.left
        if not (left - np.diag(np.diag(left))).any():
            left = np.diag(left)
        scores = (self.coef @ H).astype(np.float32)
        return scores, left.astype(np.float32), H.T @ self.right

    def rounded(self, vectors: NDArray[np.floating]) -> NDArray[np.floating]:
        """Clip and round vectors, one a unit; zeros for those that are too long.

        Sums of squares only grow, and whole numbers below 2^24 are exact in any type:
        a sum that is found to be at most `longest`^2 is exact.
        """
        flat = vectors.reshape(len(vectors), -1)
        with np.errstate(all="ignore"):
            squared = np.einsum("ij,ij->i", flat, flat)[:, np.newaxis]
            scales = np.minimum(1, self.radius / np.sqrt(squared)) / self.unit
            whole = flat * np.where(squared > 0, scales, 0)
            whole = np.rint(whole, out=whole)
            # The privacy cost rests on this check alone: nothing above is trusted.
            within = np.einsum("ij,ij->i", whole, whole) <= self.longest**2
        whole[~within] = 0  # also those of NaN
        return whole


@dataclass(frozen=True, kw_only=True)
class CalibrationStep(Step):
    """Vector e_y - p(x) of each unit, and its product with standardised scores.

    The product is large if labels follow the scores more than the model says. Scores
    are clipped to a length of _FARTHEST, and the product is divided by _LONGEST.
    """

    #: Mean of the scores of public rows, and root of their mean squared distance to it.
    centre: NDArray[np.float64]
    scale: float

    @property
    def size(self) -> int:
        """Number of values of a vector."""
        return self.coef.shape[1] + 1

    def standardised(self, values: NDArray[np.floating]) -> NDArray[np.float64]:
        """Compute the standardised scores of rows, in coordinates of H."""
        scores = (values @ self.coef - self.centre) / self.scale
        lengths = np.linalg.norm(scores, axis=1, keepdims=True)
        return scores * np.minimum(1, _FARTHEST / np.maximum(lengths, _FARTHEST))

    def factors(
        self, values: NDArray[np.float32], codes: NDArray[np.intp]
    ) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Compute the factors of the vector of each row; zeros for an index of -1."""
        left, right = super().factors(values, codes)
        products = np.sum(right * self.standardised(values), axis=1) / _LONGEST
        return left, np.column_stack([right, products])


class RepresentedRows:
    """Represented private rows, with the sums of their clipped vectors. Sensitive.

    Rows are represented in parts, so that memory does not grow with their number.
    Values of the basis depend on a step's functions alone, and are kept as far as
    memory allows. Where groups are the unit, those of each are computed on their own,
    as the position of its rows depends on other groups. Rows without a class index (-1)
    or a group (-1) contribute nothing. `represent` returns represented rows, and
    `functions` returns functions of the basis, by their places; `size` is the largest
    number of values of a vector.
    """

    def __init__(
        self,
        represent: Callable[[Rows], NDArray[np.float64]],
        codes: NDArray[np.intp],
        group_of_row: NDArray[np.intp] | None,
        functions: Callable[
            [NDArray[np.intp]], Callable[[NDArray[np.float64]], NDArray[np.float32]]
        ],
        *,
        size: int,
    ) -> None:
        self._represent = represent
        self._codes = codes
        self._group_of_row = group_of_row
        self._functions = functions
        self._size = size
        self._keep_of(np.zeros(0, dtype=np.intp))

    def _keep_of(self, places: NDArray[np.intp]) -> None:
        self._places_kept = places
        self._values_of = self._functions(places)
        self._kept: dict[int, list[NDArray[np.float32]]] = {}
        self._n_free = _MOST_KEPT

    def sum(self, step: Step) -> NDArray[np.int64]:
        """Add up the clipped vectors of all units, without a warning. Sensitive."""
        if not np.isin(step.places, self._places_kept).all():
            self._keep_of(step.places)
        total = np.zeros(step.size)
        with np.errstate(all="ignore"):
            for number, blocks in enumerate(self._parts()):
                of_blocks = self._values(number, blocks, step.places)
                for rows, values in zip(blocks, of_blocks, strict=True):
                    vectors = self._vectors(step, values, self._codes[rows])
                    total += step.rounded(vectors).sum(axis=0, dtype=np.float64)
        return total.astype(np.int64)

    def _vectors(
        self, step: Step, values: NDArray[np.float32], codes: NDArray[np.intp]
    ) -> NDArray[np.floating]:
        """Compute the vectors of a block: one of each row, or one of a group."""
        left, right = step.factors(values, codes)
        if self._group_of_row is None:
            return left[:, :, np.newaxis] * right[:, np.newaxis, :].astype(left.dtype)
        return (left.T @ right / len(left))[np.newaxis]

    def _parts(self) -> Iterator[Sequence[Rows]]:
        """Yield the blocks of rows of each part: all its rows, or those of each group.

        No row is left out, so that others stay.
        """
        n_rows = max(1, _AT_ONCE // self._size)
        if self._group_of_row is None:
            for start in range(0, len(self._codes), n_rows):
                yield [slice(start, start + n_rows)]
            return
        order = np.argsort(self._group_of_row, kind="stable")
        order = order[self._group_of_row[order] >= 0]
        starts = np.flatnonzero(np.diff(self._group_of_row[order], prepend=-1))
        ends = np.append(starts, len(order))
        _, firsts = np.unique(starts // n_rows, return_index=True)
        for first, last in pairwise([*firsts, len(starts)]):
            rows = order[ends[first] : ends[last]]
            yield np.split(rows, starts[first + 1 : last] - starts[first])

    def _values(
        self, number: int, blocks: Sequence[Rows], places: NDArray[np.intp]
    ) -> list[NDArray[np.float32]]:
        """Return values of the functions at some places, at the blocks of a part."""
        if not places.any():  # of the constant
            return [np.ones((len(self._codes[rows]), 1), np.float32) for rows in blocks]
        values = self._kept.get(number)
        if values is None:
            # The same operations as for values that are kept: which are depends on the
            # sizes of private groups.
            rows = blocks[0] if len(blocks) == 1 else np.concatenate(cast(Any, blocks))
            ends = np.cumsum([len(self._codes[one]) for one in blocks])[:-1]
            values = [
                self._values_of(one) for one in np.split(self._represent(rows), ends)
            ]
            n_bytes = sum(one.nbytes + _OF_ARRAY for one in values)
            if n_bytes <= self._n_free:
                self._kept[number] = values
                self._n_free -= n_bytes
        if len(places) == len(self._places_kept):
            return values
        found = np.searchsorted(self._places_kept, places)
        return [np.take(one, found, axis=1) for one in values]


class Newton:
    """Newton's method on noisy sums of gradients, with the curvature of public rows.

    The first sum gives the shares of the classes, and so the number of functions that
    noise allows. More functions are `tried`, and stay if the next two sums tell their
    coefficients from noise. The last sum corrects the mean probabilities, and others
    too with `intercept_only`. All it reads may be published: released sums and counts,
    public rows and numbers.
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
        tried: Callable[..., int] | None = None,
        intercept_only: bool = False,
    ) -> None:
        self.coef = np.zeros((1, start.shape[1]))
        #: Places of the functions of the coefficients in the public basis.
        self.functions = np.zeros(1, dtype=np.intp)
        self._tried = tried
        self._evidence: tuple[NDArray[np.float64], float] | None = None
        self._known_shares = shares
        self._intercept_only = intercept_only
        self._start = start
        self._values = values
        self._n_units = n_units
        self._allowed = allowed
        self._mechanism = mechanism
        self._shares = list(mechanism.shares)
        self._scale = self._unlike = 1.0
        self._last: _Move | None = None
        #: Whether the coefficients of the last step can hardly be told from noise.
        self.is_noise = False

    def step(self) -> Step:
        """Return the next step, at the coefficients so far."""
        n_left, share = len(self._shares), self._shares[0]
        if n_left == 1 and self._known_shares is None:
            return self._calibration_step(share)
        is_first = n_left == len(self._mechanism.shares)
        if n_left == 1 or (self._intercept_only and not is_first):
            return Step.of_mean(self.coef, share)
        if is_first:
            # All probabilities are equal: e_y - p is shorter.
            n_classes = self.coef.shape[1] + 1
            return Step.of_mean(self.coef, share, np.sqrt(1 - 1 / n_classes))
        floor = _FLOOR + self._certainty * (_LEAST_FLOOR - _FLOOR)
        self._curvature = Curvature.at(self._values, self.coef, self._scale, floor)
        left, right = self._curvature.left_root(-1), self._curvature.right_root(-1)
        return Step(self.coef, left, right, self._radius, share, self.functions)

    def _calibration_step(self, share: float) -> CalibrationStep:
        scores = self._values @ self.coef
        centre = scores.mean(axis=0)
        scale = float(np.sqrt(np.mean(np.sum((scores - centre) ** 2, axis=1)))) or 1.0
        constant, identity = np.eye(len(self.coef), 1), np.eye(self.coef.shape[1])
        return CalibrationStep(
            self.coef,
            constant,
            identity,
            # Of e_y - p, and of the product, which is at most half of that.
            np.sqrt(2) * np.hypot(1, _FARTHEST / _LONGEST),
            share,
            self.functions,
            centre=centre,
            scale=scale,
        )

    def move(self, step: Step, released: NDArray[np.int64]) -> None:
        """Move the coefficients, by the noisy sum of a step."""
        n_left = len(self._shares)
        unit = step.unit / self._n_units
        variance = (self._mechanism._sigma * unit) ** 2
        mean = unit * released.astype(np.float64)
        if n_left == len(self._mechanism.shares):
            self._choose_functions(mean, variance)
        elif isinstance(step, CalibrationStep):
            self._correct_mean(mean[:-1], variance)
            self._correct_slope(step, _LONGEST * mean[-1], _LONGEST**2 * variance)
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
        #: Number of functions that stay in any case, which are the first ones.
        self._n_sure = self._allowed(evenness_of(self.class_shares))
        noise = self._noise(self._n_sure * self.coef.shape[1])
        n_functions = self._tried(self._n_sure, noise) if self._tried else self._n_sure
        self.functions = np.arange(min(n_functions, self._values.shape[1]))
        self._start = self._start[self.functions]
        self._values = self._values[:, self.functions]
        # Equal probabilities are far from those of a rare class, so that few steps do
        # not arrive; but from there, clipping takes less of the vectors of this class.
        self._certainty = float(np.clip((_MUCH - noise) / (_MUCH - _LITTLE), 0, 1))
        if not self._start.any():
            scores = self._certainty * np.log(self.class_shares)
            self._start[0] = _contrasts(n_classes) @ scores
        self.coef = self._start

    def _noise(self, size: int) -> float:
        """Compute the variance of noise on coefficients, over that of the sample."""
        return 4 * size / (_mu(self._mechanism) ** 2 * self._n_units)

    @property
    def _radius(self) -> float:
        """Length that balances the noise, which it scales, and the bias by clipping."""
        size = self.coef.size
        radius = _RADIUS * self._noise(size) ** (-1 / 3)
        return float(np.clip(radius, _SMALLEST, _LARGEST)) * np.sqrt(size)

    def _follow(self, gradient: NDArray[np.float64], variance: float) -> None:
        """Take a Newton step along a noisy mean of gradients."""
        coef, curvature, last = self.coef, self._curvature, self._last
        variance += 1 / self._n_units  # of sampling
        gradient = curvature.applied(gradient, 1)
        if last is not None:
            of_warning = Curvature.at(self._values, last.coef, self._unlike, _FLOOR)
            self._unlike *= last.ratio(coef, gradient, variance, of_warning)
            ratio = last.ratio(coef, gradient, variance, last.curvature)
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
        is_told = self._start[1:].any() or exceeds_noise(
            change[1:], variances[1:], least
        )
        self.is_noise = not is_told
        shrunk = _shrunk(change, variances)
        self.coef = self._start + curvature.applied(shrunk, -1)
        if len(self.coef) > self._n_sure:
            self._select(self._last, change)

    def _select(self, last: "_Move", change: NDArray[np.float64]) -> None:
        """Leave out tried functions whose coefficients can hardly be told from noise.

        Each is tested alone, and in its block, less the largest of the block. In the
        first round, few are left out, and none has a coefficient yet; the second uses
        both gradients.
        """
        n_values, variance, is_first = change.shape[1], last.variance, True
        if self._evidence is not None:
            before, its_variance = self._evidence
            weight = its_variance / (its_variance + variance)
            change, variance = before + weight * (change - before), weight * variance
            is_first = False
        squared = np.sum(change**2, axis=1) / variance
        alone, in_block = (0.0, 0.0) if is_first else _BEYOND
        told = _exceeds(squared, n_values, alone)
        for place in _blocks_of(len(told), self._n_sure):
            block = squared[place]
            others, n_others = block.sum() - block.max(), n_values * (len(block) - 1)
            if _exceeds(others, n_others, in_block):
                told[place] = True
        told[: self._n_sure] = True
        kept = np.flatnonzero(told)
        if is_first:
            self.coef[self._n_sure :] = self._start[self._n_sure :]
            self._evidence = change[kept], variance
        else:
            self._n_sure = len(kept)
        self.functions, self._values = self.functions[kept], self._values[:, kept]
        self._start, self.coef = self._start[kept], self.coef[kept]
        self._last = last.of(kept)

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
        self.coef[0] += H @ shift_to_shares(scores, after)

    def _correct_slope(
        self, step: CalibrationStep, gain: float, variance: float
    ) -> None:
        """Multiply the scores by a number, with equal mean probabilities.

        `gain` is the noisy mean product of e_y - p(x), before the means were corrected,
        and the standardised scores. The number is the most probable one with which the
        mean product of p(x) and the scores of public rows moves by the gain.
        """
        n_classes = self.coef.shape[1] + 1
        H, u = _contrasts(n_classes), step.standardised(self._values)

        def coef_of(slope: float) -> NDArray[np.float64]:
            scores = slope * self._values @ self.coef @ H
            coef = slope * self.coef
            coef[0] += H @ shift_to_shares(scores, shares)
            return coef

        def product(coef: NDArray[np.float64]) -> float:
            probabilities = softmax(self._values @ coef @ H, axis=1)
            return float(np.mean(np.sum(probabilities @ H.T * u, axis=1)))

        def loss(log_slope: float) -> float:
            missing = target - product(coef_of(np.exp(log_slope)))
            return missing**2 / variance + (log_slope / _OF_SLOPE) ** 2

        shares = softmax(self._values @ self.coef @ H, axis=1).mean(axis=0)
        target = product(step.coef) + gain
        found = minimize_scalar(loss, bounds=np.log(_SLOPES), method="bounded")
        self.coef = coef_of(np.exp(found.x))

    def warn_if_unlike(self, *, held_out: bool) -> None:
        """Warn of public rows that vary less than private ones, by released sums."""
        if self._unlike > _UNLIKE:
            remedy = (
                "a larger public_size" if held_out else "rows of the same population"
            )
            warn_user(
                f"The private rows vary {self._unlike:.1f} times as much as the public "
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
        cls,
        values: NDArray[np.float64],
        coef: NDArray[np.float64],
        scale: float,
        floor: float,
    ) -> Self:
        """Compute it at public rows, times a scale, with a ridge."""
        n_classes = coef.shape[1] + 1
        H = _contrasts(n_classes)
        probabilities = softmax(values @ coef @ H, axis=1)
        weights = (1 - np.sum(probabilities**2, axis=1)) / (n_classes - 1)
        weights = np.maximum(weights, floor / n_classes)
        if coef[1:].any():
            by_coordinate = (values.T * weights) @ values / len(values)
        else:  # all weights are equal, and functions are orthonormal
            by_coordinate = weights[0] * np.eye(values.shape[1])
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
        return self._left_roots[sign]

    def right_root(self, sign: int) -> NDArray[np.float64]:
        """Compute the root of the second factor, or of its inverse."""
        return _root(self.right, sign)

    @cached_property
    def _left_roots(self) -> dict[int, NDArray[np.float64]]:
        return {sign: _root(self.left, sign) for sign in (1, -1)}

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

    def of(self, kept: NDArray[np.intp]) -> Self:
        """Return the part of some coefficients."""
        left = self.curvature.left[np.ix_(kept, kept)]
        return replace(
            self,
            coef=self.coef[kept],
            gradient=self.gradient[kept],
            curvature=replace(self.curvature, left=left),
        )

    def ratio(
        self,
        coef: NDArray[np.float64],
        gradient: NDArray[np.float64],
        variance: float,
        curvature: Curvature,
    ) -> float:
        """Compare the curvature along the move with the one that was assumed.

        The secant of the gradients, relative to the public curvature; 1 if it exceeds
        that by no more than two standard deviations of its noise.
        """
        move = coef - self.coef
        assumed = float(np.sum(curvature.applied(move, 1) ** 2))
        if assumed == 0:
            return 1.0
        ratio = float(np.vdot(move, self.gradient - gradient)) / assumed
        noise = np.sqrt((self.variance + variance) / assumed)
        return ratio if ratio > 1 + 2 * noise else 1.0


def _exceeds(squared: Any, size: int, deviations: float) -> Any:
    """Check squared lengths of noise and something more; the mean is `size` without."""
    least = size + deviations * np.sqrt(2 * size)
    return squared > (max(least, _WORTH * size) if deviations else least)


def _shrunk(
    coefficients: NDArray[np.float64], variances: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Shrink coefficients towards zero by the positive-part James-Stein rule.

    By blocks of 8, and then twice as many, coordinates after the constant, which is
    kept (Cai 1999, "Adaptive wavelet estimation: a block thresholding and oracle
    inequality approach").
    """
    kept = coefficients.copy()
    for block in _blocks_of(len(kept), 1):
        noise = float(np.mean(variances[block])) * max(kept[block].size - 2, 0)
        squared = float(np.sum(kept[block] ** 2))
        share = max(0.0, 1 - noise / squared) if squared > 0 else 0.0
        kept[block] *= share
    return kept


def _blocks_of(n_coordinates: int, start: int) -> Iterator[slice]:
    """Yield blocks of 8 coordinates, and then twice as many, from a start on."""
    size = 8
    while start < n_coordinates:
        yield slice(start, start + size)
        start, size = start + size, 2 * size


def _with_ridge(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    size = len(matrix)
    if size == 1:
        return matrix
    return matrix + _RIDGE * np.trace(matrix) / size * np.eye(size)


def _root(matrix: NDArray[np.float64], sign: int) -> NDArray[np.float64]:
    """Compute the symmetric square root of a matrix, or of its inverse."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * values ** (sign / 2)) @ vectors.T


class DPNewtonClassifier(CallbackSupportMixin, PublicRowsClassifier):
    """Differentially private logistic regression by noisy Newton steps.

    The classifier has no teachers, so it is not PATE. Public rows alone determine the
    features of the model. Five noisy steps compute the coefficients. The first step
    estimates the shares of the classes. Three Newton steps with clipped gradients
    follow, of which the first two also choose features. The last step corrects the mean
    probability of each class, and how steeply probabilities follow the features. In
    each step, every row or group contributes a vector of bounded length, and noise is
    added to the sum of the vectors. The model may be published, with ``privacy_spent_``
    as privacy statement.

    Parameters
    ----------
    representation : transformer or "auto", default="auto"
        Transformer from rows to numbers, fitted on public rows only. "auto" is a
        :class:`~sklearn_pate.students.TableRepresentation`, or an
        :class:`~sklearn_pate.students.ImageRepresentation` if X has the dimensions of
        images. Any other transformer should return its most informative columns first.

    basis : {"auto", "linear", "rbf"}, default="auto"
        Features of the model. "linear" is the principal components of the public rows
        after `representation`. "rbf" adds functions of the distances to cluster means
        of these rows. "auto" is "rbf" for tables, and "linear" for images or a given
        `representation`.

    max_coordinates : int or "auto", default="auto"
        Largest number of features that are tried, and at most a tenth of the number of
        public rows, or 5. With more noise, fewer rows or rarer classes, the model has
        fewer features. "auto" is 500, or 1000 for images.

    threshold : {"auto", "balanced", "accuracy"} or float, default="auto"
        With two classes, the probability above which the second class is predicted.
        With "auto", the share of public rows predicted as the second class equals the
        mean probability of this class, or with `synthetic` its share in the noisy
        counts. "balanced" is this mean probability or share, and "accuracy" is one
        half.

    epsilon : float, default=1.0
        Publishable epsilon of this fit, to which the noise is calibrated.

    delta : float, default=1e-5
        Delta of the (epsilon, delta) guarantee. Must be well below one over the number
        of rows.

    privacy_unit : {"row", "group"}, default="row"
        Unit of privacy: one row, or all rows of one group, such as a patient, given as
        ``fit(..., groups=patient_id)``. Each group contributes the mean gradient of its
        rows. With "row", a person with several rows is **not** protected as a whole.

    n_groups : int, default=None
        Estimated number of groups for ``privacy_unit="group"``, chosen independently of
        the private data. A wrong estimate makes predictions worse, not less private.

    public_size : float, default=None
        Share of the rows, or of the groups, to use as public rows if `fit` gets no
        `X_public`. The people in these rows are **not protected**.

    synthetic : PrivateMarginals, default=None
        Replaces public rows by noisy counts of the private rows, whose log-odds are the
        features. `epsilon` includes the privacy cost of the counts. The domain must be
        declared **without a look at private rows**; see
        :class:`~sklearn_pate.PrivateMarginals`.

    codes : dict, "auto" or None, default="auto"
        Columns of many codes, such as diagnoses, whose noisy counts by class become
        features, for 0.3 of the privacy cost. A dict has, by column, the list of
        possible codes, a dict from codes to groups of them, or None for the codes of
        public rows. "auto" takes columns of text with many rare categories, if the
        public number of rows or groups is large enough for the noise.

    classes : array-like of shape (n_classes,), default=None
        All labels that may occur. With None, the labels are read from y; the privacy
        statement then assumes that the set of labels is public. A private row with
        another label is dropped, and counted in ``data_problems_``.

    ledger : PrivacyLedger, default=None
        Privacy budget of the private data over all fits. With an integer
        `random_state`, an interrupted fit resumes after the last finished step, and a
        repeated fit gets an equal model at no further cost. **If rows or labels are
        prepared in another way, use another** `random_state`.

    verbose : int or bool, default=0
        Progress messages on the standard error stream, as for
        :class:`~sklearn_pate.PATEClassifier`.

    random_state : int, RandomState instance or None, default=None
        Seed of the choice of public rows, the representation and the basis. The seed
        may be public.

    Attributes
    ----------
    model_ : ScoreFunction
        The model, which predicts class indices. May be published.

    coefficients_ : ndarray of shape (n_coordinates, n_classes - 1)
        Noisy coefficients of the model. May be published.

    representation_ : transformer
        The transformer, fitted on public rows. May be published.

    classes_ : ndarray of shape (n_classes,)
        Class labels.

    privacy_spent_ : PrivacySpent
        The privacy statement: ``epsilon, delta = clf.privacy_spent_``. May be
        published.

    mechanism_ : NewtonSteps or TwoPartRelease
        The noisy steps, with all parameters set. With `synthetic` or counted codes, the
        parts are ``counts`` and ``mechanism``.

    marginals_ : dict
        Only with `synthetic` or counted codes: the noisy counts of each column. The
        last count of codes is of all other values. May be published.

    codes_ : dict
        Only with counted codes: the codes of each column, as text, in the order of its
        counts. May be published.

    data_problems_ : tuple of str
        **Sensitive**: what `check_data` finds in the private rows of this fit. A
        pickled or copied estimator lacks this attribute.

    public_indices_ : ndarray of int of shape (n_public,)
        Only with `public_size`, and **sensitive**: indices of the rows of X that became
        public. A pickled or copied estimator lacks this attribute.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X is a dataframe with string column names.

    See Also
    --------
    sklearn_pate.learners.DPLogisticRegression : Private logistic regression without
        public rows.

    Notes
    -----
    Let b(x) be the features of a row x, C the coefficients, and H the Helmert matrix,
    whose rows are orthonormal and orthogonal to 1. The model is p(x) = softmax(b(x) C
    H). In each step i = 1, ..., 5, a row contributes a vector of whole numbers. Its
    length is at most sqrt(s_i) S, with s = (0.03, 0.14, 0.23, 0.55, 0.05) and S = 1024.
    All steps together are mu-Gaussian differentially private with mu = 2 / noise_scale,
    up to the rounding in ``gdp_mu``. The stated epsilon is exact, and does not depend
    on the numbers of public rows, classes and features. The proof is on the page
    :doc:`/proofs/sums`.

    For n units and K classes with shares pi from the first step, let G = (1
    - sum(pi^2)) K / (K - 1). For a table, the model has the first 0.029 sqrt(G) n mu
    features, at least 5 and at most mu^2 n / (K - 1). Labels may depend on features
    that vary little, so that more are tried: 40 / (K - 1) linear ones, or twice as many
    as the model has, if that is less than mu^2 n / (4 (K - 1)). Features stay whose
    coefficients exceed the noise of steps 2 and 3, alone or in blocks.

    Newton steps with noise are from Ganesh, Haghifam, Steinke, Thakurta (2023), "Faster
    differentially private convex optimization via second-order methods". This class
    computes the Hessian on public rows, at no privacy cost. Public rows determine the
    geometry of private training in Amid, Ganesh, Mathews, Ramaswamy, Song, Steinke,
    Suriyakumar, Thakkar, Thakurta (2022), "Public data-assisted mirror descent for
    private model training".

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn_pate import DPNewtonClassifier, PublicData
    >>> X, y = make_blobs(6000, centers=3, random_state=0)
    >>> clf = DPNewtonClassifier(random_state=0)
    >>> clf = clf.fit(X[:5000], y[:5000], X_public=PublicData(X[5000:5500]))
    >>> clf.privacy_spent_
    PrivacySpent(epsilon=1.000, delta=1e-05)
    >>> bool(clf.score(X[5500:], y[5500:]) > 0.8)
    True
    """

    epsilon: float

    _inner = "model_"
    _keeps_rows_apart = (_inner,)

    _constraints: ClassVar[dict[str, Constraint]] = {
        "basis": Constraint.option(_BASES),
        "codes": Constraint(check_codes),
        "max_coordinates": Constraint.count(also=("auto",)),
        "threshold": Constraint(check_threshold),
        "n_groups": Constraint.count(also=(None,)),
    }

    def __init__(
        self,
        *,
        representation: Any = "auto",
        basis: Literal["auto", "linear", "rbf"] = "auto",
        max_coordinates: int | Literal["auto"] = "auto",
        threshold: float | Threshold = "auto",
        epsilon: float = 1.0,
        delta: float = 1e-5,
        privacy_unit: Literal["row", "group"] = "row",
        n_groups: int | None = None,
        public_size: float | None = None,
        synthetic: PrivateMarginals | None = None,
        codes: dict[Any, Any] | Literal["auto"] | None = "auto",
        classes: ArrayLike | None = None,
        ledger: PrivacyLedger | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.representation = representation
        self.basis = basis
        self.max_coordinates = max_coordinates
        self.threshold = threshold
        self.epsilon = epsilon
        self.delta = delta
        self.privacy_unit = privacy_unit
        self.n_groups = n_groups
        self.public_size = public_size
        self.synthetic = synthetic
        self.codes = codes
        self.classes = classes
        self.ledger = ledger
        self.verbose = verbose
        self.random_state = random_state

    @private_rows_by_position
    @with_callbacks
    def fit(self, X: Any, y: Any, *, X_public: Any = None, groups: Any = None) -> Self:
        """Train the model on private rows, with noise.

        Every call of `fit` is a new release with its own privacy cost, unless the
        `ledger` already has an entry of an equal call.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Private rows. No value of a private row makes a fit fail. Public rows with
            missing values are refused if `representation` does not accept missing
            values.

        y : array-like of shape (n_rows,)
            Labels of the private rows. With `classes`, a row without a label (None,
            NaN) is dropped; `check_data` lists dropped rows.

        X_public : PublicData or {array-like, sparse matrix, dataframe} of shape \
                (n_public, n_features), default=None
            Public rows, without labels. The people in these rows are not protected.
            Wrap the rows in :class:`~sklearn_pate.PublicData`, or a search may split
            the rows.

        groups : array-like of shape (n_rows,), default=None
            Group id of each row, for ``privacy_unit="group"``: integers or strings. A
            row without an id is left out. Pass one row a group if the outcome decides
            how many rows a group has: see :doc:`/guide/data`.

        Returns
        -------
        self : DPNewtonClassifier
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data cannot be used. Nothing was released or charged,
            except possibly the counts of `synthetic` or of codes.

        BudgetExceededError
            If the privacy cost exceeds the budget of the `ledger`. Nothing was released
            or charged.

        LedgerError
            If the file of the `ledger` cannot be read or written. Also if the counts
            stored in the ledger give other `synthetic` rows with the installed library
            versions.

        Warns
        -----
        PublicDataWarning
            If rows of X are used as public rows, or `X_public` does not resemble X.

        PrivacyLeakWarning
            If the noise is seeded, or `delta` or `epsilon` is too large for privacy.
            Also for a second fit of the same rows without a ledger.

        PrivacyUtilityWarning
            If the noise is too large for the coefficients, by public or by released
            numbers. Also if features hardly represent the columns of the public rows,
            or if noisy counts show that the domain of `synthetic` misses private rows.
        """
        with progress_of(self):
            plan = self._plan(X, y, X_public=X_public, groups=groups)
            private, public = plan.private, plan.public.content
            dropped = self._find_problems(X, y, X_public, groups, self.classes)
            entry = open_entry(
                self, plan.release, private.content(), public, plan.values
            )
            announce(f"{plan.release.accounted.in_one_line()}, {plan.statement!r}")
            # Where counts are released, this line spends the first part of the privacy.
            plan, marginals = self._after_counts(plan, entry)
            rows, refused = plan.represented_rows()
            newton = plan.newton()
            sums = StoredSums(plan.mechanism, entry, plan.release.noise())
            for number in steps_of("summing rows", range(len(NewtonSteps.shares))):
                step = newton.step()
                # The privacy is spent on this line: the cost is recorded, then noise is
                # drawn.
                newton.move(step, sums.draw(number, partial(rows.sum, step)))
            if self.synthetic is None:
                newton.warn_if_unlike(held_out=self.public_size is not None)
            if plan.why_useless is None:
                rarest = float(newton.class_shares.min())
                why = self._why_useless(plan.release, plan.n_units, rarest)
                if why is None and newton.is_noise:
                    why = why_only_noise("coefficients")
                warn_user(why, PrivacyUtilityWarning)
            model = plan.model(newton, self.threshold)
        self.model_ = model
        self.coefficients_ = newton.coef
        self.representation_ = plan.public_basis.of_basis
        self.classes_ = plan.public.classes
        self._known_columns = KnownColumns.of(plan.public.X_public, model)
        self._set_applicable(
            marginals_=marginals,
            codes_=plan.public.counted_codes,
            public_indices_=private.public_indices,
        )
        self._set_release(plan.release.accounted, plan.statement)
        self.data_problems_ = DataProblems([*dropped, *refused])
        return self

    def _plan(
        self, X: Any, y: Any, *, X_public: Any = None, groups: Any = None
    ) -> "_NewtonPlan":
        """Check parameters and data, calibrate the noise, and compute the basis."""
        self._check_parameters()
        if hasattr(X, "__dask_graph__"):
            raise ValueError(
                "X is a dask collection, but DPNewtonClassifier needs all rows in one "
                "process; pass X.compute(), or use PATEClassifier."
            )
        seeds = Seeds.drawn(self.random_state)
        with phase("reading the rows"):
            private, public = split_inputs(
                self, X, y, X_public, groups, seed=seeds.public_rows
            )
        public = self._with_codes(public, self._chosen_representation(public.X_public))
        counts_for, assumed = (
            partial(self._counts, public),
            self._assumptions(public, of_rows=True),
        )
        release = self._plan_release(len(public.classes), counts_for, assumed)
        self._warn_of_counts(private, public, release)
        n_units = self._n_units(private)
        basis = self._public_basis(release, public, n_units, seeds)
        allowed = partial(self._n_coordinates, release, public, n_units)
        plan = _NewtonPlan(
            private,
            public,
            release,
            seeds,
            n_units,
            basis,
            allowed,
            self._tried(public, basis.basis.n_linear),
            self._why_useless(release, n_units),
        )
        plan.warn_if_useless()
        return plan

    @phase("calibrating the noise")
    def _plan_release(
        self,
        n_classes: int,
        counts_for: CountsFor,
        assumptions: tuple[Assumption, ...],
    ) -> ReleasePlan:
        """Calibrate the noise of the steps after that of counts, and state the cost."""
        check_two_classes(self.threshold, n_classes)
        return ReleasePlan(
            prepare=partial(NewtonSteps().prepared, delta=self.delta),
            counts_for=counts_for,
            target=self.epsilon,
            delta=self.delta,
            unit=self.privacy_unit,
            assumptions=assumptions,
            n_values=n_classes,
            n_steps=len(NewtonSteps.shares),
        )

    @phase("preparing public rows")
    def _public_basis(
        self, release: ReleasePlan, public: PublicInputs, n_units: int, seeds: Seeds
    ) -> ScoredRows:
        """Fit the representation and the basis on public rows."""
        X_public = public.X_public
        most = self._n_coordinates(release, public, n_units, 1.0)
        if tried := self._tried(public, _TRIED_LINEAR + 1):
            most = tried(most)
        if public.synthetic is not None and self._has_log_odds:
            return rows_in_order(
                X_public, LogOdds.of_counts(public.synthetic.marginals), most
            )
        representation = self._chosen_representation(X_public)
        if public.log_odds is not None:
            representation = clone(representation).set_params(codes=public.log_odds)
        return score_rows(
            X_public,
            representation,
            max_coordinates=most,
            rbf=self._has_distances(X_public) and not self._has_log_odds,
            seed=seeds.representation,
        )

    def _n_coordinates(
        self, release: ReleasePlan, public: PublicInputs, n_units: int, evenness: float
    ) -> int:
        """Compute the number of functions, once the shares of classes are released."""
        X_public = public.X_public
        return self._most_coordinates(
            release,
            public.n_public,
            n_units,
            most=self._most(X_public),
            ordered=self._is_ordered(X_public),
            evenness=evenness,
        )

    def _tried(self, public: PublicInputs, n_linear: int) -> Callable[..., int] | None:
        """Return the number of functions that are tried, by the number allowed."""
        if self._is_ordered(public.X_public) or self._has_log_odds:
            return None
        most = most_by_public_rows(self._most(public.X_public), public.n_public)
        n_classes = len(public.classes)

        def tried(n_allowed: int, noise: float = 0.0) -> int:
            return min(most, n_tried(n_allowed, n_linear, n_classes, noise))

        return tried

    def _most(self, X_public: Table | None = None) -> int:
        """Return the largest number of functions; no public rows stand for a table."""
        if self.max_coordinates != "auto":
            return self.max_coordinates
        is_of_table = X_public is None or is_table(X_public)
        return OF_TABLE if is_of_table else _OF_IMAGES

    def _most_coordinates(
        self,
        release: ReleasePlan,
        n_public: int,
        n_units: int,
        *,
        most: int,
        ordered: bool = False,
        evenness: float = 1.0,
    ) -> int:
        """Compute the number of functions by public numbers and those of a release."""
        mechanism, n_classes = release.mechanism, release.n_values
        counts = release.counts
        if counts is not None and self._has_log_odds:
            numbers = counts.n_tables, n_classes, n_units
            target = cast(float, release.target)
            return min(most, self._n_log_odds(*numbers, target, evenness))
        return n_coordinates(
            mechanism,
            n_units,
            n_public,
            n_classes,
            most=most,
            ordered=ordered,
            evenness=evenness,
        )

    def _why_useless(
        self, release: ReleasePlan, n_units: int, rarest: float | None = None
    ) -> str | None:
        """Describe noise that hides the coefficients; counts have their own warning."""
        if self._has_log_odds:
            return None
        return why_newton_useless(release, n_units, rarest)

    @property
    def _has_log_odds(self) -> bool:
        """Whether features are log-odds of counts, without public rows."""
        return (
            self.synthetic is not None
            and self.synthetic.by_class
            and self.basis != "rbf"
            and not is_given(self.representation)
        )

    def _share_of_counts(
        self, n_tables: int, n_classes: int, n_units: int | None, epsilon: float | None
    ) -> float:
        if not self._has_log_odds:
            return super()._share_of_counts(n_tables, n_classes, n_units, epsilon)
        numbers = n_tables, n_classes, cast(int, n_units), cast(float, epsilon)
        # The shares of the classes are not released yet.
        is_alone = self._n_log_odds(*numbers, evenness=0.5) == n_classes
        return _OF_COUNTS_ALONE if is_alone else _OF_COUNTS

    def _n_log_odds(
        self,
        n_tables: int,
        n_classes: int,
        n_units: int,
        epsilon: float,
        evenness: float,
    ) -> int:
        """Compute the number of features of counts: the constant and all log-odds.

        Where noise would hide their coefficients, the sum over columns alone.
        """
        n_values = n_classes - 1
        allowed = _FEATURES_OF_COUNTS * n_units * largest_gdp_mu(epsilon, self.delta)
        if math.sqrt(evenness) * allowed < (n_tables + 1) * n_values:
            return n_classes
        return 1 + (n_tables + 1) * n_values

    def _with_public_rows(
        self, plan: "_NewtonPlan", public: PublicInputs
    ) -> "_NewtonPlan":
        basis = self._public_basis(plan.release, public, plan.n_units, plan.seeds)
        allowed = partial(self._n_coordinates, plan.release, public, plan.n_units)
        alone = False
        if self._has_log_odds:
            shares = cast(Any, public.synthetic).marginals.by_total.shares
            alone = allowed(evenness_of(shares)) == len(public.classes)
        return replace(
            plan,
            public=public,
            public_basis=basis,
            allowed=allowed,
            intercept_only=alone,
        )

    def _chosen_representation(self, X_public: Table | None = None) -> Any:
        """Return the representation: components of images, or columns of a table."""
        if is_given(self.representation):
            return self.representation
        if X_public is None or is_table(X_public):
            return TableRepresentation(_OF_SPARSE if sp.issparse(X_public) else None)
        return ImageRepresentation(n_components=_OF_IMAGES)

    def _is_ordered(self, X_public: Table) -> bool:
        """Return whether the first columns of the represented rows matter most."""
        return is_given(self.representation) or not is_table(X_public)

    def _has_distances(self, X_public: Table) -> bool:
        """Return whether functions of distances are among the features."""
        if self.basis != "auto":
            return self.basis == "rbf"
        return not self._is_ordered(X_public)

    def _n_units(self, private: PrivateRows) -> int:
        """Return the public number of rows or groups."""
        if self.privacy_unit == "row":
            return private.n_rows
        return cast(int, self.n_groups)  # checked with the parameters

    def _check_parameters(self) -> None:
        check_epsilon(self.epsilon)
        super()._check_parameters()
        if self.representation is None:
            raise ValueError(
                "representation=None is not a transformer; set 'auto', or pass one "
                "with fit and transform, such as PCA(50)."
            )
        check_cloneable("representation", self._chosen_representation())
        if self.privacy_unit == "group" and self.n_groups is None:
            raise ValueError(
                "privacy_unit='group' needs the number of groups, which is not public; "
                "pass n_groups, a rounded or estimated number that was chosen "
                "independently of the data."
            )

    def _readers(self) -> dict[str, Any]:
        return {"representation": self._chosen_representation()}

    def _unfitted_inner(self) -> ScoreFunction:
        return ScoreFunction()

    def _published_model(self) -> ScoreFunction:
        return without_caches(self.model_)


@dataclass(frozen=True)
class _NewtonPlan:
    """Plan of a fit: private rows, public basis, noise and statement."""

    private: PrivateRows
    public: PublicInputs
    release: ReleasePlan
    seeds: Seeds
    #: Public number of rows or groups.
    n_units: int
    public_basis: ScoredRows
    #: Number of functions, by the evenness of the classes.
    allowed: Callable[[float], int]
    #: Number of functions that are tried, by the number that noise allows; None where
    #: their order tells how much they matter.
    tried: Callable[..., int] | None
    #: Description of noise that hides the coefficients, None if it does not.
    why_useless: str | None
    #: Whether the noise hides all coefficients but those of naive Bayes.
    intercept_only: bool = False

    #: Synthetic rows are like the private ones.
    equal_classes: ClassVar[bool] = False

    @property
    def statement(self) -> PrivacySpent:
        """Privacy statement, which depends on no private value."""
        return self.release.statement

    @property
    def mechanism(self) -> NewtonSteps:
        """Noise of the steps."""
        return cast(NewtonSteps, self.release.mechanism)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.public.classes)

    @property
    def values(self) -> NDArray[np.float64]:
        """Values of the basis at public rows."""
        return self.public_basis.values

    @property
    def n_coordinates(self) -> int:
        """Largest number of coefficients for each class but one."""
        if self.public.domain is None:
            return self.values.shape[1]
        return self.allowed(1.0)

    def warn_if_useless(self) -> None:
        """Warn, by public numbers, of a model of no use, and of a slow fit."""
        few = why_few_public_rows(self.public.n_public)
        for why in (self.why_useless, few, self.why_columns_are_lost):
            warn_user(why, PrivacyUtilityWarning)
        representation = self.public_basis.of_basis
        by_group = self.private.group_of_row is not None
        warn_if_slow_alone(representation, self.public.X_public, by_group=by_group)

    @property
    def why_columns_are_lost(self) -> str | None:
        """Description of columns that features hardly represent; None without any."""
        if self.why_useless is not None or self.public.domain is not None:
            return None  # rows of the domain are not like private ones
        basis = self.public_basis
        return why_columns_are_lost(
            basis.of_basis,
            basis.kept_variance,
            counted_columns=self.public.counted_columns,
        )

    @phase("representing the rows")
    def represented_rows(self) -> tuple[RepresentedRows, list[str]]:
        """Represent the private rows; also return problems. Sensitive."""
        basis = self.public_basis.basis
        represent, n_refused = represented_rows(
            self.public_basis.of_basis,
            self.private.X,
            len(basis.mean_),
            by_group=self.private.group_of_row is not None,
        )
        rows = RepresentedRows(
            represent,
            self.private.codes,
            self.private.group_of_row,
            lambda places: basis.chosen(places).in_single_precision().near,
            size=self.values.shape[1] * (self.n_classes - 1),
        )
        refused = f"Rows that the representation could not transform: {n_refused}."
        return rows, [refused] if n_refused else []

    def newton(self) -> Newton:
        """Return the Newton method at its start."""
        start = np.zeros((self.values.shape[1], self.n_classes - 1))
        rows = self.public.synthetic
        if rows is None or not rows.marginals.by_class:
            return Newton(
                self.mechanism,
                self.values,
                self.n_units,
                start,
                self.allowed,
                tried=self.tried,
            )
        # Naive Bayes at drawn rows; exactly so, if its sum is the first function.
        marginals, H = rows.marginals, helmert(self.n_classes)
        tables = marginals.by_total
        temperature, intercepts = tables.calibrated(tables.log_odds())
        scored = _safe_indexing(self.public.X_public, self.public_basis.rows)
        total = LogOdds.of_counts(marginals).transform(scored)[:, : self.n_classes - 1]
        scores = temperature * total + H @ intercepts
        return Newton(
            self.mechanism,
            self.values,
            self.n_units,
            self.values.T @ scores / len(scores),
            self.allowed,
            tables.shares,
            intercept_only=self.intercept_only,
        )

    def model(self, newton: Newton, threshold: Any) -> ScoreFunction:
        """Return the model with released coefficients, by public rows alone."""
        coef, functions = newton.coef, newton.functions
        representation = self.public_basis.of_basis
        basis = self.public_basis.basis.chosen(functions)
        model = ScoreFunction.of_release(coef, representation, basis)
        probabilities = model.probabilities(self.values[:, functions])
        spread, rows = probabilities, self.public.synthetic
        if rows is not None:
            adds_columns = isinstance(representation, LogOdds)
            chosen = self.public_basis.rows
            spread = rows.spread(probabilities, chosen, adds_columns=adds_columns)
        model.threshold = resolve_threshold(threshold, spread)
        ranks = self.n_classes == 2 and bool(coef[1:].any())
        balanced = "threshold='balanced'" if ranks else None
        why = why_one_class(model.decide(spread), "public row", balanced)
        warn_user(why, PrivacyUtilityWarning)
        return model
