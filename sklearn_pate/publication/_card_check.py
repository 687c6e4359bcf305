"""Check of the statement on a privacy card against the cost of its mechanism."""

import math
import warnings
from collections.abc import Collection
from typing import Any

import numpy as np

from sklearn_pate.accounting._assumptions import ASSUMPTIONS, Assumption
from sklearn_pate.accounting._profile import (
    LARGEST_EPSILON,
    SMALLEST_DELTA,
    PrivacyProfile,
    lower_hull,
)
from sklearn_pate.accounting._rdp import RdpCurve, check_delta
from sklearn_pate.accounting._statement import NEIGHBOURS, PrivacySpent
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.mechanisms import InteractiveGNMax, NoisySum
from sklearn_pate.mechanisms._mechanism import AccountedRelease
from sklearn_pate.mechanisms._noisy_sum import parts_of
from sklearn_pate.mechanisms._noisy_training import DPSGDSteps
from sklearn_pate.mechanisms._selected_fit import SelectedFit
from sklearn_pate.publication._deployment import Deployment
from sklearn_pate.publication._privacy_card import curve_of, profile_of, rebuilt

# Relative tolerance for a stated cost below the computed one, as another platform may
# round the last digits differently.
_ROUNDING = 1e-9
# The cost of DP-SGD comes from a Fourier transform. Changing last bits moved epsilon by
# 2e-6 of it at delta=1e-9, and each delta of a profile by 1e-6 of it or by 1e-13.
_ROUNDING_OF_STEPS = 1e-5
_MISSING = object()
_NO_PRIVACY = PrivacyProfile([0.0], [1.0])


def checked_statement(
    card: dict[str, Any],
    n_classes: int,
    statement: str,
    *,
    trusted: Collection[str | type] = (),
) -> PrivacySpent:
    """Read the statement of a published model, or raise ValueError on a contradiction.

    The card has fields of the right types; number of classes and statement are from the
    model file; `trusted` has classes of mechanisms beside those of this package.
    Messages end without a full stop.

    Unit, relation and release must be those of the mechanism, the sentences those of
    unit, relation and codes of assumptions, the text of the mechanism that of its
    parameters, and epsilon, the curve and the profile at least the cost computed here
    from mechanism, noise, delta, and the numbers of queries, answers and classes:
    epsilon at least the smaller of the exact one and that of the curve. Epsilon and
    delta must agree with the profile; mu must be at least that of the mechanism, and
    facts must follow from the other fields. The winner of a search costs no more than
    one of the fits that the search accounts for. A card may state a higher cost. This
    is consistency, not authenticity: a forger may replace all parts consistently.
    """
    if card["delta"] != 0:  # 0 for a pure guarantee
        check_delta(card["delta"])
    if len(card["classes"]) != n_classes:
        raise ValueError(
            f"it has {counted(len(card['classes']), 'class')}, and the model has "
            f"{n_classes}"
        )
    seeded = card["noise_is_seeded"]
    mechanism = rebuilt(card["mechanism_fields"], seeded=seeded, trusted=trusted)
    _check_relation(card, mechanism)
    _check_mechanism(card, mechanism)
    curve, profile = curve_of(card), profile_of(card)
    if seeded:
        _check_void(card, curve)
    else:
        _check_winner(card, mechanism)
        curve = _checked_cost(card, curve, profile, mechanism)
    if not card["private"] and profile != _NO_PRIVACY:
        raise ValueError("it states private=False, and its profile a delta below 1")
    _check_mu(card, mechanism)
    spent = _spent(card, curve, profile)
    if not card["statement"] == statement == str(spent):
        raise ValueError(
            "its statement in words differs from its numbers or from the statement in "
            "the model file"
        )
    _check_facts(card, spent)
    return spent


def _check_relation(card: dict[str, Any], mechanism: AccountedRelease) -> None:
    unit, relation, release = card["unit"], card["relation"], card["release"]
    protected = f"unit={unit!r} with relation={relation!r}"
    name = type(mechanism).__name__
    if NEIGHBOURS.get((unit, relation)) != card["neighbours"]:
        raise ValueError(
            f"its neighbours are {card['neighbours']!r}, which are not those of "
            f"{protected}"
        )
    if relation != mechanism.relation(unit):
        raise ValueError(f"it protects {protected}, which {name} does not")
    if release != mechanism.released:
        raise ValueError(f"it states release={release!r}, which {name} does not make")


def _check_mechanism(card: dict[str, Any], mechanism: AccountedRelease) -> None:
    if card["mechanism"] != mechanism.in_one_line():
        raise ValueError(
            f"its mechanism is {card['mechanism']} in words, and "
            f"{mechanism.in_one_line()} in numbers"
        )
    while isinstance(mechanism, SelectedFit) and mechanism.fit is not None:
        mechanism = mechanism.fit
    counts, mechanism = parts_of(mechanism)
    n_tables = None if counts is None else counts.n_tables
    if card["n_tables"] != n_tables:
        raise ValueError(
            f"it states n_tables={card['n_tables']}, and its mechanism has counts of "
            f"{counted(n_tables, 'column')}"
        )
    # The parts of a vector are the queries of PETDL, all in one release.
    for kind, one, other in (
        (NoisySum, "n_parts", "n_queries"),
        (InteractiveGNMax, "n_teachers", "n_teachers"),
    ):
        if isinstance(mechanism, kind) and getattr(mechanism, one) != card[other]:
            raise ValueError(
                f"it states {other}={card[other]}, and its mechanism has "
                f"{one}={getattr(mechanism, one)}"
            )


def _check_mu(card: dict[str, Any], mechanism: AccountedRelease) -> None:
    """Raise if a card states a smaller mu than that of its mechanism."""
    if card["mu"] is None:
        return
    least = None
    if not card["noise_is_seeded"]:
        cost = mechanism.cost(_n_queries(card, mechanism), len(card["classes"]))
        least = cost.mu
    if least is None or card["mu"] < least * (1 - _ROUNDING):
        raise ValueError(
            f"it states mu={card['mu']!r}, and its mechanism has mu={least!r}"
        )


def _check_facts(card: dict[str, Any], spent: PrivacySpent) -> None:
    """Raise unless the facts are those that follow from the statement."""
    facts = spent.facts.to_dict()
    for name in sorted(facts.keys() | card["facts"].keys()):
        if name not in facts or facts[name] != card["facts"].get(name, _MISSING):
            raise ValueError(
                f"its facts have {name}={card['facts'].get(name)!r}, and "
                f"{facts.get(name)!r} follows from its statement"
            )
    deployment = Deployment(**card["deployment"])
    if deployment.to_dict() != card["deployment"]:
        raise ValueError("its deployment has texts that are not in one line")
    deployment.check_for(spent)


def _check_winner(card: dict[str, Any], mechanism: AccountedRelease) -> None:
    """Raise if the fit that won a search costs more than all fits it accounts for.

    Other mechanisms have no such fit.
    """
    fit = mechanism.fit if isinstance(mechanism, SelectedFit) else None
    if fit is None:
        return
    name, unit = type(fit).__name__, card["unit"]
    if fit.relation(unit) != card["relation"]:
        raise ValueError(
            f"it protects unit={unit!r} with relation={card['relation']!r}, which the "
            f"fit that won the search, by {name}, does not"
        )
    if fit.released in ("answers", "sum") and card["n_queries"] is None:
        raise ValueError(f"the fit that won the search, by {name}, has no n_queries")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit warned of the orders
        cost = fit.cost(_n_queries(card, fit), len(card["classes"])).curve
    up = 1 + _ROUNDING
    if not any(
        np.all(cost.values <= up * one.values)
        and cost.pure_epsilon <= up * one.pure_epsilon
        for one in mechanism.fits
    ):
        raise ValueError(
            f"the fit that won the search, by {fit.in_one_line()}, costs more than "
            "each of those that the search accounts for"
        )
    _check_winner(card, fit)


def _n_queries(card: dict[str, Any], mechanism: AccountedRelease) -> int:
    """Return the number of queries as a mechanism counts them: a vector is one."""
    _, mechanism = parts_of(mechanism)
    return 1 if isinstance(mechanism, NoisySum) else card["n_queries"] or 0


def _check_void(card: dict[str, Any], curve: RdpCurve) -> None:
    if card["private"] or card["epsilon"] is not None or np.any(curve.values < np.inf):
        raise ValueError(
            "its noise was seeded, which gives no privacy, and it states a finite "
            "epsilon or curve"
        )


def _checked_cost(
    card: dict[str, Any],
    curve: RdpCurve,
    profile: PrivacyProfile,
    mechanism: AccountedRelease,
) -> RdpCurve:
    """Return the curve of the file if no part of the statement is below the cost."""
    n_queries = _n_queries(card, mechanism)
    n_classes, delta = len(card["classes"]), card["delta"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit warned of the orders
        whole = mechanism.cost(n_queries, n_classes, unit=card["unit"])
        cost = whole.curve
        epsilon = whole.epsilon(delta) if delta else cost.pure_epsilon
        # The profile of a mechanism need not have the pair that it states.
        computed = whole.profile
        computed = lower_hull(
            np.append(computed.epsilons, epsilon), np.append(computed.deltas, delta)
        )
    if not np.array_equal(curve.orders, cost.orders):
        raise ValueError(
            "its Renyi curve is at other orders than the cost of its mechanism"
        )
    n_asked = card["n_queries"]
    queries = f"{counted(n_asked, 'query')} with " if n_asked else ""
    costs = f"{queries}{counted(n_classes, 'class')} to {card['mechanism']} cost"
    if np.any(curve.values < cost.values * (1 - _ROUNDING)):
        place = int(np.argmin(curve.values - cost.values * (1 - _ROUNDING)))
        raise ValueError(
            f"its Renyi curve is {curve.values[place]:g} at order "
            f"{curve.orders[place]:g}, and {costs} {cost.values[place]:g} there"
        )
    stated = math.inf if card["epsilon"] is None else card["epsilon"]
    rounding = _ROUNDING_OF_STEPS if isinstance(mechanism, DPSGDSteps) else _ROUNDING
    if stated < epsilon * (1 - rounding):
        raise ValueError(
            f"it states epsilon={stated!r}, and {costs} {epsilon!r} at delta={delta!r}"
        )
    if card["private"] != math.isfinite(stated):
        raise ValueError(f"it states epsilon={stated!r} and private={card['private']}")
    _check_profile(profile, computed, costs, rounding)
    up = 1 + rounding
    of_profile = profile.delta_at(up * stated)
    if stated <= LARGEST_EPSILON and of_profile > up * max(delta, SMALLEST_DELTA):
        raise ValueError(
            f"it states epsilon={stated!r} at delta={delta!r}, and its profile "
            f"delta={of_profile:g} there"
        )
    pure_epsilon = cost.pure_epsilon if card["private"] else math.inf
    return RdpCurve(curve.orders, curve.values, pure_epsilon)


def _check_profile(
    profile: PrivacyProfile, computed: PrivacyProfile, costs: str, rounding: float
) -> None:
    """Raise if a profile is below the computed one; `costs` is for messages."""
    pure, least = profile.epsilon_at(0.0), computed.epsilon_at(0.0)
    if pure < least * (1 - rounding):
        raise ValueError(
            f"its profile has delta=0 at epsilon={pure:g}, and {costs} {least:g} at "
            "delta=0"
        )
    # Both are chords between the points of both.
    at = np.union1d(profile.epsilons, computed.epsilons)
    stated, least = profile.delta_at(at), computed.delta_at(at)
    place = int(np.argmax(least * (1 - rounding) - stated))
    if stated[place] < least[place] * (1 - rounding) - SMALLEST_DELTA:
        raise ValueError(
            f"its profile has delta={stated[place]:g} at epsilon={at[place]:g}, and "
            f"{costs} {least[place]:g} there"
        )


def _spent(
    card: dict[str, Any], curve: RdpCurve, profile: PrivacyProfile
) -> PrivacySpent:
    return PrivacySpent(
        epsilon=math.inf if card["epsilon"] is None else card["epsilon"],
        delta=card["delta"],
        unit=card["unit"],
        relation=card["relation"],
        release=card["release"],
        mechanism=card["mechanism"],
        n_teachers=card["n_teachers"],
        n_queries=card["n_queries"],
        n_tables=card["n_tables"],
        mu=card["mu"],
        assumptions=tuple(_assumption(**one) for one in card["assumptions"]),
        curve=curve,
        profile=profile,
    )


def _assumption(code: str, sentence: str) -> Assumption:
    """Return an assumption, with its question if its code is of this package."""
    assumption = ASSUMPTIONS.get(code, Assumption(code, sentence))
    if assumption.sentence != sentence:
        raise ValueError(
            f"its assumption {code!r} is {sentence!r} instead of "
            f"{assumption.sentence!r}"
        )
    return assumption
