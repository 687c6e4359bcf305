"""How a statement writes its figures."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from sklearn_pate.accounting._statement import write_epsilon


@given(st.floats(1e-300, 1e6))
@example(1e-12)
@example(1.0005)
def test_epsilon_is_never_written_below_its_value(epsilon):
    written = float(write_epsilon(epsilon))
    # But for a last digit, which calibration or a product may have rounded up.
    assert epsilon * (1 - 1e-11) <= written <= epsilon * (1 + 1e-11) + 0.001


def test_epsilon_that_is_stated_is_written_as_it_is():
    for epsilon in np.arange(1, 5000) / 1000:
        assert write_epsilon(epsilon) == f"{epsilon:.3f}"
    assert write_epsilon(0.0) == "0.000"
    assert write_epsilon(np.inf) == "inf"
