"""Release of noisy counts, and the rows that are drawn from them."""

import warnings
from typing import Any, cast

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from sklearn_pate._base._release_plan import ReleasePlan
from sklearn_pate._base._split_inputs import PrivateInputs
from sklearn_pate._inputs._containers import Table, column_names
from sklearn_pate._marginals._domain import Domain
from sklearn_pate._marginals._noisy_tables import Marginals, SyntheticRows, count_cells
from sklearn_pate._marginals._private_marginals import PrivateMarginals
from sklearn_pate._teachers import one_row_of_groups
from sklearn_pate.accounting.ledger._fit_entry import FitEntry
from sklearn_pate.exceptions import LedgerError, PrivacyLeakWarning
from sklearn_pate.mechanisms._marginal_counts import MarginalCounts
from sklearn_pate.mechanisms._mechanism import Response
from sklearn_pate.mechanisms.noise._source import NoiseSource

__all__ = ["counted_rows", "draw_synthetic_rows", "release_counts", "tables_by_name"]

# Place of the counts among the stored answers of a fit.
_OF_COUNTS = -1
# Whole numbers that hold the hash of the drawn rows.
_N_WORDS = 2


def draw_synthetic_rows(
    synthetic: PrivateMarginals,
    private: PrivateInputs,
    classes: NDArray[Any],
    domain: Domain,
    release: ReleasePlan,
    entry: FitEntry | None,
    seed: int,
    *,
    equal_classes: bool,
) -> tuple[Marginals, SyntheticRows]:
    """Record the cost, release noisy counts, and draw rows from them.

    With a ledger entry, counts are stored before they are used, together with a hash of
    the rows, and never drawn twice on one entry.
    """
    mechanism = cast(MarginalCounts, release.counts)
    # The number of rows is public where rows are replaced.
    n_rows = private.n_rows if release.statement.relation == "replace-one" else None

    def read(
        counts: NDArray[np.int64],
    ) -> tuple[Marginals, SyntheticRows, NDArray[np.int64]]:
        marginals = Marginals(domain, len(classes), synthetic.by_class, counts, n_rows)
        rows = marginals.draw(synthetic.n_rows, seed, equal_classes=equal_classes)
        return marginals, rows, _hash(rows.X)

    stored = None if entry is None else entry.stored().get(_OF_COUNTS)
    if stored is None:
        X, codes = counted_rows(private, seed)
        exact = count_cells(domain, X, codes, len(classes), by_class=synthetic.by_class)
        if entry is not None:
            # Only on an entry without any draw: another one has its counts.
            entry.open(release.n_draws)
        marginals, rows, digest = read(release_counts(mechanism, exact))
        if entry is None:
            return marginals, rows
        drawn = np.concatenate([marginals.counts, digest])[np.newaxis]
        kept = entry.keep(
            np.array([_OF_COUNTS]), Response(np.array([-1]), 0, histograms=drawn)
        )
        stored = kept[_OF_COUNTS]
    content = np.asarray(stored.histogram)
    marginals, rows, digest = read(content[:-_N_WORDS])
    if not np.array_equal(digest, content[-_N_WORDS:]):
        raise LedgerError(
            "The rows drawn from the noisy counts in the ledger differ from those of "
            "the run that stored them, as numpy or a dataframe library has another "
            "version; its answers are about other rows. Use these versions again, or "
            "another random_state, which is a new fit with its own cost."
        )
    return marginals, rows


def release_counts(
    mechanism: MarginalCounts, exact: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Add noise to counts. A seed of the noise is not the one of answers."""
    seed = mechanism.noise_seed
    with warnings.catch_warnings():
        # The source of the other noise warns of the seed.
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        noise = NoiseSource(None if seed is None else [seed, 2])
    return mechanism.release(exact, noise)


def tables_by_name(marginals: Marginals) -> dict[Any, NDArray[np.int64]]:
    """Return the noisy tables by the name of their column, by number unless unique."""
    names = column_names(marginals.domain.no_rows)
    if names is None or len(set(names)) < len(names):
        return marginals.tables
    return {names[column]: table for column, table in marginals.tables.items()}


def counted_rows(private: PrivateInputs, seed: int) -> tuple[Table, NDArray[np.intp]]:
    """Return all rows and class indices, or those of one row of each group."""
    X, codes = private.X, private.codes
    if private.ids is None or private.group_of_row is None:
        return X, codes
    labelled = np.where(codes >= 0, private.group_of_row, -1)
    rows = one_row_of_groups(private.ids, labelled, seed)
    return _safe_indexing(X, rows), codes[rows]


def _hash(rows: Table) -> NDArray[np.int64]:
    """Hash the values of rows, in whatever container."""
    columns = [
        np.asarray(_safe_indexing(rows, column, axis=1)).tolist()
        for column in range(rows.shape[1])
    ]
    return np.frombuffer(bytes.fromhex(joblib.hash(columns)), dtype="<i8")
