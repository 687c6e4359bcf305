"""Values that a private row may hold, whatever its column is for."""

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl


class Word(str):
    """A subclass of str."""


ODD = [
    None,
    pd.NA,
    pd.NaT,
    np.nan,
    np.inf,
    -np.inf,
    10**400,
    -(10**400),
    2**53 + 1,
    1e308,
    "",
    "2",
    "nan",
    "1e999",
    "a",
    "b\0",
    Word("a"),
    np.str_("b"),
    b"a",
    True,
    np.True_,
    0,
    2.0,
    np.int8(2),
    np.float32(0.1),
    np.array(2.0),
    np.array([2.0]),
    np.array([1, 2]),
    [2],
    {"a": 2},
    (1, [2]),
    1j,
    np.complex128(2),
    Decimal("2"),
    Decimal("sNaN"),
    Fraction(10**400, 3),
    datetime.date(2020, 1, 2),
    np.datetime64("NaT"),
    pd.Series([2.0]),
    pl.Series([2.0, 3.0]),
]


def column_of(values):
    """Return an array of objects, which takes no value apart."""
    column = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        column[row] = value
    return column
