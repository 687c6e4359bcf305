"""Fits that are published, and changes to their files."""

import hashlib
import json
import zipfile

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import (
    PATEClassifier,
    PublicData,
)
from sklearn_pate.mechanisms import GNMax

TREE = "sklearn.tree._tree.Tree"
PLANTED_SEED = 1234567891


def fit(X, y, student, X_public, **parameters):
    pate = PATEClassifier(
        GaussianNB(),
        student,
        **{
            "n_teachers": 20,
            "mechanism": GNMax(sigma=1),
            "epsilon": None,
            "random_state": 0,
        }
        | parameters,
    )
    return pate.fit(X, y, X_public=PublicData(X_public))


def card_of(path):
    return path.with_suffix(".json")


def rewrite_card(path, **changes):
    card = json.loads(card_of(path).read_text()) | changes
    card_of(path).write_text(json.dumps(card))


def rewrite_model(path, change):
    """Change members of the model file, and make the sha256 on the card fit."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    rewrite_card(path, sha256=hashlib.sha256(path.read_bytes()).hexdigest())


def assert_same(one, other, X):
    predicted = one.predict(X)
    np.testing.assert_array_equal(predicted, other.predict(X))
    assert predicted.dtype == other.predict(X).dtype
    np.testing.assert_array_equal(one.classes_, other.classes_)
    for method in ("predict_proba", "decision_function"):
        assert hasattr(one, method) == hasattr(other, method)
        if hasattr(one, method):
            np.testing.assert_array_equal(
                getattr(one, method)(X), getattr(other, method)(X)
            )


class OwnStudent(ClassifierMixin, BaseEstimator):
    """User-defined student."""

    def fit(self, X, y):
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        self.means_ = np.array([X[y == k].mean(axis=0) for k in self.classes_])
        return self

    def predict(self, X):
        distances = ((np.asarray(X)[:, None] - self.means_) ** 2).sum(axis=2)
        return self.classes_[distances.argmin(axis=1)]
