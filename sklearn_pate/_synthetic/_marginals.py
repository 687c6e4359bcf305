"""Noisy counts of private rows, rows drawn from them, and their log-odds."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert
from scipy.optimize import brentq
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state

from sklearn_pate._estimators._isolation import MAX_SEED
from sklearn_pate._estimators._predictions import log_odds
from sklearn_pate._inputs._containers import Table, as_table, column_names
from sklearn_pate._synthetic._domain import OUTSIDE, Bins, Domain, cell_of, read_domain
from sklearn_pate.accounting._value_checks import (
    Constraint,
    check_count,
    check_parameters,
    counted,
)
from sklearn_pate.mechanisms._noisy_sum import MarginalCounts

# Added to each count, in units of the noise. Measured on Adult, Diabetes and KDDCup99.
_SMOOTHING = 0.5
# Counts by column do not show how far D columns repeat each other: the variance of
# summed log-odds within a class is 1 to D times that of independent columns. Without
# public rows, this times the square root of D is assumed.
_DEPENDENCE = 0.67
_N_DRAWN, _N_REPEATS = 4000, 6
# Squared number of bins for each unit of a class, with noise of 1 on each count.
_UNITS_OF_BINS = 0.3
# Largest factor by which log-odds are stretched; those of a probability of about 0.
_MOST_STRETCHED, _OF_ZERO = 4.0, -40.0
# The ranking of rows is kept, however much noise there is.
_LEAST_TEMPERATURE = 0.01
# Numbers outside a range are certain from so many standard deviations of noise on.
_SURE = 3.0
# Of "auto", where no number of rows or groups is public.
_N_BINS = 8


@dataclass(frozen=True)
class ClassTables:
    """Tables of counts by class that are not negative, of shape (n_classes, n_cells).

    A class has the same total in all tables.
    """

    tables: tuple[NDArray[np.float64], ...]
    #: Share of each class.
    shares: NDArray[np.float64]
    #: Standard deviation of the noise in a share.
    shares_std: float
    #: Scale of the noise on each count.
    sigma: float
    n_units: float

    @classmethod
    def of_counts(
        cls, noisy: Sequence[NDArray], sigma: float, n_units: float | None
    ) -> Self:
        """Return the nearest tables with one total for each class.

        `n_units` is the public number of units; None takes the noisy total, at least 1.
        """
        # Sums of rows have a variance of n_cells sigma^2. They are unbiased; sums of
        # what is made non-negative before are too large for rare classes.
        weights = np.array([1 / table.shape[1] for table in noisy])
        sums = np.array([table.sum(axis=1) for table in noisy], dtype=np.float64)
        # Not by BLAS, so that rows are drawn alike on every machine.
        found = np.sum(weights[:, np.newaxis] * sums, axis=0) / weights.sum()
        std = sigma / math.sqrt(weights.sum())
        if n_units is None:
            n_units = max(1.0, float(found.sum()))
        # Less is lost in the noise.
        shares = np.maximum(found, min(std, n_units))
        shares /= shares.sum()
        totals = n_units * shares[:, np.newaxis]
        tables = tuple(nearest_on_simplex(table, totals) for table in noisy)
        return cls(tables, shares, std / n_units, sigma, n_units)

    def log_odds(self) -> list[NDArray[np.float64]]:
        """Return the log probability of each cell by class, less the mean of classes.

        Half of the noise is added to each count. The mean is weighted by `shares`.
        """
        odds = []
        for table in self.tables:
            smoothed = table + _SMOOTHING * self.sigma
            of_cells = np.log(smoothed / smoothed.sum(axis=1, keepdims=True))
            odds.append(of_cells - self.shares @ of_cells)
        return odds

    def moment(self, odds: Sequence[NDArray[np.float64]]) -> float:
        """Return the mean of the own class's summed log-odds, less that of all classes.

        In these tables, by which it is exact, whatever else columns have in common.
        """
        total = 0.0
        for table, of_cells in zip(self.tables, odds, strict=True):
            joint = self.shares[:, np.newaxis] * table / table.sum(axis=1)[:, None]
            independent = np.outer(self.shares, joint.sum(axis=0))
            total += float(np.sum((joint - independent) * of_cells))
        return total

    @cached_property
    def signal(self) -> float:
        """Share of the moment of log-odds that does not come from the noise.

        Noise on these tables makes others, whose log-odds have one moment in these and
        a larger one in those; this is the ratio of the two.
        """
        random_state = np.random.RandomState(0)
        in_own = in_these = 0.0
        for _ in range(_N_REPEATS):
            noisy = [
                table + self.sigma * random_state.standard_normal(table.shape)
                for table in self.tables
            ]
            other = self.of_counts(noisy, self.sigma, self.n_units)
            of_other = other.log_odds()
            in_own += other.moment(of_other)
            in_these += self.moment(of_other)
        return min(1.0, max(0.0, in_these) / in_own) if in_own > 0 else 0.0

    def draw(
        self, n_rows: int, seed: int
    ) -> tuple[NDArray[np.intp], list[NDArray[np.intp]]]:
        """Draw classes, and the cells of columns that are independent, given these."""
        random_state = np.random.RandomState(seed)
        classes = random_state.choice(len(self.shares), size=n_rows, p=self.shares)
        return classes, [draw_cells(one, classes, random_state) for one in self.tables]

    def calibrated(
        self,
        odds: Sequence[NDArray[np.float64]],
        scores: NDArray[np.float64] | None = None,
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the temperature of summed log-odds, and an intercept for each class.

        Probabilities are softmax(temperature * summed + intercepts). `scores` are the
        summed log-odds of public rows. None takes rows drawn from the tables, and adds
        to their spread what columns may have in common.
        """
        if scores is None:
            classes, cells = self.draw(_N_DRAWN, seed=0)
            scores = summed(odds, cells)
            is_class = classes == np.arange(len(self.shares))[:, np.newaxis]
            n_drawn = np.maximum(is_class.sum(axis=1), 1)[:, np.newaxis]
            means = (is_class @ scores / n_drawn)[classes]
            variance = max(1.0, _DEPENDENCE * math.sqrt(len(self.tables)))
            scores = means + math.sqrt(variance) * (scores - means)
        return _fitted(scores, self.shares, self.signal * self.moment(odds))


def spread_log_odds(
    log_odds: NDArray[np.float64], share: float, gap: float | None
) -> NDArray[np.float64]:
    """Stretch and shift log-odds of drawn rows to those of private rows.

    Columns of drawn rows are independent, given the class, so that log-odds t vary less
    than those of private rows. For calibrated probabilities p, the mean is the `share`
    s of the second class, and cov(p, t) = s (1 - s) gap. Here `gap` is the difference
    between the means of t in both classes; None stretches nothing.
    """
    mean = log_odds.mean()

    def stretched(factor: float) -> NDArray[np.float64]:
        scores = factor * (log_odds - mean)
        shift = brentq(
            lambda shift: expit(scores + shift).mean() - share,
            _OF_ZERO - scores.max(),
            -_OF_ZERO - scores.min(),
        )
        return scores + shift

    def excess(factor: float) -> float:
        scores = stretched(factor)
        found = np.mean(expit(scores) * (scores - scores.mean()))
        return float(found - share * (1 - share) * cast(float, gap))

    if gap is None or excess(1.0) >= 0:
        return stretched(1.0)
    if excess(_MOST_STRETCHED) <= 0:
        return stretched(_MOST_STRETCHED)
    return stretched(float(brentq(excess, 1.0, _MOST_STRETCHED, xtol=1e-3)))


def summed(
    odds: Sequence[NDArray[np.float64]], cells: Sequence[NDArray[np.intp]]
) -> NDArray[np.float64]:
    """Sum the log-odds of the cells of rows; -1 is no cell, and counts as zero.

    What a row gets does not depend on other rows.
    """
    scores = np.zeros((len(cells[0]), len(odds[0])))
    for of_cells, of_rows in zip(odds, cells, strict=True):
        scores += np.where(of_rows[:, np.newaxis] >= 0, of_cells.T[of_rows], 0.0)
    return scores


def draw_cells(
    table: NDArray[np.float64],
    labels: NDArray[np.intp],
    random_state: np.random.RandomState,
) -> NDArray[np.intp]:
    """Draw a cell of a table for each label."""
    upper = np.cumsum(table, axis=1)
    place = random_state.random_sample(len(labels)) * upper[labels, -1]
    found = np.empty(len(labels), dtype=np.intp)
    for label, bounds in enumerate(upper):
        of_class = labels == label
        found[of_class] = np.searchsorted(bounds, place[of_class], side="right")
    return np.minimum(found, table.shape[1] - 1)


def nearest_on_simplex(
    values: NDArray, total: float | NDArray[np.float64]
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


def _fitted(
    scores: NDArray[np.float64], shares: NDArray[np.float64], moment: float
) -> tuple[float, NDArray[np.float64]]:
    """Return temperature and intercepts with a given moment and mean probabilities.

    The temperature is the one of the logistic regression whose moments of `scores` are
    those of the private rows, between _LEAST_TEMPERATURE and 1.
    """
    independent = (scores @ shares).mean()

    def intercepts(temperature: float) -> NDArray[np.float64]:
        found = np.log(shares)
        for _ in range(60):
            means = softmax(temperature * scores + found, axis=1).mean(axis=0)
            change = np.log(shares / np.maximum(means, 1e-12))
            found = found + change
            if np.max(np.abs(change)) < 1e-5:
                break
        return found

    def excess(temperature: float) -> float:
        probabilities = softmax(temperature * scores + intercepts(temperature), axis=1)
        return float(
            np.sum(probabilities * scores) / len(scores) - independent - moment
        )

    least, most = _LEAST_TEMPERATURE, 1.0
    if excess(least) >= 0:
        found = least
    elif excess(most) <= 0:
        found = most
    else:
        found = float(brentq(excess, least, most, xtol=1e-3))
    return found, intercepts(found)


def n_bins_for(n_units: int, n_classes: int, sigma: float) -> int:
    """Return the number of bins of a column for counts with a noise of sigma.

    A power of two between 4 and 32, by the number of units of a class and the noise.
    """
    expected = _UNITS_OF_BINS * n_units / (n_classes * sigma)
    return int(2 ** np.clip(np.round(np.log2(expected) / 2), 2, 5))


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
        :class:`~sklearn_pate.DPNewtonClassifier` with counts by class, a `basis` other
        than "rbf" and no `representation`, it is 0.7, or 0.95 if the noise is too large
        for the coefficients.

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
    counts in which all columns have equal class totals. Classes are drawn as often
    as the noisy counts say, and equally often for plain votes and nearest neighbours.
    Given the class, columns are drawn independently. The proof is Lemma 8 on the page
    :doc:`/proofs/counts`.

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
        X = as_table(X)
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
        X = as_table(X)
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


class LogOdds(TransformerMixin, BaseEstimator):
    """Log-odds of the classes by each column, and first their sum, as naive Bayes has.

    By released counts of private rows alone, so that it may be published as they are.

    Attributes
    ----------
    columns_ : list of int
        Columns with more than one cell.

    cells_ : list
        Their cells.

    log_odds_ : list of ndarray of shape (n_cells + 1, n_classes - 1)
        Log-odds by cell, in the basis of Helmert; zeros for a value without a cell.
    """

    __module__ = "sklearn_pate.stored_types"  # its name in files

    #: No bit of the result of a row depends on others.
    _keeps_rows_apart = ()

    @classmethod
    def of_counts(cls, marginals: Marginals) -> Self:
        """Return a fitted transformer.

        Parameters
        ----------
        marginals : Marginals
            Noisy counts by class.

        Returns
        -------
        transformer : LogOdds
            Fitted.
        """
        domain, H = marginals.domain, helmert(marginals.n_classes)
        transformer = cls()
        transformer.columns_ = domain.counted
        transformer.cells_ = [domain.cells[column] for column in domain.counted]
        transformer.log_odds_ = [
            np.vstack([(H @ odds).T, np.zeros(len(H))])
            for odds in marginals.by_total.log_odds()
        ]
        return transformer

    def fit(self, X: Any, y: None = None) -> Self:
        """Do nothing: the counts determine the transformer.

        Parameters
        ----------
        X : object
            Not used.

        y : None
            Not used.

        Returns
        -------
        self : LogOdds
            Unchanged.
        """
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Look up the log-odds of rows.

        A row is the same to the last bit in any position: values are looked up, and
        added in the order of the columns.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_rows, n_features)
            Rows with any values.

        Returns
        -------
        log_odds : ndarray of shape (n_rows, (1 + n_columns) * (n_classes - 1))
            The sum over columns, then each column.
        """
        parts = [
            odds[cell_of(X, column, cells)]
            for column, cells, odds in zip(
                self.columns_, self.cells_, self.log_odds_, strict=True
            )
        ]
        total = np.zeros_like(parts[0])
        for part in parts:
            total += part
        return np.hstack([total, *parts])
