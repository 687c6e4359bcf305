"""Cells of a column: a public, finite list of values or of bins."""

import math
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import date
from itertools import repeat
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_pate._inputs._odd_rows import is_a, is_missing_or_nan, to_number

__all__ = ["MOST_CELLS", "Bins", "Cells", "Values", "cells_of"]

MOST_CELLS = 10_000
# Whole numbers of this size are not exact in float64.
_LARGEST_EXACT_FLOAT = 2**53
_KEYS = ("values", "range", "edges")


@dataclass(frozen=True)
class Cells(ABC):
    """Cells of one column.

    A value that is in no cell counts nowhere. The cell of a value depends on that value
    alone, and none raises an error.
    """

    #: Whether missing values have a cell of their own, the last one.
    missing: bool

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self._n_present + self.missing

    @property
    @abstractmethod
    def _n_present(self) -> int:
        """Number of cells of values that are not missing."""

    @abstractmethod
    def cell_of(self, values: NDArray[Any]) -> NDArray[np.intp]:
        """Return the cell of each value, -1 for none."""

    @abstractmethod
    def at(self, cells: NDArray[np.intp], place: NDArray[np.float64]) -> NDArray[Any]:
        """Return a value of each cell, at a place in [0, 1); None where missing."""


@dataclass(frozen=True)
class Values(Cells):
    """Cells of single values."""

    values: tuple[Any, ...]

    @property
    def _n_present(self) -> int:
        return len(self.values)

    def cell_of(self, values: NDArray[Any]) -> NDArray[np.intp]:
        if values.dtype.kind in "biuf":
            return self._cell_of_numbers(values)
        lookup = {value: cell for cell, value in enumerate(self.values)}
        listed = values.tolist()
        try:
            cells = np.fromiter(map(lookup.get, listed, repeat(-1)), dtype=np.intp)
        except Exception:  # a value that cannot be looked up, such as a list
            cells = np.array([_found(lookup, one) for one in listed], dtype=np.intp)
        if self.missing:
            odd = np.flatnonzero(cells < 0)
            odd = odd[[is_missing_or_nan(listed[one]) for one in odd]]
            cells[odd] = self._n_present
        return cells

    def _cell_of_numbers(self, numbers: NDArray[Any]) -> NDArray[np.intp]:
        """Look numbers up among the sorted values that are numbers."""
        known = [
            (value, cell)
            for cell, value in enumerate(self.values)
            if isinstance(value, Real)
        ]
        cells = np.full(len(numbers), -1, dtype=np.intp)
        if known:
            listed, cell_of = map(np.array, zip(*sorted(known), strict=True))
            place = np.minimum(np.searchsorted(listed, numbers), len(listed) - 1)
            cells = np.where(listed[place] == numbers, cell_of[place], -1)
        if self.missing:
            cells[np.isnan(numbers)] = self._n_present
        return cells

    def at(self, cells: NDArray[np.intp], place: NDArray[np.float64]) -> NDArray[Any]:
        values = np.empty(len(self.values) + 1, dtype=object)  # None at the end
        for cell, value in enumerate(self.values):
            values[cell] = value
        return values[cells]


@dataclass(frozen=True)
class Bins(Cells):
    """Cells between increasing edges.

    Numbers below and above are in the first and the last bin, and the last edge is,
    too. With `whole`, edges are whole numbers, and values are.
    """

    edges: tuple[float, ...]
    whole: bool

    @property
    def _n_present(self) -> int:
        return len(self.edges) - 1

    def cell_of(self, values: NDArray[Any]) -> NDArray[np.intp]:
        if values.dtype.kind not in "biuf":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a warning would reveal a value
                values = np.array([_number(one) for one in values.tolist()])
        edges = np.array(self.edges)
        last = self._n_present - 1
        width = (edges[-1] - edges[0]) / (last + 1)
        if np.allclose(np.diff(edges), width, rtol=1e-6, atol=0):
            # Three times as fast as a search; right but for rounding, which is mended.
            with np.errstate(invalid="ignore", over="ignore"):
                near = np.clip((values - edges[0]) / width, 0, last).astype(np.intp)
            near = np.clip(near, 0, last)  # what NaN became
            near += (values >= edges[near + 1]) & (near < last)
            cells = near - ((values < edges[near]) & (near > 0))
        else:
            cells = np.searchsorted(edges[1:-1], values, side="right")
        cells[np.isnan(values)] = self._n_present if self.missing else -1
        return cells

    def at(self, cells: NDArray[np.intp], place: NDArray[np.float64]) -> NDArray[Any]:
        edges = np.array([*self.edges, np.nan])  # no edge behind the missing cell
        low, high = edges[cells], edges[cells + 1]
        # Rounding may not carry a value to the next bin.
        values = np.minimum(low + place * (high - low), np.nextafter(high, low))
        drawn = values.astype(object)
        if self.whole:
            drawn[:] = [None if one != one else math.floor(one) for one in values]
        drawn[cells == self._n_present] = None
        return drawn


def cells_of(name: Any, declared: Any, dtype: np.dtype, n_bins: int) -> Cells:
    """Return the cells that a user declared for a column of a type.

    Raises ValueError, by the declaration alone.
    """
    missing = False
    if isinstance(declared, dict):
        kinds = [one for one in _KEYS if one in declared]
        if len(kinds) != 1 or declared.keys() - {*kinds, "missing"}:
            raise ValueError(
                f"domain[{name!r}]={declared!r} must have one of the keys 'values', "
                "'range' and 'edges', and may have 'missing'."
            )
        missing = declared.get("missing", False)
        if not isinstance(missing, bool):
            raise ValueError(
                f"domain[{name!r}] has missing={missing!r}; it must be True or False."
            )
        content = declared[kinds[0]]
        if not isinstance(content, (list, tuple)):
            raise _unreadable(name, content)
        declared = list(content) if kinds[0] == "values" else tuple(content)
        if kinds[0] == "range" and len(declared) != 2:
            raise ValueError(
                f"domain[{name!r}] has range={content!r}; it must be (low, high)."
            )
    elif isinstance(declared, list):
        _check_no_range(name, declared, dtype)
    if isinstance(declared, list):
        return _values(name, declared, missing, dtype)
    if isinstance(declared, tuple):
        whole = dtype.kind in "iu"
        return _bins(name, declared, missing, whole=whole, n_bins=n_bins)
    raise _unreadable(name, declared)


def _check_no_range(name: Any, declared: list[Any], dtype: np.dtype) -> None:
    """Raise if a list seems to be the range of a column of numbers, by its type."""
    if dtype.kind not in "iuf" or len(declared) != 2:
        return
    if all(isinstance(one, Real) for one in declared):
        low, high = map(to_number, declared)
        if high - low > 1:
            raise ValueError(
                f"domain[{name!r}]={declared!r} lists two values only. For a range, "
                f'write ({declared[0]!r}, {declared[1]!r}), in JSON {{"range": '
                f'{declared!r}}}; for these two values, {{"values": {declared!r}}}.'
            )


def _unreadable(name: Any, declared: Any) -> ValueError:
    return ValueError(
        f"domain[{name!r}] is of type {type(declared).__name__}; write down, from "
        "general knowledge and not from private rows, which would be revealed, a list "
        "of all values, a tuple (low, high), or a tuple of increasing edges of bins."
    )


def _values(name: Any, declared: list[Any], missing: bool, dtype: np.dtype) -> Values:
    values: list[Any] = []
    for one in declared:
        value: Any = one.item() if isinstance(one, np.generic) else one
        if is_missing_or_nan(value):
            missing = True
        elif not isinstance(value, (str, Real)):
            raise ValueError(
                f"domain[{name!r}] has the value {one!r} of type {type(one).__name__}, "
                "which is not counted; use numbers, text or bools, or None if missing."
            )
        elif isinstance(value, str):
            values.append(value)
        elif dtype.kind == "f":  # as the column rounds it
            with np.errstate(over="ignore"):
                values.append(float(dtype.type(to_number(value))))
        elif abs(to_number(value)) >= _LARGEST_EXACT_FLOAT:
            # Beside a missing value, dataframe libraries make floats of whole numbers.
            raise ValueError(
                f"domain[{name!r}] has the value {one!r}, at least 2^53 in size, where "
                "floats are not exact; make text of the column."
            )
        else:
            values.append(value)
    if len({isinstance(one, str) for one in values}) > 1:
        raise ValueError(
            f"domain[{name!r}]={declared!r} has text beside numbers or bools: rows "
            "would be read as text, and no number be counted. List all values as the "
            "column holds them, and None for a missing one."
        )
    if len(set(values)) < len(values):
        twice = next(one for one in values if values.count(one) > 1)
        raise ValueError(
            f"domain[{name!r}] has the value {twice!r} twice; list it once."
        )
    if not values:
        raise ValueError(f"domain[{name!r}]={declared!r} has no value; list some.")
    _check_n_cells(name, len(values))
    return Values(missing, tuple(values))


def _bins(
    name: Any, declared: tuple[Any, ...], missing: bool, *, whole: bool, n_bins: int
) -> Bins:
    shown = f"domain[{name!r}]={declared!r}"
    if len(declared) < 2:
        raise ValueError(f"{shown} must be (low, high), or edges of bins.")
    for one in declared:
        is_number = isinstance(one, Real) and not isinstance(one, bool)
        if not is_number or not math.isfinite(to_number(one)):
            is_date = isinstance(one, (date, np.datetime64))
            remedy = "; make days since a fixed day of the dates" if is_date else ""
            raise ValueError(
                f"{shown} must hold finite numbers alone, not {one!r}{remedy}."
            )
    edges = np.array(declared, dtype=np.float64)
    if not np.all(np.diff(edges) > 0):
        what = "low < high" if len(edges) == 2 else "edges that increase"
        raise ValueError(f"{shown} must have {what}.")
    if whole and any(one != int(one) for one in declared):
        raise ValueError(f"{shown} must hold whole numbers, as the column does.")
    if whole:
        edges[-1] += 1  # the largest whole number is in the last bin
    if len(edges) == 2:
        low, high = edges
        n_bins = min(n_bins, int(high - low)) if whole else n_bins
        edges = np.linspace(low, high, n_bins + 1)
        edges = np.unique(np.ceil(edges) if whole else edges)
    _check_n_cells(name, len(edges) - 1)
    return Bins(missing, tuple(edges.tolist()), whole)


def _check_n_cells(name: Any, n_cells: int) -> None:
    if n_cells > MOST_CELLS:
        raise ValueError(
            f"domain[{name!r}] has {n_cells} cells, more than {MOST_CELLS}; declare "
            "fewer values or bins, or leave the column out of X."
        )


def _found(lookup: dict[Any, int], value: Any) -> int:
    try:
        return lookup.get(value, -1)
    except Exception:
        return -1


def _number(value: Any) -> float:
    """Convert a value to a number, to NaN if it is text, complex or no number."""
    is_none = is_a(value, (str, bytes, complex))
    return math.nan if is_none else to_number(value)
