"""Wrong domains, one a line."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from sklearn_pate import PrivateMarginals
from tests.private import count_tables

AGES = pd.Series([20, 30, 40], name="age")
FRAME = pd.DataFrame(
    {"age": AGES, "job": ["a", "b", "c"], "kind": pd.Categorical(["u", "v", "u"])}
)
DECLARED = {"age": (17, 90), "job": ["a", "b"]}
WRONG = {
    # the declaration of the column "age", and the message
    "array": (AGES.to_numpy(), r"domain\['age'\] is of type ndarray; pass a list of all values"),
    "set": ({20, 30}, r"domain\['age'\] is of type set; pass a list"),
    "Series": (AGES, r"domain\['age'\] is of type Series; pass a list"),
    "Index": (pd.Index([20]), r"domain\['age'\] is of type Index; pass a list"),
    "scalar": (20, r"domain\['age'\] is of type int; pass a list"),
    "text": ("17-90", r"domain\['age'\] is of type str; pass a list"),
    "array in a dict": ({"values": AGES.to_numpy()}, r"domain\['age'\] is of type ndarray; pass a list"),
    "low is high": ((5, 5), r"domain\['age'\]=\(5, 5\) must have low < high"),
    "low above high": ((5, 3), r"must have low < high"),
    "edges fall": ((0, 5, 3), r"domain\['age'\]=\(0, 5, 3\) must have edges that increase"),
    "NaN": ((0, np.nan), r"domain\['age'\]=\(0, nan\) must hold finite numbers alone, not nan"),
    "infinity": ((0, np.inf), r"must hold finite numbers alone, not inf"),
    "beyond floats": ((0, 10**400), r"must hold finite numbers alone, not 1000"),
    "text as a bound": ((0, "9"), r"must hold finite numbers alone, not '9'"),
    "bool as a bound": ((False, 9), r"must hold finite numbers alone, not False"),
    "one bound": ((3,), r"domain\['age'\]=\(3,\) must be \(low, high\), or edges"),
    "three bounds": ({"range": [0, 1, 2]}, r"domain\['age'\] has range=\[0, 1, 2\]; it must be \(low, high\)"),
    "empty list": ([], r"domain\['age'\]=\[\] lists no value; list"),
    "missing alone": ([None], r"domain\['age'\]=\[None\] lists no value; list"),
    "repeated": ([1, 2, 1.0], r"domain\['age'\] has the value 1 twice; list it once"),
    "text in a list": (["a"], r"domain\['age'\].* has 'a', which a column of type int64 cannot hold; declare values with the type"),
    "list in a list": ([[1]], r"domain\['age'\] has the value \[1\] of type list, which cannot be counted; use numbers, text"),
    "date": ([np.datetime64("2020-01-01")], r"of type datetime64, which cannot be counted; use numbers"),
    "too many": ([*range(10_001)], r"domain\['age'\] has 10001 values or bins, more than 10000; declare fewer"),
    "range as a list": ([18, 110], r"domain\['age'\]=\[18, 110\] lists two values only\. For a range, write \(18, 110\), in JSON \{\"range\": \[18, 110\]\}"),
    "text beside bools": ([True, False, ""], r"has text beside numbers or bools.*None for a missing one"),
    "missing": ({"range": (0, 9), "missing": True}, r"domain\['age'\].* has missing values, which a column of type int64 cannot hold"),
    "None": ([1, None], r"domain\['age'\].* has missing values, which a column of type int64"),
    "missing is 1": ({"range": (0, 9), "missing": 1}, r"domain\['age'\] has missing=1; it must be True or False"),
    "two keys": ({"values": [1], "range": (0, 9)}, r"must have one of the keys 'values', 'range' and 'edges'"),
    "unknown key": ({"range": (0, 9), "mising": True}, r"must have one of the keys 'values'"),
    "empty dict": ({}, r"must have one of the keys 'values'"),
    "fraction in a list": ([1, 1.5], r"domain\['age'\].* has 1.5, which a column of type int64 cannot hold"),
    "fraction as a bound": ((0.5, 3), r"domain\['age'\]=\(0.5, 3\) must hold whole numbers, as the column does"),
}  # fmt: skip
DATES = pd.DataFrame({"age": pd.date_range("2000-01-01", periods=3)})
WRONG_DOMAINS = {
    # the domain, the rows, and the message
    "an array": (AGES.to_numpy(), FRAME, r"domain is of type ndarray; pass a dict by column"),
    "a frame": (FRAME, FRAME, r"domain is of type DataFrame; pass a dict by column"),
    "unknown column": (DECLARED | {"agee": (0, 9)}, FRAME, r"domain declares \['agee'\], which are not columns of X; use only the columns \['age', 'job', 'kind'\]"),
    "column without a declaration": ({"age": (0, 9)}, FRAME, r"domain lacks 1 of 3 columns\. .*\{'job': \[values\]\}"),
    "names for an array": ({"age": (0, 9)}, np.eye(3), r"domain declares \['age'\].* the columns \[0, 1, 2\]"),
    "other category": (DECLARED | {"kind": ["u", "w"]}, FRAME, r"domain\['kind'\].* has 'w', which a column of type category cannot hold"),
    "bounds of categories": (DECLARED | {"kind": (0, 1)}, FRAME, r"domain\['kind'\].* has 0.0\d*, which a column of type category"),
    "bounds of text": (DECLARED | {"job": (0, 1)}, FRAME.astype({"job": "string"}), r"domain\['job'\].* has 0.0\d*, which a column of type str"),
    "number in text": (DECLARED | {"job": [1]}, FRAME.astype({"job": "string"}), r"domain\['job'\].* has 1, which a column of type string cannot hold"),
    "bounds of bools": ((0, 1), np.ones((3, 2), bool), r"domain\[0\].* has 0.0\d*, which a column of type bool"),
    "missing bool": ([False, True, None], np.ones((3, 2), bool), r"domain\[0\].* has missing values, which a column of type bool"),
    "missing text": (["a", None], np.array([["a", "b"]]), r"domain\[0\].* has missing values, which a column of type <U1"),
    "beyond the type": ([1, 2, 300], np.ones((3, 2), np.uint8), r"domain\[0\].* has 300, which a column of type uint8"),
    "bounds beyond a type of polars": ({"a": (0, 300)}, pl.DataFrame({"a": [1]}, schema={"a": pl.Int8}), r"domain\['a'\].* has \d+, which a column of type Int8"),
    "bounds beyond a type of pandas": ({"a": (0, 300)}, pd.DataFrame({"a": np.ones(3, np.int8)}), r"domain\['a'\].* has \d+, which a column of type int8"),
    "bounds beyond float16": ((0, 1e6), np.ones((3, 2), np.float16), r"domain\[0\].* has \d+.\d+, which a column of type float16"),
    "one value in all columns": ({0: [3], 1: [4]}, np.eye(2), r"has one value for each column, .* declare a column"),
    "no category": ({}, pd.DataFrame({"c": pd.Categorical([None])}), r"domain\['c'\]=\[\] lists no value; list"),
    "intervals": ({}, pd.cut(AGES, [0, 30, 50]).to_frame(), r"domain\['age'\] has the value Interval.* use numbers, text"),
    "many categories": ({}, pd.DataFrame({"c": pd.Categorical([1], range(10_001))}), r"domain\['c'\] has 10001 values or bins"),
    "sparse": ((0, 1), sp.csr_array(np.eye(3)), r"X is a sparse matrix; pass a dense table, or public rows as X_public"),
    "images": ((0, 1), np.ones((3, 2, 2)), r"X is of shape \(3, 2, 2\); pass a dense table"),
    "dates": ({"age": (0, 1)}, DATES, r"Column 'age' of X is of type datetime64.* convert it to numbers or text"),
    "dates of polars": ({"age": (0, 1)}, pl.DataFrame({"age": DATES["age"].to_list()}), r"Column 'age' of X is of type datetime64.* convert it to numbers"),
    "bytes": (["a"], np.array([[b"a", b"b"]]), r"Column 0 of X is of type \|S1, .* convert it to numbers or text"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_declaration_of_a_column_is_refused(name):
    declared, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        PrivateMarginals(DECLARED | {"age": declared})._read(FRAME)


@pytest.mark.parametrize("name", WRONG_DOMAINS)
def test_a_wrong_domain_is_refused(name):
    domain, X, message = WRONG_DOMAINS[name]
    with pytest.raises(ValueError, match=message):
        PrivateMarginals(domain)._read(X)


@pytest.mark.parametrize("declared", [{"a": [1]}, {"a": [2], "b": ["x"]}, {}])
def test_a_domain_without_rows_needs_a_column_with_two_values(declared):
    with pytest.raises(ValueError, match=r"^domain="):
        count_tables(declared)
