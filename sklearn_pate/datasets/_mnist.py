"""MNIST: handwritten digits."""

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from sklearn_pate.datasets._files import DataFile, read_data_file

__all__ = ["fetch_mnist"]

_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "https://storage.googleapis.com/cvdf-datasets/mnist",
)


def _file(name: str, sha256: str) -> DataFile:
    return DataFile(
        "mnist", name, sha256, tuple(f"{mirror}/{name}.gz" for mirror in _MIRRORS)
    )


_PARTS = {
    "train": (
        _file(
            "train-images-idx3-ubyte",
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        ),
        _file(
            "train-labels-idx1-ubyte",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        ),
    ),
    "test": (
        _file(
            "t10k-images-idx3-ubyte",
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        ),
        _file(
            "t10k-labels-idx1-ubyte",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
    ),
}
_N_PIXELS = 28 * 28
_IMAGES_HEADER, _LABELS_HEADER = 16, 8  # bytes: a magic number and the shape
_DESCR = """MNIST handwritten digits, Y. LeCun, C. Cortes and C. Burges, 1998.

70000 grey images: 60000 training rows, then 10000 test rows. The target is the digit. A
row holds the 784 pixels of an image, line by line, from 0 (background) to 255 (ink):
data.reshape(-1, 28, 28) is the images, data.reshape(-1, 1, 28, 28) what a network with
one input channel takes.

Papernot et al. (2017, 2018) train their teachers on the training rows, and take 9000 of
the test rows as public and the last 1000 to measure the student.
"""


def fetch_mnist(
    *,
    data_home: str | PathLike[str] | None = None,
    subset: str = "all",
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load MNIST, downloading it if necessary.

    Handwritten digits. Each writer wrote many, and the files do not name the writers: a
    privacy statement about rows does not cover writers. The rows are public: a fit that
    treats them as private is a demonstration only.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of data sets. None means that of the environment variable
        ``SKLEARN_PATE_DATA``, or else ``sklearn_pate`` in
        ``sklearn.datasets.get_data_home()``.

    subset : {"all", "train", "test"}, default="all"
        The original split; "all" is the 60000 training rows followed by the 10000 test
        rows.

    download_if_missing : bool, default=True
        Whether a missing file is downloaded.

    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    mnist : Bunch
        ``data`` of shape (n_rows, 784), dtype uint8, pixels from 0 to 255 line by line,
        ``target`` of shape (n_rows,), dtype int64, ``target_names``, ``DESCR``.

    Raises
    ------
    OSError
        If a file is missing and cannot be downloaded, or has a wrong hash.

    ValueError
        If `subset` is unknown.

    Notes
    -----
    LeCun, Bottou, Bengio, Haffner (1998), "Gradient-based learning applied to document
    recognition". One of the data sets of Papernot et al. (2017, 2018) and of Sun et al.
    (2019).

    Examples
    --------
    >>> from sklearn_pate.datasets import fetch_mnist
    >>> mnist = fetch_mnist(subset="test")  # doctest: +SKIP
    >>> mnist.data.shape, mnist.data.dtype  # doctest: +SKIP
    ((10000, 784), dtype('uint8'))
    >>> mnist.target[:5]  # doctest: +SKIP
    array([7, 2, 1, 0, 4])
    >>> mnist.data.reshape(-1, 1, 28, 28).shape  # doctest: +SKIP
    (10000, 1, 28, 28)
    """
    if subset not in ("all", *_PARTS):
        raise ValueError(f"subset={subset!r} is unknown; use 'all', 'train' or 'test'.")
    parts = _PARTS.values() if subset == "all" else [_PARTS[subset]]

    def read(file: DataFile, header: int) -> NDArray[np.uint8]:
        content = read_data_file(
            file, data_home=data_home, download_if_missing=download_if_missing
        )
        return np.frombuffer(content, dtype=np.uint8, offset=header)

    data = np.concatenate([read(images, _IMAGES_HEADER) for images, _ in parts])
    target = np.concatenate([read(labels, _LABELS_HEADER) for _, labels in parts])
    data, target = data.reshape(-1, _N_PIXELS), target.astype(np.int64)
    if return_X_y:
        return data, target
    return Bunch(data=data, target=target, target_names=list(range(10)), DESCR=_DESCR)
