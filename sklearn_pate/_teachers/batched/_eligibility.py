"""Which teachers are trained at once, decided from public facts only.

If it depended on a private row whether teachers are trained at once, or with whom, that
row would change many votes.
"""

import math
import re
import warnings
from numbers import Integral, Real

import joblib
import numpy as np
import torch
from skorch import NeuralNetClassifier
from skorch.dataset import Dataset
from torch.nn import CrossEntropyLoss, NLLLoss
from torch.utils.data import DataLoader

from sklearn_pate._estimators._seeding import seeded_clone, seeded_globals
from sklearn_pate._teachers.batched._batched_training import Teachers, seed_generators

__all__ = ["OneByOne", "block_teachers"]

# What the teachers of a block work on at a time stays in a processor's cache.
CPU_BLOCK_BYTES = 32 * 2**20
# Fewer gain too little.
MIN_TEACHERS_IN_CPU_BLOCK = 4
# Of a graphics card's memory, so that other tasks find room beside a block.
CUDA_BLOCK_SHARE = 1 / 8

# They treat every number alike, so that stacking changes nothing.
ELEMENTWISE_OPTIMIZERS = (
    torch.optim.SGD,
    torch.optim.Adam,
    torch.optim.AdamW,
    torch.optim.RMSprop,
)


class OneByOne(Exception):  # noqa: N818
    """Says why teachers are not trained at once. Depends on public facts only."""


def block_teachers(net, X_public, *, n_teachers, n_classes):
    """Decide which teachers are trained at once, from public facts only.

    Parameters
    ----------
    net : NeuralNetClassifier
        The teacher.

    X_public : ndarray of float32 of shape (n_public, *row_shape)
        Public rows; shards hold rows of this shape and type.

    n_teachers : int
        Number of teachers.

    n_classes : int
        Number of classes.

    Returns
    -------
    blocks : list of list of int
        Teachers that are trained at once.

    Raises
    ------
    OneByOne
        If teachers like this are trained one by one.
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
                f"its module works on {bytes_a_teacher / 2**20:.0f} MiB a teacher, and "
                "beyond a processor's cache nothing is gained"
            )
        n_blocks = max(
            math.ceil(n_teachers / most),
            # So that several processes have work, of twelve teachers or more each.
            min(16, 2 * (n_teachers // 24)),
            min(2, n_teachers // 5),
        )
    blocks = np.array_split(np.arange(n_teachers), max(1, n_blocks))
    return [block.tolist() for block in blocks]


def _check_parameters(net):
    """Raise OneByOne where a parameter does what is not done here."""
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


def _try_out(net, row_shape, n_classes):
    """Train and predict on made-up rows, and return bytes a teacher and the device.

    Raises OneByOne, or whatever the module raises.
    """
    with seeded_globals(0), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        teachers = Teachers(net, [0, 1])
        n_rows = max(net.batch_size, 2)
        rows = torch.rand(2, n_rows, *row_shape).to(teachers.device)
        before = _fingerprint(teachers)
        with _SavedForBackward() as saved:
            outputs, *gradients = _learn(teachers, rows)
        if outputs.ndim != 3 or outputs.shape[2] < n_classes:
            raise OneByOne(
                f"its module does not return {n_classes} numbers for each row"
            )
        if _fingerprint(teachers) != before:
            raise OneByOne("its module changes itself when it is called")
        _check_they_stay_apart(teachers, rows, [outputs, *gradients])
        _check_against_one_alone(net, teachers, rows[0])
        if _fingerprint(teachers) != before:
            raise OneByOne("its module changes itself when it is called")
    for one in caught:
        if missing := re.search(r"batching rule for (\S+)\.", str(one.message)):
            raise OneByOne(f"its module needs {missing[1]}, which torch cannot batch")
    values = sum(value.nbytes for value in teachers.state.values())
    # Parameters, gradients and up to two values that the optimizer remembers; what is
    # saved for the way back, its gradients, and as much for passing results on.
    return (4 * values + 3 * saved.n_bytes) / 2, teachers.device


def _fingerprint(teachers):
    """Hash what a module may keep from call to call."""
    return joblib.hash((teachers.module.train(), teachers.buffers))


def _learn(teachers, rows):
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


def _check_they_stay_apart(teachers, rows, learnt):
    """Give one of two teachers strange rows, and look at the other."""
    for strange in (0, 1):
        for factor in (100.0, -1.0, math.nan):
            changed = rows.clone()
            changed[strange] *= factor
            for before, after in zip(learnt, _learn(teachers, changed), strict=True):
                if not torch.equal(before[1 - strange], after[1 - strange]):
                    raise OneByOne("in its module, teachers learn from each other")


@torch.no_grad()
def _check_against_one_alone(net, teachers, rows):
    """Compare predictions with those of networks on their own, on fewer rows."""
    teachers.module.eval()
    together = teachers.forward(rows.clone(), each=False)[:, :-1]
    for seed, outputs in enumerate(together):
        with seeded_globals(seed):
            module = seeded_clone(net, seed).initialize().module_.eval()
        alone = module(rows[:-1].clone())
        if not torch.allclose(outputs, alone, rtol=1e-3, atol=1e-4):
            raise OneByOne("its module answers otherwise when it runs for several")


class _SavedForBackward(torch.autograd.graph.saved_tensors_hooks):
    """Counts the bytes that are kept for the way back."""

    def __init__(self):
        self._sizes = {}
        super().__init__(self._pack, lambda tensor: tensor)

    def __enter__(self):
        super().__enter__()
        return self

    def _pack(self, tensor):
        storage = tensor.untyped_storage()
        self._sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    @property
    def n_bytes(self):
        """Count every piece of memory once."""
        return sum(self._sizes.values())
