"""Images: MNIST, SVHN, CIFAR-10."""

import gzip
import io
import tarfile
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat
from sklearn.utils import Bunch

from sklearn_pate.accounting._value_checks import check_option
from sklearn_pate.datasets._files import DataFile, read_data_file

_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "https://storage.googleapis.com/cvdf-datasets/mnist",
)
_FILES = {
    subset: DataFile(
        "svhn",
        f"{subset}_32x32.mat",
        sha256,
        (f"http://ufldl.stanford.edu/housenumbers/{subset}_32x32.mat",),
    )
    for subset, sha256 in {
        "train": "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
        "test": "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
        "extra": "a133a4beb38a00fcdda90c9489e0c04f900b660ce8a316a5e854838379a71eb3",
    }.items()
}
_SVHN = """SVHN, cropped digits (format 2), Netzer et al., 2011, non-commercial use.

Colour images of digits in street views: 73257 training rows, 26032 test rows, 531131
extra rows, which are less difficult. The target is the digit; the label 10 of the files
is 0. A row holds the 3072 values of an image, line by line and pixel by pixel, red,
green and blue of each: data.reshape(-1, 32, 32, 3) is the images, and
data.reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2) what a network with three input
channels takes.

Papernot et al. (2017, 2018) train their teachers on training and extra rows, and take
test rows as public.
"""
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
_CIFAR10 = """CIFAR-10, A. Krizhevsky, Learning multiple layers of features, 2009.

60000 colour images of animals and vehicles: 50000 training rows and 10000 test rows, in
10 classes of equal size. The target is the index of the class in target_names. A row
holds the 3072 values of an image, line by line and pixel by pixel, red, green and blue
of each: data.reshape(-1, 32, 32, 3) is the images, and
data.reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2) what a network with three input
channels takes.
"""


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
_MNIST = """MNIST handwritten digits, Y. LeCun, C. Cortes and C. Burges, 1998.

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

    The rows are images of handwritten digits. Each writer wrote many digits, and the
    files do not name writers, so a privacy statement about rows does not cover writers.
    The rows are public, so a fit that treats the rows as private is a demonstration
    only.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of data sets. None is the environment variable ``SKLEARN_PATE_DATA``, if
        set, or else ``sklearn_pate`` in ``sklearn.datasets.get_data_home()``.

    subset : {"all", "train", "test"}, default="all"
        Part of the original split. "all" is the 60000 training rows followed by the
        10000 test rows.

    download_if_missing : bool, default=True
        Whether to download a missing file.

    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    mnist : Bunch
        ``data`` of shape (n_rows, 784), dtype uint8, with pixels from 0 to 255 line by
        line, ``target`` of shape (n_rows,), dtype int64, ``target_names``, ``DESCR``.

    Raises
    ------
    OSError
        If a file is missing and cannot be downloaded, or has a wrong hash.

    ValueError
        If `subset` is unknown.

    Notes
    -----
    LeCun, Bottou, Bengio, Haffner (1998), "Gradient-based learning applied to document
    recognition". Papernot et al. (2017, 2018) and Sun et al. (2019) use this data set.

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
    check_option("subset", subset, ("all", *_PARTS))
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
    return Bunch(data=data, target=target, target_names=list(range(10)), DESCR=_MNIST)


def fetch_svhn(
    *,
    data_home: str | PathLike[str] | None = None,
    subset: str = "train",
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load the cropped digits of SVHN, downloading them if necessary.

    The rows are images of digits of house numbers, for non-commercial use. A house
    number has one row per digit, and the files do not link the digits of a house
    number. The rows are public, so a fit that treats the rows as private is a
    demonstration only.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of data sets. None is the environment variable ``SKLEARN_PATE_DATA``, if
        set, or else ``sklearn_pate`` in ``sklearn.datasets.get_data_home()``.

    subset : {"train", "test", "extra"}, default="train"
        Part of the original split. The files have 182 MB, 64 MB and 1.3 GB. Reading
        "extra" takes about 5 GB of memory.

    download_if_missing : bool, default=True
        Whether to download a missing file.

    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    svhn : Bunch
        ``data`` of shape (n_rows, 3072), dtype uint8, images of shape (32, 32, 3) line
        by line, ``target`` of shape (n_rows,), dtype int64, ``target_names``,
        ``DESCR``.

    Raises
    ------
    OSError
        If the file is missing and cannot be downloaded, or has a wrong hash.

    ValueError
        If `subset` is unknown.

    Notes
    -----
    Netzer, Wang, Coates, Bissacco, Wu, Ng (2011), "Reading digits in natural images
    with unsupervised feature learning". Papernot et al. (2017, 2018) and Sun et al.
    (2019) use this data set.

    Examples
    --------
    >>> from sklearn_pate.datasets import fetch_svhn
    >>> svhn = fetch_svhn(subset="test")  # doctest: +SKIP
    >>> svhn.data.shape, svhn.data.dtype  # doctest: +SKIP
    ((26032, 3072), dtype('uint8'))
    >>> images = svhn.data.reshape(-1, 32, 32, 3)  # doctest: +SKIP
    >>> images.transpose(0, 3, 1, 2).shape  # doctest: +SKIP
    (26032, 3, 32, 32)
    """
    check_option("subset", subset, _FILES)
    data, target = rows_of_mat(
        read_data_file(
            _FILES[subset], data_home=data_home, download_if_missing=download_if_missing
        )
    )
    if return_X_y:
        return data, target
    return Bunch(data=data, target=target, target_names=list(range(10)), DESCR=_SVHN)


def rows_of_mat(content: bytes) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Read images and digits from a MATLAB file of SVHN's format 2.

    Its ``X`` has shape (32, 32, 3, n_rows), and its ``y`` (n_rows, 1), in which 10 is
    the digit 0. Images are returned as rows of shape (32, 32, 3), line by line.
    """
    variables = loadmat(io.BytesIO(content), variable_names=("X", "y"))
    images = np.moveaxis(variables["X"], -1, 0)
    return images.reshape(len(images), -1), variables["y"].ravel().astype(np.int64) % 10


def fetch_cifar10(
    *,
    data_home: str | PathLike[str] | None = None,
    subset: str = "train",
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load CIFAR-10, downloading it if necessary.

    The rows are small colour images of animals and vehicles. The rows are public, so a
    fit that treats the rows as private is a demonstration only.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of data sets. None is the environment variable ``SKLEARN_PATE_DATA``, if
        set, or else ``sklearn_pate`` in ``sklearn.datasets.get_data_home()``.

    subset : {"train", "test"}, default="train"
        Part of the original split. Both parts are in one archive of 170 MB.

    download_if_missing : bool, default=True
        Whether to download a missing file.

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
    Krizhevsky (2009), "Learning multiple layers of features from tiny images". Sun et
    al. (2019) use this data set.

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
    check_option("subset", subset, _BATCHES)
    content = read_data_file(
        _ARCHIVE, data_home=data_home, download_if_missing=download_if_missing
    )
    data, target = rows_of_archive(content, _BATCHES[subset])
    if return_X_y:
        return data, target
    return Bunch(data=data, target=target, target_names=list(_CLASSES), DESCR=_CIFAR10)


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
