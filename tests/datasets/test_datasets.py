"""Fetchers, on a small file served from this machine and on the real files."""

import functools
import gzip
import hashlib
import io
import threading
import zipfile
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from sklearn_pate import datasets
from tests.private import DataFile, _fetch, read_data_file

CONTENT = b"age, income\n39, high\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()

pytestmark = pytest.mark.filterwarnings("ignore:Retry downloading")


def archive(name="small.data", content=CONTENT):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as packed:
        packed.writestr(f"folder/{name}", content)
    return stream.getvalue()


@pytest.fixture
def file_at(tmp_path):
    """Return a function: contents of mirrors to a DataFile that is found there."""
    folder = tmp_path / "mirrors"
    folder.mkdir()
    handler = functools.partial(QuietHandler, directory=folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()

    def publish(*contents):
        for i, content in enumerate(contents):
            if content is not None:
                (folder / f"mirror-{i}").write_bytes(content)
        address = f"http://127.0.0.1:{server.server_port}"
        urls = tuple(f"{address}/mirror-{i}" for i in range(len(contents)))
        return DataFile("small", "small.data", SHA256, urls)

    yield publish
    server.shutdown()
    server.server_close()


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "home" / "small"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def no_network(monkeypatch):
    def fetch_file(url, **kwargs):
        pytest.fail(f"the network was used for {url}")

    monkeypatch.setattr(_fetch, "fetch_file", fetch_file)


@pytest.mark.slow
@pytest.mark.parametrize("packed", [False, True])
def test_a_file_that_is_there_is_used_without_network(
    home, file_at, no_network, packed
):
    name, content = "small.data", CONTENT
    if packed:
        name, content = name + ".gz", gzip.compress(CONTENT)
    (home / name).write_bytes(content)
    assert read_data_file(file_at(None), data_home=home.parent) == CONTENT


@pytest.mark.slow
def test_a_file_with_a_wrong_hash_is_reported_and_left_alone(home, file_at, no_network):
    (home / "small.data").write_bytes(b"mine")
    with pytest.raises(OSError, match=f"expected {SHA256}.*not changed"):
        read_data_file(file_at(CONTENT), data_home=home.parent)
    assert (home / "small.data").read_bytes() == b"mine"


@pytest.mark.slow
@pytest.mark.parametrize(
    "published",
    [CONTENT, gzip.compress(CONTENT), archive()],
    ids=["plain", "gzip", "zip"],
)
def test_a_missing_file_is_downloaded_once(tmp_path, file_at, published, request):
    file = file_at(published)
    home = tmp_path / "new" / "home"
    assert read_data_file(file, data_home=home) == CONTENT
    assert [path.name for path in (home / "small").iterdir()] == ["small.data"]
    request.getfixturevalue("no_network")
    assert read_data_file(file, data_home=home) == CONTENT


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken",
    [
        None,
        b"changed",
        gzip.compress(CONTENT)[:-9],
        archive(content=b"changed"),
        archive("other.data"),
    ],
    ids=["missing", "changed", "cut gzip", "changed zip", "other zip"],
)
def test_the_next_mirror_is_tried(tmp_path, file_at, broken):
    assert read_data_file(file_at(broken, CONTENT), data_home=tmp_path) == CONTENT


@pytest.mark.thorough
def test_without_any_good_mirror_the_error_names_path_hash_and_source(
    tmp_path, file_at
):
    file = file_at(b"changed", None)
    with pytest.raises(OSError, match="could not be downloaded") as caught:
        read_data_file(file, data_home=tmp_path)
    for part in (str(tmp_path / "small" / "small.data"), SHA256, *file.urls):
        assert part in str(caught.value)
    assert not (tmp_path / "small").exists()


@pytest.mark.slow
def test_without_permission_nothing_is_downloaded(tmp_path, file_at, no_network):
    with pytest.raises(OSError, match="download_if_missing=False"):
        read_data_file(file_at(CONTENT), data_home=tmp_path, download_if_missing=False)


@pytest.mark.slow
def test_the_environment_variable_sets_the_folder(
    home, file_at, no_network, monkeypatch
):
    (home / "small.data").write_bytes(CONTENT)
    monkeypatch.setenv("SKLEARN_PATE_DATA", str(home.parent))
    assert read_data_file(file_at(None)) == CONTENT


# The real files


@pytest.mark.parametrize("name", datasets.__all__)
def test_tests_find_real_files_only_by_their_fixture(name):
    with pytest.raises(OSError, match=r"/null/.* is missing"):
        getattr(datasets, name)(download_if_missing=False)


@pytest.mark.slow
def test_adult_has_its_published_size_and_coding(data_set):
    adult, frame = data_set("adult"), data_set("adult", as_frame=True).data
    assert adult.data.shape == (48842, 14)
    assert np.mean(adult.target == ">50K") == pytest.approx(0.2393, abs=1e-4)
    assert frame.shape == (48842, 14)
    for column, name in enumerate(adult.feature_names):
        as_text = frame[name]
        if name in adult.categories:
            codes = adult.data[:, column].astype(int)
            decoded = np.array(adult.categories[name])[codes]
            assert np.array_equal(decoded, as_text.astype(str))
        else:
            assert np.array_equal(adult.data[:, column], as_text)


@pytest.mark.slow
def test_adult_subsets_share_one_coding(data_set):
    adult = data_set("adult")
    X, y = data_set("adult", subset="test", return_X_y=True)
    assert np.array_equal(X, adult.data[32561:])
    assert np.array_equal(y, adult.target[32561:])


@pytest.mark.slow
def test_diabetes_has_one_group_a_patient(data_set):
    diabetes = data_set("diabetes130", as_frame=True)
    assert diabetes.data.shape == (101766, 47)
    assert len(np.unique(diabetes.groups)) == 71518
    assert np.mean(diabetes.target == "<30") == pytest.approx(0.1116, abs=1e-4)
    assert "patient_nbr" not in diabetes.data
