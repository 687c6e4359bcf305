"""Linear classifiers by objective perturbation, with an exact solution."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit, log_expit, softmax
from scipy.stats import chi2
from sklearn.utils.validation import check_is_fitted

from sklearn_pate._aggregation._outlook import (
    why_gradients_useless,
    why_one_class,
    why_only_noise,
)
from sklearn_pate._estimators._predictions import ProbabilityScoresMixin
from sklearn_pate._inputs._containers import as_table, column_names
from sklearn_pate._inputs._features import check_numbers
from sklearn_pate._inputs._odd_values import read_numbers
from sklearn_pate.accounting._calibrate import (
    LARGEST_SCALE,
    calibrate_noise,
    check_epsilon_is_small,
    largest_gdp_mu,
)
from sklearn_pate.accounting._ledger import PrivacyLedger
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting._statement import BOUNDS, FLOATING_POINT, NORM_READ
from sklearn_pate.accounting._value_checks import Constraint, check_positive, counted
from sklearn_pate.accounting.composition import (
    curvature_cost,
    gaussian_objective_curve,
    least_regularisation,
)
from sklearn_pate.accounting.plurality._closed_form import pure_dp_curve
from sklearn_pate.exceptions import PrivacyLeakWarning, PrivacyUtilityWarning, warn_user
from sklearn_pate.learners._noisy_learner import NoisyTraining, Rows, TrainingPlan
from sklearn_pate.mechanisms._noise import NoiseSource, on_lattice
from sklearn_pate.mechanisms._noisy_training import (
    METHODS,
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
# Fitted attributes that predictions depend on.
_PREDICTS_BY = ("coef_", "intercept_", "_bounds")
_RANDOM_ROWS = 1000
# Weights are told from noise if scores vary this many times as much as noise alone
# makes them, with this probability. Measured on tables, also with permuted labels.
_TOLD, _CHANCE = 1.3, 0.05
_SMALLEST_HUBER = 1e-9  # below, rounding makes it a kink
# With noise that has no delta: features for each root of a row and of epsilon, and
# their largest number. Measured on tables.
_FEATURES, _MOST_FEATURES = 0.25, 500


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


@dataclass(frozen=True)
class LinearPlan:
    """Noise and bounds of a training."""

    noise: NoisyObjective
    bounds: Bounds
    #: Description of noise that hides the weights; None if not, or if n is secret.
    why_useless: str | None


class PrivateLinearClassifier(NoisyTraining[LinearPlan]):
    """Base class of linear classifiers that are noisy minimisers of a convex loss.

    A subclass has the parameters of
    :class:`~sklearn_pate.learners.DPLogisticRegression`, and provides `_loss`.
    """

    #: Missing and infinite values are replaced, not refused.
    _reads_any_value = True

    method: Literal["output", "objective", "gaussian"]
    C: float | Literal["auto"]
    epsilon: float
    data_norm: float | None
    feature_bounds: tuple[ArrayLike, ArrayLike] | None
    fit_intercept: bool
    intercept_scaling: float

    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    data_norm_: float
    _bounds: Bounds

    _constraints: ClassVar[dict[str, Constraint]] = {
        "method": Constraint.option(METHODS),
        "C": Constraint.positive(also=("auto",)),
        "epsilon": Constraint(check_epsilon_is_small),
        "data_norm": Constraint.positive(also=(None,)),
        "fit_intercept": Constraint.boolean(),
        "intercept_scaling": Constraint.positive(),
    }

    @abstractmethod
    def _loss(self) -> MarginLoss:
        """Return the loss of a row."""

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score classes.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows, which are clipped and scaled to the bounds as in `fit`.

        Returns
        -------
        scores : ndarray of shape (n_rows, n_classes), or (n_rows,) with two classes
            One column per class in ``classes_``; with two classes, the score of the
            second class. For rows within the bounds, the scores are ``X @ coef_.T +
            intercept_``.
        """
        check_is_fitted(self, "coef_")
        scores = self._bounds.scores(self._features(X), self.coef_, self.intercept_)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows, which are clipped and scaled to the bounds as in `fit`.

        Returns
        -------
        y : ndarray of shape (n_rows,)
            Labels from ``classes_``.
        """
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def _check_features(self, X: Any, *, reset: bool) -> NDArray[np.floating]:
        return check_numbers(self, X, reset=reset, dtype=np.float64)

    def _bounds_of(self, n_features: int, data_norm: float) -> Bounds:
        """Combine the parameters that bound rows."""
        low, width = read_feature_bounds(self.feature_bounds, n_features)
        bounds = Bounds(
            low=low,
            width=width,
            clips=self.feature_bounds is not None,
            norm=data_norm,
            constant=float(self.intercept_scaling) if self.fit_intercept else 0.0,
        )
        if not bounds.can_be_undone():
            raise ValueError(
                f"feature_bounds={self.feature_bounds!r} and data_norm={data_norm!r} "
                "are so small that weights overflow; scale the features."
            )
        return bounds

    def _plan_training(self, rows: Rows) -> TrainingPlan[LinearPlan]:
        n_rows, n_features = rows.X.shape
        n_classes = len(rows.classes)
        bounds = self._bounds_of(n_features, self._norm(rows))
        _check_memory(n_features)
        task = Task(
            learner=type(self).__name__,
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            curvature=self._loss().curvature,
            n_problems=1 if n_classes == 2 else n_classes,
            n_weights=n_features + int(self.fit_intercept),
            n_rows=n_rows,
        )
        perturbation = plan_perturbation(self.method, self.C, task)
        epsilon, bounded = perturbation.epsilon, BOUNDS
        if self._reads_norm():
            epsilon, bounded = np.inf, NORM_READ
        mechanism = perturbation.noise
        spent = self._state(
            mechanism,
            n_classes=n_classes,
            curve=perturbation.curve,
            epsilon=epsilon,
            delta=perturbation.delta,
            assumptions=(*rows.assumptions, bounded, FLOATING_POINT),
        )
        why = None
        if mechanism.method == "objective":
            # Of one weight, as the noise has a length of about n_weights in total.
            scale = mechanism.linear_scale * math.sqrt(task.n_weights + 1)
            why = why_gradients_useless(
                mechanism, scale, n_units=n_rows, n_classes=n_classes
            )
        warn_user(why, PrivacyUtilityWarning)
        plan = LinearPlan(mechanism, bounds, why)
        return TrainingPlan(rows, spent, mechanism, plan)

    def _problems_of_values(self, X: Any) -> Iterator[str]:
        if self.representation is not None or sp.issparse(X):
            return
        X = as_table(X)
        numbers = read_numbers(X, refuse=False)
        if self.feature_bounds is not None:
            low, width = read_feature_bounds(self.feature_bounds, X.shape[1])
            n_outside = np.sum((numbers < low) | (numbers > low + width), axis=0)
            names = column_names(X) or range(X.shape[1])
            for name, n in zip(names, n_outside.tolist(), strict=True):
                if n:
                    yield f"Column {name!r}: {counted(n, 'value')} outside its bounds."
        elif self.data_norm is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                n_long = np.sum(np.linalg.norm(numbers, axis=1) > self.data_norm)
            if n_long:
                yield f"{counted(int(n_long), 'row')} longer than data_norm."

    def _spends_delta(self) -> bool:
        return self.method == "gaussian"

    def _reads_norm(self) -> bool:
        """Check for a bound that is read from private rows."""
        bounds = self.data_norm, self.feature_bounds, self.representation
        return all(one is None for one in bounds)

    def _n_components(self, rows: Rows) -> int | Literal["auto"]:
        if self.method == "gaussian":
            return "auto"
        # The noise is proportional to the number of features.
        n_rows, n_classes = len(rows.codes), len(rows.classes)
        n_problems = 1 if n_classes == 2 else n_classes
        allowed = _FEATURES * math.sqrt(n_rows * self.epsilon / n_problems)
        return int(np.clip(allowed, 1, _MOST_FEATURES))

    def _norm(self, rows: Rows) -> float:
        """Return the bound of the rows' norm, read from the rows if none is known."""
        if self.data_norm is not None:
            return float(self.data_norm)
        if self.feature_bounds is not None:
            return math.sqrt(rows.X.shape[1])
        if rows.public is not None:
            return float(np.sqrt(np.mean(np.sum(rows.public**2, axis=1)))) or 1.0
        warn_user(
            "Without data_norm or feature_bounds, the longest private row determines "
            "the noise, and nothing is private. Pass bounds that are known without "
            "reading X.",
            PrivacyLeakWarning,
        )
        with np.errstate(over="ignore"):
            norms = np.linalg.norm(rows.X, axis=1)
        return float(norms[np.isfinite(norms)].max(initial=0.0)) or 1.0

    def _train(self, rows: Rows, settings: LinearPlan, noise: NoiseSource) -> None:
        # A row with an unknown label has no loss.
        is_known = rows.codes >= 0
        X, codes = settings.bounds.rows(rows.X[is_known]), rows.codes[is_known]
        perturbation = settings.noise
        weights = np.empty((perturbation.n_problems, X.shape[1]))
        for problem in range(perturbation.n_problems):
            positive = 1 if perturbation.n_problems == 1 else problem
            minimiser = minimise(
                X,
                np.where(codes == positive, 1.0, -1.0),
                self._loss(),
                regularisation=perturbation.regularisation,
                linear_term=perturbation.draw_linear_term(noise, X.shape[1]),
                tolerance=TOLERANCE,
            )
            output_noise = perturbation.draw_output_noise(noise, X.shape[1])
            weights[problem] = on_lattice(
                minimiser + output_noise, perturbation.output_scale
            )
        self.coef_, self.intercept_ = settings.bounds.to_features(weights)
        self.data_norm_ = settings.bounds.norm
        self._bounds = settings.bounds
        self.C_ = 1 / perturbation.regularisation
        self._warn_if_useless(rows, weights, settings)

    def _warn_if_useless(
        self, rows: Rows, weights: NDArray[np.float64], plan: LinearPlan
    ) -> None:
        """Warn of a model of one class or of noise, by its released weights.

        For public rows, for random rows within the bounds, or where the ball of
        `data_norm` ends in the directions of the weights. These ends show no noise.
        """
        n_features, n_classes = self.coef_.shape[1], len(rows.classes)
        if n_classes < 2:
            return
        if rows.public is not None:
            X, kind = rows.public, "public row"
        elif self._bounds.clips:
            scales = np.random.RandomState(0).uniform(size=(_RANDOM_ROWS, n_features))
            X, kind = self._bounds.low + self._bounds.width * scales, "random row"
        else:
            lengths = np.linalg.norm(self.coef_, axis=1, keepdims=True)
            ends = self._bounds.norm * self.coef_ / np.maximum(lengths, 1e-300)
            X, kind = np.vstack([ends, -ends]), "longest possible row"
        scores = self._bounds.scores(X, self.coef_, self.intercept_)
        codes = scores.argmax(axis=1) if n_classes > 2 else scores[:, 0] > 0
        why = why_one_class(codes, kind)
        are_like_rows = rows.public is not None or self._bounds.clips
        # The number of rows is public where neighbours replace a row.
        replaces = plan.noise.relation("row") == "replace-one"
        if why is None and plan.why_useless is None and replaces and are_like_rows:
            X = self._bounds.rows(X)
            if self._is_noise(X, weights, plan.noise, len(rows.X)):
                why = why_only_noise("weights")
        warn_user(why, PrivacyUtilityWarning)

    def _is_noise(
        self,
        X: NDArray[np.float64],
        weights: NDArray[np.float64],
        noise: NoisyObjective,
        n_rows: int,
    ) -> bool:
        """Check whether scores of rows vary hardly more than by noise alone.

        With the curvature of as many private rows like these. If noise alone gives
        scores a variance of N, it adds about N / 8 to their log-loss.
        """
        size, centred = X.shape[1], X - X.mean(axis=0)
        found = expected = 0.0
        for one in weights:
            scores = X @ one
            found += scores.var()
            effects = noise.output_scale * centred
            if noise.linear_scale:
                curvatures = [
                    self._loss().derivatives(sign * scores)[1] for sign in (1, -1)
                ]
                hessian = X.T * np.mean(curvatures, axis=0) @ X * (n_rows / len(X))
                hessian += noise.regularisation * np.eye(size)
                effects = noise.linear_scale * np.linalg.solve(hessian, centred.T)
            # Each weight has a noise of variance (size + 1) times the squared scale.
            expected += (size + 1) * float(np.sum(effects**2)) / len(X)
        # Few noisy weights may be larger than most.
        by_chance = chi2.isf(_CHANCE, weights.size) / weights.size
        return bool(found < _TOLD * by_chance * expected)

    def _predictor(self) -> Self:
        # Only what predictions need: no parameter of this fit, and no other data.
        model = type(self)()
        for name in _PREDICTS_BY:
            setattr(model, name, deepcopy(getattr(self, name)))
        model.classes_ = np.arange(len(self.classes_))
        return model


def _check_memory(n_features: int) -> None:
    """Raise unless there is memory for the solver, before the cost is charged."""
    try:
        np.empty((n_features, n_features))
    except MemoryError:
        gigabytes = 8 * n_features**2 / 2**30
        raise ValueError(
            f"X has {n_features} features, for which the solver needs {gigabytes:.0f} "
            "GiB of memory; use fewer features, by random features (RBFSampler) or a "
            "projection fitted on public rows."
        ) from None


class DPLogisticRegression(PrivateLinearClassifier, ProbabilityScoresMixin):
    """Logistic regression trained with differential privacy.

    The weights minimise the regularised logistic loss of the private rows, with noise
    on the weights or on the objective. The weights may be published, with
    ``privacy_spent_`` as privacy statement.

    Parameters
    ----------
    method : {"objective", "output", "gaussian"}, default="objective"
        "objective" adds a random linear term to the objective. "output" adds noise to
        the weights, and needs more noise than "objective" at equal epsilon. "gaussian"
        adds a Gaussian linear term, and needs much less noise for many features; see
        Notes for the guarantees.

    C : float or "auto", default="auto"
        Inverse of the regularisation strength, as in
        :class:`~sklearn.linear_model.LogisticRegression`, for rows scaled to norms of
        at most 1. "auto" depends on `epsilon`, `delta` and the shape of the data, not
        on values; see Notes. A C that is too large for the guarantee is lowered to
        ``C_``. Choosing C by scores on private rows voids the privacy statement.

    epsilon : float, default=1.0
        Publishable epsilon of this fit. A smaller epsilon needs more noise.

    delta : float, default=1e-5
        Delta of the (epsilon, delta) guarantee, only for ``method="gaussian"``. Must be
        well below one over the number of rows.

    data_norm : float, default=None
        Public bound on the L2 norm of a row, after `feature_bounds` are applied. Longer
        rows are scaled down to this norm. With `feature_bounds`, None is the square
        root of the number of features. If `data_norm`, `feature_bounds` and
        `representation` are all None, the bound is read from X, and **nothing is
        private**: ``privacy_spent_.epsilon`` is infinite.

    feature_bounds : tuple (low, high), default=None
        Public bounds of the features: two numbers, or two array-likes of shape
        (n_features,). Features are clipped to the bounds and scaled to [0, 1]. Bounds
        that were read from private data void the privacy statement.

    fit_intercept : bool, default=True
        Whether to fit an intercept, which is regularised. A constant column stands for
        the intercept and counts in the norm of a row. Use False for one-hot encoded
        rows.

    intercept_scaling : float, default=1.0
        Value of the constant column for the intercept, in the unit of the features. A
        larger value regularises the intercept less, and makes the features smaller
        relative to the noise.

    representation : transformer or "auto", default=None
        Transformer that computes the features of each row. Fitted on `X_public` of
        `fit` only, at no privacy cost. "auto" is ``TableRepresentation(basis="rbf")``,
        or an :class:`~sklearn_pate.students.ImageRepresentation` for images.

    classes : array-like of shape (n_classes,), default=None
        All labels that may occur. With None, the labels are read from y; the privacy
        statement then assumes that the set of labels is public. A row with another
        label is not used in training.

    ledger : PrivacyLedger, default=None
        Privacy budget of the private data over all fits, see
        :class:`~sklearn_pate.PATEClassifier`. As a ledger has one neighbour relation,
        "gaussian" cannot share a ledger with other methods.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights for features that are not scaled, after `representation`. May be
        published.

    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts. Even with ``fit_intercept=False``, intercepts are not zero if
        `feature_bounds` shift features. May be published.

    classes_ : ndarray of shape (n_classes,)
        Class labels.

    privacy_spent_ : PrivacySpent
        The privacy statement: ``epsilon, delta = clf.privacy_spent_``. May be
        published.

    C_ : float
        Value of C used in training. Does not depend on private values.

    data_norm_ : float
        Bound on the norm of a row used in training.

    mechanism_ : NoisyObjective
        The noisy training, with all parameters set. May be published.

    representation_ : transformer
        The transformer, fitted on public rows; absent without one. May be published.

    data_problems_ : tuple of str
        **Sensitive**: what `check_data` finds in the private rows of this fit. A
        pickled or copied estimator lacks this attribute.

    n_features_in_ : int
        Number of columns of X.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X is a dataframe with string column names.

    Notes
    -----
    The methods "objective" and "output" are (epsilon, 0)-differentially private for
    neighbours that replace a row (Chaudhuri, Monteleoni, Sarwate 2011, "Differentially
    private empirical risk minimization"). The method "gaussian" is (epsilon,
    delta)-differentially private for neighbours that add or remove a row (Redberg,
    Koskela, Wang 2023). This guarantee does not depend on the number of rows. Iyengar
    et al. (2019) cover minimisers that are not exact. The proofs require a convex loss
    with slopes in [-1, 0] and second derivatives of at most c, here 1/4. A row with the
    constant column must have a norm of at most 1. The proofs are in the source of
    ``plan_perturbation`` and ``gaussian_objective_curve``.

    With more than two classes, one binary problem separates each class from all other
    classes. Each binary problem gets an equal part of epsilon. With "gaussian", the
    privacy costs of the binary problems add up as Renyi curves.

    Rows to predict are clipped and scaled as in training. For rows within the bounds,
    ``coef_`` and ``intercept_`` determine the scores. With a `representation`,
    ``data_norm=None`` is the root mean squared norm of the public rows after
    `representation`. With an intercept, rows are divided by the norm of (`data_norm`,
    constant).

    In training and in prediction, a missing value, or text among numbers, counts as the
    middle of the bounds of the feature. An infinite value counts as the bound. Without
    `feature_bounds`, a missing value counts as 0, and all values of a row with an
    infinite value count as 0. Such values thus cause no error, and the privacy
    statement still holds. To choose other values, impute before `fit` with numbers that
    do not depend on private data.

    The number of iterations has no limit, as the proofs do not cover a fit that stops
    early, and depends on private rows.

    ``C="auto"`` is 1 / lambda with lambda = b / 8 + c / (e^{epsilon/2} - 1), for the
    epsilon of one binary problem. With d weights, b = 2 (d (d + 1))^{1/2} / epsilon is
    about the length of the random linear term. For "gaussian", b is d^{1/2} / mu,
    where k binary problems, each mu-Gaussian differentially private, together satisfy
    epsilon and delta. For "output", lambda is max(b / 8, (2 n c b^2 / (64 d))^{1/3})
    with n rows.

    ``representation="auto"`` has up to 500 components for "gaussian". The noise of the
    other methods is proportional to the number of components, so the number is (n
    epsilon / k)^{1/2} / 4, from 1 to 500, with n rows and k binary problems.

    For a kernel machine without public rows, use a Pipeline of ``RBFSampler(gamma=1)``
    and ``DPLogisticRegression(data_norm=math.sqrt(2))``. A fit of
    :class:`~sklearn.kernel_approximation.RBFSampler` uses only the number of features,
    and the transformed rows have a norm of at most sqrt(2).

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_pate.learners import DPLogisticRegression
    >>> X, y = make_classification(6000, 10, random_state=0)
    >>> clf = DPLogisticRegression(data_norm=4).fit(X[:5000], y[:5000])
    >>> clf.privacy_spent_
    PrivacySpent(epsilon=1.000, delta=0.0)
    >>> bool(clf.score(X[5000:], y[5000:]) > 0.7)
    True
    """

    __module__ = "sklearn_pate.learners"  # its name in files

    def __init__(
        self,
        *,
        method: Literal["output", "objective", "gaussian"] = "objective",
        C: float | Literal["auto"] = "auto",
        epsilon: float = 1.0,
        delta: float = 1e-5,
        data_norm: float | None = None,
        feature_bounds: tuple[ArrayLike, ArrayLike] | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        representation: Any = None,
        classes: ArrayLike | None = None,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.method = method
        self.C = C
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.feature_bounds = feature_bounds
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.representation = representation
        self.classes = classes
        self.ledger = ledger

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows, which are clipped and scaled to the bounds as in `fit`.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            One column per class in ``classes_``. With more than two classes,
            one-vs-rest probabilities are scaled to a sum of 1.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return softmax(log_expit(scores), axis=1)

    def _loss(self) -> LogisticLoss:
        return LogisticLoss()


class DPLinearSVC(PrivateLinearClassifier):
    """Linear support vector machine trained with differential privacy.

    The weights minimise the regularised, smoothed hinge loss of the private rows, with
    noise on the weights or on the objective. With much noise, this learner is more
    accurate than logistic regression, as the hinge loss is twice as steep at small
    weights. The weights may be published, with ``privacy_spent_`` as privacy statement.

    Parameters
    ----------
    method : {"objective", "output", "gaussian"}, default="objective"
        Where noise is added, which determines the neighbour relation and the delta of
        the privacy statement. See :class:`DPLogisticRegression`.

    C : float or "auto", default="auto"
        Inverse of the regularisation strength. "auto" does not depend on private
        values. See :class:`DPLogisticRegression`.

    epsilon : float, default=1.0
        Publishable epsilon of this fit. A smaller epsilon needs more noise.

    delta : float, default=1e-5
        Delta of the (epsilon, delta) guarantee, only for ``method="gaussian"``. Must be
        well below one over the number of rows.

    data_norm : float, default=None
        Public bound on the L2 norm of a row, as for :class:`DPLogisticRegression`.
        Longer rows are scaled down to this norm. If `data_norm`, `feature_bounds` and
        `representation` are all None, the bound is read from X, and **nothing is
        private**.

    feature_bounds : tuple (low, high), default=None
        Public bounds of the features. Features are clipped to the bounds and scaled to
        [0, 1]. See :class:`DPLogisticRegression`.

    fit_intercept : bool, default=True
        Whether to fit an intercept. A constant column stands for the intercept and
        counts in the norm of a row.

    intercept_scaling : float, default=1.0
        Value of the constant column for the intercept, in the unit of the features. See
        :class:`DPLogisticRegression`.

    huber : float, default=0.5
        Half-width h of the quadratic piece of the loss, (1 + h - z)^2 / (4 h) for
        margins z within h of 1. A larger h needs less regularisation at equal epsilon,
        as the largest second derivative 1 / (2 h) is smaller.

    representation : transformer or "auto", default=None
        Transformer that computes the features of each row, as for
        :class:`DPLogisticRegression`. Fitted on `X_public` of `fit` only.

    classes : array-like of shape (n_classes,), default=None
        All labels that may occur. With None, the labels are read from y; the privacy
        statement then assumes that the set of labels is public. A row with another
        label is not used in training.

    ledger : PrivacyLedger, default=None
        Privacy budget of the private data over all fits, see
        :class:`DPLogisticRegression`.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights for features that are not scaled, after `representation`. May be
        published.

    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts. Even with ``fit_intercept=False``, intercepts are not zero if
        `feature_bounds` shift features. May be published.

    classes_ : ndarray of shape (n_classes,)
        Class labels.

    privacy_spent_ : PrivacySpent
        The privacy statement: ``epsilon, delta = clf.privacy_spent_``. May be
        published.

    C_ : float
        Value of C used in training. Does not depend on private values.

    data_norm_ : float
        Bound on the norm of a row used in training.

    mechanism_ : NoisyObjective
        The noisy training, with all parameters set. May be published.

    representation_ : transformer
        The transformer, fitted on public rows; absent without one. May be published.

    data_problems_ : tuple of str
        **Sensitive**: what `check_data` finds in the private rows of this fit. A
        pickled or copied estimator lacks this attribute.

    n_features_in_ : int
        Number of columns of X.

    feature_names_in_ : ndarray of str of shape (`n_features_in_`,)
        Names of the features, if X is a dataframe with string column names.

    Notes
    -----
    The notes of :class:`DPLogisticRegression` apply, with the bound c = 1 / (2 h) on
    second derivatives. The loss is the Huber hinge of Chaudhuri, Monteleoni, Sarwate
    (2011, Section 3.4).

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_pate.learners import DPLinearSVC
    >>> X, y = make_classification(6000, 10, random_state=0)
    >>> clf = DPLinearSVC(method="gaussian", data_norm=4).fit(X[:5000], y[:5000])
    >>> clf.privacy_spent_
    PrivacySpent(epsilon=1.000, delta=1e-05)
    >>> bool(clf.score(X[5000:], y[5000:]) > 0.7)
    True
    """

    __module__ = "sklearn_pate.learners"  # its name in files

    def __init__(
        self,
        *,
        method: Literal["output", "objective", "gaussian"] = "objective",
        C: float | Literal["auto"] = "auto",
        epsilon: float = 1.0,
        delta: float = 1e-5,
        data_norm: float | None = None,
        feature_bounds: tuple[ArrayLike, ArrayLike] | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        huber: float = 0.5,
        representation: Any = None,
        classes: ArrayLike | None = None,
        ledger: PrivacyLedger | None = None,
    ) -> None:
        self.method = method
        self.C = C
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.feature_bounds = feature_bounds
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.huber = huber
        self.representation = representation
        self.classes = classes
        self.ledger = ledger

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("huber", self.huber)
        if self.huber < _SMALLEST_HUBER:
            raise ValueError(
                f"huber={self.huber!r} must be at least {_SMALLEST_HUBER}, such as 0.5."
            )

    def _loss(self) -> HuberHinge:
        return HuberHinge(float(self.huber))
