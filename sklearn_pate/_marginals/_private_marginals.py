"""PrivateMarginals: rows drawn from noisy counts, in place of public rows."""

from typing import Any

import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from sklearn_pate._estimators._seeding import MAX_SEED
from sklearn_pate._inputs._checks import check_number
from sklearn_pate._inputs._containers import Table, check_container
from sklearn_pate._inputs._features import as_array
from sklearn_pate._inputs._odd_rows import is_frame
from sklearn_pate._marginals._domain import Domain, read_domain
from sklearn_pate.accounting._calibrate import check_positive
from sklearn_pate.accounting._value_checks import check_count
from sklearn_pate.mechanisms._marginal_counts import MarginalCounts

__all__ = ["PrivateMarginals"]


class PrivateMarginals(BaseEstimator):
    """Rows drawn from noisy counts of the private rows, in place of public rows.

    A fit with ``synthetic=PrivateMarginals(domain)`` is one release in two parts: the
    counts of each column's values by class, with noise; then answers, or a function,
    about rows that are drawn from them. Both are within `epsilon` of the fit, which
    has one privacy statement and one entry in a ledger. Nothing public is handed to
    ``fit``, so that Pipeline, GridSearchCV and CalibratedClassifierCV need no routing.

    Parameters
    ----------
    domain : dict or None, default=None
        What may be in each column, from general knowledge: a list of all its values, a
        tuple (low, high) of numbers, or a tuple of increasing edges of bins; or a dict
        with one of the keys "values", "range" and "edges", and ``"missing": True`` if
        values may be missing (None in a list says the same). Columns of a categorical
        type or of bool may be left out. For an array, keys are column numbers; one list
        or tuple holds for all columns. **It must be written without a look at
        private rows**: ``X[c].unique()`` or ``X[c].min()`` would reveal them. A value
        that is not declared counts nowhere, and a number outside its range in the first
        or last bin; neither raises an error or a warning. A misspelt list shows in
        ``marginals_`` of the fit, where its counts are noise alone.

    share : float, default=0.1
        Share of the privacy cost for the counts, between 0 and 1: of the squared mu of
        a Gaussian release of `epsilon`. The noise on answers grows by
        1 / sqrt(1 - share), the noise on counts falls with `share`.

    by_class : bool, default=True
        Whether counts are by class, which costs the same. False is for many classes,
        whose counts would be lost in the noise.

    n_bins : int, default=32
        Number of bins of equal width between the bounds of a column.

    n_rows : int, default=10000
        Number of rows that are drawn, which has no privacy cost. Queries are about some
        of them; a student that accepts unlabelled rows gets all.

    sigma : float, default=None
        Scale of the noise on each count, for a fit with ``epsilon=None``. None
        calibrates it to `share` of epsilon.

    See Also
    --------
    sklearn_pate.baselines.DPNaiveBayesClassifier : Classifier by such counts alone.

    Notes
    -----
    Each row, or one row of each group, counts in at most one cell of each table, so
    that the counts of neighbouring data sets differ by sqrt(2 d) at most for d columns.
    The noise is the discrete Gaussian (Canonne, Kamath, Steinke 2020), on empty cells,
    too. The number of cells does not enter the cost. Rows are drawn from the nearest
    counts that are not negative: a class, all equally often, then each column by
    itself, given the class. Proof: :doc:`/accounting`, "Synthetic rows".

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

    def __init__(
        self,
        domain: Any = None,
        *,
        share: float = 0.1,
        by_class: bool = True,
        n_bins: int = 32,
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
        """Draw rows of the domain without any counts, to look at before a fit.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_rows, n_features)
            Rows whose columns and types are read, and no value.

        n_rows : int, default=5
            Number of rows.

        random_state : int, RandomState instance or None, default=None
            Seeds the draw.

        Returns
        -------
        rows : array or dataframe of shape (n_rows, n_features)
            In the container and with the types of X. All values of the domain are
            equally probable in them; where some may be missing, one of ten is.

        Raises
        ------
        ValueError
            If a parameter or the domain cannot be used.
        """
        self._check()
        check_container("X", X)
        X = X if is_frame(X) or sp.issparse(X) else as_array(X)
        check_count("n_rows", n_rows)
        seed = check_random_state(random_state).randint(MAX_SEED)
        return self._read(X).uniform(n_rows, seed)

    def _check(self) -> None:
        """Raise ValueError for a parameter that no table can be used with."""
        check_number("share", self.share, 0, 1, closed="neither")
        if not isinstance(self.by_class, bool):
            raise ValueError(f"by_class={self.by_class!r} must be True or False.")
        check_count("n_bins", self.n_bins, 2)
        check_count("n_rows", self.n_rows, 2)
        if self.sigma is not None:
            check_positive("sigma", self.sigma)

    def _read(self, X: Table) -> Domain:
        """Read the domain of a checked table, from no value of it."""
        return read_domain(self.domain, X, self.n_bins)

    def _mechanism(
        self,
        n_tables: int,
        *,
        epsilon: float | None,
        delta: float,
        add_remove: bool,
        noise_seed: int | None,
    ) -> MarginalCounts:
        """Return the release of the counts, with its noise."""
        counts = MarginalCounts(
            self.sigma, n_tables=n_tables, add_remove=add_remove, noise_seed=noise_seed
        )
        if epsilon is not None and self.sigma is None:
            return counts.for_share(self.share, epsilon, delta)
        if self.sigma is None:
            raise ValueError(
                "epsilon=None needs PrivateMarginals(sigma=...), the noise on each "
                "count; set it, or give epsilon."
            )
        if epsilon is not None:
            raise ValueError(
                f"epsilon={epsilon!r} and PrivateMarginals(sigma={self.sigma!r}) both "
                "fix the noise on counts; leave sigma=None, or pass epsilon=None."
            )
        counts._check_ready()
        return counts
