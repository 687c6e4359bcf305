"""Hidden representations of networks: the inputs of their last linear layer."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


def hidden_layer(module: nn.Module) -> nn.Linear:
    """Find the last linear layer of a module that maps inputs to logits."""
    linear = [layer for layer in module.modules() if isinstance(layer, nn.Linear)]
    if not linear:
        raise ValueError(
            f"module is a {type(module).__name__} without a torch.nn.Linear; make its "
            "last layer one, as the inputs of this layer are the hidden representation."
        )
    return linear[-1]


@contextmanager
def hidden_passes(module: nn.Module) -> Iterator[list[Tensor]]:
    """Collect the hidden representations of all calls of a module in a list."""
    passes = []
    handle = hidden_layer(module).register_forward_pre_hook(
        lambda layer, inputs: passes.append(inputs[0])
    )
    try:
        yield passes
    finally:
        handle.remove()


def hidden_of_batch(module: nn.Module, inputs: Tensor) -> Tensor:
    """Compute the hidden representation of a batch, of shape (n_rows, n_hidden).

    The module stays in its mode, training or evaluation, and gradients are kept.
    """
    with hidden_passes(module) as seen:
        module(inputs)
    if not seen:
        raise ValueError(
            f"module is a {type(module).__name__} that does not use its last "
            "torch.nn.Linear; remove that layer, or set hint=None."
        )
    return seen[-1].flatten(1)


def hidden_representation(
    module: nn.Module, inputs: Tensor, batch_size: int = 1000
) -> Tensor:
    """Compute the hidden representation of many inputs, in evaluation mode."""
    device = hidden_layer(module).weight.device
    module.eval()
    with torch.no_grad():
        return torch.cat(
            [
                hidden_of_batch(module, part.to(device)).cpu()
                for part in inputs.split(batch_size)
            ]
        )
