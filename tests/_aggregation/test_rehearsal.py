"""Rehearsals on public rows, before any private row is learned from or paid for."""

import random
import warnings
from inspect import signature
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import all_estimators

from sklearn_pate import PATEClassifier, PrivacyLedger, PublicData
from sklearn_pate.inspection import plan
from sklearn_pate.learners import (
    Clusters,
    PETDLClassifier,
    PrivateKNNClassifier,
    RandomBatches,
)
from sklearn_pate.model_selection import PrivateSearchCV
from sklearn_pate.students import DistillationClassifier, GraphSelfTrainingClassifier
from sklearn_pate.testing import seeded_noise
from tests.private import _aggregation, _petdl, _rehearsal, rehearse_student

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
Y = RNG.integers(2, size=600)
X = RNG.normal(size=(600, 2)) + 2 * Y[:, np.newaxis]
X_PUBLIC = RNG.normal(size=(200, 2)) + 2 * RNG.integers(2, size=(200, 1))
# As private rows are moved away, a teacher can tell them from public ones.
FAR = 100.0


class TeacherOfPublicRows(GaussianNB):
    """Counts the fits on private rows in all of this process."""

    private_fits = 0

    def fit(self, X, y):
        type(self).private_fits += np.mean(np.asarray(X)) > FAR / 2
        return super().fit(X, y)


class NeedsRows(GaussianNB):
    """Refuses fewer than 150 different rows, and keeps the numbers it was given."""

    given: ClassVar[list[int]] = []

    def fit(self, X, y):
        self.given.append(len(np.unique(X, axis=0)))
        if self.given[-1] < 150:
            raise ValueError("too few rows")
        return super().fit(X, y)


class NoUnlabeled(GaussianNB):
    """Accepts unlabelled rows by its attribute only."""

    accepts_unlabeled = True

    def fit(self, X, y):
        if np.any(y < 0):
            raise ValueError("labels must not be negative")
        return super().fit(X, y)


class NeverLearns(ClassifierMixin, BaseEstimator):
    """Fails in any fit."""

    def fit(self, X, y):
        raise RuntimeError("out of paper")

    def predict_proba(self, X):
        raise AssertionError

    def predict(self, X):
        raise AssertionError


class OtherLabels(GaussianNB):
    """Predicts what it was not fitted on."""

    def predict(self, X):
        return np.full(len(X), "ill")


FAILING_STUDENTS = {
    "never": (NeverLearns(), "RuntimeError: out of paper"),
    "negative": (NoUnlabeled(), "labels must not be negative"),
    "too many neighbours": (KNeighborsClassifier(500), "n_neighbors = 500"),
    "other labels": (OtherLabels(), "not one class index per row"),
}


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "patients.sqlite", epsilon=300, delta=1e-5)


@pytest.fixture(autouse=True)
def no_private_fit():
    TeacherOfPublicRows.private_fits = 0


def pate(**parameters):
    defaults = {"estimator": TeacherOfPublicRows(), "n_teachers": 10, "n_queries": 50}
    return PATEClassifier(**(defaults | parameters))


def petdl(student, **parameters):
    return PETDLClassifier(
        TeacherOfPublicRows(),
        student,
        n_teachers=10,
        batches=Clusters(20),
        **parameters,
    )


def knn(student, **parameters):
    return PrivateKNNClassifier(student, n_queries=50, **parameters)


def fit(learner, **arguments):
    return learner.fit(X + FAR, Y, X_public=PublicData(X_PUBLIC), **arguments)


def fit_pate(student, **parameters):
    fit(pate(student=student, **parameters))


def fit_histograms(student, **parameters):
    fit(pate(student=student, mechanism="histogram", **parameters))


def fit_from_votes(student, **parameters):
    votes = np.resize([0, 1], (10, len(X_PUBLIC)))
    learner = pate(student=student, classes=[0, 1], n_teachers="auto", **parameters)
    learner.fit_from_votes(X_PUBLIC, votes)


def fit_petdl(student, **parameters):
    fit(petdl(student, **parameters))


def fit_from_outputs(student, **parameters):
    outputs = np.full((10, len(X_PUBLIC), 2), 0.5)
    learner = petdl(student, classes=[0, 1], **parameters).set_params(n_teachers="auto")
    learner.fit_from_outputs(X_PUBLIC, outputs)


def fit_knn(student, **parameters):
    fit(knn(student, **parameters))


def search(student, ledger):
    learner = pate(student=student, random_state=0)
    found = PrivateSearchCV(learner, {"n_queries": [40, 50]}, ledger=ledger)
    found.fit(X + FAR, Y, X_public=PublicData(X_PUBLIC))


@pytest.mark.parametrize("case", FAILING_STUDENTS)
@pytest.mark.parametrize(
    "fit_with",
    [
        fit_pate,
        fit_histograms,
        fit_from_votes,
        fit_petdl,
        fit_from_outputs,
        fit_knn,
        search,
    ],
)
def test_a_student_that_fails_costs_nothing(fit_with, case, ledger):
    student, reason = FAILING_STUDENTS[case]
    with pytest.raises(ValueError, match=r"^student=") as caught:
        fit_with(student, ledger=ledger)
    assert reason in str(caught.value)
    assert "Nothing was charged" in str(caught.value)
    assert not hasattr(caught.value.__cause__, "__notes__")
    assert ledger.entries() == []
    assert TeacherOfPublicRows.private_fits == 0


@pytest.mark.parametrize("call", [plan, PATEClassifier.plan_privacy])
def test_a_plan_tells_it_too(call):
    learner = pate(student=NeverLearns())
    with pytest.raises(ValueError, match="out of paper"):
        call(learner, X, Y, X_public=X_PUBLIC)


def frames():
    """Rows with a column of rare words, and missing values in the other one."""
    words = RNG.permutation([f"word {number}" for number in range(100)] * 8)
    frame = pd.DataFrame({"word": words, "number": RNG.normal(size=800)})
    frame.loc[::9, "number"] = np.nan
    return frame[:600], frame[600:].reset_index(drop=True)


def of_words(classifier, **encoder):
    columns = make_column_transformer(
        (OneHotEncoder(**encoder), ["word"]), (SimpleImputer(), ["number"])
    )
    return make_pipeline(columns, classifier)


def of_missing(classifier):
    return make_pipeline(
        make_column_transformer(("passthrough", ["number"])), classifier
    )


GOOD = of_words(LogisticRegression(), handle_unknown="ignore")
BAD = {
    "unknown words": (of_words(LogisticRegression()), "unknown categories"),
    "missing values": (of_missing(LogisticRegression()), "contains NaN"),
}
FRAME_LEARNERS = {
    "PATE": lambda **parameters: PATEClassifier(n_queries=50, **parameters),
    "PETDL": lambda **parameters: PETDLClassifier(
        **parameters, batches=RandomBatches(20)
    ),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("learner", FRAME_LEARNERS)
@pytest.mark.parametrize("part", ["estimator", "student"])
def test_encoders_and_missing_values_are_told_before(learner, part, case, ledger):
    if (learner, part, case) == ("PETDL", "student", "unknown words"):
        pytest.skip("random batches of all public rows have all words")
    private, public = frames()
    bad, reason = BAD[case]
    clf = FRAME_LEARNERS[learner](
        **({"estimator": GOOD, "student": GOOD} | {part: bad}),
        n_teachers=10,
        ledger=ledger,
    )
    with pytest.raises(ValueError, match=f"^{part}=") as caught:
        clf.fit(private, Y, X_public=PublicData(public))
    assert reason in str(caught.value)
    assert "handle_unknown='ignore'" in str(caught.value)
    assert ledger.entries() == []


@pytest.mark.parametrize("learner", FRAME_LEARNERS)
def test_good_pipelines_pass(learner):
    private, public = frames()
    clf = FRAME_LEARNERS[learner](estimator=GOOD, student=GOOD, n_teachers=10)
    clf.plan_privacy(private, Y, X_public=PublicData(public))


class Outputs(GaussianNB):
    """Predicts as it should, but its probabilities are changed."""

    def __init__(self, change=None):
        super().__init__()
        self.change = change

    def predict_proba(self, X):
        return self.change(super().predict_proba(X))


def negative(probabilities):
    return probabilities - 1


def missing(probabilities):
    return np.full_like(probabilities, np.nan)


def halved(probabilities):
    return probabilities / 2


def twice_as_wide(probabilities):
    return np.hstack([probabilities, probabilities]) / 2


def of_one_class(probabilities):
    return probabilities[:, 1]


def teach_votes(teacher, **parameters):
    fit(pate(estimator=teacher, student=GaussianNB(), **parameters))


def teach_scores(teacher, **parameters):
    parameters = {"n_queries": "auto", "mechanism": "scores"} | parameters
    fit(pate(estimator=teacher, **parameters))


def teach_petdl(teacher, **parameters):
    student = DistillationClassifier(GaussianNB())
    fit(petdl(student, **parameters).set_params(estimator=teacher))


@pytest.mark.parametrize(
    "change", [negative, missing, halved, twice_as_wide, of_one_class]
)
@pytest.mark.parametrize(
    "fit_with", [teach_votes, teach_scores, teach_petdl, fit_pate, fit_from_votes]
)
def test_outputs_that_are_no_probabilities_cost_nothing(change, fit_with, ledger):
    with pytest.raises(ValueError, match=r"^(estimator|student)=.*no class probabil"):
        fit_with(Outputs(change), ledger=ledger)
    assert not ledger.entries()


def test_of_one_public_row_nothing_is_tried():
    pate(student=NeverLearns(), n_queries=1).plan_privacy(X, Y, X_public=X_PUBLIC[:1])


def test_of_a_teacher_with_more_rows_than_are_public_outputs_alone_count():
    learner = pate(estimator=NeverLearns(), student=GaussianNB(), n_queries=10)
    learner.plan_privacy(X, Y, X_public=X_PUBLIC[:59])
    with pytest.raises(ValueError, match=r"^estimator="):
        learner.plan_privacy(X, Y, X_public=X_PUBLIC[:60])
    learner.estimator = Outputs(negative)
    with pytest.raises(ValueError, match="no class probabilities"):
        learner.plan_privacy(X, Y, X_public=X_PUBLIC[:59])


@pytest.mark.parametrize("n_public", [50, 200])
def test_no_teacher_has_too_few_rows_where_groups_are_the_unit(n_public):
    teacher = KNeighborsClassifier(400)
    learner = pate(estimator=teacher, student=GaussianNB(), privacy_unit="group")
    arguments = {"X_public": X_PUBLIC[:n_public], "groups": np.arange(len(X))}
    learner.plan_privacy(X, Y, **arguments)


def test_few_rows_are_tried_first_where_groups_are_the_unit(monkeypatch):
    monkeypatch.setattr(_rehearsal, "_MANY_ROWS", 120)
    public = np.vstack([X_PUBLIC, X_PUBLIC + 0.5])
    learner = pate(estimator=NeedsRows(), student=GaussianNB(), privacy_unit="group")
    learner.plan_privacy(X, Y, X_public=public, groups=np.arange(len(X)))
    assert NeedsRows.given == [120, 200]


def test_a_teacher_that_fails_is_told_of_where_groups_are_the_unit():
    learner = pate(estimator=NeverLearns(), student=GaussianNB(), privacy_unit="group")
    with pytest.raises(ValueError, match=r"^estimator=.*out of paper"):
        learner.plan_privacy(X, Y, X_public=X_PUBLIC, groups=np.arange(len(X)))


@pytest.mark.parametrize(
    ("student", "n_labeled", "n_classes"),
    [
        (KNeighborsClassifier(150), 200, 2),
        (CalibratedClassifierCV(GaussianNB(), cv=5), 30, 10),
        (CalibratedClassifierCV(GaussianNB(), cv=40), 100, 2),
        (MLPClassifier(early_stopping=True, max_iter=2), 40, 10),
    ],
)
def test_too_few_rows_or_classes_are_no_reason(student, n_labeled, n_classes):
    rehearse_student(
        student, X_PUBLIC, n_labeled=n_labeled, n_classes=n_classes, soft=False, seed=0
    )


def test_more_classes_than_a_student_can_have_are():
    class OfTwo(GaussianNB):
        def fit(self, X, y):
            if len(np.unique(y)) > 2:
                raise ValueError("two classes only")
            return super().fit(X, y)

    with pytest.raises(ValueError, match="two classes only"):
        rehearse_student(
            OfTwo(), X_PUBLIC, n_labeled=100, n_classes=3, soft=False, seed=0
        )


INNER = {
    "estimator": LogisticRegression(),
    "base_estimator": LogisticRegression(),  # a chain, before scikit-learn 1.7
    "estimators": [("first", GaussianNB()), ("second", LogisticRegression())],
}
# One column of y is not what they learn from.
OF_SEVERAL_OUTPUTS = {"ClassifierChain", "MultiOutputClassifier"}
OF_TWO_CLASSES = {"FixedThresholdClassifier", "TunedThresholdClassifierCV"}


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::FutureWarning")  # of deprecated ones
@pytest.mark.parametrize("n_labeled", [20, 100, 2000])
@pytest.mark.parametrize("n_classes", [2, 10])
def test_no_classifier_of_sklearn_is_refused_wrongly(n_classes, n_labeled):
    rows = np.random.RandomState(0).randint(4, size=(2500, 6)).astype(float)
    refused = set()
    for name, kind in all_estimators("classifier"):
        names = signature(kind).parameters
        inner = {key: INNER[key] for key in INNER if key in [*names][:1]}
        student = kind(**inner)
        if name == "RadiusNeighborsClassifier":
            student.set_params(radius=10.0)  # others have rows without a neighbour
        try:
            rehearse_student(
                student,
                rows,
                n_labeled=n_labeled,
                n_classes=n_classes,
                soft=False,
                seed=0,
            )
        except ValueError:
            refused.add(name)
    unable = OF_SEVERAL_OUTPUTS | (OF_TWO_CLASSES if n_classes > 2 else set())
    assert refused == unable


def skip(*arguments, **parameters):
    """Rehearse nothing."""


@pytest.mark.parametrize(
    "fit_with",
    [
        lambda seeds: fit(pate(**seeds, estimator=RandomForestClassifier(5))),
        lambda seeds: fit(pate(**seeds, student=GraphSelfTrainingClassifier())),
        lambda seeds: fit(petdl(DistillationClassifier(), **seeds)),
        lambda seeds: fit(knn(None, **seeds)),
    ],
    ids=["PATE", "PATE, graph", "PETDL", "Private-kNN"],
)
@pytest.mark.filterwarnings("ignore::sklearn_pate.PrivacyLeakWarning")
@pytest.mark.filterwarnings("ignore::sklearn_pate.StudentWarning")
def test_it_changes_no_bit_of_what_follows(fit_with, monkeypatch):
    results = []
    for skipped in (False, True):
        if skipped:
            for module in (_aggregation, _petdl):
                for name in ("rehearse_teacher", "rehearse_student"):
                    monkeypatch.setattr(module, name, skip, raising=False)
        np.random.seed(0)
        with seeded_noise(0):
            clf = fit_with({"random_state": 0, "epsilon": 50})
        released = getattr(clf, "answers_", None)
        if released is None:
            released = clf.released_
        results.append((released, clf.predict_proba(X), np.random.rand(3)))
    for first, second in zip(*results, strict=True):
        np.testing.assert_array_equal(first, second)


def test_global_generators_and_warnings_are_left_alone():
    class Loud(GaussianNB):
        def fit(self, X, y):
            random.random()
            np.random.rand()
            print("one more fit")
            warnings.warn("a fit", UserWarning, stacklevel=2)
            return super().fit(X, y)

    states = random.getstate(), np.random.get_state()[1].tolist()
    pate(estimator=Loud(), random_state=0).plan_privacy(X, Y, X_public=X_PUBLIC)
    assert states == (random.getstate(), np.random.get_state()[1].tolist())


def test_it_prints_nothing(capsys):
    class Printing(GaussianNB):
        def fit(self, X, y):
            print("one more fit")
            return super().fit(X, y)

    pate(estimator=Printing()).plan_privacy(X, Y, X_public=X_PUBLIC)
    assert capsys.readouterr().out == ""


def test_networks_are_trained_for_one_epoch():
    epochs = []

    class Network(GaussianNB):
        def __init__(self, max_epochs=1000):
            super().__init__()
            self.max_epochs = max_epochs

        def fit(self, X, y):
            epochs.append(self.max_epochs)
            return super().fit(X, y)

    pate(student=make_pipeline(SimpleImputer(), Network())).plan_privacy(
        X, Y, X_public=X_PUBLIC
    )
    assert epochs == [1]
