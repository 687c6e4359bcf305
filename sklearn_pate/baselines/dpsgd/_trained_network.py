"""A network that DP-SGD has trained, and nothing else of its training."""

from copy import deepcopy
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from sklearn_pate._inputs._features import check_numbers

__all__ = ["TrainedNetwork", "read_rows"]

# What of a skorch network decides its predictions, beside its parameters.
_PREDICTS_BY = (
    "evaluation_step",
    "forward_iter",
    "get_dataset",
    "get_iterator",
    "infer",
    "predict_proba",
)


def read_rows(estimator: Any, X: Any, *, reset: bool) -> NDArray[np.float32]:
    """Read rows as finite float32, 0 for what is no finite number."""
    X = check_numbers(estimator, X, reset=reset, dtype=np.float32, allow_nd=True)
    is_finite = np.isfinite(X)
    if not np.all(is_finite):
        X = np.where(is_finite, X, np.float32(0))
    return np.require(X, requirements="W")  # torch warns of arrays that are not


class TrainedNetwork(ClassifierMixin, BaseEstimator):
    """A trained network that predicts class indices.

    Parameters
    ----------
    module : type or torch.nn.Module
        The module's class; or the module, which cannot be saved without pickle.

    module_params : dict
        What the class is called with.

    criterion : type
        A loss of torch, which decides how outputs become probabilities.

    predict_nonlinearity : "auto", callable or None
        As for skorch: what makes probabilities of outputs, if not the loss decides.

    batch_size : int
        Number of rows that are predicted at once.
    """

    #: Whether a value that is no finite number is read as one.
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
                    f"The network is a {type(net).__name__} with {name} of its own, "
                    "which is not published, and without which it would predict "
                    "otherwise; let the module do what it does."
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
        """Raise: scikit-learn takes only what has a `fit` for an estimator."""
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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _make_module(self) -> Any:
        """Build the module, with other weights."""
        return self.module(**self.module_params)


def _deciding_loss(criterion: Any) -> type:
    """Return the loss of torch by which skorch takes outputs for probabilities."""
    import torch

    # All others leave outputs as they are, as NLLLoss does.
    losses = (torch.nn.CrossEntropyLoss, torch.nn.BCEWithLogitsLoss, torch.nn.BCELoss)
    return next((one for one in losses if isinstance(criterion, one)), torch.nn.NLLLoss)
