"""Best of several private fits, chosen by noisy scores."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from sklearn_pate.accounting._cost import PureCost
from sklearn_pate.accounting._profile import PrivacyProfile, curve_profile
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting._value_checks import check_positive, counted
from sklearn_pate.accounting.composition import (
    OnDisjointRows,
    SelectionLaw,
    TruncatedNegativeBinomial,
    TruncatedPoisson,
    upper_envelope,
)
from sklearn_pate.accounting.plurality._closed_form import pure_dp_curve
from sklearn_pate.mechanisms._mechanism import Mechanism
from sklearn_pate.mechanisms._noisy_training import DisjointChoice, NoisyScores

#: Distributions of the number of fits, given its mean.
LAWS: dict[str, Callable[[float], SelectionLaw]] = {
    "logarithmic": lambda mean: TruncatedNegativeBinomial.of_mean(0, mean),
    "geometric": lambda mean: TruncatedNegativeBinomial.of_mean(1, mean),
    "poisson": TruncatedPoisson.of_mean,
    "disjoint": lambda mean: OnDisjointRows(),
}


def selection_law(n_trials_distribution: str, mean_n_trials: float) -> SelectionLaw:
    """Return the distribution of the number of fits, or raise ValueError."""
    if n_trials_distribution not in LAWS:
        raise ValueError(
            f"n_trials_distribution={n_trials_distribution!r} is unknown; use one of "
            f"{[*LAWS]}."
        )
    return LAWS[n_trials_distribution](mean_n_trials)


def curves_of_fits(
    n_trials_distribution: str, mean_n_trials: float, fits: Sequence[RdpCurve]
) -> list[RdpCurve]:
    """Compute the cost of a search for each part of the data that a fit may use."""
    law = selection_law(n_trials_distribution, mean_n_trials)
    if n_trials_distribution == "disjoint":  # a row is used by one candidate
        return [law.cost(curve) for curve in fits]
    return [law.cost(upper_envelope(fits))]


@dataclass(frozen=True)
class _LargestCase:
    """Cost of a search: the larger cost of each use of a changed row."""

    cases: list[RdpCurve]
    is_all: ClassVar[bool] = True

    def epsilon(self, delta: float) -> float:
        """Compute epsilon at a delta."""
        return max(case.to_epsilon(delta) for case in self.cases)

    @property
    def profile(self) -> PrivacyProfile:
        """Delta at every epsilon."""
        return PrivacyProfile.largest(curve_profile(case) for case in self.cases)

    def after(self, mu: float) -> None:
        """Return None: with a Gaussian release, curves are added."""


class SelectedFit(Mechanism):
    """Best of several private fits, chosen by noisy scores.

    `learner` is the classifier at the end of each candidate, `fits` has the cost of one
    fit of each. `score_scale` is the scale of the noise on scores, or on the choice
    between them, which has a pure cost if `pure_scores`. `pure_fits`: all fits have
    pure costs; `add_remove`: their neighbours add or remove a row or group. `fit` is
    the mechanism of the winner.

    Given which rows are for what, two neighbouring data sets differ in rows of one part
    alone. If these are fitted on, a trial's score is made of its fit and of equal rows,
    and costs what the fit costs. If these are for scores, the distribution of the fit
    is the same, and a trial costs what the score costs, given the fit. Epsilon is the
    larger of the two cases', and so is the curve at each order. If the parts are
    random, the search is a mixture, and neither cost of a mixture is more than its
    largest part's.
    """

    released = "search"
    _has_exact_cost = True

    def __init__(
        self,
        learner: str,
        n_trials_distribution: str,
        mean_n_trials: float,
        score_scale: float,
        pure_scores: bool,
        fits: Sequence[RdpCurve],
        pure_fits: bool,
        add_remove: bool,
        fit: Mechanism | None = None,
    ) -> None:
        self.learner = learner
        self.n_trials_distribution = n_trials_distribution
        self.mean_n_trials = mean_n_trials
        self.score_scale = score_scale
        self.pure_scores = pure_scores
        self.fits = fits
        self.pure_fits = pure_fits
        self.add_remove = add_remove
        self.fit = fit

    @property
    def choice(self) -> NoisyScores | DisjointChoice:
        """Noise between scores and the choice."""
        kind = (
            DisjointChoice if self.n_trials_distribution == "disjoint" else NoisyScores
        )
        return kind(self.score_scale, self.pure_scores)

    def _curve(self, n_queries: int, n_classes: int, orders: ArrayLike) -> RdpCurve:
        curve, pure = upper_envelope(self._cases()), self.pure_epsilon()
        if pure is None:
            return curve
        ceiling = pure_dp_curve(pure, curve.orders)
        return RdpCurve(curve.orders, np.minimum(curve.values, ceiling.values), pure)

    def _exact(self, n_queries: int, n_classes: int) -> "PureCost | _LargestCase":
        if self.pure_epsilon() is not None:
            return PureCost(self._curve(n_queries, n_classes, DEFAULT_ORDERS))
        return _LargestCase(self._cases())

    def pure_epsilon(self) -> float | None:
        """Pure cost of the whole search, if it has one."""
        if not self.pure_fits:
            return None
        fit = upper_envelope(self.fits)
        trial = upper_envelope([fit, self._score()])
        return self._law().pure_cost(fit.pure_epsilon, trial)

    def _relation(self, unit: str) -> str:
        return "add-remove" if self.add_remove else super()._relation(unit)

    def in_one_line(self) -> str:
        """Write the winner's mechanism, the number of trials, candidates and noise."""
        expected = ""
        if self.n_trials_distribution != "disjoint":
            expected = f", mean_n_trials={self.mean_n_trials!r}"
        search = (
            f"PrivateSearchCV(n_trials_distribution={self.n_trials_distribution!r}"
            f"{expected}) over {counted(len(self.fits), 'candidate')} of "
            f"{self.learner}, with {self.choice}"
        )
        return search if self.fit is None else f"{self.fit.in_one_line()}, by {search}"

    def _law(self) -> SelectionLaw:
        return selection_law(self.n_trials_distribution, self.mean_n_trials)

    def _score(self) -> RdpCurve:
        """Compute the cost of one score."""
        return self.choice.curve(self.fits[0].orders)

    def _cases(self) -> list[RdpCurve]:
        """Compute the cost of the search for each use of a changed row."""
        fits = curves_of_fits(self.n_trials_distribution, self.mean_n_trials, self.fits)
        return [*fits, self._law().cost(self._score())]

    def _check_ready(self) -> None:
        self._law()
        check_positive("score_scale", self.score_scale)
        if not self.fits:
            raise ValueError("fits is empty; pass at least one candidate.")
        if self.fit is not None:
            self.fit._check_ready()
