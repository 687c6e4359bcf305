"""Noisy counts of private rows, and rows that are drawn from them."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from sklearn_pate._estimators._class_codes import log_odds
from sklearn_pate._estimators._isolation import MAX_SEED
from sklearn_pate._inputs._containers import Table, check_container, column_names
from sklearn_pate._inputs._features import as_array
from sklearn_pate._inputs._odd_values import is_frame
from sklearn_pate._synthetic._class_tables import (
    ClassTables,
    draw_cells,
    n_bins_for,
    spread_log_odds,
)
from sklearn_pate._synthetic._domain import OUTSIDE, Bins, Domain, read_domain
from sklearn_pate.accounting._value_checks import (
    Constraint,
    check_count,
    check_parameters,
    counted,
)
from sklearn_pate.mechanisms._noisy_sum import MarginalCounts

# Numbers outside a range are certain from so many standard deviations of noise on.
_SURE = 3.0
# Of "auto", where no number of rows or groups is public.
_N_BINS = 8


@dataclass(frozen=True)
class SyntheticRows:
    """Rows drawn from noisy counts, which may be published as these are."""

    X: Table
    #: Class index that each row was drawn for; None if counts are not by class.
    labels: NDArray[np.intp] | None
    #: Noisy counts that they were drawn from.
    marginals: "Marginals"

    def spread(
        self,
        probabilities: NDArray[np.float64],
        rows: NDArray[np.intp],
        *,
        adds_columns: bool,
    ) -> NDArray[np.float64]:
        """Estimate the spread of probabilities of private rows, by some of these rows.

        Of two classes that were counted. `adds_columns` is for log-odds that are a sum
        over columns, whose means by class follow from the counts.
        """
        if self.labels is None or self.marginals.n_classes != 2:
            return probabilities
        scores, of_second = log_odds(probabilities), self.labels[rows] == 1
        tables, gap = self.marginals.by_total, None
        if adds_columns and of_second.any() and not of_second.all():
            gap = scores[of_second].mean() - scores[~of_second].mean()
            gap *= tables.signal
        second = expit(spread_log_odds(scores, tables.shares[1], gap))
        return np.column_stack([1 - second, second])


@dataclass(frozen=True)
class Marginals:
    """Tables of noisy counts, one for each column with more than one cell.

    They may be published, at the cost of their release.
    """

    domain: Domain
    n_classes: int
    #: Whether counts are by class.
    by_class: bool
    #: Noisy counts, as `count_cells` orders them.
    counts: NDArray[np.int64]
    #: Public number of rows, None where it is not public.
    n_rows: int | None
    #: Scale of the noise on each count.
    sigma: float

    @property
    def n_labels(self) -> int:
        """Number of rows of each table."""
        return self.n_classes if self.by_class else 1

    @property
    def names(self) -> list[Any]:
        """List of columns with a table: names, or numbers if there are no names."""
        names = column_names(self.domain.no_rows) or range(len(self.domain.cells))
        return [names[column] for column in self.domain.counted]

    @property
    def outside(self) -> NDArray[np.int64]:
        """Noisy counts by OUTSIDE, of shape (n_tables, n_labels, 4)."""
        shape = len(self.domain.counted), self.n_labels, len(OUTSIDE)
        return self.counts[-math.prod(shape) :].reshape(shape)

    @property
    def tables(self) -> dict[int, NDArray[np.int64]]:
        """Noisy counts by column number, of shape (n_classes or 1, n_cells).

        Numbers outside a range count in its first and last bin, unless there are no
        more than noise may explain.
        """
        outside = np.where(self.outside > _SURE * self.sigma, self.outside, 0)
        tables, start = {}, 0
        for column, (_, below, above, at_low) in zip(
            self.domain.counted, outside.swapaxes(1, 2), strict=True
        ):
            cells = self.domain.cells[column]
            end = start + self.n_labels * cells.n_cells
            table = self.counts[start:end].reshape(self.n_labels, -1).copy()
            if isinstance(cells, Bins):
                table[:, 0] += below + at_low
                table[:, len(cells.edges) - 2] += above
            tables[column], start = table, end
        return tables

    @cached_property
    def by_total(self) -> ClassTables:
        """Nearest tables that are not negative, with one total for each class.

        Together, their totals are the number of rows where it is public, otherwise the
        noisy one, at least 1.
        """
        return ClassTables.of_counts([*self.tables.values()], self.sigma, self.n_rows)

    def class_shares(self) -> NDArray[np.float64]:
        """Estimate the shares of the classes, equal if counts are not by class."""
        if not self.by_class:
            return np.full(self.n_classes, 1 / self.n_classes)
        return self.by_total.shares

    def draw(self, n_rows: int, seed: int, *, equal_classes: bool) -> SyntheticRows:
        """Draw rows: a class, then the cell of each column by class.

        Columns are independent, given the class. All classes are equally probable, or
        as probable as in the private rows.
        """
        random_state = np.random.RandomState(seed)
        shares = None if equal_classes else self.class_shares()
        classes = random_state.choice(self.n_classes, size=n_rows, p=shares)
        labels = classes if self.by_class else np.zeros_like(classes)
        tables = dict(zip(self.domain.counted, self.by_total.tables, strict=True))
        cells = [
            draw_cells(tables[column], labels, random_state)
            if column in tables
            else np.zeros(n_rows, dtype=np.intp)
            for column in range(len(self.domain.cells))
        ]
        rows = self.domain.rows(cells, random_state)
        if not self.by_class:
            return SyntheticRows(rows, None, self)
        return SyntheticRows(rows, classes, self)


def count_cells(
    domain: Domain, X: Table, codes: NDArray[np.intp], n_classes: int, *, by_class: bool
) -> NDArray[np.int64]:
    """Count rows by column, class and cell, all tables concatenated. Sensitive.

    Behind the tables are the counts of values outside the domain. A row with a class
    index of -1 counts nowhere: each row has at most one count for each column.
    """
    n_labels = n_classes if by_class else 1
    # One more label for what counts nowhere.
    labels = np.where(codes < 0, n_labels, codes if by_class else 0)
    tables, outside = [], []
    for column in domain.counted:
        n_cells = domain.cells[column].n_cells
        shape = n_labels + 1, n_cells + len(OUTSIDE)
        index = labels * shape[1] + domain.counted_in(X, column)
        table = np.bincount(index, minlength=shape[0] * shape[1]).reshape(shape)
        tables.append(table[:-1, :n_cells].ravel())
        outside.append(table[:-1, n_cells:])
    return np.concatenate([*tables, np.ravel(outside)]).astype(np.int64)


class PrivateMarginals(BaseEstimator):
    """Rows drawn from noisy counts of the private rows, in place of public rows.

    A fit with ``synthetic=PrivateMarginals(domain)`` releases two parts. The first part
    is noisy counts of the values of each column in each class. The second part is noisy
    answers or a model, computed with rows drawn from these counts. Both parts share
    `epsilon`, one privacy statement and one ledger entry. As ``fit`` gets no public
    rows, Pipeline, GridSearchCV and CalibratedClassifierCV need no metadata routing.

    Parameters
    ----------
    domain : dict or None, default=None
        Possible values of each column: a list of values, a tuple (low, high) of
        numbers, or a tuple of increasing bin edges. **Write the domain without a look
        at private rows**: ``X[c].unique()`` or ``X[c].min()`` would reveal private
        values. The notes describe further forms of a domain.

    share : float or "auto", default="auto"
        Share of the privacy cost that the counts use, between 0 and 1: a share of the
        squared mu of Gaussian differential privacy. "auto" is 0.1. For
        :class:`~sklearn_pate.DPNewtonClassifier`, "auto" is 0.7, or 0.95 if the noise
        is too large for the coefficients.

    by_class : bool, default=True
        Whether to count each class separately, at no further privacy cost. Use False
        for many classes, as noise would exceed the counts of a class.

    n_bins : "auto" or int, default="auto"
        Number of bins of equal width between the bounds of a column. "auto" is between
        4 and 32, with more bins for more rows per class and for less noise. If the
        number of rows or groups is not public, "auto" is 8.

    n_rows : int, default=10000
        Number of rows to draw, at no privacy cost. Teachers label some of these rows. A
        student that accepts unlabelled rows is trained on all drawn rows.

    sigma : float, default=None
        Scale of the noise on each count, for a fit with ``epsilon=None``. With None,
        the noise is calibrated to `share` of the privacy cost.

    See Also
    --------
    sklearn_pate.learners.DPNaiveBayesClassifier : Classifier from noisy counts alone.

    Notes
    -----
    The domain of a column may be a dict with a key "values", "range" or "edges". If
    values may be missing, add ``"missing": True`` to the dict, or None to a list of
    values. Columns of a categorical type or of bool may be left out. If X is an array,
    the keys of `domain` are column numbers. One list or tuple holds for all columns.

    Undeclared values are not counted in ``marginals_``. A number outside the declared
    range counts in the first or last bin. Such values also have noisy counts of their
    own, and if these exceed 10 % of the rows, the fit warns after the release.

    Each column has one table of counts. Each row, or one row of each group, counts in
    at most one cell of each table. For d columns, the counts of neighbouring data sets
    thus differ by at most sqrt(2 d) in the Euclidean norm. Every cell, even an empty
    one, gets discrete Gaussian noise (Canonne, Kamath, Steinke 2020). The privacy cost
    does not depend on the number of cells. Rows are drawn from the nearest non-negative
    counts in which all columns have equal class totals. Each class is drawn equally
    often. Given the class, columns are drawn independently. The proof is on the page
    :doc:`/accounting`, section "Synthetic rows".

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_pate import PATEClassifier, PrivateMarginals
    >>> rng = np.random.RandomState(0)
    >>> X = rng.uniform(0, 10, size=(20_000, 3))
    >>> y = (X[:, 0] + X[:, 1] > 10).astype(int)
    >>> clf = PATEClassifier(
    ...     LogisticRegression(),
    ...     n_teachers=200,
    ...     n_queries=200,
    ...     mechanism="gnmax",
    ...     synthetic=PrivateMarginals((0, 10)),
    ... ).fit(X, y)
    >>> clf.privacy_spent_
    PrivacySpent(epsilon=1.000, delta=1e-05)
    >>> bool(clf.score(X, y) > 0.8)
    True
    """

    _constraints: ClassVar[dict[str, Constraint]] = {
        "share": Constraint.number(0, 1, closed="neither", also=("auto",)),
        "by_class": Constraint.boolean(),
        "n_bins": Constraint.count(2, also=("auto",)),
        "n_rows": Constraint.count(2),
        "sigma": Constraint.positive(also=(None,)),
    }

    def __init__(
        self,
        domain: Any = None,
        *,
        share: float | Literal["auto"] = "auto",
        by_class: bool = True,
        n_bins: int | Literal["auto"] = "auto",
        n_rows: int = 10_000,
        sigma: float | None = None,
    ) -> None:
        self.domain = domain
        self.share = share
        self.by_class = by_class
        self.n_bins = n_bins
        self.n_rows = n_rows
        self.sigma = sigma

    def draw_uniform(self, X: Any, n_rows: int = 5, random_state: Any = None) -> Table:
        """Draw uniform rows of the domain without counts, as a check before a fit.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_rows, n_features)
            Rows that have the columns and types of the private rows. No value is read.

        n_rows : int, default=5
            Number of rows.

        random_state : int, RandomState instance or None, default=None
            Seed of the random rows.

        Returns
        -------
        rows : array or dataframe of shape (n_rows, n_features)
            Rows with the container and the types of X. All values of a column are
            equally probable. If values may be missing, one value in ten is missing.

        Raises
        ------
        ValueError
            If a parameter or the domain cannot be used.
        """
        check_parameters(self)
        check_container("X", X)
        X = X if is_frame(X) or sp.issparse(X) else as_array(X)
        check_count("n_rows", n_rows)
        seed = check_random_state(random_state).randint(MAX_SEED)
        return self._read(X).uniform(n_rows, seed)

    def _read(
        self,
        X: Table,
        n_units: int | None = None,
        n_classes: int = 1,
        release: Callable[[int], MarginalCounts] | None = None,
    ) -> Domain:
        """Read the domain of a checked table, from no value of it.

        n_bins="auto" is by a public number of units, and by the `release` for a number
        of tables.
        """
        if self.n_bins != "auto":
            return read_domain(self.domain, X, self.n_bins)
        domain = read_domain(self.domain, X, _N_BINS)
        if n_units is None or release is None:
            return domain
        sigma = release(len(domain.counted)).sigma
        n_bins = n_bins_for(n_units, n_classes if self.by_class else 1, sigma)
        return read_domain(self.domain, X, n_bins)

    def _problems(self, X: Any) -> Iterator[str]:
        """Describe values outside of the declared domain. Sensitive."""
        X = X if is_frame(X) else as_array(X)
        domain = read_domain(self.domain, X, _N_BINS)
        names = column_names(X) or range(X.shape[1])
        for column in domain.counted:
            place = domain.counted_in(X, column) - domain.cells[column].n_cells
            for number, where in enumerate(OUTSIDE[:3]):  # the others count in cells
                n_values = int(np.count_nonzero(place == number))
                if n_values:
                    what = counted(n_values, "value")
                    yield f"Column {names[column]!r}: {what} {where}."

    def _mechanism(
        self,
        n_tables: int,
        *,
        epsilon: float | None,
        delta: float,
        add_remove: bool,
        share: float,
    ) -> MarginalCounts:
        """Return the release of the counts, with its noise; `share` is that of auto."""
        counts = MarginalCounts(self.sigma, n_tables=n_tables, add_remove=add_remove)
        if epsilon is not None and self.sigma is None:
            share = share if self.share == "auto" else self.share
            return counts.for_share(share, epsilon, delta)
        if self.sigma is None:
            raise ValueError(
                "epsilon=None needs PrivateMarginals(sigma=...), the noise on each "
                "count; set it, or give epsilon."
            )
        if epsilon is not None:
            raise ValueError(
                f"epsilon={epsilon!r} and PrivateMarginals(sigma={self.sigma!r}) both "
                "set the noise on counts; set sigma=None, or pass epsilon=None."
            )
        counts._check_ready()
        return counts
