"""Parameters of teachers and students that name labels mean these labels."""

import warnings

import numpy as np
import pytest
from imblearn.over_sampling import RandomOverSampler
from imblearn.pipeline import make_pipeline as make_sampling_pipeline
from lightgbm import LGBMClassifier
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    BaggingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer, recall_score
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import RadiusNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from skorch import NeuralNetClassifier
from torch import nn
from xgboost import XGBClassifier

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.distributed import cast_votes
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.students import (
    DistillationClassifier,
    GraphSelfTrainingClassifier,
    UncertaintyQueries,
)
from sklearn_pate.testing import seeded_noise
from tests.private import fit_class_indices, on_labels
from tests.seeding import equal_noise

X, CODES = make_classification(
    2000, 5, n_informative=3, class_sep=0.5, flip_y=0.3, random_state=0
)
X_PUBLIC = X[1500:]
X, CODES = X[:1500], CODES[:1500]


class Rarest(ClassifierMixin, BaseEstimator):
    """Compares labels in its code, as a user's own class may."""

    def __init__(self, rare=0):
        self.rare = rare

    def fit(self, X, y):
        self.inner_ = LogisticRegression().fit(X, y, 1 + 2.0 * (y == self.rare))
        self.classes_ = self.inner_.classes_
        return self

    def predict(self, X):
        return self.inner_.predict(X)

    def predict_proba(self, X):
        return self.inner_.predict_proba(X)


def weighted(label):
    return LogisticRegression(class_weight={label: 3})


# Estimators whose parameters name a label.
NAMING = {
    "a class weight": weighted,
    "in a pipeline": lambda label: make_pipeline(StandardScaler(), weighted(label)),
    "calibrated": lambda label: CalibratedClassifierCV(weighted(label), cv=2),
    "a forest": lambda label: RandomForestClassifier(
        5, class_weight={label: 3}, max_depth=3
    ),
    "lightgbm": lambda label: LGBMClassifier(
        n_estimators=5, class_weight={label: 3}, verbose=-1, n_jobs=1
    ),
    "resampled": lambda label: make_sampling_pipeline(
        RandomOverSampler(sampling_strategy={label: 4000}), LogisticRegression()
    ),
    "a threshold": lambda label: FixedThresholdClassifier(
        LogisticRegression(), threshold=0.3, pos_label=label
    ),
    "a score": lambda label: GridSearchCV(
        LogisticRegression(),
        {"class_weight": [None, {label: 3}]},
        scoring=make_scorer(recall_score, pos_label=label),
        cv=2,
    ),
    "outliers": lambda label: RadiusNeighborsClassifier(0.5, outlier_label=label),
    "priors": lambda label: GaussianNB(priors=[0.7, 0.3]),
    "own code": Rarest,
    "distillation": lambda label: DistillationClassifier(weighted(label)),
    "self-training": lambda label: SelfTrainingClassifier(weighted(label)),
    "self-training in a pipeline": lambda label: make_pipeline(
        StandardScaler(), SelfTrainingClassifier(weighted(label))
    ),
    "a graph": lambda label: GraphSelfTrainingClassifier(weighted(label)),
}
LABELS = [(1, 2), (-1, 1), ("alive", "died")]


def predicted(labels, mechanism=None, **changes):
    """Return predicted class indices of a fit under seeded noise."""
    votes = {"mechanism": GNMax(sigma=1), "epsilon": None, "n_queries": 400}
    pate = PATEClassifier(
        **({"estimator": LogisticRegression()} | changes),
        **({"mechanism": mechanism, "epsilon": 20.0} if mechanism else votes),
        n_teachers=10,
        representation=None,
        classes=labels,
        random_state=0,
    )
    # The noise is seeded, and weights may leave one class.
    with warnings.catch_warnings(), seeded_noise(0):
        warnings.simplefilter("ignore")
        pate.fit(X, np.array(labels)[CODES], X_public=PublicData(X_PUBLIC))
    return np.searchsorted(pate.classes_, pate.predict(X_PUBLIC))


@pytest.mark.slow
@pytest.mark.parametrize("labels", LABELS, ids=str)
@pytest.mark.parametrize("name", NAMING)
@pytest.mark.parametrize("role", ["estimator", "student"])
def test_a_label_in_a_parameter_is_that_label(role, name, labels):
    of_labels = predicted(labels, **{role: NAMING[name](labels[0])})
    of_codes = predicted((0, 1), **{role: NAMING[name](0)})
    np.testing.assert_array_equal(of_labels, of_codes)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a class weight", "in a pipeline", "a score"])
@pytest.mark.parametrize("mechanism", ["scores", "histogram"])
def test_a_student_of_soft_labels_keeps_them(mechanism, name):
    changes = {"student": NAMING[name]("alive")}
    if mechanism == "histogram":
        # The class shares of balanced votes would undo the weights.
        student = DistillationClassifier(changes["student"])
        changes = {"student": student, "vote": "plain"}
    share = np.mean(predicted(("alive", "died"), mechanism, **changes) == 0)
    assert share > 0.55


@pytest.mark.parametrize("label", [1, 2])
@pytest.mark.parametrize("role", ["estimator", "student"])
def test_a_weight_of_one_label_moves_predictions_to_it(role, label):
    share = np.mean(predicted((1, 2), **{role: weighted(label)}) == label - 1)
    assert share > 0.55


def test_a_strategy_trains_its_classifier_on_labels():
    def answered(labels, label):
        pate = PATEClassifier(
            LogisticRegression(),
            n_teachers=10,
            n_queries=40,
            query_strategy=UncertaintyQueries(student=weighted(label), n_rounds=2),
            mechanism=GNMax(sigma=1),
            epsilon=None,
            representation=None,
            classes=labels,
            random_state=0,
        )
        with equal_noise():
            pate.fit(X, np.array(labels)[CODES], X_public=PublicData(X_PUBLIC))
        return pate.queried_indices_

    np.testing.assert_array_equal(answered((1, 2), 1), answered((0, 1), 0))


def test_a_teacher_of_a_site_gets_labels():
    votes = cast_votes(
        weighted("alive"),
        X,
        np.array(["alive", "died"])[CODES],
        X_PUBLIC,
        classes=["alive", "died"],
        shard=0,
    )
    assert np.mean(votes == 0) > 0.7


@pytest.mark.parametrize(
    "student", [DistillationClassifier, GraphSelfTrainingClassifier]
)
def test_a_student_on_its_own_passes_labels_on(student):
    y = np.array([1, 2])[CODES]
    fitted = student(weighted(1)).fit(X, y)
    codes = student(weighted(0)).fit(X, CODES)
    np.testing.assert_array_equal(fitted.predict(X), codes.predict(X) + 1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(5, 2)

    def forward(self, X):
        return self.out(X.float()).softmax(dim=1)


# Estimators that number the labels, of which one parameter names labels.
REFUSED = {
    "a vote": VotingClassifier([("one", weighted(1))]),
    "a stack": StackingClassifier([("one", weighted(1))]),
    "a bag": make_pipeline(StandardScaler(), BaggingClassifier(weighted(1))),
    "a network": make_sampling_pipeline(
        RandomOverSampler(sampling_strategy={1: 4000}),
        NeuralNetClassifier(Net, verbose=0),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("role", ["estimator", "student"])
def test_a_parameter_that_cannot_mean_labels_is_refused(role, name):
    message = (
        rf"(class_weight|sampling_strategy) in {role}=\w+\(...\) names labels, but"
    )
    with pytest.raises(ValueError, match=message):
        predicted((1, 2), **{role: REFUSED[name]})


def test_a_refusal_of_labels_names_a_remedy():
    teacher = make_sampling_pipeline(
        RandomOverSampler(sampling_strategy={1: 4000}), XGBClassifier()
    )
    with pytest.raises(
        ValueError, match=r"fails.*Replace the labels in y and classes="
    ):
        predicted((1, 2), estimator=teacher)


@pytest.mark.parametrize("labels", [(0, 1), (0.0, 1.0), (False, True)])
def test_labels_that_are_class_indices_change_nothing(labels):
    estimator = weighted(1)
    assert on_labels("estimator", estimator, np.array(labels)) is estimator


@pytest.mark.parametrize(
    "estimator",
    [
        XGBClassifier(n_estimators=2),
        NeuralNetClassifier(Net, max_epochs=1, verbose=0),
        SelfTrainingClassifier(LogisticRegression()),
    ],
    ids=lambda one: type(one).__name__,
)
def test_an_estimator_of_class_indices_gets_them(estimator):
    labelled = on_labels("estimator", estimator, np.array(["alive", "died"]))
    codes = CODES.copy()
    codes[:5] = -1 if isinstance(estimator, SelfTrainingClassifier) else 0
    fitted = fit_class_indices(labelled, X, codes)
    assert type(fitted) is type(estimator)
    assert set(fitted.predict(X)) <= {0, 1}
