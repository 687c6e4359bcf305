"""Privacy card of a published model, and the check that it follows from its fields."""

import hashlib
import json
import math
import re
import warnings
from collections.abc import Collection
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
from sklearn_pate.accounting._profile import PrivacyProfile
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
from sklearn_pate.mechanisms._noisy_sum import (
    ClassCounts,
    CodeCounts,
    MarginalCounts,
    SharedNoise,
    TwoPartRelease,
    facts_of,
)
from sklearn_pate.mechanisms._noisy_training import (
    DPSGDSteps,
    NewtonSteps,
    NoisyObjective,
    SampledMechanism,
    SelectedFit,
)
from sklearn_pate.mechanisms._plurality import Mechanism
from sklearn_pate.metrics._results import ReleasedMetrics
from sklearn_pate.publication._deployment import Deployment

#: Mechanisms of this package, whose cost can be computed from the card.
OWN = {
    kind.__name__: kind
    for kind in (
        ClassCounts,
        CodeCounts,
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
        SharedNoise,
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
FORMAT_VERSION = 16

_NOTHING = type(None)
# The type of every field, but for the sha256 of the model file.
_FIELDS: dict[str, tuple[type, ...]] = {
    "format": (str,),
    "format_version": (int,),
    "statement": (str,),
    "epsilon": (float, int, _NOTHING),
    "delta": (float,),
    "unit": (str,),
    "relation": (str,),
    "mechanism": (dict,),
    "n_teachers": (int, _NOTHING),
    "n_queries": (int, _NOTHING),
    "model_delta": (float,),
    "assumptions": (list,),
    "metrics": (dict, _NOTHING),
    "deployment": (dict,),
    "model": (str,),
    "model_fingerprint": (str,),
    "classes": (list,),
    "n_features": (int,),
    "feature_names": (list, _NOTHING),
    "date": (str,),
    "versions": (dict,),
}
# A field that only the cards of models of numbers and times have.
_OF_OUTCOMES: dict[str, tuple[type, ...]] = {"outcome": (dict,)}
# Types of the items of a list, and of the values of a dict.
_ITEMS: dict[str, tuple[type, ...]] = {
    "assumptions": (dict,),
    "classes": (bool, int, float, str),
    "feature_names": (str,),
    "versions": (str,),
}
_COUNTS = ("n_teachers", "n_queries", "n_features")
# Texts that cannot be compared with the rest of a card, and are no free text.
VERSION = re.compile(r"[A-Za-z0-9_.+!-]{1,64}")
_PATTERNS = {
    "model_fingerprint": re.compile("[0-9a-f]{64}"),
    "date": re.compile(r"\d{4}-\d\d-\d\d", re.ASCII),
    "versions": VERSION,
}
# Relative difference of costs that the rounding of another platform explains.
_ROUNDING = 1e-9
# The cost of DP-SGD comes from a Fourier transform. Changing last bits moved epsilon by
# 2e-6 of it at delta=1e-9, and each delta of a profile by 1e-6 of it or by 1e-13.
_ROUNDING_OF_STEPS = 1e-5
# Deltas of a profile are rounded up to six digits.
_ROUNDING_OF_DELTAS = 1e-5
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
    if value is None:
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

    Statement, epsilon and delta are those of all that is published, with the metrics.
    The other fields are those of the model.
    """
    counts = {"n_teachers": of_model.n_teachers, "n_queries": of_model.n_queries}
    return {
        "statement": whole.in_one_line(),
        "epsilon": float(whole.epsilon) if np.isfinite(whole.epsilon) else None,
        "delta": float(whole.delta),
        "unit": of_model.unit,
        "relation": of_model.relation,
        "mechanism": described(mechanism),
        **{name: None if one is None else int(one) for name, one in counts.items()},
        "model_delta": float(of_model.delta),
        "assumptions": [
            {"code": one.code, "sentence": one.sentence} for one in of_model.assumptions
        ],
        "deployment": deployment.to_dict(),
    }


def canonical_text(value: Any) -> bytes:
    """Write a card, or one field, as strict JSON that distinguishes 1, 1.0 and true."""
    return json.dumps(value, sort_keys=True, allow_nan=False).encode()


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
            "wrote the file, or publish the model again with this version."
        )
    for name, kind in (("sha256", str), ("versions", dict)):
        if not isinstance(card.get(name), kind):
            raise ValueError(f"{path} is damaged: it has no {name}.")
    return card


def check_card(card: dict[str, Any], path: Path | str) -> None:
    """Raise ValueError unless every field has its type and prints as what it is.

    `path` is where the card is, or is to be, for errors.
    """
    fields = _FIELDS | (_OF_OUTCOMES if "outcome" in card else {})
    for name in sorted(fields.keys() ^ card.keys()):
        has = "an unknown field" if name in card else "no field"
        raise ValueError(f"{path} is damaged: it has {has} {name!r}.")
    for name, kinds in fields.items():
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
        if name == "outcome" and not _is_outcome(value, len(card["classes"])):
            raise ValueError(
                f"{path} is damaged: its outcome does not fit its classes."
            )
        if name == "assumptions" and not (value and all(map(_is_assumption, value))):
            raise ValueError(
                f"{path} is damaged: its assumptions must be at least one pair of "
                "code and sentence."
            )
        is_count = name in _COUNTS and value is not None
        if is_count and not 0 < value <= _LARGEST:
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


def kind_of_outcome(card: dict[str, Any]) -> str | None:
    """Return the kind of outcome whose classes a model predicts, None for labels."""
    return card["outcome"]["kind"] if "outcome" in card else None


def _is_outcome(outcome: dict[str, Any], n_classes: int) -> bool:
    """Check that the edges of an outcome increase, and make so many classes."""
    if outcome.keys() != {"kind", "edges"} or outcome["kind"] not in ("number", "time"):
        return False
    edges = outcome["edges"]
    if not isinstance(edges, list) or not all(map(_is_number, edges)):
        return False
    # An interval has two classes, with and without an event; one is for later times.
    n_made = len(edges) - 1 if outcome["kind"] == "number" else 2 * len(edges) - 1
    return n_made == n_classes and all(np.isfinite(edges)) and all(np.diff(edges) > 0)


def with_sha256(card: dict[str, Any], model: bytes) -> bytes:
    """Write a card with the sha256 of its model file."""
    card = card | {"sha256": hashlib.sha256(model).hexdigest()}
    return (json.dumps(card, indent=2, allow_nan=False) + "\n").encode()


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
    metrics: ReleasedMetrics | None


def checked_statements(
    card: dict[str, Any], *, trusted: Collection[str | type] = ()
) -> Statements:
    """Derive the statements of a card, or raise ValueError if a field contradicts them.

    The card has fields of the right types; `trusted` has classes of mechanisms beside
    those of this package. Messages end without a full stop.

    Mechanism, delta of the model, unit, assumptions, numbers of teachers, queries and
    classes, deployment, and noisy counts of metrics are read. All other fields about
    the release follow from these. Epsilon may differ by rounding. This is consistency,
    not authenticity: a forger may replace all parts consistently.
    """
    assumptions = tuple(_assumption(**one) for one in card["assumptions"])
    mechanism = rebuilt(card["mechanism"], trusted=trusted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit warned of the orders
        whole = of_model = _derived(card, mechanism, assumptions)
    deployment = Deployment(**card["deployment"])
    deployment.check_for(of_model)
    metrics = _checked_metrics(card, of_model)
    if metrics is not None:
        whole = with_metrics(of_model, metrics.privacy_spent_)
    rounding = _ROUNDING_OF_STEPS if isinstance(mechanism, DPSGDSteps) else _ROUNDING
    whole = _settled(card, whole, rounding)
    if metrics is None:
        of_model = whole
    derived = release_fields(whole, of_model, mechanism, deployment)
    for name in sorted(derived, key=lambda name: name == "statement"):  # in words last
        if canonical_text(card[name]) != canonical_text(derived[name]):
            raise ValueError(
                f"its {name} is {_SHORT.repr(card[name])}, but its other fields give "
                f"{_SHORT.repr(derived[name])}"
            )
    return Statements(whole, of_model, metrics)


def _checked_metrics(
    card: dict[str, Any], of_model: PrivacySpent
) -> ReleasedMetrics | None:
    """Read the metrics on a card, or raise ValueError if a field contradicts them.

    Their statement and their figures are computed again. None is returned for a card
    without metrics.
    """
    if card["metrics"] is None:
        return None
    try:
        metrics = ReleasedMetrics._from_values(card["metrics"])
    except ValueError as error:
        raise ValueError(f"its metrics are wrong: {error}") from error
    name = "outcome" if "outcome" in card else "classes"
    if canonical_text(card["metrics"].get(name)) != canonical_text(card[name]):
        raise ValueError("its metrics are of other classes")
    check_metrics(metrics, [card["model_fingerprint"]], of_model)
    return metrics


def check_metrics(
    metrics: Any, fingerprints: Collection[str], spent: PrivacySpent
) -> None:
    """Raise ValueError unless metrics can be published with a model."""
    if not isinstance(metrics, ReleasedMetrics):
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


def _derived(
    card: dict[str, Any], mechanism: Mechanism, assumptions: tuple[Assumption, ...]
) -> PrivacySpent:
    """Compute the statement about the model from its mechanism."""
    unit, delta, n_classes = card["unit"], card["model_delta"], len(card["classes"])
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
    return state_cost(
        cost,
        delta,
        release=mechanism.released,
        mechanism=mechanism.in_one_line(),
        assumptions=assumptions,
        n_teachers=n_teachers,
        n_queries=n_queries,
        **facts_of(counts),
    )


def _settled(
    card: dict[str, Any], spent: PrivacySpent, rounding: float
) -> PrivacySpent:
    """Return the statement as the card has it, if rounding explains the difference.

    The text has epsilon, and guesses that are right by delta at epsilon = 0.
    """
    stated, profile = card["epsilon"], spent.profile
    if stated is not None and math.isclose(stated, spent.epsilon, rel_tol=rounding):
        spent = replace(spent, epsilon=stated)
    for factor in (1.0, 1 - _ROUNDING_OF_DELTAS, 1 + _ROUNDING_OF_DELTAS):
        deltas = np.minimum(factor * profile.deltas, 1.0)
        one = replace(spent, profile=PrivacyProfile(profile.epsilons, deltas))
        if one.in_one_line() == card["statement"]:
            return one
    return spent


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
    """Return an assumption, with its question if it is of this package."""
    own = ASSUMPTIONS.get(code)
    known = [one for one in ASSUMPTIONS.values() if one.sentence == sentence]
    if (own or known) and own not in known:
        wanted = own or known[0]
        raise ValueError(
            f"its assumption {code!r} is {sentence!r}, but {wanted.code!r} is "
            f"{wanted.sentence!r}"
        )
    return own or Assumption(code, sentence)
