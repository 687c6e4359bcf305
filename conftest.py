"""One thread a process, data sets by one fixture only, and three options.

--fast runs no slow test and no torch, which takes seconds. --thorough runs all tests,
also what takes long and all combinations of values, of which the default is a few that
contain each value; and hypothesis draws new examples. --offline runs the tests on data
sets, with neither files nor network: all must be skipped.
"""

import os
import random
import socket
import sys
from collections import defaultdict
from pathlib import Path

import pytest

# Before numpy is imported. Threads of several processes would wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Before dask is imported. On a busy machine, a worker answers late.
for limit in ("CONNECT", "TCP"):
    os.environ.setdefault(f"DASK_DISTRIBUTED__COMM__TIMEOUTS__{limit}", "600s")

LEFT_OUT = "fast tests do not import"


class WithoutTorch:
    """Finder of modules by which any import of torch fails."""

    def find_spec(self, name, path=None, target=None):
        """Raise ModuleNotFoundError for torch and for what imports it."""
        if name in ("torch", "skorch", "opacus"):
            raise ModuleNotFoundError(f"{LEFT_OUT} {name}", name=name)


def pytest_addoption(parser):
    """Add the options."""
    parser.addoption(
        "--fast",
        action="store_true",
        help="leave out tests marked as slow, and files that import torch",
    )
    parser.addoption(
        "--thorough",
        action="store_true",
        help="add tests marked as thorough, and let hypothesis draw new examples",
    )
    parser.addoption(
        "--offline",
        action="store_true",
        help="run tests that need data sets without any, and fail unless all skip",
    )


def pytest_configure(config):
    """Select tests by their markers, unless -m does; let imports of torch fail."""
    left_out = {
        "docs": True,
        "slow": config.option.fast,
        "thorough": not config.option.thorough,
    }
    config.option.markexpr = config.option.markexpr or " and ".join(
        f"not {marker}" for marker, is_left_out in left_out.items() if is_left_out
    )
    if config.option.fast:
        sys.meta_path.insert(0, WithoutTorch())


@pytest.fixture(scope="session", autouse=True)
def data_home(request, tmp_path_factory):
    """Folder of data sets, hidden from everything but the fixture `data_set`.

    A test, page or docstring that fetches a data set in another way fails on every
    machine, and not only where the data set is missing.
    """
    from sklearn.datasets import get_data_home

    home = os.environ.get("SKLEARN_PATE_DATA") or Path(get_data_home(), "sklearn_pate")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKLEARN_PATE_DATA", os.devnull)
        patch.setenv("SCIKIT_LEARN_DATA", os.devnull)
        if request.config.option.offline:
            home = tmp_path_factory.mktemp("no_data")
            patch.setattr(socket, "getaddrinfo", no_network)
            patch.setattr(socket.socket, "connect", no_network)
        yield Path(home)


def no_network(*args, **kwargs):
    """Refuse to find or to reach a machine."""
    raise OSError("--offline: no network")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark examples of docstrings, and combinations of values; select tests on data."""
    if config.option.offline:
        items[:] = [
            item for item in items if "data_set" in getattr(item, "fixturenames", ())
        ]
    cases = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            item.add_marker("docs")
        elif hasattr(item, "callspec") and not item.get_closest_marker("thorough"):
            cases[item.path, item.parent.name, item.originalname].append(item)
    for of_one_test in cases.values():
        for item in repeated(of_one_test):
            item.add_marker("thorough")


def repeated(cases):
    """List cases of a test whose values all occur in cases before; quick ones first.

    The values that one decorator lists together count as one.
    """
    random.Random(0).shuffle(cases)  # in order, all would have the first values
    found, left_out = set(), []
    for case in sorted(cases, key=lambda case: bool(case.get_closest_marker("slow"))):
        ids = {name: id(value) for name, value in case.callspec.params.items()}
        values = set()
        for mark in case.iter_markers("parametrize"):
            names = mark.args[0]
            names = names.split(",") if isinstance(names, str) else names
            values.add(tuple((name.strip(), ids.pop(name.strip())) for name in names))
        values |= {*ids.items()}  # of fixtures
        if values <= found:
            left_out.append(case)
        found |= values
    return left_out


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """With --offline, let a test fail that passes without its data set."""
    report = yield
    if item.config.option.offline and report.when == "call" and report.passed:
        report.outcome, report.longrepr = "failed", "passed without its data set"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Leave out a file that cannot be imported without torch."""
    report = yield
    if report.failed and LEFT_OUT in str(report.longrepr):
        path = collector.path.relative_to(collector.config.rootpath).with_suffix("")
        sys.modules.pop(".".join(path.parts), None)  # half-way imported
        report.outcome, report.longrepr, report.result = "passed", None, []
    return report
