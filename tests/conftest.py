"""Shared data, real where behaviour matters, and noise that a run can repeat."""

import functools
import os
import sys
import time
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from sklearn.datasets import load_digits, make_blobs
from threadpoolctl import threadpool_limits

from sklearn_pate import datasets
from tests.private import _noise

# An integer, or "any": noise from the operating system, as users have it, and examples
# of hypothesis that no run has seen. CONTRIBUTING.md says when.
SEED = os.environ.get("SKLEARN_PATE_TESTS_SEED", "0")

# How long an example takes depends on what else the machine does.
settings.register_profile(
    "tests",
    deadline=None,
    derandomize=SEED != "any",
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.register_profile(
    "thorough", settings.get_profile("tests"), derandomize=False, max_examples=1000
)


def pytest_configure(config):
    """Choose the examples that hypothesis draws."""
    settings.load_profile("thorough" if config.option.thorough else "tests")


def _repeat_noise(name):
    """Let the noise from here on depend on the seed and on a name alone."""
    if SEED != "any":
        rng = np.random.default_rng([int(SEED), *name.encode()])
        _noise.secrets = SimpleNamespace(token_bytes=rng.bytes)
        np.random.seed(rng.integers(2**32))


# Whichever test comes first, a fixture that many share is the same.
@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef, request):
    parameter = getattr(request, "param_index", "")
    _repeat_noise(f"{fixturedef.baseid}::{fixturedef.argname}[{parameter}]")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    _repeat_noise(item.nodeid)


class DataSets:
    """Real data sets; a test that asks for a missing one is skipped."""

    def __init__(self, home):
        self.home = home
        self._loaded = functools.cache(self._load)

    def __call__(self, name, **options):
        """Return what `fetch_<name>` does, or vote counts that a paper published."""
        found = self._loaded(name, **options)
        if isinstance(found, OSError):
            pytest.skip(f"neither file nor network: {found}")
        return found

    def _load(self, name, **options):
        with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
            warnings.filterwarnings("ignore", message="Retry downloading")
            patch.setattr(time, "sleep", lambda seconds: None)  # between two retries
            try:
                if name == "pate2018_votes":
                    return self._votes(**options)
                fetch = getattr(datasets, f"fetch_{name}")
                return fetch(data_home=self.home, **options)
            except OSError as error:
                return error

    def _votes(self, task):
        return np.load(self.home / "pate2018_votes" / f"{task}_250_teachers.npy")


@pytest.fixture(scope="session")
def data_set(data_home):
    """All real data sets by name, with the options of their fetchers."""
    return DataSets(data_home)


@pytest.fixture(scope="session")
def digits():
    return load_digits(return_X_y=True)


@pytest.fixture(scope="session")
def blobs():
    """Private rows, labels, public rows, public labels: easy to learn from few rows."""
    X, y = make_blobs(900, centers=3, cluster_std=1.0, random_state=3)
    return X[:600], y[:600], X[600:], y[600:]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    if plt := sys.modules.get("matplotlib.pyplot"):
        plt.close("all")


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
