"""Files of data sets: download, checksum, tables."""

import gzip
import hashlib
import io
import os
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
from sklearn.datasets import fetch_file, get_data_home

from sklearn_pate._inputs._file_content import write_files

_BROKEN_DOWNLOAD = (OSError, KeyError, EOFError, zlib.error, zipfile.BadZipFile)
_GZIP = b"\x1f\x8b"  # first bytes of every gzip file


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
        import pandas as pd

        return pd.DataFrame(
            {
                name: pd.Categorical(values, categories=self.categories[name])
                if name in self.categories
                else np.array(values, dtype=np.int64)
                for name, values in self._columns.items()
            }
        )
