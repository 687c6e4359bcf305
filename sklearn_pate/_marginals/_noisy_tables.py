"""Tables of counts by column and class, exact or with noise, and rows drawn of them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sklearn_pate._inputs._containers import Table
from sklearn_pate._marginals._domain import Domain

__all__ = ["Marginals", "SyntheticRows", "count_cells", "nearest_on_simplex"]


@dataclass(frozen=True)
class SyntheticRows:
    """Rows drawn from noisy counts, which may be published as these are."""

    X: Table
    #: Class index that each row was drawn for; None if counts are not by class.
    labels: NDArray[np.intp] | None


@dataclass(frozen=True)
class Marginals:
    """Tables of noisy counts, one for each column with more than one cell.

    They may be published, at the cost of their release.
    """

    domain: Domain
    n_classes: int
    #: Whether counts are by class.
    by_class: bool
    #: Noisy counts of all tables, concatenated.
    counts: NDArray[np.int64]
    #: Public number of rows, None where it is not public.
    n_rows: int | None

    @property
    def tables(self) -> dict[int, NDArray[np.int64]]:
        """Noisy counts by column number, of shape (n_classes or 1, n_cells)."""
        n_labels = self.n_classes if self.by_class else 1
        sizes = [n_labels * self.domain.cells[j].n_cells for j in self.domain.counted]
        parts = np.split(self.counts, np.cumsum(sizes)[:-1])
        return {
            column: part.reshape(n_labels, -1)
            for column, part in zip(self.domain.counted, parts, strict=True)
        }

    def denoised(self) -> dict[int, NDArray[np.float64]]:
        """Return the nearest tables that are not negative, with the right total.

        The total is the number of rows where it is public, otherwise the noisy total
        of the table, at least 1. A table without a positive count becomes uniform.
        """
        denoised = {}
        for column, table in self.tables.items():
            total = float(self.n_rows or max(1, table.sum()))
            # Equal counts have the nearest table that is uniform.
            counts = table.ravel() * float(table.max() > 0)
            denoised[column] = nearest_on_simplex(counts, total).reshape(table.shape)
        return denoised

    def class_shares(self) -> NDArray[np.float64]:
        """Estimate the shares of the classes, equal if counts are not by class."""
        if not self.by_class:
            return np.full(self.n_classes, 1 / self.n_classes)
        tables = self.denoised().values()
        return np.mean([table.sum(axis=1) / table.sum() for table in tables], axis=0)

    def draw(self, n_rows: int, seed: int, *, equal_classes: bool) -> SyntheticRows:
        """Draw rows: a class, then the cell of each column by class.

        Columns are independent, given the class. All classes are equally probable, or
        as probable as in the private rows.
        """
        random_state = np.random.RandomState(seed)
        shares = None if equal_classes else self.class_shares()
        classes = random_state.choice(self.n_classes, size=n_rows, p=shares)
        labels = classes if self.by_class else np.zeros_like(classes)
        denoised = self.denoised()
        cells = []
        for column in range(len(self.domain.cells)):
            if column not in denoised:
                cells.append(np.zeros(n_rows, dtype=np.intp))
                continue
            table = denoised[column]
            # A class without any mass takes the sums over classes.
            table = np.where(
                table.sum(axis=1, keepdims=True) > 0, table, table.sum(axis=0)
            )
            upper = np.cumsum(table, axis=1)
            place = random_state.random_sample(n_rows) * upper[labels, -1]
            found = np.empty(n_rows, dtype=np.intp)
            for label, bounds in enumerate(upper):
                of_class = labels == label
                found[of_class] = np.searchsorted(bounds, place[of_class], side="right")
            cells.append(np.minimum(found, table.shape[1] - 1))
        rows = self.domain.rows(cells, random_state)
        if not self.by_class:
            return SyntheticRows(rows, None)
        return SyntheticRows(rows, classes)


def count_cells(
    domain: Domain, X: Table, codes: NDArray[np.intp], n_classes: int, *, by_class: bool
) -> NDArray[np.int64]:
    """Count rows by column, class and cell, all tables concatenated. Sensitive.

    A row with a class index of -1 counts nowhere, and a value without a cell in no cell
    of its column: each row has at most one count in each table.
    """
    n_labels = n_classes if by_class else 1
    # One more label, and a cell before the first, for what counts nowhere.
    labels = np.where(codes < 0, n_labels, codes if by_class else 0)
    tables = []
    for column in domain.counted:
        shape = n_labels + 1, domain.cells[column].n_cells + 1
        index = labels * shape[1] + domain.cell_of(X, column) + 1
        table = np.bincount(index, minlength=shape[0] * shape[1]).reshape(shape)
        tables.append(table[:-1, 1:].ravel())
    return np.concatenate(tables).astype(np.int64)


def nearest_on_simplex(
    values: NDArray[np.floating], total: float
) -> NDArray[np.float64]:
    """Return the nearest values that are not negative and sum to a positive total.

    Along the last axis, by one threshold that is subtracted from each (Duchi,
    Shalev-Shwartz, Singer, Chandra 2008, Figure 1).
    """
    falling = -np.sort(-values, axis=-1)
    size = values.shape[-1]
    excess = (np.cumsum(falling, axis=-1) - total) / np.arange(1, size + 1)
    last = np.count_nonzero(falling > excess, axis=-1, keepdims=True) - 1
    return np.maximum(values - np.take_along_axis(excess, last, axis=-1), 0)
