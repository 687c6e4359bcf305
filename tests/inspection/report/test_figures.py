"""Figures of a report are rounded up, and by less than one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.private import of_thousand, round_up, two_digits_up


@given(st.floats(0, 1))
def test_probabilities_are_rounded_up_and_by_less_than_one(probability):
    shown = of_thousand(probability)
    assert 1000 * probability - 1e-9 <= shown < 1000 * probability + 1


def test_figures_that_come_out_even_are_not_rounded():
    assert of_thousand(0.5) == of_thousand(0.5 * (1 + 1e-15)) == 500
    assert of_thousand(1.0) == 1000
    assert two_digits_up(1e-5) == 1e-5


@pytest.mark.parametrize(
    ("delta", "shown"),
    [(0.0, 0.0), (1.01e-5, 1.1e-5), (9.91e-7, 1e-6), (0.123, 0.13), (1.0, 1.0)],
)
def test_deltas_keep_two_digits(delta, shown):
    assert two_digits_up(delta) == pytest.approx(shown, rel=1e-12)


@given(st.floats(0, 1e4), st.integers(1, 6))
def test_rounding_up_is_up_but_for_what_arithmetic_adds(value, places):
    rounded = round_up(value, places)
    assert value - 1e-9 * 10.0**-places <= rounded * (1 + 1e-15)
    assert rounded <= value + 10.0**-places * (1 + 1e-9)
    assert round_up(1 + 1e-15, 3) == 1
