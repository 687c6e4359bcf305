"""Features of private rows: each a function of that row alone, bit by bit."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    OneHotEncoder,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection

from sklearn_pate import PublicData
from sklearn_pate.learners import PrivateKNNClassifier
from sklearn_pate.mechanisms import NoisyHistogram
from tests.cases import thorough_but

# Copies of one row have one class, or nearly so.
pytestmark = pytest.mark.filterwarnings("ignore:All answers .50. name one class")

N_COPIES, N_FEATURES = 2999, 64
REPRESENTATIONS = {
    "none": None,
    "PCA": PCA(16, random_state=0),
    "projection": GaussianRandomProjection(16, random_state=0),
    "pipeline": make_pipeline(StandardScaler(), PCA(16, random_state=0)),
}


def make(representation, **parameters):
    defaults = {
        "representation": representation,
        "mechanism": NoisyHistogram(
            sigma=0.01
        ),  # no noise: whole numbers far below a half
        "sampling_rate": 1.0,
        "n_neighbors": 25,
        "n_queries": 50,
        "query_strategy": "random",
        "epsilon": None,
        "classes": [0, 1],
        "random_state": 0,
    }
    return PrivateKNNClassifier(**({"student": GaussianNB()} | defaults | parameters))


def copies_and_a_far_row(dtype):
    """Return public rows, many copies of one row, and a row far away."""
    rng = np.random.RandomState(0)
    X_public = rng.normal(size=(50, N_FEATURES)).astype(dtype)
    row = rng.normal(size=(1, N_FEATURES)).astype(dtype)
    return X_public, np.repeat(row, N_COPIES, axis=0), row + dtype(50)


def brought_nearer(representation, X, far, X_public):
    """Return the rows that come nearer to a public row, computed beside another row."""
    if representation is None:
        return np.arange(len(X)) % 6 == 0
    representation.fit(X_public, None)
    middle = representation.transform(X_public[:1]).astype(np.float64)
    alone, beside = (
        ((representation.transform(rows) - middle) ** 2).sum(axis=1)
        for rows in (X, np.vstack([far, X]))
    )
    return beside[1:] < alone


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", thorough_but(["none", "PCA"], REPRESENTATIONS))
def test_one_more_row_moves_one_vote_in_and_one_out(name, dtype):
    representation = REPRESENTATIONS[name]
    X_public, X, far = copies_and_a_far_row(dtype)
    # The labels separate the rows that would come nearer from the others.
    y = brought_nearer(representation, X, far, X_public).astype(int)
    public = PublicData(X_public)
    without = make(representation).fit(X, y, X_public=public).histograms_
    added = make(representation).fit(
        np.vstack([far, X]), np.append(0, y), X_public=public
    )
    moved = np.abs(added.histograms_ - without).sum(axis=1)
    assert moved.max() <= 2


@pytest.mark.thorough
def test_one_more_row_moves_one_vote_in_and_one_out_with_the_packages_encoder():
    pytest.importorskip("torch")
    from sklearn_pate.students import ContrastiveEncoder

    X_public, X, far = copies_and_a_far_row(np.float32)
    encoder = ContrastiveEncoder(max_epochs=1, random_state=0).fit(X_public)
    X = X[:500]
    y = brought_nearer(FrozenEstimator(encoder), X, far, X_public).astype(int)
    public = PublicData(X_public)
    wanted = make(FrozenEstimator(encoder))
    without = wanted.fit(X, y, X_public=public).histograms_
    added = wanted.fit(np.vstack([far, X]), np.append(0, y), X_public=public)
    assert np.abs(added.histograms_ - without).sum(axis=1).max() <= 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["integers", "float32", "float64", "Fortran order"])
def test_votes_do_not_depend_on_the_container(blobs, kind):
    X, y, X_public, _ = blobs
    X, X_public = np.rint(8 * X), np.rint(8 * X_public)
    wanted = make(PCA(2, random_state=0), classes=[0, 1, 2])
    # Fitted once, as what public rows teach may depend on their container.
    wanted.set_params(representation=FrozenEstimator(PCA(2).fit(X_public)))
    expected = wanted.fit(X, y, X_public=PublicData(X_public)).histograms_
    other = {
        "integers": X.astype(int),
        "float32": X.astype(np.float32),
        "float64": X.copy(),
        "Fortran order": np.asfortranarray(X),
    }[kind]
    knn = wanted.fit(other, y, X_public=PublicData(X_public))
    np.testing.assert_array_equal(knn.histograms_, expected)


@pytest.mark.thorough
def test_one_more_row_of_a_frame_moves_one_vote_in_and_one_out(blobs):
    X, y, X_public, _ = blobs
    X, y = X[:150], y[:150]
    words = np.array(["red", "green", "blue"])

    def frame(X):
        return pd.DataFrame(
            {
                "x": X[:, 0].astype(np.float32),
                "colour": words[(X[:, 1] > 0).astype(int)],
            }
        )

    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["colour"]), (StandardScaler(), ["x"])
    )
    student = make_pipeline(columns, GaussianNB())
    wanted = make(columns, classes=[0, 1, 2], student=student)
    public = PublicData(frame(X_public))
    without = wanted.fit(frame(X[1:]), y[1:], X_public=public).histograms_
    added = wanted.fit(frame(X), y, X_public=public).histograms_
    assert np.abs(added - without).sum(axis=1).max() <= 2


class CountingTransformer(FunctionTransformer):
    """Add the number of calls so far."""

    n_calls = 0

    def transform(self, X):
        self.n_calls += 1
        return np.asarray(X) + self.n_calls


def of_two_or_more(X):
    if len(X) < 2:
        raise ValueError("one row is not enough")
    return X


def of_float32(X):
    if X.dtype != np.float32:
        raise TypeError(f"expected float32, got {X.dtype}")
    return X


@pytest.mark.parametrize(
    ("representation", "message"),
    [
        (
            FunctionTransformer(lambda X: X - X.mean(axis=0)),
            "depend on other rows or earlier calls",
        ),
        (
            FunctionTransformer(lambda X: X + np.random.normal(size=X.shape)),
            "depend on other rows or earlier calls",
        ),
        (CountingTransformer(), "depend on other rows or earlier calls"),
        (FunctionTransformer(of_two_or_more), "single row of float64.*not enough"),
        (FunctionTransformer(of_float32), "single row of float64.*got float64"),
    ],
    ids=["centred", "random", "counts", "two rows", "float32"],
)
def test_a_representation_that_depends_on_other_rows_is_refused(
    blobs, representation, message
):
    X, y, X_public, _ = blobs
    X, X_public = X.astype(np.float32), X_public.astype(np.float32)
    knn = make(representation, classes=[0, 1, 2])
    with pytest.raises(ValueError, match=message):
        knn.fit(X, y, X_public=PublicData(X_public))
    assert not hasattr(knn, "histograms_")


def fails_on_large_values(X):
    if np.any(np.abs(X) > 1e6):
        raise ValueError("too large")
    if np.any(np.abs(X) > 1e5):
        return X[:, :1]
    return X


@pytest.mark.slow
@pytest.mark.parametrize("odd", [1e7, 2e5, 1e308])
@pytest.mark.parametrize(
    "representation",
    [
        FunctionTransformer(fails_on_large_values),
        MaxAbsScaler(),
        KBinsDiscretizer(encode="ordinal", strategy="uniform"),
    ],
    ids=["refuses", "scales", "bins"],
)
def test_a_row_without_features_of_its_own_stops_no_fit(
    blobs, representation, odd, recwarn
):
    X, y, X_public, _ = blobs
    wanted = make(representation, classes=[0, 1, 2])
    public = PublicData(X_public)
    without = wanted.fit(X, y, X_public=public).histograms_
    far = np.full((1, X.shape[1]), odd)
    added = wanted.fit(np.vstack([far, X]), np.append(0, y), X_public=public)
    assert np.abs(added.histograms_ - without).sum(axis=1).max() <= 2
    assert not [str(one.message) for one in recwarn]
