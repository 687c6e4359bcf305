"""Conversion of mechanisms to plain values on a privacy card, and back."""

import re
from collections.abc import Collection
from importlib import import_module
from numbers import Integral, Real
from typing import Any

import numpy as np

from sklearn_pate import mechanisms
from sklearn_pate.accounting._rdp import DEFAULT_ORDERS, RdpCurve
from sklearn_pate.accounting.plurality._closed_form import pure_dp_curve
from sklearn_pate.mechanisms._dpsgd_steps import DPSGDSteps
from sklearn_pate.mechanisms._marginal_counts import MarginalCounts
from sklearn_pate.mechanisms._mechanism import AccountedRelease
from sklearn_pate.mechanisms._newton_steps import NewtonSteps
from sklearn_pate.mechanisms._noisy_objective import NoisyObjective
from sklearn_pate.mechanisms._poisson_sampled import SampledMechanism
from sklearn_pate.mechanisms._selected_fit import SelectedFit
from sklearn_pate.mechanisms._two_parts import TwoPartRelease
from sklearn_pate.publication._student_state import full_name

__all__ = ["HIDDEN_SEED", "classes_to_trust", "described", "rebuilt", "without_seeds"]

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


class _HiddenSeed:
    """Placeholder of a seed that is not published; it draws no noise."""

    def __repr__(self) -> str:
        return "<not published>"


HIDDEN_SEED = _HiddenSeed()
_SEED = re.compile(r"noise_seed=(?!None\b|<)([\w.]+\([^)]*\)|[^,)\s]+)")


def without_seeds(text: str) -> str:
    """Hide the seeds of noise in the text of a mechanism."""
    return _SEED.sub(f"noise_seed={HIDDEN_SEED!r}", text)


def described(mechanism: AccountedRelease) -> dict[str, Any]:
    """Write a mechanism as plain values, without the seed of its noise.

    "class" is the name of a mechanism of this package, or the full name of another;
    "parameters" is None if one of them is no plain value.
    """
    kind = type(mechanism)
    name = kind.__name__ if OWN.get(kind.__name__) is kind else full_name(kind)
    parameters = mechanism.get_params(deep=False)
    parameters.pop("noise_seed", None)
    try:
        plain = {one: _plain(value) for one, value in parameters.items()}
    except TypeError:
        return {"class": name, "parameters": None}
    return {"class": name, "parameters": plain}


def rebuilt(
    fields: dict[str, Any], *, seeded: bool, trusted: Collection[str | type] = ()
) -> AccountedRelease:
    """Create a mechanism from the fields of `described`, which may be forged.

    Nothing in the fields is run; `trusted` has classes, or full names to import, beside
    those of this package. With `seeded`, the seed of the noise is a placeholder.
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
    if set(parameters) != wanted - {"noise_seed"}:
        raise ValueError(
            f"its mechanism, {name}, has the parameters {sorted(parameters)} instead "
            f"of {sorted(wanted - {'noise_seed'})}"
        )
    given = {
        # The fit of a search has its own noise; with a seed, its cost is infinite.
        one: rebuilt(value, seeded=seeded and one != "fit", trusted=trusted)
        if isinstance(value, dict)
        else value
        for one, value in parameters.items()
    }
    if name in OWN:
        if "fits" in given:
            given["fits"] = _read_curves(given["fits"])
        for one, value in given.items():
            if one != "fits" and not _is_right(one, value):
                raise ValueError(f"its mechanism, {name}, has {one}={value!r}")
    if seeded and "noise_seed" in wanted:
        given["noise_seed"] = HIDDEN_SEED
    mechanism = kind(**given)
    if not seeded:
        mechanism._check_ready()
    return mechanism


def classes_to_trust(fields: dict[str, Any]) -> set[str]:
    """Return the full names of all classes in the fields that readers have to trust."""
    nested = [one for one in fields["parameters"].values() if isinstance(one, dict)]
    own = {fields["class"]} - OWN.keys()
    return own.union(*map(classes_to_trust, nested))


def _kind(name: str, trusted: Collection[str | type]) -> type[AccountedRelease]:
    if name in OWN:
        return OWN[name]
    types = {full_name(one): one for one in trusted if isinstance(one, type)}
    if name not in types and name not in trusted:
        raise ValueError(
            f"its mechanism, {name}, is none of this package, so that its cost cannot "
            "be checked; if you know it and the source of the file, pass "
            f"trusted=[{name!r}]"
        )
    kind = types.get(name)
    if kind is None:
        module, _, attribute = name.rpartition(".")
        kind = getattr(import_module(module), attribute)
    if not isinstance(kind, type) or not issubclass(kind, AccountedRelease):
        raise ValueError(f"its mechanism, {name}, is no mechanism")
    return kind


def _plain(value: Any) -> Any:
    if isinstance(value, AccountedRelease):
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
        raise ValueError("its mechanism has fits that are no list of curves")
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
                raise ValueError("its mechanism has a fit whose curve is no numbers")
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
        return isinstance(value, AccountedRelease)
    return _is_number(value) and -_LARGEST <= value <= _LARGEST


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
