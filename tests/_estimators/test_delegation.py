"""Class indices predicted by classifiers of users, as teacher and as student."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.students import DistillationClassifier
from tests.private import RelabeledClassifier, VoteForm


class Column(DecisionTreeClassifier):
    """Predicts a column, as CatBoost does of more than two classes."""

    def predict(self, X):
        return super().predict(X)[:, np.newaxis]


class Odd(DecisionTreeClassifier):
    """Predicts another value for the first row, once switched on."""

    odd = None

    def predict(self, X):
        predicted = super().predict(X).astype(float)
        if Odd.odd is not None:
            predicted[0] = Odd.odd
        return predicted


@pytest.fixture
def odd(monkeypatch):
    return lambda value: monkeypatch.setattr(Odd, "odd", value)


@pytest.fixture
def fit(blobs):
    X, y, X_public, _ = blobs

    def fit(estimator, **parameters):
        return PATEClassifier(
            estimator,
            n_teachers=10,
            mechanism=GNMax(sigma=1),
            epsilon=None,
            random_state=0,
            **parameters,
        ).fit(X, y, X_public=PublicData(X_public))

    return fit


def test_a_teacher_may_predict_a_column(fit):
    plain = fit(DecisionTreeClassifier(), student=LogisticRegression())
    column = fit(Column(), student=LogisticRegression())
    assert column.privacy_analysis_.teacher_failures == []
    np.testing.assert_array_equal(
        column.privacy_analysis_.counts.sum(axis=0),
        plain.privacy_analysis_.counts.sum(axis=0),
    )


@pytest.mark.parametrize("wrap", [lambda one: one, DistillationClassifier])
def test_a_student_may_predict_a_column(wrap, fit, blobs):
    _, _, X_public, y_public = blobs
    pate = fit(LogisticRegression(), student=wrap(Column()))
    assert pate.predict(X_public).shape == y_public.shape
    assert pate.score(X_public, y_public) > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("value", [-1, 0.9, 7, np.nan, np.inf])
@pytest.mark.parametrize("wrap", [lambda one: one, DistillationClassifier])
def test_a_student_that_predicts_no_class_is_refused(value, wrap, fit, odd, blobs):
    pate = fit(LogisticRegression(), student=wrap(Odd()))
    published = pate.publish()
    odd(value)
    message = rf"Odd was fitted on the class indices 0 to 2, but its .*{value}"
    for model in (pate, published):
        with pytest.raises(ValueError, match=message):
            model.predict(blobs[0])


def test_a_student_that_predicts_another_number_of_rows_is_refused(fit, monkeypatch):
    pate = fit(LogisticRegression(), student=Odd())
    monkeypatch.setattr(Odd, "predict", lambda self, X: np.zeros((len(X), 2)))
    with pytest.raises(ValueError, match=r"its predict returned shape \(5, 2\) and"):
        pate.predict(np.zeros((5, 2)))


@pytest.mark.parametrize("value", [-1, 0.9, 1.5, 7, np.nan, np.inf, 2**40])
def test_a_vote_that_is_no_class_index_is_an_abstention(value):
    teacher = SimpleNamespace(predict=lambda X: [0, value, 2.0])
    votes = VoteForm(n_classes=3).read(teacher, np.zeros((3, 1)))
    assert votes.tolist() == [0, -1, 2]


def test_a_vote_may_be_an_object():
    teacher = SimpleNamespace(predict=lambda X: np.array([0, 2], dtype=object))
    votes = VoteForm(n_classes=3).read(teacher, np.zeros((2, 1)))
    assert votes.tolist() == [0, 2]


@pytest.mark.parametrize("value", [-1, 0.9, 7])
def test_indices_without_gaps_predict_no_other_class(value, odd):
    X, codes = np.arange(6.0)[:, np.newaxis], np.array([1, 1, 4, 4, 4, 4])
    own = RelabeledClassifier(Odd()).fit(X, codes)
    odd(value)
    assert own.predict(X).tolist() == [-1, 1, 4, 4, 4, 4]
    column = RelabeledClassifier(Column()).fit(X, codes)
    assert column.predict(X).tolist() == codes.tolist()
