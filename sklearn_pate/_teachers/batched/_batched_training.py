"""Teachers of one architecture, trained at once as one batched network.

Small networks on small shards spend much of their time between the arithmetic. Here the
parameters of a block of teachers are stacked, and every step trains all of them. What
one teacher learns depends on its own shard alone, bit for bit: blocks, and the shape of
every operation, follow from public facts; shorter shards are filled up with rows that
do not count; and nothing ever adds up over teachers.
"""

import random
from contextlib import contextmanager

import numpy as np
import torch
from torch.func import functional_call, stack_module_state, vmap
from torch.nn import CrossEntropyLoss, NLLLoss, functional

from sklearn_pate._estimators._seeding import seeded_clone, seeded_globals
from sklearn_pate._teachers.batched._vmap_rules import ManyTeachers

__all__ = ["Teachers", "fit_at_once", "seed_generators"]


def fit_at_once(net, shards, seeds, *, row_shape):
    """Train a block of teachers at once.

    Parameters
    ----------
    net : NeuralNetClassifier
        The teacher; one that `block_teachers` accepts.

    shards : list of n_teachers tuples of (ndarray, ndarray)
        Rows of shape (n_rows, *row_shape) and class indices of each teacher; None for
        a teacher that has nothing to learn.

    seeds : list of n_teachers ints
        One seed a teacher.

    row_shape : tuple of int
        Shape of a row.

    Returns
    -------
    teachers : Teachers
        Trained; those without a shard are as they began.
    """
    teachers = Teachers(net, seeds)
    minibatches = _Minibatches(
        [0 if shard is None else len(shard[1]) for shard in shards],
        batch_size=net.batch_size,
        max_epochs=net.max_epochs,
        generators=teachers.generators if _shuffles(net) else None,
    )
    # A row of nothing at the end, for teachers without any.
    nothing = np.zeros((1, *row_shape), np.float32), np.zeros(1, np.int64)
    rows, codes = (
        torch.from_numpy(np.concatenate(parts)).to(teachers.device)
        for parts in zip(*filter(None, shards), nothing, strict=True)
    )
    with _reproducible(teachers.device):
        teachers.state = _train(teachers, minibatches, rows, codes, seeds)
    seed_generators(seeds)
    return teachers


def _train(teachers, minibatches, rows, codes, seeds):
    """Return the state of each teacher after its last step."""
    trained = {name: value.detach().clone() for name, value in teachers.state.items()}
    optimizer = teachers.make_optimizer()
    teachers.module.train()
    for step in range(minibatches.n_steps.max()):
        # What one teacher draws must not depend on the number of steps of another.
        seed_generators([*seeds, step])
        indices, counts = (part.to(rows.device) for part in minibatches.at(step))
        outputs = teachers.forward(rows[indices], each=True)
        losses = torch.where(counts, teachers.losses(outputs, codes[indices]), 0.0)
        optimizer.zero_grad()
        # The gradient of this sum is, to each teacher, that of its own mean.
        (losses.sum(dim=1) / counts.sum(dim=1).clamp(min=1)).sum().backward()
        optimizer.step()
        for teacher in np.flatnonzero(minibatches.n_steps == step + 1):
            for name, value in teachers.state.items():
                trained[name][teacher] = value[teacher].detach()
    return trained


@contextmanager
def _reproducible(device):
    """Let cuDNN choose algorithms by shapes alone, and such as repeat themselves."""
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
    """Networks side by side, with one forward for all.

    Parameters
    ----------
    net : NeuralNetClassifier
        What each of them is a clone of.

    seeds : list of n_teachers ints
        One seed a teacher.

    Attributes
    ----------
    state : dict of str to Tensor of shape (n_teachers, ...)
        Parameters and buffers by name.
    """

    def __init__(self, net, seeds):
        nets, self.generators = zip(
            *(_initialized(net, seed) for seed in seeds), strict=True
        )
        self.net = nets[0]
        self.module = self.net.module_
        self.parameters, self.buffers = stack_module_state(
            [one.module_ for one in nets]
        )
        for name, value in self.parameters.items():
            if value.ndim == 3:  # laid out as the gradients of linear layers are
                transposed = value.detach().mT.contiguous().mT
                self.parameters[name] = transposed.requires_grad_(value.requires_grad)
        self.state = self.parameters | self.buffers
        self.device = next(iter(self.state.values())).device

    def forward(self, rows, *, each):
        """Run all networks.

        Parameters
        ----------
        rows : Tensor of shape (n_teachers, n_rows, ...) or (n_rows, ...)
            Rows of their own, or the same for all of them.

        each : bool
            Whether they have rows of their own.

        Returns
        -------
        outputs : Tensor of shape (n_teachers, n_rows, n_outputs)
            What the networks return.
        """

        def forward(state, rows):
            with ManyTeachers(self.device):
                return functional_call(self.module, state, (rows,))

        in_dims = 0, 0 if each else None
        return vmap(forward, in_dims, randomness="different")(self.state, rows)

    def make_optimizer(self):
        """Make one optimizer for all.

        Returns
        -------
        optimizer : torch.optim.Optimizer
            With the parameters that learn.
        """
        args, kwargs = self.net.get_params_for_optimizer(
            "optimizer", self.parameters.items()
        )
        return self.net.optimizer(*args, **kwargs)

    def losses(self, outputs, codes):
        """Compute what skorch would average over a batch.

        Parameters
        ----------
        outputs : Tensor of shape (n_teachers, n_rows, n_outputs)
            What the networks return.

        codes : Tensor of int64 of shape (n_teachers, n_rows)
            Class indices.

        Returns
        -------
        losses : Tensor of shape (n_teachers, n_rows)
            The loss of each row.
        """
        flat = outputs.flatten(0, 1)
        if isinstance(self.net.criterion_, NLLLoss):
            # As skorch does: the outputs are probabilities.
            flat = torch.log(flat + torch.finfo(flat.dtype).eps)
            losses = functional.nll_loss(flat, codes.flatten(), reduction="none")
        else:
            losses = functional.cross_entropy(flat, codes.flatten(), reduction="none")
        return losses.view(codes.shape)

    @torch.no_grad()
    def predict(self, X):
        """Let each of them predict all rows.

        Parameters
        ----------
        X : ndarray of float32 of shape (n_rows, *row_shape)
            Rows.

        Returns
        -------
        predicted : ndarray of int of shape (n_teachers, n_rows)
            Predictions of each teacher.
        """
        self.module.eval()
        predicted = []
        for start in range(0, len(X), self.net.batch_size):
            batch = np.array(X[start : start + self.net.batch_size], order="C")
            outputs = self.forward(torch.from_numpy(batch).to(self.device), each=False)
            if isinstance(self.net.criterion_, CrossEntropyLoss):
                outputs = outputs.softmax(dim=-1)  # rounding makes ties, as in skorch
            predicted.append(outputs.cpu().numpy().argmax(axis=-1))
        return np.concatenate(predicted, axis=1)


def _initialized(net, seed):
    """Return a net and the generator that it would shuffle with if it were alone."""
    generator = torch.Generator()
    with seeded_globals(seed):
        initialized = seeded_clone(net, seed).initialize()
        generator.set_state(torch.get_rng_state())
    return initialized, generator


def _shuffles(net):
    return net.get_params_for("iterator_train").get("shuffle", False)


def seed_generators(entropy):
    """Seed the global generators of Python, numpy and torch.

    Parameters
    ----------
    entropy : list of int
        What the seed is made of.
    """
    seed = int(np.random.SeedSequence(entropy).generate_state(1)[0])
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # torch.manual_seed takes a millisecond if not
        torch.cuda.manual_seed_all(seed)


class _Minibatches:
    """Which rows each teacher learns from at each step.

    A teacher's steps follow one another whatever the others do; one with fewer is done
    earlier. That keeps a common optimizer in step: what it counts, it counts for each.
    """

    def __init__(self, n_rows, *, batch_size, max_epochs, generators):
        self._n_rows = np.array(n_rows)
        self._batch_size = batch_size
        self._generators = generators
        self._n_batches = np.maximum(-(-self._n_rows // batch_size), 1)
        self.n_steps = np.where(self._n_rows > 0, max_epochs * self._n_batches, 0)
        self._starts = np.cumsum(self._n_rows) - self._n_rows
        # The row after all shards is for those that have none.
        shape = len(n_rows), self._n_batches.max() * batch_size
        self._orders = np.full(shape, self._n_rows.sum())

    def at(self, step):
        """Return indices, and whether they count, of shape (n_teachers, batch_size)."""
        batch = step % self._n_batches
        for teacher in np.flatnonzero((batch == 0) & (step < self.n_steps)):
            self._begin_epoch(teacher)
        places = batch[:, None] * self._batch_size + np.arange(self._batch_size)
        indices = np.take_along_axis(self._orders, places, axis=1)
        counts = places < self._n_rows[:, None]
        return torch.from_numpy(indices), torch.from_numpy(counts)

    def _begin_epoch(self, teacher):
        order = np.arange(self._n_rows[teacher])
        if self._generators is not None:
            order = _shuffled(len(order), self._generators[teacher])
        n_places = self._n_batches[teacher] * self._batch_size
        self._orders[teacher, :n_places] = self._starts[teacher] + np.resize(
            order, n_places
        )


def _shuffled(n_rows, generator):
    """Shuffle as a DataLoader does, which draws for its workers first."""
    for _ in range(2):
        seed = torch.empty((), dtype=torch.int64).random_(generator=generator)
    return torch.randperm(
        n_rows, generator=torch.Generator().manual_seed(seed.item())
    ).numpy()
