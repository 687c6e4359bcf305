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


def with_odd_values(X, name, values):
    """Put values into a column, each into a row of its own."""
    column = column_of(X[name].tolist())
    for row, value in zip(ODD_ROWS, values, strict=False):
        column[row] = value
    return X.assign(**{name: pd.Series(column, dtype=object)})


def frames(X):
    """Yield frames with odd values, by name."""
    yield "plain", X
    missing = X.assign(x1=X["x1"].where(np.arange(len(X)) % 9 > 0))
    yield "missing", missing
    yield "float32", X.assign(x2=X["x2"].astype("float32"))
    for value in NUMBERS:
        yield f"{value}", X.assign(x3=X["x3"].where(X.index != 8, value))
    yield "odd objects", with_odd_values(X, "x4", ODD)
    yield "odd words", with_odd_values(X, "word", ODD)
    yield "odd counts", with_odd_values(X, "count", ODD)
    yield "numbers as text", X.assign(x5=X["x5"].astype(str))
    yield "unseen categories", X.assign(kind=pd.Categorical(["a", "c"] * (len(X) // 2)))
    whole = X["count"].astype("Int64")
    whole[::5] = pd.NA
    whole[3] = 2**53 + 1
    yield "whole numbers, some missing", X.assign(count=whole)
    plain = X.assign(word=X["word"].astype(object), kind=X["kind"].astype(str))
    yield "polars", pl.from_pandas(plain.assign(x1=missing["x1"]))
    gaps = whole.astype(object).where(whole.notna(), None).tolist()
    of_polars = pl.from_pandas(plain).with_columns(pl.Series("count", gaps))
    yield "polars, some missing", of_polars


def arrays(X):
    """Yield arrays of numbers, and sparse ones, with odd values, by name."""
    X = X[NAMES].to_numpy()
    for value in NUMBERS:
        odd = X.copy()
        odd[ODD_ROWS[:3], 2] = value
        yield f"{value}", odd
    yield "float32", X.astype("float32")
    yield "Fortran order", np.asfortranarray(X)
    yield "whole numbers", np.rint(3 * X).astype(np.int64)
    yield "booleans", X > 0


def variants(model, X, y):
    """Yield the model as it is fitted, as it is published, and recalibrated."""
    yield "fitted", model
    published = model.publish()
    yield "published", published
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measured = private_metrics(published, X, y, epsilon=20.0)
    yield "recalibrated", measured.recalibrated(published)


def check_bits(model, X):
    """Compare rows that are scored together with the same rows alone, or shifted."""
    assert keeps_rows_apart(model)
    classes, every = np.asarray(model.classes_), np.arange(N_ROWS)
    together = score_rows(model, X, every, classes)
    alone = [5, 7, 8, 9, *ODD_ROWS, _AT_ONCE - 1, _AT_ONCE, N_ROWS - 1]
    for row in alone:
        for one, whole in zip(
            score_rows(model, X, np.array([row]), classes), together, strict=True
        ):
            assert_array_equal(one[0], whole[row])
    for rows in (every[1:], every[::-1], every[3:-50:2]):
        for part, whole in zip(
            score_rows(model, X, rows, classes), together, strict=True
        ):
            assert_array_equal(part, whole[rows])
    return together[1] < 0


@pytest.mark.parametrize("n_classes", [2, 3, 11])
@pytest.mark.parametrize("name", OF_FRAMES)
def test_frames(fits, name, n_classes):
    X, y = table(N_ROWS, n_classes)
    for kind, model in variants(fits(name, n_classes), X, y):
        odd = frames(X) if (kind, n_classes) == ("published", 3) else [("plain", X)]
        for of_frame, frame in odd:
            assert not check_bits(model, frame).any(), (kind, of_frame)


@pytest.mark.parametrize("n_classes", [2, 3, 11])
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_numbers(fits, name, n_classes):
    X, y = table(N_ROWS, n_classes)
    held = sp.csr_array if name.endswith("sparse") else np.asarray
    plain = held(X[NAMES].to_numpy())
    for kind, model in variants(fits(name, n_classes), plain, y):
        is_whole = (kind, n_classes) == ("published", 3)
        odd = arrays(X) if is_whole else [("plain", X[NAMES].to_numpy())]
        for of_array, array in odd:
            failed = check_bits(model, held(array))
            # Infinity is refused, and with it no other row.
            expected = ODD_ROWS[:3] if "inf" in of_array else []
            assert np.flatnonzero(failed).tolist() == [*expected], (kind, of_array)


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
        for one in ast.parse(path.read_text()).body:
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
