"""Fetchers of images: the real files where they are, small ones where they are not."""

import hashlib
import io
import tarfile
from dataclasses import replace
from urllib.error import URLError

import numpy as np
import pytest
from scipy.io import savemat

from sklearn_pate.datasets import fetch_adult, fetch_cifar10, fetch_mnist, fetch_svhn
from tests.private import _fetch, rows_of_mat


@pytest.fixture
def no_network(monkeypatch):
    def fetch_file(url, **kwargs):
        raise URLError("no network")

    monkeypatch.setattr(_fetch, "fetch_file", fetch_file)


@pytest.mark.slow
def test_mnist_has_its_published_size_and_classes(data_set):
    mnist = data_set("mnist")
    assert mnist.data.shape == (70000, 784)
    assert mnist.data.dtype == np.uint8
    assert mnist.target.dtype == np.int64
    # The first digits of the training file, and how many of each class there are.
    assert mnist.target[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert np.bincount(mnist.target).tolist() == [
        *(6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958)
    ]


@pytest.mark.slow
def test_rows_of_mnist_are_upright_images(data_set):
    mnist = data_set("mnist")
    ones = mnist.data[mnist.target == 1].reshape(-1, 28, 28).mean(axis=0)
    # Ink of a one stands in the middle columns, over many lines.
    assert ones[:, 11:17].sum() > 0.7 * ones.sum()
    assert np.count_nonzero(ones.max(axis=1) > 50) >= 18


@pytest.mark.slow
def test_subsets_of_mnist_are_its_two_files(data_set):
    mnist = data_set("mnist")
    X, y = data_set("mnist", subset="test", return_X_y=True)
    np.testing.assert_array_equal(X, mnist.data[60000:])
    np.testing.assert_array_equal(y, mnist.target[60000:])
    assert X.flags.writeable  # an array of the user's own
    assert data_set("mnist", subset="train").data.shape == (60000, 784)


def test_rows_of_svhn_are_its_images_line_by_line():
    rng = np.random.default_rng(0)
    images = rng.integers(256, size=(5, 32, 32, 3), dtype=np.uint8)
    stream = io.BytesIO()
    X, y = np.moveaxis(images, 0, -1), np.array([[1], [9], [10], [2], [10]], np.uint8)
    savemat(stream, {"X": X, "y": y}, do_compression=True)
    data, target = rows_of_mat(stream.getvalue())
    assert data.dtype == np.uint8
    assert target.dtype == np.int64
    np.testing.assert_array_equal(data.reshape(-1, 32, 32, 3), images)
    np.testing.assert_array_equal(target, [1, 9, 0, 2, 0])


def cifar10_archive(batches):
    """Return an archive in the format of the original, of {file: (images, target)}."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, (images, target) in batches.items():
            content = b"".join(
                bytes([label]) + b"".join(image[..., i].tobytes() for i in range(3))
                for image, label in zip(images, target, strict=True)
            )
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


@pytest.fixture
def cifar10_images():
    rng = np.random.default_rng(0)
    images = rng.integers(256, size=(12, 32, 32, 3), dtype=np.uint8)
    return images, rng.integers(10, size=12)


@pytest.fixture
def small_cifar10(cifar10_images, tmp_path, monkeypatch):
    """Serve two rows a batch, the test batch last, in the place of the original."""
    images, target = cifar10_images
    names = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
    rows = {
        name: (images[2 * i : 2 * i + 2], target[2 * i : 2 * i + 2])
        for i, name in enumerate(names)
    }
    # Rows go by the number of the batch, not by its place in the archive.
    content = cifar10_archive({name: rows[name] for name in reversed(names)})
    source = tmp_path / "source.tar.gz"
    source.write_bytes(content)
    archive = replace(
        _fetch._CIFAR10_FILE,
        sha256=hashlib.sha256(content).hexdigest(),
        urls=(f"file://localhost{source.as_posix()}",),
    )
    monkeypatch.setattr(_fetch, "_CIFAR10_FILE", archive)
    return source


@pytest.mark.parametrize(
    ("subset", "rows"), [("train", slice(10)), ("test", slice(10, 12))]
)
def test_rows_of_cifar10_are_its_images_line_by_line(
    tmp_path, small_cifar10, cifar10_images, subset, rows
):
    images, target = cifar10_images
    bunch = fetch_cifar10(data_home=tmp_path / "home", subset=subset)
    assert bunch.data.dtype == np.uint8
    assert bunch.target.dtype == np.int64
    assert len(bunch.target_names) == 10
    np.testing.assert_array_equal(bunch.data.reshape(-1, 32, 32, 3), images[rows])
    np.testing.assert_array_equal(bunch.target, target[rows])
    bunch.data[0] = 1  # an array of the user's own


def test_cifar10_is_downloaded_once(tmp_path, small_cifar10, request):
    home = tmp_path / "home"
    fetch_cifar10(data_home=home)
    small_cifar10.unlink()
    request.getfixturevalue("no_network")
    X, y = fetch_cifar10(data_home=home, subset="test", return_X_y=True)
    assert X.shape == (2, 3072)
    assert y.shape == (2,)
    assert [path.name for path in (home / "cifar10").iterdir()] == [
        "cifar-10-binary.tar.gz"
    ]


def test_a_changed_download_of_cifar10_is_not_kept(tmp_path, small_cifar10):
    small_cifar10.write_bytes(b"changed")
    with pytest.raises(OSError, match=r"could not be downloaded.*wrong sha256"):
        fetch_cifar10(data_home=tmp_path / "home")
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("download", [True, False])
def test_another_file_in_the_place_of_cifar10_is_left_alone(
    tmp_path, small_cifar10, download
):
    path = tmp_path / "cifar10" / "cifar-10-binary.tar.gz"
    path.parent.mkdir()
    path.write_bytes(b"mine")
    with pytest.raises(OSError, match=r"expected .* not changed"):
        fetch_cifar10(data_home=tmp_path, download_if_missing=download)
    assert path.read_bytes() == b"mine"


@pytest.mark.parametrize("download", [True, False])
@pytest.mark.parametrize("subset", ["train", "test"])
def test_without_cifar10_the_error_names_path_hash_and_source(
    tmp_path, no_network, subset, download
):
    with pytest.raises(OSError, match="is missing") as caught:
        fetch_cifar10(data_home=tmp_path, subset=subset, download_if_missing=download)
    for part in (
        str(tmp_path / "cifar10" / "cifar-10-binary.tar.gz"),
        "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    ):
        assert part in str(caught.value)


SVHN_FILES = {
    "train": "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
    "test": "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
    "extra": "a133a4beb38a00fcdda90c9489e0c04f900b660ce8a316a5e854838379a71eb3",
}


@pytest.mark.parametrize("download", [True, False])
@pytest.mark.parametrize("subset", SVHN_FILES)
def test_without_svhn_the_error_names_path_hash_and_source(
    tmp_path, no_network, subset, download
):
    with pytest.raises(OSError, match="is missing") as caught:
        fetch_svhn(data_home=tmp_path, subset=subset, download_if_missing=download)
    name = f"{subset}_32x32.mat"
    for part in (
        str(tmp_path / "svhn" / name),
        SVHN_FILES[subset],
        f"http://ufldl.stanford.edu/housenumbers/{name}",
    ):
        assert part in str(caught.value)


def test_without_mnist_the_error_names_every_mirror(tmp_path, no_network):
    with pytest.raises(OSError, match="could not be downloaded") as caught:
        fetch_mnist(data_home=tmp_path)
    assert str(tmp_path / "mnist" / "train-images-idx3-ubyte") in str(caught.value)
    for mirror in ("ossci-datasets.s3.amazonaws.com", "storage.googleapis.com"):
        assert mirror in str(caught.value)


@pytest.mark.parametrize("fetch", [fetch_adult, fetch_cifar10, fetch_mnist, fetch_svhn])
def test_an_unknown_subset_is_refused_before_any_file_is_read(tmp_path, fetch):
    with pytest.raises(ValueError, match="subset='dev' is unknown; use"):
        fetch(data_home=tmp_path, subset="dev")
    assert not any(tmp_path.iterdir())
