"""Fetchers of images: the real files where they are, small ones where they are not."""

import io
from urllib.error import URLError

import numpy as np
import pytest
from scipy.io import savemat

from sklearn_pate.datasets import fetch_mnist, fetch_svhn, files
from sklearn_pate.datasets.svhn import rows_of_mat


@pytest.fixture
def no_network(monkeypatch):
    def fetch_file(url, **kwargs):
        raise URLError("no network")

    monkeypatch.setattr(files, "fetch_file", fetch_file)


def test_mnist_has_its_published_size_and_classes(mnist):
    assert mnist.data.shape == (70000, 784)
    assert mnist.data.dtype == np.uint8
    assert mnist.target.dtype == np.int64
    # The first digits of the training file, and how many of each class there are.
    assert mnist.target[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert np.bincount(mnist.target).tolist() == [
        *(6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958)
    ]


def test_rows_of_mnist_are_upright_images(mnist):
    ones = mnist.data[mnist.target == 1].reshape(-1, 28, 28).mean(axis=0)
    # Ink of a one stands in the middle columns, over many lines.
    assert ones[:, 11:17].sum() > 0.7 * ones.sum()
    assert np.count_nonzero(ones.max(axis=1) > 50) >= 18


def test_subsets_of_mnist_are_its_two_files(mnist):
    X, y = fetch_mnist(subset="test", return_X_y=True)
    np.testing.assert_array_equal(X, mnist.data[60000:])
    np.testing.assert_array_equal(y, mnist.target[60000:])
    X[0] = 1  # an array of the user's own
    assert fetch_mnist(subset="train").data.shape == (60000, 784)


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


@pytest.mark.parametrize("fetch", [fetch_mnist, fetch_svhn])
def test_an_unknown_subset_is_refused_before_any_file_is_read(tmp_path, fetch):
    with pytest.raises(ValueError, match="subset='dev' is unknown; use"):
        fetch(data_home=tmp_path, subset="dev")
    assert not any(tmp_path.iterdir())
