"""Domain of a table: the cells of each column, by public knowledge alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from sklearn_pate._inputs._containers import Table, column_names
from sklearn_pate._inputs._odd_rows import is_frame
from sklearn_pate._marginals._cells import Cells, Values, cells_of

__all__ = ["Domain", "column_values", "count_tables", "read_domain"]

_NUMBERS, _INTEGERS, _DATES = "biuf", "iu", "mM"
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
        """Columns with more than one cell, each of which gets a table of counts."""
        return [j for j, cells in enumerate(self.cells) if cells.n_cells > 1]

    def cell_of(self, X: Table, column: int) -> NDArray[np.intp]:
        """Return the cell of each value of a column, -1 for none. Sensitive."""
        return self.cells[column].cell_of(column_values(X, column))

    def uniform(self, n_rows: int, seed: int) -> Table:
        """Draw rows whose cells are uniform and independent.

        One value of ten is missing where some may be: what cannot work with missing
        values must fail on these rows, and not later, on rows drawn from counts.
        """
        random_state = np.random.RandomState(seed)
        cells = []
        for one in self.cells:
            drawn = random_state.randint(one.n_cells - one.missing, size=n_rows)
            if one.missing:
                rows = random_state.permutation(n_rows)[: -(-n_rows // _ONE_IN)]
                drawn[rows] = one.n_cells - 1
            cells.append(drawn)
        return self.rows(cells, random_state)

    def rows(
        self, cells: Sequence[NDArray[np.intp]], random_state: np.random.RandomState
    ) -> Table:
        """Draw rows with given cells, one array for each column."""
        return _table_like(
            self.no_rows,
            [
                one.drawn(of_rows, random_state)
                for one, of_rows in zip(self.cells, cells, strict=True)
            ],
        )


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
    names = column_names(X) or [*range(X.shape[1])]
    declared = _by_column(declared, names, is_frame(X))
    unknown = [name for name in declared if name not in names]
    if unknown:
        raise ValueError(
            f"domain declares {unknown}, which are no columns of X; the columns are "
            f"{names}."
        )
    cells: list[Cells | None] = []
    for column, name in enumerate(names):
        kind = column_values(no_rows, column).dtype.kind
        categories = _categories(no_rows, column)
        if kind in _DATES:
            raise ValueError(
                f"Column {name!r} of X holds dates; make numbers of them, such as days."
            )
        if name in declared:
            one = cells_of(
                name,
                declared[name],
                whole=kind in _INTEGERS and categories is None,
                n_bins=n_bins,
                is_right=_type_check(kind, categories),
            )
            if one.missing and not _holds_missing(no_rows, column):
                raise ValueError(
                    f"domain[{name!r}] has missing values, which a column of integers "
                    "or bools cannot hold; leave them out, or pass a column of floats."
                )
            cells.append(one)
        elif categories is not None:
            cells.append(Values(False, tuple(categories)))
        elif kind == "b":
            cells.append(Values(False, (False, True)))
        else:
            cells.append(None)
    found = [one for one in cells if one is not None]
    if len(found) < len(cells):
        missing = [
            f"{name!r}: {_template(column_values(no_rows, column).dtype.kind)}"
            for column, name in enumerate(names)
            if cells[column] is None
        ]
        raise ValueError(
            f"domain lacks {len(missing)} of {len(names)} columns; declare them, from "
            f"general knowledge: domain={{{', '.join(missing)}}}."
        )
    domain = Domain(tuple(found), no_rows)
    if not domain.counted:
        raise ValueError(
            f"domain={declared!r} has one value for each column, so that all rows "
            "would be equal; declare what differs between rows."
        )
    return domain


def count_tables(declared: Any, n_bins: int) -> int:
    """Count the tables of a domain that declares all columns, without rows."""
    if not isinstance(declared, dict) or declared.keys() <= _OF_ALL:
        raise ValueError(
            f"domain={declared!r} must be a dict with all columns, as there are no "
            "rows to count them in."
        )
    cells = [
        cells_of(name, one, whole=False, n_bins=n_bins, is_right=lambda value: True)
        for name, one in declared.items()
    ]
    return sum(one.n_cells > 1 for one in cells)


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


def _template(kind: str) -> str:
    return "(low, high)" if kind in _NUMBERS else "[values]"


def _type_check(kind: str, categories: list[Any] | None) -> Callable[[Any], bool]:
    """Return a function that tells whether a column may hold a value."""
    if categories is not None:
        return lambda value: value in categories
    if kind == "b":
        return lambda value: isinstance(value, (bool, np.bool_))
    if kind in _NUMBERS:
        return lambda value: isinstance(value, Real) and not isinstance(value, bool)
    return lambda value: True


def column_values(X: Table, column: int) -> NDArray[Any]:
    if is_frame(X):
        return np.asarray(_safe_indexing(X, column, axis=1))
    return np.asarray(X)[:, column]


def _categories(no_rows: Any, column: int) -> list[Any] | None:
    """Return the categories that the type of a column lists, None without any.

    Those of a polars Categorical are read from the values, and not used.
    """
    types = getattr(no_rows, "dtypes", None)
    if types is None:
        return None
    dtype = types.iloc[column] if hasattr(types, "iloc") else types[column]
    categories = getattr(dtype, "categories", None)
    if categories is None or type(dtype).__name__ == "Categorical":
        return None
    return list(categories)


def _holds_missing(no_rows: Any, column: int) -> bool:
    """Return whether the type of a column has missing values, as numpy's lack some."""
    dtype = no_rows.dtypes.iloc[column] if hasattr(no_rows, "iloc") else None
    dtype = no_rows.dtype if isinstance(no_rows, np.ndarray) else dtype
    return not (isinstance(dtype, np.dtype) and dtype.kind in "biu")


def _table_like(no_rows: Any, columns: list[NDArray[Any]]) -> Any:
    """Put columns of values into a container like an empty one."""
    kind = type(no_rows)
    if isinstance(no_rows, np.ndarray):
        if no_rows.dtype.kind in _NUMBERS:
            numbers = [np.asarray(one, dtype=np.float64) for one in columns]
            return np.column_stack(numbers).astype(no_rows.dtype)
        text = no_rows.dtype.kind != "O"
        table = np.empty((len(columns[0]), len(columns)), dtype=object)
        for column, values in enumerate(columns):
            table[:, column] = values
        return table.astype(str) if text else table
    if hasattr(no_rows, "iloc"):  # pandas
        frame = kind(dict(enumerate(columns)))
        frame = frame.astype(dict(enumerate(no_rows.dtypes)))
        frame.columns = no_rows.columns
        return frame
    if hasattr(no_rows, "schema"):  # polars and pyarrow
        names = column_names(no_rows) or []
        lists = dict(zip(names, (one.tolist() for one in columns), strict=True))
        make = getattr(kind, "from_pydict", kind)
        return make(lists, schema=no_rows.schema)
    raise ValueError(
        f"Rows cannot be drawn into a {kind.__module__}.{kind.__name__}; pass X as an "
        "array, or as a dataframe of pandas, polars or pyarrow."
    )
