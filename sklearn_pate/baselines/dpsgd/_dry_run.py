"""Whether a network can be trained with DP-SGD: tried on rows that are made up."""

import numpy as np
import torch
from opacus.validators import ModuleValidator

from sklearn_pate._estimators._seeding import seeded_globals
from sklearn_pate.baselines.dpsgd._dpsgd_training import (
    NoisySteps,
    initialized,
    losses_of_rows,
    one_thread_quietly,
)

__all__ = ["rehearse"]

# And one row alone: a layer that takes a fixed number of slices for rows is found out
# by one or the other.
_N_ROWS = 3
# What torch, skorch and Opacus raise for a network that does not fit.
_REFUSALS = (ValueError, RuntimeError, TypeError, IndexError, NotImplementedError)


def rehearse(estimator, row_shape, n_classes, plan):
    """Find out whether a network can be trained row by row. Looks at no data.

    Parameters
    ----------
    estimator : NeuralNetClassifier
        Not changed.

    row_shape : tuple of int
        Shape of one row.

    n_classes : int
        Number of classes.

    plan : DPSGDSteps
        Of the steps to come.

    Raises
    ------
    ValueError
        If it cannot.

    Notes
    -----
    A statement holds if the gradient that is clipped for a row depends on this row
    only. So the loss of a row must not change with what the others are, nor with
    whether there are others, and the gradients of Opacus must be those of the losses.
    A few rows show what a module does to any; they cannot show what it does to some
    rows only, or to more of them.
    """
    with one_thread_quietly(), seeded_globals(0):
        try:
            X, y = _made_up_rows(row_shape, n_classes)
            _check_rows_are_apart(initialized(estimator, n_classes, 0), X, y, n_classes)
            # Anew and as in a fit, where layers have seen no row by now.
            steps = NoisySteps(initialized(estimator, n_classes, 0), X, y, plan, None)
            for n_rows in (1, _N_ROWS):
                _check_gradients(steps, X[:n_rows], y[:n_rows])
            for n_rows in (1, _N_ROWS):
                steps.follow(np.arange(n_rows))
        except _REFUSALS as error:
            raise ValueError(
                f"estimator cannot be trained on rows of shape {row_shape} with "
                f"{n_classes} classes: {error}"
            ) from error


def _made_up_rows(row_shape, n_classes):
    """Make up rows within [0, 1], which are good as pixels, and as tokens 0 and 1."""
    X = torch.rand(_N_ROWS, *row_shape)
    X[torch.rand(X.shape) < 0.5] = 1
    return X, torch.arange(_N_ROWS) % n_classes


def _check_rows_are_apart(net, X, y, n_classes):
    module = net.module_.train()
    if not any(p.requires_grad for p in module.parameters()):
        raise ValueError("its module has no weights to train.")
    if any(map(torch.nn.parameter.is_lazy, module.parameters())):
        raise ValueError(
            "its module has weights of no shape before it sees a row; give layers "
            "their sizes, as torch.nn.Linear instead of LazyLinear."
        )
    buffers = [one.clone() for one in module.buffers()]
    is_apart = _ignores_other_rows(net, X, y, n_classes)
    if not is_apart or not all(map(torch.equal, buffers, module.buffers())):
        raise ValueError(
            "its module mixes the rows of a batch, or keeps statistics of them, so "
            "that clipping does not bound what one row does; use layers that treat "
            "each row on its own, such as torch.nn.GroupNorm instead of BatchNorm."
        )
    for problem in ModuleValidator.validate(module):
        raise ValueError(str(problem))
    if not _needs_no_company(net, X, y):
        raise ValueError(
            "the loss of a row depends on how many rows there are, so that clipping "
            "does not bound what one row does; use a module and a criterion that "
            "treat each row on its own."
        )
    probabilities = net.predict_proba(X.numpy())
    if probabilities.shape != (_N_ROWS, n_classes):
        raise ValueError(
            f"its module gives outputs of shape {probabilities.shape[1:]} for a row; "
            "let it give one for each class."
        )


def _ignores_other_rows(net, X, y, n_classes):
    """Tell whether losses stay when another row, or its label, changes."""
    losses = _losses(net, X, y)
    for changed in range(_N_ROWS):
        others = torch.arange(_N_ROWS) != changed
        X_changed, y_changed = X.clone(), y.clone()
        # Ones, or zeros if it has been ones: that changes tokens as well.
        X_changed[changed] = (X[changed] < 1).any()
        y_changed[changed] = (y[changed] + 1) % n_classes
        again = _losses(net, X_changed, y_changed)
        if not _agree(again[others], losses[others], atol=1e-5):
            return False
    return True


def _needs_no_company(net, X, y):
    """Tell whether a row on its own has the loss that it has in company.

    Where the masks of dropout change with the number of rows, the comparison is without
    dropout. A module that draws even then is not compared.
    """
    for is_training in (True, False):
        net.module_.train(is_training)
        losses = _losses(net, X, y)
        if _agree(losses, _losses(net, X, y, seed=1), atol=1e-5):
            alone = [_losses(net, X[[i]], y[[i]]) for i in range(_N_ROWS)]
            atol = _rounding(losses) * (1 + _largest(losses))
            return _agree(torch.cat(alone), losses, atol)
    return True


def _check_gradients(steps, X, y):
    """Raise unless the gradients that are clipped are those of the losses of rows."""
    parameters = steps.optimizer.params
    steps.module.disable_hooks()
    of_losses = [
        torch.autograd.grad(loss, parameters, retain_graph=True, materialize_grads=True)
        for loss in _losses(steps.net, X, y)
    ]
    steps.module.enable_hooks()
    steps.optimizer.zero_grad()
    with seeded_globals(0):
        steps.differentiate(X, y)
    expected = [torch.stack(one) for one in zip(*of_losses, strict=True)]
    # What should cancel out, as for a bias that is normalised away, does not quite.
    remainder = 1e-5 * max(map(_largest, expected))
    for one, given in zip(expected, steps.optimizer.grad_samples, strict=True):
        if not _agree(given, one, _rounding(one) * _largest(one) + remainder):
            raise ValueError(
                "the gradients that Opacus computes for single rows are not those of "
                "their losses, so that clipping does not bound what one row does; keep "
                "rows along the first axis of what each layer is given, and let "
                "optimizer__weight_decay take the place of a penalty in get_loss."
            )


def _losses(net, X, y, seed=0):
    """Compute the losses of rows, with the same draws for the same number of rows."""
    with seeded_globals(seed):
        losses = losses_of_rows(net, X, y)
    if losses.shape != y.shape:
        raise ValueError(
            f"its criterion gives {tuple(losses.shape)} losses for {len(y)} rows; use "
            "one that gives a loss for each row with reduction='none', such as "
            "torch.nn.CrossEntropyLoss, and a module that keeps the axis of rows."
        )
    return losses


def _agree(ones, others, atol):
    return torch.allclose(ones, others, rtol=1e-5, atol=atol, equal_nan=True)


def _largest(numbers):
    return numbers.nan_to_num().abs().max().item()


def _rounding(numbers):
    # Graphics cards may multiply numbers of 10 bits.
    return 1e-4 if numbers.device.type == "cpu" else 1e-2
