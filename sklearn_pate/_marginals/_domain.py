"""Domain of a table: the cells of each column, by public knowledge alone."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from sklearn_pate._inputs._containers import Table, column_names
from sklearn_pate._inputs._odd_rows import is_frame
from sklearn_pate._marginals._cells import Cells, cells_of
from sklearn_pate.accounting._counted import counted

__all__ = ["Domain", "cell_of", "count_tables", "read_domain"]

# Kinds of types of columns: numbers, and all.
_NUMBERS, _COUNTED = "biuf", "biufUTO"
# One value of so many is missing in uniform rows, where some may be.
_ONE_IN = 10
# Keys of one declaration, which arrays may have for all columns.
_OF_ALL = {"values", "range", "edges", "missing"}


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

    def cell_of(self, X: Table, column: int) -> NDArray[np.intp]:
        """Return the cell of each value of a column, -1 for none. Sensitive."""
        return cell_of(X, column, self.cells[column])

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
    if hasattr(X, "iloc") and hasattr(X.dtypes.iloc[column], "categories"):
        # Each category of pandas once; the code of a missing value is -1, the last.
        values = X.iloc[:, column].array
        known = np.array([*values.categories, None], dtype=object)
        return cells.cell_of(known)[values.codes]
    return cells.cell_of(_column_values(X, column))


def read_domain(declared: Any, X: Table, n_bins: int) -> Domain:
    """Read the declared domain of a table, or raise ValueError.

    Numbers, names and types of the columns of X are read, and no value.
    """
    if sp.issparse(X) or len(X.shape) != 2:
        what = "a sparse matrix" if sp.issparse(X) else f"of shape {X.shape}"
        raise ValueError(
            f"PrivateMarginals counts values in columns of a table, and X is {what}; "
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
            f"domain declares {unknown}, which are no columns of X; the columns are "
            f"{names}."
        )
    cells = [
        _cells(no_rows, column, name, declared, n_bins)
        for column, name in enumerate(names)
    ]
    found = [one for one in cells if one is not None]
    if len(found) < len(cells):
        missing = [
            f"{name!r}: {_template(_column_values(no_rows, column).dtype.kind)}"
            for column, name in enumerate(names)
            if cells[column] is None
        ]
        raise ValueError(
            f"domain lacks {len(missing)} of {counted(len(names), 'column')}; drop "
            "from X what "
            "is no feature, such as ids and labels, and declare the others, from "
            f"general knowledge: domain={{{', '.join(missing)}}}."
        )
    _count(declared, found)
    return Domain(tuple(found), no_rows)


def count_tables(declared: Any, n_bins: int) -> int:
    """Count the tables of a domain that declares all columns, without rows."""
    if not isinstance(declared, dict) or declared.keys() <= _OF_ALL:
        raise ValueError(
            f"domain={declared!r} must be a dict with all columns, as there are no "
            "rows to count them in."
        )
    cells = [
        cells_of(name, one, np.dtype(object), n_bins) for name, one in declared.items()
    ]
    return _count(declared, cells)


def _count(declared: dict[Any, Any], cells: list[Cells]) -> int:
    """Return the number of columns that have values to count, or raise if none has."""
    n_counted = sum(one.n_cells > 1 for one in cells)
    if not n_counted:
        raise ValueError(
            f"domain={declared!r} has one value for each column, so that all rows "
            "would be equal; declare what differs between rows."
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
            f"domain is of type {type(declared).__name__}; declare a dict by column, "
            "such as {'age': (17, 90), 'sex': ['F', 'M']}, with column numbers as keys "
            "for an array, or one list or tuple for all columns."
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
            f"Column {name!r} of X is of type {dtype}, of which no values can be "
            "counted; make numbers or text of it, such as days of a date."
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
        f"{_type(no_rows, column)} cannot hold; declare values as the column holds "
        "them, or change its type."
    )


def _template(kind: str) -> str:
    return "(low, high)" if kind in _NUMBERS else "[values]"


def _column_values(X: Table, column: int) -> NDArray[Any]:
    if is_frame(X):
        # Unlike np.asarray, this reads text of polars alike whatever else is missing.
        return _safe_indexing(X, column, axis=1).to_numpy()
    return np.asarray(X)[:, column]


def _type(no_rows: Any, column: int) -> Any:
    """Return the type of a column, as its library calls it."""
    if isinstance(no_rows, np.ndarray):
        return no_rows.dtype
    if not hasattr(no_rows, "dtypes"):  # pyarrow
        return no_rows.schema.types[column]
    types = no_rows.dtypes
    return types.iloc[column] if hasattr(types, "iloc") else types[column]


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
