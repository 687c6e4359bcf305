"""Declared domain of a table: its columns and their cells."""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import repeat
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from sklearn_pate._inputs._containers import Table, column_names, is_frame
from sklearn_pate._inputs._odd_values import is_a, is_missing_or_nan, to_number
from sklearn_pate.accounting._value_checks import counted

MOST_CELLS = 10_000
#: Where values count that are not in a cell, or at the lower end of a range.
OUTSIDE = ("without a declared value", "below the range", "above the range", "at low")
# Whole numbers of this size are not exact in float64.
_LARGEST_EXACT_FLOAT = 2**53
_KEYS = ("values", "range", "edges")
# Kinds of types of columns: numbers, and all.
_NUMBERS, _COUNTED = "biuf", "biufUTO"
# One value of so many is missing in uniform rows, where some may be.
_ONE_IN = 10
# Keys of one declaration, which arrays may have for all columns.
_OF_ALL = {"values", "range", "edges", "missing"}


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

    def counted_in(self, values: NDArray[Any]) -> NDArray[np.intp]:
        """Return the cell of each value, or `n_cells` plus its place in OUTSIDE."""
        cells = self.cell_of(values)
        return np.where(cells < 0, self.n_cells, cells)

    @abstractmethod
    def at(self, cells: NDArray[np.intp], place: NDArray[np.float64]) -> NDArray[Any]:
        """Return a value of each cell, at a place in [0, 1); None where missing."""


@dataclass(frozen=True)
class Values(Cells):
    """Cells of single values."""

    __module__ = "sklearn_pate.stored_types"  # its name in files

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

    __module__ = "sklearn_pate.stored_types"  # its name in files

    edges: tuple[float, ...]
    whole: bool

    @property
    def _n_present(self) -> int:
        return len(self.edges) - 1

    def cell_of(self, values: NDArray[Any]) -> NDArray[np.intp]:
        values, edges = _numbers(values), np.array(self.edges)
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

    def counted_in(self, values: NDArray[Any]) -> NDArray[np.intp]:
        numbers, (low, *_, high) = _numbers(values), self.edges
        found = super().counted_in(numbers)
        above = numbers >= high if self.whole else numbers > high
        for place, is_there in enumerate((numbers < low, above, numbers == low), 1):
            found[is_there] = self.n_cells + place
        return found

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
        f"domain[{name!r}] is of type {type(declared).__name__}; pass a list of all "
        "values, a tuple (low, high), or a tuple of increasing bin edges. Take them "
        "from general knowledge: values read from private rows would be revealed."
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
                "which cannot be counted; use numbers, text or bools, or None for a "
                "missing value."
            )
        elif isinstance(value, str):
            values.append(value)
        elif dtype.kind == "f":  # as the column rounds it
            with np.errstate(over="ignore"):
                values.append(float(dtype.type(to_number(value))))
        elif abs(to_number(value)) >= _LARGEST_EXACT_FLOAT:
            # Beside a missing value, dataframe libraries make floats of whole numbers.
            raise ValueError(
                f"domain[{name!r}] has the value {one!r}, but floats are not exact "
                "from 2^53 on; convert the column to text."
            )
        else:
            values.append(value)
    if len({isinstance(one, str) for one in values}) > 1:
        raise ValueError(
            f"domain[{name!r}]={declared!r} has text beside numbers or bools: rows "
            "would be read as text, and no number would be counted. List each value "
            "with its type in the column, and None for a missing one."
        )
    if len(set(values)) < len(values):
        twice = next(one for one in values if values.count(one) > 1)
        raise ValueError(
            f"domain[{name!r}] has the value {twice!r} twice; list it once."
        )
    if not values:
        raise ValueError(
            f"domain[{name!r}]={declared!r} lists no value; list all possible values."
        )
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
            f"domain[{name!r}] has {n_cells} values or bins, more than {MOST_CELLS}; "
            "declare fewer, or leave the column out of X."
        )


def _found(lookup: dict[Any, int], value: Any) -> int:
    try:
        return lookup.get(value, -1)
    except Exception:
        return -1


def _numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Convert values to numbers, and values that are no numbers to NaN."""
    if values.dtype.kind in "biuf":
        return values
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning would reveal a value
        return np.array([_number(one) for one in values.tolist()])


def _number(value: Any) -> float:
    """Convert a value to a number, to NaN if it is text, complex or no number."""
    is_none = is_a(value, (str, bytes, complex))
    return math.nan if is_none else to_number(value)


@dataclass(frozen=True)
class Domain:
    """Cells of the columns of a table, and the container of its rows."""

    cells: tuple[Cells, ...]
    #: Table with the columns and types of X, without rows.
    no_rows: Table

    @property
    def counted(self) -> list[int]:
        """List of columns with more than one cell; each gets a table of counts."""
        return [j for j, cells in enumerate(self.cells) if cells.n_cells > 1]

    def counted_in(self, X: Table, column: int) -> NDArray[np.intp]:
        """Return `Cells.counted_in` of the values of a column. Sensitive."""
        return _looked_up(X, column, self.cells[column].counted_in)

    def uniform(self, n_rows: int, seed: int) -> Table:
        """Draw rows whose cells are independent, and equally frequent in a column.

        One value of ten is missing where some may be: what cannot work with missing
        values must fail on these rows, and not later, on rows drawn from counts.
        """
        random_state = np.random.RandomState(seed)
        cells = []
        for one in self.cells:
            n_present = one.n_cells - one.missing
            order = random_state.permutation(max(n_rows, n_present))
            drawn = order[:n_rows] % n_present
            if one.missing:
                rows = random_state.permutation(n_rows)[: -(-n_rows // _ONE_IN)]
                drawn[rows] = n_present
            cells.append(drawn)
        return self.rows(cells, random_state)

    def rows(
        self, cells: Sequence[NDArray[np.intp]], random_state: np.random.RandomState
    ) -> Table:
        """Draw rows with given cells, one array for each column."""
        return _table_like(
            self.no_rows,
            [
                one.at(of_rows, random_state.random_sample(len(of_rows)))
                for one, of_rows in zip(self.cells, cells, strict=True)
            ],
        )


def cell_of(X: Any, column: int, cells: Cells) -> NDArray[np.intp]:
    """Return the cell of each value of a column, -1 for none."""
    return _looked_up(X, column, cells.cell_of)


def _looked_up(
    X: Any, column: int, place_of: Callable[[NDArray[Any]], NDArray[np.intp]]
) -> NDArray[np.intp]:
    """Return the place of each value of a column."""
    if hasattr(X, "iloc") and hasattr(X.dtypes.iloc[column], "categories"):
        # Each category of pandas once; the code of a missing value is -1, the last.
        values = X.iloc[:, column].array
        known = np.array([*values.categories, None], dtype=object)
        return place_of(known)[values.codes]
    return place_of(_column_values(X, column))


def read_domain(declared: Any, X: Table, n_bins: int) -> Domain:
    """Read the declared domain of a table, or raise ValueError.

    Numbers, names and types of the columns of X are read, and no value.
    """
    if sp.issparse(X) or len(X.shape) != 2:
        what = "a sparse matrix" if sp.issparse(X) else f"of shape {X.shape}"
        raise ValueError(
            f"PrivateMarginals counts values in columns of a table, but X is {what}; "
            "pass a dense table, or public rows as X_public."
        )
    no_rows = _safe_indexing(X, slice(0, 0))
    if is_frame(X) and not (hasattr(X, "iloc") or hasattr(X, "schema")):
        raise ValueError(
            f"Rows cannot be drawn into a {type(X).__module__}.{type(X).__name__}; "
            "pass X as an array, or as a dataframe of pandas, polars or pyarrow."
        )
    names = column_names(X) or [*range(X.shape[1])]
    declared = _by_column(declared, names, is_frame(X))
    unknown = [name for name in declared if name not in names]
    if unknown:
        raise ValueError(
            f"domain declares {unknown}, which are not columns of X; use only the "
            f"columns {names}."
        )
    cells = [
        _cells(no_rows, column, name, declared, n_bins)
        for column, name in enumerate(names)
    ]
    found = [one for one in cells if one is not None]
    if len(found) < len(cells):
        missing = []
        for column, name in enumerate(names):
            if cells[column] is None:
                is_number = _column_values(no_rows, column).dtype.kind in _NUMBERS
                missing.append(
                    f"{name!r}: {'(low, high)' if is_number else '[values]'}"
                )
        raise ValueError(
            f"domain lacks {len(missing)} of {counted(len(names), 'column')}. Drop "
            "ids, labels and other columns that are not features from X, and declare "
            f"the rest from general knowledge: domain={{{', '.join(missing)}}}."
        )
    _count(declared, found)
    return Domain(tuple(found), no_rows)


def count_tables(declared: Any) -> int:
    """Count the tables of a domain that declares all columns, without rows."""
    if not isinstance(declared, dict) or declared.keys() <= _OF_ALL:
        raise ValueError(
            f"domain={declared!r} must be a dict of all columns, as there are no rows "
            "to tell their number."
        )
    # Any number of bins is more than one cell.
    cells = [cells_of(name, one, np.dtype(object), 2) for name, one in declared.items()]
    return _count(declared, cells)


def _count(declared: dict[Any, Any], cells: list[Cells]) -> int:
    """Return the number of columns that have values to count, or raise if none has."""
    n_counted = sum(one.n_cells > 1 for one in cells)
    if not n_counted:
        raise ValueError(
            f"domain={declared!r} has one value for each column, so that all rows "
            "would be equal; declare a column with several values."
        )
    return n_counted


def _by_column(declared: Any, names: list[Any], is_frame: bool) -> dict[Any, Any]:
    """Return a declaration for each column; there may be one for all."""
    if declared is None:
        return {}
    if isinstance(declared, (list, tuple)):
        return dict.fromkeys(names, declared)
    if not isinstance(declared, dict):
        raise ValueError(
            f"domain is of type {type(declared).__name__}; pass a dict by column, such "
            "as {'age': (17, 90), 'sex': ['F', 'M']}, with column numbers as keys if X "
            "is an array. Or pass one list or tuple for all columns."
        )
    # Columns of a dataframe may have these names.
    if not is_frame and declared and declared.keys() <= _OF_ALL:
        return dict.fromkeys(names, declared)
    return declared


def _cells(
    no_rows: Table, column: int, name: Any, declared: dict[Any, Any], n_bins: int
) -> Cells | None:
    """Return the cells of a column, None if neither domain nor type tells them."""
    dtype = _column_values(no_rows, column).dtype
    if dtype.kind not in _COUNTED:
        raise ValueError(
            f"Column {name!r} of X is of type {dtype}, whose values cannot be counted; "
            "convert it to numbers or text, for example dates to days."
        )
    of_type = [False, True] if dtype.kind == "b" else _categories(no_rows, column)
    of_column = declared.get(name, of_type)
    if of_column is None and name not in declared:
        return None
    if of_type is not None and isinstance(of_column, list):
        of_column = {"values": of_column}  # never a range
    cells = cells_of(name, of_column, dtype, n_bins)
    _check_held(name, of_column, cells, no_rows, column)
    return cells


def _check_held(
    name: Any, declared: Any, cells: Cells, no_rows: Table, column: int
) -> None:
    """Raise ValueError if a column cannot hold the values of its cells, by its type."""
    of_column = _safe_indexing(no_rows, [column], axis=1)

    def is_held(some: NDArray[np.intp]) -> bool:
        middle = cells.at(some, np.full(len(some), 0.5))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                held = _column_values(_table_like(of_column, [middle]), 0)
        except Exception:  # those of dataframe libraries have no type in common
            return False
        return np.array_equal(cells.cell_of(held), some)

    every = np.arange(cells.n_cells)
    if is_held(every):
        return
    first = next(cell for cell in every if not is_held(every[[cell]]))
    value = cells.at(every[[first]], np.array([0.5]))[0]
    raise ValueError(
        f"domain[{name!r}]={declared!r} has "
        f"{'missing values' if value is None else repr(value)}, which a column of type "
        f"{_type(no_rows, column)} cannot hold; declare values with the type they have "
        "in the column, or change its type."
    )


def _column_values(X: Table, column: int) -> NDArray[Any]:
    if is_frame(X):
        # Unlike np.asarray, this reads text of polars alike whatever else is missing.
        return _safe_indexing(X, column, axis=1).to_numpy()
    return np.asarray(X)[:, column]


def _type(no_rows: Any, column: int) -> Any:
    """Return the type of a column, as its library calls it."""
    of_column = _safe_indexing(no_rows, column, axis=1)
    return of_column.dtype if hasattr(of_column, "dtype") else of_column.type  # pyarrow


def _categories(no_rows: Any, column: int) -> list[Any] | None:
    """Return the categories that the type of a column lists, None without any.

    Those of a polars Categorical are read from the values, and not used.
    """
    dtype = _type(no_rows, column)
    categories = getattr(dtype, "categories", None)
    if categories is None or type(dtype).__name__ == "Categorical":
        return None
    return list(categories)


def _table_like(no_rows: Any, columns: list[NDArray[Any]]) -> Any:
    """Put columns of values into a container like an empty one."""
    kind = type(no_rows)
    if isinstance(no_rows, np.ndarray):
        # Text may be longer than in X.
        dtype = str if no_rows.dtype.kind == "U" else no_rows.dtype
        return np.column_stack([np.asarray(one, dtype=dtype) for one in columns])
    if hasattr(no_rows, "iloc"):  # pandas
        frame = kind(dict(enumerate(columns)))
        frame = frame.astype(dict(enumerate(no_rows.dtypes)))
        frame.columns = no_rows.columns
        return frame
    names = column_names(no_rows) or []
    lists = dict(zip(names, (one.tolist() for one in columns), strict=True))
    make = getattr(kind, "from_pydict", kind)  # of pyarrow; polars has none
    return make(lists, schema=no_rows.schema)
