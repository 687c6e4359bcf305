"""Training with DP-SGD: Poisson samples, clipped gradients, noise. Needs Opacus."""

import warnings
from contextlib import contextmanager

import numpy as np
import torch
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer
from sklearn.base import clone

from sklearn_pate.mechanisms.continuous import standard_normal
from sklearn_pate.mechanisms.sampled import PoissonSampler
from sklearn_pate.seeding import MAX_SEED, seeded_globals
from sklearn_pate.students.training import one_torch_thread

__all__ = [
    "NoisySteps",
    "initialized",
    "losses_of_rows",
    "one_thread_quietly",
    "train",
]

# Gradients of single rows are held for some rows at a time: so many numbers stay in
# the processor's cache, and a batch of any size fits into memory.
_NUMBERS_AT_ONCE = 2**21
_FEWEST_ROWS_AT_ONCE = 16


def train(estimator, X, codes, n_classes, plan, *, noise, seed):
    """Train a clone of a network with DP-SGD.

    Parameters
    ----------
    estimator : NeuralNetClassifier
        Unfitted.

    X : ndarray of float32 of shape (n_rows, ...)
        Private rows.

    codes : ndarray of int of shape (n_rows,)
        Class indices, -1 for a row that teaches nothing.

    n_classes : int
        Number of classes.

    plan : StepsPlan
        How many steps are made, and with how much noise.

    noise : NoiseSource
        Decides what is in each sample, draws the noise, and seeds dropout.

    seed : int
        Of the first weights.

    Returns
    -------
    net : NeuralNetClassifier
        With the weights that were learnt, and nothing else that has seen a private row.
    """
    X, y = torch.from_numpy(X), torch.from_numpy(codes)
    with one_thread_quietly():
        net = initialized(estimator, n_classes, seed)
        with _secret_globals(noise):
            steps = NoisySteps(net, X, y.long(), plan, noise)
            sampler = PoissonSampler(plan.sampling_rate, noise)
            for _ in range(plan.n_steps):
                # On the processor, torch keeps 32 bits of a seed: too few for a fit.
                torch.default_generator.manual_seed(_secret_seed(noise))
                steps.follow(np.flatnonzero(sampler.draw(len(X)) & (codes >= 0)))
        # Layers and parameters carry gradients of single rows; a new network does not.
        published = initialized(estimator, n_classes, seed)
        learnt = dict(net.module_.named_parameters())
        with torch.no_grad():
            for name, parameter in published.module_.named_parameters():
                parameter.copy_(learnt[name])
    return published


@contextmanager
def _secret_globals(noise):
    """Let dropout draw what nobody knows.

    Which mask a row gets depends on which rows come before it. To those who know all
    masks, one row more would change the gradients of all others.
    """
    with seeded_globals(int(noise.index(MAX_SEED, 1)[0])):
        torch.manual_seed(_secret_seed(noise))
        yield


def _secret_seed(noise):
    return int(noise.index(2**63, 1)[0])


class NoisySteps:
    """Steps along noisy sums of clipped gradients.

    Parameters
    ----------
    net : NeuralNetClassifier
        Initialized.

    X : Tensor of float32 of shape (n_rows, ...)
        Private rows.

    y : Tensor of int64 of shape (n_rows,)
        Class indices.

    plan : StepsPlan
        Its noise, bound and expected size of a sample are read.

    noise : NoiseSource or None
        None adds none.
    """

    def __init__(self, net, X, y, plan, noise):
        self.net = net
        self.X = X
        self.y = y
        net.module_.train()
        self.module = GradSampleModule(net.module_, loss_reduction="sum")
        self.module.forbid_grad_accumulation()
        self.optimizer = NoisyOptimizer(
            net.optimizer_,
            noise,
            noise_multiplier=plan.noise_multiplier,
            max_grad_norm=plan.max_grad_norm,
            expected_batch_size=plan.expected_batch_size,
        )
        n_numbers = sum(p.numel() for p in self.optimizer.params)
        self.n_at_once = max(_NUMBERS_AT_ONCE // n_numbers, _FEWEST_ROWS_AT_ONCE)

    def follow(self, indices):
        """Make one step, of the same law for any number of rows.

        Parameters
        ----------
        indices : ndarray of int
            Rows of the sample.
        """
        optimizer = self.optimizer
        optimizer.zero_grad()
        parts = torch.as_tensor(indices).split(self.n_at_once)
        for n_followed, part in enumerate(parts, start=1):
            optimizer.zero_grad()  # what is added up already stays
            if len(part):
                self.differentiate(self.X[part], self.y[part])
            else:
                for p in optimizer.params:
                    p.grad_sample = p.new_zeros((0, *p.shape))
            optimizer.signal_skip_step(n_followed < len(parts))
            optimizer.step()

    def differentiate(self, X, y):
        """Let each parameter hold its gradient for each row, as ``grad_sample``.

        Parameters
        ----------
        X : Tensor of float32 of shape (n_rows, ...)
            At least one row.

        y : Tensor of int64 of shape (n_rows,)
            Class indices.

        Raises
        ------
        ValueError
            If there is not one gradient for each row. Each would be clipped on its own,
            and a row that has several could move the sum by more than the bound.
        """
        losses_of_rows(self.net, X, y).sum().backward()
        for gradients in self.optimizer.grad_samples:
            if len(gradients) != len(X):
                raise ValueError(
                    f"the module makes {len(gradients)} gradients out of {len(X)} "
                    "rows, so that clipping does not bound what one row does; give "
                    "each layer one slice for each row, along the first axis."
                )


class NoisyOptimizer(DPOptimizer):
    """Opacus' optimizer, with noise from the operating system.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
        What follows the noisy gradient.

    noise : NoiseSource or None
        None adds none.

    **parameters : dict
        As for :class:`opacus.optimizers.DPOptimizer`.
    """

    def __init__(self, optimizer, noise, **parameters):
        super().__init__(optimizer, **parameters)
        self.noise = noise

    def clip_and_accumulate(self):
        """Clip the gradient of each row, and add them up.

        A row whose gradient is not finite counts as zero: it would turn everything into
        NaN, which tells that it is there.
        """
        of_rows = self.grad_samples
        if not all(torch.isfinite(one.sum()) for one in of_rows):
            is_finite = torch.stack(
                [torch.isfinite(one).flatten(1).all(dim=1) for one in of_rows]
            ).all(dim=0)
            for one in of_rows:
                one[~is_finite] = 0
        super().clip_and_accumulate()

    def add_noise(self):
        """Add Gaussian noise to the sum of clipped gradients."""
        sigma = self.noise_multiplier * self.max_grad_norm
        for p in self.params:
            p.grad = p.summed_grad.view_as(p)
            if self.noise is not None:
                draws = sigma * standard_normal(self.noise, tuple(p.shape))
                p.grad = p.grad + torch.as_tensor(draws).to(p)


def initialized(estimator, n_classes, seed):
    """Return a clone of a network with its first weights, which keeps no diary.

    Parameters
    ----------
    estimator : NeuralNetClassifier
        Not changed.

    n_classes : int
        Number of classes.

    seed : int
        Of the weights.

    Returns
    -------
    net : NeuralNetClassifier
        For class indices.
    """
    net = clone(estimator).set_params(
        classes=list(range(n_classes)), train_split=None, callbacks="disable", verbose=0
    )
    with seeded_globals(seed):
        return net.initialize()


def losses_of_rows(net, X, y):
    """Compute the loss of each row on its own.

    Parameters
    ----------
    net : NeuralNetClassifier
        Initialized.

    X : Tensor of shape (n_rows, ...)
        Rows.

    y : Tensor of int64 of shape (n_rows,)
        Class indices.

    Returns
    -------
    losses : Tensor of shape (n_rows,)
        Their mean over a batch would weigh rows by one another, with class weights.
    """
    net.criterion_.reduction = "none"
    return net.get_loss(net.infer(X), y, X=X, training=True)


@contextmanager
def one_thread_quietly():
    """Let torch compute with one thread, and not warn of what is as it should be."""
    with one_torch_thread(), warnings.catch_warnings():
        # Nobody needs the gradient with respect to the rows.
        warnings.filterwarnings("ignore", message="Full backward hook is firing when")
        yield
