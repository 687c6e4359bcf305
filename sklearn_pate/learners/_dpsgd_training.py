"""Training of a network by DP-SGD, after a trial on made-up rows."""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer
from opacus.validators import ModuleValidator
from sklearn.base import clone

from sklearn_pate._aggregation._rehearsal import check_probabilities
from sklearn_pate._estimators._isolation import MAX_SEED, one_thread, seeded_globals
from sklearn_pate._estimators._progress import steps_of
from sklearn_pate.accounting._value_checks import counted
from sklearn_pate.mechanisms._noise import NoiseSource, standard_normal
from sklearn_pate.mechanisms._noisy_training import DPSGDSteps, PoissonSampler

# Gradients of single rows are computed for a block of rows at a time. This many numbers
# stay in the processor's cache, and a batch of any size fits into memory.
_NUMBERS_AT_ONCE = 2**21
_FEWEST_ROWS_AT_ONCE = 16
# Numbers that are clipped at a time, in 64 bits.
_NUMBERS_IN_CACHE = 2**17
# Approximate number of blocks of a step: in larger blocks, more places stay empty.
_BLOCKS = 16
# The finest unit of gradients is the bound over 2^40; their sum with noise has 62 bits.
_FINEST_UNIT, _BITS = 40, 61
# Clipping to slightly less than the bound covers the rounding of a norm.
_BELOW_BOUND = 1 - 2.0**-20
# The unit of released sums is about the standard deviation of the noise over 2^20.
_BITS_OF_NOISE = 20
# Made-up rows of a trial.
_N_ROWS = 3
# Errors of torch, skorch and Opacus for an unsuitable network.
_REFUSALS = (ValueError, RuntimeError, TypeError, IndexError, NotImplementedError)


def train(
    estimator: Any,
    rows: NDArray[np.float32],
    codes: NDArray[np.intp],
    n_classes: int,
    plan: DPSGDSteps,
    *,
    noise: NoiseSource,
    seed: int,
) -> Any:
    """Train a clone of a skorch network with DP-SGD.

    Rows with a code of -1 are not used. `noise` draws samples and noise and seeds
    dropout; `seed` is for the initial weights. The returned network has the trained
    weights, and nothing else that depends on private rows.
    """
    X, y = torch.from_numpy(rows), torch.from_numpy(codes)
    with one_thread_quietly():
        net = initialized(estimator, n_classes, seed)
        with _secret_globals(noise):
            steps = NoisySteps(net, X, y.long(), plan, noise)
            sampler = PoissonSampler(plan.sampling_rate, noise)
            for _ in steps_of("training in steps", range(plan.n_steps)):
                # On the processor, torch keeps 32 bits of a seed: too few for a fit.
                torch.default_generator.manual_seed(_secret_seed(noise))
                steps.step(np.flatnonzero(sampler.draw(len(X)) & (codes >= 0)))
        # Layers and parameters hold gradients of single rows; a new network does not.
        published = initialized(estimator, n_classes, seed)
        trained = dict(net.module_.named_parameters())
        with torch.no_grad():
            for name, parameter in published.module_.named_parameters():
                parameter.copy_(trained[name])
    return published


@contextmanager
def _secret_globals(noise: NoiseSource) -> Iterator[None]:
    """Seed the global generators secretly, so that dropout masks stay secret.

    The mask of a row depends on the rows before it. If masks were known, an added row
    would change the gradients of all others.
    """
    with seeded_globals(int(noise.index(MAX_SEED, 1)[0])):
        torch.manual_seed(_secret_seed(noise))
        yield


def _secret_seed(noise: NoiseSource) -> int:
    """Draw a seed for torch."""
    return int(noise.index(2**63, 1)[0])


class NoisySteps:
    """Steps of an initialized network along noisy sums of clipped gradients.

    A `noise` of None adds none.

    The last bits of a gradient may depend on the number of rows in a batch and on the
    position of the row; at a kink of the network, the last bits determine the gradient.
    So all blocks have one shape, each row draws its place in a block independently, and
    empty places hold rows of zeros, which add nothing. Rows that draw the same place
    are in different blocks. An added row may move these to other blocks, but no row to
    another place: it changes no other gradient, as the order of operations depends on
    shapes and places, not on values.
    """

    def __init__(
        self,
        net: Any,
        X: torch.Tensor,
        y: torch.Tensor,
        plan: DPSGDSteps,
        noise: NoiseSource | None,
    ) -> None:
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

    def step(self, indices: NDArray[np.intp]) -> None:
        """Make one step with the rows of a sample, which may be empty."""
        optimizer = self.optimizer
        optimizer.zero_grad()
        blocks = self._blocks(indices)
        for n_done, block in enumerate(blocks, start=1):
            optimizer.zero_grad()  # keeps the sum
            optimizer.counts = torch.from_numpy(block >= 0)
            X, y = self.X[block], self.y[block]
            X[~optimizer.counts], y[~optimizer.counts] = 0, 0
            self.compute_gradients(X, y)
            optimizer.signal_skip_step(n_done < len(blocks))
            optimizer.step()

    def _blocks(self, indices: NDArray[np.intp]) -> NDArray[np.intp]:
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

    def compute_gradients(self, X: torch.Tensor, y: torch.Tensor) -> None:
        """Store the gradients of single rows in the parameters, as ``grad_sample``.

        Raises ValueError unless there is one for each row: as each is clipped on its
        own, a row with several could move the sum by more than the bound.
        """
        losses_of_rows(self.net, X, y).sum().backward()
        for gradients in self.optimizer.grad_samples:
            if len(gradients) != len(X):
                raise ValueError(
                    f"the module makes {counted(len(gradients), 'gradient')} out of "
                    f"{counted(len(X), 'row')}, so that clipping does not bound the "
                    "effect of one row; make each layer keep rows separate, along the "
                    "first axis."
                )


class NoisyOptimizer(DPOptimizer):
    """Opacus' optimizer on whole numbers, with noise from the operating system.

    `n_rows` is the largest number of rows in a sum. ``counts``, of shape (block_size,),
    marks the places of a block that hold rows of the sample.

    Each clipped gradient is rounded towards zero to multiples of a unit u, a part of
    the bound C. Its norm is at most C: the computed norm is right to (d + 3) / 2^53,
    with d weights, less than the 2^-20 by which C is lowered for d < 2^32, and rounding
    towards zero makes no vector longer. Whole numbers are added exactly, in any order.
    So one row moves the sum S by C at most, and changes no bit of the others' part.

    Noise Z is rounded to multiples of u, and S + Z to those of a coarser unit. As S is
    a multiple of u, S + round(Z) = round(S + Z), which is a post-processing of the
    Gaussian mechanism that is charged. The possible multiples do not depend on S.
    """

    counts: torch.Tensor

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        noise: NoiseSource | None,
        *,
        n_rows: int,
        **parameters: Any,
    ) -> None:
        super().__init__(optimizer, **parameters)
        self.noise = noise
        # Noise has at most 9.3 standard deviations.
        largest = n_rows + 16 * self.noise_multiplier
        self.n_units = 2.0 ** min(_FINEST_UNIT, _BITS - math.ceil(math.log2(largest)))

    def clip_and_accumulate(self) -> None:
        """Clip the gradient of each row, and add them up.

        A gradient that is not finite counts as zero: a sum of NaN would reveal it.
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

    def add_noise(self) -> None:
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


def _exactly(gradients: torch.Tensor) -> torch.Tensor:
    """Convert to 64 bits, on the processor if the device has only 32."""
    on = gradients.cpu() if gradients.device.type == "mps" else gradients
    return on.double()


def initialized(estimator: Any, n_classes: int, seed: int) -> Any:
    """Return a clone of a network with initial weights, for class indices.

    It has no callbacks, history or output.
    """
    net = clone(estimator).set_params(
        classes=list(range(n_classes)), train_split=None, callbacks="disable", verbose=0
    )
    with seeded_globals(seed):
        return net.initialize()


def losses_of_rows(net: Any, X: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Compute the loss of each row.

    With class weights, the weight of a row in the mean of a batch depends on others.
    """
    net.criterion_.reduction = "none"
    losses = net.get_loss(net.infer(X), y, X=X, training=True)
    if losses.shape != y.shape:
        raise ValueError(
            f"its criterion gives {tuple(losses.shape)} losses for "
            f"{counted(len(y), 'row')}; use a criterion that gives one loss per row "
            "with reduction='none', such as torch.nn.CrossEntropyLoss."
        )
    return losses


@contextmanager
def one_thread_quietly() -> Iterator[None]:
    """Let torch compute with one thread, without an expected warning."""
    with one_thread(), warnings.catch_warnings():
        # Gradients with respect to the rows are not needed.
        warnings.filterwarnings("ignore", message="Full backward hook is firing when")
        yield


def check_trainable(
    estimator: Any, row_shape: tuple[int, ...], n_classes: int, plan: DPSGDSteps
) -> None:
    """Raise ValueError for a network that cannot be trained row by row.

    Reads no data. A statement holds if the gradient that is clipped for a row depends
    neither on other rows of its block nor on rows of earlier steps. A few made-up rows
    cannot show special treatment of some rows, or of many at once.
    """
    with one_thread_quietly(), seeded_globals(0):
        try:
            # Valid as pixels, and as tokens 0 and 1.
            X, y = torch.rand(_N_ROWS, *row_shape), torch.arange(_N_ROWS) % n_classes
            X[torch.rand(X.shape) < 0.5] = 1
            net = initialized(estimator, n_classes, 0)
            for problem in ModuleValidator.validate(net.module_.train()):
                raise problem
            if not any(p.requires_grad for p in net.module_.parameters()):
                raise ValueError("its module has no weights to train.")
            shape = net.predict_proba(X.numpy()).shape[1:]
            if shape != (n_classes,):
                raise ValueError(
                    f"its module gives outputs of shape {shape} for a row; it must "
                    "give one output for each class."
                )
            steps = NoisySteps(net, X, y, plan, None)
            if not _rows_are_apart(steps, X, y, n_classes):
                raise ValueError(
                    "its module or its loss mixes the rows of a batch, or keeps "
                    "statistics of them, so that clipping does not bound the effect "
                    "of one row. Use layers that treat each row separately along the "
                    "first axis, such as torch.nn.GroupNorm instead of BatchNorm."
                )
            steps.step(np.arange(_N_ROWS))
            check_probabilities(net, X.numpy(), n_classes)
        except _REFUSALS as error:
            raise ValueError(
                f"estimator cannot be trained on rows of shape {row_shape} with "
                f"{n_classes} classes: {error}"
            ) from error


def _rows_are_apart(
    steps: NoisySteps, X: torch.Tensor, y: torch.Tensor, n_classes: int
) -> bool:
    """Check that the gradient of a row stays when all others, or labels, change."""
    buffers = [one.clone() for one in steps.net.module_.buffers()]
    gradients = _gradients(steps, X, y)
    for kept in range(_N_ROWS):
        # Ones to zeros, and others to ones, which changes tokens as well.
        X_changed, y_changed = (X < 1).to(X), (y + 1) % n_classes
        X_changed[kept], y_changed[kept] = X[kept], y[kept]
        again = _gradients(steps, X_changed, y_changed)
        for one, other in zip(gradients, again, strict=True):
            atol = 1e-5 * one.nan_to_num().abs().max().item()
            if not torch.allclose(one[kept], other[kept], 1e-5, atol, equal_nan=True):
                return False
    return all(map(torch.equal, buffers, steps.net.module_.buffers()))


def _gradients(
    steps: NoisySteps, X: torch.Tensor, y: torch.Tensor
) -> list[torch.Tensor]:
    """Compute the gradients of rows, with the same dropout masks each time."""
    steps.optimizer.zero_grad()
    with seeded_globals(0):
        steps.compute_gradients(X, y)
    return steps.optimizer.grad_samples
