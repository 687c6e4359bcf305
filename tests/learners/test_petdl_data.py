"""PETDLClassifier beside what people have: labels, frames, pipelines, odd teachers."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from sklearn_pate import PublicData, StudentWarning, TeacherWarning
from sklearn_pate.learners import Clusters, Hint, RandomBatches
from sklearn_pate.students import ConvSmall, FixMatchClassifier
from tests.learners.test_petdl import fit, make

NAMES = np.array(["ill", "unsure", "well"])


# Labels and classes


@pytest.mark.slow
def test_labels_of_any_type_come_back_as_they_were(blobs):
    X, y, X_public, y_public = blobs
    for labels in (NAMES, NAMES.astype(object), np.array([-1, 5, 7], dtype=np.int8)):
        petdl = make().fit(X, labels[y], X_public=PublicData(X_public))
        np.testing.assert_array_equal(petdl.classes_, labels)
        assert petdl.predict(X).dtype == labels.dtype
        assert petdl.score(X_public, labels[y_public]) > 0.9
        assert petdl.predict_proba(X).shape == (600, 3)


def test_classes_are_not_read_from_y_if_they_are_given(blobs):
    X, y, X_public, _ = blobs
    petdl = make(classes=[*NAMES, "never seen"])
    petdl.fit(X, NAMES[y], X_public=PublicData(X_public))
    assert petdl.classes_.tolist() == ["ill", "never seen", "unsure", "well"]
    assert petdl.released_.shape == (15, 4)
    assert petdl.predict_proba(X).shape == (600, 4)
    assert "read from" not in petdl.privacy_spent_.in_one_line()


def test_shards_that_lack_a_class_count_for_the_others(blobs):
    X, y, X_public, y_public = blobs
    rare = (y != 2) | (np.arange(600) < 30)  # a few rows of the last class
    petdl = make(n_teachers=40, estimator=DecisionTreeClassifier())
    petdl.fit(X[rare], y[rare], X_public=PublicData(X_public))
    assert petdl.released_.shape == (15, 3)
    common = y_public != 2
    assert petdl.score(X_public[common], y_public[common]) > 0.8


def test_one_class_in_y_gives_a_constant_student(blobs):
    X, _, X_public, _ = blobs
    petdl = make(classes=["ill", "well"], noise_scale=1e-3)
    with pytest.warns(StudentWarning, match="one class"):
        petdl.fit(X, ["well"] * len(X), X_public=PublicData(X_public))
    assert set(petdl.predict(X)) == {"well"}


# Containers and surroundings


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize(
    "student",
    [FixMatchClassifier(ConvSmall(), max_epochs=1), GaussianNB()],
    ids=["network", "bayes"],
)
def test_frames(blobs, library, student):
    X, y, X_public, _ = blobs

    def frame(rows):
        return library({"age": rows[:, 0], "weight": rows[:, 1]})

    petdl = make(student=student)
    petdl.fit(frame(X), NAMES[y], X_public=PublicData(frame(X_public)))
    assert petdl.feature_names_in_.tolist() == ["age", "weight"]
    assert set(petdl.predict(frame(X))) <= set(NAMES)
    with pytest.raises(ValueError, match="feature names"):
        petdl.predict(frame(X)[["weight", "age"]])


def test_sparse_rows_in_random_batches(blobs):
    X, y, X_public, y_public = blobs
    logistic = LogisticRegression()
    petdl = make(estimator=logistic, student=logistic, batches=RandomBatches(1))
    petdl.fit(sp.csr_array(X), y, X_public=PublicData(sp.csr_array(X_public)))
    assert petdl.score(sp.csr_array(X_public), y_public) > 0.9


def test_parameters_can_be_read_set_and_cloned():
    petdl = make(hint=Hint(share=0.3))
    assert petdl.get_params()["hint__share"] == 0.3
    petdl.set_params(estimator__var_smoothing=0.5, temperature=2.0)
    copied = clone(petdl)
    assert copied.estimator.var_smoothing == 0.5
    assert copied.temperature == 2.0
    assert copied.estimator is not petdl.estimator


@pytest.mark.slow
def test_pipeline_and_search(blobs):
    X, y, X_public, y_public = blobs
    pipeline = make_pipeline(FunctionTransformer(), make(batches=Clusters(30)))
    search = GridSearchCV(
        pipeline,
        {"petdlclassifier__batches__core": [0.3, 0.6]},
        cv=2,
        error_score="raise",
    )
    search.fit(X, y, petdlclassifier__X_public=PublicData(X_public))
    assert search.best_score_ > 0.9
    assert search.score(X_public, y_public) > 0.9


def test_a_pipeline_as_teacher_and_as_student(blobs):
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    petdl = fit(blobs, estimator=pipeline, student=pipeline)
    assert petdl.score(blobs[2], blobs[3]) > 0.9


# Teachers that fail


class Fragile(ClassifierMixin, BaseEstimator):
    """Teacher that fails on a certain row."""

    def fit(self, X, y):
        if np.any(X == 1234):
            raise RuntimeError("planted words")
        self.bayes_ = GaussianNB().fit(X, y)
        self.classes_ = self.bayes_.classes_
        return self

    def predict_proba(self, X):
        return self.bayes_.predict_proba(X)


def test_a_teacher_that_fails_sends_nothing_and_the_fit_goes_on(blobs):
    X, y, X_public, y_public = blobs
    X = X.copy()
    X[5] = 1234
    petdl = make(estimator=Fragile(), noise_scale=1e-3)
    with pytest.warns(TeacherWarning) as caught:
        petdl.fit(X, y, X_public=PublicData(X_public))
    assert not any(character.isdigit() for character in str(caught[0].message))
    [(_, failure)] = petdl.privacy_analysis_.teacher_failures
    assert "planted words" in failure
    assert petdl.privacy_spent_.n_teachers == 20
    np.testing.assert_allclose(petdl.released_.sum(axis=1), 19, atol=0.2)
    assert petdl.score(X_public, y_public) > 0.9
    assert "planted" not in repr(petdl.privacy_analysis_)
