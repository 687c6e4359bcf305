"""Privacy card: the facts about a published model for its readers, as plain JSON."""

import json
import math
import platform
import re
import sys
import unicodedata
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from sklearn_pate._inputs._strict_json import strict_json
from sklearn_pate.accounting._profile import PrivacyProfile
from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.mechanisms._mechanism import AccountedRelease
from sklearn_pate.publication._deployment import JOINERS, Deployment
from sklearn_pate.publication._mechanism_fields import described
from sklearn_pate.publication._student_state import full_name, reachable

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "canonical_text",
    "check_card",
    "curve_of",
    "make_card",
    "parse_card",
    "plain_label",
    "profile_of",
    "statement_fields",
    "versions_of",
    "written_card",
]

FORMAT = "sklearn_pate privacy card"
FORMAT_VERSION = 8

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
    "mechanism_fields": (dict,),
    "noise_is_seeded": (bool,),
    "n_teachers": (int, _NOTHING),
    "n_queries": (int, _NOTHING),
    "n_tables": (int, _NOTHING),
    "mu": (float, _NOTHING),
    "facts": (dict,),
    "deployment": (dict,),
    "assumptions": (list,),
    "profile": (list,),
    "curve": (list,),
    "model": (str,),
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
_COUNTS = (*_OF_STATEMENT, "n_features")
_LARGEST_COUNT = 2**53
# A list of two values without spaces, over several lines; strings have no line breaks.
_PAIR = re.compile(r"\[\n\s+(\S+),\n\s+(\S+)\n\s+\]")


def make_card(
    published: Any, mechanism: AccountedRelease, deployment: Deployment
) -> dict[str, Any]:
    """Write the card of a published classifier, which is complete but for its card."""
    names = getattr(published, "feature_names_in_", None)
    curve = published.privacy_spent_.curve
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "private": bool(np.isfinite(published.privacy_spent_.epsilon)),
        **statement_fields(published.privacy_spent_),
        "curve": [
            [order, value if math.isfinite(value) else None]
            for order, value in zip(
                curve.orders.tolist(), curve.values.tolist(), strict=True
            )
        ],
        "deployment": deployment.to_dict(),
        "mechanism_fields": described(mechanism),
        "noise_is_seeded": mechanism.noise_seed is not None,
        "model": full_name(type(published.student_)),
        "classes": [plain_label(label) for label in published.classes_.tolist()],
        "n_features": published.n_features_in_,
        "feature_names": None if names is None else [str(name) for name in names],
        "date": datetime.now(UTC).date().isoformat(),
        "versions": versions_of(published.student_),
    }


def statement_fields(spent: PrivacySpent) -> dict[str, Any]:
    """Write a statement, without its curve, as JSON values."""
    counts = {name: getattr(spent, name) for name in _OF_STATEMENT}
    return {
        "statement": str(spent),
        **spent.to_dict(),
        "epsilon": float(spent.epsilon) if np.isfinite(spent.epsilon) else None,
        "delta": float(spent.delta),
        "mu": None if spent.mu is None else float(spent.mu),
        **{name: None if one is None else int(one) for name, one in counts.items()},
    }


def plain_label(label: Any) -> bool | int | float | str:
    """Return a class label as a JSON value, or as text."""
    label = label.item() if isinstance(label, np.generic) else label
    if isinstance(label, (bool, int, str)):
        return label
    return label if isinstance(label, float) and np.isfinite(label) else str(label)


def canonical_text(card: dict[str, Any]) -> bytes:
    """Write a card as strict JSON that distinguishes 1, 1.0 and true."""
    return json.dumps(card, sort_keys=True, allow_nan=False).encode()


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
    curve = RdpCurve(orders, [np.inf if one is None else one for one in values])
    pure_epsilon = profile_of(card).epsilon_at(0.0)
    return RdpCurve(curve.orders, curve.values, pure_epsilon)


def parse_card(content: bytes, path: Path) -> dict[str, Any]:
    """Read the text of a card, which includes the sha256 of the model file.

    `check_card` checks the other fields.
    """
    try:
        card = strict_json(content)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}.") from None
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise ValueError(f"{path} is no {FORMAT}.")
    if card.get("format_version") != FORMAT_VERSION:
        raise ValueError(
            f"{path} has format_version={card.get('format_version')!r}, and this "
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
                f"{path} is damaged: its statement cannot be read, as its {name} is of "
                "another type."
            )
        if name == "assumptions" and not (value and all(map(_is_assumption, value))):
            raise ValueError(
                f"{path} is damaged: its assumptions must be at least one, each a code "
                "and a sentence."
            )
        if name == "profile" and not _is_profile(card):
            raise ValueError(
                f"{path} is damaged: its profile must be pairs of two numbers, epsilon "
                "and delta, where epsilon increases from 0, and delta is between 0 and "
                "1 and does not increase."
            )
        if name == "curve" and not _is_curve(card):
            raise ValueError(
                f"{path} is damaged: its curve must be pairs of a Renyi order, which "
                "increases from above 1, and a divergence, which is not negative, or "
                "null."
            )
        is_count = name in _COUNTS and value is not None
        if is_count and not 0 < value <= _LARGEST_COUNT:
            raise ValueError(f"{path} is damaged: its {name} is {value}.")
        for text in _texts(value):
            _check_text(text, name, path)


def versions_of(model: Any) -> dict[str, str]:
    """Return the versions of Python and of every package that a model uses."""
    packages = {"numpy", "sklearn", "sklearn_pate"}
    for one in reachable(model):
        packages.update(kind.__module__.partition(".")[0] for kind in type(one).__mro__)
    found = {
        name: getattr(sys.modules.get(name), "__version__", None) for name in packages
    }
    found["scikit-learn"] = found.pop("sklearn")
    # In some packages it is a module, which prints with its path.
    named = {
        name: str(found[name]) for name in sorted(found) if isinstance(found[name], str)
    }
    return {"python": platform.python_version()} | named


def _is_assumption(item: dict[str, Any]) -> bool:
    return item.keys() == {"code", "sentence"} and all(
        isinstance(text, str) and text for text in item.values()
    )


def _is_profile(card: dict[str, Any]) -> bool:
    pairs = card["profile"]
    if any(len(pair) != 2 or not {*map(type, pair)} <= {int, float} for pair in pairs):
        return False
    try:
        profile_of(card)
    except ValueError:
        return False
    return True


def _is_curve(card: dict[str, Any]) -> bool:
    pairs, numbers = card["curve"], {int, float}
    if any(
        len(pair) != 2
        or type(pair[0]) not in numbers
        or type(pair[1]) not in {*numbers, _NOTHING}
        for pair in pairs
    ):
        return False
    try:
        curve_of(card)
    except ValueError:
        return False
    return True


def _check_text(text: str, name: str, path: Path | str) -> None:
    for character in text:
        if character.isprintable() or character in JOINERS:
            continue
        # Controls, formats such as text direction, surrogates, line separators.
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            raise ValueError(
                f"{path} has the control character U+{ord(character):04X} in its "
                f"{name}, which could hide or reorder text; the publisher of the model "
                "must rename that."
            )


def _texts(value: Any) -> list[str]:
    """List all texts in a JSON value, keys included."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    items = value if isinstance(value, list) else []
    return [one for item in items for one in _texts(item)]
