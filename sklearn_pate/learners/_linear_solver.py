"""Exact solution of a perturbed objective with bounded rows."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit

from sklearn_pate.accounting._calibrate import LARGEST_SCALE, calibrate_noise
from sklearn_pate.accounting._gdp import largest_gdp_mu
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.accounting.composition import (
    curvature_cost,
    gaussian_objective_curve,
    least_regularisation,
)
from sklearn_pate.accounting.plurality._closed_form import pure_dp_curve
from sklearn_pate.mechanisms._noisy_training import (
    TOLERANCE,
    Method,
    NoisyObjective,
    largest_shift,
)

_SMALLEST_UNIT = 1e-200
# Rows whose part of the Hessian is computed at once.
_BLOCK = 4096
# Rows whose gradients are added up at once, then sums of such: rounding grows with it.
_FAN_IN = 128
_UNIT_ROUNDOFF = 2.0**-53
# Line search: required share of the decrease that the slope predicts.
_SUFFICIENT = 1e-4
_MAX_HALVINGS = 60
# Newton's method takes a few dozen steps on the hardest rows of the tests. This is no
# parameter, as the number of steps depends on private rows.
_MOST_STEPS = 1000
# Share of the privacy cost for noise on the output, for an inexact minimiser.
_SHARE_OF_OUTPUT = 1e-3
# C="auto": assumed L2 norm of the weights. From 6 to 12, mean accuracy with noise on
# the objective changes by less than half a point on artificial data, where this was
# chosen (make_classification: 3,000 and 25,000 rows, plain and one-hot, balanced and
# three to one, epsilon from 0.1 to 1); noise on the output needs less.
_NORM_OF_WEIGHTS = 8.0
# With less, Newton's method would depend on the rounding of columns.
_LEAST_REGULARISATION = 1e-6
# Rounding of the linear term, over its length and the number of weights (and 16): twice
# the bound of the solver.
_ROUNDING = 2.0**-51
_SURE = 40  # a Gamma draw beyond its shape plus this has a chance below 1e-15


@dataclass(frozen=True)
class Bounds:
    """Bounds that every row is brought within, alike in training and in prediction.

    With `clips`, features are clipped to [`low`, `low` + `width`] and scaled to [0, 1];
    without, `low` is 0 and `width` is 1. Then longer rows are scaled down to the L2
    norm `norm`. `constant` is the value of the column for the intercept, 0 for none.
    """

    __module__ = "sklearn_pate.stored_types"  # its name in files

    low: NDArray[np.float64]
    width: NDArray[np.float64]
    clips: bool
    norm: float
    constant: float

    @property
    def _length(self) -> float:
        """Largest norm of a row with its constant, rounding included.

        With d features, the computed norm, and everything computed from it, is right to
        (d + 16) 2^-53.
        """
        rounding = (len(self.low) + 16) * 2.0**-52
        return math.hypot(self.norm, self.constant) * (1 + rounding)

    def can_be_undone(self) -> bool:
        """Check that weights in units of the features do not overflow."""
        return bool(np.all(self._length * self.width > _SMALLEST_UNIT))

    def scaled(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bring each row within the bounds, independently of the other rows.

        NaN counts as the middle of the bounds of its feature, as 0 without `clips`.
        Without `clips`, a row whose norm overflows becomes 0.
        """
        if self.clips:
            X = (np.clip(X, self.low, self.low + self.width) - self.low) / self.width
        # Infinity becomes the largest number, whose row has no finite norm either.
        X = np.nan_to_num(X, nan=0.5 if self.clips else 0.0)
        # In units of the bound, as the square of a small number may be rounded to 0.
        with np.errstate(over="ignore", divide="ignore"):
            shrink = np.minimum(1, 1 / np.linalg.norm(X / self.norm, axis=1))
        return X * shrink[:, np.newaxis]

    def rows(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute training rows: L2 norm at most 1, the constant column included."""
        rows = self.scaled(X)
        if self.constant:
            rows = np.column_stack([rows, np.full(len(X), self.constant)])
        rows /= self._length
        return rows

    def to_features(
        self, weights: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Convert weights of training rows to coefficients and intercepts.

        For rows within the bounds, ``X @ coef.T + intercept`` is
        ``rows(X) @ weights.T``; `low` contributes to the intercept.
        """
        n_features = len(self.low)
        coef = weights[:, :n_features] / (self._length * self.width)
        constant = weights[:, n_features:].sum(axis=1) * self.constant / self._length
        return coef, constant - coef @ self.low

    def scores(
        self,
        X: NDArray[np.float64],
        coef: NDArray[np.float64],
        intercept: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Compute ``rows(X) @ weights.T`` from coefficients and intercepts."""
        return self.scaled(X) @ (coef * self.width).T + (intercept + coef @ self.low)


def read_feature_bounds(
    feature_bounds: tuple[ArrayLike, ArrayLike] | None, n_features: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the low bound and the width of each feature, 0 and 1 without bounds."""
    if feature_bounds is None:
        return np.zeros(n_features), np.ones(n_features)
    try:
        low, high = (
            np.broadcast_to(np.asarray(bound, dtype=np.float64), n_features)
            for bound in feature_bounds
        )
    except (TypeError, ValueError):
        raise ValueError(
            f"feature_bounds={feature_bounds!r} must be a pair (low, high), each a "
            f"number or {counted(n_features, 'number')}, one per feature."
        ) from None
    if not (np.all(low < high) and np.all(np.isfinite(high - low))):
        raise ValueError(
            f"feature_bounds={feature_bounds!r} must be finite, with low below high "
            "for every feature."
        )
    return low, high - low


class MarginLoss(ABC):
    """Convex, non-increasing loss of the margin y w.x, with slopes from -1 to 0.

    The privacy proofs require these properties.
    """

    #: Largest second derivative.
    curvature: float

    @abstractmethod
    def values(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute the loss of each margin."""

    @abstractmethod
    def derivatives(
        self, margins: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Compute the first and the second derivative, left or right of a kink."""


class LogisticLoss(MarginLoss):
    """The loss ln(1 + e^-z) of a margin z."""

    curvature = 0.25

    def values(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute the loss of each margin."""
        return np.logaddexp(0.0, -margins)

    def derivatives(
        self, margins: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Compute minus the probability of the other class, and its variance."""
        other = expit(-margins)
        return -other, other * expit(margins)


class HuberHinge(MarginLoss):
    """The hinge loss max(0, 1 - z), but (1 + h - z)^2 / (4 h) for |1 - z| < h.

    Chaudhuri, Monteleoni, Sarwate (2011, Section 3.4).
    """

    def __init__(self, half_width: float) -> None:
        self.half_width = half_width
        self.curvature = 1 / (2 * half_width)

    def _position(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute the position of margins in the quadratic piece, from 1 down to 0."""
        return (1 + self.half_width - margins) * self.curvature

    def values(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute the loss of each margin."""
        position = self._position(margins)
        quadratic = self.half_width * np.maximum(position, 0) ** 2
        return np.where(position < 1, quadratic, 1 - margins)

    def derivatives(
        self, margins: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Compute the slope, and the second derivative, which is 0 or 1 / (2 h)."""
        position = self._position(margins)
        is_quadratic = (position > 0) & (position < 1)
        return -np.clip(position, 0, 1), np.where(is_quadratic, self.curvature, 0.0)


def minimise(
    X: NDArray[np.float64],
    signs: NDArray[np.float64],
    loss: MarginLoss,
    *,
    regularisation: float,
    linear_term: NDArray[np.float64],
    tolerance: float,
) -> NDArray[np.float64]:
    """Minimise sum_i loss(y_i w.x_i) + lambda/2 |w|^2 + b.w over w.

    `signs` holds the y_i (1 or -1), `regularisation` is lambda > 0, `linear_term` is b.
    The L2 norm of the gradient at the result, rounding included, is at most
    `tolerance`, so that the exact minimiser is within `tolerance` / lambda. Raises
    RuntimeError if rounding prevents that.

    Newton's method with a line search by halving. For the Huber hinge it is semismooth:
    the pieces of the margins settle, and the last step is exact.

    Rounding, with u = 2^-53, d weights and n rows of norm at most 1: a margin is right
    to (d + 2) u |w|, its slope to c times that and u (8 + 8 c (1 + |w|)), where c is
    the curvature. A sum of n such terms, added up as a tree of depth k by m = 128 at a
    time, is right to (k m + 2) n u. For the other terms it is (d + 16) u (lambda |w| +
    |b|), and the same again for `b`, as the drawn `b` is rounded. The sum of these
    bounds is added to the computed norm.
    """
    weights = np.zeros(X.shape[1])
    margins = np.zeros(len(X))

    def objective(
        weights: NDArray[np.float64], margins: NDArray[np.float64]
    ) -> np.float64:
        return (
            loss.values(margins).sum()
            + regularisation / 2 * weights @ weights
            + linear_term @ weights
        )

    value = objective(weights, margins)
    for _ in range(_MOST_STEPS):
        slopes, curvatures = loss.derivatives(margins)
        gradient = _weighted_sum(X, signs * slopes)
        gradient += regularisation * weights + linear_term
        rounding = _rounding(X.shape, loss, weights, regularisation, linear_term)
        if np.linalg.norm(gradient) + rounding <= tolerance:
            return weights
        hessian = _weighted_gram(X, curvatures)
        hessian[np.diag_indices_from(hessian)] += regularisation
        try:
            step = -cho_solve(cho_factor(hessian, overwrite_a=True), gradient)
        except LinAlgError:  # dependent columns, hardly regularised
            break
        margins_step = signs * (X @ step)
        # Near the minimum, decreases are smaller than rounding.
        slack = 1e-12 * abs(value)
        size = 1.0
        for _ in range(_MAX_HALVINGS):
            ahead = objective(weights + size * step, margins + size * margins_step)
            if ahead <= value + _SUFFICIENT * size * (gradient @ step) + slack:
                break
            size /= 2
        weights = weights + size * step
        margins = signs * (X @ weights)
        value = objective(weights, margins)
    raise RuntimeError(
        "The solver did not reach the minimum, which the guarantee needs, because of "
        "rounding. Nothing was released, but the cost is spent. Do not publish this "
        "error, as it depends on private rows; lower C, or raise epsilon."
    )


def _weighted_sum(
    X: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute X^T weights, added up as a tree."""
    n_full = len(X) // _FAN_IN * _FAN_IN
    shape = -1, 1, _FAN_IN
    sums = weights[:n_full].reshape(shape) @ X[:n_full].reshape(-1, _FAN_IN, X.shape[1])
    sums = np.concatenate([sums[:, 0], (weights[n_full:] @ X[n_full:])[np.newaxis]])
    while len(sums) > 1:
        starts = np.arange(0, len(sums), _FAN_IN)
        sums = np.add.reduceat(sums, starts, axis=0)
    return sums[0]


def _rounding(
    shape: tuple[int, ...],
    loss: MarginLoss,
    weights: NDArray[np.float64],
    regularisation: float,
    linear_term: NDArray[np.float64],
) -> float:
    """Bound the distance of the computed gradient from the exact one."""
    n_rows, n_weights = shape
    norm = np.linalg.norm(weights)
    depth = 1
    while _FAN_IN**depth < n_rows + _FAN_IN:
        depth += 1
    of_slope = 8 + loss.curvature * (8 + (n_weights + 10) * norm)
    of_sum = depth * _FAN_IN + 2
    others = regularisation * norm + 2 * np.linalg.norm(linear_term)
    total = n_rows * (of_slope + of_sum) + (n_weights + 16) * others
    return float(_UNIT_ROUNDOFF * total)


def _weighted_gram(
    X: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute X^T diag(weights) X from the rows with a nonzero weight."""
    rows = np.flatnonzero(weights)
    gram = np.zeros((X.shape[1], X.shape[1]))
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        part = X[block] * np.sqrt(weights[block])[:, np.newaxis]
        gram += part.T @ part
    return gram


@dataclass(frozen=True)
class Task:
    """Public numbers of a fit, on which its noise may depend.

    `curvature` is the largest second derivative of the loss. `n_rows` is public only if
    neighbouring data sets differ in one replaced row.
    """

    learner: str
    epsilon: float
    delta: float
    curvature: float
    n_problems: int
    n_weights: int
    n_rows: int

    @property
    def epsilon_each(self) -> float:
        """Equal part of epsilon for each binary problem."""
        return self.epsilon / self.n_problems


@dataclass(frozen=True)
class Perturbation:
    """Noise of a fit, and the privacy cost of all its problems together."""

    noise: NoisyObjective
    curve: RdpCurve
    epsilon: float
    delta: float


def plan_perturbation(method: str, C: float | str, task: Task) -> Perturbation:
    """Calibrate the noise of a fit within epsilon and delta.

    `C` is 1 / lambda; it is lowered where curvature would cost more than half of
    epsilon, and to 1e6 for the solver. Raises ValueError if no noise that can be drawn
    is enough, or rounding is too large for `C` or epsilon.

    Rows have norms of at most 1, slopes of the loss lie in [-1, 0], and F is the sum of
    losses and lambda/2 |w|^2, so lambda-strongly convex. Each of `n_problems` problems
    gets an equal part of epsilon, or the same noise, and their costs add up.

    "output": replacing a row moves the minimiser of F by 2 / lambda at most. Found to a
    gradient of norm t, it moves by (2 + 2t) / lambda at most, which noise with density
    proportional to e^{-epsilon |b| lambda / (2 + 2t)} hides (Chaudhuri, Monteleoni,
    Sarwate 2011, Algorithm 1).

    "objective": F + b.w is minimised, with b of density proportional to
    e^{-epsilon' |b| / 2}, which hides that b(w) moves by 2 at most, and
    epsilon' = epsilon - ln(1 + c / lambda) (Algorithm 2, and ``curvature_cost``).

    "gaussian": the same with b of law N(0, sigma^2 I), see
    ``gaussian_objective_curve``.

    The costs of the last two hold for the exact minimiser w*. The computed v is a
    function of the data and of w*, which determines b; |v - w*| <= t / lambda, as the
    gradient at v has norm t at most and F + b.w is lambda-strongly convex. Suppose that
    w* is released first, at the cost above. Given w*, the v of neighbours are
    2t / lambda apart at most, and noise on v hides that at a small further cost:
    adaptive composition, of which the release of the noisy v alone is a
    post-processing. This is the approximate minima perturbation of Iyengar, Near, Song,
    Thakkar, Thakurta, Wang (2019).

    C="auto": b moves the minimiser by |b| / lambda at most, and costs
    |b|^2 / (2 lambda) of F at most; regularisation costs lambda/2 |w|^2. They balance
    at |b| / |w|; added to it is the lambda at which curvature costs half of epsilon.
    Noise on the output costs about lambda/2 + n c / (2 d) times its square, as the
    Hessian of the losses has a trace of n c at most. |w| is taken to be 8.
    """
    wanted = _auto_regularisation(method, task) if C == "auto" else 1 / float(C)
    if not wanted < np.inf:
        raise ValueError(
            f"C={C!r} is too small, as the regularisation 1 / C is infinite; raise C, "
            "for example to 1e-3."
        )
    perturbation = _PLANS[method](max(wanted, _LEAST_REGULARISATION), task)
    longest = (task.n_weights + _SURE) * perturbation.noise.linear_scale
    if longest * (task.n_weights + 16) * _ROUNDING > TOLERANCE:
        raise ValueError(
            f"epsilon={task.epsilon!r} needs too much noise for "
            f"{counted(task.n_weights, 'weight')} and "
            f"{counted(task.n_problems, 'problem')}: rounding would keep the solver "
            "from the minimum; raise epsilon."
        )
    return perturbation


def _auto_regularisation(method: str, task: Task) -> float:
    """Compute lambda for C="auto"."""
    d, curvature = task.n_weights, task.curvature
    if method == "gaussian":
        mu = largest_gdp_mu(task.epsilon, task.delta) / math.sqrt(task.n_problems)
        length = math.sqrt(d) / mu
    else:  # the root of the mean square of Gamma(d, 2 / epsilon)
        length = 2 * math.sqrt(d * (d + 1)) / task.epsilon_each
    balanced = length / _NORM_OF_WEIGHTS
    if method == "output":
        steep = 2 * task.n_rows * curvature / d
        return max(balanced, (steep * balanced**2) ** (1 / 3))
    return balanced + least_regularisation(task.epsilon_each, curvature)


def _plan_output(regularisation: float, task: Task) -> Perturbation:
    """Calibrate noise on the minimiser."""
    scale = largest_shift("output", regularisation) / task.epsilon_each
    return _pure(_noise("output", regularisation, 0.0, scale, task), task)


def _plan_objective(regularisation: float, task: Task) -> Perturbation:
    """Calibrate the random linear term for (epsilon, 0)."""
    epsilon_output = _SHARE_OF_OUTPUT * task.epsilon_each
    epsilon_minimiser = task.epsilon_each - epsilon_output
    regularisation = max(
        regularisation, least_regularisation(epsilon_minimiser, task.curvature)
    )
    epsilon_linear = epsilon_minimiser - curvature_cost(task.curvature, regularisation)
    scale = largest_shift("objective", regularisation) / epsilon_output
    noise = _noise("objective", regularisation, 2 / epsilon_linear, scale, task)
    return _pure(noise, task)


def _plan_gaussian(regularisation: float, task: Task) -> Perturbation:
    """Calibrate the Gaussian linear term for (epsilon, delta)."""
    regularisation = max(
        regularisation, least_regularisation(task.epsilon_each, task.curvature)
    )

    def curve_at_sigma(sigma: float, orders: NDArray[np.float64]) -> RdpCurve:
        minimiser = gaussian_objective_curve(
            sigma, regularisation, task.curvature, orders=orders
        )
        # Noise on the output, of a small part of the cost of the linear term.
        output = RdpCurve(orders, orders * _SHARE_OF_OUTPUT / (2 * sigma**2))
        return (minimiser + output) * task.n_problems

    try:
        sigma = calibrate_noise(curve_at_sigma, epsilon=task.epsilon, delta=task.delta)
    except ValueError:
        raise ValueError(
            f"epsilon={task.epsilon!r} with delta={task.delta!r} needs noise of scale "
            f"above {LARGEST_SCALE}, the largest to be drawn; raise epsilon or delta."
        ) from None
    curve = curve_at_sigma(sigma, DEFAULT_ORDERS)
    shift = largest_shift("gaussian", regularisation)
    scale = shift * sigma / math.sqrt(_SHARE_OF_OUTPUT)
    return Perturbation(
        _noise("gaussian", regularisation, sigma, scale, task),
        curve,
        epsilon=curve.quiet_epsilon(task.delta),
        delta=task.delta,
    )


def _noise(
    method: Method,
    regularisation: float,
    linear_scale: float,
    output_scale: float,
    task: Task,
) -> NoisyObjective:
    """Combine the noise with the numbers of the task."""
    return NoisyObjective(
        task.learner,
        method,
        regularisation,
        linear_scale,
        output_scale,
        task.curvature,
        task.n_problems,
    )


def _pure(noise: NoisyObjective, task: Task) -> Perturbation:
    """Return a perturbation that spends all of epsilon, and no delta."""
    return Perturbation(noise, pure_dp_curve(task.epsilon), task.epsilon, delta=0.0)


_PLANS: dict[str, Callable[[float, Task], Perturbation]] = {
    "output": _plan_output,
    "objective": _plan_objective,
    "gaussian": _plan_gaussian,
}
