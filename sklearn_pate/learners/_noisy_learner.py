"""Base class of classifiers whose training adds noise: DP-ERM and DP-SGD."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length

from sklearn_pate._aggregation._checks import check_target
from sklearn_pate._aggregation._entry import record_release
from sklearn_pate._aggregation._rows import read_labels
from sklearn_pate._estimators._isolation import autologging_off
from sklearn_pate._inputs._labels import private_rows_by_position
from sklearn_pate._private import PrivateClassifier
from sklearn_pate.accounting._assumptions import (
    CHOSEN_BLINDLY,
    COLUMNS,
    SEEDED,
    Assumption,
)
from sklearn_pate.accounting._calibrate import check_delta_is_small
from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting._statement import PrivacySpent, state_cost
from sklearn_pate.mechanisms._mechanism import Mechanism
from sklearn_pate.mechanisms._noise import NoiseSource, as_drawn

Settings = TypeVar("Settings")


@dataclass(frozen=True)
class Rows:
    """Private rows, checked. Sensitive."""

    X: NDArray[Any]
    #: Class indices, -1 for a label that is not in `classes`.
    codes: NDArray[np.intp]
    classes: NDArray[Any]
    assumptions: tuple[Assumption, ...]


@dataclass(frozen=True)
class TrainingPlan(Generic[Settings]):
    """Plan of a fit: rows, statement, mechanism, and settings of the training."""

    rows: Rows
    statement: PrivacySpent
    mechanism: Mechanism
    settings: Settings


class NoisyTraining(PrivateClassifier, Generic[Settings]):
    """Base class of classifiers whose training adds noise, without teachers.

    A subclass provides `_check_features`, `_plan_training`, `_train` and
    `_published_model`.
    """

    classes_: NDArray[Any]

    @private_rows_by_position
    def fit(self, X: Any, y: Any) -> Self:
        """Train on private rows, with noise.

        Every call is a new release with its own cost.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Private rows. The notes of the class state how missing and infinite values
            are replaced; none makes a fit fail.

        y : array-like of shape (n_rows,)
            Their labels.

        Returns
        -------
        self : PrivateClassifier
            Fitted. It may be published, with ``privacy_spent_`` as its statement.

        Raises
        ------
        ValueError
            If a parameter or the data cannot be used. Nothing was released or charged.

        BudgetExceededError
            If the cost exceeds the budget of the `ledger`. Nothing was released or
            charged.

        LedgerError
            If the file of the `ledger` cannot be read or written. Nothing was released.

        RuntimeError
            If training failed after the cost was charged, because of rounding or an
            error of the network. Sensitive: it may depend on private rows.

        Warns
        -----
        PrivacyLeakWarning
            If the noise is seeded, `delta` is too large for the number of rows, or a
            bound was read from the data.
        """
        plan = self._plan(X, y)
        rows = plan.rows
        record_release(self.ledger, plan.statement, (rows.X, rows.codes))
        with autologging_off():
            # The privacy is spent on the next line: training draws the noise.
            self._train(rows, plan.settings, NoiseSource())
        self.classes_ = rows.classes
        self._set_release(plan.mechanism, plan.statement)
        return self

    @abstractmethod
    def _check_features(self, X: Any, *, reset: bool) -> NDArray[Any]:
        """Return X as an array, and set or check ``n_features_in_``."""

    @abstractmethod
    def _plan_training(self, rows: Rows) -> TrainingPlan[Settings]:
        """Calibrate the noise of a training on these rows, and state its cost."""

    @abstractmethod
    def _train(self, rows: Rows, settings: Settings, noise: NoiseSource) -> None:
        """Draw the noise, and set the fitted attributes."""

    def _spends_delta(self) -> bool:
        """Check whether the statement has a delta."""
        return True

    def _plan(self, X: Any, y: Any) -> TrainingPlan[Settings]:
        """Check parameters and data, and plan the release of a fit on these rows."""
        self._check_parameters()
        check_target(self, y)
        X = self._check_features(X, reset=True)
        check_consistent_length(X, y)
        if self._spends_delta():
            check_delta_is_small(self.delta, len(X), "rows")
        classes, codes, label_set = read_labels(self.classes, y)
        return self._plan_training(Rows(X, codes, classes, (label_set, COLUMNS)))

    def _state(
        self,
        mechanism: Mechanism,
        *,
        n_classes: int,
        curve: RdpCurve | None = None,
        epsilon: float | None = None,
        delta: float,
        assumptions: tuple[Assumption, ...],
    ) -> PrivacySpent:
        """Return the statement, with an infinite epsilon if the noise is seeded.

        `curve` and `epsilon` are those that the noise was calibrated to; None takes
        them from the mechanism.
        """
        cost = mechanism.cost(0, n_classes)
        if curve is not None:
            cost = replace(cost, curve=curve)
        cost, assumptions = as_drawn(cost, assumptions)
        if SEEDED in assumptions:
            epsilon = np.inf
        elif epsilon is None:
            epsilon = cost.epsilon(delta)
        if np.isinf(epsilon):
            cost = cost.unbounded()
        return state_cost(
            cost,
            delta,
            release="model",
            mechanism=mechanism.in_one_line(),
            assumptions=(*assumptions, CHOSEN_BLINDLY),
            epsilon=epsilon,
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # On a few dozen rows the noise exceeds the signal.
        tags.classifier_tags.poor_score = True
        return tags
