"""Default networks of students: classifiers, encoders, discriminators, generators."""

import math
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from sklearn_pate.accounting._value_checks import check_number

# Widths of three convolutions and of the hidden layer.
_SMALL = (24, 48, 48, 64)
# Hidden layers of a discriminator of rows.
HIDDEN_SIZES = (400, 200, 200)
# Noise of inputs relative to hidden layers, as in Salimans et al.: 0.3 to 0.5.
INPUT_NOISE = 0.6


def check_builder(name: str, value: Any) -> None:
    """Raise ValueError unless a parameter is None, a module, or builds one."""
    if value is not None and not callable(value):
        raise ValueError(
            f"{name}={value!r} must be a torch.nn.Module, or a callable that builds "
            "one."
        )


def build_module(module: Any, *shapes: Any) -> nn.Module:
    """Copy a module with its weights, or build one by calling it with the shapes."""
    return deepcopy(module) if isinstance(module, nn.Module) else module(*shapes)


def default_module(input_shape: tuple[int, ...], n_classes: int) -> nn.Module:
    """Build a small network from inputs to logits.

    `input_shape` is (n_features,) for rows, or (channels, height, width) for images.
    """
    if len(input_shape) == 1:
        return nn.Sequential(
            nn.Linear(*input_shape, 128),
            nn.ReLU(),
            nn.Linear(128, 128),
            nn.ReLU(),
            nn.Linear(128, n_classes),
        )
    channels, height, width = input_shape

    def block(n_in: int, n_out: int, size: int) -> tuple[nn.Module, ...]:
        return (
            nn.Conv2d(n_in, n_out, size, stride=2, padding=size // 2, bias=False),
            nn.BatchNorm2d(n_out),
            nn.LeakyReLU(0.1),
        )

    # No average over places, with which training would be much slower.
    n_places = math.ceil(height / 4) * math.ceil(width / 4)
    return nn.Sequential(
        *block(channels, 32, 5),
        *block(32, 64, 3),
        nn.Flatten(),
        nn.Linear(64 * n_places, 128),
        nn.ReLU(),
        nn.Linear(128, n_classes),
    )


@dataclass(frozen=True)
class ConvSmall:
    """Builder of small convolutional networks, similar to the students of PETDL.

    The networks also accept flat rows, and can learn from a :class:`RelationalHint`. A
    student with ``module=ConvSmall()`` can be published and saved. A student uses
    public rows and released answers only, so `compression` has no privacy cost.

    Parameters
    ----------
    compression : float, default=1
        Divisor of the width of each layer, at least 1.

    Notes
    -----
    Sun, Zhou, Wang, Li, Socher, Yu, Xiong (2019), "Private deep learning with teacher
    ensembles", use a network ConvSmall with 23.0 or 13.2 thousand parameters for MNIST,
    depending on the compression (Table 3), but do not describe its layers. Networks of
    this class have strided convolutions with batch normalisation. For 28 x 28 pixels
    and 10 classes, a network has 82 thousand parameters. With a compression of 2 and 3,
    the network has 21 and 9 thousand parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pate.students import ConvSmall, FixMatchClassifier
    >>> module = ConvSmall(compression=2)((1, 28, 28), 10)
    >>> sum(parameter.numel() for parameter in module.parameters())
    20878
    >>> X = np.random.RandomState(0).uniform(size=(20, 64))  # 20 public images
    >>> y = np.array([0, 1] + 18 * [-1])  # two answers
    >>> student = FixMatchClassifier(
    ...     ConvSmall(compression=2), image_shape=(8, 8), max_epochs=1, random_state=0
    ... )
    >>> student.fit(X, y).predict_proba(X).shape
    (20, 2)
    """

    __module__ = "sklearn_pate.students"  # its name in files

    compression: float = 1

    def __call__(self, input_shape: tuple[int, ...], n_classes: int) -> nn.Sequential:
        """Build a network from a batch of inputs of this shape to logits."""
        check_number("compression", self.compression, 1, math.inf)
        *widths, n_hidden = (
            max(1, round(width / self.compression)) for width in _SMALL
        )
        n_in, *size = input_shape
        layers = [nn.Flatten(), nn.Unflatten(1, tuple(input_shape))]
        for width, kernel in zip(widths, (5, 3, 3), strict=True):
            if size:
                conv = nn.Conv2d(n_in, width, kernel, 2, kernel // 2, bias=False)
                layers += [conv, nn.BatchNorm2d(width), nn.ReLU()]
                size = [math.ceil(length / 2) for length in size]
            else:
                linear = nn.Linear(n_in, width, bias=False)
                layers += [linear, nn.BatchNorm1d(width), nn.ReLU()]
            n_in = width
        return nn.Sequential(
            *layers,
            nn.Flatten(),
            nn.Linear(n_in * math.prod(size), n_hidden, bias=False),
            nn.BatchNorm1d(n_hidden),
            nn.ReLU(),
            nn.Linear(n_hidden, n_classes),
        )


def encoder_module(input_shape: tuple[int, ...]) -> nn.Module:
    """Build a small network from inputs to features of shape (n_rows, 256)."""

    def normalized(
        layer: nn.Module, n_out: int, kind: type[nn.Module]
    ) -> tuple[nn.Module, ...]:
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


class GaussianNoise(nn.Module):
    """Noise of standard deviation `scale`, added to inputs during training only."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Add noise in training, nothing in evaluation."""
        if not self.training or self.scale == 0:
            return inputs
        return inputs + self.scale * torch.randn_like(inputs)


class Discriminator(nn.Sequential):
    """A perceptron with weight normalisation, and noise in every layer.

    `noise` is the standard deviation behind each hidden layer; that of inputs is 0.6 of
    it.
    """

    def __init__(
        self, input_shape: tuple[int, ...], n_classes: int, noise: float = 0.5
    ) -> None:
        layers = [nn.Flatten(), GaussianNoise(INPUT_NOISE * noise)]
        n_in = math.prod(input_shape)
        for n_out in HIDDEN_SIZES:
            layers += [weight_norm(nn.Linear(n_in, n_out)), nn.ReLU()]
            layers += [GaussianNoise(noise)]
            n_in = n_out
        super().__init__(*layers, weight_norm(nn.Linear(n_in, n_classes)))

    @torch.no_grad()
    def standardize_outputs(self, inputs: torch.Tensor) -> None:
        """Initialise lengths of weights, and biases, from a batch of inputs.

        On these, the outputs of each layer then have mean 0 and standard deviation 1:
        Salimans, Kingma (2016), "Weight normalization: a simple reparameterization to
        accelerate training of deep neural networks", section 3.
        """
        for layer in self:
            outputs = layer(inputs)
            if isinstance(layer, nn.Linear):
                mean, scale = outputs.mean(dim=0), outputs.std(dim=0).clamp_min(1e-6)
                normalized: Any = layer.parametrizations
                normalized.weight.original0.div_(scale[:, None])
                layer.bias.copy_((layer.bias - mean) / scale)
                outputs = layer(inputs)
            inputs = outputs


def default_generator(n_latent: int, input_shape: tuple[int, ...]) -> nn.Module:
    """Build a perceptron that generates rows, or a convolutional network for images.

    Latent vectors have shape (n_rows, n_latent). Images lie between 0 and 1, as scaled
    inputs do.
    """
    if len(input_shape) == 1:
        layers = []
        for n_in in (n_latent, 500):
            layers += [nn.Linear(n_in, 500, bias=False), nn.BatchNorm1d(500)]
            layers += [nn.Softplus()]
        return nn.Sequential(*layers, nn.Linear(500, *input_shape))
    channels, height, width = input_shape
    # Doubled twice, then cut to size.
    coarse = (32, math.ceil(height / 4), math.ceil(width / 4))
    n_coarse = math.prod(coarse)
    return nn.Sequential(
        nn.Linear(n_latent, n_coarse, bias=False),
        nn.BatchNorm1d(n_coarse),
        nn.ReLU(),
        nn.Unflatten(1, coarse),
        nn.ConvTranspose2d(32, 16, 4, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.ConvTranspose2d(16, channels, 4, stride=2, padding=1),
        nn.Sigmoid(),
        Crop(height, width),
    )


class Crop(nn.Module):
    """Cut images to their upper left part."""

    def __init__(self, height: int, width: int) -> None:
        super().__init__()
        self.height = height
        self.width = width

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return views of shape (n_images, channels, height, width)."""
        return images[..., : self.height, : self.width]
