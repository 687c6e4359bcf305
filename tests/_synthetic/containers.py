"""Tables of several libraries, each with the domain of its columns."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

N_ROWS = 200
RNG = np.random.default_rng(0)
AGE, PAY = RNG.integers(0, 10, N_ROWS), RNG.uniform(0, 10, N_ROWS)
JOB = RNG.choice(["a", "b", "c"], N_ROWS)
OK = RNG.random(N_ROWS) < 0.5
Y = (AGE + PAY > 10).astype(int)

NUMBERS = np.column_stack([AGE, PAY])
PLAIN = {"age": (0, 10), "pay": (0, 10), "job": ["a", "b", "c"]}
MISSING = {
    "age": {"range": [0, 10], "missing": True},
    "pay": {"edges": [0, 5, 6, 10], "missing": True},
    "job": ["a", "b", "c", None],
    "ok": [True, False, None],
    "kind": ["a", "b", "c", None],
}


def mixed():
    table = NUMBERS.astype(object)
    table[:, 0] = JOB
    table[3, :] = None
    return table, {0: ["a", "b", "c", None], 1: MISSING["pay"]}


def frame():
    columns = {"age": AGE, "pay": PAY, "job": JOB, "ok": OK}
    return pd.DataFrame(columns | {"kind": pd.Categorical(JOB)})


def nullable():
    types = {"age": "Int16", "pay": "Float32", "job": "string", "ok": "boolean"}
    table = frame().astype(types)
    table.loc[3] = pd.NA
    return table, MISSING


def arrow_text():
    pytest.importorskip("pyarrow")
    return frame().astype({"job": "string[pyarrow]"}), PLAIN


def whole_names():
    table = frame()
    table.columns = range(5)
    return table, {number: PLAIN[name] for number, name in enumerate(PLAIN)}


def polars():
    """Return a frame with an Enum."""
    table = pl.DataFrame({"age": AGE, "pay": PAY, "job": JOB, "ok": OK})
    return table.with_columns(
        pl.Series("kind", JOB, dtype=pl.Enum(["a", "b", "c"])),
        pl.col("pay").cast(pl.Float32),
    )


def polars_nulls():
    table = polars().with_columns(pl.col("kind").cast(pl.Categorical))
    return table.with_columns(pl.when(pl.int_range(N_ROWS) != 3).then(pl.all()))


def arrow():
    pytest.importorskip("sklearn", "1.7")  # which takes Arrow tables
    pa = pytest.importorskip("pyarrow")
    job = pa.array(JOB.tolist())
    columns = {"age": AGE, "pay": PAY, "job": job, "kind": job.dictionary_encode()}
    return pa.table(columns), PLAIN | {"kind": ["a", "b", "c"]}


TABLES = {
    "numpy float32": lambda: (NUMBERS.astype(np.float32), (0, 10)),
    "numpy float64": lambda: (NUMBERS, (0, 10)),
    "numpy int16": lambda: (NUMBERS.astype(np.int16), (0, 10)),
    "numpy object": mixed,
    "numpy str": lambda: (np.column_stack([JOB, JOB[::-1]]), ["a", "b", "c"]),
    "pandas": lambda: (frame(), PLAIN),
    "pandas object": lambda: (nullable()[0].astype(object), MISSING),
    "pandas nullable": nullable,
    "pandas string[pyarrow]": arrow_text,
    "pandas names are numbers": whole_names,
    "polars": lambda: (polars(), PLAIN),
    "polars nulls": lambda: (polars_nulls(), MISSING),
    "pyarrow": arrow,
}
