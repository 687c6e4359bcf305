"""Rows with one odd value, in containers of any kind."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3)).round(3)
Y = (X[:, 0] > 0).astype(int)
X[:, 0] += 3 * Y
X_PUBLIC = RNG.normal(size=(20, 3)).round(3)
ODD_ROW = 7

WORDS = [None, pd.NA, "much", datetime.date(2020, 1, 2), 10**400]
NUMBERS = [np.nan, np.inf, -np.inf, 1e308, 1e20]


def with_value(rows, value, container):
    """Return rows with one odd value, in a container; None is for none."""
    if container in ("object array", "list"):
        rows = rows.astype(object)
        rows[ODD_ROW, 1] = value
        return rows if container == "object array" else rows.tolist()
    if container.startswith("pandas"):
        frame = pd.DataFrame(rows, columns=list("abc"))
        dtype = {"pandas": "float64", "pandas Float64": "Float64"}.get(
            container, object
        )
        column = frame["b"].astype(dtype)
        column[ODD_ROW] = value
        return frame.assign(b=column)
    if container == "polars":
        columns = {name: rows[:, k].tolist() for k, name in enumerate("abc")}
        columns["b"][ODD_ROW] = value
        return pl.DataFrame(columns)
    rows = rows.astype("float32" if container == "float32" else "float64")
    with np.errstate(over="ignore"):
        rows[ODD_ROW, 1] = value
    return sp.csr_array(rows) if container == "sparse" else rows
