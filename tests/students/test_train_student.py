import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import (
    LabelPropagation,
    LabelSpreading,
    SelfTrainingClassifier,
)
from sklearn.tree import DecisionTreeClassifier

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.mechanisms import GNMax
from tests.private import accepts_hints, accepts_unlabeled, train_student


class Declares(LogisticRegression):
    accepts_unlabeled = True

    def fit(self, X, y):
        self.seen_ = np.asarray(y)
        labelled = self.seen_ >= 0
        return super().fit(X[labelled], self.seen_[labelled])


@pytest.mark.parametrize(
    ("student", "accepts"),
    [
        (LabelSpreading(), True),
        (LabelPropagation(), True),
        (SelfTrainingClassifier(LogisticRegression()), True),
        (make_pipeline(StandardScaler(), LabelSpreading()), True),
        (Declares(), True),
        (make_pipeline(StandardScaler(), Declares()), True),
        (LogisticRegression(), False),
        (make_pipeline(StandardScaler(), LogisticRegression()), False),
    ],
)
def test_students_that_accept_unlabeled_rows_are_found(student, accepts):
    assert accepts_unlabeled(student) is accepts


class Hinted(Declares):
    accepts_hints = True

    def fit(self, X, y, *, hint=None):
        self.hint_ = hint
        return super().fit(X, y)


class HintedWithoutOtherRows(LogisticRegression):
    accepts_hints = True


@pytest.mark.parametrize(
    ("student", "accepts"),
    [
        (Hinted(), True),
        (make_pipeline(StandardScaler(), Hinted()), True),
        (Declares(), False),
        (HintedWithoutOtherRows(), False),  # a hint is about all public rows
        (LabelSpreading(), False),
    ],
)
def test_students_that_accept_hints_are_found(student, accepts):
    assert accepts_hints(student) is accepts


@pytest.mark.slow
def test_a_hint_reaches_the_student_as_it_is_and_no_hint_is_not_passed(blobs):
    X, y, _, _ = blobs
    queried, hint = np.arange(40), object()
    parameters = {"n_classes": 3, "seed": 0}
    for student in (Hinted(), make_pipeline(StandardScaler(), Hinted())):
        taught = train_student(student, X, queried, y[:40], hint=hint, **parameters)
        last = taught[-1] if isinstance(taught, Pipeline) else taught
        assert last.hint_ is hint
    assert train_student(Hinted(), X, queried, y[:40], **parameters).hint_ is None
    train_student(Declares(), X, queried, y[:40], **parameters)


def fit(student, blobs, **parameters):
    X, y, X_public, _ = blobs
    return PATEClassifier(
        DecisionTreeClassifier(),
        student,
        n_teachers=20,
        mechanism=GNMax(sigma=1),
        epsilon=None,
        random_state=0,
        **parameters,
    ).fit(X, np.array(["a", "b", "c"])[y], X_public=PublicData(X_public))


def test_a_semi_supervised_student_gets_every_public_row(blobs):
    pate = fit(Declares(), blobs, n_queries=40)
    seen = pate.student_.seen_
    assert seen.shape == (300,)
    np.testing.assert_array_equal(seen[pate.queried_indices_], pate.answers_)
    assert np.count_nonzero(seen == -1) == 260


def test_a_supervised_student_gets_the_answered_rows_only(blobs):
    class Counts(DecisionTreeClassifier):
        def fit(self, X, y):
            self.n_rows_ = len(X)
            return super().fit(X, y)

    assert fit(Counts(), blobs, n_queries=40).student_.n_rows_ == 40


@pytest.mark.parametrize(
    ("student", "n_queries"), [(LabelSpreading(), 100), (LogisticRegression(), 300)]
)
def test_auto_makes_fewer_queries_for_a_semi_supervised_student(
    blobs, student, n_queries
):
    assert len(fit(student, blobs).answers_) == n_queries


@pytest.mark.slow
def test_unlabeled_rows_help_where_answers_are_few(digits):
    X, y = digits
    scores = {
        name: PATEClassifier(
            LogisticRegression(max_iter=2000),
            student,
            n_teachers=10,
            mechanism=GNMax(sigma=0.5),
            epsilon=None,
            n_queries=40,
            representation=None,
            random_state=0,
        )
        .fit(X[:1000] / 16, y[:1000], X_public=PublicData(X[1000:1600] / 16))
        .score(X[1600:] / 16, y[1600:])
        for name, student in {
            "semi-supervised": LabelSpreading(kernel="knn", n_neighbors=7),
            "supervised": LogisticRegression(max_iter=2000),
        }.items()
    }
    assert scores["semi-supervised"] > scores["supervised"] + 0.03


def test_an_error_of_the_student_reports_that_the_privacy_cost_is_spent():
    X_public = np.array([[0.0], [np.nan]])
    with pytest.raises(ValueError, match="contains NaN") as caught:
        train_student(
            LogisticRegression(),
            X_public,
            queried=np.array([0, 1]),
            answers=np.array([0, 1]),
            n_classes=2,
            seed=0,
        )
    assert "whose privacy cost is spent" in caught.value.__notes__[0]
