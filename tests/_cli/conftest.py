"""Folders of five simulated sites."""

import shutil

import pytest

from tests._cli.site_files import SITES, study, vote, write_site_files
from tests.private import main


@pytest.fixture(scope="session")
def voted(tmp_path_factory):
    """Folder with the study and the votes of all sites."""
    folder = tmp_path_factory.mktemp("voted")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_site_files(folder)
        for arguments in (study(), *map(vote, SITES)):
            assert main(arguments) == 0
    return folder


@pytest.fixture
def folder(voted, tmp_path, monkeypatch):
    """Copy of these files, in the current folder."""
    shutil.copytree(voted, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path
