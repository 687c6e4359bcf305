"""Noise of private convex training, on the objective and on its minimiser."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sklearn_pate.accounting._calibrate import check_positive
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting._value_checks import check_count
from sklearn_pate.accounting.composition._objective_perturbation import (
    curvature_cost,
    gaussian_objective_curve,
)
from sklearn_pate.accounting.plurality._closed_form import pure_dp_curve
from sklearn_pate.mechanisms._mechanism import AccountedRelease
from sklearn_pate.mechanisms.noise._continuous import gamma_vector, standard_normal
from sklearn_pate.mechanisms.noise._source import NoiseSource

__all__ = ["METHODS", "TOLERANCE", "Method", "NoisyObjective", "largest_shift"]

Method = Literal["output", "objective", "gaussian"]
METHODS: dict[Method, str] = {
    "output": "output perturbation",
    "objective": "objective perturbation",
    "gaussian": "objective perturbation with Gaussian noise",
}
#: L2 norm of the gradient of the sum of losses at which a minimiser is found.
TOLERANCE = 1e-6


def largest_shift(method: str, regularisation: float) -> float:
    """Bound the distance of the solutions found for neighbouring data sets.

    For "output" between minimisers, found up to the tolerance; for the other methods
    between two approximate minimisers of one objective, see ``plan_perturbation``.
    """
    return (2 * (method == "output") + 2 * TOLERANCE) / regularisation


class NoisyObjective(AccountedRelease):
    """Minimisers of strongly convex objectives, with noise.

    The objective has the regularisation term lambda/2 |w|^2, lambda = `regularisation`.
    `linear_scale` is the scale of the noise on its linear term (0 for none),
    `output_scale` that of the noise on the minimiser; `curvature` is the largest second
    derivative of a row's loss. Each of `n_problems` binary problems has independent
    noise. Sources and proof: ``plan_perturbation``.
    """

    released = "model"

    def __init__(
        self,
        learner: str,
        method: Method,
        regularisation: float,
        linear_scale: float,
        output_scale: float,
        curvature: float,
        n_problems: int,
        noise_seed: int | None = None,
    ) -> None:
        self.learner = learner
        self.method = method
        self.regularisation = regularisation
        self.linear_scale = linear_scale
        self.output_scale = output_scale
        self.curvature = curvature
        self.n_problems = n_problems
        self.noise_seed = noise_seed

    def draw_linear_term(
        self, noise: NoiseSource, n_weights: int
    ) -> NDArray[np.float64]:
        """Draw the b of the linear term b.w of one problem's objective."""
        if self.linear_scale == 0:
            return np.zeros(n_weights)
        return self._draw(noise, n_weights, self.linear_scale)

    def draw_output_noise(
        self, noise: NoiseSource, n_weights: int
    ) -> NDArray[np.float64]:
        """Draw the noise that is added to one problem's weights."""
        return self._draw(noise, n_weights, self.output_scale)

    def account_curve(self, n_queries: int, n_classes: int) -> RdpCurve:
        """Privacy cost of all problems together."""
        if self.n_problems != (1 if n_classes == 2 else n_classes):
            raise ValueError(
                f"n_problems={self.n_problems!r} does not match {n_classes} classes"
            )
        if self.method != "gaussian":
            return pure_dp_curve(self._pure_epsilon())
        minimiser = gaussian_objective_curve(
            self.linear_scale, self.regularisation, self.curvature
        )
        shift = largest_shift(self.method, self.regularisation) / self.output_scale
        output = RdpCurve(DEFAULT_ORDERS, DEFAULT_ORDERS * shift**2 / 2)
        return (minimiser + output) * self.n_problems

    def stated_epsilon(self, n_queries: int, n_classes: int, delta: float) -> float:
        """Stated epsilon of all problems together, pure except for Gaussian noise."""
        if self.method == "gaussian" or self.noise_seed is not None:
            return super().stated_epsilon(n_queries, n_classes, delta)
        return self.account_curve(n_queries, n_classes).pure_epsilon

    def relation(self, unit: str) -> str:
        """Return the neighbour relation, which depends on the noise."""
        if unit != "row":
            raise ValueError(
                f"unit={unit!r}; the cost of private training holds for rows only"
            )
        return "add-remove" if self.method == "gaussian" else "replace-one"

    def in_one_line(self) -> str:
        """Write the classifier, the method and the scales of the noise."""
        scales = f"C={1 / self.regularisation:.6g}"
        if self.linear_scale:
            scales += f", noise of scale {self.linear_scale:.6g} on the objective"
        text = (
            f"{self.learner} with {METHODS[self.method]} ({scales}, "
            f"{self.output_scale:.6g} on the weights)"
        )
        if self.n_problems > 1:
            text += f" for each of {self.n_problems} problems"
        return text

    def _pure_epsilon(self) -> float:
        """Add up the pure costs of both noises, over all problems."""
        shift = largest_shift(self.method, self.regularisation)
        epsilon = shift / self.output_scale
        if self.method == "objective":
            epsilon += 2 / self.linear_scale
            epsilon += curvature_cost(self.curvature, self.regularisation)
        return self.n_problems * epsilon

    def _draw(
        self, noise: NoiseSource, n_weights: int, scale: float
    ) -> NDArray[np.float64]:
        """Draw Gaussian noise, or noise whose density falls with its L2 norm."""
        if self.method == "gaussian":
            return scale * standard_normal(noise, n_weights)
        return gamma_vector(noise, n_weights, scale)

    def _check_ready(self) -> None:
        if self.method not in METHODS:
            raise ValueError(
                f"method={self.method!r} is unknown; use one of {[*METHODS]}."
            )
        for name in ("regularisation", "output_scale", "curvature"):
            check_positive(name, getattr(self, name))
        check_count("n_problems", self.n_problems)
        if self.method != "output":
            check_positive("linear_scale", self.linear_scale)
        elif self.linear_scale != 0:
            raise ValueError(
                f"linear_scale={self.linear_scale!r} must be 0 with method='output', "
                "which adds no noise to the objective."
            )
