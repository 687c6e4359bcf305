"""Rows to predict whose columns are not those of the fit are told of, by name."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from sklearn_pate import PATEClassifier, PublicData, PublishedClassifier
from sklearn_pate.learners import (
    DPLogisticRegression,
    DPNaiveBayesClassifier,
    DPNewtonClassifier,
)
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.metrics import private_metrics
from sklearn_pate.model_selection import PrivateSearchCV
from tests.private import KnownColumns

RNG = np.random.default_rng(0)
N_ROWS = 600
TABLE = pd.DataFrame(
    {
        "bmi": RNG.normal(60, 10, N_ROWS).round(1),
        "smokes": RNG.random(N_ROWS) < 0.4,
        "code": RNG.choice(["01", "02", "03"], N_ROWS),
        "sex": RNG.choice(["F", "M"], N_ROWS),
        "lab": np.where(RNG.random(N_ROWS) < 0.3, np.nan, RNG.normal(size=N_ROWS)),
        "glucose": RNG.uniform(40, 200, N_ROWS),
    }
).astype({"code": object, "sex": object})
Y = (TABLE["bmi"] > 60).astype(int)
PUBLIC, NEW = TABLE[:300].copy(), TABLE[300:].reset_index(drop=True)
DOMAIN = {
    "bmi": (20.0, 120.0),
    "smokes": [False, True],
    "code": ["01", "02", "03"],
    "sex": ["F", "M"],
    "lab": {"range": (-5.0, 5.0), "missing": True},
    "glucose": (40.0, 200.0),
}
COMMAS = [str(one).replace(".", ",") for one in NEW["bmi"]]
ENCODED = make_pipeline(
    make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["code", "sex"]),
        remainder=SimpleImputer(),
    ),
    LogisticRegression(),
)


def changed(column, values):
    return NEW.assign(**{column: pd.Series(values, index=NEW.index)})


# What is in a column, and what the warning says of it.
OTHERS = {
    "decimal commas": (changed("bmi", COMMAS), "another type"),
    "dates for numbers": (changed("bmi", pd.Timestamp("2020-01-01")), "another type"),
    "booleans as text": (changed("smokes", NEW["smokes"].map(str)), "another type"),
    "codes as numbers": (changed("code", NEW["code"].astype(int)), "Categories"),
    "another spelling": (
        changed("sex", NEW["sex"].map({"F": "female", "M": "male"})),
        "Categories",
    ),
    "spaces": (changed("sex", NEW["sex"] + " "), "Categories"),
    "bytes": (changed("sex", NEW["sex"].map(str.encode)), "Categories"),
    "no value": (changed("bmi", np.nan), "No value"),
    "no category": (changed("sex", [None] * len(NEW)), "No value"),
    "a larger unit": (changed("bmi", NEW["bmi"] * 1000), "outside the range"),
    "a smaller unit": (changed("glucose", NEW["glucose"] / 18), "outside the range"),
}
FAMILIAR = {
    "rows of the same kind": NEW,
    "one odd number": changed("bmi", [COMMAS[0], *NEW["bmi"][1:]]),
    "one new category": changed("sex", ["x", *NEW["sex"][1:]]),
    "integers for booleans": changed("smokes", NEW["smokes"].astype(int)),
    "a categorical type": NEW.astype({"sex": "category"}),
    "objects": NEW.astype(object),
    "another order of rows": NEW[::-1],
    "a single row": NEW[:1],
    "a single row without a value": changed("lab", np.nan)[:1],
    "a single row with a new category": changed("sex", "x")[:1],
}


@pytest.fixture(scope="module")
def models():
    votes = PATEClassifier(ENCODED, mechanism=GNMax(1), epsilon=None, classes=[0, 1])
    newton = DPNewtonClassifier(classes=[0, 1], epsilon=5, random_state=0)
    linear = DPLogisticRegression(representation="auto", classes=[0, 1], epsilon=5)
    counts = DPNaiveBayesClassifier(DOMAIN, classes=[0, 1])
    search = PrivateSearchCV(counts, {"epsilon": [1.0]}, mean_n_trials=2)
    public = {"X_public": PublicData(PUBLIC)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "own encoder": votes.fit_from_votes(PUBLIC, 100 * [Y[:300].tolist()]),
            "newton": newton.fit(TABLE, Y, **public),
            "linear": linear.fit(TABLE, Y, **public),
            "counts": counts.fit(TABLE, Y),
            "search": search.fit(TABLE, Y),
        }


NAMES = ["own encoder", "newton", "linear", "counts", "search"]


def told(call, rows):
    """Return the warnings of a prediction that name columns, at a line of this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(rows)
    messages = [str(one.message) for one in caught if one.filename == __file__]
    return [one for one in messages if "columns of X" in one]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("what", OTHERS)
def test_one_warning_names_the_column(models, name, what):
    rows, problem = OTHERS[what]
    (column,) = (one for one in NEW if not rows[one].equals(NEW[one]))
    try:
        (message,) = told(models[name].predict, rows)
    except (TypeError, ValueError):  # of the user's own encoder
        assert name == "own encoder"
        return
    assert problem in message
    assert f"['{column}']" in message


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("what", FAMILIAR)
def test_familiar_rows_are_not_told_of(models, name, what):
    if name == "own encoder" and what == "one odd number":
        return  # its imputer refuses text
    assert told(models[name].predict, FAMILIAR[what]) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_published_model_that_was_saved_warns_equally(models, name, tmp_path):
    path = tmp_path / "model.skops"
    trusted = models[name].publish().save(path)
    loaded = PublishedClassifier.load(path, trusted=trusted)
    rows = OTHERS["another spelling"][0]
    assert told(loaded.predict, rows) == told(models[name].predict, rows) != []


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "predict_log_proba", "decision_function"]
)
def test_each_method_warns_once(models, method):
    rows = OTHERS["decimal commas"][0]
    for name in ("newton", "linear", "counts"):
        assert len(told(getattr(models[name], method), rows)) == 1
        score = partial(models[name].score, y=Y[:300])
        assert len(told(score, rows)) == 1


def test_a_single_row_with_text_for_a_number_is_told_of(models):
    assert told(models["newton"].predict, OTHERS["decimal commas"][0][:1]) != []


def test_a_model_that_reads_text_as_numbers_is_not_told_of_it(models):
    written = changed("bmi", NEW["bmi"].map(str))
    assert told(models["newton"].predict, written) == []
    assert told(models["counts"].predict, written) != []


def test_columns_of_arrays_are_named_by_position():
    X = RNG.normal(size=(400, 3))
    model = DPLogisticRegression(feature_bounds=(-5, 5), classes=[0, 1])
    model.fit(X, X[:, 0] > 0)
    rows = X.astype(object)
    rows[::2, 1] = "4,5"
    (message,) = told(model.predict, rows)
    assert "numbers: [1]." in message


def test_polars_frames_are_read_as_pandas_frames(models):
    for rows, n_told in ((NEW, 0), (OTHERS["another spelling"][0], 1)):
        rows = rows.astype({"code": "str", "sex": "str"})
        assert len(told(models["newton"].predict, pl.from_pandas(rows))) == n_told


def test_rows_are_not_changed():
    rows = np.ones((20, 2))
    public = np.array([["a", 1.0], ["b", 2.0]] * 30, dtype=object)
    assert len(told(KnownColumns.of(public).warn, rows)) == 1
    np.testing.assert_array_equal(rows, 1)


def test_many_columns_are_named_in_short():
    known = KnownColumns.of(RNG.random((50, 30)))
    (message,) = told(known.warn, 9 * np.ones((50, 30)))
    assert "8, 9] and 20 more." in message


def test_ids_of_public_rows_are_not_kept():
    frame = PUBLIC.assign(name=[f"person {one}" for one in range(len(PUBLIC))])
    known = KnownColumns.of(frame)
    assert "person" not in str(known)
    assert told(known.warn, frame.assign(name="somebody else")) == []


def test_a_category_of_one_public_row_is_not_kept():
    wards = ["north", "south", "the ward of one person"]
    ward = np.repeat(wards, [len(PUBLIC) - 3, 2, 1])
    assert KnownColumns.of(PUBLIC[[]].assign(ward=ward)).words == {0: wards[:2]}


def test_measuring_on_private_rows_tells_nothing(models):
    rows, _ = OTHERS["decimal commas"]
    measure = partial(private_metrics, models["newton"], y=Y[300:], epsilon=1)
    assert told(measure, rows) == []


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble, np.uint8, bool, object])
def test_columns_of_any_type_of_number_are_described(dtype):
    rows = np.arange(12).reshape(6, 2).astype(dtype)
    assert KnownColumns.of(rows).kinds == ["number", "number"]
