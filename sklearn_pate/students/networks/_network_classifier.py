"""Base class of network students, and their training."""

import math
from abc import abstractmethod
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from skorch import NeuralNet
from skorch.callbacks import Callback
from skorch.utils import to_device
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel

from sklearn_pate._estimators._hidden_layer import hidden_layer, hidden_of_batch
from sklearn_pate._estimators._isolation import MAX_SEED, one_thread, seeded_globals
from sklearn_pate._estimators._predictions import ProbabilityScoresMixin
from sklearn_pate._estimators._progress import check_verbose
from sklearn_pate._inputs._containers import (
    channels_first,
    check_device,
    read_input_shape,
)
from sklearn_pate._inputs._labels import read_targets
from sklearn_pate.accounting._value_checks import (
    Constraint,
    check_count,
    check_number,
    check_parameters,
    counted,
)
from sklearn_pate.students.networks._images import (
    PairedBatches,
    PublicRows,
    build_module,
    check_builder,
    default_module,
)

# Enough rows to measure the share of changed predictions within one percent.
N_WATCHED = 2000


class _Settled(KeyboardInterrupt):
    """End of training before `max_epochs`, signalled as skorch expects it."""


class _StopWhenSettled(Callback):
    """Stop when predictions on the public rows no longer change, at no privacy cost."""

    def __init__(self, patience: int, tol: float) -> None:
        self.patience = patience
        self.tol = tol

    def on_train_begin(
        self, net: Any, X: Any = None, y: None = None, **kwargs: Any
    ) -> None:
        self.watched_ = X.inputs[:: math.ceil(len(X) / N_WATCHED)]
        self.before_ = torch.tensor(-1)
        self.n_settled_ = 0

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        now = predict_logits(net.averaged_, self.watched_).argmax(dim=1)
        changed = (now != self.before_).float().mean().item()
        net.history.record("changed", changed)
        self.n_settled_ = self.n_settled_ + 1 if changed <= self.tol else 0
        self.before_ = now
        if self.n_settled_ >= self.patience:
            raise _Settled


def predict_logits(module: nn.Module, inputs: Tensor, batch_size: int = 1000) -> Tensor:
    """Apply a module to many inputs in evaluation mode; outputs are on the CPU."""
    module.eval()
    device = next(module.parameters()).device
    with torch.no_grad():
        return torch.cat(
            [module(part.to(device)).cpu() for part in inputs.split(batch_size)]
        )


class SemiSupervisedNet(NeuralNet):
    """A skorch network that is trained on :class:`PublicRows`.

    A subclass overrides :meth:`batch_loss`, or `train_step` if it has several
    optimisers. The learning rate decays along a cosine to zero. `averaging` is the
    share of the running mean of weights that is kept at each step; predictions use this
    mean, `averaged_`, which is less noisy than the last weights.
    """

    def __init__(
        self,
        module: nn.Module,
        *,
        labeled_batch_size: int = 64,
        averaging: float = 0.99,
        patience: int | None = None,
        tol: float = 1e-3,
        criterion: type[nn.Module] = nn.CrossEntropyLoss,
        optimizer: type[torch.optim.Optimizer] = torch.optim.AdamW,
        **parameters: Any,
    ) -> None:
        super().__init__(
            module, criterion, optimizer=optimizer, train_split=None, **parameters
        )
        self.labeled_batch_size = labeled_batch_size
        self.averaging = averaging
        self.patience = patience
        self.tol = tol

    def batch_loss(self, labeled: Tensor, targets: Tensor, unlabeled: Tensor) -> Tensor:
        """Compute the loss of one batch, here without its unlabelled inputs.

        `targets` are distributions over classes, of shape (n_labeled, n_classes).
        """
        return self.criterion_(self.module_(labeled), targets)

    @property
    def averaged_(self) -> nn.Module:
        """The module with averaged weights; it changes with every step."""
        return self._averages[0].module

    def initialize(self) -> Self:
        """Build module, optimiser and running mean."""
        super().initialize()
        self.n_steps_ = 0
        # In a tuple, so that skorch does not treat it as a module to train.
        self._averages = (
            AveragedModel(self.module_, avg_fn=self._average, use_buffers=True),
        )
        return self

    def _average(self, mean: Tensor, value: Tensor, n_averaged: Tensor | int) -> Tensor:
        # After few steps, the first weights must not dominate the mean.
        kept = min(self.averaging, float(n_averaged + 1) / float(n_averaged + 10))
        return mean + (value - mean) * (1 - kept)

    def get_default_callbacks(self) -> list[tuple[str, Callback]]:
        """Return skorch's callbacks and one for early stopping."""
        callbacks = super().get_default_callbacks()
        if self.patience is None:
            return callbacks
        settled = ("settled", _StopWhenSettled(self.patience, self.tol))
        return [*callbacks[:-1], settled, callbacks[-1]]

    def get_iterator(
        self, dataset: PublicRows, training: bool = False
    ) -> PairedBatches:
        """Return the batches of one epoch."""
        return PairedBatches(dataset, self.batch_size, self.labeled_batch_size)

    def partial_fit(
        self, X: PublicRows, y: None = None, classes: None = None, **fit_params: Any
    ) -> Self:
        """Train for `max_epochs`, or until predictions no longer change.

        Unlike in skorch, a KeyboardInterrupt is raised, so that no half-trained student
        is returned.
        """
        self.n_planned_steps_ = self.max_epochs * len(self.get_iterator(X))
        self.notify("on_train_begin", X=X, y=y)
        with suppress(_Settled):
            self.fit_loop(X)
        self.notify("on_train_end", X=X, y=y)
        return self

    def on_batch_begin(
        self, net: Any, batch: Any = None, training: bool = False, **kwargs: Any
    ) -> None:
        """Set the learning rate of this step in all optimisers."""
        super().on_batch_begin(net, batch=batch, training=training, **kwargs)
        progress = self.n_steps_ / self.n_planned_steps_
        decay = (1 + math.cos(math.pi * progress)) / 2
        for name in self._optimizers:
            for group in getattr(self, f"{name}_").param_groups:
                group["lr"] = decay * group.setdefault("initial_lr", group["lr"])

    def on_batch_end(
        self, net: Any, batch: Any = None, training: bool = False, **kwargs: Any
    ) -> None:
        """Count the step, and update the running mean of weights."""
        super().on_batch_end(net, batch=batch, training=training, **kwargs)
        self.n_steps_ += 1
        self._averages[0].update_parameters(self.module_)

    def train_step(
        self, batch: tuple[Tensor, ...], **fit_params: Any
    ) -> dict[str, Tensor]:
        """Follow the gradient of :meth:`batch_loss` once."""
        self._set_training(True)
        labeled, targets, unlabeled = to_device(batch, self.device)
        loss = self.batch_loss(labeled, targets, unlabeled)
        self.optimizer_.zero_grad()
        loss.backward()
        self.optimizer_.step()
        return {"loss": loss.detach()}


@dataclass(frozen=True, eq=False)
class RelationalHint:
    """Similarities of clusters of public rows in the hidden layers of the teachers.

    A network learns the similarities before the labels. As the similarities were
    released and the clusters are public, this training has no privacy cost.

    Parameters
    ----------
    cluster_of_row : ndarray of int of shape (n_public,)
        Cluster of each public row, or -1 if the row is in no cluster. The assignment
        must depend on public rows alone.

    similarities : ndarray of shape (n_clusters, n_clusters)
        Released similarity of each pair of clusters: symmetric, noisy, and possibly
        negative. The diagonal is set to 0. Similarities without noise, and a network
        trained on such similarities, would be as sensitive as the teachers.

    max_epochs : int
        Number of passes over the rows in clusters. With few rows, a pass is repeated
        until it has 20 batches.

    batch_size : int, default=128
        Number of rows in a batch. The loss compares the rows of a batch with each
        other.

    lr : float, default=0.003
        Initial learning rate. The learning rate decays to zero along a cosine.

    Raises
    ------
    ValueError
        If a parameter is out of range, or `similarities` are not square, are not
        finite, or have no entry for a cluster.

    Notes
    -----
    Sun, Zhou, Wang, Li, Socher, Yu, Xiong (2019), "Private deep learning with teacher
    ensembles", use the output of a hidden layer as hint. Outputs of hidden layers of
    different teachers cannot be averaged. Similarities of rows in hidden layers can be
    averaged (Tung, Mori 2019, "Similarity-preserving knowledge distillation").

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pate.students import ConvSmall, FixMatchClassifier, RelationalHint
    >>> X = np.random.RandomState(0).normal(size=(40, 5))  # 40 public rows
    >>> released = np.array([[12, 9, 1], [9, 11, -2], [1, -2, 13]])
    >>> hint = RelationalHint(np.arange(40) % 3, released, max_epochs=1)
    >>> hint.similarities
    array([[ 0.,  9.,  1.],
           [ 9.,  0., -2.],
           [ 1., -2.,  0.]])
    >>> y = np.array([0, 1] + 38 * [-1])  # two answers
    >>> student = FixMatchClassifier(ConvSmall(), max_epochs=1, random_state=0)
    >>> student.fit(X, y, hint=hint).predict_proba(X).shape
    (40, 2)
    """

    cluster_of_row: NDArray[np.intp]
    similarities: NDArray[np.floating]
    max_epochs: int
    batch_size: int = 128
    lr: float = 3e-3

    def __post_init__(self) -> None:
        similarities = np.array(self.similarities, dtype=np.float64)
        if similarities.ndim != 2 or len(similarities) != similarities.shape[1]:
            raise ValueError(
                f"similarities has shape {similarities.shape}; pass a row and a column "
                "for each cluster."
            )
        if not np.all(np.isfinite(similarities)):
            raise ValueError(
                "similarities holds NaN or infinity; pass 0 for unknown ones."
            )
        clusters = np.asarray(self.cluster_of_row)
        if np.any(clusters >= len(similarities)):
            raise ValueError(
                f"cluster_of_row has cluster {clusters.max()}, but similarities has "
                f"{counted(len(similarities), 'cluster')}; number them from 0."
            )
        check_count("max_epochs", self.max_epochs)
        check_count("batch_size", self.batch_size)
        check_number("lr", self.lr, 0, 1)
        np.fill_diagonal(similarities, 0)
        object.__setattr__(self, "similarities", similarities)
        object.__setattr__(self, "cluster_of_row", clusters)

    def teach(self, module: Any, inputs: Any, device: Any) -> Any:
        """Train all layers of a network below the last linear layer.

        Parameters
        ----------
        module : torch.nn.Module
            Network from a batch of inputs to logits, changed in place.

        inputs : Tensor of shape (n_public, ...)
            All public rows.

        device : str or torch.device
            Device of the training.

        Returns
        -------
        module : torch.nn.Module
            The trained module, unchanged if all similarities are 0.

        Raises
        ------
        ValueError
            If the module has no linear layer, or the number of rows differs from the
            number in the hint.
        """
        hidden_layer(module)  # raises without one, also if the hint is all zeros
        if len(inputs) != len(self.cluster_of_row):
            raise ValueError(
                f"hint is about {counted(len(self.cluster_of_row), 'row')}, but X has "
                f"{len(inputs)}; pass the rows of the hint."
            )
        rows = np.flatnonzero(self.cluster_of_row >= 0)
        present, clusters = np.unique(self.cluster_of_row[rows], return_inverse=True)
        similarities = self.similarities[np.ix_(present, present)]
        if not similarities.any():
            return module
        batch_size = min(self.batch_size, len(rows))
        net = HintNet(
            module,
            similarities=torch.tensor(similarities, dtype=torch.float32),
            max_epochs=self.max_epochs,
            batch_size=batch_size,
            labeled_batch_size=batch_size,
            lr=self.lr,
            device=device,
            verbose=0,
        )
        one_hot = functional.one_hot(torch.from_numpy(clusters)).float()
        return net.fit(PublicRows(inputs[rows], one_hot)).module_


class HintNet(SemiSupervisedNet):
    """Training by :class:`RelationalHint`; the label of each row is its cluster."""

    def __init__(
        self, module: nn.Module, *, similarities: Tensor, **parameters: Any
    ) -> None:
        super().__init__(module, **parameters)
        self.similarities = similarities

    def batch_loss(self, labeled: Tensor, targets: Tensor, unlabeled: Tensor) -> Tensor:
        """Compute the loss of one batch; `targets` are one-hot clusters."""
        hidden = hidden_of_batch(self.module_, labeled)
        wanted = targets @ self.similarities.to(self.device) @ targets.T
        return disagreement(hidden, wanted, targets @ targets.T == 0)


def alike(hidden: Tensor) -> Tensor:
    """Compute cosines of hidden representations around their mean, 0 if negative."""
    directions = functional.normalize(hidden - hidden.mean(dim=0))
    return (directions @ directions.T).relu()


def disagreement(hidden: Tensor, wanted: Tensor, counted: Tensor) -> Tensor:
    """Compute 1 - <S, T> / (|S| |T|), where S are the similarities of a batch.

    Cristianini, Shawe-Taylor, Elisseeff, Kandola (2001), "On kernel-target alignment",
    definition 1, which does not depend on the scale of T (`wanted`). The sums are over
    the `counted` pairs, as nothing was released about two rows of one cluster. The loss
    is 0 where S or T is zero.
    """
    found = alike(hidden) * counted
    wanted = wanted * counted
    scale = found.norm() * wanted.norm()
    return (scale > 0).float() - (found * wanted).sum() / scale.clamp_min(1e-12)


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

    _constraints: ClassVar[dict[str, Constraint]] = {
        "max_epochs": Constraint.count(),
        "batch_size": Constraint.count(),
        "labeled_batch_size": Constraint.count(),
        "patience": Constraint.count(also=(None,)),
        "verbose": Constraint(check_verbose),
        "lr": Constraint.number(0, 1),
        "tol": Constraint.number(0, 1),
        "module": Constraint(check_builder),
        "device": Constraint(check_device),
    }

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
            Labels; -1 for an unlabelled row. If y has only one label beside -1, as in
            {-1, 1}, -1 is a class. Several columns of y are the probabilities of
            classes 0, 1, ..., and a row of zeros, or with a NaN, is then unlabelled.

        hint : RelationalHint, default=None
            Released similarities of clusters of the rows in X. The network learns the
            similarities before the labels, at no privacy cost.

        Returns
        -------
        self : SemiSupervisedNetwork
            Fitted.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid.
        """
        check_parameters(self)
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
        # Networks this small take ten times as long with two threads.
        with seeded_globals(seed), one_thread():
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
            One column per class in ``classes_``.
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
            Labels from ``classes_``.
        """
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

    def _make_module(self) -> nn.Module:
        n_classes = len(self.classes_)
        if self.module is None:
            return default_module(self.input_shape_, n_classes)
        return build_module(self.module, self.input_shape_, n_classes)
