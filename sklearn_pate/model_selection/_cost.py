"""What a search costs: settled, and stated, before the first fit."""

import warnings
from typing import NamedTuple

import numpy as np

from sklearn_pate._estimators._pipelines import last_step
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
from sklearn_pate.accounting.composition._private_selection import (
    OnDisjointRows,
    TruncatedNegativeBinomial,
    TruncatedPoisson,
    dearest,
)
from sklearn_pate.accounting.plurality._closed_form import pure_dp_curve
from sklearn_pate.exceptions import PrivacyLeakWarning
from sklearn_pate.model_selection._candidates import plan_fit
from sklearn_pate.model_selection._noisy_selection import DisjointChoice, NoisyScores

__all__ = ["LAWS", "FitPrices", "choose_judge", "price_fits", "state_search"]

# What noise on scores may add to what is charged.
_SHARE_OF_SCORES = 0.01

#: How many fits there are, given how many are expected.
LAWS = {
    "logarithmic": lambda mean: TruncatedNegativeBinomial.of_mean(0, mean),
    "geometric": lambda mean: TruncatedNegativeBinomial.of_mean(1, mean),
    "poisson": TruncatedPoisson.of_mean,
    "disjoint": lambda mean: OnDisjointRows(),
}


class FitPrices(NamedTuple):
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
    def curve(self):
        """The price of the dearest one.

        Returns
        -------
        curve : RdpCurve
            The largest at each order.
        """
        return dearest(spent.curve for spent in self.of_candidates)

    @property
    def pure(self):
        """The pure price of the dearest one.

        Returns
        -------
        epsilon : float or None
            None if one of them has no pure price.
        """
        if all(one.delta == 0 and one.epsilon < np.inf for one in self.of_candidates):
            return max(spent.epsilon for spent in self.of_candidates)
        return None


def price_fits(candidates, rows, cut, unit, relation):
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
    prices : FitPrices
        They depend on no private value.

    Raises
    ------
    ValueError
        If units or relations of candidates differ, or one of them cannot work.
    """
    parts = [rows.at(of_part) for of_part in cut.training]
    prices, assumptions = [], []
    for place, candidate in enumerate(candidates):
        part = parts[place % len(parts)]
        spent = plan_fit(candidate.estimator, part)
        if (spent.unit, spent.relation) != (unit, relation):
            raise ValueError(
                f"The candidates protect unit={unit!r} with relation={relation!r} and "
                f"unit={spent.unit!r} with relation={spent.relation!r}, whose prices "
                "do not compare; search among those of one unit and relation."
            )
        prices.append(spent)
        assumptions += candidate.assumptions
        by_coins = (unit, relation) == ("row", "add-remove")
        if by_coins and _depends_on_size(candidate, rows, spent):
            assumptions.append(N_FITTED)
    return FitPrices(prices, tuple(assumptions))


def choose_judge(search, law, prices, sensitivity):
    """Choose the noise on scores.

    Parameters
    ----------
    search : PrivateSearchCV
        Its parameters are read.

    law : OnDisjointRows, TruncatedNegativeBinomial or TruncatedPoisson
        How the best is found.

    prices : FitPrices
        What fits cost.

    sensitivity : int
        How far one unit of privacy moves a score.

    Returns
    -------
    judge : NoisyScores or DisjointChoice
        By a fixed rule: pure noise at the price of a pure fit, or else the least noise
        that adds nothing to epsilon, and one hundredth at most to what is charged.

    Raises
    ------
    ValueError
        If so much noise cannot be drawn.
    """
    kind = DisjointChoice if search.trials == "disjoint" else NoisyScores
    if prices.pure is not None:
        judge = kind.at(prices.pure)
    else:
        cases, delta = _curves_of_fits(search, law, prices), search.delta
        stated = max(case.quiet_epsilon(delta) for case in cases)
        if np.isinf(stated):
            return kind(1.0)  # there is no guarantee to keep
        fits = dearest(cases)
        charged = (1 + _SHARE_OF_SCORES) * fits.quiet_epsilon(delta)

        def of_score(scale, orders=None):
            return law.price(kind(scale).curve(fits.orders))

        def of_all(scale, orders):
            return dearest([fits, of_score(scale)])

        judge = kind(
            max(
                calibrate_noise(of_score, epsilon=stated, delta=delta),
                calibrate_noise(of_all, epsilon=charged, delta=delta),
            )
        )
    if judge.scale * sensitivity > LARGEST_SCALE:
        raise ValueError(
            f"Scores would need noise of scale {judge.scale * sensitivity:g}, and "
            f"{LARGEST_SCALE} is the widest that can be drawn; raise the epsilon of "
            "the estimator."
        )
    return judge


def state_search(search, law, judge, prices):
    """Make the statement of a whole search.

    Parameters
    ----------
    search : PrivateSearchCV
        Its parameters are read.

    law : OnDisjointRows, TruncatedNegativeBinomial or TruncatedPoisson
        How the best is found.

    judge : NoisyScores or DisjointChoice
        The noise on scores.

    prices : FitPrices
        What fits cost.

    Returns
    -------
    spent : PrivacySpent
        (epsilon, 0) where all fits and scores are, and the law of trials allows it.

    Warns
    -----
    PrivacyLeakWarning
        If a candidate gives no privacy.

    Notes
    -----
    Given which rows are for what, two neighbouring data sets differ in rows of one part
    alone. If these are fitted on, a trial's score is made of its fit and of equal rows,
    and costs what the fit costs. If these are for scores, the law of the fit is the
    same, and a trial costs what the score costs, given the fit. Epsilon is the larger
    of the two cases', and so is the curve at each order. Where the parts are random,
    the search is a mixture, and neither price of a mixture is more than its dearest
    part's.
    """
    of_score = judge.curve(prices.curve.orders)
    cases = [*_curves_of_fits(search, law, prices), law.price(of_score)]
    curve, pure = dearest(cases), None
    if prices.pure is not None:
        trial = dearest([prices.curve, of_score])
        pure = law.pure_price(prices.pure, trial)
    if search.noise_seed is not None:
        unbounded = curve.unbounded()
        cases, curve, pure = [unbounded], unbounded, None
    if pure is None:
        delta = float(search.delta)
        epsilon = max(case.to_epsilon(delta) for case in cases)
    else:
        epsilon, delta = pure, 0.0
        ceiling = pure_dp_curve(pure, curve.orders)
        values = np.minimum(curve.values, ceiling.values)
        curve = RdpCurve(curve.orders, values, pure)
    if np.isinf(epsilon) and search.noise_seed is None:
        warnings.warn(
            "A candidate gives no privacy (epsilon=inf), perhaps because its noise is "
            "seeded, and so nothing of this search is private; publish nothing of it.",
            PrivacyLeakWarning,
            stacklevel=4,
        )
    first = prices.of_candidates[0]
    return PrivacySpent(
        epsilon=float(epsilon),
        delta=delta,
        unit=first.unit,
        relation=first.relation,
        release="search",
        mechanism=_in_one_line(search, judge, len(prices.of_candidates)),
        n_teachers=None,
        n_queries=None,
        assumptions=_assumptions(search, prices),
        curve=curve,
    )


def _curves_of_fits(search, law, prices):
    """Price the search, for each case of a changed row that a fit sees."""
    if search.trials == "disjoint":  # one candidate sees it
        return [law.price(spent.curve) for spent in prices.of_candidates]
    return [law.price(prices.curve)]


def _depends_on_size(candidate, rows, spent):
    """Tell whether a price depends on the number of rows, which coins decide."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # planning on the parts said it all
        of_all = plan_fit(candidate.estimator, rows)
    return not np.allclose(of_all.curve.values, spent.curve.values, rtol=1e-9, atol=0)


def _in_one_line(search, judge, n_candidates):
    expected = ""
    if search.trials != "disjoint":
        expected = f", expected_trials={search.expected_trials!r}"
    return (
        f"PrivateSearchCV(trials={search.trials!r}{expected}) over {n_candidates} "
        f"candidates of {type(last_step(search.estimator)).__name__}, with {judge}"
    )


def _assumptions(search, prices):
    of_fits = [one for spent in prices.of_candidates for one in spent.assumptions]
    assumptions = [
        LABEL_SET_READ if search.classes is None else LABEL_SET,
        *(one for one in of_fits if one not in (LABEL_SET, LABEL_SET_READ)),
        *prices.assumptions,
        SECRET,
        ALIKE,
        *((SEEDED,) if search.noise_seed is not None else ()),
    ]
    return tuple(dict.fromkeys(assumptions))
