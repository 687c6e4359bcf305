"""Neighbouring data sets, bit by bit, whatever computes products of matrices.

A row of a product may have other last bits in another position, which depends on the
kernel: `make test-kernels` runs these tests, and others that carry their marker, once
for each. A kernel decides by position alone for few rows, so that many are compared.
"""

import ast
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info

import sklearn_pate
from sklearn_pate import DPNewtonClassifier, PATEClassifier, PublicData
from sklearn_pate.students import ImageRepresentation, TableRepresentation
from tests.private import (
    CodeLogOdds,
    DirectionScores,
    LogOdds,
    Marginals,
    RepresentedRows,
    ScoreBasis,
    Step,
    StoredSums,
    _representations,
    count_cells,
    read_domain,
)

pytestmark = [pytest.mark.neighbours, pytest.mark.slow]

N_PUBLIC, N_ROWS, N_COLUMNS = 200, 402, 36


def test_the_kernel_and_the_threads_are_those_asked_for():
    wanted = os.environ.get("OPENBLAS_CORETYPE")
    wanted_threads = os.environ.get("OPENBLAS_NUM_THREADS")
    if wanted is None or wanted_threads is None:
        pytest.skip("no kernel or no number of threads was asked for")
    libraries = [one for one in threadpool_info() if one["user_api"] == "blas"]
    kernels = {one["architecture"] for one in libraries}
    assert kernels == {wanted}
    n_threads = {one["num_threads"] for one in libraries}
    assert n_threads == {min(int(wanted_threads), len(os.sched_getaffinity(0)))}


# Transformers


def transformers():
    """Return the docstrings of `transform` of all transformers, without imports."""
    found = {}
    for path in Path(sklearn_pate.__file__).parent.rglob("*.py"):
        text = path.read_text()
        for one in ast.parse(text).body if "TransformerMixin" in text else ():
            if isinstance(one, ast.ClassDef) and "TransformerMixin" in map(
                ast.unparse, one.bases
            ):
                [transform] = [
                    part
                    for part in one.body
                    if isinstance(part, ast.FunctionDef) and part.name == "transform"
                ]
                found[one.name] = " ".join(ast.get_docstring(transform).split())
    return found


def test_a_transformer_computes_each_row_on_its_own_or_says_that_it_does_not():
    says = {name: "last bit" in text for name, text in transformers().items()}
    depends = {
        name: "depend on its position" in t for name, t in transformers().items()
    }
    assert all(says.values())
    assert depends == {
        "TableRepresentation": False,
        "LogOdds": False,
        "CodeLogOdds": False,
        "ScoreBasis": False,
        "ImageRepresentation": True,
        "ContrastiveEncoder": True,
    }


def table(n_rows, n_columns=N_COLUMNS):
    X = np.random.RandomState(n_columns).standard_normal((n_rows, n_columns))
    X[:, 0] = np.exp(3 * X[:, 0])  # skewed
    return X


def frame(X):
    words = np.array(["red", "green", None], dtype=object)
    return (
        pd.DataFrame(X)
        .add_prefix("column")
        .assign(
            word=words[(X[:, 0] > 1) + (X[:, 0] > 9).astype(int)],
            gaps=np.where(X[:, 1] > 0, X[:, 1], np.nan),
        )
    )


CONTAINERS = {
    "array": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "Fortran order": np.asfortranarray,
    "objects": lambda X: X.astype(object),
    "frame": frame,
    "sparse": sp.csr_array,
}


@pytest.mark.parametrize("n_components", ["auto", 7, None])
@pytest.mark.parametrize("kind", CONTAINERS)
def test_a_row_of_a_table_is_the_same_in_any_position(kind, n_components):
    for n_columns in (5, N_COLUMNS):
        X = CONTAINERS[kind](table(N_PUBLIC + N_ROWS, n_columns))
        rows = X.iloc.__getitem__ if kind == "frame" else X.__getitem__
        fitted = TableRepresentation(n_components, random_state=0)
        fitted.fit(rows(slice(N_PUBLIC)))

        def of(start, stop, fitted=fitted, rows=rows):
            result = fitted.transform(rows(slice(N_PUBLIC + start, N_PUBLIC + stop)))
            return result.toarray() if sp.issparse(result) else result

        together = of(0, N_ROWS)
        for start, stop in ((1, N_ROWS), (3, N_ROWS), (0, N_ROWS - 1), (64, 101)):
            assert_array_equal(of(start, stop), together[start:stop])
        for row in (0, 5, N_ROWS - 1):
            assert_array_equal(of(row, row + 1)[0], together[row])


# Fits


class Subclass(TableRepresentation):
    """A table's columns in a product that a user computes in another way."""

    def transform(self, X):
        X = np.nan_to_num(np.asarray(X, dtype=np.float64))
        return X @ np.random.RandomState(3).standard_normal((X.shape[1], 30))


def blobs():
    """Return public and private rows of different classes, and their labels."""
    X, y = make_blobs(N_PUBLIC + N_ROWS, N_COLUMNS, centers=3, random_state=0)
    return X[:N_PUBLIC], X[N_PUBLIC:], y[N_PUBLIC:]


def code_log_odds():
    """Return made-up log-odds of the rounded numbers of a column."""
    fitted = CodeLogOdds()
    fitted.columns_, fitted.codes_ = [0], [{"1": 0, "2": 1, "300": 2}]
    fitted.log_odds_ = [np.random.RandomState(0).standard_normal((4, 2))]
    return fitted


# By name of the transformer, and None for the default.
REPRESENTATIONS = {
    "auto": "auto",
    "TableRepresentation": TableRepresentation(random_state=0),
    "subclass": Subclass(random_state=0),
    "ImageRepresentation": ImageRepresentation(
        (6, 6), n_filters=20, n_components=30, random_state=0
    ),
    "ScoreBasis": ScoreBasis(60, True, random_state=0),
    "PCA": PCA(random_state=0),
    "CodeLogOdds": TableRepresentation(random_state=0, codes=code_log_odds()),
}


def test_all_transformers_are_tried_in_a_fit():
    # One needs torch; the other is fitted on counts, and has a test of its own.
    others = {"ContrastiveEncoder", "LogOdds"}
    assert transformers().keys() - others <= REPRESENTATIONS.keys()


def draw(sums, number, total):
    """Return equal released numbers for all data, in place of noisy ones."""
    total = np.asarray(total())
    return 999 + np.random.RandomState(number).permutation(total.size)


def vectors_of(monkeypatch, X, y, name, groups=None):
    """Return the vectors of the units in all steps, before rounding."""
    steps, sent = [], {}
    rounded = Step.rounded

    def kept(step, vectors):
        if not steps or step is not steps[-1]:
            steps.append(step)
        flat = vectors.reshape(len(vectors), -1).copy()
        sent.setdefault(len(steps), []).append(flat)
        return rounded(step, vectors)

    of_groups = {} if groups is None else {"privacy_unit": "group", "n_groups": 200}
    clf = DPNewtonClassifier(
        representation=REPRESENTATIONS[name],
        epsilon=8.0,
        classes=[0, 1, 2],
        random_state=0,
        **of_groups,
    )
    with monkeypatch.context() as patch, warnings.catch_warnings():
        patch.setattr(Step, "rounded", kept)
        patch.setattr(StoredSums, "draw", draw)
        patch.setattr(_representations, "_N_PATCHES", 2_000)  # for speed
        warnings.simplefilter("ignore")
        clf.fit(X, y, X_public=PublicData(blobs()[0]), groups=groups)
    assert len(steps) == 5
    return np.hstack([np.concatenate(vectors) for vectors in sent.values()])


def values_of(monkeypatch, X, y, name, groups=None):
    """Return the values of the rows of mean scores, before clipping and rounding."""
    excess, seen = DirectionScores.excess, []

    def kept(scores, of_rows):
        if len(of_rows) != N_PUBLIC:
            seen.append(of_rows.copy())
        return excess(scores, of_rows)

    clf = PATEClassifier(
        LogisticRegression(),
        mechanism="scores",
        representation=REPRESENTATIONS[name],
        n_teachers=4,
        epsilon=8.0,
        classes=[0, 1, 2],
        privacy_unit="row" if groups is None else "group",
        random_state=0,
    )
    with monkeypatch.context() as patch, warnings.catch_warnings():
        patch.setattr(DirectionScores, "excess", kept)
        patch.setattr(StoredSums, "draw", draw)
        patch.setattr(_representations, "_N_PATCHES", 2_000)  # for speed
        warnings.simplefilter("ignore")
        clf.fit(X, y, X_public=PublicData(blobs()[0]), groups=groups)
    return np.concatenate(seen)


SENT = {"Newton steps": vectors_of, "mean scores": values_of}


@pytest.mark.parametrize("sent", SENT)
@pytest.mark.parametrize("name", REPRESENTATIONS)
def test_a_group_that_joins_changes_no_bit_of_others(monkeypatch, name, sent):
    _, X, y = blobs()
    groups = np.r_[0, 1 + np.arange(N_ROWS - 1)]
    groups[-50:] = np.arange(50) // 5 + groups[-50]  # groups of several rows, too
    joined = SENT[sent](monkeypatch, X, y, name, groups)
    without = SENT[sent](monkeypatch, X[1:], y[1:], name, groups[1:])
    assert len(joined) == 1 + len(without) > 300
    assert_array_equal(joined[1:], without)


@pytest.mark.parametrize("sent", SENT)
@pytest.mark.parametrize("name", REPRESENTATIONS)
def test_a_replaced_row_changes_no_bit_of_others(monkeypatch, name, sent):
    _, X, y = blobs()
    vectors_of = SENT[sent]
    before = vectors_of(monkeypatch, X, y, name)
    for place, value in ((0, np.nan), (200, 1e300), (N_ROWS - 1, -np.inf)):
        other, label = X.copy(), y.copy()
        other[place], label[place] = value, (y[place] + 1) % 3
        after = vectors_of(monkeypatch, other, label, name)
        kept = np.arange(N_ROWS) != place
        assert_array_equal(after[kept], before[kept])
        assert not np.array_equal(after[place], before[place])


# Log-odds of counts

NUMBERS = {f"column{j}": (-3, 3) for j in range(6)}


def log_odds_of(X, seed=0):
    """Return the transformer of noisy counts of some rows."""
    domain = read_domain(NUMBERS, X, 8)
    labels = np.random.RandomState(seed).randint(0, 3, len(X))
    counts = count_cells(domain, X, labels, 3, by_class=True)
    noise = np.random.RandomState(seed).randint(-9, 10, counts.shape)
    return LogOdds.of_counts(Marginals(domain, 3, True, counts + noise, len(X), 5.0))


def test_log_odds_of_a_row_are_the_same_in_any_position():
    X = pd.DataFrame(table(N_ROWS, 6)).add_prefix("column")
    X.iloc[::7, 2] = np.nan
    fitted = log_odds_of(X)
    together = fitted.transform(X)
    assert together.shape == (N_ROWS, 7 * 2)
    for start, stop in ((1, N_ROWS), (3, N_ROWS), (0, N_ROWS - 1), (64, 101)):
        assert_array_equal(fitted.transform(X[start:stop]), together[start:stop])
    for row in (0, 5, N_ROWS - 1):
        assert_array_equal(fitted.transform(X[row : row + 1])[0], together[row])


@pytest.mark.parametrize("of_groups", [False, True])
def test_a_neighbour_changes_no_other_vector_of_log_odds(of_groups):
    X = pd.DataFrame(table(N_ROWS, 6)).add_prefix("column")
    fitted, codes = log_odds_of(X), np.arange(N_ROWS) % 3
    basis = ScoreBasis(15, False, in_order=True).fit(fitted.transform(X[:200]))
    groups = np.r_[0, 1 + np.arange(N_ROWS - 1) // 2]
    coef = np.random.RandomState(1).standard_normal((basis.n_coordinates_, 2))
    step = Step(coef, np.eye(len(coef)), np.eye(2), 1.0, 0.5)

    def total(X, codes, groups):
        rows = RepresentedRows(
            fitted.transform(X).__getitem__,
            codes,
            groups if of_groups else None,
            lambda places: basis.chosen(places).transform,
            size=coef.size,
        )
        return rows.sum(step)

    if of_groups:  # the first group leaves
        other = total(X[1:], codes[1:], groups[1:])
        moved = total(X, codes, groups) - other
        own = total(X[:1], codes[:1], groups[:1])
        assert_array_equal(moved, own)
    else:  # the first row is replaced by a huge one
        changed = X.copy()
        changed.iloc[0] = 1e300
        moved = total(X, codes, None) - total(changed, codes, None)
        assert np.linalg.norm(moved) <= 2 * step.longest
    assert moved.any()
