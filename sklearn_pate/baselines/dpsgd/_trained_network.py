"""A network that DP-SGD has trained, and nothing else of its training."""

from copy import deepcopy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from sklearn_pate._inputs._features import check_numbers

__all__ = ["TrainedNetwork", "read_rows"]


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
        Class of the loss, which decides how outputs become probabilities.

    batch_size : int
        Number of rows that are predicted at once.
    """

    def __init__(
        self,
        module: Any,
        module_params: dict[str, Any],
        criterion: Any,
        batch_size: int,
    ) -> None:
        self.module = module
        self.module_params = module_params
        self.criterion = criterion
        self.batch_size = batch_size

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """Copy the network out of a fitted DPSGDClassifier."""
        net = estimator.network_
        network = cls(
            net.module,
            deepcopy(net.get_params_for("module")),
            net.criterion,
            net.get_params_for("iterator_valid").get("batch_size", net.batch_size),
        )
        network.module_ = deepcopy(net.module_).to("cpu").eval()
        network.classes_ = np.arange(len(estimator.classes_))
        for name in ("n_features_in_", "feature_names_in_", "_column_names"):
            if hasattr(estimator, name):
                setattr(network, name, deepcopy(getattr(estimator, name)))
        return network

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """Predict class probabilities."""
        from skorch import NeuralNetClassifier

        from sklearn_pate.students.networks._network_training import one_torch_thread

        net = NeuralNetClassifier(
            self.module_,
            criterion=self.criterion,
            batch_size=self.batch_size,
            train_split=None,
        )
        with one_torch_thread():
            return net.initialize().predict_proba(read_rows(self, X, reset=False))

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Predict class indices."""
        return self.predict_proba(X).argmax(axis=1)

    def _make_module(self) -> Any:
        """Build the module, with other weights."""
        return self.module(**self.module_params)
