"""The layout of the package: private modules, one name each, tests beside them."""

import re
from collections import Counter
from pathlib import Path

import sklearn.datasets

import sklearn_pate.datasets
from tests.private import PLACES

PACKAGE = Path(sklearn_pate.__file__).parent
TESTS = Path(__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
# What may be imported from is the packages, and these.
PUBLIC = {
    "__main__.py",
    "exceptions.py",
    "stored_types.py",
    "testing.py",
    "accounting/bounds.py",
    "accounting/composition.py",
}


def folders(root):
    return {path.relative_to(root).parent.as_posix() for path in root.rglob("*.py")}


def test_a_module_is_private_unless_it_is_listed_here():
    public = {
        path.relative_to(PACKAGE).as_posix()
        for path in MODULES
        if path.name != "__init__.py" and (path.name[0] != "_" or path.name[:2] == "__")
    }
    assert public == PUBLIC


def test_private_modules_have_no_list_of_names():
    """Nothing imports `*` from them, and an underscore says what is private."""
    listed = {
        path.relative_to(PACKAGE).as_posix()
        for path in MODULES
        if path.name != "__init__.py" and "__all__ = [" in path.read_text()
    }
    assert listed <= PUBLIC


def test_no_two_modules_have_the_same_name():
    names = Counter(path.name for path in MODULES if path.name != "__init__.py")
    assert [name for name, count in names.items() if count > 1] == []


def test_few_modules_stand_at_the_top():
    assert len(list(PACKAGE.glob("*.py"))) <= 7


def test_folders_of_tests_are_folders_of_the_package():
    assert folders(TESTS) <= folders(PACKAGE)


def test_tests_import_private_names_from_one_list():
    """A module that moves changes the list alone."""
    private = re.compile(
        r"^\s*(?:from sklearn_pate\S*\._\S+ import|from sklearn_pate\S* import _)", re.M
    )
    assert [
        path.name for path in TESTS.rglob("*.py") if private.search(path.read_text())
    ] == []
    files = [path for path in TESTS.rglob("*.py") if path.name != "private.py"]
    words = {word for path in files for word in re.findall(r"\w+", path.read_text())}
    assert {name for names in PLACES.values() for name in names} <= words


def test_no_file_of_tests_is_longer_than_500_lines():
    files = {path.name: path.read_text().count("\n") for path in TESTS.rglob("*.py")}
    assert {name: n_lines for name, n_lines in files.items() if n_lines > 500} == {}


def test_only_the_fixture_data_set_calls_a_fetcher():
    """Other tests would fail where there is neither file nor network."""
    names = {*sklearn_pate.datasets.__all__, *sklearn.datasets.__all__}
    fetchers = "|".join(name for name in names if name.startswith("fetch_"))
    own = TESTS / "datasets"  # tests of the fetchers, each in a folder of its own
    assert {
        f"{path.relative_to(TESTS)}: {name}; use the fixture data_set"
        for path in TESTS.rglob("*.py")
        if own not in path.parents
        for name in re.findall(rf"\b(?:{fetchers})\b", path.read_text())
    } == set()
