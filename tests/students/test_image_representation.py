"""Tests of the representation of images."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

from sklearn_pate import (
    DPNewtonClassifier,
    PublicData,
    PublishedClassifier,
)
from sklearn_pate.students import GraphSelfTrainingClassifier, ImageRepresentation
from tests.cases import thorough_but
from tests.private import RepresentedRows, StoredSums


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


@pytest.fixture(scope="module")
def images(digits):
    return digits[0].reshape(-1, 8, 8)


@pytest.fixture(scope="module")
def representation(images):
    return ImageRepresentation(n_filters=50, random_state=0).fit(images[:400])


@pytest.mark.slow
def test_components_are_finite_and_in_decreasing_order(images, representation):
    public = representation.transform(images[:400])
    assert public.shape == (400, len(representation.get_feature_names_out()))
    variances = public.var(axis=0)
    assert np.all(np.diff(variances) <= 1e-3 * variances[0])
    assert np.isfinite(representation.transform(images[400:])).all()


@pytest.mark.slow
def test_first_components_of_new_images_change_least(images, representation):
    """A shift by one pixel, which is no change that the components were fitted to."""
    new = images[400:]
    before, after = (
        representation.transform(one) for one in (new, np.roll(new, 1, axis=2))
    )
    relative = np.mean((after - before) ** 2, axis=0)[:100] / before.var(axis=0)[:100]
    assert relative[:10].mean() < 0.5 * relative[50:].mean()


@pytest.mark.thorough
def test_flat_rows_and_channels_are_the_same_images(images, digits, representation):
    flat = ImageRepresentation((8, 8), n_filters=50, random_state=0).fit(
        digits[0][:400]
    )
    assert_array_equal(
        flat.transform(digits[0][:9]), representation.transform(images[:9])
    )
    one_channel = images[:, np.newaxis]
    again = ImageRepresentation(n_filters=50, random_state=0).fit(one_channel[:400])
    assert_array_equal(
        again.transform(one_channel[:9]), representation.transform(images[:9])
    )


@pytest.mark.thorough
def test_colours_are_used(images):
    rng = np.random.default_rng(0)
    colours = rng.uniform(size=(300, 3, 12, 12))
    fitted = ImageRepresentation(n_filters=20, random_state=0).fit(colours)
    changed = colours[:50, ::-1]
    difference = fitted.transform(colours[:50]) - fitted.transform(changed)
    assert np.abs(difference).max() > 1e-3


@pytest.mark.thorough
def test_units_of_pixels_do_not_matter(images, representation):
    scaled = ImageRepresentation(n_filters=50, random_state=0).fit(images[:400] * 1e200)
    assert_allclose(
        scaled.transform(images[:20] * 1e200),
        representation.transform(images[:20]),
        rtol=1e-3,
        atol=1e-3,
    )


@pytest.mark.slow
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324])
def test_an_odd_private_image_changes_no_other(images, representation, value):
    private = images[400:420].copy()
    private[3] = value
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = representation.transform(private)
    assert np.isfinite(result).all()
    before = representation.transform(images[400:420])
    others = np.arange(20) != 3
    assert_array_equal(result[others], before[others])  # bit by bit


def test_a_transformed_image_leaves_nothing_behind(images, representation):
    before = pickle.dumps(representation)
    representation.transform(images[::-1][:7])
    assert pickle.dumps(representation) == before


@pytest.mark.thorough
def test_missing_public_pixels_count_as_the_smallest(images):
    holes, zeros = images[:100].copy(), images[:100].copy()
    holes[:, 0], zeros[:, 0] = np.nan, 0
    one, other = (
        ImageRepresentation(n_filters=9, random_state=0).fit(X) for X in (holes, zeros)
    )
    assert_array_equal(one.transform(holes), other.transform(zeros))


@pytest.mark.thorough
def test_a_pickle_and_a_second_fit_are_equal(images, representation):
    again = ImageRepresentation(n_filters=50, random_state=0).fit(images[:400])
    assert_array_equal(again.components_, representation.components_)
    loaded = pickle.loads(pickle.dumps(representation))
    assert_array_equal(
        loaded.transform(images[:5]), representation.transform(images[:5])
    )


@pytest.mark.slow
def test_many_public_images_are_sampled(images):
    many = np.tile(images[:500], (21, 1, 1))
    fitted = ImageRepresentation(n_filters=5, n_components=3, random_state=0).fit(many)
    assert fitted.transform(many[:2]).shape == (2, 3)


@pytest.mark.parametrize(
    ("parameters", "rows", "message"),
    [
        ({"n_filters": 0}, np.eye(8)[np.newaxis], "n_filters=0 must be a whole number"),
        ({"n_components": 1.5}, np.eye(8)[np.newaxis], "n_components=1.5 must be"),
        ({}, np.eye(8), r"image_shape=None.*pass image_shape=\(height, width\)"),
        ({"image_shape": (3, 3)}, np.eye(8), r"image_shape=\(3, 3\).*8 values"),
        ({}, np.ones((5, 1, 8)), "images of 1 x 8 pixels; pass"),
        ({}, np.eye(8)[np.newaxis], "1 image; pass at least two"),
        ({}, np.ones((5, 8, 8)), "All pixels of X are equal"),
    ],
)
def test_bad_input_is_refused(parameters, rows, message):
    with pytest.raises(ValueError, match=message):
        ImageRepresentation(**parameters).fit(rows)


# In a fit


@pytest.mark.thorough
def test_a_newton_fit_on_images(images, digits, tmp_path):
    X, y = images, digits[1]
    clf = DPNewtonClassifier(epsilon=8.0, classes=range(10), random_state=0)
    clf.fit(X[:1200], y[:1200], X_public=PublicData(X[1200:1500]))
    assert "public rows are part of the model" not in clf.privacy_spent_.in_one_line()
    assert clf.score(X[1500:], y[1500:]) > 0.8
    clf.publish().save(tmp_path / "model.skops")
    loaded = PublishedClassifier.load(tmp_path / "model.skops")
    assert_array_equal(loaded.predict(X[1500:]), clf.predict(X[1500:]))


@pytest.mark.slow
def test_a_given_representation_is_stated_and_used_in_its_order(digits):
    X, y = digits
    clf = DPNewtonClassifier(representation=PCA(20), epsilon=8.0, random_state=0)
    clf.fit(X[:1200], y[:1200], X_public=PublicData(X[1200:1500]))
    assert (
        "representation was fitted on public rows alone"
        in clf.privacy_spent_.in_one_line()
    )
    assert isinstance(clf.representation_, PCA)
    assert len(clf.coefficients_) == 21
    assert clf.score(X[1500:], y[1500:]) > 0.75


def sums(monkeypatch, *data, **parameters):
    """Return the sum of the vectors of the first Newton step, without noise."""
    taken = []
    exact = RepresentedRows.sum

    def kept(rows, step):
        taken.append(exact(rows, step))
        return taken[-1]

    X, y, X_public, groups = data
    clf = DPNewtonClassifier(
        epsilon=8.0, classes=range(10), random_state=0, **parameters
    )
    with monkeypatch.context() as patch, warnings.catch_warnings():
        patch.setattr(RepresentedRows, "sum", kept)
        # Equal released numbers, on which later sums depend.
        patch.setattr(StoredSums, "draw", lambda _, __, total: 0 * total())
        warnings.simplefilter("ignore")
        clf.fit(X, y, X_public=PublicData(X_public), **groups)
    return taken[1]


def longest(share=0.14):
    return 2 * np.sqrt(share) * 1024


@pytest.mark.thorough
def test_neighbouring_images_move_a_sum_by_its_bound(images, digits, monkeypatch):
    X, y = images[:1200], digits[1][:1200]
    other = X.copy()
    other[7] = np.nan
    one, two = (
        sums(monkeypatch, rows, y, images[1200:1500], {}) for rows in (X, other)
    )
    assert 0 < np.linalg.norm(one - two) <= longest()


@pytest.mark.slow
@pytest.mark.parametrize("as_images", thorough_but([False], [True, False]))
# By the noise on 600 groups of ten classes.
@pytest.mark.filterwarnings("ignore:The private rows vary")
def test_one_more_group_moves_a_sum_by_its_bound(
    images, digits, monkeypatch, as_images
):
    """All later rows have another position, and the same represented values."""
    X, y = images if as_images else digits[0], digits[1]
    groups = np.arange(1200) // 2
    given = {} if as_images else {"representation": make_pipeline(PCA(20))}
    parameters = {"privacy_unit": "group", "n_groups": 600, **given}
    one, two = (
        sums(
            monkeypatch,
            X[start:1200],
            y[start:1200],
            X[1200:1500],
            {"groups": groups[start:]},
            **parameters,
        )
        for start in (0, 2)
    )
    assert 0 < np.linalg.norm(one - two) <= longest()


def flat(X):
    return X.reshape(len(X), -1)


@pytest.mark.thorough
def test_components_are_better_than_principal_ones_on_mnist(data_set):
    mnist = data_set("mnist")
    X, y = mnist.data, mnist.target
    X_test, y_test = X[60_000:], y[60_000:]
    X, X_test = X[:12_000].reshape(-1, 28, 28), X_test.reshape(-1, 28, 28)
    scores = [
        DPNewtonClassifier(representation=one, random_state=0)
        .fit(X, y[:12_000], X_public=PublicData(X_test[:2000]))
        .score(X_test[5000:], y_test[5000:])
        for one in (
            ImageRepresentation(n_filters=100, random_state=0),
            make_pipeline(FunctionTransformer(flat), PCA(100)),
        )
    ]
    assert scores[0] > 0.93
    assert scores[0] > scores[1] + 0.05


@pytest.mark.thorough
def test_images_of_a_graph_are_those_in_flat_rows(images, digits):
    X, y = digits[0][:300], digits[1][:300].copy()
    y[50:] = -1
    by_shape = {
        one.ndim: GraphSelfTrainingClassifier(
            make_pipeline(FunctionTransformer(flat), SVC()),
            ImageRepresentation((8, 8), n_filters=20, random_state=0),
        ).fit(one, y)
        for one in (X, images[:300])
    }
    assert_array_equal(by_shape[2].transduction_, by_shape[3].transduction_)
    assert_array_equal(by_shape[2].predict(X), by_shape[3].predict(images[:300]))
