"""Network that DP-SGD has trained, without anything else of its training."""

from copy import deepcopy
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags

from sklearn_pate._estimators._class_codes import ProbabilityScoresMixin
from sklearn_pate._inputs._features import check_numbers

__all__ = ["TrainedNetwork", "read_rows"]

# Methods of a skorch network that its predictions depend on.
_PREDICTS_BY = (
    "evaluation_step",
    "forward_iter",
    "get_dataset",
    "get_iterator",
    "infer",
    "predict_proba",
)


def read_rows(estimator: Any, X: Any, *, reset: bool) -> NDArray[np.float32]:
    """Read rows as float32, with 0 in place of values that are not finite."""
    X = check_numbers(estimator, X, reset=reset, dtype=np.float32, allow_nd=True)
    is_finite = np.isfinite(X)
    if not np.all(is_finite):
        X = np.where(is_finite, X, np.float32(0))
    return np.require(X, requirements="W")  # torch warns of read-only arrays


class TrainedNetwork(ProbabilityScoresMixin, ClassifierMixin, BaseEstimator):
    """Trained network that predicts class indices.

    `module` is the class of the module, or a module, which cannot be saved without
    pickle. `criterion` and `predict_nonlinearity` turn outputs into probabilities, as
    in skorch.
    """

    #: Missing and infinite values are replaced, not refused.
    _reads_any_value = True

    def __init__(
        self,
        module: Any,
        module_params: dict[str, Any],
        criterion: Any,
        predict_nonlinearity: Any,
        batch_size: int,
    ) -> None:
        self.module = module
        self.module_params = module_params
        self.criterion = criterion
        self.predict_nonlinearity = predict_nonlinearity
        self.batch_size = batch_size

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """Copy the network out of a fitted DPSGDClassifier."""
        from skorch import NeuralNetClassifier

        net = estimator.network_
        for name in _PREDICTS_BY:
            if getattr(type(net), name) is not getattr(NeuralNetClassifier, name):
                raise ValueError(
                    f"The network is a {type(net).__name__} that overrides {name}, "
                    "which is not published, and without which predictions would "
                    "differ; move that code into the module."
                )
        network = cls(
            net.module,
            deepcopy(net.get_params_for("module")),
            _deciding_loss(net.criterion_),
            net.predict_nonlinearity,
            net.get_params_for("iterator_valid").get("batch_size", net.batch_size),
        )
        network.module_ = deepcopy(net.module_).to("cpu").eval()
        network.classes_ = np.arange(len(estimator.classes_))
        for name in ("n_features_in_", "feature_names_in_", "_column_names"):
            if hasattr(estimator, name):
                setattr(network, name, deepcopy(getattr(estimator, name)))
        return network

    def fit(self, X: Any, y: Any = None) -> NoReturn:
        """Raise TypeError; scikit-learn requires a `fit` of estimators."""
        raise TypeError("A TrainedNetwork cannot be fitted; fit a DPSGDClassifier.")

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """Predict class probabilities."""
        from skorch import NeuralNetClassifier

        from sklearn_pate.students.networks._network_training import one_torch_thread

        net = NeuralNetClassifier(
            self.module_,
            criterion=self.criterion,
            predict_nonlinearity=self.predict_nonlinearity,
            batch_size=self.batch_size,
            train_split=None,
        )
        with one_torch_thread():
            return net.initialize().predict_proba(read_rows(self, X, reset=False))

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Predict class indices."""
        return self.predict_proba(X).argmax(axis=1)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _make_module(self) -> Any:
        """Build the module, with untrained weights."""
        return self.module(**self.module_params)


def _deciding_loss(criterion: Any) -> type:
    """Return the loss by which skorch turns outputs into probabilities."""
    import torch

    # All others leave outputs unchanged, as NLLLoss does.
    losses = (torch.nn.CrossEntropyLoss, torch.nn.BCEWithLogitsLoss, torch.nn.BCELoss)
    return next((one for one in losses if isinstance(criterion, one)), torch.nn.NLLLoss)
