"""Checks of parameters, parts of texts, optional packages and tables."""

import re
import textwrap
import tomllib
import unicodedata
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.resources import files
from numbers import Integral, Real
from types import ModuleType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: Letters in a line.
WIDTH = 80
# Larger whole numbers are not exact as floats.
_LARGEST = 2**53
# Characters that join letters of some scripts, and change no others.
_JOINERS = "\u200c\u200d"


def counted(number: float | None, noun: str) -> str:
    """Write a number and its noun: "1 query", "2 queries", or "no query" for None.

    `noun` is singular, and may have adjectives.
    """
    if number is None or number == 1:
        return f"{'no' if number is None else 1} {noun}"
    if re.search("[^aeiou]y$", noun):
        return f"{number} {noun[:-1]}ies"
    return f"{number} {noun}{'es' if re.search('(s|x|ch|sh)$', noun) else 's'}"


def capitalised(text: str) -> str:
    """Write a text with a capital at its start."""
    return text[:1].upper() + text[1:]


def control_character(text: str) -> str | None:
    """Name the first character that could hide or reorder text, such as "U+202E"."""
    for one in text:
        # Controls, formats such as text direction, surrogates, line separators.
        is_control = unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        if is_control and one not in _JOINERS:
            return f"U+{ord(one):04X}"
    return None


def printable(text: object) -> str:
    """Escape characters that could hide or reorder others when a text is printed."""
    return "".join(
        one if one.isprintable() else f"\\u{{{ord(one):x}}}" for one in str(text)
    )


def fact_lines(facts: Mapping[str, str | list[str]]) -> list[str]:
    """Format facts as wrapped lines, with their names in one column.

    Each text of a list begins a new line.
    """
    indent = 2 + max(map(len, facts))
    lines = []
    for name, fact in facts.items():
        for text in [fact] if isinstance(fact, str) else fact:
            lines += textwrap.wrap(
                text,
                WIDTH,
                initial_indent=f"{name:{indent}}",
                subsequent_indent=" " * indent,
            )
            name = ""
    return lines


def optional_module(module: str, package: str) -> ModuleType:
    """Import a module of an optional package, or raise with the way to install it."""
    try:
        return import_module(module)
    except ImportError:
        raise ImportError(
            f"This needs {package}, which is not installed: pip install {package}"
        ) from None


def read_text(package: str, name: str) -> str:
    """Read a file of a package."""
    return files(package).joinpath(name).read_text("utf-8")


def read_table(package: str, name: str) -> dict[str, Any]:
    """Read a TOML file of a package."""
    return tomllib.loads(read_text(package, name))


def check_option(name: str, value: Any, options: Collection[str | None]) -> None:
    """Raise ValueError unless a parameter is one of the allowed words."""
    if not isinstance(value, str | None) or value not in options:
        raise ValueError(f"{name}={value!r} is unknown; use one of {[*options]}.")


def check_boolean(name: str, value: Any) -> None:
    """Raise ValueError unless a parameter is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name}={value!r} must be True or False.")


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
    if _is_one_of(value, also):
        return
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or value < smallest:
        raise ValueError(
            f"{name}={value!r} must be a whole number of at least {smallest}"
            f"{_or(also)}."
        )
    if value > largest:
        raise ValueError(f"{name}={value!r} must be at most {largest}.")


def check_number(
    name: str,
    value: Any,
    low: float,
    high: float,
    *,
    closed: str = "both",
    also: tuple[str | None, ...] = (),
) -> None:
    """Raise ValueError unless a parameter is a number in an interval.

    `closed` names the ends that belong to it: "both", "left", "right" or "neither". The
    values in `also` are accepted too.
    """
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not _is_one_of(value, also) and (
        not is_number
        or not low <= value <= high
        or (value == low and closed in ("right", "neither"))
        or (value == high and closed in ("left", "neither"))
    ):
        interval = {
            "both": f"from {low} to {high}",
            "left": f"of at least {low} and below {high}",
            "right": f"above {low} and at most {high}",
            "neither": f"strictly between {low} and {high}",
        }[closed]
        raise ValueError(f"{name}={value!r} must be a number {interval}{_or(also)}.")


def is_positive(value: Any) -> bool:
    """Check that a value is a positive, finite number, and not a boolean."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return bool(is_number and 0 < value < np.inf)


def check_positive(name: str, value: Any, *, also: tuple[str | None, ...] = ()) -> None:
    """Raise ValueError unless a parameter is a positive, finite number.

    The values in `also` are accepted too.
    """
    if not is_positive(value) and not _is_one_of(value, also):
        raise ValueError(
            f"{name}={value!r} must be a positive, finite number{_or(also)}."
        )


def _is_one_of(value: Any, also: tuple[str | None, ...]) -> bool:
    return isinstance(value, str | None) and value in also


def _or(also: tuple[str | None, ...]) -> str:
    return "".join(f", or {other!r}" for other in also)


@dataclass(frozen=True)
class Constraint:
    """Condition on a parameter of an estimator, in its table `_constraints`."""

    #: Raises ValueError for a name and a value that cannot be used.
    check: Callable[[str, Any], object]

    @classmethod
    def boolean(cls) -> Self:
        """Allow True and False."""
        return cls(check_boolean)

    @classmethod
    def count(cls, smallest: int = 1, *, also: tuple[str | None, ...] = ()) -> Self:
        """Allow whole numbers, as `check_count` does."""
        return cls(partial(check_count, smallest=smallest, also=also))

    @classmethod
    def instance(cls, kind: type, remedy: str) -> Self:
        """Allow None, and instances of a class."""

        def check(name: str, value: Any) -> None:
            if value is not None and not isinstance(value, kind):
                raise ValueError(
                    f"{name}={value!r} is not a {kind.__name__}; {remedy}."
                )

        return cls(check)

    @classmethod
    def number(cls, low: float, high: float, **options: Any) -> Self:
        """Allow numbers in an interval, as `check_number` does."""
        return cls(partial(check_number, low=low, high=high, **options))

    @classmethod
    def option(cls, options: Collection[str | None]) -> Self:
        """Allow the given words."""
        return cls(partial(check_option, options=options))

    @classmethod
    def positive(cls, *, also: tuple[str | None, ...] = ()) -> Self:
        """Allow positive, finite numbers."""
        return cls(partial(check_positive, also=also))


def check_parameters(estimator: Any) -> None:
    """Raise ValueError for a parameter that breaks `_constraints` of its class.

    Constraints of base classes hold too, and are checked first.
    """
    for kind in reversed(type(estimator).__mro__):
        for name, constraint in vars(kind).get("_constraints", {}).items():
            constraint.check(name, getattr(estimator, name))


def checked_pairs(**arrays: ArrayLike) -> list[NDArray[np.float64]]:
    """Return two sequences of one length as read-only arrays, or raise ValueError."""
    for name, given in arrays.items():
        check_not_masked(name, given)
    found = [np.array(given, dtype=np.float64) for given in arrays.values()]
    first, second = found
    if first.ndim != 1 or first.size == 0 or first.shape != second.shape:
        one, other = arrays
        raise ValueError(
            f"{one} has shape {first.shape} and {other} {second.shape}; pass two "
            "one-dimensional arrays of the same, non-zero length."
        )
    for array in found:
        array.flags.writeable = False
    return found


def check_not_masked(name: str, values: Any) -> None:
    """Raise for a masked array, or a list or tuple of masked arrays."""
    rows = values if isinstance(values, list | tuple) else [values]
    if any(map(np.ma.isMaskedArray, rows)):
        raise ValueError(
            f"{name} is a masked array, whose mask would be ignored; pass a plain "
            "array."
        )
