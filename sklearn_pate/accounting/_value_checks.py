"""Checks of whole numbers and of arrays, for all parts of the package."""

from numbers import Integral
from typing import Any

import numpy as np

__all__ = ["check_count", "check_not_masked"]

# Larger whole numbers are not exact as floats.
_LARGEST = 2**53


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
