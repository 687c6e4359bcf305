"""Content of fitted estimators that are pickled, copied or published."""

import copy
import io
import pickle
import struct

import joblib
import numpy as np
import pytest
import skops.io
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from sklearn_pate import (
    PATEClassifier,
    PublicData,
    PublicDataWarning,
    TeacherWarning,
    Votes,
)
from sklearn_pate.accounting import PrivacyAnalysis
from sklearn_pate.mechanisms import LNMax, Oracle
from sklearn_pate.students import UncertaintyQueries

PLANTED_FEATURE = 98765.4321
PLANTED_ERROR = "planted words of a teacher"


class Teacher(ClassifierMixin, BaseEstimator):
    """Tree that fails on the planted row with one more secret in it."""

    def fit(self, X, y):
        if np.any(X == -PLANTED_FEATURE):
            raise RuntimeError(PLANTED_ERROR)
        self.tree_ = DecisionTreeClassifier().fit(X, y)
        return self

    def predict(self, X):
        return self.tree_.predict(X)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=900)
    X = rng.normal(size=(900, 4)) + 3 * y[:, None]
    X[::7, 0] = PLANTED_FEATURE  # in every shard, and in most trees' thresholds
    X[5, 1] = -PLANTED_FEATURE
    pate = PATEClassifier(
        Teacher(),
        DecisionTreeClassifier(),
        n_teachers=40,
        mechanism=LNMax(gamma=0.31),
        epsilon=None,
        random_state=0,
    )
    # Some public rows lie between the classes, where noise turns answers.
    X_public = rng.normal(size=(60, 4)) + rng.uniform(0, 6, size=(60, 1))
    with pytest.warns(TeacherWarning):
        pate.fit(X, y, X_public=PublicData(X_public))
    return pate, X


def reachable(root):
    """Yield every object that pickle would reach."""
    seen, todo = {}, [root]
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, (str, bytes, int, float, type)):
            continue
        seen[id(one)] = one
        yield one
        if isinstance(one, dict):
            todo += [*one.keys(), *one.values()]
        elif isinstance(one, (list, tuple, set)):
            todo += one
        elif isinstance(one, np.ndarray):
            todo += one.ravel().tolist() if one.dtype.hasobject else []
        elif hasattr(one, "__getstate__"):
            todo.append(one.__getstate__())


def saved_bytes(pate, how):
    if how == "pickle":
        return pickle.dumps(pate)
    stream = io.BytesIO()
    if how == "joblib":
        joblib.dump(pate, stream)
    else:
        skops.io.dump(pate, stream)
    return stream.getvalue()


def planted(pate):
    """Every form in which a secret of this fit might be written down."""
    analysis = pate.privacy_analysis_
    figures = (
        PLANTED_FEATURE,
        analysis.epsilon,
        analysis.optimal_epsilon,
        analysis.paper_epsilon,
    )
    return [
        PLANTED_ERROR.encode(),
        *(struct.pack(form, figure) for figure in figures for form in ("<d", ">d")),
        *(repr(figure).encode() for figure in figures),
        analysis.counts.tobytes(),
        analysis.plurality.tobytes(),
        analysis.curve.values.tobytes(),
    ]


@pytest.mark.thorough
def test_the_planted_values_are_there_to_be_found(fitted):
    pate, X = fitted
    analysis = pate.privacy_analysis_
    assert analysis.epsilon < pate.privacy_spent_.epsilon
    assert np.any(analysis.plurality != pate.answers_)
    assert PLANTED_ERROR in analysis.teacher_failures[0][1]
    leaky = pickle.dumps([X, analysis.__dict__])
    assert sum(secret in leaky for secret in planted(pate)) >= 6


@pytest.mark.slow
@pytest.mark.parametrize("how", ["pickle", "joblib", "skops"])
def test_a_saved_estimator_holds_no_planted_value(fitted, how):
    pate, _ = fitted
    saved = saved_bytes(pate, how)
    assert [secret for secret in planted(pate) if secret in saved] == []


@pytest.mark.slow
def test_the_object_graph_holds_no_teacher_shard_or_vote(fitted):
    pate, X = fitted
    for one in reachable(pate):
        assert not isinstance(one, (Votes, Oracle, PrivacyAnalysis))
        assert not (isinstance(one, Teacher) and hasattr(one, "tree_"))
        if isinstance(one, np.ndarray):
            assert len(X) not in one.shape, "something with one entry a private row"
            assert 40 not in one.shape, "something with one entry a teacher"


@pytest.mark.slow
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, "pickle"])
def test_a_duplicate_predicts_and_keeps_the_statement_only(fitted, duplicate):
    pate, X = fitted
    if duplicate == "pickle":
        copied = pickle.loads(pickle.dumps(pate))
    else:
        copied = duplicate(pate)
    assert not hasattr(copied, "privacy_analysis_")
    assert hasattr(pate, "privacy_analysis_")
    assert copied.privacy_spent_ == pate.privacy_spent_
    np.testing.assert_array_equal(copied.predict(X), pate.predict(X))


@pytest.mark.slow
@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_the_analysis_refuses_to_be_duplicated(fitted, duplicate):
    with pytest.raises(TypeError, match="sensitive"):
        duplicate(fitted[0].privacy_analysis_)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["pickle", "joblib", "skops"])
def test_a_parameter_that_was_fitted_meanwhile_is_saved_unfitted(blobs, how):
    X, y, X_public, _ = blobs
    X = np.column_stack([X, np.full(len(X), PLANTED_FEATURE)])
    X_public = np.column_stack([X_public, np.zeros(len(X_public))])
    estimator = KNeighborsClassifier()
    pate = PATEClassifier(
        estimator,
        DecisionTreeClassifier(),
        n_teachers=20,
        mechanism=LNMax(gamma=0.31),
        epsilon=None,
    )
    pate.fit(X, y, X_public=PublicData(X_public))
    estimator.fit(X, y)  # to compare with, as one does; it remembers every row
    secret = struct.pack("<d", PLANTED_FEATURE)
    assert secret in pickle.dumps(estimator)
    assert secret not in saved_bytes(pate, how)
    assert hasattr(estimator, "n_samples_fit_"), "the user's own object stays fitted"


@pytest.mark.slow
def test_which_rows_were_public_stays_with_the_data_holder(blobs):
    X, y, _, _ = blobs
    pate = PATEClassifier(
        DecisionTreeClassifier(), n_teachers=20, public_size=0.2, random_state=0
    )
    with pytest.warns(PublicDataWarning):
        pate.fit(X, y)
    assert len(pate.public_indices_) == 120
    assert not hasattr(pickle.loads(pickle.dumps(pate)), "public_indices_")


def test_printing_shows_nothing_sensitive(fitted):
    pate, _ = fitted
    analysis = pate.privacy_analysis_
    shown = "".join(
        [repr(pate), str(pate), pate._repr_html_(), repr(analysis), str(analysis)]
    )
    assert "sensitive" in repr(analysis)
    for figure in (analysis.epsilon, analysis.paper_epsilon):
        assert f"{figure:.3g}" not in shown
    assert PLANTED_ERROR not in shown


def test_the_html_representation_shows_teacher_and_student(fitted):
    html = fitted[0]._repr_html_()
    assert "Teacher" in html
    assert "DecisionTreeClassifier" in html


@pytest.mark.slow
def test_the_warning_does_not_say_how_many_teachers_failed(blobs):
    X, y, X_public, _ = blobs
    X = X.copy()
    X[5, 1] = -PLANTED_FEATURE
    with pytest.warns(TeacherWarning) as caught:
        PATEClassifier(Teacher(), n_teachers=20).fit(
            X, y, X_public=PublicData(X_public)
        )
    [message] = [str(one.message) for one in caught if one.category is TeacherWarning]
    assert not any(character.isdigit() for character in message)
    assert PLANTED_ERROR not in message


def test_what_a_query_strategy_holds_is_unfitted_when_pickled():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.integers(2, size=200)
    guide = DecisionTreeClassifier()
    pate = PATEClassifier(
        DecisionTreeClassifier(),
        n_teachers=10,
        n_queries=10,
        query_strategy=UncertaintyQueries(student=guide),
        mechanism=LNMax(gamma=1.0),
        epsilon=None,
        random_state=0,
    )
    pate.fit(X, y, X_public=PublicData(X[:50].copy()))
    guide.fit(X, y)  # on private rows, by a holder of the estimator
    loaded = pickle.loads(pickle.dumps(pate))
    for strategy in (loaded.query_strategy, loaded.query_strategy_):
        assert not hasattr(strategy.student, "tree_")
