"""Base class of private linear classifiers: bounds, noisy minimisers, prediction."""

import math
from abc import abstractmethod
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from sklearn_pate._base._argument_checks import check_epsilon_is_small
from sklearn_pate._base._noisy_training import NoisyTraining, Rows, TrainingPlan
from sklearn_pate._inputs._features import check_numbers
from sklearn_pate.accounting._assumptions import BOUNDS, FLOATING_POINT, NORM_READ
from sklearn_pate.accounting._calibrate import check_positive
from sklearn_pate.baselines.linear._norm_bounds import Bounds, read_feature_bounds
from sklearn_pate.baselines.linear._perturbation import Task, plan_perturbation
from sklearn_pate.baselines.linear._solver import MarginLoss, minimise
from sklearn_pate.exceptions import PrivacyLeakWarning, warn_user
from sklearn_pate.mechanisms._noisy_objective import (
    METHODS,
    TOLERANCE,
    NoisyObjective,
)
from sklearn_pate.mechanisms.noise._continuous import on_lattice
from sklearn_pate.mechanisms.noise._source import NoiseSource

__all__ = ["PrivateLinearClassifier"]


# Fitted attributes that predictions depend on.
_PREDICTS_BY = (
    "coef_",
    "intercept_",
    "_bounds",
    "n_features_in_",
    "feature_names_in_",
    "_column_names",
)


@dataclass(frozen=True)
class LinearPlan:
    """Noise and bounds of a training."""

    noise: NoisyObjective
    bounds: Bounds


class PrivateLinearClassifier(NoisyTraining[LinearPlan]):
    """Base class of linear classifiers that are noisy minimisers of a convex loss.

    A subclass has the parameters of
    :class:`~sklearn_pate.baselines.DPLogisticRegression`, and provides `_loss`.
    """

    #: Missing and infinite values are replaced, not refused.
    _reads_any_value = True

    method: Literal["output", "objective", "gaussian"]
    C: float | Literal["auto"]
    epsilon: float
    data_norm: float | None
    feature_bounds: tuple[ArrayLike, ArrayLike] | None
    fit_intercept: bool
    intercept_scaling: float

    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    data_norm_: float
    _bounds: Bounds

    @abstractmethod
    def _loss(self) -> MarginLoss:
        """Return the loss of a row."""

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score classes.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows. They are brought within the bounds as in `fit`.

        Returns
        -------
        scores : ndarray of shape (n_rows, n_classes), or (n_rows,) with two classes
            A column for each of ``classes_``; with two, that of the second one. For
            rows within the bounds, ``X @ coef_.T + intercept_``.
        """
        check_is_fitted(self, "coef_")
        X = self._check_features(X, reset=False)
        scores = self._bounds.scores(X, self.coef_, self.intercept_)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows. They are brought within the bounds as in `fit`.

        Returns
        -------
        y : ndarray of shape (n_rows,)
            Labels out of ``classes_``.
        """
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def _check_parameters(self) -> None:
        if self.method not in METHODS:
            raise ValueError(
                f"method={self.method!r} is unknown; use one of {[*METHODS]}."
            )
        if not (isinstance(self.C, str) and self.C == "auto"):
            check_positive("C", self.C)
        check_epsilon_is_small(self.epsilon)
        if self.data_norm is not None:
            check_positive("data_norm", self.data_norm)
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise ValueError(
                f"fit_intercept={self.fit_intercept!r} must be True or False."
            )
        check_positive("intercept_scaling", self.intercept_scaling)
        super()._check_parameters()

    def _check_features(self, X: Any, *, reset: bool) -> NDArray[np.floating]:
        return check_numbers(self, X, reset=reset, dtype=np.float64)

    def _bounds_of(self, n_features: int, data_norm: float) -> Bounds:
        """Combine the parameters that bound rows."""
        low, width = read_feature_bounds(self.feature_bounds, n_features)
        bounds = Bounds(
            low=low,
            width=width,
            clips=self.feature_bounds is not None,
            norm=data_norm,
            constant=float(self.intercept_scaling) if self.fit_intercept else 0.0,
        )
        if not bounds.can_be_undone():
            raise ValueError(
                f"feature_bounds={self.feature_bounds!r} and data_norm={data_norm!r} "
                "are so small that weights overflow; scale the features."
            )
        return bounds

    def _plan_training(self, rows: Rows) -> TrainingPlan[LinearPlan]:
        n_rows, n_features = rows.X.shape
        n_classes = len(rows.classes)
        bounds = self._bounds_of(n_features, self._norm(rows.X))
        _check_memory(n_features)
        task = Task(
            learner=type(self).__name__,
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            curvature=self._loss().curvature,
            n_problems=1 if n_classes == 2 else n_classes,
            n_weights=n_features + int(self.fit_intercept),
            n_rows=n_rows,
        )
        perturbation = plan_perturbation(self.method, self.C, task)
        epsilon, bounded = perturbation.epsilon, BOUNDS
        if self._reads_norm():
            epsilon, bounded = np.inf, NORM_READ
        mechanism = perturbation.noise.set_params(noise_seed=self.noise_seed)
        spent = self._state(
            mechanism,
            perturbation.curve,
            n_classes=n_classes,
            epsilon=epsilon,
            delta=perturbation.delta,
            assumptions=(*rows.assumptions, bounded, FLOATING_POINT),
        )
        return TrainingPlan(rows, spent, mechanism, LinearPlan(mechanism, bounds))

    def _spends_delta(self) -> bool:
        return self.method == "gaussian"

    def _reads_norm(self) -> bool:
        """Check for a bound that is read from private rows."""
        return self.data_norm is None and self.feature_bounds is None

    def _norm(self, X: NDArray[np.float64]) -> float:
        """Return the bound of the rows' norm, read from the rows if none is given."""
        if self.data_norm is not None:
            return float(self.data_norm)
        if self.feature_bounds is not None:
            return math.sqrt(X.shape[1])
        warn_user(
            "Neither data_norm nor feature_bounds is given: the longest private row "
            "determines the noise, and nothing is private. Pass bounds that are known "
            "without reading X.",
            PrivacyLeakWarning,
        )
        with np.errstate(over="ignore"):
            norms = np.linalg.norm(X, axis=1)
        return float(norms[np.isfinite(norms)].max(initial=0.0)) or 1.0

    def _train(self, rows: Rows, settings: LinearPlan, noise: NoiseSource) -> None:
        # A row with an unknown label has no loss.
        is_known = rows.codes >= 0
        X, codes = settings.bounds.rows(rows.X[is_known]), rows.codes[is_known]
        perturbation = settings.noise
        weights = np.empty((perturbation.n_problems, X.shape[1]))
        for problem in range(perturbation.n_problems):
            positive = 1 if perturbation.n_problems == 1 else problem
            minimiser = minimise(
                X,
                np.where(codes == positive, 1.0, -1.0),
                self._loss(),
                regularisation=perturbation.regularisation,
                linear_term=perturbation.draw_linear_term(noise, X.shape[1]),
                tolerance=TOLERANCE,
            )
            output_noise = perturbation.draw_output_noise(noise, X.shape[1])
            weights[problem] = on_lattice(
                minimiser + output_noise, perturbation.output_scale
            )
        self.coef_, self.intercept_ = settings.bounds.to_features(weights)
        self.data_norm_ = settings.bounds.norm
        self._bounds = settings.bounds
        self.C_ = 1 / perturbation.regularisation

    def _published_model(self) -> Self:
        # Only what predictions need: no parameter of this fit, and no other data.
        model = type(self)()
        for name in _PREDICTS_BY:
            if hasattr(self, name):
                setattr(model, name, deepcopy(getattr(self, name)))
        model.classes_ = np.arange(len(self.classes_))
        return model

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _check_memory(n_features: int) -> None:
    """Raise unless there is memory for the solver, before the cost is charged."""
    try:
        np.empty((n_features, n_features))
    except MemoryError:
        gigabytes = 8 * n_features**2 / 2**30
        raise ValueError(
            f"X has {n_features} features, for which the solver needs "
            f"{gigabytes:.0f} GiB of memory; use fewer, by random features "
            "(RBFSampler) or a projection that was fitted on public rows."
        ) from None
