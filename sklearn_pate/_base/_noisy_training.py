"""What classifiers have that are trained with noise, without teachers."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_consistent_length

from sklearn_pate._base._ledger_entry import charge_release
from sklearn_pate._base._parameter_checks import check_ledger
from sklearn_pate._base._split_inputs import (
    check_delta_is_small,
    check_target,
    receive_labels,
)
from sklearn_pate._base._unfitted import with_unfitted
from sklearn_pate._estimators._hooks import autologging_off
from sklearn_pate._inputs._labels import check_classes
from sklearn_pate.accounting._assumptions import (
    CHOSEN_BLINDLY,
    COLUMNS,
    SEEDED,
    Assumption,
)
from sklearn_pate.accounting._rdp import check_delta
from sklearn_pate.accounting._statement import PrivacySpent
from sklearn_pate.accounting.ledger._ledger import PrivacyLedger
from sklearn_pate.mechanisms.noise._source import NoiseSource, check_noise_seed
from sklearn_pate.publication._report_link import ReportLinkMixin

__all__ = ["Plan", "PrivateLearner", "Rows"]


@dataclass(frozen=True)
class Rows:
    """Private rows, checked.

    Parameters
    ----------
    X : ndarray of shape (n_rows, ...)
        Features.

    codes : ndarray of int of shape (n_rows,)
        Class indices, -1 for a label that is not in `classes`.

    classes : ndarray of shape (n_classes,)
        Labels.

    assumptions : tuple of Assumption
        What was taken to be public.
    """

    X: NDArray[Any]
    codes: NDArray[np.intp]
    classes: NDArray[Any]
    assumptions: tuple[Assumption, ...]


@dataclass(frozen=True)
class Plan:
    """What a fit will release, settled before any noise is drawn.

    Parameters
    ----------
    spent : PrivacySpent
        Its price, which depends on no private value.

    how : object
        What else the learner has settled.
    """

    spent: PrivacySpent
    how: Any


class PrivateLearner(ReportLinkMixin, ClassifierMixin, BaseEstimator, ABC):
    """Base of classifiers whose training adds noise: plan, charge, draw.

    A subclass provides `_check_parameters`, `_check_features`, `_plan` and `_learn`,
    and its ``__sklearn_tags__`` where these here are not its own.
    """

    delta: float
    classes: ArrayLike | None
    ledger: PrivacyLedger | None
    noise_seed: int | None

    classes_: NDArray[Any]
    privacy_spent_: PrivacySpent

    def fit(self, X: Any, y: Any) -> Self:
        """Train on private rows, with noise.

        Every call is a new release with its own price.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Private rows. What stands for values that are missing, infinite or no
            number is said in the notes of each class; none makes a fit fail.

        y : array-like of shape (n_rows,)
            Their labels.

        Returns
        -------
        self : PrivateLearner
            Fitted. It may be published, with ``privacy_spent_`` as its statement.

        Raises
        ------
        ValueError
            If a parameter or the data cannot work; nothing was released and no privacy
            was spent.

        BudgetExceededError
            If the price does not fit the budget of the `ledger`; nothing was released
            or charged.

        LedgerError
            If the file of the `ledger` cannot be read or written; nothing was released.

        RuntimeError
            If training failed after the price was charged, for rounding or a network
            that misbehaves. That it did may tell about private rows: keep it to
            yourself.

        Warns
        -----
        PrivacyLeakWarning
            If the noise is seeded, `delta` is too large for the number of rows, or a
            bound was read from the data.
        """
        rows, plan = self._settle(X, y)
        charge_release(self.ledger, plan.spent, (rows.X, rows.codes))
        with autologging_off():
            self._learn(rows, plan.how, NoiseSource(self.noise_seed))
        self.classes_ = rows.classes
        self.privacy_spent_ = plan.spent
        return self

    def plan_privacy(self, X: Any, y: Any) -> PrivacySpent:
        """State what a fit would cost, without fitting. Draws and charges nothing.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Private rows; their number and that of the features count.

        y : array-like of shape (n_rows,)
            Their labels; the label set counts, unless `classes` is given.

        Returns
        -------
        spent : PrivacySpent
            What ``privacy_spent_`` will be.

        Raises
        ------
        ValueError
            If a parameter or the data cannot work.
        """
        _, plan = clone(self)._settle(X, y)
        return plan.spent

    @abstractmethod
    def _check_parameters(self):
        """Raise ValueError for the first parameter of its own that cannot work."""

    @abstractmethod
    def _check_features(self, X, *, reset):
        """Return X as an array, and set or check ``n_features_in_``."""

    @abstractmethod
    def _plan(self, rows):
        """Return the Plan of a fit on these rows."""

    @abstractmethod
    def _learn(self, rows, how, noise):
        """Draw the noise and set what is learnt."""

    def _spends_delta(self):
        """Tell whether the statement has a delta."""
        return True

    def _settle(self, X, y):
        """Check everything, and settle what a fit on these rows will release."""
        self._check_parameters()
        check_delta(self.delta)
        if self.classes is not None:
            check_classes(self.classes)
        check_ledger(self.ledger)
        check_noise_seed(self.noise_seed)
        rows = self._receive(X, y)
        return rows, self._plan(rows)

    def _receive(self, X, y):
        check_target(self, y)
        X = self._check_features(X, reset=True)
        check_consistent_length(X, y)
        if self._spends_delta():
            check_delta_is_small(self.delta, len(X), "rows")
        classes, codes, label_set = receive_labels(self, y)
        return Rows(X, codes, classes, (label_set, COLUMNS))

    def _state(self, *, epsilon, delta, curve, relation, mechanism, assumptions):
        """Make the statement, which seeded noise voids."""
        if self.noise_seed is not None:
            epsilon = np.inf
            curve = curve.unbounded()
            assumptions = (*assumptions, SEEDED)
        return PrivacySpent(
            epsilon=float(epsilon),
            delta=float(delta),
            unit="row",
            relation=relation,
            release="model",
            mechanism=mechanism,
            n_teachers=None,
            n_queries=None,
            assumptions=(*assumptions, CHOSEN_BLINDLY),
            curve=curve,
        )

    def __getstate__(self):
        return with_unfitted(super().__getstate__(), self.get_params(deep=False))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.noise_seed is None
        # Noise drowns what a few dozen rows say.
        tags.classifier_tags.poor_score = True
        return tags
