"""Training with skorch on batches of labelled and unlabelled rows side by side."""

import math
from contextlib import contextmanager, suppress

import torch
from skorch import NeuralNet
from skorch.callbacks import Callback
from skorch.utils import to_device
from torch.optim.swa_utils import AveragedModel

from sklearn_pate.students.networks._public_batches import PairedBatches

__all__ = [
    "SemiSupervisedNet",
    "one_torch_thread",
    "predict_logits",
]

# Enough rows to tell within a percent how many predictions changed in an epoch.
N_WATCHED = 2000


class _Settled(KeyboardInterrupt):
    """Training is over early; skorch's own way of saying so is a KeyboardInterrupt."""


class _StopWhenSettled(Callback):
    """Stop when predictions on the public rows no longer change.

    What it looks at was handed to `fit` as public, so that stopping costs no privacy.
    """

    def __init__(self, patience, tol):
        self.patience = patience
        self.tol = tol

    def on_train_begin(self, net, X=None, y=None, **kwargs):
        self.watched_ = X.inputs[:: math.ceil(len(X) / N_WATCHED)]
        self.before_ = torch.tensor(-1)
        self.n_quiet_ = 0

    def on_epoch_end(self, net, **kwargs):
        now = predict_logits(net.averaged_, self.watched_).argmax(dim=1)
        changed = (now != self.before_).float().mean().item()
        net.history.record("changed", changed)
        self.n_quiet_ = self.n_quiet_ + 1 if changed <= self.tol else 0
        self.before_ = now
        if self.n_quiet_ >= self.patience:
            raise _Settled


@contextmanager
def one_torch_thread():
    """Let torch compute with one thread.

    Several wait for one another all the time in networks as small as these: two take
    ten times as long as one.
    """
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)


def predict_logits(module, inputs, batch_size=1000):
    """Apply a module to many inputs, where its weights are.

    Parameters
    ----------
    module : torch.nn.Module
        Put in evaluation mode.

    inputs : Tensor of shape (n_rows, *input_shape)
        On any device.

    batch_size : int, default=1000
        Number of rows at once.

    Returns
    -------
    logits : Tensor of shape (n_rows, n_classes)
        On the CPU.
    """
    module.eval()
    device = next(module.parameters()).device
    with torch.no_grad():
        return torch.cat(
            [module(part.to(device)).cpu() for part in inputs.split(batch_size)]
        )


class SemiSupervisedNet(NeuralNet):
    """A skorch network that is trained on :class:`PublicRows`.

    A method of semi-supervised learning overrides :meth:`batch_loss`, or `train_step`
    if it has optimisers of its own. The learning rate decays along a cosine to zero.
    Predictions use `averaged_`, a running mean of the weights, which is less noisy than
    the last ones.

    Parameters
    ----------
    module : torch.nn.Module
        From a batch of inputs to logits.

    labeled_batch_size : int, default=64
        Number of labelled rows in a batch.

    averaging : float, default=0.99
        Share of the running mean of weights that is kept at each step.

    patience : int, default=None
        Stop after so many epochs in which at most `tol` of the predictions changed.

    tol : float, default=0.001
        See `patience`.

    criterion : class, default=torch.nn.CrossEntropyLoss
        Of logits and targets.

    optimizer : class, default=torch.optim.AdamW
        What follows the gradient.

    **parameters : dict
        As for :class:`skorch.NeuralNet`.
    """

    def __init__(
        self,
        module,
        *,
        labeled_batch_size=64,
        averaging=0.99,
        patience=None,
        tol=1e-3,
        criterion=torch.nn.CrossEntropyLoss,
        optimizer=torch.optim.AdamW,
        **parameters,
    ):
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

    def batch_loss(self, labeled, targets, unlabeled):
        """Compute the loss of one batch; its gradient is followed.

        Parameters
        ----------
        labeled : Tensor of shape (n_labeled, *input_shape)
            Inputs with known targets.

        targets : Tensor of shape (n_labeled, n_classes)
            Distributions over classes.

        unlabeled : Tensor of shape (n_unlabeled, *input_shape)
            Inputs of any rows.

        Returns
        -------
        loss : Tensor
            A number.
        """
        return self.criterion_(self.module_(labeled), targets)

    @property
    def averaged_(self):
        """The module with averaged weights.

        Returns
        -------
        module : torch.nn.Module
            It changes with every step.
        """
        return self._averages[0].module

    def initialize(self):
        """Build module, optimiser and running mean.

        Returns
        -------
        self : SemiSupervisedNet
            Ready for training.
        """
        super().initialize()
        self.n_steps_ = 0
        # In a tuple, where skorch does not take it for a module to be trained.
        self._averages = (
            AveragedModel(self.module_, avg_fn=self._average, use_buffers=True),
        )
        return self

    def _average(self, mean, value, n_averaged):
        # A mean over few steps so far must not hang on to the first weights.
        kept = min(self.averaging, float(n_averaged + 1) / float(n_averaged + 10))
        return mean + (value - mean) * (1 - kept)

    def get_default_callbacks(self):
        """Return skorch's callbacks, and one for early stopping.

        Returns
        -------
        callbacks : list of (str, Callback)
            By name.
        """
        callbacks = super().get_default_callbacks()
        if self.patience is None:
            return callbacks
        settled = ("settled", _StopWhenSettled(self.patience, self.tol))
        return [*callbacks[:-1], settled, callbacks[-1]]

    def get_iterator(self, dataset, training=False):
        """Return the batches of one epoch.

        Parameters
        ----------
        dataset : PublicRows
            All rows.

        training : bool, default=False
            Not used: there is no validation.

        Returns
        -------
        batches : PairedBatches
            New ones each time they are iterated over.
        """
        return PairedBatches(dataset, self.batch_size, self.labeled_batch_size)

    def partial_fit(self, X, y=None, classes=None, **fit_params):
        """Train for `max_epochs`, or until predictions have settled.

        Unlike in skorch, an interrupt from the keyboard is not swallowed: nobody asked
        for a student that is half trained.

        Parameters
        ----------
        X : PublicRows
            All rows.

        y, classes : None
            Not used.

        **fit_params : dict
            None are used.

        Returns
        -------
        self : SemiSupervisedNet
            Trained.
        """
        self.n_planned_steps_ = self.max_epochs * len(self.get_iterator(X))
        self.notify("on_train_begin", X=X, y=y)
        with suppress(_Settled):
            self.fit_loop(X)
        self.notify("on_train_end", X=X, y=y)
        return self

    def on_batch_begin(self, net, batch=None, training=False, **kwargs):
        """Set the learning rate of this step in all optimisers.

        Parameters
        ----------
        net : SemiSupervisedNet
            This one.

        batch : tuple of Tensors, default=None
            What :class:`PairedBatches` yields.

        training : bool, default=False
            Not used: there is no validation.

        **kwargs : dict
            For skorch.
        """
        super().on_batch_begin(net, batch=batch, training=training, **kwargs)
        progress = self.n_steps_ / self.n_planned_steps_
        decay = (1 + math.cos(math.pi * progress)) / 2
        for name in self._optimizers:
            for group in getattr(self, f"{name}_").param_groups:
                group["lr"] = decay * group.setdefault("initial_lr", group["lr"])

    def on_batch_end(self, net, batch=None, training=False, **kwargs):
        """Count the step, and update the running mean of weights.

        Parameters
        ----------
        net : SemiSupervisedNet
            This one.

        batch : tuple of Tensors, default=None
            What :class:`PairedBatches` yields.

        training : bool, default=False
            Not used: there is no validation.

        **kwargs : dict
            For skorch.
        """
        super().on_batch_end(net, batch=batch, training=training, **kwargs)
        self.n_steps_ += 1
        self._averages[0].update_parameters(self.module_)

    def train_step(self, batch, **fit_params):
        """Follow the gradient of :meth:`batch_loss` once.

        Parameters
        ----------
        batch : tuple of Tensors
            What :class:`PairedBatches` yields.

        **fit_params : dict
            None are used.

        Returns
        -------
        step : dict
            The loss.
        """
        self._set_training(True)
        labeled, targets, unlabeled = to_device(batch, self.device)
        loss = self.batch_loss(labeled, targets, unlabeled)
        self.optimizer_.zero_grad()
        loss.backward()
        self.optimizer_.step()
        return {"loss": loss.detach()}
