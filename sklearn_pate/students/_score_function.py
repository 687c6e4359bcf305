"""Classifier of class probabilities by released coefficients in a public basis."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags

from sklearn_pate._estimators._class_codes import ProbabilityScoresMixin, log_odds
from sklearn_pate.students._score_basis import ScoreBasis

__all__ = ["ScoreFunction", "as_probabilities", "resolve_threshold"]

# "auto": a class with a smaller share of the released probability is rare.
_RARE = 0.2


class ScoreFunction(ProbabilityScoresMixin, ClassifierMixin, BaseEstimator):
    """Class probabilities of a row, by coefficients that a mechanism released.

    The default student of :class:`~sklearn_pate.mechanisms.MeanScores`, and the model
    of :class:`~sklearn_pate.DPNewtonClassifier`. Prediction is a post-processing of the
    release.

    Parameters
    ----------
    threshold : float or None, default=None
        With two classes, the probability of the second above which it is predicted.
        None predicts the most probable class.

    link : {"linear", "softmax"}, default="linear"
        How probabilities follow from the function: linearly, for mean scores, or as in
        logistic regression, for :class:`~sklearn_pate.DPNewtonClassifier`.

    Attributes
    ----------
    representation_ : transformer
        Fitted on public rows.

    basis_ : transformer
        Fitted on represented public rows; computes the functions that the coefficients
        belong to.

    coef_ : ndarray of shape (n_coordinates, n_classes - 1)
        Released coefficients, without most of their noise.

    classes_ : ndarray of int of shape (n_classes,)
        Class indices.

    Notes
    -----
    With the values b(x) of the basis at a row x, the coefficients C, and the Helmert
    matrix H, whose columns are orthonormal and orthogonal to 1, the probabilities are
    1/K + H C'b(x), clipped to [0, 1] and scaled to sum to 1; or the softmax of
    H C'b(x).

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn_pate import PATEClassifier, PublicData
    >>> X, y = make_blobs(6000, centers=3, random_state=0)
    >>> clf = PATEClassifier(n_teachers=200, random_state=0)
    >>> clf = clf.fit(X[:5000], y[:5000], X_public=PublicData(X[5000:5500]))
    >>> type(clf.student_).__name__
    'ScoreFunction'
    """

    def __init__(self, threshold: float | None = None, link: str = "linear") -> None:
        self.threshold = threshold
        self.link = link

    @classmethod
    def of_release(
        cls,
        coef: NDArray[np.float64],
        representation: Any,
        basis: ScoreBasis,
        link: str,
    ) -> Self:
        """Create a fitted classifier from a release.

        Parameters
        ----------
        coef : ndarray of shape (n_coordinates, n_classes - 1)
            As the attribute.

        representation, basis : transformer
            As the attributes.

        link : {"linear", "softmax"}
            As the parameter.

        Returns
        -------
        function : ScoreFunction
            Fitted.
        """
        function = cls(link=link)
        function.representation_, function.basis_ = representation, basis
        function.coef_ = coef
        function.classes_ = np.arange(coef.shape[1] + 1)
        return function

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Compute class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            A column for each class.
        """
        return self.probabilities(
            self.basis_.transform(self.representation_.transform(X))
        )

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score classes by their probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_rows, n_classes), or (n_rows,) with two classes
            Logarithms of the probabilities, a column for each class. With two classes,
            the log-odds of the second one, above those of the `threshold`.
        """
        scores = log_odds(self.predict_proba(X))
        if self.threshold is None:
            return scores
        return scores - log_odds(np.array([[1 - self.threshold, self.threshold]]))

    def probabilities(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute class probabilities from values of the basis.

        Parameters
        ----------
        values : ndarray of shape (n_rows, n_coordinates)
            Values of the basis.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            A column for each class.
        """
        scores = values @ self.coef_
        if self.link == "linear":
            return as_probabilities(scores)
        return softmax(scores @ helmert(len(self.classes_)), axis=1)

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Predict class indices.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        y : ndarray of int of shape (n_rows,)
            Class indices.
        """
        return self.decide(self.predict_proba(X))

    def decide(self, probabilities: NDArray[np.float64]) -> NDArray[np.intp]:
        """Choose classes by their probabilities.

        Parameters
        ----------
        probabilities : ndarray of shape (n_rows, n_classes)
            As `predict_proba` returns them.

        Returns
        -------
        y : ndarray of int of shape (n_rows,)
            Class indices.
        """
        if self.threshold is None:
            return probabilities.argmax(axis=1)
        return (probabilities[:, 1] > self.threshold).astype(np.intp)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # The representation takes what it took in `fit`.
        tags.no_validation = True
        return tags


def as_probabilities(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn scores of shape (n_rows, n_classes - 1) into class probabilities."""
    n_classes = scores.shape[1] + 1
    probabilities = 1 / n_classes + scores @ helmert(n_classes)
    probabilities = np.clip(probabilities, 0, 1)
    return probabilities / probabilities.sum(axis=1, keepdims=True)


def resolve_threshold(threshold: Any, shares: NDArray[np.float64]) -> float | None:
    """Return the threshold of two classes, None for the most probable of several.

    `shares` are released mean probabilities. "auto" is one half, unless a class is
    rare: then it is the mean probability, as hard labels would rarely name it.
    """
    if threshold != "auto":
        return float(threshold)
    if len(shares) == 2 and shares.min() < _RARE:
        return float(shares[1])
    return None
