"""The best of several private fits, chosen by noisy scores."""

from collections.abc import Callable, Sequence

import numpy as np

from sklearn_pate.accounting._calibrate import check_positive
from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting.composition._private_selection import (
    OnDisjointRows,
    SelectionLaw,
    TruncatedNegativeBinomial,
    TruncatedPoisson,
    dearest,
)
from sklearn_pate.accounting.plurality._closed_form import pure_dp_curve
from sklearn_pate.mechanisms._mechanism import PricedRelease
from sklearn_pate.mechanisms._noisy_selection import DisjointChoice, NoisyScores

__all__ = ["LAWS", "SelectedFit", "curves_of_fits"]

#: How many fits there are, given how many are expected.
LAWS: dict[str, Callable[[float], SelectionLaw]] = {
    "logarithmic": lambda mean: TruncatedNegativeBinomial.of_mean(0, mean),
    "geometric": lambda mean: TruncatedNegativeBinomial.of_mean(1, mean),
    "poisson": TruncatedPoisson.of_mean,
    "disjoint": lambda mean: OnDisjointRows(),
}


def curves_of_fits(
    trials: str, expected_trials: float, fits: Sequence[RdpCurve]
) -> list[RdpCurve]:
    """Price a search, for each case of a changed row that a fit sees."""
    law = LAWS[trials](expected_trials)
    if trials == "disjoint":  # one candidate sees it
        return [law.price(curve) for curve in fits]
    return [law.price(dearest(fits))]


class SelectedFit(PricedRelease):
    """The best of several private fits, chosen by noisy scores.

    Parameters
    ----------
    learner : str
        The classifier that candidates end in.

    trials : {"logarithmic", "geometric", "poisson", "disjoint"}
        Law of the number of fits.

    expected_trials : float
        Its mean; of no consequence for "disjoint".

    score_scale : float
        Scale of the noise on scores, or of the choice between them.

    pure_scores : bool
        Whether that noise has a pure price.

    fits : sequence of RdpCurve
        Price of one fit of each candidate.

    pure_fits : bool
        Whether all fits are stated at their pure prices, without a delta.

    add_remove : bool
        Whether the fits' prices are about rows or groups added or removed.

    fit : PricedRelease, default=None
        That of the winner.

    noise_seed : int, default=None
        With a seed there is no privacy.

    Notes
    -----
    Given which rows are for what, two neighbouring data sets differ in rows of one part
    alone. If these are fitted on, a trial's score is made of its fit and of equal rows,
    and costs what the fit costs. If these are for scores, the law of the fit is the
    same, and a trial costs what the score costs, given the fit. Epsilon is the larger
    of the two cases', and so is the curve at each order. Where the parts are random,
    the search is a mixture, and neither price of a mixture is more than its largest
    part's.
    """

    released = "search"

    def __init__(
        self,
        learner: str,
        trials: str,
        expected_trials: float,
        score_scale: float,
        pure_scores: bool,
        fits: Sequence[RdpCurve],
        pure_fits: bool,
        add_remove: bool,
        fit: PricedRelease | None = None,
        noise_seed: int | None = None,
    ) -> None:
        self.learner = learner
        self.trials = trials
        self.expected_trials = expected_trials
        self.score_scale = score_scale
        self.pure_scores = pure_scores
        self.fits = fits
        self.pure_fits = pure_fits
        self.add_remove = add_remove
        self.fit = fit
        self.noise_seed = noise_seed

    @property
    def choice(self) -> NoisyScores | DisjointChoice:
        """Noise between scores and the choice."""
        kind = DisjointChoice if self.trials == "disjoint" else NoisyScores
        return kind(self.score_scale, self.pure_scores)

    def account_curve(self, n_queries: int, n_classes: int) -> RdpCurve:
        """Price of the whole search, see `PricedRelease`."""
        curve, pure = dearest(self._cases()), self.pure_epsilon()
        if pure is None:
            return curve
        ceiling = pure_dp_curve(pure, curve.orders)
        return RdpCurve(curve.orders, np.minimum(curve.values, ceiling.values), pure)

    def charged_epsilon(self, n_queries: int, n_classes: int, delta: float) -> float:
        """Epsilon of the whole search, pure where all fits and scores are."""
        if self.noise_seed is not None:
            return np.inf
        pure = self.pure_epsilon()
        if pure is not None:
            return pure
        return max(case.to_epsilon(delta) for case in self._cases())

    def pure_epsilon(self) -> float | None:
        """Pure price of the whole search; None if there is none."""
        if not self.pure_fits:
            return None
        fit = dearest(self.fits)
        trial = dearest([fit, self._score()])
        return self._law().pure_price(fit.pure_epsilon, trial)

    def relation(self, unit: str) -> str:
        """Name the neighbour relation of the fits."""
        if self.add_remove:
            return "add-remove"
        return "add-remove-or-change" if unit == "group" else "replace-one"

    def in_one_line(self) -> str:
        """Write the winner's mechanism, the law of trials, candidates and noise."""
        expected = ""
        if self.trials != "disjoint":
            expected = f", expected_trials={self.expected_trials!r}"
        search = (
            f"PrivateSearchCV(trials={self.trials!r}{expected}) over {len(self.fits)} "
            f"candidates of {self.learner}, with {self.choice}"
        )
        return search if self.fit is None else f"{self.fit.in_one_line()}, by {search}"

    def _law(self) -> SelectionLaw:
        return LAWS[self.trials](self.expected_trials)

    def _score(self) -> RdpCurve:
        """Price one score."""
        return self.choice.curve(self.fits[0].orders)

    def _cases(self) -> list[RdpCurve]:
        """Price the search, for each case of a changed row."""
        fits = curves_of_fits(self.trials, self.expected_trials, self.fits)
        return [*fits, self._law().price(self._score())]

    def _check_ready(self) -> None:
        if self.trials not in LAWS:
            raise ValueError(
                f"trials={self.trials!r} is unknown; use one of {[*LAWS]}."
            )
        self._law()
        check_positive("score_scale", self.score_scale)
        if not self.fits:
            raise ValueError("fits is empty; a search has at least one candidate.")
        if self.fit is not None:
            self.fit._check_ready()
