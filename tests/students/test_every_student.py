"""Students of every class of scikit-learn, with soft labels."""

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.students import DistillationClassifier, GraphSelfTrainingClassifier
from tests.private import rehearse_student
from tests.students.every_student import students_of_scikit_learn

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

STUDENTS = students_of_scikit_learn()
RNG = np.random.default_rng(0)
CODES = np.arange(60) % 2
X = np.abs(RNG.normal(size=(60, 2)) + 6 * CODES[:, np.newaxis])


class WithoutWeights(GaussianNB):
    """Takes weights and does not use them."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y)


class CalibratedWithoutWeights(ClassifierMixin, BaseEstimator):
    """Passes no weights on to the classifier inside."""

    def fit(self, X, y, sample_weight=None):
        self.inner_ = LogisticRegression().fit(X, y)
        self.classes_ = self.inner_.classes_
        return self

    def predict(self, X):
        return self.inner_.predict(X)


def separate(n_classes):
    """Return private rows, their classes and public rows."""
    y = np.arange(800) % n_classes
    rows = np.random.default_rng(1).normal(size=(800, 2)) + 6 * y[:, np.newaxis]
    return rows[:600], y[:600], rows[600:]


def accuracy(student, labels, other):
    """Return the share of rows that follow labels with counts 100 to `other`."""
    histograms = np.full((len(labels), 2), other)
    histograms[np.arange(len(labels)), labels] = 100
    fitted = DistillationClassifier(clone(student), random_state=0).fit(X, histograms)
    return np.mean(fitted.predict(X) == labels)


@pytest.mark.parametrize("routing", [False, True], ids=["", "routing"])
@pytest.mark.parametrize("name", STUDENTS)
def test_swapped_soft_labels_swap_the_predictions_of(name, routing):
    with sklearn.config_context(enable_metadata_routing=routing):
        for labels in (CODES, 1 - CODES):
            try:
                hard = accuracy(STUDENTS[name], labels, 0)
            except ValueError as error:
                if "metadata" in str(error) or "routing" in str(error):
                    raise
                pytest.skip(str(error)[:100])  # a student of something else
            assert accuracy(STUDENTS[name], labels, 1) >= hard - 0.1


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", STUDENTS)
def test_the_rehearsal_of_soft_labels_refuses_none_of(name, n_classes):
    student = DistillationClassifier(STUDENTS[name])
    try:
        rehearse_student(
            student, X, n_labeled=60, n_classes=n_classes, soft=True, seed=0
        )
    except ValueError as error:
        if "ignores soft labels" in str(error):
            raise
        pytest.skip(str(error)[:100])  # a student of something else


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("kind", [WithoutWeights, CalibratedWithoutWeights])
def test_a_student_that_ignores_soft_labels_costs_nothing(kind, n_classes):
    rows, y, X_public = separate(n_classes)
    pate = PATEClassifier(student=kind(), epsilon=50.0)
    with pytest.raises(ValueError, match="ignores soft labels"):
        pate.fit(rows, y, X_public=PublicData(X_public))
    assert not hasattr(pate, "privacy_spent_")
    # The remedy that the message names.
    pate.set_params(student=DistillationClassifier(make_pipeline(kind())))
    pate.fit(rows, y, X_public=PublicData(X_public))
    assert pate.score(rows, y) > 2 / (n_classes + 1)


@pytest.mark.thorough
@pytest.mark.parametrize("routing", [False, True], ids=["", "routing"])
@pytest.mark.parametrize(
    "name", ["AdaBoostClassifier", "LogisticRegressionCV", "calibrated model"]
)
def test_routing_refuses_neither_a_teacher_nor_a_student(name, routing):
    rows, y, X_public = separate(2)
    one = STUDENTS[name]
    with sklearn.config_context(enable_metadata_routing=routing):
        for pate in (
            PATEClassifier(one, student=GaussianNB(), n_teachers=5, epsilon=50.0),
            PATEClassifier(student=one, epsilon=50.0),
            PATEClassifier(
                GaussianNB(), GraphSelfTrainingClassifier(one), n_teachers=20, epsilon=9
            ),
        ):
            pate.fit(rows, y, X_public=PublicData(X_public))
            assert pate.score(rows, y) > 0.8
