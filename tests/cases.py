"""Cases of tests with parameters."""

import pytest


def thorough_but(default, values):
    """List values of a parameter, with those that are not default ones as thorough."""
    return [
        value if value in default else pytest.param(value, marks=pytest.mark.thorough)
        for value in values
    ]
