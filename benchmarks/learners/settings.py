"""Learners of the comparison, with settings that were fixed beforehand.

A setting comes from a paper, from the package's defaults, or from public numbers
(epsilon, dimension, number of classes): none was chosen by a score on these data.
"""

from collections.abc import Callable

import numpy as np
import torch
from scipy.optimize import brentq
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from skorch import NeuralNetClassifier
from torch import nn

from benchmarks.record import WORK
from benchmarks.tables.tabular import categories_and_numbers
from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.accounting import PrivacySpent
from sklearn_pate.accounting.composition import add_remove_to_replace_one
from sklearn_pate.learners import (
    DPLinearSVC,
    DPLogisticRegression,
    DPNewtonClassifier,
    DPSGDClassifier,
    PETDLClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.students import DistillationClassifier

DELTA = 1e-5
N_TEACHERS = 250
# Public, rounded number of patients in the private rows of Diabetes.
N_GROUPS = 50_000
# One poll serves all fits with equal teachers, seed and public rows.
VOTES = str(WORK / "votes")


class Linear(nn.Module):
    """Linear map from rows to logits."""

    def __init__(self, n_features, n_classes):
        super().__init__()
        self.map = nn.Linear(n_features, n_classes)

    def forward(self, X):
        """Return logits."""
        return self.map(X)


def logistic(C=1.0, **parameters):
    """Return a logistic regression with enough iterations to converge."""
    return LogisticRegression(C=C, max_iter=2000, **parameters)


def _pair(encoder, teacher, student):
    return make_pipeline(encoder, teacher), make_pipeline(encoder, student)


#: Teacher, student and number of queries of PATE, as in tabular.py.
PATE = {
    "Adult": (
        *_pair(
            categories_and_numbers(skewed=["capital-gain", "capital-loss"]),
            logistic(),
            logistic(0.1),
        ),
        "auto",
    ),
    "KDDCup99": (*_pair(categories_and_numbers(), logistic(), logistic()), "auto"),
    "Diabetes": (
        *_pair(
            categories_and_numbers(
                min_frequency=0.2,
                skewed=["number_outpatient", "number_emergency", "number_inpatient"],
            ),
            logistic(0.01, class_weight="balanced"),
            logistic(0.01),
        ),
        15369,  # all public rows, as single answers have little information
    ),
}


def _with_public(classifier, data, X, X_public, call):
    """Fit a learner on public rows too, with patients as groups if any."""
    groups = {} if data.groups_train is None else {"groups": data.groups_train}
    classifier.set_params(
        privacy_unit="group" if groups else "row", classes=np.unique(data.y_test)
    )
    public = PublicData(X_public)
    return getattr(classifier, call)(X, data.y_train, X_public=public, **groups)


def newton(data, epsilon, seed, call="fit", **parameters):
    """Fit noisy Newton steps on the original columns, for the metric of the data."""
    classifier = DPNewtonClassifier(epsilon=epsilon, random_state=seed, **parameters)
    if data.metric == "accuracy" and len(np.unique(data.y_test)) == 2:
        classifier.set_params(threshold="accuracy")
    if data.groups_train is not None:
        classifier.set_params(n_groups=N_GROUPS)
    return _with_public(classifier, data, data.frame_train, data.frame_public, call)


def default_teachers(data, epsilon, seed, call="fit", **parameters):
    """Fit PATE with 250 teachers, and its defaults otherwise, on the columns."""
    classifier = PATEClassifier(
        n_teachers=N_TEACHERS,
        memory=VOTES,
        epsilon=epsilon,
        random_state=seed,
        **parameters,
    )
    return _with_public(classifier, data, data.frame_train, data.frame_public, call)


def pate(data, epsilon, seed, call="fit", **parameters):
    """Fit PATE on the original columns; teachers and student encode and scale."""
    teacher, student, n_queries = PATE[data.name]
    settings = {
        "n_teachers": N_TEACHERS,
        "mechanism": "gnmax",
        "n_queries": n_queries,
        "representation": None,
        "vote": "plain",
        "memory": VOTES,
    }
    classifier = PATEClassifier(
        teacher, student, epsilon=epsilon, random_state=seed, **settings | parameters
    )
    return _with_public(classifier, data, data.frame_train, data.frame_public, call)


def private_knn(data, epsilon, seed, call="fit"):
    """Fit Private-kNN with its defaults and a logistic student."""
    classifier = PrivateKNNClassifier(logistic(), epsilon=epsilon, random_state=seed)
    return _with_public(classifier, data, data.X_train, data.X_public, call)


def petdl(data, epsilon, seed, call="fit"):
    """Fit logistic teachers with few rows each, and a student of their noisy sum.

    Rows have norm 1, so that teachers need weak regularisation.
    """
    classifier = PETDLClassifier(
        logistic(100.0),
        DistillationClassifier(logistic(100.0)),
        n_teachers=N_TEACHERS,
        epsilon=epsilon,
        memory=VOTES,
        random_state=seed,
    )
    return _with_public(classifier, data, data.X_train, data.X_public, call)


def output_logistic(data, epsilon, seed, call="fit"):
    """Add noise to the minimiser (Chaudhuri, Monteleoni, Sarwate 2011, Algorithm 1)."""
    classifier = DPLogisticRegression(method="output", epsilon=epsilon)
    return _linear(classifier, data, call)


def objective_logistic(data, epsilon, seed, call="fit"):
    """Add noise to the objective (their Algorithm 2)."""
    classifier = DPLogisticRegression(method="objective", epsilon=epsilon)
    return _linear(classifier, data, call)


def gaussian_svc(data, epsilon, seed, call="fit", delta=DELTA):
    """Add Gaussian noise to it (Redberg, Koskela, Wang 2023), with the Huber hinge."""
    classifier = DPLinearSVC(method="gaussian", epsilon=epsilon, delta=delta)
    return _linear(classifier, data, call)


def _linear(classifier, data, call):
    # The columns of a category sum to a constant, which replaces an intercept.
    classifier.set_params(data_norm=1.0, fit_intercept=False)
    return getattr(classifier, call)(data.X_train, data.y_train)


def dp_sgd(data, epsilon, seed, call="fit", delta=DELTA, max_grad_norm=1.0, **training):
    """Fit a linear map, with the batches of Abadi et al. (2016) for MNIST."""
    net = linear_net(data.X_train.shape[1], int(data.y_train.max()) + 1, **training)
    classifier = DPSGDClassifier(
        net,
        epsilon=epsilon,
        delta=delta,
        max_grad_norm=max_grad_norm,
        random_state=seed,
    )
    return getattr(classifier, call)(data.X_train, data.y_train)


def linear_net(n_features, n_classes, **training):
    """Return a linear map for skorch."""
    return NeuralNetClassifier(
        Linear,
        module__n_features=n_features,
        module__n_classes=n_classes,
        criterion=nn.CrossEntropyLoss,
        optimizer=torch.optim.SGD,
        train_split=None,
        verbose=0,
        **{"lr": 2.0, "batch_size": 600, "max_epochs": 15} | training,
    )


def not_private_logistic(data, seed):
    """Fit logistic regression without privacy."""
    return logistic().fit(data.X_train, data.y_train)


def not_private_boosting(data, seed):
    """Fit gradient boosting without privacy."""
    return HistGradientBoostingClassifier(random_state=seed).fit(
        data.X_train, data.y_train
    )


#: Private learners as functions of data, epsilon, seed, and the method to call: fit, or
#: plan_privacy.
PRIVATE = {
    "PATE, votes, hand-picked": pate,
    "Private-kNN": private_knn,
    "PETDL": petdl,
    "output perturbation": output_logistic,
    "objective perturbation": objective_logistic,
    "Gaussian objective perturbation": gaussian_svc,
    "DP-SGD, linear": dp_sgd,
}
NOT_PRIVATE = {
    "not private, logistic": not_private_logistic,
    "not private, boosting": not_private_boosting,
}


def replace_one_epsilon(spent: PrivacySpent) -> float:
    """Compute the epsilon of a statement for replacing one unit."""
    if spent.relation == "replace-one":
        return spent.epsilon
    return add_remove_to_replace_one(spent.curve).quiet_epsilon(spent.delta)


def own_epsilon(plan: Callable[[float], PrivacySpent], target: float) -> float:
    """Find an epsilon of a plan that costs at most `target` for replacing one unit.

    It is below the largest such epsilon by two thousandths of `target` at most.
    """
    if plan(target).relation == "replace-one":
        return target

    def excess(epsilon: float) -> float:
        return replace_one_epsilon(plan(epsilon)) - target

    tolerance = target / 1000
    return brentq(excess, target / 4, target / 2, xtol=tolerance) - tolerance
