"""Image data sets: pixels and gradients; private, public and held-out rows."""

from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from skimage.feature import hog
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer

from benchmarks.images.sets import read_svhn_grey, read_svhn_part
from sklearn_pate.datasets import fetch_mnist, fetch_svhn
from sklearn_pate.students import ContrastiveEncoder

# Pixels per cell of the histograms of oriented gradients (Dalal and Triggs 2005).
CELLS = (7, 4)


@dataclass(frozen=True)
class Images:
    """Rows of pixels and histograms of oriented gradients.

    `n_public` of the test rows are public, the others are held out.
    """

    name: str
    shape: tuple[int, ...]
    private: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]
    n_public: int

    @property
    def n_pixels(self):
        """Number of columns that are pixels."""
        return int(np.prod(self.shape))

    def shuffled(self, seed):
        """Return the test rows that are public, and those that are held out."""
        order = np.random.RandomState(seed).permutation(len(self.test[1]))
        return order[: self.n_public], order[self.n_public :]

    def pixels(self):
        """Return a transformer that drops the gradients."""
        return FunctionTransformer(first_columns, kw_args={"n_columns": self.n_pixels})

    def gradients(self):
        """Return a representation without a network."""
        return make_pipeline(
            FunctionTransformer(last_columns, kw_args={"n_columns": self.n_pixels}),
            PCA(100, random_state=0),
            Normalizer(),
        )

    def encoder(self):
        """Return a representation by a network that is trained without labels."""
        return make_pipeline(
            self.pixels(),
            ContrastiveEncoder(image_shape=self.shape, max_epochs=20, random_state=0),
            PCA(60, random_state=0),
            Normalizer(),
        )


def first_columns(X, n_columns):
    """Return the pixels."""
    return X[:, :n_columns]


def last_columns(X, n_columns):
    """Return the gradients."""
    return X[:, n_columns:]


def load_mnist(work):
    """MNIST as in the papers: 60000 private rows, 9000 of 10000 test rows public."""
    train, test = (
        fetch_mnist(subset=one, return_X_y=True) for one in ("train", "test")
    )
    return Images(
        "MNIST",
        (28, 28),
        (_rows(train[0], (28, 28), work / "mnist-train.npy"), train[1]),
        (_rows(test[0], (28, 28), work / "mnist-test.npy"), test[1]),
        n_public=9000,
    )


def load_mnist_small(work):
    """MNIST's first rows, without gradients, to try a benchmark out."""
    train, test = (
        fetch_mnist(subset=one, return_X_y=True) for one in ("train", "test")
    )
    (X, y), (X_test, y_test) = (
        ((rows[:3000] / 255).astype(np.float32), labels[:3000])
        for rows, labels in (train, test)
    )
    return Images(
        "MNIST, 3000 images", (28, 28), (X, y), (X_test, y_test), n_public=2000
    )


def load_svhn_derived(work):
    """SVHN (derived grey): the test digits only, split into private and test rows."""
    X, y = read_svhn_grey()
    X = _rows(X.reshape(len(y), -1), (32, 32), work / "svhn-derived.npy")
    order = np.random.RandomState(0).permutation(len(y))
    private, test = order[:15032], order[15032:]
    return Images(
        "SVHN (derived grey)",
        (32, 32),
        (X[private], y[private]),
        (X[test], y[test]),
        n_public=10000,
    )


def load_svhn_part(work):
    """SVHN: its first 16419 test digits, the first 10000 public as in the papers."""
    X, y = read_svhn_part()
    grey = X.mean(axis=-1).reshape(len(y), -1)
    X = _rows(grey, (32, 32), work / "svhn-part.npy")
    return Images(
        "SVHN, first 16,419 test digits",
        (32, 32),
        (X[:0], y[:0]),
        (X, y),
        n_public=10000,
    )


def load_svhn_official(work):
    """SVHN as in the papers: train and extra private, 10000 test rows public."""
    parts = {
        one: fetch_svhn(subset=one, return_X_y=True)
        for one in ("train", "extra", "test")
    }
    grey = {
        one: X.reshape(-1, 32, 32, 3).mean(axis=-1).reshape(len(X), -1)
        for one, (X, _) in parts.items()
    }
    rows = {
        one: _rows(X, (32, 32), work / f"svhn-{one}.npy") for one, X in grey.items()
    }
    return Images(
        "SVHN",
        (32, 32),
        (
            np.concatenate([rows["train"], rows["extra"]]),
            np.concatenate([parts["train"][1], parts["extra"][1]]),
        ),
        (rows["test"], parts["test"][1]),
        n_public=10000,
    )


DATA = {
    "mnist": load_mnist,
    "mnist-small": load_mnist_small,
    "svhn-derived": load_svhn_derived,
    "svhn-part": load_svhn_part,
    "svhn-official": load_svhn_official,
}


def _rows(X, shape, path):
    """Return scaled pixels and gradients, from a file if it exists."""
    if path.exists():
        return np.load(path, mmap_mode="r")
    pixels = (X / 255).astype(np.float32)
    blocks = np.array_split(pixels.reshape(-1, *shape), 100)
    gradients = np.concatenate(Parallel(n_jobs=2)(map(delayed(_gradients), blocks)))
    rows = np.hstack([pixels, gradients])
    np.save(path, rows)
    return rows


def _gradients(images):
    return np.array(
        [
            np.concatenate(
                [
                    hog(one, pixels_per_cell=(cell, cell), cells_per_block=(2, 2))
                    for cell in CELLS
                ]
            )
            for one in images
        ],
        dtype=np.float32,
    )
