"""SVHN: digits of house numbers in street views."""

import io
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat
from sklearn.utils import Bunch

from sklearn_pate.datasets._files import DataFile, read_data_file

__all__ = ["fetch_svhn", "rows_of_mat"]

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
_DESCR = """SVHN, cropped digits (format 2), Netzer et al., 2011, non-commercial use.

Colour images of digits in street views: 73257 training rows, 26032 test rows, 531131
extra rows, which are less difficult. The target is the digit; the label 10 of the files
is 0. A row holds the 3072 values of an image, line by line and pixel by pixel, red,
green and blue of each: data.reshape(-1, 32, 32, 3) is the images, and
data.reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2) what a network with three input
channels takes.

Papernot et al. (2017, 2018) train their teachers on training and extra rows, and take
test rows as public.
"""


def fetch_svhn(
    *,
    data_home: str | PathLike[str] | None = None,
    subset: str = "train",
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load the cropped digits of SVHN, downloading them if necessary.

    Digits of house numbers in street views, for non-commercial use. A number with
    several digits has several rows, and the files do not link them. The rows are
    public: a fit that treats them as private is a demonstration only.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of data sets. None means that of the environment variable
        ``SKLEARN_PATE_DATA``, or else ``sklearn_pate`` in
        ``sklearn.datasets.get_data_home()``.

    subset : {"train", "test", "extra"}, default="train"
        The original split: a file of 182 MB, 64 MB or 1.3 GB. "extra" takes about 5 GB
        of memory while it is read.

    download_if_missing : bool, default=True
        Whether a missing file is downloaded.

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
    with unsupervised feature learning". One of the data sets of Papernot et al. (2017,
    2018) and of Sun et al. (2019).

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
    if subset not in _FILES:
        raise ValueError(
            f"subset={subset!r} is unknown; use 'train', 'test' or 'extra'."
        )
    data, target = rows_of_mat(
        read_data_file(
            _FILES[subset],
            data_home=data_home,
            download_if_missing=download_if_missing,
        )
    )
    if return_X_y:
        return data, target
    return Bunch(data=data, target=target, target_names=list(range(10)), DESCR=_DESCR)


def rows_of_mat(content: bytes) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Read images and digits from a MATLAB file of SVHN's format 2.

    Its ``X`` has shape (32, 32, 3, n_rows), and its ``y`` (n_rows, 1), in which 10 is
    the digit 0. Images are returned as rows of shape (32, 32, 3), line by line.
    """
    variables = loadmat(io.BytesIO(content), variable_names=("X", "y"))
    images = np.moveaxis(variables["X"], -1, 0)
    return images.reshape(len(images), -1), variables["y"].ravel().astype(np.int64) % 10
