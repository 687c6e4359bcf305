"""Training with DP-SGD: Poisson samples, clipped gradients, noise. Needs Opacus."""

import math
import warnings
from contextlib import contextmanager

import numpy as np
import torch
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer
from sklearn.base import clone

from sklearn_pate._estimators._seeding import MAX_SEED, seeded_globals
from sklearn_pate.mechanisms._poisson_sampled import PoissonSampler
from sklearn_pate.mechanisms.noise._continuous import standard_normal
from sklearn_pate.students.networks._network_training import one_torch_thread

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
# They are clipped for fewer rows at a time, in 64 bits.
_NUMBERS_IN_CACHE = 2**17
# Blocks of a step, about: with fewer and larger ones, more places stay empty.
_BLOCKS = 16
# The finest unit of gradients is the bound over 2^40; their sum with noise has 62 bits.
_FINEST_UNIT, _BITS = 40, 61
# Clipping to so much less than the bound covers the rounding of a norm.
_BELOW_BOUND = 1 - 2.0**-20
# Units that are released are about the standard deviation of the noise over 2^20.
_BITS_OF_NOISE = 20


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

    plan : DPSGDSteps
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

    plan : DPSGDSteps
        Its noise, bound and expected size of a sample are read.

    noise : NoiseSource or None
        None adds none.

    Notes
    -----
    The last bits of a gradient may depend on how many rows a batch has, and on which of
    them the row is; at a kink of the network, the last bits decide what the gradient
    is. So all blocks have one shape, with rows of zeros, which add nothing, at places
    that are left, and each row draws its place in a block by itself. Rows that draw the
    same place go to different blocks. One row more may move these to other blocks, but
    no row to another place: it changes no gradient but its own, as the order of
    operations depends on shapes and places, and on no number.
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
            n_rows=len(X),
            noise_multiplier=plan.noise_multiplier,
            max_grad_norm=plan.max_grad_norm,
            expected_batch_size=plan.expected_batch_size,
        )
        n_numbers = sum(p.numel() for p in self.optimizer.params)
        most = max(_NUMBERS_AT_ONCE // n_numbers, _FEWEST_ROWS_AT_ONCE)
        fewest = math.ceil(plan.expected_batch_size / _BLOCKS)
        self.block_size = min(max(fewest, _FEWEST_ROWS_AT_ONCE), most)

    def follow(self, indices):
        """Make one step, of the same law for any number of rows.

        Parameters
        ----------
        indices : ndarray of int
            Rows of the sample.
        """
        optimizer = self.optimizer
        optimizer.zero_grad()
        blocks = self._blocks(indices)
        for n_followed, block in enumerate(blocks, start=1):
            optimizer.zero_grad()  # what is added up already stays
            optimizer.counts = torch.from_numpy(block >= 0)
            X, y = self.X[block], self.y[block]
            X[~optimizer.counts], y[~optimizer.counts] = 0, 0
            self.differentiate(X, y)
            optimizer.signal_skip_step(n_followed < len(blocks))
            optimizer.step()

    def _blocks(self, indices):
        """Return at least one block of row indices, -1 at places that stay empty."""
        size = self.block_size
        if self.optimizer.noise is None:
            places = np.arange(len(self.X)) % size
        else:  # one for each row, so that no draw after them depends on the sample
            places = self.optimizer.noise.index(size, len(self.X))
        places = places[indices]
        order = np.argsort(places, kind="stable")
        n_of_place = np.bincount(places, minlength=size)
        first_of_place = np.cumsum(n_of_place) - n_of_place
        places = places[order]
        blocks = np.full((max(n_of_place.max(), 1), size), -1)
        blocks[np.arange(len(order)) - first_of_place[places], places] = indices[order]
        return blocks

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
    """Opacus' optimizer on whole numbers, with noise from the operating system.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
        What follows the noisy gradient.

    noise : NoiseSource or None
        None adds none.

    n_rows : int
        Most rows that a sum can have.

    **parameters : dict
        As for :class:`opacus.optimizers.DPOptimizer`.

    Attributes
    ----------
    counts : Tensor of bool of shape (block_size,)
        Which rows of the block are rows of the sample.

    Notes
    -----
    Each clipped gradient is rounded towards zero to multiples of a unit u, a part of
    the bound C. Its norm is at most C: the computed norm is right to (d + 3) / 2^53,
    with d weights, less than the 2^-20 by which C is lowered for d < 2^32, and rounding
    towards zero makes no vector longer. Whole numbers are added without error, in any
    order. So one row moves the sum S by C at most, and leaves the others' part as it
    was, bit by bit.

    Noise Z is rounded to multiples of u, and S + Z to those of a coarser unit. As S is
    a multiple of u, S + round(Z) = round(S + Z), which is a post-processing of the
    Gaussian mechanism that is charged. Which multiples can occur does not depend on S.
    """

    def __init__(self, optimizer, noise, *, n_rows, **parameters):
        super().__init__(optimizer, **parameters)
        self.noise = noise
        # Noise has at most 9.3 standard deviations.
        largest = n_rows + 16 * self.noise_multiplier
        self.n_units = 2.0 ** min(_FINEST_UNIT, _BITS - math.ceil(math.log2(largest)))

    def clip_and_accumulate(self):
        """Clip the gradient of each row, and add them up.

        A row whose gradient is not finite counts as zero: it would turn everything into
        NaN, which tells that it is there.
        """
        n_numbers = sum(p.numel() for p in self.params)
        at_once = max(_NUMBERS_IN_CACHE // n_numbers, 1)
        for start in range(0, len(self.counts), at_once):
            part = slice(start, start + at_once)
            of_rows = [_exactly(one[part]).flatten(1) for one in self.grad_samples]
            norms = torch.stack([one.norm(dim=1) for one in of_rows]).norm(dim=0)
            counts = self.counts[part].to(norms.device) & torch.isfinite(norms)
            factors = self.n_units * _BELOW_BOUND / norms.clamp(min=self.max_grad_norm)
            for p, one in zip(self.params, of_rows, strict=True):
                one *= factors[:, None]
                if not counts.all():
                    one[~counts] = 0
                total = one.to(torch.int64).sum(dim=0)
                p.summed_grad = (
                    total if p.summed_grad is None else p.summed_grad + total
                )

    def add_noise(self):
        """Add Gaussian noise to the sum of clipped gradients."""
        sigma = self.noise_multiplier * self.n_units
        shift = max(math.frexp(sigma)[1] - _BITS_OF_NOISE, 0)
        for p in self.params:
            total = p.summed_grad
            if self.noise is not None:
                draws = np.rint(sigma * standard_normal(self.noise, tuple(total.shape)))
                draws = torch.from_numpy(draws.astype(np.int64)).to(total.device)
                total = (total + draws + (1 << shift >> 1)) >> shift << shift
            in_bounds = total.double() / self.n_units * self.max_grad_norm
            p.grad = in_bounds.to(p).view_as(p)


def _exactly(gradients):
    """Return gradients with 64 bits, on the processor if the device has only 32."""
    on = gradients.cpu() if gradients.device.type == "mps" else gradients
    return on.double()


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
