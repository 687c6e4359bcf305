"""A small table of mixed columns, and its domain."""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sklearn_pate import PrivateMarginals

RNG = np.random.default_rng(0)
N_ROWS = 600
Y = RNG.integers(2, size=N_ROWS)
GROUPS = np.arange(N_ROWS) // 2
TABLE = pd.DataFrame(
    {
        "age": np.clip(30 + 25 * Y + RNG.integers(-10, 20, size=N_ROWS), 17, 90),
        "sex": np.array(["F", "M"])[RNG.integers(2, size=N_ROWS)],
        "smoker": RNG.random(N_ROWS) < 0.2 + 0.6 * Y,
        "income": np.where(
            RNG.random(N_ROWS) < 0.1, np.nan, 400.0 * (1 + Y) * RNG.random(N_ROWS)
        ),
        "site": pd.Categorical.from_codes(RNG.integers(3, size=N_ROWS), list("abc")),
    }
)
# Columns with a type that lists their values are not declared.
DOMAIN = {
    "age": (17, 90),
    "sex": ["F", "M"],
    "income": {"edges": [0, 100, 200, 400, 800], "missing": True},
}
SYNTHETIC = PrivateMarginals(DOMAIN, n_bins=32, n_rows=200, sigma=3.0)
SHAPES = {
    "age": (2, 32),
    "sex": (2, 2),
    "smoker": (2, 2),
    "income": (2, 5),
    "site": (2, 3),
}


def encoder():
    return make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["sex", "site"]),
        (SimpleImputer(), ["income"]),
        remainder="passthrough",
        sparse_threshold=0,
    )


def numbers():
    return make_pipeline(encoder(), StandardScaler())


def model():
    return make_pipeline(numbers(), LogisticRegression())
