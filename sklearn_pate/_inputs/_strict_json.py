"""Reader of JSON that another program, or a person, cannot read in another way."""

import json
import math
from typing import Any

# The curves of the fits of a search need 6, and each search around it 2 more.
_LARGEST_DEPTH = 16
_LONGEST_INTEGER = 100


def strict_json(content: bytes) -> Any:
    """Read a text, or raise ValueError unless it is strict JSON of bounded depth."""
    try:
        value = json.loads(
            content,
            parse_constant=_refuse,
            parse_float=_finite,
            parse_int=_short,
            object_pairs_hook=_without_duplicates,
        )
        _check_depth(value)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not strict JSON ({error})") from None
    return value


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(_LARGEST_DEPTH):
        level = [
            one
            for item in level
            if isinstance(item, (list, dict))
            for one in (item.values() if isinstance(item, dict) else item)
        ]
    if level:
        raise ValueError(f"it is nested more than {_LARGEST_DEPTH} deep")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


def _short(text: str) -> int:
    if len(text) > _LONGEST_INTEGER:
        raise ValueError("a number is too long")
    return int(text)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice")
    return found
