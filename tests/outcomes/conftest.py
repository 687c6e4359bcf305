"""A fit of each kind of outcome, made once; tests change nothing in it."""

import pytest

from tests.outcomes.outcomes import fitted


@pytest.fixture(scope="session")
def of_numbers():
    return fitted("number")


@pytest.fixture(scope="session")
def of_times():
    return fitted("time")


@pytest.fixture(scope="session")
def of_labels():
    return fitted("labels")


@pytest.fixture(scope="session")
def fits(of_numbers, of_times, of_labels):
    """Return model and fresh rows with their outcomes, by kind."""
    return {"number": of_numbers, "time": of_times, "labels": of_labels}
