"""Messages that name the right parameter, and warnings that come once."""

import re
from inspect import signature

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import sklearn_pate
from sklearn_pate import (
    DPNewtonClassifier,
    PATEClassifier,
    PrivacyLeakWarning,
    PublicData,
    learners,
    model_selection,
)
from sklearn_pate.inspection import AnswerCostDisplay
from sklearn_pate.learners import (
    Clusters,
    DPLinearSVC,
    DPLogisticRegression,
    DPNaiveBayesClassifier,
    PETDLClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.model_selection import PrivateSearchCV
from tests.private import MECHANISMS, PrivateClassifier
from tests.publication.learners import LEARNERS

X, Y = make_blobs(300, centers=[[-3, 0], [3, 0]], random_state=0)
PUBLIC = PublicData(make_blobs(260, centers=[[-3, 0], [3, 0]], random_state=1)[0])


def of_votes(**changes):
    given = {"n_teachers": 5, "n_queries": 20, "mechanism": GNMax(1), "epsilon": None}
    return PATEClassifier(GaussianNB(), **given | {"random_state": 0} | changes)


NAMES = [name for name in MECHANISMS if name not in ("auto", "scores")]


@pytest.mark.parametrize("name", NAMES)
def test_a_mechanism_named_as_in_the_papers_is_answered_with_the_right_name(name):
    kind = MECHANISMS[name].__name__
    for written in (kind, kind.replace("GN", "-GN").lower(), name.upper(), f"{name}-"):
        if written == name:
            continue
        with pytest.raises(ValueError, match=rf"is unknown; use '{name}', or one of"):
            of_votes(mechanism=written, epsilon=1.0).fit(X, Y, X_public=PUBLIC)


class Changed(ClassifierMixin, TransformerMixin, BaseEstimator):
    """Changes a parameter in its constructor, as some libraries do."""

    def __init__(self, columns=()):
        self.columns = list(columns)

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X

    def predict(self, X):
        return np.zeros(len(X))


ROLES = {
    "estimator": lambda one: PATEClassifier(one, n_teachers=5, mechanism=GNMax(1)),
    "student": lambda one: of_votes(student=one),
    "representation": lambda one: of_votes(representation=one),
    "PETDL": lambda one: PETDLClassifier(one, n_teachers=5),
    "knn": lambda one: PrivateKNNClassifier(student=one),
    "search": lambda one: PrivateSearchCV(one, {}),
}


@pytest.mark.parametrize("role", ROLES)
def test_an_estimator_that_cannot_be_cloned_is_named_by_its_role(role):
    clf = ROLES[role](Changed())
    named = {"PETDL": "estimator", "knn": "student", "search": "estimator"}
    public = {} if role == "search" else {"X_public": PUBLIC}
    with pytest.raises(ValueError, match=rf"^{named.get(role, role)}=Changed\("):
        clf.fit(X, Y, **public)


def test_columns_without_names_are_warned_of_once():
    frame = pd.DataFrame(X, columns=["a", "b"])
    public = PublicData(pd.DataFrame(PUBLIC.X, columns=["a", "b"]))
    for student in (None, LogisticRegression()):
        clf = of_votes(student=student).fit(frame, Y, X_public=public)
        for method in ("predict", "predict_proba"):
            with pytest.warns(UserWarning, match="PATEClassifier") as caught:
                getattr(clf, method)(X)
            assert len(caught) == 1


@pytest.mark.parametrize(
    "learner",
    [
        of_votes(epsilon=100.0, mechanism="gnmax"),
        DPNewtonClassifier(epsilon=100.0),
        DPLogisticRegression(epsilon=100.0, data_norm=10),
        DPLinearSVC(epsilon=100.0, data_norm=10),
        DPNaiveBayesClassifier((-9, 9), epsilon=100.0),
        PrivateKNNClassifier(epsilon=100.0),
        PETDLClassifier(
            GaussianNB(),
            LogisticRegression(),
            n_teachers=5,
            epsilon=100.0,
            batches=Clusters(20),
        ),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_an_epsilon_that_protects_hardly_anybody_is_warned_of(learner):
    has_public = hasattr(learner, "student") or hasattr(learner, "public_size")
    public = {"X_public": PUBLIC} if has_public else {}
    with pytest.warns(PrivacyLeakWarning, match="is above 20"):
        learner.plan_privacy(X, Y, **public)


PRIVATE = {
    one
    for module in (sklearn_pate, learners, model_selection)
    for one in map(module.__dict__.get, module.__all__)
    if isinstance(one, type) and issubclass(one, PrivateClassifier)
}


def test_every_private_classifier_is_among_the_learners():
    assert {type(learner) for learner in LEARNERS.values()} == PRIVATE


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
@pytest.mark.parametrize("method", ["fit", "plan_privacy"])
def test_weights_of_private_rows_are_refused_in_one_sentence(learner, method):
    sentence = (
        f"{type(learner).__name__} takes no sample_weight, as no private row may count "
        "more than another; leave it out."
    )
    with pytest.raises(TypeError, match=f"^{re.escape(sentence)}$"):
        getattr(learner, method)(X, Y, sample_weight=np.ones(len(X)))


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
@pytest.mark.parametrize("given", [(Y, PUBLIC), (PUBLIC,)], ids=["third", "as y"])
def test_public_rows_by_position_are_answered_with_an_argument_by_name(learner, given):
    with pytest.raises(
        TypeError, match=r"fit takes only X and y by position"
    ) as caught:
        learner.fit(X, *given)
    advised = str(caught.value).partition("write ")[2]
    names = re.findall(r"(\w+)=", advised)
    signature(learner.fit).bind(X, Y, **dict.fromkeys(names))


def test_a_display_of_queries_says_that_there_were_none():
    clf = PATEClassifier(epsilon=8.0).fit(X, Y, X_public=PUBLIC)
    with pytest.raises(ValueError, match="votes"):
        AnswerCostDisplay.from_estimator(clf)
