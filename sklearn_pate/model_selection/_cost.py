"""Privacy cost of a search, computed and stated before the first fit."""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sklearn_pate.accounting._assumptions import (
    ALIKE,
    LABEL_SET,
    LABEL_SET_READ,
    N_FITTED,
    SECRET,
    SEEDED,
    Assumption,
)
from sklearn_pate.accounting._calibrate import LARGEST_SCALE, calibrate_noise
from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.accounting.composition._private_selection import upper_envelope
from sklearn_pate.exceptions import PrivacyLeakWarning, warn_user
from sklearn_pate.mechanisms._noisy_selection import DisjointChoice, NoisyScores
from sklearn_pate.mechanisms._selected_fit import (
    SelectedFit,
    curves_of_fits,
    selection_law,
)
from sklearn_pate.model_selection._candidates import Candidate, plan_fit
from sklearn_pate.model_selection._split import PrivateRows, RowSplit

__all__ = ["FitCosts", "choose_scoring", "cost_of_fits", "state_search"]

# Largest share that noise on scores may add to the epsilon charged to a ledger.
_SHARE_OF_SCORES = 0.01
# Noise on scores is calibrated to this where delta alone covers the fits.
_LEAST_EPSILON = 1e-6


class FitCosts(NamedTuple):
    """Privacy cost of one fit of each candidate, and assumptions beside theirs."""

    of_candidates: list[PrivacySpent]
    assumptions: tuple[Assumption, ...]

    @property
    def curves(self) -> list[RdpCurve]:
        """Renyi curves of the candidates, with the pure cost where one is stated."""
        return [
            RdpCurve(one.curve.orders, one.curve.values, one.epsilon)
            if one.delta == 0
            else one.curve
            for one in self.of_candidates
        ]

    @property
    def pure(self) -> float | None:
        """Largest pure cost of a candidate; None if a candidate has none."""
        if all(one.delta == 0 and one.epsilon < np.inf for one in self.of_candidates):
            return max(spent.epsilon for spent in self.of_candidates)
        return None


def cost_of_fits(
    candidates: Sequence[Candidate],
    rows: PrivateRows,
    split: RowSplit,
    unit: str,
    relation: str,
) -> FitCosts:
    """Compute the privacy cost of each candidate on the rows it would be fitted on.

    Raises ValueError if units or relations of candidates differ, or a candidate cannot
    be fitted. The costs depend on no private value.
    """
    parts = [rows.take(indices) for indices in split.training]
    costs: list[PrivacySpent] = []
    assumptions: list[Assumption] = []
    for index, candidate in enumerate(candidates):
        spent = plan_fit(candidate.estimator, parts[index % len(parts)])
        if (spent.unit, spent.relation) != (unit, relation):
            raise ValueError(
                f"The candidates protect unit={unit!r} with relation={relation!r} and "
                f"unit={spent.unit!r} with relation={spent.relation!r}, whose costs "
                "do not compare; search among candidates of one unit and relation."
            )
        costs.append(spent)
        assumptions += candidate.assumptions
        is_drawn = (unit, relation) == ("row", "add-remove")
        if is_drawn and _depends_on_size(candidate, rows, spent):
            assumptions.append(N_FITTED)
    return FitCosts(costs, tuple(assumptions))


def choose_scoring(
    n_trials_distribution: str,
    mean_n_trials: float,
    delta: float,
    costs: FitCosts,
    sensitivity: int,
) -> NoisyScores | DisjointChoice:
    """Choose the noise on scores, or raise ValueError if it is too large to be drawn.

    A fixed rule: if all fits have a pure cost, noise of the same pure cost; otherwise
    the least noise that leaves the stated epsilon as it is and adds at most one
    hundredth to the epsilon that is charged.
    """
    kind = DisjointChoice if n_trials_distribution == "disjoint" else NoisyScores
    if costs.pure is not None:
        scoring = kind.at(costs.pure)
    else:
        law = selection_law(n_trials_distribution, mean_n_trials)
        cases = curves_of_fits(n_trials_distribution, mean_n_trials, costs.curves)
        stated = max(case.quiet_epsilon(delta) for case in cases)
        if np.isinf(stated):
            return kind(1.0)  # there is no guarantee to keep
        fits = upper_envelope(cases)
        charged = (1 + _SHARE_OF_SCORES) * fits.quiet_epsilon(delta)
        stated, charged = max(stated, _LEAST_EPSILON), max(charged, _LEAST_EPSILON)

        def of_score(scale: float, orders: ArrayLike | None = None) -> RdpCurve:
            return law.cost(kind(scale).curve(fits.orders))

        def of_all(scale: float, orders: ArrayLike) -> RdpCurve:
            return upper_envelope([fits, of_score(scale)])

        scoring = kind(
            max(
                calibrate_noise(of_score, epsilon=stated, delta=delta),
                calibrate_noise(of_all, epsilon=charged, delta=delta),
            )
        )
    if scoring.scale * sensitivity > LARGEST_SCALE:
        raise ValueError(
            f"Scores would need noise of scale {scoring.scale * sensitivity:g}, more "
            f"than {LARGEST_SCALE}, the largest that can be drawn; raise the epsilon "
            "of the estimator."
        )
    return scoring


def state_search(
    selection: SelectedFit, costs: FitCosts, delta: float, label_set: Assumption
) -> PrivacySpent:
    """Make the statement of a search, and warn if a candidate gives no privacy.

    Its delta is 0 if all fits and scores have a pure cost and the law of the number of
    trials keeps it.
    """
    seeded = selection.noise_seed is not None
    epsilon = selection.stated_epsilon(0, 0, delta)
    if np.isinf(epsilon) and not seeded:
        warn_user(
            "A candidate gives no privacy (epsilon=inf), perhaps because its noise is "
            "seeded, and so nothing of this search is private; publish nothing of it.",
            PrivacyLeakWarning,
        )
    of_fits = [one for spent in costs.of_candidates for one in spent.assumptions]
    assumptions = [
        label_set,
        *(one for one in of_fits if one not in (LABEL_SET, LABEL_SET_READ)),
        *costs.assumptions,
        SECRET,
        ALIKE,
        *((SEEDED,) if seeded else ()),
    ]
    if not seeded and selection.pure_epsilon() is not None:
        delta = 0.0
    return PrivacySpent(
        epsilon=float(epsilon),
        delta=float(delta),
        unit=costs.of_candidates[0].unit,
        relation=costs.of_candidates[0].relation,
        release=selection.released,
        mechanism=selection.in_one_line(),
        n_teachers=None,
        n_queries=None,
        assumptions=tuple(dict.fromkeys(assumptions)),
        curve=selection.stated_curve(0, 0),
        profile=selection.stated_profile(0, 0).thinned(epsilon, delta),
    )


def _depends_on_size(
    candidate: Candidate, rows: PrivateRows, spent: PrivacySpent
) -> bool:
    """Compare the cost on all rows with the cost on the drawn training rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # planning on the parts has issued them
        of_all = plan_fit(candidate.estimator, rows)
    return not np.allclose(of_all.curve.values, spent.curve.values, rtol=1e-9, atol=0)
