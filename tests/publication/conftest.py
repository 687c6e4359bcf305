"""Models on disk."""

import shutil
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_pate import PrivacyLeakWarning
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.publication import publish
from tests.publication.forging import published_of
from tests.publication.saving import PLANTED_SEED, fit
from tests.seeding import equal_noise


@pytest.fixture(scope="session")
def fitted(digits):
    """A logistic pipeline on digits, with text for labels."""
    X, y = digits
    names = np.array(list("abcdefghij"))[y]
    student = make_pipeline(StandardScaler(), LogisticRegression())
    return fit(X[:900], names[:900], student, X[900:1400], n_queries=500)


@pytest.fixture(scope="session")
def published(fitted):
    return publish(fitted)


@pytest.fixture
def saved(published, tmp_path):
    path = tmp_path / "model.skops"
    published.save(path)
    return path


@pytest.fixture(scope="session")
def void(blobs):
    X, y, X_public, _ = blobs
    with equal_noise(PLANTED_SEED):
        pate = fit(X, y, GaussianNB(), X_public, mechanism=GNMax(sigma=2))
    with pytest.warns(PrivacyLeakWarning, match="no privacy guarantee") as caught:
        published = publish(pate)
    assert len(caught) == 1
    return published


@pytest.fixture(scope="session")
def original_files(blobs, tmp_path_factory):
    """Published fits, each made once."""
    made, folder = {}, tmp_path_factory.mktemp("files")

    def original(kind):
        if kind not in made:
            path = folder / f"{len(made)}.skops"
            published_of(kind, blobs).save(path)
            made[kind] = path
        return made[kind]

    return original


@pytest.fixture
def honest(original_files, tmp_path):
    """Give a copy of the files of a fit, to be forged."""

    def copy(kind):
        path = tmp_path / "model.skops"
        for suffix in (".skops", ".json"):
            shutil.copy(
                original_files(kind).with_suffix(suffix), path.with_suffix(suffix)
            )
        return path

    return copy


@pytest.fixture(scope="session")
def rows():
    """Rows of three classes that are named."""
    X, codes = make_blobs(2400, centers=3, random_state=0)
    return X.astype(np.float32), np.array(["ill", "unsure", "well"])[codes]


@pytest.fixture(scope="session")
def fits(rows):
    """Fits of every private classifier, each made once; no test changes them."""
    from tests.publication.learners import LEARNERS, WITHOUT_PUBLIC, fit  # with torch

    @cache
    def fitted(name):
        return fit(LEARNERS[name], rows, public=name not in WITHOUT_PUBLIC)

    return fitted


@pytest.fixture(scope="session")
def originals(fits):
    """What is published of these fits."""
    return cache(lambda name: fits(name).publish())
