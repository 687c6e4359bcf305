"""Privacy card of a published model, and the check that it follows from its fields."""

import json
import math
import re
import warnings
from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import date, timedelta
from importlib import import_module
from numbers import Integral, Real
from pathlib import Path
from reprlib import Repr
from typing import Any, NamedTuple

import numpy as np

from sklearn_pate import mechanisms
from sklearn_pate._inputs._file_content import strict_json
from sklearn_pate.accounting._cost import Cost
from sklearn_pate.accounting._profile import SMALLEST_DELTA, PrivacyProfile, lower_hull
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve, check_delta
from sklearn_pate.accounting._statement import (
    ASSUMPTIONS,
    NORM_READ,
    SEEDED,
    Assumption,
    PrivacySpent,
    state_cost,
    with_metrics,
)
from sklearn_pate.accounting._value_checks import control_character, printable
from sklearn_pate.accounting.plurality._closed_form import pure_dp_curve
from sklearn_pate.mechanisms import InteractiveGNMax, NoisySum
from sklearn_pate.mechanisms._noisy_sum import MarginalCounts, TwoPartRelease
from sklearn_pate.mechanisms._noisy_training import (
    DPSGDSteps,
    NewtonSteps,
    NoisyObjective,
    SampledMechanism,
    SelectedFit,
)
from sklearn_pate.mechanisms._plurality import Mechanism
from sklearn_pate.metrics import PrivateMetrics
from sklearn_pate.publication._deployment import Deployment

#: Mechanisms of this package, whose cost can be computed from the card.
OWN = {
    kind.__name__: kind
    for kind in (
        mechanisms.ConfidentGNMax,
        mechanisms.GNMax,
        mechanisms.GumbelMax,
        mechanisms.InteractiveGNMax,
        mechanisms.LNMax,
        mechanisms.MeanScores,
        mechanisms.NoisyHistogram,
        mechanisms.NoisySum,
        mechanisms.PermuteAndFlip,
        DPSGDSteps,
        MarginalCounts,
        NewtonSteps,
        NoisyObjective,
        SampledMechanism,
        SelectedFit,
        TwoPartRelease,
    )
}
# Their parameters that are no numbers.
_TEXTS = ("accountant", "basis", "learner", "method", "n_trials_distribution")
_FLAGS = ("add_remove", "pure_fits", "pure_scores")
_RELEASES = ("counts", "fit", "mechanism")
# Larger integers have no exact float.
_LARGEST = 2**53
# The cost of each takes about 0.1 ms and 6 KB.
_MOST_FITS = 10_000
FORMAT = "sklearn_pate privacy card"
FORMAT_VERSION = 14

_NOTHING = type(None)
# The type of every field, but for the sha256 of the model file.
_FIELDS: dict[str, tuple[type, ...]] = {
    "format": (str,),
    "format_version": (int,),
    "statement": (str,),
    "private": (bool,),
    "epsilon": (float, int, _NOTHING),
    "delta": (float,),
    "unit": (str,),
    "relation": (str,),
    "release": (str,),
    "neighbours": (str,),
    "mechanism": (str,),
    "model_alone": (dict, _NOTHING),
    "mechanism_fields": (dict,),
    "n_teachers": (int, _NOTHING),
    "n_queries": (int, _NOTHING),
    "n_tables": (int, _NOTHING),
    "mu": (float, _NOTHING),
    "facts": (dict,),
    "deployment": (dict,),
    "metrics": (dict, _NOTHING),
    "assumptions": (list,),
    "profile": (list,),
    "curve": (list,),
    "model": (str,),
    "model_fingerprint": (str,),
    "classes": (list,),
    "n_features": (int,),
    "feature_names": (list, _NOTHING),
    "date": (str,),
    "versions": (dict,),
}
# Types of the items of a list, and of the values of a dict.
_ITEMS: dict[str, tuple[type, ...]] = {
    "assumptions": (dict,),
    "classes": (bool, int, float, str),
    "feature_names": (str,),
    "profile": (list,),
    "curve": (list,),
    "versions": (str,),
}
_OF_STATEMENT = ("n_teachers", "n_queries", "n_tables")
_OF_FIT = ("arithmetic", "randomness", "tuning")
# Fields of the statement, which model_alone has too.
_STATED = (
    *("statement", "epsilon", "delta", "unit", "relation", "release", "neighbours"),
    *("mechanism", *_OF_STATEMENT, "mu", "facts", "assumptions", "profile", "curve"),
)
_COUNTS = (*_OF_STATEMENT, "n_features")
_LARGEST_COUNT = 2**53
# Texts that cannot be compared with the rest of a card, and are no free text.
VERSION = re.compile(r"[A-Za-z0-9_.+!-]{1,64}")
_PATTERNS = {
    "model_fingerprint": re.compile("[0-9a-f]{64}"),
    "date": re.compile(r"\d{4}-\d\d-\d\d", re.ASCII),
    "versions": VERSION,
}
# A list of two values without spaces, over several lines; strings have no line breaks.
_PAIR = re.compile(r"\[\n\s+(\S+),\n\s+(\S+)\n\s+\]")
_NUMBERS = (int, float)
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


def full_name(kind: type) -> str:
    """Return the name of a class with its module, as the privacy card has it."""
    return f"{kind.__module__}.{kind.__qualname__}"


def described(mechanism: Mechanism) -> dict[str, Any]:
    """Write a mechanism as plain values.

    "class" is the name of a mechanism of this package, or the full name of another;
    "parameters" is None if one of them is no plain value.
    """
    kind = type(mechanism)
    name = kind.__name__ if OWN.get(kind.__name__) is kind else full_name(kind)
    parameters = mechanism.get_params(deep=False)
    try:
        plain = {one: _plain(value) for one, value in parameters.items()}
    except TypeError:
        return {"class": name, "parameters": None}
    return {"class": name, "parameters": plain}


def rebuilt(
    fields: dict[str, Any], *, trusted: Collection[str | type] = ()
) -> Mechanism:
    """Create a mechanism from the fields of `described`, which may be forged.

    Nothing in the fields is run; `trusted` has classes, or full names to import, beside
    those of this package.
    """
    name, parameters = fields.get("class"), fields.get("parameters")
    if (
        fields.keys() != {"class", "parameters"}
        or not isinstance(name, str)
        or not isinstance(parameters, dict)
    ):
        raise ValueError(
            "its mechanism must have the fields 'class' and 'parameters' alone"
        )
    kind = _kind(name, trusted)
    wanted = set(kind._get_param_names())
    if set(parameters) != wanted:
        raise ValueError(
            f"its mechanism, {name}, has the parameters {sorted(parameters)}, but "
            f"needs {sorted(wanted)}"
        )
    given = {
        one: rebuilt(value, trusted=trusted) if isinstance(value, dict) else value
        for one, value in parameters.items()
    }
    if name in OWN:
        if "fits" in given:
            given["fits"] = _read_curves(given["fits"])
        for one, value in given.items():
            if one != "fits" and not _is_right(one, value):
                raise ValueError(f"its mechanism, {name}, has {one}={value!r}")
    mechanism = kind(**given)
    mechanism._check_ready()
    return mechanism


def classes_to_trust(fields: dict[str, Any]) -> set[str]:
    """Return the full names of all classes in the fields that readers have to trust."""
    nested = [one for one in fields["parameters"].values() if isinstance(one, dict)]
    own = {fields["class"]} - OWN.keys()
    return own.union(*map(classes_to_trust, nested))


def _kind(name: str, trusted: Collection[str | type]) -> type[Mechanism]:
    if name in OWN:
        return OWN[name]
    types = {full_name(one): one for one in trusted if isinstance(one, type)}
    if name not in types and name not in trusted:
        raise ValueError(
            f"its mechanism, {name}, is not in this package, so that its cost cannot "
            "be checked; if you know it and the source of the file, pass "
            f"trusted=[{name!r}]"
        )
    kind = types.get(name)
    if kind is None:
        module, _, attribute = name.rpartition(".")
        kind = getattr(import_module(module), attribute)
    if not isinstance(kind, type) or not issubclass(kind, Mechanism):
        raise ValueError(f"its mechanism, {name}, is not a mechanism")
    return kind


def _plain(value: Any) -> Any:
    if isinstance(value, Mechanism):
        fields = described(value)
        if fields["parameters"] is None:
            raise TypeError(f"{value!r} has a parameter that is no plain value")
        return fields
    if isinstance(value, list) and all(isinstance(one, RdpCurve) for one in value):
        return [_plain_curve(one) for one in value]
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and np.isfinite(float(value)):
        return float(value)
    raise TypeError(f"{value!r} is no plain value")


def _plain_curve(curve: RdpCurve) -> dict[str, Any]:
    """Write a curve at the default orders, or a pure one as its epsilon alone."""
    pure = curve.pure_epsilon if np.isfinite(curve.pure_epsilon) else None
    if not np.array_equal(curve.orders, DEFAULT_ORDERS):
        raise TypeError(f"{curve!r} has other orders than DEFAULT_ORDERS")
    if pure is not None and np.array_equal(curve.values, pure_dp_curve(pure).values):
        return {"pure_epsilon": pure, "values": None}
    return {"pure_epsilon": pure, "values": [_plain(one) for one in curve.values]}


def _read_curves(given: Any) -> list[RdpCurve]:
    """Read the fields of `_plain_curve`, which may be forged."""
    if not isinstance(given, list) or not all(
        isinstance(one, dict) and one.keys() == {"pure_epsilon", "values"}
        for one in given
    ):
        raise ValueError("its mechanism has fits that are not a list of curves")
    if len(given) > _MOST_FITS:
        raise ValueError(f"its mechanism has more than {_MOST_FITS} fits")
    curves = []
    for one in given:
        pure, values = one["pure_epsilon"], one["values"]
        if values is None:
            curves.append(pure_dp_curve(pure))
        else:
            pure = np.inf if pure is None else pure
            if not isinstance(values, list) or not all(
                map(_is_number, (*values, pure))
            ):
                raise ValueError(
                    "its mechanism has a fit whose curve does not consist of numbers"
                )
            curves.append(RdpCurve(DEFAULT_ORDERS, values, pure))
    return curves


def _is_right(parameter: str, value: Any) -> bool:
    """Check whether a value has the type of that parameter of our mechanisms."""
    if parameter == "learner":  # the name of a class, and no sentence
        return isinstance(value, str) and value.isidentifier()
    if parameter in _TEXTS:
        return isinstance(value, str)
    if parameter in _FLAGS:
        return isinstance(value, bool)
    if value is None or (parameter == "threshold" and value == "auto"):
        return True
    if parameter in _RELEASES:
        return isinstance(value, Mechanism)
    return _is_number(value) and -_LARGEST <= value <= _LARGEST


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def release_fields(
    whole: PrivacySpent,
    of_model: PrivacySpent,
    mechanism: Mechanism,
    deployment: Deployment,
) -> dict[str, Any]:
    """Write the fields about a release, which a reader of the card derives again.

    `whole` is the statement of all that is published, and `of_model` a part of it.
    """
    alone = statement_fields(of_model, of_model) | _curve_field(of_model)
    return {
        "private": bool(np.isfinite(whole.epsilon)),
        **statement_fields(whole, of_model),
        **_curve_field(whole),
        "model_alone": None if whole == of_model else alone,
        "deployment": deployment.to_dict(),
        "mechanism_fields": described(mechanism),
    }


def _curve_field(spent: PrivacySpent) -> dict[str, Any]:
    pairs = zip(spent.curve.orders.tolist(), spent.curve.values.tolist(), strict=True)
    return {
        "curve": [
            [order, value if math.isfinite(value) else None] for order, value in pairs
        ]
    }


def statement_fields(spent: PrivacySpent, of_model: PrivacySpent) -> dict[str, Any]:
    """Write a statement, without its curve, as JSON values.

    Facts of the fit that the statement does not tell are those of the model.
    """
    of_fit = of_model.facts.to_dict()
    counts = {name: getattr(spent, name) for name in _OF_STATEMENT}
    return {
        "statement": spent.in_one_line(),
        **spent.to_dict(),
        "facts": spent.facts.to_dict() | {name: of_fit[name] for name in _OF_FIT},
        "epsilon": float(spent.epsilon) if np.isfinite(spent.epsilon) else None,
        "delta": float(spent.delta),
        "mu": None if spent.mu is None else float(spent.mu),
        **{name: None if one is None else int(one) for name, one in counts.items()},
    }


def canonical_text(value: Any) -> bytes:
    """Write a card, or one field, as strict JSON that distinguishes 1, 1.0 and true."""
    return json.dumps(value, sort_keys=True, allow_nan=False).encode()


def written_card(card: dict[str, Any]) -> bytes:
    """Write a card for people to read, each pair of its profile on one line."""
    text = json.dumps(card, indent=2, allow_nan=False)
    return (_PAIR.sub(r"[\1, \2]", text) + "\n").encode()


def profile_of(card: dict[str, Any]) -> PrivacyProfile:
    """Read the privacy profile on a card, or raise ValueError if it is none."""
    epsilons, deltas = zip(*card["profile"], strict=True)
    return PrivacyProfile(epsilons, deltas)


def curve_of(card: dict[str, Any]) -> RdpCurve:
    """Read the Renyi curve on a card, or raise ValueError if it is none."""
    orders, values = zip(*card["curve"], strict=True)
    return RdpCurve(orders, [np.inf if one is None else one for one in values])


# Reader of pairs, and the types of their second numbers.
_PAIRS = {"profile": (profile_of, _NUMBERS), "curve": (curve_of, (*_NUMBERS, _NOTHING))}


def parse_card(content: bytes, path: Path) -> dict[str, Any]:
    """Read the text of a card, which includes the sha256 of the model file.

    `check_card` checks the other fields.
    """
    try:
        card = strict_json(content)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}.") from None
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise ValueError(f"{path} is not a {FORMAT}.")
    if card.get("format_version") != FORMAT_VERSION:
        raise ValueError(
            f"{path} has format_version={card.get('format_version')!r}, but this "
            f"version of sklearn_pate reads {FORMAT_VERSION}; use the version that "
            "wrote it, or a later one."
        )
    for name, kind in (("sha256", str), ("versions", dict)):
        if not isinstance(card.get(name), kind):
            raise ValueError(f"{path} is damaged: it has no {name}.")
    return card


def check_card(card: dict[str, Any], path: Path | str) -> None:
    """Raise ValueError unless every field has its type and prints as what it is.

    `path` is where the card is, or is to be, for errors.
    """
    for name in sorted(_FIELDS.keys() ^ card.keys()):
        has = "an unknown field" if name in card else "no field"
        raise ValueError(f"{path} is damaged: it has {has} {name!r}.")
    for name, kinds in _FIELDS.items():
        value, kinds_of_items = card[name], _ITEMS.get(name)
        items = value.values() if isinstance(value, dict) else value
        if type(value) not in kinds or (
            kinds_of_items
            and value
            and any(type(i) not in kinds_of_items for i in items)
        ):
            raise ValueError(
                f"{path} is damaged: its statement cannot be read, as its {name} has "
                "the wrong type."
            )
        if name == "assumptions" and not (value and all(map(_is_assumption, value))):
            raise ValueError(
                f"{path} is damaged: its assumptions must be at least one pair of "
                "code and sentence."
            )
        if name == "profile" and not _is_made_of_pairs(card, name):
            raise ValueError(
                f"{path} is damaged: its profile must be pairs of epsilon, increasing "
                "from 0, and delta, between 0 and 1 and never increasing."
            )
        if name == "curve" and not _is_made_of_pairs(card, name):
            raise ValueError(
                f"{path} is damaged: its curve must be pairs of a Renyi order, above "
                "1 and increasing, and a divergence, non-negative or null."
            )
        is_count = name in _COUNTS and value is not None
        if is_count and not 0 < value <= _LARGEST_COUNT:
            raise ValueError(f"{path} is damaged: its {name} is {value}.")
        for text in _texts(value):
            if character := control_character(text):
                raise ValueError(
                    f"{path} has the control character {character} in its {name}, "
                    "which could hide or reorder text; ask the publisher of the model "
                    "to remove it."
                )
            is_right = name not in _PATTERNS or _PATTERNS[name].fullmatch(text)
            if not is_right or (name == "date" and not _is_past(text)):
                raise ValueError(
                    f"{path} is damaged: its {name} has {printable(text[:64])!r}."
                )

    if (alone := card["model_alone"]) is not None:
        if {*alone} != {*_STATED}:
            raise ValueError(f"{path} is damaged: its model_alone has other fields.")
        check_card(part_of_model(card), path)


def part_of_model(card: dict[str, Any]) -> dict[str, Any]:
    """Return the card of the model alone, without its metrics."""
    alone = card["model_alone"] or {}
    return card | alone | {"model_alone": None, "metrics": None}


def _is_past(text: str) -> bool:
    """Check that a date exists, and is not after today in any time zone."""
    try:
        return date.fromisoformat(text) <= date.today() + timedelta(days=1)
    except ValueError:
        return False


def _is_assumption(item: dict[str, Any]) -> bool:
    return item.keys() == {"code", "sentence"} and all(
        isinstance(text, str) and text for text in item.values()
    )


def _is_made_of_pairs(card: dict[str, Any], name: str) -> bool:
    """Check that a profile or a curve can be read."""
    read, second = _PAIRS[name]
    if any(
        len(pair) != 2 or type(pair[0]) not in _NUMBERS or type(pair[1]) not in second
        for pair in card[name]
    ):
        return False
    try:
        read(card)
    except ValueError:
        return False
    return True


def _texts(value: Any) -> list[str]:
    """List all texts in a JSON value, keys included."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    items = value if isinstance(value, list) else []
    return [one for item in items for one in _texts(item)]


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
