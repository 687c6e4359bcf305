"""Check of a network on artificial rows, before it is trained with DP-SGD."""

from typing import Any

import numpy as np
import torch
from opacus.validators import ModuleValidator

from sklearn_pate._estimators._seeding import seeded_globals
from sklearn_pate.accounting._counted import counted
from sklearn_pate.baselines.dpsgd._dpsgd_training import (
    NoisySteps,
    initialized,
    losses_of_rows,
    one_thread_quietly,
)
from sklearn_pate.mechanisms._dpsgd_steps import DPSGDSteps

__all__ = ["check_trainable"]

# One row alone is tried too: a layer that takes a fixed number of slices for rows fails
# with one of the two.
_N_ROWS = 3
# Errors of torch, skorch and Opacus for an unsuitable network.
_REFUSALS = (ValueError, RuntimeError, TypeError, IndexError, NotImplementedError)


def check_trainable(
    estimator: Any, row_shape: tuple[int, ...], n_classes: int, plan: DPSGDSteps
) -> None:
    """Raise ValueError for a network that cannot be trained row by row.

    Reads no data. A statement holds if the clipped gradient of a row depends on this
    row only. So the loss of a row must depend neither on the values of other rows nor
    on their number, and the gradients of Opacus must be those of the losses. A few
    rows cannot show special treatment of some rows, or of many at once.
    """
    with one_thread_quietly(), seeded_globals(0):
        try:
            X, y = _artificial_rows(row_shape, n_classes)
            _check_rows_are_apart(initialized(estimator, n_classes, 0), X, y, n_classes)
            # A new network, as in a fit: its layers have had no row yet.
            steps = NoisySteps(initialized(estimator, n_classes, 0), X, y, plan, None)
            for n_rows in (1, _N_ROWS):
                _check_gradients(steps, X[:n_rows], y[:n_rows])
            for n_rows in (1, _N_ROWS):
                steps.step(np.arange(n_rows))
        except _REFUSALS as error:
            raise ValueError(
                f"estimator cannot be trained on rows of shape {row_shape} with "
                f"{n_classes} classes: {error}"
            ) from error


def _artificial_rows(
    row_shape: tuple[int, ...], n_classes: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw rows within [0, 1], valid as pixels and as tokens 0 and 1."""
    X = torch.rand(_N_ROWS, *row_shape)
    X[torch.rand(X.shape) < 0.5] = 1
    return X, torch.arange(_N_ROWS) % n_classes


def _check_rows_are_apart(
    net: Any, X: torch.Tensor, y: torch.Tensor, n_classes: int
) -> None:
    """Raise unless the loss of each row depends on this row only."""
    module = net.module_.train()
    if not any(p.requires_grad for p in module.parameters()):
        raise ValueError("its module has no weights to train.")
    if any(map(torch.nn.parameter.is_lazy, module.parameters())):
        raise ValueError(
            "its module has weights without a shape; set the sizes of layers, with "
            "torch.nn.Linear instead of LazyLinear, for example."
        )
    buffers = [one.clone() for one in module.buffers()]
    is_apart = _ignores_other_rows(net, X, y, n_classes)
    if not is_apart or not all(map(torch.equal, buffers, module.buffers())):
        raise ValueError(
            "its module mixes the rows of a batch, or keeps statistics of them, so "
            "that clipping does not bound the effect of one row; use layers that treat "
            "each row on its own, such as torch.nn.GroupNorm instead of BatchNorm."
        )
    for problem in ModuleValidator.validate(module):
        raise ValueError(str(problem))
    if not _ignores_number_of_rows(net, X, y):
        raise ValueError(
            "the loss of a row depends on the number of rows, so that clipping does "
            "not bound the effect of one row; use a module and a criterion that treat "
            "each row on its own."
        )
    probabilities = net.predict_proba(X.numpy())
    if probabilities.shape != (_N_ROWS, n_classes):
        raise ValueError(
            f"its module gives outputs of shape {probabilities.shape[1:]} for a row; "
            "it must give one for each class."
        )


def _ignores_other_rows(
    net: Any, X: torch.Tensor, y: torch.Tensor, n_classes: int
) -> bool:
    """Check that losses stay when another row, or its label, changes."""
    losses = _losses(net, X, y)
    for changed in range(_N_ROWS):
        others = torch.arange(_N_ROWS) != changed
        X_changed, y_changed = X.clone(), y.clone()
        # To ones, or from ones to zeros, which changes tokens as well.
        X_changed[changed] = (X[changed] < 1).any()
        y_changed[changed] = (y[changed] + 1) % n_classes
        again = _losses(net, X_changed, y_changed)
        if not _agree(again[others], losses[others], atol=1e-5):
            return False
    return True


def _ignores_number_of_rows(net: Any, X: torch.Tensor, y: torch.Tensor) -> bool:
    """Check that a row alone has the same loss as among others.

    As the masks of dropout change with the number of rows, dropout is off then. A
    module that draws even without dropout is not compared.
    """
    for is_training in (True, False):
        net.module_.train(is_training)
        losses = _losses(net, X, y)
        if _agree(losses, _losses(net, X, y, seed=1), atol=1e-5):
            alone = [_losses(net, X[[i]], y[[i]]) for i in range(_N_ROWS)]
            atol = _rounding(losses) * (1 + _largest(losses))
            return _agree(torch.cat(alone), losses, atol)
    return True


def _check_gradients(steps: NoisySteps, X: torch.Tensor, y: torch.Tensor) -> None:
    """Raise unless the gradients to be clipped are those of the losses of rows."""
    parameters = steps.optimizer.params
    steps.module.disable_hooks()
    of_losses = [
        torch.autograd.grad(loss, parameters, retain_graph=True, materialize_grads=True)
        for loss in _losses(steps.net, X, y)
    ]
    steps.module.enable_hooks()
    steps.optimizer.zero_grad()
    with seeded_globals(0):
        steps.compute_gradients(X, y)
    expected = [torch.stack(one) for one in zip(*of_losses, strict=True)]
    # Gradients that cancel out, as for a normalised bias, are not quite 0.
    remainder = 1e-5 * max(map(_largest, expected))
    for one, given in zip(expected, steps.optimizer.grad_samples, strict=True):
        if not _agree(given, one, _rounding(one) * _largest(one) + remainder):
            raise ValueError(
                "the gradients that Opacus computes for single rows are not those of "
                "their losses, so that clipping does not bound the effect of one row; "
                "keep rows along the first axis of the input of each layer, and use "
                "optimizer__weight_decay instead of a penalty in get_loss."
            )


def _losses(net: Any, X: torch.Tensor, y: torch.Tensor, seed: int = 0) -> torch.Tensor:
    """Compute the losses of rows; the same number of rows gets the same draws."""
    with seeded_globals(seed):
        losses = losses_of_rows(net, X, y)
    if losses.shape != y.shape:
        raise ValueError(
            f"its criterion gives {tuple(losses.shape)} losses for "
            f"{counted(len(y), 'row')}; use "
            "one that gives a loss for each row with reduction='none', such as "
            "torch.nn.CrossEntropyLoss, and a module that keeps the axis of rows."
        )
    return losses


def _agree(ones: torch.Tensor, others: torch.Tensor, atol: float) -> bool:
    """Compare numbers up to rounding."""
    return torch.allclose(ones, others, rtol=1e-5, atol=atol, equal_nan=True)


def _largest(numbers: torch.Tensor) -> float:
    """Compute the largest absolute value."""
    return numbers.nan_to_num().abs().max().item()


def _rounding(numbers: torch.Tensor) -> float:
    """Bound the relative rounding error; graphics cards may multiply with 10 bits."""
    return 1e-4 if numbers.device.type == "cpu" else 1e-2
