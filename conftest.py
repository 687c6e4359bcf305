"""One thread a process; and --fast: no slow test, no torch, which takes seconds."""

import os
import sys

import pytest

# Before numpy is imported. Threads of several processes would wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

LEFT_OUT = "fast tests do not import"


class WithoutTorch:
    """Finder of modules by which any import of torch fails."""

    def find_spec(self, name, path=None, target=None):
        """Raise ModuleNotFoundError for torch and for what imports it."""
        if name in ("torch", "skorch", "opacus"):
            raise ModuleNotFoundError(f"{LEFT_OUT} {name}", name=name)


def pytest_addoption(parser):
    """Add the option."""
    parser.addoption(
        "--fast",
        action="store_true",
        help="leave out tests marked as slow, and files that import torch",
    )


def pytest_configure(config):
    """Select what is not slow, and let imports of torch fail."""
    if config.option.fast:
        config.option.markexpr = "not slow"
        sys.meta_path.insert(0, WithoutTorch())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark examples of docstrings that import torch as slow."""
    for item in items:
        if (
            isinstance(item, pytest.DoctestItem)
            and "import torch" in item.dtest.docstring
        ):
            item.add_marker("slow")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Leave out a file that cannot be imported without torch."""
    report = yield
    if report.failed and LEFT_OUT in str(report.longrepr):
        path = collector.path.relative_to(collector.config.rootpath).with_suffix("")
        sys.modules.pop(".".join(path.parts), None)  # half-way imported
        report.outcome, report.longrepr, report.result = "passed", None, []
    return report
