"""Base class of learners whose training adds noise, and features of their rows."""

import contextlib
import math
from abc import abstractmethod
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.utils import Tags, _safe_indexing

from sklearn_pate._aggregation._aggregation import (
    finite_features,
    represent,
    seconds_a_row,
    warn_if_slow,
)
from sklearn_pate._aggregation._design import is_given, is_table
from sklearn_pate._aggregation._entry import record_release
from sklearn_pate._estimators._isolation import autologging_off, quiet
from sklearn_pate._estimators._kinds import check_transformer, keeps_rows_apart
from sklearn_pate._inputs._containers import Table, as_table, is_frame
from sklearn_pate._inputs._features import (
    check_features,
    in_short,
    input_tags,
    read_public_rows,
)
from sklearn_pate._inputs._known_columns import (
    KnownColumns,
    warn_of_columns,
    warn_of_text,
)
from sklearn_pate._inputs._labels import known_classes, private_rows_by_position
from sklearn_pate._inputs._odd_values import finite_or_default, read_like_public
from sklearn_pate._private import PrivateClassifier
from sklearn_pate._teachers._private_rows import PrivateRows
from sklearn_pate.accounting._calibrate import check_delta_is_small
from sklearn_pate.accounting._rdp import RdpCurve
from sklearn_pate.accounting._statement import (
    CHOSEN_BLINDLY,
    COLUMNS,
    PUBLIC_REPRESENTATION,
    PUBLIC_ROWS,
    ROW_ALONE,
    SEEDED,
    Assumption,
    PrivacySpent,
    state_cost,
)
from sklearn_pate.mechanisms._noise import NoiseSource, as_drawn
from sklearn_pate.mechanisms._plurality import Mechanism
from sklearn_pate.publication._model_file import without_caches
from sklearn_pate.students import ImageRepresentation, TableRepresentation
from sklearn_pate.students._queries import numeric_features

# Number of public rows on which a representation is tried, and largest difference of
# features from those of all rows together, as a share of the largest feature.
_N_TRIED, _TOLERANCE = 8, 1e-3
# Seed of a representation, which reads public rows only.
_SEED = 0
Settings = TypeVar("Settings")


class RowFeatures:
    """Features that a representation, fitted on public rows, computes row by row.

    The representation is copied, so that the published one has had no private row.

    A matrix product of many rows is computed in blocks, and the last bits of the
    features of a row depend on its place in them: an added row changes hundreds of
    other rows, and more votes than the proof allows. So each array row is copied as
    float64 into the same memory and transformed there, by one thread; each row of a
    frame or sparse matrix is taken with the types of its columns. Only where
    `keeps_rows_apart`, all are transformed at once.

    A private row without finite features gets default features: an error would depend
    on that row.
    """

    def __init__(self, representation: Any) -> None:
        self._representation = deepcopy(representation)
        self._memory: NDArray[np.float64] | None = None

    def check(self, X_public: Any, features: NDArray[np.float64]) -> None:
        """Raise ValueError if public rows alone have other features than together.

        `features` are those of all rows of `X_public` together.
        """
        if self._representation is None or keeps_rows_apart(self._representation):
            return
        tried = np.unique(np.linspace(0, len(features) - 1, _N_TRIED).astype(int))
        try:
            with quiet(), np.errstate(all="ignore"):
                first = np.array([self._of_row(X_public, row) for row in tried])
                again = np.array([self._of_row(X_public, row) for row in tried[::-1]])
                seconds = seconds_a_row(partial(self._of_row, X_public), tried)
        except Exception as error:
            raise ValueError(
                f"representation={self._representation!r} cannot transform a single "
                "row of float64, as private rows require. Use another, or put a "
                "FunctionTransformer that casts the row in front of it. Its error on "
                f"a public row was {type(error).__name__}: {error}"
            ) from error
        together = features[tried]
        size = np.abs(features).max(initial=0.0)
        if (
            first.shape != together.shape
            or not np.array_equal(first, again[::-1])
            or not np.allclose(first, together, rtol=0, atol=_TOLERANCE * size)
        ):
            raise ValueError(
                f"representation={self._representation!r} computes features of a "
                "public row that depend on other rows or earlier calls; use one that "
                "computes the same features of a row each time, from that row alone."
            )
        warn_if_slow(self._representation, seconds)

    def of_rows(
        self, X: Any, rows: NDArray[np.intp], default: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Compute the features of private rows, or `default` where they are not finite.

        `rows` are indices; `default` has shape (n_dimensions,). Sensitive.
        """
        with quiet(), np.errstate(all="ignore"):
            if self._representation is None:
                # Each number is converted independently of others.
                with contextlib.suppress(Exception):
                    features = np.asarray(_safe_indexing(X, rows), dtype=np.float64)
                    return finite_or_default(features.reshape(len(rows), -1), default)
            if keeps_rows_apart(self._representation):
                return self._representation.transform(_safe_indexing(X, rows))
            return np.array([self._or_default(X, row, default) for row in rows])

    def _or_default(
        self, X: Any, row: int, default: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Compute the features of a row, or return the default."""
        try:
            features = self._of_row(X, row)
        except Exception:
            return default
        return features if features.shape == default.shape else default

    def _of_row(self, X: Any, row: int) -> NDArray[np.float64]:
        """Compute the finite features of one row."""
        alone = self._alone(X, row)
        if self._representation is not None:
            alone = self._representation.transform(alone)
        features = numeric_features(alone)
        if features is None or len(features) != 1:
            raise ValueError("the row has no finite numbers as features")
        # A transformer may return the memory that it was given.
        return features[0].copy()

    def _alone(self, X: Any, row: int) -> Any:
        """Return one row as a table."""
        if is_frame(X) or not isinstance(X, np.ndarray) or X.dtype.kind not in "biuf":
            return _safe_indexing(X, [int(row)])  # polars takes no other
        if self._memory is None:
            self._memory = np.empty((1, *X.shape[1:]))
        self._memory[0] = X[row]
        return self._memory


@dataclass(frozen=True)
class Rows:
    """Private rows, checked. Sensitive."""

    X: NDArray[Any]
    #: Class indices, -1 for a label that is not in `classes`.
    codes: NDArray[np.intp]
    classes: NDArray[Any]
    assumptions: tuple[Assumption, ...]
    #: The rows before they were represented.
    given: Table
    #: What computed X, fitted on public rows; None for the columns themselves.
    representation: BaseEstimator | None = None
    #: Public rows, and in this representation.
    X_public: Table | None = None
    public: NDArray[np.float64] | None = None


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
    `_predictor`.
    """

    #: Whether missing and infinite values are replaced, not refused.
    _reads_any_value: ClassVar[bool] = False
    representation: Any = None
    representation_: BaseEstimator
    classes_: NDArray[Any]

    @private_rows_by_position
    def fit(self, X: Any, y: Any, *, X_public: Any = None) -> Self:
        """Train on private rows, with noise.

        Every call of `fit` is a new release with its own privacy cost.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Private rows. Missing and infinite values are replaced as the notes of the
            class describe, and never make a fit fail. With a `representation`, X may be
            a dataframe.

        y : array-like of shape (n_rows,)
            Labels of the private rows. `check_data` lists labels that are no class.

        X_public : PublicData or {array-like, sparse matrix, dataframe} of shape \
                (n_public, n_features), default=None
            Public rows for the `representation`, without labels. The people in these
            rows are not protected.

        Returns
        -------
        self : PrivateClassifier
            The fitted classifier. May be published, with ``privacy_spent_`` as privacy
            statement.

        Raises
        ------
        ValueError
            If a parameter or the data cannot be used. Nothing was released or charged.

        BudgetExceededError
            If the privacy cost exceeds the budget of the `ledger`. Nothing was released
            or charged.

        LedgerError
            If the file of the `ledger` cannot be read or written. Nothing was released.

        RuntimeError
            If training failed after the privacy cost was charged, because of rounding
            or an error of the network. The error message is sensitive, as the message
            may depend on private rows.

        Warns
        -----
        PrivacyLeakWarning
            If the noise is seeded, `delta` or `epsilon` is too large for privacy, or a
            bound was read from private data. Also for a second fit of the same rows
            without a ledger.

        PrivacyUtilityWarning
            If the noise is too large for the model, by public or released numbers.
        """
        plan = self._plan(X, y, X_public=X_public)
        rows = plan.rows
        dropped = self._find_problems(X, y, X_public, None, self.classes)
        noise = NoiseSource().as_stated(plan.statement.assumptions)
        record_release(self.ledger, plan.statement, (rows.given, rows.codes))
        with autologging_off():
            # The privacy is spent on the next line: training draws the noise.
            self._train(rows, plan.settings, noise)
        self.classes_ = rows.classes
        self._set_applicable(representation_=rows.representation)
        self._known_columns = (
            KnownColumns.of_numbers(math.prod(rows.X.shape[1:]))
            if rows.X_public is None
            else KnownColumns.of(rows.X_public, rows.representation)
        )
        self._set_release(plan.mechanism, plan.statement)
        self.data_problems_ = dropped
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

    @abstractmethod
    def _predictor(self) -> BaseEstimator:
        """Return the model that predicts class indices, by columns or features."""

    def _plan(self, X: Any, y: Any, *, X_public: Any = None) -> TrainingPlan[Settings]:
        """Check parameters and data, and plan the release of a fit on these rows."""
        self._check_parameters()
        self._check_public_rows_are_needed(X_public)
        if X_public is None:
            X = given = self._check_features(X, reset=True)
        else:
            given = check_features(self, X, reset=True, private=True)
            X_public = read_public_rows(self, X_public, given, X)
            X = read_like_public(given, X_public)
        read = PrivateRows.read(X, y, classes=known_classes(self.classes))
        if self._spends_delta():
            check_delta_is_small(self.delta, read.n_rows, "rows")
        rows = Rows(X, read.codes, read.classes, (read.label_set, COLUMNS), given)
        if X_public is not None:
            rows = self._represented(rows, X_public)
        return self._plan_training(rows)

    def _check_public_rows_are_needed(self, X_public: Any) -> None:
        """Raise unless public rows are given for a representation, and only then."""
        if X_public is not None and self.representation is None:
            raise ValueError(
                "representation=None does not read X_public; set "
                "representation='auto', or leave X_public out."
            )
        if X_public is None and self.representation is not None:
            raise ValueError(
                f"representation={in_short(self.representation)} is fitted on public "
                "rows; pass fit(..., X_public=PublicData(X_public))."
            )

    def _represented(self, rows: Rows, X_public: Table) -> Rows:
        """Represent private rows, each on its own, by what public rows show."""
        warn_of_text(X_public)
        chosen = self._chosen_representation(X_public)
        if not is_given(self.representation) and is_table(X_public):
            chosen.n_components = self._n_components(rows)
        fitted, represented = represent(chosen, X_public, _SEED)
        features, of_row = finite_features(chosen, represented), RowFeatures(fitted)
        of_row.check(X_public, features)
        every = np.arange(len(rows.codes))
        # Zeros for a row without finite features.
        X = of_row.of_rows(rows.X, every, np.zeros(features.shape[1]))
        assumptions = [*rows.assumptions, PUBLIC_ROWS]
        if is_given(self.representation):
            assumptions.append(PUBLIC_REPRESENTATION)
        if not keeps_rows_apart(fitted):
            assumptions.append(ROW_ALONE)
        return replace(
            rows,
            X=self._as_numbers(X),
            assumptions=tuple(assumptions),
            representation=fitted,
            X_public=X_public,
            public=features,
        )

    def _chosen_representation(self, X_public: Table | None = None) -> Any:
        """Return the representation, None for the columns."""
        if self.representation is None or is_given(self.representation):
            return self.representation
        if X_public is None or sp.issparse(X_public):
            return TableRepresentation()
        if is_table(X_public):
            return TableRepresentation(basis="rbf")
        return ImageRepresentation()

    def _n_components(self, rows: Rows) -> int | Literal["auto"]:
        """Return the number of features of "auto" for a table, by public numbers."""
        return "auto"

    def _readers(self) -> dict[str, Any]:
        """Return the estimator that gets public rows, by its parameter."""
        return {"representation": self._chosen_representation()}

    def _as_numbers(self, features: NDArray[np.float64]) -> NDArray[Any]:
        """Return features as the type of numbers that the training takes."""
        return features

    def _features(self, X: Any) -> NDArray[Any]:
        """Return rows to predict as numbers, by the representation of the fit."""
        if not hasattr(self, "representation_"):
            features = self._check_features(X, reset=False)
            warn_of_columns(self, as_table(X))
            return features
        X = check_features(self, X, reset=False, private=True)
        warn_of_columns(self, X)
        return self._as_numbers(self.representation_.transform(X))

    def _published_model(self) -> BaseEstimator:
        predictor = self._predictor()
        if not hasattr(self, "representation_"):
            for name in ("n_features_in_", "feature_names_in_", "_column_names"):
                if hasattr(self, name):
                    setattr(predictor, name, deepcopy(getattr(self, name)))
            return predictor
        return without_caches(make_pipeline(self.representation_, predictor))

    def _check_parameters(self) -> None:
        check_transformer(self._chosen_representation())
        super()._check_parameters()

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
        tags.input_tags.allow_nan = self._reads_any_value
        if self.representation is not None:
            first = input_tags(self._chosen_representation())
            tags.input_tags.sparse = first.sparse
            tags.input_tags.allow_nan = first.allow_nan
        return tags
