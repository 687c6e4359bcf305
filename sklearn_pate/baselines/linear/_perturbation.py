"""Noise of private convex training, and its privacy cost."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sklearn_pate.accounting._calibrate import LARGEST_SCALE, calibrate_noise
from sklearn_pate.accounting._counted import counted
from sklearn_pate.accounting._gdp import largest_gdp_mu
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting.composition._objective_perturbation import (
    curvature_cost,
    gaussian_objective_curve,
    least_regularisation,
)
from sklearn_pate.accounting.plurality._closed_form import pure_dp_curve
from sklearn_pate.mechanisms._noisy_objective import (
    TOLERANCE,
    Method,
    NoisyObjective,
    largest_shift,
)

__all__ = ["Perturbation", "Task", "plan_perturbation"]

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
            f"C={C!r} regularises without limit; raise it, for example to 1e-3."
        )
    perturbation = _PLANS[method](max(wanted, _LEAST_REGULARISATION), task)
    longest = (task.n_weights + _SURE) * perturbation.noise.linear_scale
    if longest * (task.n_weights + 16) * _ROUNDING > TOLERANCE:
        raise ValueError(
            f"epsilon={task.epsilon!r} needs so much noise, with "
            f"{counted(task.n_weights, 'weight')} and "
            f"{counted(task.n_problems, 'problem')}, that rounding would keep the "
            "solver from the minimum; raise epsilon."
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
