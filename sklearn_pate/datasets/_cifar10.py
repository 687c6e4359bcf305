"""CIFAR-10: small colour images of animals and vehicles."""

import gzip
import io
import tarfile
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from sklearn_pate.datasets._files import DataFile, read_data_file

__all__ = ["fetch_cifar10", "rows_of_archive"]

# The binary version: unlike the Python version, it holds no pickles.
_ARCHIVE = DataFile(
    "cifar10",
    "cifar-10-binary.tar.gz",
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
)
_BATCHES = {
    "train": tuple(f"data_batch_{i}.bin" for i in range(1, 6)),
    "test": ("test_batch.bin",),
}
_CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
_N_VALUES = 3 * 32 * 32
_DESCR = """CIFAR-10, A. Krizhevsky, Learning multiple layers of features, 2009.

60000 colour images of animals and vehicles: 50000 training rows and 10000 test rows, in
10 classes of equal size. The target is the index of the class in target_names. A row
holds the 3072 values of an image, line by line and pixel by pixel, red, green and blue
of each: data.reshape(-1, 32, 32, 3) is the images, and
data.reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2) what a network with three input
channels takes.
"""


def fetch_cifar10(
    *,
    data_home: str | PathLike[str] | None = None,
    subset: str = "train",
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load CIFAR-10, downloading it if necessary.

    Small colour images of animals and vehicles. The rows are public: a fit that treats
    them as private is a demonstration only.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of data sets. None means that of the environment variable
        ``SKLEARN_PATE_DATA``, or else ``sklearn_pate`` in
        ``sklearn.datasets.get_data_home()``.

    subset : {"train", "test"}, default="train"
        The original split. Both are in one archive of 170 MB.

    download_if_missing : bool, default=True
        Whether a missing file is downloaded.

    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    cifar10 : Bunch
        ``data`` of shape (n_rows, 3072), dtype uint8, images of shape (32, 32, 3) line
        by line, ``target`` of shape (n_rows,), dtype int64, ``target_names``,
        ``DESCR``.

    Raises
    ------
    OSError
        If the archive is missing and cannot be downloaded, or has a wrong hash.

    ValueError
        If `subset` is unknown.

    Notes
    -----
    Krizhevsky (2009), "Learning multiple layers of features from tiny images". One of
    the data sets of Sun et al. (2019).

    Examples
    --------
    >>> from sklearn_pate.datasets import fetch_cifar10
    >>> cifar10 = fetch_cifar10(subset="test")  # doctest: +SKIP
    >>> cifar10.data.shape, cifar10.data.dtype  # doctest: +SKIP
    ((10000, 3072), dtype('uint8'))
    >>> images = cifar10.data.reshape(-1, 32, 32, 3)  # doctest: +SKIP
    >>> images.transpose(0, 3, 1, 2).shape  # doctest: +SKIP
    (10000, 3, 32, 32)
    """
    if subset not in _BATCHES:
        raise ValueError(f"subset={subset!r} is unknown; use 'train' or 'test'.")
    content = read_data_file(
        _ARCHIVE, data_home=data_home, download_if_missing=download_if_missing
    )
    data, target = rows_of_archive(content, _BATCHES[subset])
    if return_X_y:
        return data, target
    return Bunch(data=data, target=target, target_names=list(_CLASSES), DESCR=_DESCR)


def rows_of_archive(
    content: bytes, batches: tuple[str, ...]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Read images and classes, in the order of `batches`, from the binary version.

    `content` is a tar archive, compressed by gzip. A record of a batch is one byte for
    the class and 1024 bytes, line by line, for each of red, green and blue. Images are
    returned as rows of shape (32, 32, 3), line by line.
    """
    # Decompressed once, as going back in a compressed archive starts again.
    unpacked = io.BytesIO(gzip.decompress(content))
    with tarfile.open(fileobj=unpacked, mode="r:") as archive:
        records = b"".join(_member(archive, name) for name in batches)
    rows = np.frombuffer(records, dtype=np.uint8).reshape(-1, 1 + _N_VALUES)
    images = rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return images.reshape(-1, _N_VALUES), rows[:, 0].astype(np.int64)


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    member = archive.extractfile(f"cifar-10-batches-bin/{name}")
    assert member is not None  # a file, not a folder
    return member.read()
