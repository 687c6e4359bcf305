"""Student of images that learns from all public images, and fits with it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.frozen import FrozenEstimator

from sklearn_pate import PATEClassifier, PublicData, PublishedClassifier
from sklearn_pate.students import ImageRepresentation, ImageStudent
from tests.cases import thorough_but

SMALL = ImageRepresentation(n_filters=20, n_components=100, random_state=0)


@pytest.fixture(scope="module")
def images(digits):
    X, y = digits
    order = np.random.RandomState(0).permutation(len(y))
    return X[order].reshape(-1, 8, 8), y[order]


def few(y, n_labels):
    return np.where(np.arange(len(y)) < n_labels, y, -1)


@pytest.mark.thorough
def test_unlabelled_images_teach_more_than_the_labelled_ones_alone(images):
    X, y = images
    student = ImageStudent(SMALL).fit(X[:1200], few(y[:1200], 40))
    alone = ImageStudent(SMALL).fit(X[:40], y[:40])
    assert student.score(X[1200:], y[1200:]) > alone.score(X[1200:], y[1200:]) + 0.05
    assert_allclose(student.predict_proba(X[:5]).sum(axis=1), 1, rtol=1e-6)


@pytest.mark.slow
def test_labels_may_be_words_and_few(images):
    X, y = images
    rows = np.concatenate([np.flatnonzero(y == k)[:2] for k in range(10)])
    words = np.array([f"digit {k}" for k in y[rows]])
    student = ImageStudent(SMALL).fit(X[rows], words)
    assert_array_equal(student.predict(X[rows]), words)


def test_a_fitted_representation_is_used_as_it_is(images):
    X, y = images
    fitted = PCA(30).fit(X.reshape(-1, 64))
    student = ImageStudent(FrozenEstimator(fitted)).fit(
        X[:300].reshape(-1, 64), y[:300]
    )
    assert student.estimator_[0] is fitted
    with pytest.raises(ValueError, match="one class"):
        ImageStudent(FrozenEstimator(fitted)).fit(X[:9].reshape(-1, 64), np.zeros(9))


@pytest.fixture(scope="module", params=thorough_but(["auto"], ["auto", "gnmax"]))
def fitted(request, images):
    """Fit digits, of which there are many copies, so that the noise is small."""
    X, y = images
    private = np.arange(20_000) % 1000
    return PATEClassifier(
        LinearDiscriminantAnalysis(),
        mechanism=request.param,
        epsilon=2.0,
        classes=range(10),
        random_state=0,
    ).fit(X[private], y[private], X_public=PublicData(X[1000:1500]))


@pytest.mark.thorough
def test_any_discriminant_is_a_teacher_of_images(fitted, images):
    X, y = images
    assert fitted.score(X[1500:], y[1500:]) > 0.9
    assert fitted.representation_.transform(X[:1]).shape == (1, 20)
    assert fitted.privacy_spent_.n_teachers == round(4 * 20_000**0.5)
    means = fitted.predict_proba(X[1000:1500]).mean(axis=0)
    assert_allclose(means, fitted.class_shares_, atol=1e-4)


@pytest.mark.slow
def test_the_representation_is_fitted_once(monkeypatch, images):
    X, y = images
    fits = []
    fit = ImageRepresentation.fit
    monkeypatch.setattr(
        ImageRepresentation,
        "fit",
        lambda self, X, y=None: fits.append(1) or fit(self, X),
    )
    clf = PATEClassifier(classes=range(10), epsilon=8.0, random_state=0)
    clf.fit(X[:1000], y[:1000], X_public=PublicData(X[1000:1300]))
    assert len(fits) == 1


@pytest.mark.thorough
def test_a_published_student_of_images_predicts_as_before(fitted, images, tmp_path):
    X, _ = images
    fitted.publish().save(tmp_path / "digits.skops")
    published = PublishedClassifier.load(tmp_path / "digits.skops")
    assert_array_equal(published.predict_proba(X[:50]), fitted.predict_proba(X[:50]))
