"""Networks for images, augmentation of images, and batches of public rows."""

import math
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm
from torch.utils.data import Dataset

from sklearn_pate.accounting._value_checks import (
    Constraint,
    check_number,
    check_parameters,
)

# Widths of three convolutions and of the hidden layer.
_SMALL = (24, 48, 48, 64)
# Hidden layers of a discriminator of rows.
HIDDEN_SIZES = (400, 200, 200)
# Noise of inputs relative to hidden layers, as in Salimans et al.: 0.3 to 0.5.
INPUT_NOISE = 0.6
# Fewest batches in an epoch, as few rows would give too few training steps.
MIN_BATCHES = 20
# Share of values that a strong change of rows swaps, and standard deviation of the
# noise that it adds.
_SWAPPED, _ADDED = 0.3, 0.1


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


def check_augmentation(
    name: str, value: Any, *, also: tuple[str | None, ...] = (None,)
) -> None:
    """Raise ValueError unless an object has methods `weak` and `strong`.

    The values in `also` are accepted too.
    """
    if isinstance(value, str | None) and value in also:
        return
    if not (hasattr(value, "weak") and hasattr(value, "strong")):
        raise ValueError(
            f"{name}={value!r} must have the methods weak and strong, as "
            "ImageAugmentation() has, or be the default."
        )
    check_parameters(value)


class ImageAugmentation(BaseEstimator):
    """Random affine maps, elastic distortions, contrast changes and erasing of images.

    A weak change is a shift. A strong change combines all changes. Images are not
    mirrored, and values outside an image repeat the border of the image. A student
    seeds the random number generator of torch from `random_state`. A student changes
    public images only, so no parameter has a privacy cost, unless the parameter was
    chosen on private images.

    Parameters
    ----------
    rotation : float, default=15
        Largest angle, in degrees, in either direction.

    shift : float, default=0.12
        Largest shift in each direction, as a share of the image's width or height.

    scale : float, default=0.15
        Largest absolute logarithm of the factors by which width and height are
        stretched.

    shear : float, default=0.2
        Tangent of the largest shear angle.

    elastic : float, default=0
        Standard deviation of a smooth random displacement, as a share of the image's
        width or height.

    erase : float, default=0
        Largest width and height of a rectangle that is set to 0, as shares of the
        image's width and height.

    contrast : float, default=0
        Standard deviation of the logarithm of a random exponent of the values. The
        exponent makes strokes thicker or thinner. Values must be between 0 and 1.

    weak_shift : float, default=0.06
        Largest shift of a weak change, as a share of the image's width or height.

    Notes
    -----
    Elastic distortions are from Simard, Steinkraus, Platt (2003), "Best practices for
    convolutional neural networks applied to visual document analysis". Erasing is from
    DeVries, Taylor (2017), "Improved regularization of convolutional neural networks
    with cutout".

    Examples
    --------
    >>> import torch
    >>> from sklearn_pate.students import ImageAugmentation
    >>> images = torch.rand(5, 1, 28, 28)
    >>> ImageAugmentation(rotation=30).strong(images).shape
    torch.Size([5, 1, 28, 28])
    """

    __module__ = "sklearn_pate.students"  # its name in files

    _constraints: ClassVar[dict[str, Constraint]] = {
        "rotation": Constraint.number(0, 180),
        "shift": Constraint.number(0, 1),
        "scale": Constraint.number(0, 1),
        "shear": Constraint.number(0, 1),
        "elastic": Constraint.number(0, 1),
        "erase": Constraint.number(0, 1),
        "contrast": Constraint.number(0, 1),
        "weak_shift": Constraint.number(0, 1),
    }

    def __init__(
        self,
        *,
        rotation: float = 15,
        shift: float = 0.12,
        scale: float = 0.15,
        shear: float = 0.2,
        elastic: float = 0.0,
        erase: float = 0.0,
        contrast: float = 0.0,
        weak_shift: float = 0.06,
    ) -> None:
        self.rotation = rotation
        self.shift = shift
        self.scale = scale
        self.shear = shear
        self.elastic = elastic
        self.erase = erase
        self.contrast = contrast
        self.weak_shift = weak_shift

    def weak(self, images: Tensor) -> Tensor:
        """Return slightly shifted images.

        Parameters
        ----------
        images : Tensor of shape (n_images, channels, height, width)
            Images.

        Returns
        -------
        images : Tensor of shape (n_images, channels, height, width)
            Changed copies.
        """
        grid = _grid(images, _random_maps(images, shift=self.weak_shift))
        return _look_up(images, grid)

    def strong(self, images: Tensor) -> Tensor:
        """Return strongly distorted images with an erased part.

        Parameters
        ----------
        images : Tensor of shape (n_images, channels, height, width)
            Images.

        Returns
        -------
        images : Tensor of shape (n_images, channels, height, width)
            Changed copies.
        """
        maps = _random_maps(
            images,
            angle=math.radians(self.rotation),
            shift=self.shift,
            scale=self.scale,
            shear=self.shear,
        )
        grid = _grid(images, maps)
        if self.elastic > 0:
            grid = grid + _smooth_displacements(images, 2 * self.elastic)
        images = _look_up(images, grid)
        if self.contrast > 0:
            powers = torch.randn(len(images), 1, 1, 1, device=images.device)
            # The gradient of a power is not finite at 0.
            images = images.clamp(1e-6, 1) ** torch.exp(self.contrast * powers)
        return _erase(images, self.erase) if self.erase > 0 else images


def _uniform(size: int | tuple[int, ...], like: Tensor, bound: float) -> Tensor:
    return (2 * torch.rand(size, device=like.device) - 1) * bound


def _random_maps(
    images: Tensor,
    *,
    shift: float,
    angle: float = 0.0,
    scale: float = 0.0,
    shear: float = 0.0,
) -> Tensor:
    """Return affine maps of shape (n_images, 2, 3) on coordinates from -1 to 1."""
    n = len(images)
    angles = _uniform(n, images, angle)
    cos, sin = torch.cos(angles), torch.sin(angles)
    rotations = torch.stack([cos, -sin, sin, cos], dim=1).view(n, 2, 2)
    stretches = torch.diag_embed(torch.exp(_uniform((n, 2), images, scale)))
    stretches[:, 0, 1] = _uniform(n, images, shear)
    shifts = _uniform((n, 2, 1), images, 2 * shift)
    return torch.cat([rotations @ stretches, shifts], dim=2)


def _grid(images: Tensor, maps: Tensor) -> Tensor:
    return functional.affine_grid(maps, list(images.shape), align_corners=False)


def _smooth_displacements(images: Tensor, size: float) -> Tensor:
    coarse = size * torch.randn(len(images), 2, 5, 5, device=images.device)
    fine = functional.interpolate(
        coarse, size=images.shape[-2:], mode="bicubic", align_corners=False
    )
    return fine.permute(0, 2, 3, 1)


def _look_up(images: Tensor, grid: Tensor) -> Tensor:
    return functional.grid_sample(
        images, grid, align_corners=False, padding_mode="border"
    )


def _erase(images: Tensor, largest: float) -> Tensor:
    n, _, height, width = images.shape
    half = _uniform(n, images, 1).abs() * largest / 2

    def inside(size: int) -> Tensor:
        places = (torch.arange(size, device=images.device) + 0.5) / size
        centre = torch.rand(n, 1, device=images.device)
        return (places - centre).abs() < half[:, None]

    square = inside(height)[:, None, :, None] & inside(width)[:, None, None, :]
    return images.masked_fill(square, 0)


class RowAugmentation:
    """Random changes to rows of standardised features.

    Values are swapped between rows of a batch (Yoon et al. 2020, "VIME"; Ucar et al.
    2021, "SubTab"), which preserves the distribution of a feature, and noise is added.
    """

    #: Strength of a weak change, as a share of the strength of a strong change.
    _WEAK = 0.3

    def weak(self, rows: Tensor) -> Tensor:
        """Return slightly changed rows."""
        return self.strong(rows, self._WEAK)

    def strong(self, rows: Tensor, strength: float = 1.0) -> Tensor:
        """Return strongly changed rows."""
        # Features are shuffled separately, which mixes several other rows.
        order = torch.rand_like(rows).argsort(dim=0)
        chosen = torch.rand_like(rows) < strength * _SWAPPED
        rows = torch.where(chosen, rows.gather(0, order), rows)
        return rows + strength * _ADDED * torch.randn_like(rows)


def default_augmentation(input_shape: tuple[int, ...], **changes: float) -> Any:
    """Return the changes for images, with these parameters, or for rows."""
    if len(input_shape) == 3:
        return ImageAugmentation(**changes)
    return RowAugmentation()


class PublicRows(Dataset):
    """Scaled public rows and targets, zeros for an unlabelled row.

    `inputs` have shape (n_rows, *input_shape), `targets` (n_rows, n_classes).
    """

    def __init__(self, inputs: Tensor, targets: Tensor) -> None:
        self.inputs = inputs
        self.targets = targets
        self.labeled = torch.nonzero(targets.sum(dim=1)).flatten()

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: Any) -> tuple[Tensor, Tensor]:
        return self.inputs[index], self.targets[index]


class PairedBatches:
    """Batches (labelled inputs, their targets, inputs of any rows) for one epoch.

    An epoch is a pass over all rows in random order, repeated until it has 20 batches.
    Labelled rows are repeated as often as needed.
    """

    def __init__(
        self, rows: PublicRows, batch_size: int, labeled_batch_size: int
    ) -> None:
        self.rows = rows
        self.batch_size = min(batch_size, len(rows))
        self.labeled_batch_size = labeled_batch_size

    def __len__(self) -> int:
        return max(len(self.rows) // self.batch_size, MIN_BATCHES)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        inputs, targets = self.rows.inputs, self.rows.targets
        unlabeled = _in_turns(torch.arange(len(self.rows)), self.batch_size)
        labeled = _in_turns(self.rows.labeled, self.labeled_batch_size)
        for _ in range(len(self)):
            known = next(labeled)
            yield inputs[known], targets[known], inputs[next(unlabeled)]


def _in_turns(indices: Tensor, size: int) -> Iterator[Tensor]:
    """Yield batches of indices without end, each index once per pass."""
    waiting = indices[:0]
    while True:
        while len(waiting) < size:
            waiting = torch.cat([waiting, indices[torch.randperm(len(indices))]])
        yield waiting[:size]
        waiting = waiting[size:]
