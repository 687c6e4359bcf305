"""Containers that numpy or scikit-learn would misread, and columns in another order."""

import narwhals
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from sklearn_pate import (
    DPNewtonClassifier,
    PATEClassifier,
    PublicData,
    PublishedClassifier,
)
from sklearn_pate.learners import DPLogisticRegression, PrivateKNNClassifier
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.model_selection import PrivateSearchCV
from tests.private import check_classes, check_container

N_ROWS = 300
GROUPS = np.arange(N_ROWS) // 2


class Delayed:
    """An unknown number of rows, as in dask."""

    def __bool__(self):
        raise TypeError("it cannot be converted to a boolean value")

    __eq__ = __ne__ = lambda self, other: Delayed()
    __hash__ = None


class Distant:
    """Columns as in a dask dataframe: on other machines."""

    __module__ = "dask.dataframe"

    columns = ("age", "weight")
    shape = (Delayed(), 2)

    def __init__(self, rows):
        self.rows = rows

    def compute(self):
        return self.rows


def frame(rows):
    names = ["age", "weight"][: np.ndim(rows)]
    return pl.DataFrame(np.reshape(rows, (len(rows), -1))[:, : len(names)], names)


MISREAD = {
    "masked": (
        lambda rows: np.ma.masked_array(rows, mask=False),
        "a masked array, whose mask would be ignored; pass a plain array",
    ),
    "lazy": (
        lambda rows: frame(rows).lazy(),
        r"a polars LazyFrame, whose rows are not in memory; pass {}\.collect\(\)",
    ),
    "distant": (
        Distant,
        r"a dask Distant, whose rows are not in memory; pass {}\.compute\(\)",
    ),
    "narwhals": (
        lambda rows: narwhals.from_native(frame(rows)),
        r"a narwhals DataFrame; pass {}\.to_native\(\)",
    ),
    "gradient": (
        lambda rows: torch.tensor(np.asarray(rows, float), requires_grad=True),
        r"a tensor that requires a gradient; pass {}\.detach\(\)",
    ),
}


def make(**parameters):
    defaults = {"n_teachers": 10, "mechanism": GNMax(sigma=1), "epsilon": None}
    defaults["estimator"] = LogisticRegression()
    return PATEClassifier(**(defaults | parameters))


@pytest.mark.parametrize("container", MISREAD)
@pytest.mark.parametrize("argument", ["X", "y", "X_public", "raw X_public", "groups"])
def test_a_container_that_would_be_misread_is_refused(argument, container, blobs):
    contain, message = MISREAD[container]
    X, y, X_public, _ = blobs
    arguments = {"X": X[:N_ROWS], "y": y[:N_ROWS], "groups": GROUPS}
    arguments["X_public"] = X_public
    raw = argument.startswith("raw")
    argument = argument.removeprefix("raw ")
    arguments[argument] = contain(arguments[argument])
    if not raw:
        arguments["X_public"] = PublicData(arguments["X_public"])
    message = f"^{argument} is {message.format(argument)}"
    with pytest.raises(ValueError, match=message):
        make(privacy_unit="group").fit(**arguments)


@pytest.mark.parametrize("container", MISREAD)
def test_rows_to_predict_are_refused_in_the_same_way(container, blobs):
    contain, message = MISREAD[container]
    X, y, X_public, _ = blobs
    pate = make(random_state=0).fit(X, y, X_public=PublicData(X_public))
    for model in (pate, pate.publish()):
        with pytest.raises(ValueError, match=f"^X is {message.format('X')}"):
            model.predict(contain(X))


@pytest.mark.parametrize("argument", ["X", "y"])
@pytest.mark.parametrize(
    "learner",
    [
        DPLogisticRegression(data_norm=10.0),
        PrivateSearchCV(DPLogisticRegression(data_norm=10.0), {"C": [1, 2]}),
        PrivateKNNClassifier(public_size=0.2),
        DPNewtonClassifier(public_size=0.2),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_other_learners_refuse_masked_arrays_too(learner, argument, blobs):
    arguments = {"X": blobs[0], "y": blobs[1]}
    arguments[argument] = np.ma.masked_array(arguments[argument], mask=False)
    message = rf"^{argument} is a masked array"
    with pytest.raises(ValueError, match=message):
        learner.fit(**arguments)


def test_masked_classes_are_refused():
    with pytest.raises(ValueError, match=r"^classes is a masked array"):
        check_classes(np.ma.masked_array([0, 1, 2], mask=[0, 0, 1]))


def test_a_frame_may_have_columns_named_like_methods():
    names = ["collect", "compute", "toPandas", "to_native", "requires_grad"]
    check_container("X", pd.DataFrame(np.zeros((3, 5)), columns=names))
    check_container("X", pl.DataFrame(np.zeros((3, 5)), schema=names))


def test_classes_of_one_unsigned_type_stay_as_they_are():
    labels = np.array([2**63 + 1, 0], dtype=np.uint64)
    classes = check_classes(labels)
    assert classes.dtype == np.uint64
    assert classes.tolist() == [0, 2**63 + 1]


# Column names that are no strings


NAMES = {
    "integers": [0, 1],
    "tuples": pd.MultiIndex.from_tuples([("lab", 1), ("lab", 2)]),
    "floats": [0.5, 1.5],
}


@pytest.fixture(params=NAMES)
def named(request, blobs):
    """Private and public rows, and their columns in reverse order."""
    X, y, X_public, _ = blobs
    X = pd.DataFrame(X[:N_ROWS], columns=NAMES[request.param])
    X_public = pd.DataFrame(X_public, columns=NAMES[request.param])
    return X, y[:N_ROWS], X_public, X_public.iloc[:, ::-1]


ANOTHER_ORDER = "Column 0 of {} is named .* instead of .*; pass the columns of fit"


def test_public_columns_in_another_order_are_refused(named):
    X, y, _, reversed_rows = named
    with pytest.raises(ValueError, match=ANOTHER_ORDER.format("X_public")):
        make().fit(X, y, X_public=PublicData(reversed_rows))


def test_columns_to_predict_in_another_order_are_refused(named, tmp_path):
    X, y, X_public, reversed_rows = named
    pate = make(random_state=0).fit(X, y, X_public=PublicData(X_public))
    pate.publish().save(tmp_path / "model.skops")
    loaded = PublishedClassifier.load(tmp_path / "model.skops")
    for model in (pate, pate.publish(), loaded):
        np.testing.assert_array_equal(model.predict(X), pate.predict(X))
        model.predict(X.to_numpy())  # has no names, and so no order of them
        with pytest.raises(ValueError, match=ANOTHER_ORDER.format("X")):
            model.predict(reversed_rows)


def test_columns_in_another_order_are_refused_by_a_linear_classifier(named):
    X, y, _, reversed_rows = named
    learner = DPLogisticRegression(data_norm=10.0).fit(X, y)
    learner.predict(X)
    with pytest.raises(ValueError, match=ANOTHER_ORDER.format("X")):
        learner.predict(reversed_rows)


def test_a_second_fit_replaces_the_column_names(named):
    X, y, X_public, reversed_rows = named
    pate = make().fit(X, y, X_public=PublicData(X_public))
    pate.fit(X.to_numpy(), y, X_public=PublicData(X_public.to_numpy()))
    pate.predict(reversed_rows)


def test_an_arrow_table_that_scikit_learn_does_not_take_is_refused(monkeypatch):
    def refuse(*arguments, **options):
        raise TypeError("Index must either be string or integer")

    monkeypatch.setattr("sklearn_pate._inputs._containers._safe_indexing", refuse)
    table = pa.table({"a": np.arange(N_ROWS)})
    with pytest.raises(ValueError, match=r"^X is an Arrow .* use scikit-learn 1\.7"):
        DPNewtonClassifier(classes=[0, 1], public_size=0.5).fit(table, GROUPS % 2)


# Configured output types of scikit-learn


@pytest.mark.parametrize("output", ["polars", "pandas"])
def test_queries_do_not_depend_on_the_output_type_of_transformers(output, blobs):
    X, y, X_public, _ = blobs
    parameters = {
        "query_strategy": "representative",
        "n_queries": 20,
        "random_state": 0,
    }

    def queried():
        pate = make(estimator=DecisionTreeClassifier(), **parameters)
        return pate.fit(X, y, X_public=PublicData(X_public)).queried_indices_

    plain = queried()
    with config_context(transform_output=output):
        np.testing.assert_array_equal(queried(), plain)
