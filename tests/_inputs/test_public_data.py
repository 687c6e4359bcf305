"""Public rows under cross-validation: whole with the wrapper, cut without it."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from sklearn_pate import (
    DPNewtonClassifier,
    PATEClassifier,
    PublicData,
    PublicDataWarning,
)
from sklearn_pate.learners import PETDLClassifier, PrivateKNNClassifier
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.model_selection import PrivateSearchCV


@pytest.fixture
def pate():
    return PATEClassifier(
        LogisticRegression(),
        n_teachers=10,
        mechanism=GNMax(sigma=1.0),
        epsilon=None,
        n_queries=20,
        random_state=0,
    )


@pytest.fixture
def as_many_public_as_private_rows(blobs):
    X, y, X_public, _ = blobs
    return X[:300], np.array(["a", "b", "c"])[y[:300]], X_public


def test_wrapped_rows_as_many_as_x_warn_of_a_copy_unless_groups_are_the_unit(pate):
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    pate.set_params(n_teachers=4)
    with pytest.warns(PublicDataWarning, match="a copy of X"):
        pate.fit(X, y, X_public=PublicData(X.copy()))
    # Their number of rows is not public.
    pate.set_params(privacy_unit="group")
    with warnings.catch_warnings(action="error"):
        pate.fit(X, y, X_public=PublicData(X.copy()), groups=np.arange(40))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, PublicData])
def test_copies_share_the_rows(duplicate):
    public = PublicData(np.zeros((5, 2)))
    assert duplicate(public).X is public.X


def test_it_can_be_sent_to_worker_processes():
    public = pickle.loads(pickle.dumps(PublicData(np.arange(6).reshape(3, 2))))
    assert public.X.shape == (3, 2)


def test_labels_of_public_rows_are_refused_with_the_reason():
    with pytest.raises(TypeError, match="PublicData takes rows only: no label of a"):
        PublicData([[0.0], [1.0]], [0, 1])


def test_it_shows_the_shape_of_its_rows():
    public = PublicData(np.zeros((5, 2)))
    assert repr(public) == "PublicData(<ndarray of shape (5, 2)>)"


def test_cloning_pate_copies_no_fitted_attributes(pate):
    copied = clone(pate)
    assert copied.mechanism is not pate.mechanism
    assert copied.mechanism.sigma == 1.0


# Columns of one type

AGES = np.arange(20.0, 60.0)
WORDS = ["some", "many"] * 20


def pandas_or_polars(values, library, **dtype):
    if library == "pandas":
        return pd.DataFrame({"height": AGES, "age": pd.Series(values, **dtype)})
    # polars uses the memory of an array.
    height, values = np.copy(AGES), np.copy(values)
    return pl.DataFrame({"height": height, "age": pl.Series(values, **dtype)})


def check_types(values, public_values, library="pandas"):
    """Plan a fit, which checks its data, on one frame for each."""
    frames = [
        one if hasattr(one, "columns") else pandas_or_polars(one, library)
        for one in (values, public_values)
    ]
    pate = PATEClassifier(
        n_teachers=2, mechanism=GNMax(sigma=1.0), epsilon=None, delta=1e-3
    )
    pate.plan_privacy(frames[0], np.arange(40) % 2, X_public=PublicData(frames[1]))


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_column_of_numbers_and_text_is_refused_by_name(library, swapped):
    pair = [AGES, WORDS][:: -1 if swapped else 1]
    numeric, text = ("X_public", "X") if swapped else ("X", "X_public")
    with pytest.raises(
        ValueError, match=f"Column 'age' is numeric in {numeric}, but in {text}"
    ):
        check_types(*pair, library=library)


@pytest.mark.parametrize(
    "dtype", ["object", "string", "category", "Int64", "Float32", "boolean"]
)
def test_pandas_extension_types_are_numbers_or_text(dtype):
    is_text = dtype in ("object", "string", "category")
    values = [*(WORDS if is_text else [0, 1] * 20)[:-1], None]
    column = pandas_or_polars(values, "pandas", dtype=dtype)
    with pytest.raises(ValueError, match="Column 'age' is numeric in X, "):
        check_types(*((AGES, column) if is_text else (column, WORDS)))


def test_numbers_beside_codes_with_leading_zeros_are_refused():
    with pytest.raises(ValueError, match=r"'age' is numeric in X, .* leading zeros"):
        check_types(AGES, ["07", "10"] * 20)


DAYS = pd.Series(pd.date_range("2020-01-01", periods=40))


@pytest.mark.parametrize("is_public", [True, False])
@pytest.mark.parametrize("other", [DAYS.astype(str), np.arange(40)], ids=["text", "1"])
def test_dates_beside_text_or_numbers_are_refused(other, is_public):
    columns = [pandas_or_polars(one, "pandas") for one in (DAYS, other)]
    with pytest.raises(ValueError, match="Column 'age' has dates or durations in X"):
        check_types(*(reversed(columns) if is_public else columns))


def test_dates_of_other_types_are_accepted():
    check_types(DAYS, DAYS.dt.date)
    check_types(DAYS.dt.date, DAYS)


@pytest.mark.parametrize(
    ("dtype", "public_dtype"),
    [
        ("int64", "float64"),
        ("int64", "Int64"),
        ("float64", "object"),
        ("bool", "int8"),
        ("int64", "category"),  # of numbers
        ("int64", "str"),  # numbers, written as text
    ],
)
def test_numbers_of_other_types_are_accepted(dtype, public_dtype):
    values = [0, 1] * 20
    check_types(
        pandas_or_polars(values, "pandas", dtype=dtype),
        pd.DataFrame({"height": AGES, "age": pd.Series(values).astype(public_dtype)}),
    )


@pytest.mark.parametrize("public_dtype", ["object", "string", "category"])
def test_text_of_other_types_is_accepted(public_dtype):
    public = pandas_or_polars(WORDS, "pandas", dtype=public_dtype)
    check_types(WORDS, public)
    check_types(public, WORDS)


def test_polars_types_are_accepted():
    for one, other in [(pl.Int8, pl.Float64), (pl.Boolean, pl.Int64)]:
        frames = [
            pandas_or_polars([0, 1] * 20, "polars").with_columns(pl.col("age").cast(t))
            for t in (one, other)
        ]
        check_types(*frames)
    check_types(
        pandas_or_polars(WORDS, "polars"),
        pandas_or_polars(WORDS, "polars", dtype=pl.Categorical),
    )


def test_a_public_column_without_a_value_is_accepted():
    check_types(WORDS, np.full(40, np.nan))  # as a file without values is read


def test_a_teacher_trained_on_numbers_predicts_numbers_in_text(pate):
    frame = pandas_or_polars(np.arange(40), "pandas")
    written = frame.copy().assign(age=frame["age"].astype(str))
    pate.set_params(n_teachers=4)
    with pytest.warns(PublicDataWarning, match="numbers stored as text"):
        pate.fit(frame, np.arange(40) % 2, X_public=PublicData(written))
    assert pate.privacy_analysis_.teacher_failures == []


@pytest.mark.parametrize(
    "learner",
    [
        PATEClassifier(),
        PETDLClassifier(),
        PrivateKNNClassifier(),
        DPNewtonClassifier(),
        PrivateSearchCV(PATEClassifier(), {}),
    ],
    ids=lambda learner: type(learner).__name__,
)
@pytest.mark.parametrize("method", ["fit", "plan_privacy"])
def test_public_rows_by_position_are_refused_with_their_name(learner, method, blobs):
    with pytest.raises(TypeError, match=rf"write {method}\(X, y, X_public=PublicD"):
        getattr(learner, method)(*blobs[:3])
