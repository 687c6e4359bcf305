"""What a student holds: what is not to be published, and what needs no pickle."""

import os
from copy import copy, deepcopy
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from sklearn_pate._estimators._delegation import last_step, with_last_step

__all__ = [
    "OWN_BUILDER",
    "OWN_NETWORKS",
    "TRAINED_NETWORK",
    "full_name",
    "is_of",
    "reachable",
    "restored",
    "taken_apart",
    "without_fitted_estimators",
]

# Their weights are saved as arrays, which takes no pickle.
OWN_NETWORKS = frozenset(
    f"sklearn_pate.students.networks.{name}"
    for name in (
        "_vat.VATClassifier",
        "_fixmatch.FixMatchClassifier",
        "_gan.GANClassifier",
    )
)

# Its module is built again from the module's class, which a reader has to trust.
TRAINED_NETWORK = "sklearn_pate.baselines.dpsgd._trained_network.TrainedNetwork"

# What our own networks are built by, beside their default.
OWN_BUILDER = "sklearn_pate.students.networks._modules.ConvSmall"

_NOT_LOOKED_INTO = (str, bytes, int, float, type, FunctionType, ModuleType)


def without_fitted_estimators(student):
    """Copy a student, without folders of this machine that prediction does not need.

    Parameters
    ----------
    student : classifier
        Fitted; it stays as it is.

    Returns
    -------
    student : classifier
        Predicts the same. Caches (`memory`), and callbacks and history of skorch
        networks, are left out.
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

    Parameters
    ----------
    student : classifier
        Fitted.

    Returns
    -------
    content : dict
        "student"; for a network whose module can be built again, also "weights",
        arrays.
    """
    network = last_step(student)
    if not _is_built_again(network):
        return {"student": student}
    network = copy(network)
    module = network.__dict__.pop("module_")
    weights = {name: tensor.numpy() for name, tensor in module.state_dict().items()}
    return {"student": with_last_step(student, network), "weights": weights}


def restored(content: dict[str, Any]) -> Any:
    """Put together what was taken apart.

    Parameters
    ----------
    content : dict
        As :func:`taken_apart` returned it.

    Returns
    -------
    student : classifier
        Predicts as before.

    Raises
    ------
    ValueError
        If something else came with weights, a network came without, or its module has
        tensors beside them.
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
    # Without weights, and so without their memory, until shapes have been compared.
    with torch.device("meta"):
        module = network._make_module()
    for layer in list(module.modules()):
        if parametrize.is_parametrized(layer):  # which a trained one is no more
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


def reachable(root):
    """Yield every object that is an attribute or an item of another, once.

    Parameters
    ----------
    root : object
        The first of them.

    Yields
    ------
    one : object
        Neither text nor number, function, module or class.
    """
    seen, todo = {}, [root]
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, _NOT_LOOKED_INTO):
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


def is_of(one, *packages):
    """Tell whether the class of an object, or a base of it, is from some package.

    Parameters
    ----------
    one : object
        Any.

    *packages : str
        Their names.

    Returns
    -------
    is_of : bool
        Whether it is.
    """
    return any(
        kind.__module__.partition(".")[0] in packages for kind in type(one).__mro__
    )


def full_name(kind):
    """Name a class with its module.

    Parameters
    ----------
    kind : type
        Any.

    Returns
    -------
    name : str
        As the privacy card writes it.
    """
    return f"{kind.__module__}.{kind.__qualname__}"


def _is_folder(memory):
    return isinstance(memory, (str, os.PathLike)) or hasattr(memory, "location")


def _is_built_again(network: Any) -> bool:
    """Tell whether a network's module follows from its parameters, but for weights."""
    name = full_name(type(network))
    if name == TRAINED_NETWORK:
        return isinstance(network.module, type)
    if name not in OWN_NETWORKS:
        return False
    # None, or what builds ours again.
    return network.module is None or full_name(type(network.module)) == OWN_BUILDER
