"""Training with skorch on pairs of labelled and unlabelled batches."""

import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self

import torch
from skorch import NeuralNet
from skorch.callbacks import Callback
from skorch.utils import to_device
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from sklearn_pate.students.networks._public_batches import PairedBatches, PublicRows

__all__ = [
    "SemiSupervisedNet",
    "one_torch_thread",
    "predict_logits",
]

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


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Let torch compute with one thread.

    In networks this small, two threads take ten times as long, waiting for each other.
    """
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)


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
            module,
            criterion,
            optimizer=optimizer,
            train_split=None,
            **parameters,
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
