"""What a search costs: settled, and stated, before the first fit."""

import warnings
from typing import NamedTuple

import numpy as np

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
from sklearn_pate.mechanisms._selected_fit import SelectedFit, curves_of_fits
from sklearn_pate.model_selection._candidates import plan_fit

__all__ = [
    "FitCosts",
    "choose_scoring",
    "cost_of_fits",
    "state_search",
]

# What noise on scores may add to what is charged.
_SHARE_OF_SCORES = 0.01


class FitCosts(NamedTuple):
    """What one fit of each candidate costs.

    Parameters
    ----------
    of_candidates : list of PrivacySpent
        On the rows that each would be fitted on.

    assumptions : tuple of Assumption
        What was taken to be public beyond what these say.
    """

    of_candidates: list[PrivacySpent]
    assumptions: tuple[Assumption, ...]

    @property
    def curves(self) -> list[RdpCurve]:
        """Their curves, each with the pure cost that is stated, if one is."""
        return [
            RdpCurve(one.curve.orders, one.curve.values, one.epsilon)
            if one.delta == 0
            else one.curve
            for one in self.of_candidates
        ]

    @property
    def pure(self) -> float | None:
        """The largest of their pure costs; None if one of them has none."""
        if all(one.delta == 0 and one.epsilon < np.inf for one in self.of_candidates):
            return max(spent.epsilon for spent in self.of_candidates)
        return None


def cost_of_fits(candidates, rows, cut, unit, relation):
    """State what each candidate costs on the rows that it would be fitted on.

    Parameters
    ----------
    candidates : list of Candidate
        All of them.

    rows : PrivateRows
        All rows.

    cut : Cut
        Their parts.

    unit, relation : str
        Whom the cut protects, and against which change.

    Returns
    -------
    costs : FitCosts
        They depend on no private value.

    Raises
    ------
    ValueError
        If units or relations of candidates differ, or one of them cannot work.
    """
    parts = [rows.at(of_part) for of_part in cut.training]
    costs, assumptions = [], []
    for place, candidate in enumerate(candidates):
        part = parts[place % len(parts)]
        spent = plan_fit(candidate.estimator, part)
        if (spent.unit, spent.relation) != (unit, relation):
            raise ValueError(
                f"The candidates protect unit={unit!r} with relation={relation!r} and "
                f"unit={spent.unit!r} with relation={spent.relation!r}, whose costs "
                "do not compare; search among those of one unit and relation."
            )
        costs.append(spent)
        assumptions += candidate.assumptions
        by_coins = (unit, relation) == ("row", "add-remove")
        if by_coins and _depends_on_size(candidate, rows, spent):
            assumptions.append(N_FITTED)
    return FitCosts(costs, tuple(assumptions))


def choose_scoring(search, law, costs, sensitivity):
    """Choose the noise on scores.

    Parameters
    ----------
    search : PrivateSearchCV
        Its parameters are read.

    law : OnDisjointRows, TruncatedNegativeBinomial or TruncatedPoisson
        How the best is found.

    costs : FitCosts
        What fits cost.

    sensitivity : int
        How far one unit of privacy moves a score.

    Returns
    -------
    scoring : NoisyScores or DisjointChoice
        By a fixed rule: pure noise at the cost of a pure fit, or else the least noise
        that adds nothing to epsilon, and one hundredth at most to what is charged.

    Raises
    ------
    ValueError
        If so much noise cannot be drawn.
    """
    kind = DisjointChoice if search.n_trials_distribution == "disjoint" else NoisyScores
    if costs.pure is not None:
        scoring = kind.at(costs.pure)
    else:
        cases = curves_of_fits(
            search.n_trials_distribution, search.mean_n_trials, costs.curves
        )
        delta = search.delta
        stated = max(case.quiet_epsilon(delta) for case in cases)
        if np.isinf(stated):
            return kind(1.0)  # there is no guarantee to keep
        fits = upper_envelope(cases)
        charged = (1 + _SHARE_OF_SCORES) * fits.quiet_epsilon(delta)

        def of_score(scale, orders=None):
            return law.cost(kind(scale).curve(fits.orders))

        def of_all(scale, orders):
            return upper_envelope([fits, of_score(scale)])

        scoring = kind(
            max(
                calibrate_noise(of_score, epsilon=stated, delta=delta),
                calibrate_noise(of_all, epsilon=charged, delta=delta),
            )
        )
    if scoring.scale * sensitivity > LARGEST_SCALE:
        raise ValueError(
            f"Scores would need noise of scale {scoring.scale * sensitivity:g}, and "
            f"{LARGEST_SCALE} is the widest that can be drawn; raise the epsilon of "
            "the estimator."
        )
    return scoring


def state_search(
    selection: SelectedFit, costs: FitCosts, delta: float, label_set: Assumption
) -> PrivacySpent:
    """Make the statement of a whole search.

    It is (epsilon, 0) where all fits and scores are, and the law of trials allows it.

    Warns
    -----
    PrivacyLeakWarning
        If a candidate gives no privacy.
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
    is_pure = not seeded and selection.pure_epsilon() is not None
    return PrivacySpent(
        epsilon=float(epsilon),
        delta=0.0 if is_pure else float(delta),
        unit=costs.of_candidates[0].unit,
        relation=costs.of_candidates[0].relation,
        release=selection.released,
        mechanism=selection.in_one_line(),
        n_teachers=None,
        n_queries=None,
        assumptions=tuple(dict.fromkeys(assumptions)),
        curve=selection.stated_curve(0, 0),
    )


def _depends_on_size(candidate, rows, spent):
    """Tell whether a cost depends on the number of rows, which coins decide."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # planning on the parts said it all
        of_all = plan_fit(candidate.estimator, rows)
    return not np.allclose(of_all.curve.values, spent.curve.values, rtol=1e-9, atol=0)
