"""Public rows as teachers, query strategies and public bases see them."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from time import thread_time
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, check_random_state

from sklearn_pate._estimators._isolation import seeded_clone, seeded_globals
from sklearn_pate._inputs._containers import Table
from sklearn_pate._inputs._features import cause_of, in_short, quotes_values, remedy_of
from sklearn_pate.exceptions import warn_user
from sklearn_pate.students import TableRepresentation
from sklearn_pate.students._basis import ScoreBasis, kept_variance
from sklearn_pate.students._queries import numeric_features, standardized_features

# Seconds in which a transformer is expected to transform one row.
_SLOW = 0.005
# More public rows hardly improve a mean over rows.
_MOST_ROWS = 10_000


@dataclass(frozen=True)
class ScoredRows:
    """Public rows that are scored, and the basis of score models."""

    rows: NDArray[np.intp]
    X_for_teachers: Table
    #: What teachers see, fitted on public rows; None for the columns.
    representation: BaseEstimator | None
    #: What the basis sees, fitted on public rows.
    of_basis: BaseEstimator
    basis: ScoreBasis
    #: Values of the basis, shape (n_rows, n_coordinates).
    values: NDArray[np.float64]
    #: Share of the variance of the represented rows that the basis keeps.
    kept_variance: float = 1.0


def score_rows(
    X_public: Table,
    representation: BaseEstimator | None,
    *,
    max_coordinates: int,
    rbf: bool,
    seed: int,
) -> ScoredRows:
    """Choose the public rows that are scored, and compute the basis.

    `representation` is for teachers; without one, the basis has its own. Raises
    ValueError if the public rows do not become finite numbers.
    """
    n_public = X_public.shape[0]
    rows = np.arange(n_public)
    if n_public > _MOST_ROWS:
        chosen = check_random_state(seed).choice(n_public, _MOST_ROWS, replace=False)
        rows = np.sort(chosen)
    fitted, X_for_teachers = represent(representation, X_public, seed)
    of_basis, represented = fitted, X_for_teachers
    if representation is None:
        of_basis, represented = represent(TableRepresentation(), X_public, seed)
    features = finite_features(representation, represented)
    basis = ScoreBasis(max_coordinates, rbf, seed).fit(features[rows])
    values = basis.transform(features[rows])
    return ScoredRows(
        rows,
        _safe_indexing(X_for_teachers, rows),
        fitted,
        of_basis,
        basis,
        values,
        kept_variance(features[rows], values),
    )


def rows_in_order(
    X_public: Table, representation: BaseEstimator, max_coordinates: int
) -> ScoredRows:
    """Compute a basis of represented columns in their order, without a choice."""
    features = representation.transform(X_public)
    basis = ScoreBasis(max_coordinates, rbf=False, in_order=True).fit(features)
    rows, values = np.arange(len(features)), basis.transform(features)
    return ScoredRows(rows, X_public, representation, representation, basis, values)


def represent(
    representation: BaseEstimator | None, X_public: Table, seed: int
) -> tuple[BaseEstimator | None, Table]:
    """Fit a clone of a representation on public rows, and apply it to them."""
    if representation is None:
        return None, X_public
    fitted = seeded_clone(representation, seed)
    try:
        with seeded_globals(seed):
            fitted.fit(deepcopy(X_public), None)  # some insist on a y
        return fitted, fitted.transform(deepcopy(X_public))
    except (TypeError, ValueError) as error:
        failure = f"{type(error).__name__}: {error}"
        chained = None if quotes_values(failure) else error
        remedy = remedy_of(failure, X_public, "representation", representation)
        raise ValueError(
            f"representation={in_short(representation)} fails on the public rows: "
            f"{cause_of(failure)}. {remedy}".rstrip()
        ) from chained


def finite_features(representation: Any, represented: Any) -> NDArray[np.float64]:
    """Return represented public rows as numbers, or raise ValueError."""
    if sp.issparse(represented):
        raise ValueError(
            f"representation={representation!r} makes a sparse matrix of the public "
            "rows; put a TruncatedSVD behind it."
        )
    features = numeric_features(represented)
    if features is None:
        raise ValueError(
            f"representation={representation!r} does not return finite numbers for the "
            "public rows; pass another transformer."
        )
    return features


def seconds_a_row(transform: Callable[[Any], object], rows: Iterable[Any]) -> float:
    """Measure the least processor time that a public row takes.

    Other threads, other processes and the further work of a first call do not count.
    """

    def seconds(row: Any) -> float:
        start = thread_time()
        transform(row)
        return thread_time() - start

    return min(map(seconds, rows))


def warn_if_slow(representation: Any, seconds_a_row: float) -> None:
    """Warn, from public rows, of a transformer that is slow for one row at a time."""
    if seconds_a_row > _SLOW:
        warn_user(
            f"representation={type(representation).__name__}(...) transforms private "
            f"rows one at a time and takes {1000 * seconds_a_row:.0f} ms each: "
            f"{1000 * seconds_a_row:.0f} s for a thousand rows. A TableRepresentation "
            "is faster."
        )


def comparable(
    representation: BaseEstimator | None,
    X_public: Table,
    X_for_teachers: Table,
    seed: int,
) -> NDArray[np.float64] | None:
    """Return public rows as numbers that a query strategy can compare.

    None for text, missing values and sparse matrices.
    """
    if representation is None:
        return standardized_features(X_public, seed)
    return numeric_features(X_for_teachers)
