"""Checks of numbers, nouns with their number, and optional packages."""

import re
from importlib import import_module
from numbers import Integral
from types import ModuleType
from typing import Any

import numpy as np

# Larger whole numbers are not exact as floats.
_LARGEST = 2**53


def counted(number: float | None, noun: str) -> str:
    """Write a number and its noun: "1 query", "2 queries", or "no query" for None.

    `noun` is singular, and may have adjectives.
    """
    if number is None or number == 1:
        return f"{'no' if number is None else 1} {noun}"
    if re.search("[^aeiou]y$", noun):
        return f"{number} {noun[:-1]}ies"
    return f"{number} {noun}{'es' if re.search('(s|x|ch|sh)$', noun) else 's'}"


def optional_module(module: str, package: str) -> ModuleType:
    """Import a module of an optional package, or raise with how to install it."""
    try:
        return import_module(module)
    except ImportError:
        raise ImportError(
            f"This needs {package}, which is not installed: pip install {package}"
        ) from None


def check_count(
    name: str,
    value: Any,
    smallest: int = 1,
    largest: float = _LARGEST,
    *,
    also: tuple[str | None, ...] = (),
) -> None:
    """Raise ValueError unless a parameter is a whole number in a range.

    The values in `also` are accepted too.
    """
    if isinstance(value, (str, type(None))) and value in also:
        return
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or value < smallest:
        others = "".join(f", or {other!r}" for other in also)
        raise ValueError(
            f"{name}={value!r} must be a whole number of at least {smallest}{others}."
        )
    if value > largest:
        raise ValueError(f"{name}={value!r} must be at most {largest}.")


def check_not_masked(name: str, values: Any) -> None:
    """Raise for a masked array, or a list or tuple of such."""
    rows = values if isinstance(values, list | tuple) else [values]
    if any(isinstance(row, np.ma.MaskedArray) for row in rows):
        raise ValueError(
            f"{name} is a masked array, whose mask would be ignored; pass a plain "
            "array."
        )
