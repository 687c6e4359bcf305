"""The noise of private convex training: where it goes, and what it costs."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sklearn_pate.accounting._calibrate import LARGEST_SCALE, calibrate_noise
from sklearn_pate.accounting._gdp import largest_gdp_mu
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting.composition._objective_perturbation import (
    curvature_price,
    gaussian_objective_curve,
    least_regularisation,
)
from sklearn_pate.accounting.plurality._closed_form import pure_dp_curve
from sklearn_pate.mechanisms.noise._continuous import gamma_vector, standard_normal
from sklearn_pate.mechanisms.noise._source import NoiseSource

__all__ = ["METHODS", "TOLERANCE", "Perturbation", "Task", "plan_perturbation"]

METHODS = ("output", "objective", "gaussian")
#: L2 norm of the gradient of the sum of losses at which a minimiser is found.
TOLERANCE = 1e-6
# How much of the privacy hides that the minimiser is found to a tolerance only.
_SHARE_OF_OUTPUT = 1e-3
# "auto": about the L2 norm that weights need. From 6 to 12, mean accuracy with noise on
# the objective changes by less than half a point on artificial data, where this was
# chosen (make_classification: 3,000 and 25,000 rows, plain and one-hot, balanced and
# three to one, epsilon from 0.1 to 1); noise on the output would do with less.
_NORM_OF_WEIGHTS = 8.0
# Less is none, and Newton's method would depend on how columns are rounded.
_LEAST_REGULARISATION = 1e-6
# Rounding of the linear term, over its length and the number of weights (and 16):
# twice what the solver allows for.
_ROUNDING = 2.0**-51
_SURE = 40  # a Gamma draw beyond its shape plus this has a chance below 1e-15


@dataclass(frozen=True)
class Task:
    """What is known in public before a fit.

    Parameters
    ----------
    epsilon, delta : float
        What may be spent; `delta` on Gaussian noise only.

    curvature : float
        Largest second derivative of a row's loss.

    n_problems : int
        Number of binary problems that the rows are used for.

    n_weights : int
        Number of weights of each.

    n_rows : int
        Number of rows, of which only neighbours that replace a row may know.
    """

    epsilon: float
    delta: float
    curvature: float
    n_problems: int
    n_weights: int
    n_rows: int

    @property
    def epsilon_each(self) -> float:
        """An equal part of epsilon for each problem.

        Returns
        -------
        epsilon : float
            Positive.
        """
        return self.epsilon / self.n_problems


@dataclass(frozen=True)
class Perturbation:
    """Noise of a fit, settled before any is drawn.

    Parameters
    ----------
    method : {"output", "objective", "gaussian"}
        How noise is added.

    regularisation : float
        The lambda of lambda/2 |w|^2.

    linear_scale : float
        Scale of the linear term of the objective; 0 for none.

    output_scale : float
        Scale of the noise on the minimiser.

    curve : RdpCurve
        Price of all problems together.

    epsilon, delta : float
        The same as a guarantee.

    relation : {"replace-one", "add-remove"}
        Against which change of a row.
    """

    method: str
    regularisation: float
    linear_scale: float
    output_scale: float
    curve: RdpCurve
    epsilon: float
    delta: float
    relation: str

    def draw_linear_term(
        self, noise: NoiseSource, n_weights: int
    ) -> NDArray[np.float64]:
        """Draw the linear term of one problem's objective.

        Parameters
        ----------
        noise : NoiseSource
            Where the random bits come from.

        n_weights : int
            Number of weights.

        Returns
        -------
        linear_term : ndarray of shape (n_weights,)
            The b of b.w.
        """
        if self.linear_scale == 0:
            return np.zeros(n_weights)
        return self._draw(noise, n_weights, self.linear_scale)

    def draw_output_noise(
        self, noise: NoiseSource, n_weights: int
    ) -> NDArray[np.float64]:
        """Draw the noise on one problem's minimiser.

        Parameters
        ----------
        noise : NoiseSource
            Where the random bits come from.

        n_weights : int
            Number of weights.

        Returns
        -------
        output_noise : ndarray of shape (n_weights,)
            To be added to the weights.
        """
        return self._draw(noise, n_weights, self.output_scale)

    def _draw(self, noise, n_weights, scale):
        if self.method == "gaussian":
            return scale * standard_normal(noise, n_weights)
        return gamma_vector(noise, n_weights, scale)

    def __str__(self):
        where = {
            "output": "output perturbation",
            "objective": "objective perturbation",
            "gaussian": "objective perturbation with Gaussian noise",
        }[self.method]
        scales = f"C={1 / self.regularisation:.6g}"
        if self.linear_scale:
            scales += f", noise of scale {self.linear_scale:.6g} on the objective"
        return f"{where} ({scales}, {self.output_scale:.6g} on the weights)"


def plan_perturbation(method: str, C: float | str, task: Task) -> Perturbation:
    """Settle the noise of a fit.

    Parameters
    ----------
    method : {"output", "objective", "gaussian"}
        How noise is added.

    C : float or "auto"
        1 / lambda. It is lowered where curvature would cost more than half of epsilon,
        and to 1e6 for the solver's sake.

    task : Task
        What is known in public.

    Returns
    -------
    perturbation : Perturbation
        Within epsilon and delta.

    Raises
    ------
    ValueError
        If no noise of a size that can be drawn is enough, or `C` or epsilon is so small
        that rounding is in the way.

    Notes
    -----
    Rows have norms of at most 1, slopes of the loss lie in [-1, 0], and F is the sum of
    losses and lambda/2 |w|^2, so lambda-strongly convex. Each of `n_problems` problems
    gets an equal part of epsilon, or the same noise, and their prices add up.

    "output": replacing a row moves the minimiser of F by 2 / lambda at most. Found to a
    gradient of norm t, it moves by (2 + 2t) / lambda at most, which noise with density
    proportional to e^{-epsilon |b| lambda / (2 + 2t)} hides (Chaudhuri, Monteleoni,
    Sarwate 2011, Algorithm 1).

    "objective": F + b.w is minimised, with b of density proportional to
    e^{-epsilon' |b| / 2}, which hides that b(w) moves by 2 at most, and
    epsilon' = epsilon - ln(1 + c / lambda) (Algorithm 2, and
    ``curvature_price``).

    "gaussian": the same with b of law N(0, sigma^2 I), see
    ``gaussian_objective_curve``.

    These two are about the exact minimiser w*. What is found, v, is a function of the
    data and of w*, which determines b; |v - w*| <= t / lambda, as the gradient at v has
    norm t at most and F + b.w is lambda-strongly convex. Think of w* as released first,
    at the price above. Given w*, the v of neighbours are 2t / lambda apart at most, and
    noise on v hides that at a small further price: adaptive composition, of which the
    release of the noisy v alone is a post-processing. This is the approximate minima
    perturbation of Iyengar, Near, Song, Thakkar, Thakurta, Wang (2019).

    "auto": b moves the minimiser by |b| / lambda at most, and costs |b|^2 / (2 lambda)
    of F at most; regularisation costs lambda/2 |w|^2. They balance at |b| / |w|, to
    which the lambda is added of which curvature costs half of epsilon. Noise on the
    output costs lambda/2 + n c / (2 d) times its square, about, as the Hessian of the
    losses has a trace of n c at most. |w| is taken to be 8.
    """
    wanted = _auto_regularisation(method, task) if C == "auto" else 1 / float(C)
    if not wanted < np.inf:
        raise ValueError(f"C={C!r} regularises without limit; raise it, to 1e-3, say.")
    perturbation = _PLANS[method](max(wanted, _LEAST_REGULARISATION), task)
    longest = (task.n_weights + _SURE) * perturbation.linear_scale
    if longest * (task.n_weights + 16) * _ROUNDING > TOLERANCE:
        raise ValueError(
            f"epsilon={task.epsilon!r} takes so much noise, with {task.n_weights} "
            f"weights and {task.n_problems} problems, that rounding would keep the "
            "solver from the minimum; raise epsilon."
        )
    return perturbation


def _auto_regularisation(method, task):
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


def _plan_output(regularisation, task):
    sensitivity = (2 + 2 * TOLERANCE) / regularisation
    return Perturbation(
        method="output",
        regularisation=regularisation,
        linear_scale=0.0,
        output_scale=sensitivity / task.epsilon_each,
        curve=pure_dp_curve(task.epsilon),
        epsilon=task.epsilon,
        delta=0.0,
        relation="replace-one",
    )


def _plan_objective(regularisation, task):
    epsilon_output = _SHARE_OF_OUTPUT * task.epsilon_each
    epsilon_minimiser = task.epsilon_each - epsilon_output
    regularisation = max(
        regularisation, least_regularisation(epsilon_minimiser, task.curvature)
    )
    epsilon_linear = epsilon_minimiser - curvature_price(task.curvature, regularisation)
    return replace(
        _plan_output(regularisation, task),
        method="objective",
        linear_scale=2 / epsilon_linear,
        output_scale=_shift(regularisation) / epsilon_output,
    )


def _plan_gaussian(regularisation, task):
    regularisation = max(
        regularisation, least_regularisation(task.epsilon_each, task.curvature)
    )

    def curve_at_sigma(sigma, orders):
        minimiser = gaussian_objective_curve(
            sigma, regularisation, task.curvature, orders=orders
        )
        # That of noise whose shift is a small part of the linear term's.
        output = RdpCurve(orders, orders * _SHARE_OF_OUTPUT / (2 * sigma**2))
        return (minimiser + output) * task.n_problems

    sigma = _calibrate(curve_at_sigma, task)
    curve = curve_at_sigma(sigma, DEFAULT_ORDERS)
    return Perturbation(
        method="gaussian",
        regularisation=regularisation,
        linear_scale=sigma,
        output_scale=_shift(regularisation) * sigma / math.sqrt(_SHARE_OF_OUTPUT),
        curve=curve,
        epsilon=curve.quiet_epsilon(task.delta),
        delta=task.delta,
        relation="add-remove",
    )


def _calibrate(curve_at_sigma, task):
    try:
        return calibrate_noise(curve_at_sigma, epsilon=task.epsilon, delta=task.delta)
    except ValueError:
        raise ValueError(
            f"epsilon={task.epsilon!r} with delta={task.delta!r} takes noise beyond "
            f"{LARGEST_SCALE}, which leaves nothing to learn; raise epsilon or delta."
        ) from None


def _shift(regularisation):
    """Bound the distance of two minimisers that are found to the tolerance."""
    return 2 * TOLERANCE / regularisation


_PLANS: dict[str, Callable[[float, Task], Perturbation]] = {
    "output": _plan_output,
    "objective": _plan_objective,
    "gaussian": _plan_gaussian,
}
