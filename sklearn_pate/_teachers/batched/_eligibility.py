"""Choice of the teachers that are trained at once, from public facts only.

If it depended on a private row which teachers are trained together, that row would
change many votes.
"""

import math
import re
import warnings
from numbers import Integral, Real
from typing import Any

import joblib
import numpy as np
import torch
from skorch import NeuralNetClassifier
from skorch.dataset import Dataset
from torch.nn import CrossEntropyLoss, NLLLoss
from torch.utils.data import DataLoader

from sklearn_pate._estimators._seeding import seeded_clone, seeded_globals
from sklearn_pate._inputs._containers import Table
from sklearn_pate._teachers.batched._batched_training import Teachers, seed_generators

__all__ = ["OneByOne", "block_teachers"]

# Memory of a block, which must fit into a processor's cache.
CPU_BLOCK_BYTES = 32 * 2**20
# Smaller blocks are not faster than single teachers.
MIN_TEACHERS_IN_CPU_BLOCK = 4
# Share of a graphics card's memory for a block, beside other tasks.
CUDA_BLOCK_SHARE = 1 / 8

# Elementwise updates are the same for stacked parameters.
ELEMENTWISE_OPTIMIZERS = (
    torch.optim.SGD,
    torch.optim.Adam,
    torch.optim.AdamW,
    torch.optim.RMSprop,
)


class OneByOne(Exception):  # noqa: N818
    """Reason why teachers are not trained at once. Depends on public facts only."""


def block_teachers(
    net: Any, X_public: Table, *, n_teachers: int, n_classes: int
) -> list[list[int]]:
    """Return blocks of teachers to train at once, or raise OneByOne.

    Shards hold rows of the shape and type of `X_public`.
    """
    _check_parameters(net)
    try:
        bytes_a_teacher, device = _try_out(net, X_public.shape[1:], n_classes)
    except OneByOne:
        raise
    except Exception as error:
        what = str(error).partition("\n")[0]
        raise OneByOne(
            f"its module does not run for several teachers at once ({what})"
        ) from error
    if device.type == "cuda":
        memory = torch.cuda.get_device_properties(device).total_memory
        n_blocks = math.ceil(n_teachers / (CUDA_BLOCK_SHARE * memory / bytes_a_teacher))
    else:
        most = int(CPU_BLOCK_BYTES / bytes_a_teacher)
        if most < MIN_TEACHERS_IN_CPU_BLOCK:
            raise OneByOne(
                f"its module needs {bytes_a_teacher / 2**20:.0f} MiB a teacher, too "
                "much for a processor's cache"
            )
        n_blocks = max(
            math.ceil(n_teachers / most),
            # Work for several processes, of twelve teachers or more each.
            min(16, 2 * (n_teachers // 24)),
            min(2, n_teachers // 5),
        )
    blocks = np.array_split(np.arange(n_teachers), max(1, n_blocks))
    return [block.tolist() for block in blocks]


def _check_parameters(net: Any) -> None:
    """Raise OneByOne if a parameter is not supported."""
    if type(net) is not NeuralNetClassifier:
        raise OneByOne(f"{type(net).__name__} is not plain NeuralNetClassifier")
    if net.train_split:
        raise OneByOne("train_split is set (it is by default; pass train_split=None)")
    callbacks = net.get_params_for("callbacks").values()
    if net.callbacks not in (None, [], "disable") or any(
        one is not None for one in callbacks
    ):
        raise OneByOne("callbacks are set")
    for name in ("warm_start", "compile"):
        if getattr(net, name):
            raise OneByOne(f"{name} is set")
    if net.predict_nonlinearity != "auto":
        raise OneByOne("predict_nonlinearity is set")
    for name, default in (
        ("iterator_train", DataLoader),
        ("iterator_valid", DataLoader),
        ("dataset", Dataset),
    ):
        given = set(net.get_params_for(name)) - {"shuffle"}
        if getattr(net, name) is not default or given:
            raise OneByOne(f"{name} is not the default one")
    for name in ("batch_size", "max_epochs"):
        value = getattr(net, name)
        if not isinstance(value, Integral) or value < 1:
            raise OneByOne(f"{name}={value!r} is not a positive number")
    if net.criterion not in (NLLLoss, CrossEntropyLoss) or net.get_params_for(
        "criterion"
    ):
        raise OneByOne("the criterion is not plain NLLLoss or CrossEntropyLoss")
    if net.optimizer not in ELEMENTWISE_OPTIMIZERS:
        names = ", ".join(one.__name__ for one in ELEMENTWISE_OPTIMIZERS)
        raise OneByOne(f"the optimizer is none of {names}")
    options = net.get_params_for("optimizer") | {"lr": net.lr}
    for name, value in options.items():
        parts = value if isinstance(value, (tuple, list)) else [value]
        if not all(one is None or isinstance(one, Real) for one in parts):
            raise OneByOne(f"the optimizer's {name} is not a number")


def _try_out(
    net: Any, row_shape: tuple[int, ...], n_classes: int
) -> tuple[float, torch.device]:
    """Train and predict on random rows; return bytes a teacher and the device.

    Raises OneByOne, or any error of the module.
    """
    with seeded_globals(0), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        teachers = Teachers(net, [0, 1])
        n_rows = max(net.batch_size, 2)
        rows = torch.rand(2, n_rows, *row_shape).to(teachers.device)
        before = _fingerprint(teachers)
        saved = _SavedForBackward()
        with saved:
            outputs, *gradients = _learn(teachers, rows)
        if outputs.ndim != 3 or outputs.shape[2] < n_classes:
            raise OneByOne(
                f"its module does not return {n_classes} numbers for each row"
            )
        if _fingerprint(teachers) != before:
            raise OneByOne("its module changes itself when it is called")
        _check_independence(teachers, rows, [outputs, *gradients])
        _check_against_one_alone(net, teachers, rows[0])
        if _fingerprint(teachers) != before:
            raise OneByOne("its module changes itself when it is called")
    for one in caught:
        if missing := re.search(r"batching rule for (\S+)\.", str(one.message)):
            raise OneByOne(f"its module needs {missing[1]}, which torch cannot batch")
    values = sum(value.nbytes for value in teachers.state.values())
    # Parameters, gradients and up to two values of the optimizer; tensors saved for
    # the backward pass, their gradients, and as much for intermediate results.
    return (4 * values + 3 * saved.n_bytes) / 2, teachers.device


def _fingerprint(teachers: Teachers) -> str:
    """Hash the state that a module may change when it is called."""
    return joblib.hash((teachers.module.train(), teachers.buffers))


def _learn(teachers: Teachers, rows: torch.Tensor) -> list[torch.Tensor]:
    """Return outputs and gradients, each of shape (n_teachers, ...)."""
    seed_generators([0])
    teachers.module.train()
    outputs = teachers.forward(rows.clone(), each=True)
    codes = torch.zeros(outputs.shape[:2], dtype=torch.int64, device=rows.device)
    gradients = torch.autograd.grad(
        teachers.losses(outputs, codes).sum(),
        [value for value in teachers.parameters.values() if value.requires_grad],
        allow_unused=True,
    )
    return [outputs, *(each for each in gradients if each is not None)]


def _check_independence(
    teachers: Teachers, rows: torch.Tensor, learnt: list[torch.Tensor]
) -> None:
    """Raise OneByOne if extreme rows of one of two teachers change the other."""
    for teacher in (0, 1):
        for factor in (100.0, -1.0, math.nan):
            changed = rows.clone()
            changed[teacher] *= factor
            for before, after in zip(learnt, _learn(teachers, changed), strict=True):
                if not torch.equal(before[1 - teacher], after[1 - teacher]):
                    raise OneByOne("in its module, teachers learn from each other")


@torch.no_grad()
def _check_against_one_alone(net: Any, teachers: Teachers, rows: torch.Tensor) -> None:
    """Compare predictions with those of single networks, on fewer rows."""
    teachers.module.eval()
    together = teachers.forward(rows.clone(), each=False)[:, :-1]
    for seed, outputs in enumerate(together):
        with seeded_globals(seed):
            module = seeded_clone(net, seed).initialize().module_.eval()
        alone = module(rows[:-1].clone())
        if not torch.allclose(outputs, alone, rtol=1e-3, atol=1e-4):
            raise OneByOne("its module predicts otherwise for several teachers")


class _SavedForBackward(torch.autograd.graph.saved_tensors_hooks):
    """Count of the bytes that are saved for the backward pass."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}
        super().__init__(self._pack, lambda tensor: tensor)

    def _pack(self, tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        self._sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    @property
    def n_bytes(self) -> int:
        """Number of bytes, each storage counted once."""
        return sum(self._sizes.values())
