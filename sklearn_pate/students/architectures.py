"""Networks that students are made of unless the user brings one."""

import math

from torch import nn

__all__ = ["default_module", "encoder_module"]


def default_module(input_shape, n_classes):
    """Build a small network for rows or for images.

    Parameters
    ----------
    input_shape : tuple of int
        (n_features,), or (channels, height, width).

    n_classes : int
        Number of outputs.

    Returns
    -------
    module : torch.nn.Module
        From a batch of inputs to logits of shape (n_rows, n_classes).
    """
    if len(input_shape) == 1:
        return _perceptron(*input_shape, n_classes)
    return _convolutional(input_shape, n_classes)


def _perceptron(n_features, n_classes):
    return nn.Sequential(
        nn.Linear(n_features, 128),
        nn.ReLU(),
        nn.Linear(128, 128),
        nn.ReLU(),
        nn.Linear(128, n_classes),
    )


def _convolutional(input_shape, n_classes):
    channels, height, width = input_shape

    def block(n_in, n_out, size):
        return (
            nn.Conv2d(n_in, n_out, size, stride=2, padding=size // 2, bias=False),
            nn.BatchNorm2d(n_out),
            nn.LeakyReLU(0.1),
        )

    # Where things are matters: averaging over places learns much more slowly.
    n_places = math.ceil(height / 4) * math.ceil(width / 4)
    return nn.Sequential(
        *block(channels, 32, 5),
        *block(32, 64, 3),
        nn.Flatten(),
        nn.Linear(64 * n_places, 128),
        nn.ReLU(),
        nn.Linear(128, n_classes),
    )


def encoder_module(input_shape):
    """Build a small network without a classifier at its end.

    Parameters
    ----------
    input_shape : tuple of int
        (n_features,), or (channels, height, width).

    Returns
    -------
    module : torch.nn.Module
        From a batch of inputs to features of shape (n_rows, 256).
    """

    def normalized(layer, n_out, kind):
        return layer, kind(n_out), nn.ReLU()

    if len(input_shape) == 1:
        return nn.Sequential(
            *normalized(nn.Linear(*input_shape, 256), 256, nn.BatchNorm1d),
            *normalized(nn.Linear(256, 256), 256, nn.BatchNorm1d),
        )
    return nn.Sequential(
        *normalized(nn.Conv2d(input_shape[0], 32, 5, 2, 2), 32, nn.BatchNorm2d),
        *normalized(nn.Conv2d(32, 64, 3, 2, 1), 64, nn.BatchNorm2d),
        *normalized(nn.Conv2d(64, 64, 3, 1, 1), 64, nn.BatchNorm2d),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        *normalized(nn.Linear(1024, 256), 256, nn.BatchNorm1d),
    )
