"""Noisy steps of DP-SGD."""

from typing import Literal

from sklearn_pate.accounting._calibrate import check_positive
from sklearn_pate.accounting._profile import PrivacyProfile
from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting._value_checks import check_count
from sklearn_pate.accounting.composition._dpsgd import dpsgd_cost, dpsgd_profile
from sklearn_pate.accounting.composition._poisson_sampling import sampled_gaussian_curve
from sklearn_pate.mechanisms._mechanism import AccountedRelease

__all__ = ["DPSGDSteps"]


class DPSGDSteps(AccountedRelease):
    """Steps along noisy sums of clipped gradients, each over a Poisson sample.

    `noise_multiplier` is the standard deviation of the noise on a sum of gradients in
    units of `max_grad_norm`, the bound on the L2 norm of a row's gradient. Noisy sums
    are divided by `expected_batch_size`. `accountant` composes the steps, see
    ``dpsgd_cost``.
    """

    released = "model"

    def __init__(
        self,
        noise_multiplier: float,
        sampling_rate: float,
        n_steps: int,
        max_grad_norm: float,
        expected_batch_size: float,
        accountant: Literal["pld", "rdp"] = "pld",
        noise_seed: int | None = None,
    ) -> None:
        self.noise_multiplier = noise_multiplier
        self.sampling_rate = sampling_rate
        self.n_steps = n_steps
        self.max_grad_norm = max_grad_norm
        self.expected_batch_size = expected_batch_size
        self.accountant = accountant
        self.noise_seed = noise_seed

    def account_curve(self, n_queries: int, n_classes: int) -> RdpCurve:
        """Privacy cost of all steps together."""
        of_step = sampled_gaussian_curve(self.noise_multiplier, self.sampling_rate)
        return of_step * self.n_steps

    def stated_epsilon(self, n_queries: int, n_classes: int, delta: float) -> float:
        """Stated epsilon of all steps together, by the `accountant`."""
        if self.noise_seed is not None:
            return super().stated_epsilon(n_queries, n_classes, delta)
        epsilon, _ = dpsgd_cost(
            self.noise_multiplier,
            self.sampling_rate,
            self.n_steps,
            delta=delta,
            accountant=self.accountant,
        )
        return epsilon

    def stated_profile(self, n_queries: int, n_classes: int) -> PrivacyProfile:
        """Stated delta of all steps together at every epsilon, by the `accountant`."""
        profile = super().stated_profile(n_queries, n_classes)
        if self.noise_seed is not None or self.accountant == "rdp":
            return profile
        return profile.intersect(
            dpsgd_profile(self.noise_multiplier, self.sampling_rate, self.n_steps)
        )

    def relation(self, unit: str) -> str:
        """Return the neighbour relation: a row is added or removed."""
        if unit != "row":
            raise ValueError(f"unit={unit!r}; the cost of DP-SGD holds for rows only")
        return "add-remove"

    def in_one_line(self) -> str:
        """Write the parameters that determine the cost."""
        return (
            f"DP-SGD(noise_multiplier={self.noise_multiplier!r}, "
            f"sampling_rate={self.sampling_rate!r}, n_steps={self.n_steps}, "
            f"max_grad_norm={self.max_grad_norm!r})"
        )

    def _check_ready(self) -> None:
        for name in (
            "noise_multiplier",
            "sampling_rate",
            "max_grad_norm",
            "expected_batch_size",
        ):
            check_positive(name, getattr(self, name))
        check_count("n_steps", self.n_steps)
        if self.sampling_rate > 1:
            raise ValueError(
                f"sampling_rate={self.sampling_rate!r} is a probability; pass 1 or "
                "less."
            )
        if self.accountant not in ("pld", "rdp"):
            raise ValueError(
                f"accountant={self.accountant!r} is unknown; use 'pld' or 'rdp'."
            )
