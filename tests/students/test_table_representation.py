"""Public representation of tables: any column, any private value, finite numbers."""

import datetime
import decimal
import fractions
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from sklearn_pate import PATEClassifier
from sklearn_pate.students import TableRepresentation
from tests.cases import thorough_but

ROWS = 60
ODD_OBJECTS = [
    None,
    np.nan,
    np.inf,
    -np.inf,
    10**400,
    -(10**400),
    1e308,
    pd.NA,
    pd.NaT,
    "never seen",
    "12",
    "",
    b"bytes",
    True,
    3,
    3.5,
    1 + 2j,
    datetime.date(2020, 1, 2),
    decimal.Decimal("NaN"),
    ("a", "tuple"),
]
ODD_NUMBERS = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324]


def table(n_rows=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=n_rows),
            "count": rng.poisson(2, n_rows),
            "skewed": np.where(
                rng.random(n_rows) < 0.8, 0, rng.lognormal(9, 2, n_rows)
            ),
            "text": rng.choice(["a", "b", "c"], n_rows),
            "category": pd.Categorical(rng.choice([10, 20, 30], n_rows)),
            "bool": rng.random(n_rows) < 0.3,
            "date": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(rng.integers(0, 900, n_rows), "D"),
            "missing": rng.choice([np.nan, 1.0, 2.0], n_rows),
            "nullable": pd.array(rng.choice([0, 1, 2], n_rows), dtype="Int64"),
            "objects": rng.choice(np.array([1, 2.5, None], dtype=object), n_rows),
            "holes": rng.choice(np.array(["x", None, "y"], dtype=object), n_rows),
            "empty": np.full(n_rows, np.nan),
            "nothing": np.full(n_rows, None),
            "constant": np.full(n_rows, 7),
        }
    )
    frame.loc[frame.index[::5], "nullable"] = pd.NA
    return frame


@pytest.fixture
def public():
    return table()


def assert_finite(values, n_rows, representation):
    assert isinstance(values, np.ndarray)
    assert values.dtype == np.float64
    assert values.shape == (n_rows, representation.n_components_)
    assert np.isfinite(values).all()


every_form = pytest.mark.parametrize(
    ("n_components", "basis"),
    [("auto", "linear"), (3, "linear"), (None, "linear"), ("auto", "rbf"), (3, "rbf")],
)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@every_form
def test_check_estimator_has_no_failures(n_components, basis):
    results = check_estimator(
        TableRepresentation(n_components, basis, random_state=0),
        on_fail=None,
        on_skip=None,
    )
    failed = [one for one in results if one["status"] not in ("passed", "skipped")]
    assert failed == []


@every_form
def test_a_table_of_every_type_becomes_finite_numbers(public, n_components, basis):
    representation = TableRepresentation(n_components, basis, random_state=0)
    representation.fit(public)
    assert_finite(representation.transform(public), ROWS, representation)
    new = table(30, seed=1)
    assert_finite(representation.transform(new), 30, representation)


@pytest.mark.slow
@pytest.mark.parametrize("column", ["number", "text", "objects", "holes", "nothing"])
@pytest.mark.parametrize("value", ODD_OBJECTS, ids=repr)
def test_no_private_object_raises_or_warns_or_gives_infinity(public, column, value):
    representation = TableRepresentation(random_state=0).fit(public)
    private = table(3, seed=1)
    values = np.empty(3, dtype=object)
    values[:] = private[column]
    values[1] = value
    # As a series of objects, whose type older pandas does not guess.
    private[column] = pd.Series(values, dtype=object)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = representation.transform(private)
    assert_finite(result, 3, representation)


@pytest.mark.parametrize("value", ODD_NUMBERS)
@pytest.mark.parametrize("column", ["number", "count", "skewed", "empty", "constant"])
def test_no_private_number_raises_or_warns_or_gives_infinity(public, column, value):
    representation = TableRepresentation(random_state=0).fit(public)
    private = table(3, seed=1)
    private[column] = [1.0, value, 2.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = representation.transform(private)
    assert_finite(result, 3, representation)


def test_an_odd_value_changes_no_other_row(public):
    representation = TableRepresentation(random_state=0).fit(public)
    private = table(9, seed=1).astype({"number": object, "text": object})
    before = representation.transform(private)
    private.loc[4, ["number", "text"]] = ["word", 3]
    after = representation.transform(private)
    others = np.arange(9) != 4
    np.testing.assert_array_equal(before[others], after[others])
    assert not np.array_equal(before[4], after[4])


def test_a_transformed_row_leaves_nothing_behind(public):
    for rows in (public, sp.csr_array(np.random.RandomState(0).rand(40, 9))):
        representation = TableRepresentation(random_state=0).fit(rows)
        before = pickle.dumps(representation)
        representation.transform(rows[::-1][:7])
        assert pickle.dumps(representation) == before


def test_numbers_beyond_the_public_range_count_as_its_ends(public):
    representation = TableRepresentation(random_state=0).fit(public)
    low, high = table(2, seed=1), table(2, seed=1)
    for column in ("number", "skewed"):
        low[column] = [-1e200, public[column].min()]
        high[column] = [np.inf, public[column].max()]
    for rows in (low, high):
        rows.iloc[1, 1:2] = rows.iloc[0, 1:2]
        for name in set(rows) - {"number", "skewed"}:
            rows[name] = [rows[name].iloc[0]] * 2
        first, second = representation.transform(rows)
        np.testing.assert_allclose(first, second)


def test_public_infinities_are_no_range():
    X = np.array([[0.0], [1.0], [np.inf], [-np.inf], [0.5]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = TableRepresentation(random_state=0).fit_transform(X)
    assert np.isfinite(result).all()
    np.testing.assert_allclose(result[1], result[2])
    np.testing.assert_allclose(result[0], result[3])


@pytest.mark.parametrize("n_rows", [1, 2, 5])
@every_form
def test_a_few_public_rows_suffice(n_rows, n_components, basis):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        representation = TableRepresentation(n_components, basis, random_state=0)
        representation.fit(table(n_rows))
        result = representation.transform(table(9, seed=1))
    assert_finite(result, 9, representation)


def test_frames_of_pandas_and_polars_and_objects_give_the_same():
    frame = table()[["number", "count", "text", "bool", "missing", "holes"]]
    polars = pl.DataFrame(
        {
            name: [None if pd.isna(one) else one for one in frame[name].tolist()]
            for name in frame
        }
    )
    objects = frame.to_numpy(dtype=object)
    expected = TableRepresentation(random_state=0).fit_transform(frame)
    for same in (polars, objects, objects.tolist()):
        result = TableRepresentation(random_state=0).fit_transform(same)
        np.testing.assert_allclose(result, expected, atol=1e-12)


SECONDS = np.random.default_rng(0).integers(0, 86_400, 200)
MEASURED = {
    "times of day": [
        datetime.time(*divmod(one // 60, 60), one % 60) for one in SECONDS.tolist()
    ],
    "durations": [datetime.timedelta(seconds=one) for one in SECONDS.tolist()],
    "numpy durations": [np.timedelta64(one, "s") for one in SECONDS.tolist()],
    "milliseconds": pd.to_timedelta(SECONDS, "ms"),
    "days": [
        datetime.date(1970, 1, 1) + datetime.timedelta(days=one)
        for one in SECONDS.tolist()
    ],
    "numpy days": [np.datetime64(one, "D") for one in SECONDS.tolist()],
    "periods": [pd.Period("1970-01-01", "D") + one for one in SECONDS.tolist()],
    "a type of periods": pd.PeriodIndex.from_ordinals(SECONDS, freq="D"),
    "decimals": [decimal.Decimal(one) for one in SECONDS.tolist()],
    "fractions": [fractions.Fraction(one, 3) for one in SECONDS.tolist()],
}


@pytest.mark.parametrize("kind", MEASURED)
def test_what_is_measured_is_read_as_numbers(kind):
    column = MEASURED[kind]
    if isinstance(column, list):
        column = pd.Series(column, dtype=object)
    encoder = TableRepresentation(random_state=0)
    read = encoder.fit_transform(pd.DataFrame({"a": column}))
    expected = encoder.fit_transform(pd.DataFrame({"a": SECONDS}))
    np.testing.assert_allclose(read, expected, rtol=1e-9)


def test_missing_values_are_one_category():
    words = pd.Series(["x", "y", None, "x"] * 30, dtype=object)
    encoder = TableRepresentation(random_state=0).fit(pd.DataFrame({"a": words}))
    read = [
        encoder.transform(pd.DataFrame({"a": pd.Series([one], dtype=object)}))
        for one in (None, np.nan, pd.NA)
    ]
    np.testing.assert_array_equal(read, [read[0]] * 3)


def test_whole_categories_are_the_same_as_integers_and_floats(public):
    public = public[["category", "text"]]
    representation = TableRepresentation(random_state=0).fit(public)
    as_floats = public.assign(category=public["category"].astype(float))
    np.testing.assert_array_equal(
        representation.transform(public), representation.transform(as_floats)
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8", "bool"])
def test_arrays_of_any_numeric_type_are_taken(dtype):
    X = np.random.default_rng(0).integers(0, 5, (40, 6)).astype(dtype)
    representation = TableRepresentation(random_state=0).fit(X)
    assert_finite(representation.transform(X), 40, representation)


def test_images_are_tables_of_pixels(digits):
    X = digits[0][:200]
    flat = TableRepresentation(random_state=0).fit_transform(X)
    images = TableRepresentation(random_state=0).fit_transform(X.reshape(200, 8, 8))
    np.testing.assert_array_equal(flat, images)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "form", thorough_but([sp.coo_array], [sp.csr_array, sp.csc_matrix, sp.coo_array])
)
def test_wide_sparse_matrices_stay_sparse(form):
    X = sp.random_array((300, 200_000), density=1e-4, random_state=0)
    representation = TableRepresentation(random_state=0).fit(form(X))
    assert_finite(representation.transform(form(X)), 300, representation)
    assert representation.n_components_ == 30


def test_without_components_sparse_columns_stay_sparse():
    X = sp.random_array((50, 30), density=0.2, random_state=0, format="csr")
    result = TableRepresentation(None).fit_transform(X)
    assert sp.issparse(result)
    np.testing.assert_allclose(result.max(axis=0).toarray(), 1)


@pytest.mark.parametrize("value", ODD_NUMBERS)
def test_odd_numbers_of_sparse_matrices_are_finite(value):
    X = sp.random_array((50, 30), density=0.2, random_state=0, format="csr")
    representation = TableRepresentation(random_state=0).fit(X)
    odd = X.copy()
    odd.data[3] = value
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_finite(representation.transform(odd), 50, representation)
    assert np.isfinite(TableRepresentation(random_state=0).fit_transform(odd)).all()


@pytest.mark.parametrize("n_rows", [ROWS, 30_000])
def test_an_integer_seed_repeats_the_fit_and_pickles(n_rows):
    X = table(n_rows)[["number", "text", "skewed"]]
    one = TableRepresentation(random_state=0).fit(X)
    two = pickle.loads(pickle.dumps(TableRepresentation(random_state=0).fit(X)))
    np.testing.assert_array_equal(one.transform(X[:50]), two.transform(X[:50]))


def test_names_of_the_columns_and_of_the_result(public):
    representation = TableRepresentation(2, random_state=0).fit(public)
    assert list(representation.feature_names_in_) == list(public)
    names = ["tablerepresentation0", "tablerepresentation1"]
    assert list(representation.get_feature_names_out()) == names
    framed = representation.set_output(transform="pandas").transform(public)
    assert list(framed) == names
    with pytest.raises(ValueError, match="feature names"):
        representation.transform(public[list(public)[::-1]])


@pytest.mark.parametrize("n_components", [0, 1.5, "all"])
def test_an_invalid_number_of_components_is_refused(public, n_components):
    with pytest.raises(ValueError, match=r"n_components=.* must be a whole number"):
        TableRepresentation(n_components).fit(public)


def test_rare_categories_share_a_column_which_new_ones_join():
    X = pd.DataFrame(
        {"code": ["a"] * 600 + ["b"] * 400 + [f"rare {k}" for k in range(9)]}
    )
    representation = TableRepresentation(None).fit(X)
    assert representation.n_components_ == 3
    new = representation.transform(pd.DataFrame({"code": ["rare 3", "new"]}))
    np.testing.assert_array_equal(new[0], new[1])


@pytest.mark.parametrize("sign", [1, -1])
def test_a_skewed_number_keeps_its_small_values_apart(sign):
    amounts = np.r_[np.zeros(900), np.geomspace(1, 1e6, 100)]
    X = sign * amounts[:, np.newaxis]
    result = TableRepresentation(None).fit_transform(X)[:, 0]
    zero, thousand, million = result[0], result[950], result[-1]
    share = (thousand - zero) / (million - zero)  # 0.001 of the original numbers
    assert 0.05 < share < 0.5


def test_sparse_and_dense_rows_of_one_table_are_the_same():
    X = np.random.default_rng(0).poisson(0.5, (40, 6)).astype(float)
    for public in (X, sp.csr_array(X)):
        representation = TableRepresentation(random_state=0).fit(public)
        np.testing.assert_allclose(
            representation.transform(X),
            representation.transform(sp.csr_array(X)),
            atol=1e-12,
        )


def mean_of_teachers(X, y, X_test, y_test, n_teachers):
    """Accuracy of the mean probabilities of teachers on rows of their own."""
    total = np.zeros(len(y_test))
    for rows in np.array_split(np.arange(len(y)), n_teachers):
        teacher = LogisticRegression(C=3, max_iter=300).fit(X[rows], y[rows])
        total += teacher.predict_proba(X_test)[:, 1]
    return np.mean((total > n_teachers / 2) == y_test)


@pytest.mark.thorough
def test_teachers_of_adult_learn_more_than_on_one_hot_and_scaled_columns(data_set):
    X, y = data_set("adult", as_frame=True, return_X_y=True)
    y = (y == ">50K").to_numpy()
    private, public, held_out = (
        slice(20_000),
        slice(20_000, 25_000),
        slice(25_000, None),
    )
    numbers = make_column_selector(dtype_include="number")
    words = make_column_selector(dtype_exclude="number")
    plain = make_column_transformer(
        (StandardScaler(), numbers),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), words),
    )
    accuracy = {}
    for name, one in {
        "plain": plain,
        "table": TableRepresentation(random_state=0),
    }.items():
        one.fit(X[public])
        accuracy[name] = mean_of_teachers(
            one.transform(X[private]),
            y[private],
            one.transform(X[held_out]),
            y[held_out],
            n_teachers=400,
        )
    assert accuracy["table"] > accuracy["plain"] + 0.003


@pytest.mark.thorough
def test_a_table_with_text_needs_no_encoder_of_the_user(data_set):
    X, y = data_set("adult", as_frame=True, return_X_y=True)
    model = PATEClassifier(
        LogisticRegression(C=3, max_iter=300),
        representation=TableRepresentation(random_state=0),
        student=make_pipeline(
            TableRepresentation(random_state=0), LogisticRegression()
        ),
        n_teachers=100,
        n_queries=500,
        epsilon=4,
    ).fit(X[:20_000], y[:20_000], X_public=X[20_000:25_000])
    assert model.score(X[25_000:], y[25_000:]) > 0.82


def test_a_single_sparse_column_that_varies_is_its_own_component():
    X = sp.csr_array([[0.0, 1.0], [0.0, 0.0], [0.0, 3.0]])
    represented = TableRepresentation().fit(X).transform(X)
    assert represented.shape == (3, 1)
    assert represented[2, 0] > represented[0, 0] > represented[1, 0] == 0


def test_curved_components_are_uncorrelated_and_smaller_one_by_one():
    X = np.random.RandomState(0).standard_normal((800, 5))
    components = TableRepresentation(basis="rbf", random_state=0).fit_transform(X)
    assert components.shape == (800, 80)
    covariance = components.T @ components / 800
    np.testing.assert_allclose(covariance, np.diag(1 / np.arange(1.0, 81)), atol=1e-8)


@pytest.mark.parametrize(
    "parameters", [{"basis": "curved"}, {"basis": "rbf", "n_components": None}]
)
def test_a_basis_that_cannot_be_used_is_refused(parameters):
    with pytest.raises(
        ValueError, match=r"basis='curved' is unknown|n_components=None"
    ):
        TableRepresentation(**parameters).fit(np.eye(3))


@pytest.mark.parametrize("basis", ["linear", "rbf"])
def test_the_share_of_variance_that_components_keep_is_known(basis):
    X = np.random.RandomState(0).standard_normal((800, 40))
    one = TableRepresentation(10, basis, random_state=0).fit(X)
    assert one.kept_variance_ == pytest.approx(0.31, abs=0.02)
    assert TableRepresentation(None).fit(X).kept_variance_ == 1


def test_the_share_of_rows_with_a_category_without_a_column_is_known():
    codes = np.repeat(np.arange(60), 20).astype(str)
    X = pd.DataFrame({"number": np.arange(1200), "code": codes, "sex": "F"})
    found = TableRepresentation(random_state=0).fit(X).rare_shares_
    assert found == {1: pytest.approx(11 / 60)}
