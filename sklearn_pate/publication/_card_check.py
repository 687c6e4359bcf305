"""Statement of a privacy card, derived again from its mechanism and numbers."""

import math
import warnings
from collections.abc import Collection, Iterator
from dataclasses import replace
from reprlib import Repr
from typing import Any, NamedTuple

import numpy as np

from sklearn_pate.accounting._assumptions import (
    ASSUMPTIONS,
    NORM_READ,
    SEEDED,
    Assumption,
)
from sklearn_pate.accounting._cost import Cost
from sklearn_pate.accounting._profile import SMALLEST_DELTA, PrivacyProfile, lower_hull
from sklearn_pate.accounting._publication import with_metrics
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve, check_delta
from sklearn_pate.accounting._statement import PrivacySpent, state_cost
from sklearn_pate.mechanisms import InteractiveGNMax, NoisySum
from sklearn_pate.mechanisms._mechanism import Mechanism
from sklearn_pate.mechanisms._noisy_training import DPSGDSteps
from sklearn_pate.mechanisms._selected_fit import SelectedFit
from sklearn_pate.metrics import PrivateMetrics
from sklearn_pate.publication._deployment import Deployment
from sklearn_pate.publication._privacy_card import (
    canonical_text,
    curve_of,
    part_of_model,
    profile_of,
    rebuilt,
    release_fields,
)

# Relative difference of costs that the rounding of another platform explains.
_ROUNDING = 1e-9
# The cost of DP-SGD comes from a Fourier transform. Changing last bits moved epsilon by
# 2e-6 of it at delta=1e-9, and each delta of a profile by 1e-6 of it or by 1e-13.
_ROUNDING_OF_STEPS = 1e-5
# Another platform may thin a profile at other points: twice what thinning may add.
_THINNING = 1.01
# Kinds of release by teachers, or by rows that vote.
_WITH_TEACHERS = ("answers", "scores", "sum")
_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 60


class Statements(NamedTuple):
    """Statements on a card: of all that is published, and of its parts."""

    whole: PrivacySpent
    of_model: PrivacySpent
    metrics: PrivateMetrics | None


def checked_statements(
    card: dict[str, Any], *, trusted: Collection[str | type] = ()
) -> Statements:
    """Derive the statements of a card, or raise ValueError if a field contradicts them.

    The card has fields of the right types; `trusted` has classes of mechanisms beside
    those of this package. Messages end without a full stop.

    Mechanism, delta, unit, assumptions, numbers of teachers, queries and classes,
    deployment and noisy counts are read. All other fields about the release follow from
    these. Costs may differ by rounding. This is consistency, not authenticity: a forger
    may replace all parts consistently.
    """
    part = part_of_model(card)
    assumptions = tuple(_assumption(**one) for one in part["assumptions"])
    mechanism = rebuilt(card["mechanism_fields"], trusted=trusted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit warned of the orders
        whole = of_model = _derived(part, mechanism, assumptions)
    deployment = Deployment(**card["deployment"])
    deployment.check_for(of_model)
    metrics = _checked_metrics(card, of_model)
    if metrics is not None:
        whole = with_metrics(of_model, metrics.privacy_spent_)
        whole = _settled_as(card, whole, whole.profile, _ROUNDING, 1 - 1 / _THINNING)
    derived = release_fields(whole, of_model, mechanism, deployment)
    stated = {name: card[name] for name in derived}
    for name, one, other in _differences(stated, derived):
        raise ValueError(
            f"its {name} is {_SHORT.repr(one)}, but its other fields give "
            f"{_SHORT.repr(other)}"
        )
    return Statements(whole, of_model, metrics)


def _checked_metrics(
    card: dict[str, Any], of_model: PrivacySpent
) -> PrivateMetrics | None:
    """Read the metrics on a card, or raise ValueError if a field contradicts them.

    Their statement and their figures are computed again. None is returned for a card
    without metrics.
    """
    if card["metrics"] is None:
        return None
    try:
        metrics = PrivateMetrics._from_values(card["metrics"])
    except ValueError as error:
        raise ValueError(f"its metrics are wrong: {error}") from error
    if canonical_text(card["metrics"]["classes"]) != canonical_text(card["classes"]):
        raise ValueError("its metrics are of other classes")
    check_metrics(metrics, [card["model_fingerprint"]], of_model)
    return metrics


def check_metrics(
    metrics: Any, fingerprints: Collection[str], spent: PrivacySpent
) -> None:
    """Raise ValueError unless metrics can be published with a model."""
    if not isinstance(metrics, PrivateMetrics):
        raise ValueError(
            f"metrics={metrics!r} must be PrivateMetrics; measure the model by "
            "private_metrics(model, X, y, epsilon=...)."
        )
    if metrics.model_fingerprint_ not in fingerprints:
        raise ValueError(
            "metrics are of another model; pass those that private_metrics returned "
            "for this model, or for what it publishes."
        )
    own = metrics.privacy_spent_
    if not np.isfinite(own.epsilon):
        raise ValueError(
            "metrics have no privacy guarantee, as their noise was seeded; measure "
            "again without a seed of the noise."
        )
    if (own.unit, own.relation) != (spent.unit, spent.relation):
        raise ValueError(
            f"metrics protect unit={own.unit!r} with relation={own.relation!r}, but "
            f"the model protects unit={spent.unit!r} with "
            f"relation={spent.relation!r}. Such costs do not add up; publish the "
            "metrics separately."
        )


def _differences(
    stated: Any, derived: Any, *path: str
) -> Iterator[tuple[str, Any, Any]]:
    """Yield name and both values of fields that differ, the statement in words last."""
    are_objects = isinstance(stated, dict) and isinstance(derived, dict)
    if are_objects and stated.keys() == derived.keys():
        for name in sorted(derived, key=lambda name: name == "statement"):
            yield from _differences(stated[name], derived[name], *path, name)
    elif canonical_text(stated) != canonical_text(derived):
        yield ".".join(path), stated, derived


def _derived(
    card: dict[str, Any], mechanism: Mechanism, assumptions: tuple[Assumption, ...]
) -> PrivacySpent:
    """Compute the statement of a mechanism; costs that are equal are the card's."""
    unit, delta, n_classes = card["unit"], card["delta"], len(card["classes"])
    if delta != 0:  # 0 for a pure guarantee
        check_delta(delta)
    fit = mechanism
    while isinstance(fit, SelectedFit) and fit.fit is not None:
        fit = fit.fit
    counts, part = fit.parts
    n_teachers = card["n_teachers"] if part.released in _WITH_TEACHERS else None
    n_queries = card["n_queries"] if part.released == "answers" else None
    if part.released == "answers" and n_queries is None:
        raise ValueError(f"its mechanism, {type(part).__name__}, needs n_queries")
    n_answered = n_queries or 0
    if isinstance(part, InteractiveGNMax):
        n_teachers = part.n_teachers
    if isinstance(part, NoisySum):  # all parts of a vector are released at once
        n_queries, n_answered = part.n_parts, 1
    if {SEEDED, NORM_READ}.isdisjoint(assumptions):
        _check_winner(mechanism, unit, n_answered, n_classes)
        cost = mechanism.cost(n_answered, n_classes, unit=unit)
    else:
        unknown = RdpCurve(DEFAULT_ORDERS, np.full(len(DEFAULT_ORDERS), np.inf))
        cost = Cost(unit, mechanism.relation(unit), unknown)
    spent = state_cost(
        cost,
        delta,
        release=mechanism.released,
        mechanism=mechanism.in_one_line(),
        assumptions=assumptions,
        n_teachers=n_teachers,
        n_queries=n_queries,
        n_tables=None if counts is None else counts.n_tables,
    )
    # The profile of a mechanism need not have the pair that it states.
    exact = lower_hull(
        np.append(cost.profile.epsilons, spent.epsilon),
        np.append(cost.profile.deltas, delta),
    )
    rounding = _ROUNDING_OF_STEPS if isinstance(mechanism, DPSGDSteps) else _ROUNDING
    return _settled_as(card, spent, exact, rounding, rounding)


def _settled_as(
    card: dict[str, Any],
    spent: PrivacySpent,
    exact: PrivacyProfile,
    rounding: float,
    below: float,
) -> PrivacySpent:
    """Return a derived statement with the card's numbers where rounding explains them.

    Deltas on the card may be below those of `exact` by a share of `below`.
    """
    return replace(
        spent,
        epsilon=_settled(card["epsilon"], spent.epsilon, rounding),
        mu=_settled(card["mu"], spent.mu, rounding),
        curve=_settled_curve(curve_of(card), spent.curve),
        profile=_settled_profile(profile_of(card), exact, spent.profile, below),
    )


def _settled(stated: Any, derived: Any, rounding: float) -> Any:
    """Return the stated number if it is the derived one but for rounding."""
    is_equal = None not in (stated, derived) and math.isclose(
        stated, derived, rel_tol=rounding
    )
    return stated if is_equal else derived


def _settled_curve(stated: RdpCurve, derived: RdpCurve) -> RdpCurve:
    """Return the stated curve, with a derived pure epsilon, if the values are equal."""
    if not np.array_equal(stated.orders, derived.orders) or not np.allclose(
        stated.values, derived.values, rtol=_ROUNDING, atol=0
    ):
        return derived
    return RdpCurve(stated.orders, stated.values, derived.pure_epsilon)


def _settled_profile(
    stated: PrivacyProfile,
    exact: PrivacyProfile,
    derived: PrivacyProfile,
    rounding: float,
) -> PrivacyProfile:
    """Return the stated profile if another platform may have thinned it like that."""
    at = np.union1d(stated.epsilons, exact.epsilons)
    least, most = (1 - rounding) * exact.delta_at(at), _THINNING * derived.delta_at(at)
    pure = stated.epsilon_at(0.0)
    may_be = (
        np.all(stated.delta_at(at) >= least - SMALLEST_DELTA)
        and np.all(stated.delta_at(at) <= most + SMALLEST_DELTA)
        and pure >= (1 - rounding) * exact.epsilon_at(0.0)
        and pure <= _THINNING * derived.epsilon_at(0.0)
    )
    return stated if may_be else derived


def _check_winner(
    mechanism: Mechanism, unit: str, n_queries: int, n_classes: int
) -> None:
    """Raise if the fit that won a search costs more than all fits it accounts for.

    Other mechanisms have no such fit.
    """
    fit = mechanism.fit if isinstance(mechanism, SelectedFit) else None
    if fit is None:
        return
    text = f"the fit that won the search, by {fit.in_one_line()},"
    if fit.relation(unit) != mechanism.relation(unit):
        raise ValueError(f"{text} has another neighbour relation than the search")
    cost, up = fit.cost(n_queries, n_classes, unit=unit).curve, 1 + _ROUNDING
    if not any(
        np.all(cost.values <= up * one.values)
        and cost.pure_epsilon <= up * one.pure_epsilon
        for one in mechanism.fits
    ):
        raise ValueError(f"{text} costs more than each candidate of the search")
    _check_winner(fit, unit, n_queries, n_classes)


def _assumption(code: str, sentence: str) -> Assumption:
    """Return an assumption, with its question if its code is of this package."""
    assumption = ASSUMPTIONS.get(code, Assumption(code, sentence))
    if assumption.sentence != sentence:
        raise ValueError(
            f"its assumption {code!r} is {sentence!r} instead of "
            f"{assumption.sentence!r}"
        )
    return assumption
