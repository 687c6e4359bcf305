"""Whole fits on private rows with objects all of whose methods raise."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from sklearn_pate import (
    DPNewtonClassifier,
    PATEClassifier,
    PrivateMarginals,
    PublicData,
)
from sklearn_pate.distributed import cast_votes
from sklearn_pate.learners import (
    DPLinearSVC,
    DPLogisticRegression,
    DPNaiveBayesClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.model_selection import PrivateSearchCV

METHODS = [
    *["float", "index", "int", "bool", "complex", "len", "iter", "getitem", "contains"],
    *["str", "repr", "format", "hash", "eq", "ne", "lt", "le", "gt", "ge", "abs"],
    *["array", "array_ufunc", "array_function", "getattr", "getattribute", "dir"],
    *["sizeof", "reduce", "reduce_ex", "neg", "add", "radd", "sub", "rsub", "copy"],
]
PROPERTIES = ["class", "array_interface", "array_struct", "array_priority", "dict"]
N_ROWS = 200


def fails(self, *_, **__):
    raise RuntimeError("secret")


def odd_objects():
    """Make objects with one method or property that raises, and one with them all."""
    each = [{f"__{name}__": fails} for name in METHODS]
    each += [{f"__{name}__": property(fails)} for name in PROPERTIES]
    each.append({name: one for content in each for name, one in content.items()})
    return [type("Odd", (), content)() for content in each]


def table(seed, n_rows):
    rng = np.random.default_rng(seed)
    rows = np.empty((n_rows, 3), dtype=object)
    rows[:, :2] = rng.normal(size=(n_rows, 2)).round(3)
    rows[:, 2] = rng.choice(["blue", "red"], n_rows)
    return rows, (rows[:, 0] > 0).astype(int)


PUBLIC = PublicData(table(1, 50)[0])
NUMBERS = PublicData(table(1, 50)[0][:, :2].astype(float))
DOMAIN = {0: (-3, 3), 1: (-3, 3), 2: ["blue", "red"]}
GIVEN = {"epsilon": 8, "classes": [0, 1], "random_state": 0}
VOTES = {"n_teachers": 10, "n_queries": 10, **GIVEN}
BOUNDED = {"epsilon": 8, "classes": [0, 1], "data_norm": 3.0}
encoder = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())


def pate(*given, **parameters):
    return lambda X, y: PATEClassifier(*given, **parameters).fit(X, y, X_public=PUBLIC)


FITS = {
    "votes": pate(**VOTES),
    "votes of an encoder": pate(encoder, **VOTES),
    "histograms": pate(**VOTES, mechanism="histogram"),
    "newton": lambda X, y: DPNewtonClassifier(**GIVEN).fit(X, y, X_public=PUBLIC),
    "newton on counts": lambda X, y: DPNewtonClassifier(
        synthetic=PrivateMarginals(DOMAIN), **GIVEN
    ).fit(X, y),
    "mean scores": pate(**GIVEN, n_teachers=10, mechanism="scores"),
    "a dataframe": lambda X, y: PATEClassifier(**VOTES).fit(
        frame(X), y, X_public=PublicData(frame(PUBLIC.X))
    ),
    "lists": lambda X, y: PATEClassifier(**VOTES).fit(
        X.tolist(), y.tolist(), X_public=PUBLIC
    ),
    "counts": lambda X, y: PATEClassifier(
        synthetic=PrivateMarginals(DOMAIN), **GIVEN
    ).fit(X, y),
    "neighbours": lambda X, y: PrivateKNNClassifier(**GIVEN).fit(
        X[:, :2], y, X_public=NUMBERS
    ),
    "logistic regression": lambda X, y: DPLogisticRegression(**BOUNDED).fit(
        X[:, :2], y
    ),
    "linear SVC": lambda X, y: DPLinearSVC(**BOUNDED).fit(X[:, :2], y),
    "naive Bayes": lambda X, y: DPNaiveBayesClassifier(DOMAIN, **GIVEN).fit(X, y),
    "a search": lambda X, y: PrivateSearchCV(
        DPLogisticRegression(**BOUNDED), {"C": [1.0]}, classes=[0, 1]
    ).fit(X[:, :2], y),
    "one teacher": lambda X, y: cast_votes(
        LogisticRegression(), X[:, :2], y, NUMBERS, classes=[0, 1], shard=0
    ),
}


def frame(X):
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:By the released counts")
@pytest.mark.parametrize("column", [0, 2, "y"])
@pytest.mark.parametrize("name", FITS)
def test_no_object_of_a_private_row_stops_a_fit(name, column):
    X, y = table(0, N_ROWS)
    y = y.astype(object)
    for row, odd in enumerate(odd_objects()):
        if column == "y":
            y[row] = odd
        else:
            X[row, column] = odd
    FITS[name](X, y)


@pytest.mark.parametrize("container", [np.asarray, list])
@pytest.mark.parametrize("index", range(len(odd_objects())))
def test_a_label_that_is_no_class_is_refused_without_its_own_words(index, container):
    X, y = table(0, N_ROWS)
    y = y.astype(object)
    y[0] = odd_objects()[index]
    with pytest.raises(ValueError, match="label") as refused:
        DPLogisticRegression(epsilon=8, data_norm=3.0).fit(X[:, :2], container(y))
    assert "secret" not in str(refused.value)
