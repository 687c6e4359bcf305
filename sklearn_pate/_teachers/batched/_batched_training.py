"""Training of several teachers of one architecture as one batched network.

The training time of small networks on small shards is mostly overhead. Here the
parameters of a block of teachers are stacked, and every step trains all of them. Each
teacher depends on its own shard alone, bit for bit: blocks, and the shape of every
operation, follow from public facts; shorter shards are padded with rows of weight
zero; and no operation sums over teachers.
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch.func import functional_call, stack_module_state, vmap
from torch.nn import CrossEntropyLoss, NLLLoss, functional

from sklearn_pate._estimators._seeding import seeded_clone, seeded_globals
from sklearn_pate._teachers.batched._vmap_rules import ManyTeachers

__all__ = ["Teachers", "fit_at_once", "seed_generators"]

Rows: TypeAlias = tuple[NDArray[np.float32], NDArray[np.int64]]


def fit_at_once(
    net: Any, shards: list[Rows | None], seeds: list[int], *, row_shape: tuple[int, ...]
) -> "Teachers":
    r"""Train a block of teachers at once; None is a shard without rows.

    `net` is one that `block_teachers` accepts. Rows of a shard have the shape (n_rows,
    \*row_shape); teachers without a shard keep their initial state.
    """
    teachers = Teachers(net, seeds)
    minibatches = _Minibatches(
        [0 if shard is None else len(shard[1]) for shard in shards],
        batch_size=net.batch_size,
        max_epochs=net.max_epochs,
        generators=teachers.generators if _shuffles(net) else None,
    )
    # A row of zeros at the end, for teachers without rows.
    nothing = np.zeros((1, *row_shape), np.float32), np.zeros(1, np.int64)
    rows, codes = (
        torch.from_numpy(np.concatenate(parts)).to(teachers.device)
        for parts in zip(*filter(None, shards), nothing, strict=True)
    )
    with _reproducible(teachers.device):
        teachers.state = _train(teachers, minibatches, rows, codes, seeds)
    seed_generators(seeds)
    return teachers


def _train(
    teachers: "Teachers",
    minibatches: "_Minibatches",
    rows: torch.Tensor,
    codes: torch.Tensor,
    seeds: list[int],
) -> dict[str, torch.Tensor]:
    """Return the state of each teacher after its last step."""
    trained = {name: value.detach().clone() for name, value in teachers.state.items()}
    optimizer = teachers.make_optimizer()
    teachers.module.train()
    for step in range(minibatches.n_steps.max()):
        # The draws of a teacher must not depend on the number of steps of another.
        seed_generators([*seeds, step])
        indices, counts = (part.to(rows.device) for part in minibatches.at(step))
        outputs = teachers.forward(rows[indices], each=True)
        losses = torch.where(counts, teachers.losses(outputs, codes[indices]), 0.0)
        optimizer.zero_grad()
        # For each teacher, the gradient of this sum is that of its own mean.
        (losses.sum(dim=1) / counts.sum(dim=1).clamp(min=1)).sum().backward()
        optimizer.step()
        for teacher in np.flatnonzero(minibatches.n_steps == step + 1):
            for name, value in teachers.state.items():
                trained[name][teacher] = value[teacher].detach()
    return trained


@contextmanager
def _reproducible(device: torch.device) -> Iterator[None]:
    """Let cuDNN choose deterministic algorithms, by shapes alone."""
    if device.type != "cuda":
        yield
        return
    cudnn = torch.backends.cudnn
    before = cudnn.benchmark, cudnn.deterministic
    cudnn.benchmark, cudnn.deterministic = False, True
    try:
        yield
    finally:
        cudnn.benchmark, cudnn.deterministic = before


class Teachers:
    """Networks with stacked parameters and one forward pass for all.

    `state` has their parameters and buffers by name, of shape (n_teachers, ...).
    """

    def __init__(self, net: Any, seeds: list[int]) -> None:
        nets, self.generators = zip(
            *(_initialized(net, seed) for seed in seeds), strict=True
        )
        self.net = nets[0]
        self.module = self.net.module_
        self.parameters, self.buffers = stack_module_state(
            [one.module_ for one in nets]
        )
        for name, value in self.parameters.items():
            if value.ndim == 3:  # the memory layout of the gradients of linear layers
                transposed = value.detach().mT.contiguous().mT
                self.parameters[name] = transposed.requires_grad_(value.requires_grad)
        self.state = self.parameters | self.buffers
        self.device = next(iter(self.state.values())).device

    def forward(self, rows: torch.Tensor, *, each: bool) -> torch.Tensor:
        """Return the outputs of all networks, of shape (n_teachers, n_rows, n_outputs).

        With `each`, the first axis of `rows` is that of teachers; else they share the
        rows.
        """

        def forward(state: dict[str, torch.Tensor], rows: torch.Tensor) -> torch.Tensor:
            with ManyTeachers(self.device):
                return functional_call(self.module, state, (rows,))

        in_dims = 0, 0 if each else None
        return vmap(forward, in_dims, randomness="different")(self.state, rows)

    def make_optimizer(self) -> torch.optim.Optimizer:
        """Return one optimizer for all networks."""
        args, kwargs = self.net.get_params_for_optimizer(
            "optimizer", self.parameters.items()
        )
        return self.net.optimizer(*args, **kwargs)

    def losses(self, outputs: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        """Compute the loss of each row as skorch does, of the shape of `codes`."""
        flat = outputs.flatten(0, 1)
        if isinstance(self.net.criterion_, NLLLoss):
            # The outputs are probabilities, as in skorch.
            flat = torch.log(flat + torch.finfo(flat.dtype).eps)
            losses = functional.nll_loss(flat, codes.flatten(), reduction="none")
        else:
            losses = functional.cross_entropy(flat, codes.flatten(), reduction="none")
        return losses.view(codes.shape)

    @torch.no_grad()
    def predict(self, X: NDArray[np.float32]) -> NDArray[np.intp]:
        """Predict all rows with each network, in shape (n_teachers, n_rows)."""
        self.module.eval()
        predicted = []
        for start in range(0, len(X), self.net.batch_size):
            batch = np.array(X[start : start + self.net.batch_size], order="C")
            outputs = self.forward(torch.from_numpy(batch).to(self.device), each=False)
            if isinstance(self.net.criterion_, CrossEntropyLoss):
                outputs = outputs.softmax(dim=-1)  # rounding makes ties, as in skorch
            predicted.append(outputs.cpu().numpy().argmax(axis=-1))
        return np.concatenate(predicted, axis=1)


def _initialized(net: Any, seed: int) -> tuple[Any, torch.Generator]:
    """Return a net, and the generator that would shuffle its rows if it were alone."""
    generator = torch.Generator()
    with seeded_globals(seed):
        initialized = seeded_clone(net, seed).initialize()
        generator.set_state(torch.get_rng_state())
    return initialized, generator


def _shuffles(net: Any) -> bool:
    return net.get_params_for("iterator_train").get("shuffle", False)


def seed_generators(entropy: Sequence[int]) -> None:
    """Seed the global generators of Python, numpy and torch."""
    seed = int(np.random.SeedSequence(entropy).generate_state(1)[0])
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # torch.manual_seed takes a millisecond if not
        torch.cuda.manual_seed_all(seed)


class _Minibatches:
    """Indices of the rows of each teacher at each step.

    The steps of a teacher are consecutive; a teacher with fewer steps ends earlier. So
    the step counts of a common optimizer are right for each teacher.
    """

    def __init__(
        self,
        n_rows: list[int],
        *,
        batch_size: int,
        max_epochs: int,
        generators: Sequence[torch.Generator] | None,
    ) -> None:
        self._n_rows = np.array(n_rows)
        self._batch_size = batch_size
        self._generators = generators
        self._n_batches = np.maximum(-(-self._n_rows // batch_size), 1)
        self.n_steps = np.where(self._n_rows > 0, max_epochs * self._n_batches, 0)
        self._starts = np.cumsum(self._n_rows) - self._n_rows
        # The row after all shards is for teachers without rows.
        shape = len(n_rows), self._n_batches.max() * batch_size
        self._orders = np.full(shape, self._n_rows.sum())

    def at(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return indices, and a mask of those that count, each (n_teachers, batch)."""
        batch = step % self._n_batches
        for teacher in np.flatnonzero((batch == 0) & (step < self.n_steps)):
            self._begin_epoch(int(teacher))
        places = batch[:, None] * self._batch_size + np.arange(self._batch_size)
        indices = np.take_along_axis(self._orders, places, axis=1)
        counts = places < self._n_rows[:, None]
        return torch.from_numpy(indices), torch.from_numpy(counts)

    def _begin_epoch(self, teacher: int) -> None:
        order = np.arange(self._n_rows[teacher])
        if self._generators is not None:
            order = _shuffled(len(order), self._generators[teacher])
        n_places = self._n_batches[teacher] * self._batch_size
        self._orders[teacher, :n_places] = self._starts[teacher] + np.resize(
            order, n_places
        )


def _shuffled(n_rows: int, generator: torch.Generator) -> NDArray[np.int64]:
    """Shuffle as a DataLoader does, which first draws seeds of its workers."""
    for _ in range(2):
        seed = torch.empty((), dtype=torch.int64).random_(generator=generator)
    return torch.randperm(
        n_rows, generator=torch.Generator().manual_seed(int(seed))
    ).numpy()
