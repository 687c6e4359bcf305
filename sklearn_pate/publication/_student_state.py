"""State of a student: the parts to leave out, and the parts to save without pickle."""

import os
from collections.abc import Iterator
from copy import copy, deepcopy
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_pate._estimators._class_codes import is_of, last_step, with_last_step

# Networks whose weights are saved as arrays, without pickle.
OWN_NETWORKS = frozenset(
    f"sklearn_pate.students.networks.{name}"
    for name in (
        "_fixmatch.FixMatchClassifier",
        "_gan.GANClassifier",
    )
)

# Its module is rebuilt from the module's class, which a reader has to trust.
TRAINED_NETWORK = "sklearn_pate.learners._dpsgd.TrainedNetwork"

# Builder of our own networks, besides their default.
OWN_BUILDER = "sklearn_pate.students.networks._modules.ConvSmall"

_LEAVES = (str, bytes, int, float, type, FunctionType, ModuleType)


def without_caches(student: Any) -> Any:
    """Copy a fitted student without caches, callbacks and histories.

    `memory` of a Pipeline, and callbacks and history of skorch networks, name folders
    of this machine. The copy predicts the same.
    """
    student = deepcopy(student)
    for one in reachable(student):
        if isinstance(one, BaseEstimator) and _is_folder(vars(one).get("memory")):
            one.memory = None
        if is_of(one, "skorch") and hasattr(one, "callbacks_"):
            one.callbacks, one.callbacks_ = None, []
            one.history_ = type(one.history_)()
    return student


def taken_apart(student: Any) -> dict[str, Any]:
    """Separate a network at the end of a student from its weights, to save both.

    "weights" are arrays; they are missing for other students.
    """
    network = last_step(student)
    if not _is_built_again(network):
        return {"student": student}
    network = copy(network)
    module = network.__dict__.pop("module_")
    weights = {name: tensor.numpy() for name, tensor in module.state_dict().items()}
    return {"student": with_last_step(student, network), "weights": weights}


def restored(content: dict[str, Any]) -> Any:
    """Restore the student from the parts that `taken_apart` returned.

    ValueError is raised if another model came with weights, a network came without, or
    its module has tensors beside them.
    """
    student = content["student"]
    network, has_weights = last_step(student), "weights" in content
    if has_weights != _is_built_again(network):
        which = "with" if has_weights else "without"
        raise ValueError(f"a {type(network).__name__} {which} weights")
    if not has_weights:
        return student
    torch = import_module("torch")
    parametrize = import_module("torch.nn.utils.parametrize")
    # On "meta", no memory is taken until the shapes have been compared.
    with torch.device("meta"):
        module = network._make_module()
    for layer in list(module.modules()):
        if parametrize.is_parametrized(layer):  # trained modules are not
            for name in list(layer.parametrizations):
                parametrize.remove_parametrizations(layer, name)
            layer._load_state_dict_pre_hooks.clear()
    weights = content["weights"].items()
    weights = {name: torch.from_numpy(array) for name, array in weights}
    module.load_state_dict(weights, assign=True)
    if any(isinstance(one, torch.Tensor) and one.is_meta for one in reachable(module)):
        raise ValueError(
            f"a {type(module).__name__} with tensors that are not in its state_dict; "
            "register them as persistent buffers"
        )
    network.module_ = module.eval()
    return student


def reachable(root: Any) -> Iterator[Any]:
    """Yield every object reachable through attributes and items, once.

    Texts, numbers, functions, modules and classes are left out.
    """
    seen: dict[int, Any] = {}
    todo = [root]
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, _LEAVES):
            continue
        seen[id(one)] = one
        yield one
        if isinstance(one, dict):
            todo += one.values()
        elif isinstance(one, (list, tuple, set)):
            todo += one
        elif isinstance(one, np.ndarray) and one.dtype.hasobject:
            todo += one.ravel().tolist()
        todo += getattr(one, "__dict__", {}).values()


def full_name(kind: type) -> str:
    """Return the name of a class with its module, as the privacy card has it."""
    return f"{kind.__module__}.{kind.__qualname__}"


def _is_folder(memory: Any) -> bool:
    return isinstance(memory, (str, os.PathLike)) or hasattr(memory, "location")


def _is_built_again(network: Any) -> bool:
    """Check that a network's module, without its weights, follows from parameters."""
    name = full_name(type(network))
    if name == TRAINED_NETWORK:
        return isinstance(network.module, type)
    if name not in OWN_NETWORKS:
        return False
    return network.module is None or full_name(type(network.module)) == OWN_BUILDER
