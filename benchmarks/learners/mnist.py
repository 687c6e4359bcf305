"""Learners of the comparison on MNIST, with a representation from public images.

Learners with queries use pixels and gradients in the representation of a network
that was trained on public images without labels, as in images.py. Linear learners use
the gradients only.
"""

import hashlib
import warnings

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from benchmarks.images.images import QUICK, WORK, fitted_representation, taught
from benchmarks.images.models import STUDENTS
from benchmarks.learners.settings import PRIVATE
from benchmarks.petdl.petdl import BASE, fitted
from sklearn_pate import PublicData
from sklearn_pate.learners import PrivateKNNClassifier

DISCRIMINANTS = BASE | {"teacher": "discriminant"}


class KeptRows(TransformerMixin, BaseEstimator):
    """A fitted representation with a file cache for single rows.

    Private-kNN transforms 60,000 rows one at a time, the same ones at every epsilon.
    """

    def __init__(self, representation, path):
        self.representation = representation
        self.path = path

    def fit(self, X, y=None):
        """Load the cached rows."""
        self.n_dimensions_ = self.representation.transform(X[:1]).shape[1]
        kept = np.dtype([("row", "V16"), ("features", "f8", self.n_dimensions_)])
        self.kept_ = {}
        if self.path.exists():
            content = self.path.read_bytes()
            whole = len(content) // kept.itemsize * kept.itemsize
            self.path.write_bytes(content[:whole])  # the last one may be incomplete
            for row, features in np.frombuffer(content[:whole], dtype=kept):
                self.kept_[row.tobytes()] = features
        return self

    def transform(self, X):
        """Compute features, from the cache for a single row."""
        if len(X) != 1:
            return self.representation.transform(X)
        row = hashlib.blake2b(X.tobytes(), digest_size=16).digest()
        if row not in self.kept_:
            features = self.representation.transform(X)[0].astype(np.float64)
            self.kept_[row] = features
            with self.path.open("ab") as file:
                file.write(row + features.tobytes())
        return self.kept_[row][np.newaxis]


class Rows:
    """Rows of norm 1 for linear learners, in a representation of gradients."""

    def __init__(self, images, seed):
        public, self.held_out = images.shuffled(seed)
        X_test, y_test = images.test
        fitted = fitted_representation(images, "gradients", X_test[public], seed)
        X, self.y_train = images.private
        self.X_train = fitted.transform(X).astype(np.float64)
        self.X_test = fitted.transform(X_test[self.held_out]).astype(np.float64)
        self.y_test = y_test[self.held_out]


def run_mnist(images, setting, seed):
    """Fit one learner; return its accuracy, and its statement (None if not private)."""
    warnings.simplefilter("ignore")
    _, held_out = images.shuffled(seed)
    X, y = images.test
    learner, epsilon = setting["learner"], setting["epsilon"]
    if learner in WITH_QUERIES:
        classifier = WITH_QUERIES[learner](images, epsilon, seed)
        accuracy = classifier.score(X[held_out], y[held_out])
        return accuracy, classifier.privacy_spent_
    rows = Rows(images, seed)
    if epsilon is None:
        classifier = LogisticRegression(C=100.0, max_iter=2000)
        classifier.fit(rows.X_train, rows.y_train)
        return classifier.score(rows.X_test, rows.y_test), None
    classifier = PRIVATE[learner](rows, epsilon, seed)
    return classifier.score(rows.X_test, rows.y_test), classifier.privacy_spent_


def _public_rows(images, seed):
    public, _ = images.shuffled(seed)
    X_public = images.test[0][public]
    return X_public, FrozenEstimator(
        fitted_representation(images, "both", X_public, seed)
    )


def _pate(images, epsilon, seed):
    return taught(images, QUICK | {"epsilon": epsilon}, seed)


def _private_knn(images, epsilon, seed):
    X_public, frozen = _public_rows(images, seed)
    kept = KeptRows(frozen, WORK / f"private-knn-{seed}.rows").fit(X_public)
    classifier = PrivateKNNClassifier(
        STUDENTS[QUICK["student"]](images, frozen),
        representation=FrozenEstimator(kept),
        n_queries=QUICK["n_queries"],
        query_strategy=QUICK["query_strategy"],
        epsilon=epsilon,
        classes=range(10),
        random_state=seed,
    )
    return classifier.fit(*images.private, X_public=PublicData(X_public))


def _petdl(images, epsilon, seed):
    _, frozen = _public_rows(images, seed)
    student = STUDENTS["distilled"](images, frozen)
    return fitted(images, DISCRIMINANTS | {"epsilon": epsilon}, seed, student)


#: Learners with queries about public images.
WITH_QUERIES = {
    "PATE, votes, hand-picked": _pate,
    "Private-kNN": _private_knn,
    "PETDL": _petdl,
}
