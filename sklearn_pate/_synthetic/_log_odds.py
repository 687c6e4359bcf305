"""Transformer from the columns of a row to their log-odds, by noisy counts."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert
from sklearn.base import BaseEstimator, TransformerMixin

from sklearn_pate._synthetic._domain import cell_of
from sklearn_pate._synthetic._marginals import Marginals


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
