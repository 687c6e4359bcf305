"""Where data files are, and how they get there: found by hash, or downloaded."""

import gzip
import hashlib
import io
import os
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from sklearn.datasets import fetch_file, get_data_home

__all__ = ["DataFile", "read_data_file"]

_GZIP = b"\x1f\x8b"  # how every gzip file begins


@dataclass(frozen=True)
class DataFile:
    """One original file of a data set.

    Parameters
    ----------
    folder : str
        Sub-folder of `data_home`.

    name : str
        The file's original name.

    sha256 : str
        Hash of the file itself, never of an archive around it. A file whose own name
        ends in ``.gz`` is kept, and hashed, as it is.

    urls : tuple of str
        Mirrors, tried in order: the file, compressed by gzip or not, or a zip archive
        that holds it.
    """

    folder: str
    name: str
    sha256: str
    urls: tuple[str, ...]


def read_data_file(file, *, data_home=None, download_if_missing=True):
    """Return the bytes of a data file, downloading it at most once.

    Parameters
    ----------
    file : DataFile
        What to read.

    data_home : str or path-like, default=None
        Where data sets are kept. None means the environment variable
        ``SKLEARN_PATE_DATA``, or else the folder ``sklearn_pate`` in
        ``sklearn.datasets.get_data_home()``.

    download_if_missing : bool, default=True
        Whether the network may be used.

    Returns
    -------
    content : bytes
        Uncompressed, with the pinned hash.

    Raises
    ------
    OSError
        If the file, or its ``.gz`` sibling, is there with a wrong hash (it is left
        alone); if it is missing and may not, or cannot, be downloaded.
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
    _write_at_once(path, content)
    return content


def _data_home(data_home):
    chosen = data_home or os.environ.get("SKLEARN_PATE_DATA")
    return Path(chosen or Path(get_data_home()) / "sklearn_pate").expanduser()


def _read_checked(path, file):
    content = path.read_bytes()
    if path.name != file.name:  # the compressed sibling
        content = gzip.decompress(content)
    found = hashlib.sha256(content).hexdigest()
    if found != file.sha256:
        raise OSError(
            f"{path} has sha256 {found}, expected {file.sha256}. It was left as it is; "
            f"move it away to download the original from {file.urls[0]}"
        )
    return content


def _download(file, path):
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        for url in file.urls:
            try:
                # A fresh folder a mirror: fetch_file never meets another one's file.
                fetched = fetch_file(url, folder=tempfile.mkdtemp(dir=folder))
                content = _unpack(Path(fetched).read_bytes(), file.name)
            except (
                OSError,
                KeyError,
                EOFError,
                zlib.error,
                zipfile.BadZipFile,
            ) as error:
                problems.append(f"{url}: {error}")
                continue
            if hashlib.sha256(content).hexdigest() == file.sha256:
                return content
            problems.append(f"{url}: wrong sha256")
    raise OSError(
        f"{path} is missing and could not be downloaded. Put the file there (sha256 "
        f"{file.sha256}). Tried {'; '.join(problems)}"
    )


def _unpack(content, name):
    """Return the content itself, unzipped, or the member of a zip with this name."""
    if content.startswith(_GZIP) and not name.endswith(".gz"):
        return gzip.decompress(content)
    if not zipfile.is_zipfile(io.BytesIO(content)):
        return content
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        member = next(
            (one for one in archive.namelist() if Path(one).name == name), None
        )
        if member is None:
            raise KeyError(f"no {name} in the archive")
        return archive.read(member)


def _write_at_once(path, content):
    # Another process may be reading or writing the same file.
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
