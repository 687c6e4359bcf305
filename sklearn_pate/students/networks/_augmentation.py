"""Random changes to inputs that leave their class as it is."""

import math

import torch
from sklearn.base import BaseEstimator
from torch.nn import functional

from sklearn_pate._inputs._checks import check_number

__all__ = ["ImageAugmentation", "TabularAugmentation"]


class ImageAugmentation(BaseEstimator):
    """Random affine maps, elastic distortion, contrast, erasing. No mirror images.

    A weak change shifts only; a strong one does everything else, too. What moves in
    from outside repeats the border. Random numbers come from torch's generator, which a
    student seeds from its `random_state`. A student changes public images with it: no
    parameter costs any privacy, unless it was chosen by a look at private ones.

    Parameters
    ----------
    rotation : float, default=15
        Largest angle, in degrees, either way.

    shift : float, default=0.12
        Largest shift in each direction, as a share of the image's side.

    scale : float, default=0.15
        Each side is stretched by a factor between exp(-scale) and exp(scale).

    shear : float, default=0.2
        Largest shear, as a tangent.

    elastic : float, default=0
        Standard deviation of a smooth random displacement, as a share of the image's
        side.

    erase : float, default=0
        Largest side of the square that is painted over, as a share of the image's side.

    contrast : float, default=0
        Values are raised to a random power, the logarithm of which has this standard
        deviation: strokes become thicker or thinner. Values lie between 0 and 1.

    weak_shift : float, default=0.06
        Largest shift of a weak change.

    Notes
    -----
    Elastic distortion: Simard, Steinkraus, Platt (2003), "Best practices for
    convolutional neural networks applied to visual document analysis"; erased squares:
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

    def __init__(
        self,
        *,
        rotation=15,
        shift=0.12,
        scale=0.15,
        shear=0.2,
        elastic=0.0,
        erase=0.0,
        contrast=0.0,
        weak_shift=0.06,
    ):
        self.rotation = rotation
        self.shift = shift
        self.scale = scale
        self.shear = shear
        self.elastic = elastic
        self.erase = erase
        self.contrast = contrast
        self.weak_shift = weak_shift

    def check_parameters(self):
        """Raise ValueError for a parameter out of range."""
        check_number("rotation", self.rotation, 0, 180)
        for name in (
            "shift",
            "scale",
            "shear",
            "elastic",
            "erase",
            "contrast",
            "weak_shift",
        ):
            check_number(name, getattr(self, name), 0, 1)

    def weak(self, images):
        """Shift images a little.

        Parameters
        ----------
        images : Tensor of shape (n_images, channels, height, width)
            Any.

        Returns
        -------
        images : Tensor of shape (n_images, channels, height, width)
            New ones.
        """
        grid = _grid(images, _random_maps(len(images), images, shift=self.weak_shift))
        return _look_up(images, grid)

    def strong(self, images):
        """Distort images, and erase a part.

        Parameters
        ----------
        images : Tensor of shape (n_images, channels, height, width)
            Any.

        Returns
        -------
        images : Tensor of shape (n_images, channels, height, width)
            New ones.
        """
        maps = _random_maps(
            len(images),
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
            # Where a value is 0, the gradient of a power is not finite.
            images = images.clamp(1e-6, 1) ** torch.exp(self.contrast * powers)
        return _erase(images, self.erase) if self.erase > 0 else images


def _uniform(n, like, bound):
    return (2 * torch.rand(n, device=like.device) - 1) * bound


def _random_maps(n, like, *, shift, angle=0.0, scale=0.0, shear=0.0):
    """Return affine maps of shape (n, 2, 3) on coordinates from -1 to 1."""
    angles = _uniform(n, like, angle)
    cos, sin = torch.cos(angles), torch.sin(angles)
    rotations = torch.stack([cos, -sin, sin, cos], dim=1).view(n, 2, 2)
    stretches = torch.diag_embed(torch.exp(_uniform((n, 2), like, scale)))
    stretches[:, 0, 1] = _uniform(n, like, shear)
    shifts = _uniform((n, 2, 1), like, 2 * shift)
    return torch.cat([rotations @ stretches, shifts], dim=2)


def _grid(images, maps):
    return functional.affine_grid(maps, list(images.shape), align_corners=False)


def _smooth_displacements(images, size):
    coarse = size * torch.randn(len(images), 2, 5, 5, device=images.device)
    fine = functional.interpolate(
        coarse, size=images.shape[-2:], mode="bicubic", align_corners=False
    )
    return fine.permute(0, 2, 3, 1)


def _look_up(images, grid):
    return functional.grid_sample(
        images, grid, align_corners=False, padding_mode="border"
    )


def _erase(images, largest):
    n, _, height, width = images.shape
    half = _uniform(n, images, 1).abs() * largest / 2

    def inside(size):
        places = (torch.arange(size, device=images.device) + 0.5) / size
        centre = torch.rand(n, 1, device=images.device)
        return (places - centre).abs() < half[:, None]

    square = inside(height)[:, None, :, None] & inside(width)[:, None, None, :]
    return images.masked_fill(square, 0)


class TabularAugmentation(BaseEstimator):
    """Random changes to rows of standardised features.

    Values are swapped with those of other rows in the batch, so that they stay
    plausible whatever the distribution of a feature, or noise is added. Random numbers
    come from torch's generator, which a student seeds from its `random_state`. A
    student mixes public rows with it: no parameter costs any privacy, unless it was
    chosen by a look at private ones. This noise protects nobody.

    Parameters
    ----------
    swap : float, default=0.3
        Share of values that a strong change takes from other rows.

    noise : float, default=0.1
        Standard deviation of the noise of a strong change, in standard deviations of
        the feature.

    mask : float, default=0
        Share of values that a strong change sets to the feature's mean.

    weak_share : float, default=0.3
        A weak change is this much of a strong one.

    Notes
    -----
    Swaps: Yoon, Zhang, Jordon, van der Schaar (2020), "VIME: extending the success of
    self- and semi-supervised learning to tabular domain"; Ucar, Hajiramezanali, Edwards
    (2021), "SubTab: subsetting features of tabular data for self-supervised
    representation learning".

    Examples
    --------
    >>> import torch
    >>> from sklearn_pate.students import TabularAugmentation
    >>> rows = torch.tensor([[0.0, 10.0], [1.0, 11.0], [2.0, 12.0]])
    >>> swapped = TabularAugmentation(swap=1, noise=0).strong(rows)
    >>> swapped.sort(dim=0).values.equal(rows)
    True
    """

    def __init__(self, *, swap=0.3, noise=0.1, mask=0.0, weak_share=0.3):
        self.swap = swap
        self.noise = noise
        self.mask = mask
        self.weak_share = weak_share

    def check_parameters(self):
        """Raise ValueError for a parameter out of range."""
        for name in ("swap", "mask", "weak_share"):
            check_number(name, getattr(self, name), 0, 1)
        check_number("noise", self.noise, 0, math.inf)

    def weak(self, rows):
        """Change rows a little.

        Parameters
        ----------
        rows : Tensor of shape (n_rows, n_features)
            Standardised.

        Returns
        -------
        rows : Tensor of shape (n_rows, n_features)
            New ones.
        """
        return self._change(rows, self.weak_share)

    def strong(self, rows):
        """Change rows a lot.

        Parameters
        ----------
        rows : Tensor of shape (n_rows, n_features)
            Standardised.

        Returns
        -------
        rows : Tensor of shape (n_rows, n_features)
            New ones.
        """
        return self._change(rows, 1)

    def _change(self, rows, share):
        if self.swap > 0:
            # Each feature is shuffled on its own: a mix of several other rows.
            order = torch.rand_like(rows).argsort(dim=0)
            chosen = torch.rand_like(rows) < share * self.swap
            rows = torch.where(chosen, rows.gather(0, order), rows)
        if self.noise > 0:
            rows = rows + share * self.noise * torch.randn_like(rows)
        if self.mask > 0:
            rows = rows.masked_fill(torch.rand_like(rows) < share * self.mask, 0)
        return rows
