"""Shared data, real where behaviour matters, and noise that a run can repeat."""

import functools
import io
import os
import re
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import settings
from sklearn.datasets import load_digits, make_blobs
from threadpoolctl import threadpool_limits

from sklearn_pate.datasets import fetch_adult, fetch_diabetes130, fetch_mnist
from sklearn_pate.mechanisms.noise import _source

# An integer, or "any": noise from the operating system, as users have it, and examples
# of hypothesis that no run has seen. CONTRIBUTING.md says when.
SEED = os.environ.get("SKLEARN_PATE_TESTS_SEED", "0")

# How long an example takes depends on what else the machine does.
settings.register_profile("tests", deadline=None, derandomize=SEED != "any")
settings.load_profile("tests")


def _repeat_noise(name):
    """Let the noise from here on depend on the seed and on a name alone."""
    if SEED != "any":
        rng = np.random.default_rng([int(SEED), *name.encode()])
        _source.secrets = SimpleNamespace(token_bytes=rng.bytes)
        np.random.seed(rng.integers(2**32))


# Whichever test comes first, a fixture that many share is the same.
@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef, request):
    parameter = getattr(request, "param_index", "")
    _repeat_noise(f"{fixturedef.baseid}::{fixturedef.argname}[{parameter}]")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    _repeat_noise(item.nodeid)


def _fetched(fetch, **options):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Retry downloading")
        try:
            return fetch(**options)
        except OSError as error:
            return error


_fetched_once = functools.cache(_fetched)


def _or_skip(data):
    if isinstance(data, OSError):
        pytest.skip(f"neither file nor network: {data}")
    return data


@pytest.fixture(scope="session")
def adult():
    return _or_skip(_fetched_once(fetch_adult, as_frame=False))


@pytest.fixture(scope="session")
def adult_frame():
    return _or_skip(_fetched_once(fetch_adult, as_frame=True))


@pytest.fixture(scope="session")
def diabetes():
    return _or_skip(_fetched_once(fetch_diabetes130, as_frame=True))


@pytest.fixture(scope="module")  # large: gone after the tests that need it
def mnist():
    return _or_skip(_fetched(fetch_mnist))


@pytest.fixture(scope="session")
def digits():
    return load_digits(return_X_y=True)


@pytest.fixture(scope="session")
def blobs():
    """Private rows, labels, public rows, public labels: easy to learn from few rows."""
    X, y = make_blobs(900, centers=3, cluster_std=1.0, random_state=3)
    return X[:600], y[:600], X[600:], y[600:]


@pytest.fixture(scope="session")
def published_counts():
    """Vote counts that the 2018 PATE paper published, by data set."""
    folder = Path(os.environ.get("SKLEARN_PATE_DATA", "")) / "pate2018_votes"

    def load(name):
        path = folder / f"{name}_250_teachers.npy"
        if not path.is_file():
            pytest.skip(f"the published votes are not in SKLEARN_PATE_DATA: {path}")
        return np.load(path)

    return load


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self):
        return True

    @property
    def lines(self):
        """Lines of progress, finished or not, without what covers longer ones."""
        shown = re.split("[\r\n]", self.getvalue())
        return [
            one.removeprefix("[sklearn_pate] ").rstrip() for one in shown if one.strip()
        ]


@pytest.fixture
def terminal():
    """A terminal, to be the standard error stream."""
    return Terminal()


@pytest.fixture
def two_threads():
    """Two threads for BLAS and torch, so that a limit of one can be seen."""
    torch = sys.modules.get("torch")
    before = torch and torch.get_num_threads()
    with threadpool_limits(2):
        if torch:
            torch.set_num_threads(2)
        yield
    if torch:
        torch.set_num_threads(before)
