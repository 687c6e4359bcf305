"""Cells of a column: a public, finite list of values or of bins."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import repeat
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_pate._inputs._labels import is_missing

__all__ = ["MOST_CELLS", "Bins", "Cells", "Values", "cells_of"]

MOST_CELLS = 10_000
_FORMS = (
    "a list of all values, a tuple (low, high), or a tuple of increasing edges of bins"
)
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
    def cell_of(self, values: Any) -> NDArray[np.intp]:
        """Return the cell of each value, -1 for none."""

    @abstractmethod
    def drawn(
        self, cells: NDArray[np.intp], random_state: np.random.RandomState
    ) -> NDArray[Any]:
        """Draw a value from each cell, uniformly; None where it is missing."""


@dataclass(frozen=True)
class Values(Cells):
    """Cells of single values."""

    values: tuple[Any, ...]

    @property
    def _n_present(self) -> int:
        return len(self.values)

    def cell_of(self, values: Any) -> NDArray[np.intp]:
        numbers = np.asarray(values)
        if numbers.dtype.kind in "biuf":
            return self._cell_of_numbers(numbers)
        lookup = {value: cell for cell, value in enumerate(self.values)}
        listed = numbers.tolist() if numbers.dtype.kind in "US" else values.tolist()
        try:
            cells = np.fromiter(map(lookup.get, listed, repeat(-1)), dtype=np.intp)
        except TypeError:  # a value that cannot be looked up, such as a list
            cells = np.array([_found(lookup, one) for one in listed], dtype=np.intp)
        if self.missing:
            odd = np.flatnonzero(cells < 0)
            cells[odd] = [
                self._n_present if is_missing(listed[one]) else -1 for one in odd
            ]
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

    def drawn(
        self, cells: NDArray[np.intp], random_state: np.random.RandomState
    ) -> NDArray[Any]:
        values = np.empty(len(self.values) + 1, dtype=object)  # None at the end
        values[:-1] = self.values
        return values[cells]


@dataclass(frozen=True)
class Bins(Cells):
    """Cells between increasing edges, the last one closed.

    Numbers below and above are in the first and the last bin. With `whole`, edges are
    whole numbers, all bins are half-open, and whole numbers are drawn.
    """

    edges: tuple[float, ...]
    whole: bool

    @property
    def _n_present(self) -> int:
        return len(self.edges) - 1

    def cell_of(self, values: Any) -> NDArray[np.intp]:
        numbers = np.asarray(values)
        if numbers.dtype.kind not in "biuf":
            numbers = np.array([_number(one) for one in values.tolist()], dtype=float)
        n_bins = self._n_present
        is_nan = np.isnan(numbers)
        numbers = np.where(is_nan, self.edges[0], numbers)
        width = (self.edges[-1] - self.edges[0]) / n_bins
        if np.array_equal(np.diff(self.edges), np.full(n_bins, width)):
            numbers = np.clip(numbers, self.edges[0], self.edges[-1])
            cells = ((numbers - self.edges[0]) / width).astype(np.intp)
        else:
            cells = np.searchsorted(self.edges, numbers, side="right") - 1
        cells = np.clip(cells, 0, n_bins - 1)
        cells[is_nan] = n_bins if self.missing else -1
        return cells

    def drawn(
        self, cells: NDArray[np.intp], random_state: np.random.RandomState
    ) -> NDArray[Any]:
        place = random_state.random_sample(len(cells))
        is_missing = cells == self._n_present
        cells = np.where(is_missing, 0, cells)
        edges = np.array(self.edges)
        values = edges[cells] + place * np.diff(edges)[cells]
        if self.whole:
            values = np.floor(values)
        if not is_missing.any():
            return values
        drawn = values.astype(object)
        drawn[is_missing] = None
        return drawn


def cells_of(
    name: Any, declared: Any, *, whole: bool, n_bins: int, is_right: Callable
) -> Cells:
    """Return the cells that a user declared for a column.

    `whole` is for columns of integers; `is_right` tells whether a column of that type
    holds a value. Raises ValueError, by the declaration alone.
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
            raise _unreadable(name, declared)
        declared = list(content) if kinds[0] == "values" else tuple(content)
        if kinds[0] == "range" and len(declared) != 2:
            raise ValueError(
                f"domain[{name!r}] has range={content!r}; it must be (low, high)."
            )
    if isinstance(declared, list):
        return _values(name, declared, missing, is_right)
    if isinstance(declared, tuple):
        return _bins(name, declared, missing, whole=whole, n_bins=n_bins)
    raise _unreadable(name, declared)


def _unreadable(name: Any, declared: Any) -> ValueError:
    return ValueError(
        f"domain[{name!r}] is of type {type(declared).__name__}; declare {_FORMS}. "
        "Write them down from general knowledge: values that are read from private "
        "rows would reveal them."
    )


def _values(
    name: Any, declared: list[Any], missing: bool, is_right: Callable
) -> Values:
    values = [one for one in declared if not is_missing(one)]
    missing = missing or len(values) < len(declared)
    for one in values:
        if not isinstance(one, (str, bool, Real, np.generic)) or not is_right(one):
            raise ValueError(
                f"domain[{name!r}] has the value {one!r}, which is not of the type of "
                "the column; give values as they are in the rows."
            )
    plain = [one.item() if isinstance(one, np.generic) else one for one in values]
    if len(set(plain)) < len(plain):
        twice = next(one for one in plain if plain.count(one) > 1)
        raise ValueError(f"domain[{name!r}] has the value {twice!r} twice.")
    if not plain:
        raise ValueError(f"domain[{name!r}]={declared!r} has no value; list some.")
    _check_number(name, len(plain))
    return Values(missing, tuple(plain))


def _bins(
    name: Any, declared: tuple[Any, ...], missing: bool, *, whole: bool, n_bins: int
) -> Bins:
    shown = f"domain[{name!r}]={declared!r}"
    if len(declared) < 2:
        raise ValueError(f"{shown} must be (low, high), or edges of bins.")
    for one in declared:
        if isinstance(one, bool) or not isinstance(one, Real) or not math.isfinite(one):
            raise ValueError(f"{shown} must hold finite numbers alone, not {one!r}.")
    if not all(np.diff(np.array(declared, dtype=float)) > 0):
        what = "low < high" if len(declared) == 2 else "edges that increase"
        raise ValueError(f"{shown} must have {what}.")
    low, high = float(declared[0]), float(declared[-1])
    if whole:
        if any(float(one) != int(one) for one in declared):
            raise ValueError(f"{shown} must hold whole numbers, as the column does.")
        edges: Iterable[float] = declared
        if len(declared) == 2:
            n_bins = min(n_bins, int(high - low) + 1)
            edges = np.ceil(np.linspace(low, high + 1, n_bins + 1))
        edges = (*map(float, edges),)
        # The largest whole number is in the last bin.
        edges = (*edges[:-1], high + 1)
    elif len(declared) == 2:
        edges = (*np.linspace(low, high, n_bins + 1).tolist(),)
    else:
        edges = (*map(float, declared),)
    _check_number(name, len(edges) - 1)
    return Bins(missing, edges, whole)


def _check_number(name: Any, n_cells: int) -> None:
    if n_cells > MOST_CELLS:
        raise ValueError(
            f"domain[{name!r}] has {n_cells} cells, more than {MOST_CELLS}; leave the "
            "column out of X, or list its common values only."
        )


def _found(lookup: dict[Any, int], value: Any) -> int:
    try:
        return lookup.get(value, -1)
    except TypeError:
        return -1


def _number(value: Any) -> float:
    """Read one value as a number, NaN if it is none."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
