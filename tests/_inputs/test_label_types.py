"""Labels that are declared to be of a type that no class has."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from sklearn_pate import (
    DPNewtonClassifier,
    PATEClassifier,
    PrivacyLedger,
    PublicData,
    Votes,
)
from sklearn_pate.distributed import cast_votes
from sklearn_pate.inspection import plan
from sklearn_pate.learners import (
    DPLogisticRegression,
    DPNaiveBayesClassifier,
    PETDLClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.metrics import private_metrics
from sklearn_pate.model_selection import PrivateSearchCV, fit_and_measure
from tests.private import check_label_type

X = np.random.default_rng(0).uniform(size=(300, 2))
Y = np.arange(300) % 2
PUBLIC = PublicData(np.random.default_rng(1).uniform(size=(60, 2)))
LINEAR = partial(DPLogisticRegression, data_norm=2.0)

# What calls with labels and a ledger do, under the classes 0 and 1.
ENTRANCES = {
    "PATE": lambda y, ledger: PATEClassifier(
        LogisticRegression(), n_teachers=20, classes=[0, 1], ledger=ledger
    ).fit(X, y, X_public=PUBLIC),
    "a plan": lambda y, ledger: plan(
        PATEClassifier(LogisticRegression(), n_teachers=20, classes=[0, 1]),
        X,
        y,
        X_public=PUBLIC,
    ),
    "Newton": lambda y, ledger: DPNewtonClassifier(classes=[0, 1], ledger=ledger).fit(
        X, y, X_public=PUBLIC
    ),
    "a linear learner": lambda y, ledger: LINEAR(classes=[0, 1], ledger=ledger).fit(
        X, y
    ),
    "naive Bayes": lambda y, ledger: DPNaiveBayesClassifier(
        (0, 1), classes=[0, 1], ledger=ledger
    ).fit(X, y),
    "Private-kNN": lambda y, ledger: PrivateKNNClassifier(
        classes=[0, 1], ledger=ledger
    ).fit(X, y, X_public=PUBLIC),
    "PETDL": lambda y, ledger: PETDLClassifier(
        LogisticRegression(), n_teachers=20, classes=[0, 1], ledger=ledger
    ).fit(X, y, X_public=PUBLIC),
    "a search": lambda y, ledger: PrivateSearchCV(
        LINEAR(classes=[0, 1]), {"C": [1.0]}, classes=[0, 1], ledger=ledger
    ).fit(X, y),
    "metrics": lambda y, ledger: private_metrics(
        LogisticRegression().fit(X, Y), X, y, epsilon=1.0, ledger=ledger
    ),
    "fit and metrics": lambda y, ledger: fit_and_measure(
        LINEAR(classes=[0, 1]), X, y, ledger=ledger
    ),
    "votes of a shard": lambda y, ledger: cast_votes(
        LogisticRegression(), X, y, PUBLIC, classes=[0, 1], shard=0
    ),
    "votes of parties": lambda y, ledger: Votes.from_labels([y], [0, 1]),
    "a fit on votes": lambda y, ledger: PATEClassifier(
        LogisticRegression(), classes=[0, 1], ledger=ledger
    ).fit_from_votes(PublicData(X), [Y] * 30 + [y]),
}

TEXT = ["a", "b"]
# Labels whose declared type no number has, and those that no text has.
NO_NUMBERS = {
    "numpy": np.array(TEXT),
    "numpy, variable width": np.array(TEXT, dtype=np.dtypes.StringDType()),
    "numpy, dates": np.array(["2020-01-01"], dtype="datetime64[D]"),
    "pandas": pd.Series(TEXT, dtype="string"),
    "pandas, categories": pd.Series(pd.Categorical(pd.Series(TEXT, dtype="string"))),
    "pandas, arrow": pd.Series(TEXT, dtype="string[pyarrow]"),
    "pandas, dates": pd.Series(pd.to_datetime(["2020-01-01"])),
    "pandas, a table": pd.DataFrame({"y": pd.Series(TEXT, dtype="string")}),
    "polars": pl.Series(TEXT),
    "polars, categories": pl.Series(TEXT, dtype=pl.Categorical),
    "polars, an enumeration": pl.Series(TEXT, dtype=pl.Enum(TEXT)),
    "polars, a table": pl.DataFrame({"y": TEXT}),
    "arrow": pa.chunked_array([TEXT]),
    "arrow, dictionary": pa.array(TEXT).dictionary_encode(),
}
NO_TEXT = {
    "numpy": np.array([0, 1]),
    "numpy, bool": np.array([True]),
    "pandas, missing": pd.Series([0, None], dtype="Int64"),
    "pandas, categories": pd.Series([0, 1], dtype="category"),
    "polars": pl.Series([0.5]),
    "arrow": pa.array([0, 1]),
    "torch": torch.tensor([0, 1]),
}
NUMBERS, WORDS = np.array([0, 1]), np.array(TEXT)


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_labels_that_no_class_can_have_are_refused_before_a_charge(entrance, tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=9, delta=1e-4)
    with pytest.raises(
        ValueError, match=r"can be in classes=\[0, 1\], as .* text; give"
    ):
        ENTRANCES[entrance](pd.Series(Y.astype(str), dtype="string"), ledger)
    assert ledger.entries() == []


@pytest.mark.parametrize(
    ("labels", "classes"),
    [(one, NUMBERS) for one in NO_NUMBERS.values()]
    + [(one, WORDS) for one in NO_TEXT.values()]
    + [
        (np.array([True]), np.array([2, 3])),
        (np.array([1]), np.array([0.5, 1.5])),
    ],
)
def test_a_declared_type_is_compared_with_the_classes(labels, classes):
    with pytest.raises(ValueError, match="No label of y can be in classes="):
        check_label_type(labels, classes)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [(one, WORDS) for name, one in NO_NUMBERS.items() if "dates" not in name]
    + [(one, NUMBERS) for one in NO_TEXT.values()]
    + [
        (np.array([0.0, 1.0]), np.array([False, True])),
        (np.array([True]), np.array([0.0, 1.0])),
    ],
)
def test_equal_labels_of_other_types_match(labels, classes):
    check_label_type(labels, classes)


@pytest.mark.parametrize(
    "labels",
    [
        TEXT,
        np.array(TEXT, dtype=object),
        pd.Series(TEXT, dtype=object),
        pl.Series(TEXT, dtype=pl.Object),
        pl.Series([None, None]),
    ],
)
def test_values_of_labels_without_a_declared_type_decide_nothing(labels):
    check_label_type(labels, NUMBERS)
    check_label_type(labels, WORDS)
