"""Rows that are scored together have the bits that they have alone, odd rows too."""

import ast
import warnings
from copy import deepcopy
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.utils import _safe_indexing

import sklearn_pate
from sklearn_pate import (
    DPNewtonClassifier,
    PATEClassifier,
    PrivateMarginals,
    PublicData,
)
from sklearn_pate.learners import DPLogisticRegression, DPNaiveBayesClassifier
from sklearn_pate.metrics import private_metrics
from sklearn_pate.students import TableRepresentation
from tests._synthetic.odd_cells import ODD, column_of
from tests.private import _AT_ONCE, keeps_rows_apart, score_rows

pytestmark = [
    pytest.mark.neighbours,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn_pate.PrivacyUtilityWarning"),
]

# More rows than a block, so that rows have other positions in both.
N_ROWS = _AT_ONCE + 300
WORDS = np.array(["red", "green", "blue", None], dtype=object)
NAMES = [f"x{number}" for number in range(11)]
ODD_ROWS = np.arange(40, 40 + 7 * len(ODD), 7)
# Rows between them, and those at both ends of a block.
ORDINARY = [5, 8, _AT_ONCE - 1, _AT_ONCE, N_ROWS - 1]
NUMBERS = [np.nan, np.inf, -np.inf, 1e308, -1e20, 5e-324, 2.0**53 + 2]


def table(n_rows, n_classes, seed=0):
    """Return rows of numbers and words, and labels."""
    rng = np.random.RandomState(seed)
    X = pd.DataFrame(rng.standard_normal((n_rows, len(NAMES))), columns=NAMES)
    X["gaps"] = np.where(rng.uniform(size=n_rows) < 0.2, np.nan, X["x0"])
    X["count"] = rng.poisson(3, n_rows)
    X["is"] = rng.uniform(size=n_rows) < 0.3
    X["word"] = pd.Series(WORDS[rng.randint(0, 4, n_rows)], dtype=object)
    X["kind"] = pd.Categorical(np.array(["a", "b"])[rng.randint(0, 2, n_rows)])
    y = np.digitize(X["x0"] + X["x1"], np.linspace(-1, 1, n_classes - 1))
    return X, y


DOMAIN = dict.fromkeys(NAMES, (-4, 4)) | {
    "gaps": {"range": (-4, 4), "missing": True},
    "count": [*range(10)],
    "is": [False, True],
    "word": [*WORDS],
    "kind": ["a", "b"],
}


def fitted(name, n_classes):
    """Return a classifier, fitted on frames, or on arrays of numbers."""
    X, y = table(4000, n_classes, 1)
    X_public, _ = table(600, n_classes, 2)
    kind, _, container = name.partition(", ")
    if container == "array":
        X, X_public = X[NAMES].to_numpy(), X_public[NAMES].to_numpy()
    if container == "sparse":
        X, X_public = (sp.csr_array(one[NAMES].to_numpy()) for one in (X, X_public))
    learner = {
        "Newton": DPNewtonClassifier(epsilon=8.0),
        "Newton of components": DPNewtonClassifier(
            epsilon=8.0, representation=TableRepresentation(6)
        ),
        "Newton of counts": DPNewtonClassifier(
            epsilon=8.0, synthetic=PrivateMarginals(DOMAIN)
        ),
        "Newton of codes": DPNewtonClassifier(
            epsilon=8.0, codes={"word": [*WORDS], "count": [*range(10)]}
        ),
        "scores": PATEClassifier(
            LogisticRegression() if container else None,
            n_teachers=20,
            mechanism="scores",
            epsilon=8.0,
        ),
        "naive Bayes": DPNaiveBayesClassifier(DOMAIN),
    }[kind].set_params(classes=range(n_classes), random_state=0)
    has_public = kind not in ("Newton of counts", "naive Bayes")
    public = {"X_public": PublicData(X_public)} if has_public else {}
    return learner.fit(X, y, **public)


OF_FRAMES = (
    "Newton",
    "Newton of components",
    "Newton of counts",
    "Newton of codes",
    "naive Bayes",
)
OF_NUMBERS = (
    "Newton, array",
    "Newton of components, array",
    "Newton, sparse",
    "Newton of components, sparse",
    "scores, array",
)


@pytest.fixture(scope="module")
def fits():
    """Return fits by name and number of classes, each made once."""
    made = {}

    def fit(name, n_classes):
        if (name, n_classes) not in made:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made[name, n_classes] = fitted(name, n_classes)
        return made[name, n_classes]

    return fit


def with_values(X, name, values):
    """Put values into a column, each into a row of its own."""
    column = column_of(X[name].tolist())
    for row, value in zip(ODD_ROWS, values, strict=False):
        column[row] = value
    return X.assign(**{name: pd.Series(column, dtype=object)})


def frames(X):
    """Yield frames with odd values by name, and their odd rows."""
    missing = X.assign(x1=X["x1"].where(np.arange(len(X)) % 9 > 0))
    yield "missing", missing, [9]
    yield "float32", X.assign(x2=X["x2"].astype("float32")), []
    numbers = with_values(X, "x3", NUMBERS)
    numbers["x3"] = numbers["x3"].astype(float)
    yield "numbers", numbers, ODD_ROWS[: len(NUMBERS)]
    # The columns have other odd values in the same row.
    odd = with_values(X, "x4", ODD)
    odd = with_values(odd, "word", ODD[13:] + ODD[:13])
    odd = with_values(odd, "count", ODD[::-1])
    yield "odd values", odd, ODD_ROWS
    yield "numbers as text", X.assign(x5=X["x5"].astype(str)), []
    unseen = X.assign(kind=pd.Categorical(["a", "c"] * (len(X) // 2)))
    yield "unseen categories", unseen, []
    whole = X["count"].astype("Int64")
    whole[::5] = pd.NA
    whole[3] = 2**53 + 1
    yield "whole numbers, some missing", X.assign(count=whole), [3, 10]
    plain = X.assign(word=X["word"].astype(object), kind=X["kind"].astype(str))
    yield "polars", pl.from_pandas(plain.assign(x1=missing["x1"])), [9]
    gaps = whole.astype(object).where(whole.notna(), None).tolist()
    of_polars = pl.from_pandas(plain).with_columns(pl.Series("count", gaps))
    yield "polars, some missing", of_polars, [3, 10]


def arrays(X):
    """Yield arrays of numbers by name, and their odd rows."""
    X = X[NAMES].to_numpy()
    for name, values in {
        "finite or missing": [one for one in NUMBERS if not np.isinf(one)],
        "inf": [np.inf, -np.inf],
    }.items():
        odd = X.copy()
        odd[ODD_ROWS[: len(values)], 2] = values
        yield name, odd, ODD_ROWS[: len(values)]
    yield "float32", X.astype("float32"), []
    yield "Fortran order", np.asfortranarray(X), []
    yield "whole numbers", np.rint(3 * X).astype(np.int64), []
    yield "booleans", X > 0, []


def variants(model, X, y):
    """Yield the model as it is fitted, as it is published, and recalibrated."""
    yield "fitted", model
    published = model.publish()
    yield "published", published
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measured = private_metrics(published, X, y, epsilon=20.0)
    yield "recalibrated", measured.recalibrated(published)


def check_bits(model, X, *rows):
    """Compare rows that are scored together with the same rows alone, or shifted.

    Each of `rows` holds indices of rows that are scored in one call.
    """
    assert keeps_rows_apart(model)
    classes = np.asarray(model.classes_)
    together = score_rows(model, X, np.arange(N_ROWS), classes)
    for part in rows:
        for one, whole in zip(
            score_rows(model, X, np.asarray(part), classes), together, strict=True
        ):
            assert_array_equal(one, whole[part])
    return together[1] < 0


def check_plain(model, X):
    """Compare rows with the same rows alone, and with several shifts."""
    every = np.arange(N_ROWS)
    shifted = every[1:], every[::-1], every[3:-50:2]
    return check_bits(model, X, *shifted, *([row] for row in ORDINARY))


def check_odd(model, X, odd_rows):
    """Compare odd rows with the same rows alone, and in a block with others."""
    alone = ([row] for row in (*ORDINARY, *odd_rows))
    return check_bits(model, X, np.arange(N_ROWS)[::-1], *alone)


def held(name, X):
    """Put rows into the container of a fit: a frame, an array, or a sparse array."""
    if name in OF_FRAMES:
        return X
    X = np.asarray(X[NAMES] if isinstance(X, pd.DataFrame) else X)
    return sp.csr_array(X) if name.endswith("sparse") else X


@pytest.mark.parametrize("n_classes", [2, 11])
@pytest.mark.parametrize("name", OF_FRAMES + OF_NUMBERS)
def test_rows(fits, name, n_classes):
    X, y = table(N_ROWS, n_classes)
    X = held(name, X)
    for kind, model in variants(fits(name, n_classes), X, y):
        assert not check_plain(model, X).any(), kind


@pytest.mark.thorough
@pytest.mark.parametrize("name", OF_FRAMES)
def test_odd_frames(fits, name):
    X, _ = table(N_ROWS, 3)
    model = fits(name, 3).publish()
    assert not check_plain(model, X).any()
    for of_frame, frame, odd_rows in frames(X):
        assert not check_odd(model, frame, odd_rows).any(), of_frame


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_odd_numbers(fits, name):
    X, _ = table(N_ROWS, 3)
    model = fits(name, 3).publish()
    assert not check_plain(model, held(name, X)).any()
    for of_array, array, odd_rows in arrays(X):
        failed = check_odd(model, held(name, array), odd_rows)
        # Infinity is refused, and with it no other row.
        expected = odd_rows if of_array == "inf" else []
        assert np.flatnonzero(failed).tolist() == [*expected], of_array


def sizes(model, X, monkeypatch):
    """Return the numbers of rows that a model gets together."""
    found, predict = [], type(model).predict

    def spy(self, X):
        if self is model:
            found.append(X.shape[0])
        return predict(self, X)

    with monkeypatch.context() as patch:
        patch.setattr(type(model), "predict", spy)
        score_rows(model, X, np.arange(20), np.asarray(model.classes_))
    return found


def test_all_classes_that_keep_rows_apart_are_tried():
    tried = {"ScoreFunction", "ReweightedClassifier", "NaiveBayes", "LogOdds"}
    tried |= {"DPNewtonClassifier", "PATEClassifier", "DPNaiveBayesClassifier"}
    tried |= {"PublishedClassifier", "RecalibratedClassifier", "TableRepresentation"}
    tried |= {"CodeLogOdds"}
    found = set()
    for path in Path(sklearn_pate.__file__).parent.rglob("*.py"):
        text = path.read_text()
        if "_keeps_rows_apart" not in text:
            continue
        for one in ast.parse(text).body:
            if isinstance(one, ast.ClassDef) and any(
                ast.unparse(line).startswith("_keeps_rows_apart") for line in one.body
            ):
                found.add(one.name)
    assert found == tried


class Subclass(DPNewtonClassifier):
    """A subclass may compute anything."""


def test_other_models_and_types_are_scored_row_by_row(fits, monkeypatch):
    X, y = table(N_ROWS, 2)
    newton = fits("Newton, array", 2)
    numbers = X[NAMES].to_numpy()
    assert sizes(newton, numbers, monkeypatch) == [20]
    assert sizes(newton.publish(), numbers, monkeypatch) == [20]
    assert sizes(newton, numbers.astype(object), monkeypatch) == 20 * [1]
    subclass = deepcopy(newton)
    subclass.__class__ = Subclass
    X_public = PublicData(table(300, 2, 3)[0][NAMES].to_numpy())
    of_components = DPNewtonClassifier(
        representation=PCA(3, random_state=0), epsilon=8.0, classes=[0, 1]
    ).fit(numbers, y, X_public=X_public)
    linear = DPLogisticRegression(feature_bounds=(-4, 4), classes=[0, 1])
    linear = linear.fit(numbers, y)
    for model in (
        subclass,
        of_components,
        of_components.publish(),
        linear,
        linear.publish(),
        LogisticRegression().fit(numbers, y),
    ):
        assert sizes(model, numbers, monkeypatch) == 20 * [1]


def test_a_row_that_fails_in_a_block_leaves_the_others(fits):
    X, _ = table(N_ROWS, 2)
    odd = X[NAMES].to_numpy().copy()
    odd[[0, 500, N_ROWS - 1], 1] = np.inf
    model = fits("Newton, array", 2)
    scores, predicted = score_rows(model, odd, np.arange(N_ROWS), model.classes_)
    assert np.flatnonzero(predicted < 0).tolist() == [0, 500, N_ROWS - 1]
    assert_array_equal(np.isnan(scores).all(axis=1), predicted < 0)
    good = _safe_indexing(odd, np.flatnonzero(predicted >= 0))
    assert_array_equal(scores[predicted >= 0], model.predict_proba(good))
