"""Methods of classifiers before and after `fit`, as meta-estimators ask for them."""

import inspect

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    BaggingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import (
    OneVsOneClassifier,
    OneVsRestClassifier,
    OutputCodeClassifier,
)
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import LinearSVC

import sklearn_pate
from sklearn_pate import (
    DPNewtonClassifier,
    PATEClassifier,
    PublicData,
    learners,
    students,
)
from sklearn_pate.learners import (
    Clusters,
    DPLinearSVC,
    DPLogisticRegression,
    DPNaiveBayesClassifier,
    DPSGDClassifier,
    PETDLClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.model_selection import PrivateSearchCV
from sklearn_pate.students import (
    DistillationClassifier,
    GraphSelfTrainingClassifier,
)
from tests.cases import thorough_but
from tests.private import PrivateClassifier
from tests.students.every_student import students_of_scikit_learn

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

SCORES = "predict_proba", "predict_log_proba", "decision_function"
OWN_NOISE = {"mechanism": GNMax(sigma=1), "epsilon": None}
ANSWERS = {"n_teachers": 5, "n_queries": 40, **OWN_NOISE}
BOUNDS = {"feature_bounds": (-15.0, 15.0)}


def network():
    skorch, torch = pytest.importorskip("skorch"), pytest.importorskip("torch")
    return skorch.NeuralNetClassifier(
        torch.nn.Linear,
        module__in_features=2,
        module__out_features=2,
        criterion=torch.nn.CrossEntropyLoss,
        max_epochs=1,
    )


def every_student():
    """Return students of scikit-learn, and own ones around others."""
    found = {"None": None, **students_of_scikit_learn()}
    stacked = StackingClassifier([("nb", GaussianNB())], cv=2)
    for kind in (DistillationClassifier, GraphSelfTrainingClassifier):
        for inner in (LinearSVC(), RandomForestClassifier(5), stacked):
            found[f"{kind.__name__} of {type(inner).__name__}"] = kind(inner)
    return found


STUDENTS = every_student()
LEARNERS = {
    "answers": PATEClassifier(GaussianNB(), **ANSWERS),
    "of a classifier without probabilities": PATEClassifier(LinearSVC(), **ANSWERS),
    "newton": DPNewtonClassifier(epsilon=50.0),
    "scores": PATEClassifier(GaussianNB(), n_teachers=50, epsilon=50.0),
    "network": PATEClassifier(network(), **ANSWERS),
    "knn": PrivateKNNClassifier(n_queries=50, **OWN_NOISE),
    "petdl": PETDLClassifier(GaussianNB(), n_teachers=10, batches=Clusters(20)),
    "petdl without probabilities": PETDLClassifier(
        GaussianNB(), LinearSVC(), n_teachers=10, batches=Clusters(20)
    ),
    "logistic": DPLogisticRegression(**BOUNDS),
    "svc": DPLinearSVC(**BOUNDS),
    "counts": DPNaiveBayesClassifier((-15.0, 15.0)),
    "dpsgd": DPSGDClassifier(network()),
    "search": PrivateSearchCV(
        PATEClassifier(GaussianNB(), **ANSWERS),
        {"student": [LinearSVC(), GaussianNB()]},
        mean_n_trials=2,
    ),
    "search of pipelines": PrivateSearchCV(
        make_pipeline("passthrough", DPLogisticRegression(**BOUNDS)),
        {"dplogisticregression__C": [0.1, 1.0]},
        mean_n_trials=2,
    ),
}
WITHOUT_PUBLIC = "logistic", "svc", "counts", "dpsgd", "search of pipelines"


def interface(estimator):
    """Return all public names but fitted attributes."""
    return {
        name
        for name in dir(estimator)
        if not name.startswith("_")
        and not name.endswith("_")
        and hasattr(estimator, name)
    }


def assert_scores_agree_with_predictions(classifier, X):
    predicted = np.searchsorted(classifier.classes_, classifier.predict(X))
    if hasattr(classifier, "predict_proba"):
        probabilities = classifier.predict_proba(X)
        np.testing.assert_allclose(
            np.exp(classifier.predict_log_proba(X)), probabilities, rtol=1e-5
        )
        assert hasattr(classifier, "decision_function")
    if hasattr(classifier, "decision_function"):
        scores = classifier.decision_function(X)
        is_flat = len(classifier.classes_) == 2
        assert scores.shape == (
            len(X),
            *([] if is_flat else [len(classifier.classes_)]),
        )
        by_score = (scores > 0) if is_flat else scores.argmax(axis=1)
        assert np.mean(by_score == predicted) > 0.99  # ties


@pytest.fixture(scope="module")
def rows(blobs):
    """Private rows, labels whose first class is an outer blob, and public rows."""
    X, y, X_public, _ = blobs
    X, X_public = X.astype(np.float32), X_public.astype(np.float32)
    return X[:300], (y[:300] + 2) % 3, X_public[:100]


def test_every_private_classifier_has_a_case():
    own = {
        kind
        for module in (sklearn_pate, learners, sklearn_pate.model_selection)
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, PrivateClassifier)
    }
    assert own == {type(learner) for learner in LEARNERS.values()}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", LEARNERS)
def test_a_fit_and_a_publication_change_no_method(name, n_classes, rows):
    X, y, X_public = rows
    learner = clone(LEARNERS[name])
    if "dpsgd" in name or name == "network":
        inner = learner.estimator
        inner.set_params(module__out_features=n_classes)
    before = interface(learner)
    public = {} if name in WITHOUT_PUBLIC else {"X_public": PublicData(X_public)}
    learner.fit(X, np.minimum(y, n_classes - 1), **public)
    assert interface(learner) == before
    assert_scores_agree_with_predictions(learner, X)
    published = learner.publish()
    for method in SCORES:
        assert hasattr(published, method) >= hasattr(learner, method), method
    assert_scores_agree_with_predictions(published, X)


@pytest.mark.parametrize("name", STUDENTS)
def test_answers_of_any_kind_change_no_method_of_a_student(name, rows):
    X_public = np.abs(rows[2])  # as naive Bayes of counts wants them
    pate = PATEClassifier(student=STUDENTS[name], classes=[0, 1], **ANSWERS)
    labels = np.digitize(X_public[:, 0], [np.median(X_public[:, 0])])
    before = interface(pate)
    for answers in (labels, 0 * labels):  # the second make a constant student
        try:
            pate.fit_from_votes(X_public, [answers] * 5)
        except ValueError as error:
            if "was tried on public rows" in str(error):
                pytest.skip(str(error)[:200])  # a student of something else
            raise
        assert interface(pate) == before
        if hasattr(pate, "decision_function"):
            assert pate.decision_function(X_public).shape == (len(X_public),)
        if hasattr(pate, "predict_proba"):
            assert pate.predict_log_proba(X_public).shape == (len(X_public), 2)


@pytest.mark.parametrize("student", [None, GaussianNB()])
def test_a_teacher_without_probabilities_hides_none_of_the_student(student, rows):
    X, y, X_public = rows
    pate = PATEClassifier(LinearSVC(), student, **ANSWERS)
    assert hasattr(pate, "predict_proba")
    pate.fit(X, y, X_public=PublicData(X_public))
    assert pate.predict_proba(X[:3]).shape == (3, len(pate.classes_))


def flatten(images):
    return images.reshape(len(images), -1)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "estimator", [LinearSVC(), pytest.param(GaussianNB(), marks=pytest.mark.thorough)]
)
def test_images_and_votes_change_no_method(estimator, digits):
    few = digits[1] < 3
    X, y = digits[0][few].reshape(-1, 8, 8), digits[1][few]
    flat = make_pipeline(FunctionTransformer(flatten), estimator)
    pate = PATEClassifier(flat, query_strategy="random", **ANSWERS)
    before = interface(pate)
    pate.fit(X[:300], y[:300], X_public=PublicData(X[300:500]))
    assert interface(pate) == before
    assert pate.decision_function(X[:3]).shape == (3, 3)
    votes = [np.arange(200) % 3] * 5
    pate.set_params(classes=range(3)).fit_from_votes(X[300:500], votes)
    assert interface(pate) == before
    assert pate.decision_function(X[:3]).shape == (3, 3)


KINDS = [
    kind
    for _, kind in inspect.getmembers(students, inspect.isclass)
    if hasattr(kind, "predict")
]
QUICK = [kind for kind in KINDS if kind is not students.GANClassifier]


@pytest.mark.parametrize("kind", thorough_but(QUICK, KINDS))
def test_a_fit_changes_no_method_of_an_own_student(kind, rows):
    X, y, _ = rows
    quick = {"max_epochs": 1} if kind.__module__.find("networks") > 0 else {}
    if not hasattr(kind, "fit"):
        assert {*SCORES} <= interface(kind())
        return
    if kind is students.ImageStudent:
        X = X[:, :, np.newaxis] * [1, -1]  # images of 2 x 2 pixels
    student = kind(**quick)
    before = interface(student)
    student.fit(X, y)
    assert interface(student) == before >= {*SCORES}
    assert_scores_agree_with_predictions(student, X)


META_ESTIMATORS = {
    "calibrated": CalibratedClassifierCV(cv=2),
    "calibrated at the end": CalibratedClassifierCV(cv=2, ensemble=False),
    "one for each class": OneVsRestClassifier(None),
    "one for each pair": OneVsOneClassifier(None),
    "codes": OutputCodeClassifier(None),
    "self-training": SelfTrainingClassifier(),
    "bag": BaggingClassifier(n_estimators=2),
    "tuned threshold": TunedThresholdClassifierCV(None, cv=2),
    "fixed threshold": FixedThresholdClassifier(None, threshold=0.3),
    "search": GridSearchCV(None, {"random_state": [0]}, cv=2, scoring="roc_auc"),
}


@pytest.mark.parametrize("student", [None, GaussianNB(), LinearSVC()])
@pytest.mark.parametrize("name", META_ESTIMATORS)
def test_a_meta_estimator_finds_what_it_asked_for(name, student, rows):
    X, y = rows[0], np.minimum(rows[1], 1)
    if name == "self-training" and isinstance(student, LinearSVC):
        pytest.skip("it needs probabilities")
    learner = DPNewtonClassifier(epsilon=50.0, public_size=0.5)
    if student is not None:
        learner = PATEClassifier(
            student=student, n_teachers=5, public_size=0.5, **OWN_NOISE
        )
    meta = clone(META_ESTIMATORS[name]).set_params(estimator=learner)
    before = {method for method in SCORES if hasattr(meta, method)}
    meta.fit(X, y)
    assert {method for method in SCORES if hasattr(meta, method)} == before
    assert np.mean(meta.predict(X) == y) > 0.8
    for method in before:
        assert len(getattr(meta, method)(X)) == len(X)


@pytest.mark.parametrize("voting", ["soft", "hard"])
def test_members_of_ensembles_are_asked_for_probabilities(voting, rows):
    X, y, _ = rows
    members = [
        ("a", PATEClassifier(epsilon=50.0, public_size=0.5)),
        ("b", GaussianNB()),
    ]
    assert VotingClassifier(members, voting=voting).fit(X, y).score(X, y) > 0.8
    stacked = StackingClassifier(members, LogisticRegression(), cv=2)
    assert stacked.fit(X, y).score(X, y) > 0.8


@pytest.mark.parametrize(
    "chain_method", ["decision_function", ["decision_function", "predict_proba"]]
)
def test_a_chain_gets_scores(chain_method, rows):
    X, y, _ = rows
    pate = PATEClassifier(epsilon=50.0, public_size=0.5)
    Y = np.column_stack([y == 0, y == 1]).astype(int)
    chain = ClassifierChain(pate, chain_method=chain_method).fit(X, Y)
    assert chain.score(X, Y) > 0.6
    assert np.shape(MultiOutputClassifier(pate).fit(X, Y).predict_proba(X)) == (
        2,
        len(X),
        2,
    )


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.9])
def test_log_odds_are_positive_where_the_second_class_is_predicted(threshold, rows):
    X, y, X_public = rows
    pate = DPNewtonClassifier(epsilon=50.0, threshold=threshold)
    pate.fit(X, np.minimum(y, 1), X_public=PublicData(X_public))
    np.testing.assert_array_equal(pate.decision_function(X) > 0, pate.predict(X) == 1)
    assert np.all(np.isfinite(pate.decision_function(1e6 * X)))
