"""Prediction by the student alone."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sklearn_pate._estimators._class_codes import in_all_classes, predict_codes
from sklearn_pate._inputs._features import check_features

__all__ = ["StudentPredictionMixin"]


def _student_has(method):
    """Check the fitted student, or what it will be made of, for a method."""

    def check(self):
        # Not `or`: an ensemble without members is false.
        student = getattr(self, "student_", None)
        return hasattr(self._unfitted_student() if student is None else student, method)

    return check


class StudentPredictionMixin:
    """Predict with ``student_``, in terms of ``classes_``."""

    student_: Any
    classes_: NDArray[Any]

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels with the student.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows. Prediction costs no privacy, whoever they belong to.

        Returns
        -------
        y : ndarray of shape (n_rows,)
            Labels out of ``classes_``.

        Raises
        ------
        ValueError
            If X has other columns than in `fit`, or the student predicts what is no
            class index.
        """
        X = self._check_before_predicting(X)
        return self.classes_[predict_codes(self.student_, X, len(self.classes_))]

    @available_if(_student_has("predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[np.floating]:
        """Predict class probabilities with the student.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_rows, n_classes)
            A column for every class in ``classes_``, 0 where the student never saw it.
        """
        X = self._check_before_predicting(X)
        return in_all_classes(
            self.student_.predict_proba(X),
            self.student_,
            len(self.classes_),
            absent=0.0,
        )

    @available_if(_student_has("decision_function"))
    def decision_function(self, X: Any) -> NDArray[np.floating]:
        """Score classes with the student.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_rows, n_classes), or (n_rows,) with two classes
            A column for every class in ``classes_``, -inf where the student never saw
            it.
        """
        X = self._check_before_predicting(X)
        scores = self.student_.decision_function(X)
        if scores.ndim == 1 and len(self.classes_) > 2:  # it saw two classes only
            scores = np.column_stack([-scores, scores])
        return in_all_classes(scores, self.student_, len(self.classes_), absent=-np.inf)

    def _check_before_predicting(self, X):
        check_is_fitted(self, "student_")
        return check_features(self, X, reset=False)
