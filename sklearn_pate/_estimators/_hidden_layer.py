"""What a network makes of its inputs before its last layer."""

from contextlib import contextmanager

import torch
from torch import nn

__all__ = [
    "hidden_layer",
    "hidden_of_batch",
    "hidden_passes",
    "hidden_representation",
]


def hidden_layer(module):
    """Find the layer whose inputs are the hidden representation.

    Parameters
    ----------
    module : torch.nn.Module
        From a batch of inputs to logits.

    Returns
    -------
    layer : torch.nn.Linear
        The last one.

    Raises
    ------
    ValueError
        If there is none.
    """
    linear = [layer for layer in module.modules() if isinstance(layer, nn.Linear)]
    if not linear:
        raise ValueError(
            f"module is a {type(module).__name__} without a torch.nn.Linear, whose "
            "inputs would be its hidden representation; end it in one."
        )
    return linear[-1]


@contextmanager
def hidden_passes(module):
    """Collect hidden representations, pass by pass.

    Parameters
    ----------
    module : torch.nn.Module
        From a batch of inputs to logits.

    Yields
    ------
    passes : list of Tensor
        Grows as the module is called.
    """
    passes = []
    handle = hidden_layer(module).register_forward_pre_hook(
        lambda layer, inputs: passes.append(inputs[0])
    )
    try:
        yield passes
    finally:
        handle.remove()


def hidden_of_batch(module, inputs):
    """Compute the hidden representation of a batch, in the mode that the module is in.

    Parameters
    ----------
    module : torch.nn.Module
        From a batch of inputs to logits.

    inputs : Tensor of shape (n_rows, *input_shape)
        Where the module's weights are.

    Returns
    -------
    hidden : Tensor of shape (n_rows, n_hidden)
        What goes into the last linear layer; gradients flow back from it.

    Raises
    ------
    ValueError
        If the module has no linear layer, or does not use its last one.
    """
    with hidden_passes(module) as seen:
        module(inputs)
    if not seen:
        raise ValueError(
            f"module is a {type(module).__name__} that does not use its last "
            "torch.nn.Linear; remove that layer, or set hint_epochs=0."
        )
    return seen[-1].flatten(1)


def hidden_representation(module, inputs, batch_size=1000):
    """Compute the hidden representation of many inputs, where the weights are.

    Parameters
    ----------
    module : torch.nn.Module
        Put in evaluation mode.

    inputs : Tensor of shape (n_rows, *input_shape)
        On any device.

    batch_size : int, default=1000
        Number of rows at once.

    Returns
    -------
    hidden : Tensor of shape (n_rows, n_hidden)
        On the CPU.

    Raises
    ------
    ValueError
        If the module has no linear layer, or does not use its last one.
    """
    device = hidden_layer(module).weight.device
    module.eval()
    with torch.no_grad():
        return torch.cat(
            [
                hidden_of_batch(module, part.to(device)).cpu()
                for part in inputs.split(batch_size)
            ]
        )
