"""Sets of images as arrays: private, public and evaluated ones."""

import io
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image

from sklearn_pate.datasets import fetch_mnist, fetch_svhn


@dataclass(frozen=True)
class ImageSet:
    """Images of shape (n, channels, height, width) and labels.

    `n_public` of the test images are public, the others are evaluated. With
    `in_order`, these are the first ones, as neighbours in a file are alike.
    """

    name: str
    private: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]
    n_public: int
    in_order: bool = False

    def shuffled(self, seed):
        """Return the test images that are public, and those that are evaluated."""
        order = np.arange(len(self.test[1]))
        if not self.in_order:
            np.random.RandomState(seed).shuffle(order)
        return order[: self.n_public], order[self.n_public :]


def load_mnist():
    """Load MNIST as in the papers, with 9000 of 10000 test images public."""
    parts = [fetch_mnist(subset=one, return_X_y=True) for one in ("train", "test")]
    train, test = ((X.reshape(-1, 1, 28, 28), y) for X, y in parts)
    return ImageSet("MNIST", train, test, n_public=9000)


def load_cifar10():
    """Load CIFAR-10 as in the 2019 paper, with 9000 of 10000 test images public.

    The images are read from lossless sprites of 40 x 25 images, not from the official
    archive: 111 of them were decoded from JPEG. The test images are sorted by class.
    """
    home = Path(os.environ["SKLEARN_PATE_DATA"], "cifar10")
    parts = ("train_00000_24999", "train_25000_49999", "test_by_class")
    first, second, test = (_sprites(home / f"cifar10_{one}_webp.npz") for one in parts)
    train = tuple(np.concatenate(pair) for pair in zip(first, second, strict=True))
    return ImageSet("CIFAR-10", train, test, n_public=9000)


def _sprites(path):
    with np.load(path, allow_pickle=False) as file:
        sheets = [
            np.asarray(Image.open(io.BytesIO(file[key].tobytes())).convert("RGB"))
            for key in sorted(file.files)
            if key.startswith("sprite_")
        ]
        labels = file["y"].astype(int)
    tiles = [one.reshape(40, 32, 25, 32, 3).transpose(0, 2, 4, 1, 3) for one in sheets]
    return np.concatenate([one.reshape(1000, 3, 32, 32) for one in tiles]), labels


def read_svhn_part():
    """Return the first 16419 test digits of SVHN and labels, as in its file."""
    home = Path(os.environ["SKLEARN_PATE_DATA"], "svhn")
    with np.load(home / "svhn_test_32x32_partial_rgb_16419.npz") as file:
        order = np.argsort(file["index0"])
        return file["X"][order], file["y"][order].astype(int)


def read_svhn_grey():
    """Return all test digits of SVHN, cut and turned to grey by others, and labels."""
    home = Path(os.environ["SKLEARN_PATE_DATA"], "svhn")
    with np.load(home / "svhn_test_derived_grey32_26032.npz") as file:
        return file["X"], file["y"].astype(int)


def load_svhn_part():
    """Load the first 16419 test digits of SVHN, split by position.

    Digits of one photograph are neighbours in the file: the first 9419 are private, the
    next 5000 public, the last 2000 evaluated.
    """
    X, y = read_svhn_part()
    X = _channels_first(X)
    return ImageSet(
        "SVHN, first 16,419 test digits",
        (X[:9419], y[:9419]),
        (X[9419:], y[9419:]),
        n_public=5000,
        in_order=True,
    )


def load_svhn_grey():
    """Load all test digits of SVHN, cut and turned to grey by others, by position."""
    X, y = read_svhn_grey()
    X = X.reshape(-1, 1, 32, 32)
    return ImageSet(
        "SVHN (derived grey)",
        (X[:15032], y[:15032]),
        (X[15032:], y[15032:]),
        n_public=9000,
        in_order=True,
    )


def load_svhn():
    """Load SVHN as in the papers: train and extra private, 10000 test digits public."""
    train, extra, test = (
        fetch_svhn(subset=one, return_X_y=True) for one in ("train", "extra", "test")
    )
    X, y = (np.concatenate(pair) for pair in zip(train, extra, strict=True))
    private = _channels_first(X.reshape(-1, 32, 32, 3)), y
    X_test = _channels_first(test[0].reshape(-1, 32, 32, 3))
    n_public = min(10_000, 2 * len(X_test) // 5)
    return ImageSet("SVHN", private, (X_test, test[1]), n_public, in_order=True)


def _channels_first(images):
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2))


#: Titles and loaders by the names of the command line.
IMAGE_SETS = {
    "mnist": ("MNIST", load_mnist),
    "cifar10": ("CIFAR-10", load_cifar10),
    "svhn": ("SVHN, first 16,419 test digits", load_svhn_part),
    "svhn-grey": ("SVHN (derived grey)", load_svhn_grey),
    "svhn-official": ("SVHN", load_svhn),
}


@cache
def load(title):
    """Load images by their title, once in a process."""
    return next(make() for name, make in IMAGE_SETS.values() if name == title)
