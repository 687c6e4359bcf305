"""Base classes of estimators made of a network: inputs, labels, seeds, prediction."""

from abc import abstractmethod
from copy import deepcopy
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from sklearn_pate._estimators._class_codes import ProbabilityScoresMixin
from sklearn_pate._estimators._progress import check_verbose
from sklearn_pate._estimators._seeding import MAX_SEED, seeded_globals
from sklearn_pate._inputs._checks import check_device, check_number
from sklearn_pate._inputs._image_shape import channels_first, read_input_shape
from sklearn_pate._inputs._labels import read_targets
from sklearn_pate.accounting._counted import counted
from sklearn_pate.accounting._value_checks import check_count
from sklearn_pate.students.networks._modules import build_module, default_module
from sklearn_pate.students.networks._network_training import (
    one_torch_thread,
    predict_logits,
)
from sklearn_pate.students.networks._public_batches import PublicRows
from sklearn_pate.students.networks._relational_hint import RelationalHint

__all__ = ["NetworkEstimator", "SemiSupervisedNetwork"]


class NetworkEstimator(BaseEstimator):
    """Base class of estimators made of a network: scaling of inputs, and storage.

    A subclass has the parameter `image_shape`, and sets `module_`.
    """

    image_shape: Any
    module_: nn.Module

    def _check_rows(self, X: Any, *, reset: bool) -> NDArray[np.floating]:
        """Return rows as a flat array; `reset` sets the shape of one input."""
        if not hasattr(X, "shape"):
            X = np.asarray(X)
        shape = X.shape
        if len(shape) in (3, 4):
            X = np.asarray(X).reshape(shape[0], -1)
        X = validate_data(self, X, reset=reset, dtype=[np.float64, np.float32])
        if reset:
            self.input_shape_ = read_input_shape(self.image_shape, shape)
        if len(self.input_shape_) == 3:
            layout = shape[1:] if len(shape) > 2 else self.image_shape
            X = channels_first(X, layout, self.input_shape_).reshape(len(X), -1)
        return X

    def _learn_scale(self, X: NDArray[np.floating]) -> None:
        """Learn the scaling of inputs from the rows, which are public."""
        # Pixels share one scale, with 0 as the background.
        if len(self.input_shape_) == 3:
            self.offset_ = X.min()
            scale = X.max() - self.offset_
        else:
            self.offset_ = X.mean(axis=0)
            scale = X.std(axis=0)
        self.scale_ = np.where(scale > 0, scale, 1)

    def _as_inputs(self, X: NDArray[np.floating]) -> Tensor:
        scaled = ((X - self.offset_) / self.scale_).astype(np.float32)
        return torch.from_numpy(scaled).reshape(len(X), *self.input_shape_)

    def __getstate__(self) -> dict[str, Any]:
        # A classifier trained on a GPU must also predict without one.
        state = super().__getstate__()
        if "module_" in state:
            state["module_"] = deepcopy(state["module_"]).cpu()
        return state


class SemiSupervisedNetwork(ProbabilityScoresMixin, ClassifierMixin, NetworkEstimator):
    """Base class of network classifiers that also learn from unlabelled rows.

    A subclass has the parameters that `fit` reads, and builds its network in
    `_make_net`.
    """

    accepts_unlabeled = True
    accepts_soft_labels = True
    accepts_hints = True

    module: Any
    max_epochs: int
    batch_size: int
    labeled_batch_size: int
    lr: float
    patience: int | None
    tol: float
    device: str
    verbose: int
    random_state: Any

    @abstractmethod
    def _make_net(self, module: nn.Module, **shared: Any) -> Any:
        """Return a SemiSupervisedNet around a module, with the shared parameters."""

    def fit(self, X: Any, y: Any, *, hint: RelationalHint | None = None) -> Self:
        """Train on labelled and unlabelled rows.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), (n_rows, height, width) or \
                (n_rows, channels, height, width)
            Public rows, or images.

        y : array-like of shape (n_rows,) or (n_rows, n_classes)
            Labels, -1 for an unlabelled row. Where y holds only one label beside -1, as
            in {-1, 1}, -1 counts as a class. Several columns are probabilities of
            classes 0, 1, ...; a row of zeros or with a NaN is unlabelled.

        hint : RelationalHint, default=None
            Released similarities of clusters of these rows, which the network learns
            before the labels. Learning it has no privacy cost.

        Returns
        -------
        self : SemiSupervisedNetwork
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid.
        """
        self._check_parameters()
        X = self._check_rows(X, reset=True)
        classes, targets = read_targets(y)
        return self._train(X, classes, targets, hint)

    def _train(
        self,
        X: NDArray[np.floating],
        classes: NDArray[Any],
        targets: NDArray[np.float32],
        hint: RelationalHint | None = None,
    ) -> Self:
        """Train on checked rows and a target for each."""
        if len(targets) != len(X):
            raise ValueError(
                f"X has {counted(len(X), 'row')} and y has {len(targets)}; each row "
                "needs a label, -1 if it is unknown."
            )
        self.classes_ = classes
        self._learn_scale(X)
        rows = PublicRows(self._as_inputs(X), torch.from_numpy(targets))
        seed = check_random_state(self.random_state).randint(MAX_SEED)
        with seeded_globals(seed), one_torch_thread():
            module = self._make_module()
            if hint is not None:
                module = hint.teach(module, rows.inputs, self.device)
            net = self._make_net(
                module,
                max_epochs=self.max_epochs,
                batch_size=self.batch_size,
                labeled_batch_size=self.labeled_batch_size,
                lr=self.lr,
                patience=self.patience,
                tol=self.tol,
                device=self.device,
                verbose=self.verbose,
            ).fit(rows)
        self.module_ = net.averaged_.eval()
        self.history_ = net.history.to_list()
        self.n_iter_ = len(self.history_)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), (n_rows, height, width) or \
                (n_rows, channels, height, width)
            Rows, or images.

        Returns
        -------
        probabilities : ndarray of float32 of shape (n_rows, n_classes)
            A column for each of ``classes_``.
        """
        check_is_fitted(self, "module_")
        inputs = self._as_inputs(self._check_rows(X, reset=False))
        return predict_logits(self.module_, inputs).softmax(dim=1).numpy()

    def predict(self, X: Any) -> np.ndarray:
        """Predict labels.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), (n_rows, height, width) or \
                (n_rows, channels, height, width)
            Rows, or images.

        Returns
        -------
        y : ndarray of shape (n_rows,)
            Labels out of ``classes_``.
        """
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

    def _check_parameters(self) -> None:
        for name in ("max_epochs", "batch_size", "labeled_batch_size"):
            check_count(name, getattr(self, name))
        check_count("patience", self.patience, also=(None,))
        check_verbose(self.verbose)
        check_number("lr", self.lr, 0, 1)
        check_number("tol", self.tol, 0, 1)
        if self.module is not None and not callable(self.module):
            raise ValueError(
                f"module={self.module!r} must be a torch.nn.Module, or a callable that "
                "builds one from (input_shape, n_classes)."
            )
        check_device(self.device)

    def _make_module(self) -> nn.Module:
        n_classes = len(self.classes_)
        if self.module is None:
            return default_module(self.input_shape_, n_classes)
        return build_module(self.module, self.input_shape_, n_classes)
