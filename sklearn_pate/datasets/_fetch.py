"""Adult, Diabetes, MNIST, SVHN and CIFAR-10: download, checksum and arrays."""

import csv
import gzip
import hashlib
import io
import os
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat
from sklearn.datasets import fetch_file, get_data_home
from sklearn.utils import Bunch

from sklearn_pate._inputs._file_content import write_files
from sklearn_pate.accounting._value_checks import check_option, optional_module

_BROKEN_DOWNLOAD = (OSError, KeyError, EOFError, zlib.error, zipfile.BadZipFile)
_GZIP = b"\x1f\x8b"  # first bytes of every gzip file
_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "https://storage.googleapis.com/cvdf-datasets/mnist",
)
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
_ARCHIVES = (
    "https://archive.ics.uci.edu/static/public/2/adult.zip",
    "https://cdn.uci-ics-mlr-prod.aws.uci.edu/2/adult.zip",
)
_FEATURES = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
]
_ADULT_NUMERIC = {
    "age",
    "fnlwgt",
    "education-num",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
}
_ADULT = """UCI Adult (census income), B. Becker and R. Kohavi, 1996, CC BY 4.0.

48842 rows, 14 features: 32561 training rows (adult.data), then 16281 test rows
(adult.test). The target is "<=50K" or ">50K". Missing categories are "?".

Without as_frame, each category is replaced by an integer, as in the experiments of
Papernot et al. (2017). Their order is not known; here it is that of first appearance in
the file, with which the privacy cost of votes is about that of the published votes.
"""
_DIABETES_NUMERIC = {
    "time_in_hospital",
    "num_lab_procedures",
    "num_procedures",
    "num_medications",
    "number_outpatient",
    "number_emergency",
    "number_inpatient",
    "number_diagnoses",
}
_NOT_FEATURES = {"encounter_id", "patient_nbr", "readmitted"}
_DIABETES = """UCI Diabetes 130-US hospitals 1999-2008, Strack et al., 2014, CC BY 4.0.

101766 encounters of 71518 patients, 47 features. The target is the original one:
"NO", ">30" or "<30" (readmitted within 30 days). Missing categories are "?".

`groups` is the patient number. Many patients have several encounters: pass it as
groups= to a PATEClassifier with privacy_unit="group", and keep the patients of training
and test rows apart.

Without as_frame, each category is replaced by an integer, in the order of first
appearance in the file.
"""


@dataclass(frozen=True)
class DataFile:
    """Original file of a data set, in a sub-folder of `data_home`.

    `sha256` is the hash of the file itself, never of an archive around it; a file whose
    name ends in ``.gz`` is kept and hashed as it is. `urls` are mirrors, tried in
    order, of the file, of the file compressed by gzip, or of a zip archive that holds
    it.
    """

    folder: str
    name: str
    sha256: str
    urls: tuple[str, ...]


def read_data_file(
    file: DataFile,
    *,
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
) -> bytes:
    """Return the uncompressed content of a data file, downloading it if necessary.

    Raises OSError if the file, or its ``.gz`` sibling, has a wrong hash (it is not
    changed), or if it is missing and is not downloaded.
    """
    path = _data_home(data_home) / file.folder / file.name
    for candidate in (path, path.with_name(path.name + ".gz")):
        if candidate.exists():
            return _read_checked(candidate, file)
    if not download_if_missing:
        raise OSError(
            f"{path} is missing and download_if_missing=False. Put the file there "
            f"(sha256 {file.sha256}); it comes from {file.urls[0]}"
        )
    content = _download(file, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_files({path: content})
    return content


def _data_home(data_home: str | PathLike[str] | None) -> Path:
    chosen = data_home or os.environ.get("SKLEARN_PATE_DATA")
    return Path(chosen or Path(get_data_home()) / "sklearn_pate").expanduser()


def _read_checked(path: Path, file: DataFile) -> bytes:
    content = path.read_bytes()
    if path.name != file.name:  # the compressed sibling
        content = gzip.decompress(content)
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise OSError(
            f"{path} has sha256 {found}, expected {file.sha256}. The file was not "
            f"changed; move it away to download the original from {file.urls[0]}"
        )
    return content


def _download(file: DataFile, path: Path) -> bytes:
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        for url in file.urls:
            try:
                # A new folder, as fetch_file would reuse the file of another mirror.
                fetched = fetch_file(url, folder=tempfile.mkdtemp(dir=folder))
                content = _unpack(Path(fetched).read_bytes(), file.name)
            except _BROKEN_DOWNLOAD as error:
                problems.append(f"{url}: {error}")
                continue
            if hashlib.sha256(content).hexdigest() == file.sha256:
                return content
            problems.append(f"{url}: wrong sha256")
    raise OSError(
        f"{path} is missing and could not be downloaded. Put the file there (sha256 "
        f"{file.sha256}). Tried {'; '.join(problems)}"
    )


def _unpack(content: bytes, name: str) -> bytes:
    """Return the content, decompressed, or the member `name` of a zip archive."""
    if content.startswith(_GZIP) and not name.endswith(".gz"):
        return gzip.decompress(content)
    if not zipfile.is_zipfile(io.BytesIO(content)):
        return content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.namelist():
            if Path(member).name == name:
                return archive.read(member)
    raise KeyError(f"no {name} in the archive")


class Table:
    """Columns of text as read from a file; those not in `numeric` hold categories.

    `categories` lists those of each categorical column in order of first appearance.
    """

    def __init__(
        self, columns: dict[str, Sequence[str]], numeric: Collection[str]
    ) -> None:
        self._columns = columns
        self.categories = {
            name: list(dict.fromkeys(values))
            for name, values in columns.items()
            if name not in numeric
        }

    def to_array(self) -> NDArray[np.float64]:
        """Return numbers; a category is its position in `categories`."""
        return np.column_stack(
            [self._numbers(name, values) for name, values in self._columns.items()]
        )

    def _numbers(self, name: str, values: Sequence[Any]) -> NDArray[np.float64]:
        if name in self.categories:
            code = {category: i for i, category in enumerate(self.categories[name])}
            values = [code[value] for value in values]
        return np.array(values, dtype=np.float64)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame of int64 and categorical columns."""
        pd = optional_module("pandas", "pandas")

        return pd.DataFrame(
            {
                name: pd.Categorical(values, categories=self.categories[name])
                if name in self.categories
                else np.array(values, dtype=np.int64)
                for name, values in self._columns.items()
            }
        )


_SVHN_FILES = {
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
# The binary version: unlike the Python version, it holds no pickles.
_CIFAR10_FILE = DataFile(
    "cifar10",
    "cifar-10-binary.tar.gz",
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
)


def _file(name: str, sha256: str) -> DataFile:
    return DataFile(
        "mnist", name, sha256, tuple(f"{mirror}/{name}.gz" for mirror in _MIRRORS)
    )


_MNIST_FILES = {
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
    check_option("subset", subset, ("all", *_MNIST_FILES))
    parts = _MNIST_FILES.values() if subset == "all" else [_MNIST_FILES[subset]]

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
    check_option("subset", subset, _SVHN_FILES)
    data, target = rows_of_mat(
        read_data_file(
            _SVHN_FILES[subset],
            data_home=data_home,
            download_if_missing=download_if_missing,
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
        _CIFAR10_FILE, data_home=data_home, download_if_missing=download_if_missing
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


_ADULT_TRAIN = DataFile(
    "adult",
    "adult.data",
    "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    (
        "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data",
        *_ARCHIVES,
    ),
)
_ADULT_TEST = DataFile(
    "adult",
    "adult.test",
    "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    (
        "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.test",
        *_ARCHIVES,
    ),
)
_DIABETES_FILE = DataFile(
    "diabetes130",
    "diabetic_data.csv",
    "0689e7ec031237dc63031b938805c48377748761a3b26acab621567afa24df97",
    (
        "https://archive.ics.uci.edu/static/public/296/"
        "diabetes+130-us+hospitals+for+years+1999-2008.zip",
        "https://archive.ics.uci.edu/ml/machine-learning-databases/00296/"
        "dataset_diabetes.zip",
    ),
)


def fetch_adult(
    *,
    data_home: str | PathLike[str] | None = None,
    subset: str = "all",
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = False,
) -> Any:
    """Load UCI Adult, downloading it if necessary.

    The task is to predict which people earn more than 50,000 dollars a year. The data
    are from a census of the USA in 1994, with one row per person. The rows are public,
    so a fit that treats the rows as private is a demonstration only.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of data sets. None is the environment variable ``SKLEARN_PATE_DATA``, if
        set, or else ``sklearn_pate`` in ``sklearn.datasets.get_data_home()``.

    subset : {"all", "train", "test"}, default="all"
        Part of the original split. "all" is the 32561 training rows followed by the
        16281 test rows.

    download_if_missing : bool, default=True
        Whether to download a missing file.

    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    as_frame : bool, default=False
        Return a pandas DataFrame with the original categories, instead of an array in
        which categories are integers.

    Returns
    -------
    adult : Bunch
        ``data`` of shape (n_rows, 14), dtype float64, or a frame. ``target`` of shape
        (n_rows,), with labels "<=50K" and ">50K". ``categories``, a dict: category k of
        a feature is the integer k in ``data``. ``feature_names``, ``target_names``,
        ``DESCR``.

    Raises
    ------
    OSError
        If a file is missing and cannot be downloaded, or has a wrong hash.

    ValueError
        If `subset` is unknown.

    Notes
    -----
    Kohavi (1996), "Scaling up the accuracy of naive-Bayes classifiers: a decision-tree
    hybrid". Papernot et al. (2017, Appendix C; 2018) use this data set.

    Examples
    --------
    >>> from sklearn_pate.datasets import fetch_adult
    >>> adult = fetch_adult(subset="train")  # doctest: +SKIP
    >>> adult.data.shape  # doctest: +SKIP
    (32561, 14)
    >>> adult.target[:3]  # doctest: +SKIP
    array(['<=50K', '<=50K', '<=50K'], dtype='<U5')
    >>> X, y = fetch_adult(return_X_y=True, as_frame=True)  # doctest: +SKIP
    >>> X.loc[0, "workclass"]  # doctest: +SKIP
    'State-gov'
    """
    check_option("subset", subset, ("all", "train", "test"))
    train, test = (
        _rows(
            read_data_file(
                file, data_home=data_home, download_if_missing=download_if_missing
            )
        )
        for file in (_ADULT_TRAIN, _ADULT_TEST)
    )
    # Codes come from both parts, so that they are the same in each subset.
    *features, labels = zip(*train, *test, strict=True)
    table = Table(dict(zip(_FEATURES, features, strict=True)), _ADULT_NUMERIC)
    kept = {
        "all": slice(None),
        "train": slice(len(train)),
        "test": slice(len(train), None),
    }[subset]
    target = np.array(labels)[kept]
    if as_frame:
        pd = optional_module("pandas", "pandas")

        data = table.to_frame()[kept].reset_index(drop=True)
        target = pd.Series(target, name="income")
    else:
        data = table.to_array()[kept]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        feature_names=list(_FEATURES),
        categories=table.categories,
        target_names=["<=50K", ">50K"],
        DESCR=_ADULT,
    )


def _rows(content: bytes) -> list[list[str]]:
    lines = (line.strip() for line in io.StringIO(content.decode()))
    # adult.test begins with a comment, and its labels end in a dot.
    return [
        line.rstrip(".").split(", ")
        for line in lines
        if line and not line.startswith("|")
    ]


def fetch_diabetes130(
    *,
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = False,
) -> Any:
    """Load UCI Diabetes 130-US hospitals, downloading it if necessary.

    The task is to predict which patients with diabetes are readmitted within 30 days.
    Each row is a stay in a hospital of the USA between 1999 and 2008. As many patients
    have several stays, use the patient as the unit of privacy, with
    ``privacy_unit="group"``. The rows are public, so a fit that treats the rows as
    private is a demonstration only.

    Parameters
    ----------
    data_home : str or path-like, default=None
        Folder of data sets. None is the environment variable ``SKLEARN_PATE_DATA``, if
        set, or else ``sklearn_pate`` in ``sklearn.datasets.get_data_home()``.

    download_if_missing : bool, default=True
        Whether to download a missing file.

    return_X_y : bool, default=False
        Return ``(data, target)``, without groups, instead of a Bunch.

    as_frame : bool, default=False
        Return a pandas DataFrame with the original categories, instead of an array in
        which categories are integers.

    Returns
    -------
    diabetes : Bunch
        ``data`` of shape (101766, 47), dtype float64, or a frame. ``target`` of shape
        (101766,), with labels "NO", ">30" and "<30". ``groups`` of shape (101766,),
        dtype int64: the patient of each row. ``categories``, a dict: category k of a
        feature is the integer k in ``data``. ``feature_names``, ``target_names``,
        ``DESCR``.

    Raises
    ------
    OSError
        If the file is missing and cannot be downloaded, or has a wrong hash.

    Notes
    -----
    Strack, DeShazo, Gennings, Olmo, Ventura, Cios, Clore (2014), "Impact of HbA1c
    measurement on hospital readmission rates". Papernot et al. (2017, Appendix C) use a
    subset with two balanced classes.

    Examples
    --------
    >>> from sklearn_pate.datasets import fetch_diabetes130
    >>> diabetes = fetch_diabetes130()  # doctest: +SKIP
    >>> diabetes.data.shape  # doctest: +SKIP
    (101766, 47)
    >>> len(set(diabetes.groups.tolist()))  # doctest: +SKIP
    71518
    >>> back_soon = diabetes.target == "<30"  # doctest: +SKIP
    >>> round(float(back_soon.mean()), 3)  # doctest: +SKIP
    0.112
    """
    content = read_data_file(
        _DIABETES_FILE, data_home=data_home, download_if_missing=download_if_missing
    )
    rows = csv.reader(io.StringIO(content.decode()))
    header = next(rows)
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    feature_names = [name for name in header if name not in _NOT_FEATURES]
    target = np.array(columns["readmitted"])
    groups = np.array(columns["patient_nbr"], dtype=np.int64)
    table = Table({name: columns[name] for name in feature_names}, _DIABETES_NUMERIC)
    if as_frame:
        pd = optional_module("pandas", "pandas")

        data, target = table.to_frame(), pd.Series(target, name="readmitted")
    else:
        data = table.to_array()
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        groups=groups,
        feature_names=feature_names,
        categories=table.categories,
        target_names=["NO", ">30", "<30"],
        DESCR=_DIABETES,
    )
