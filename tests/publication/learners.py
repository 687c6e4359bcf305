"""Private classifiers of every kind."""

import numpy as np
import skorch
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.learners import (
    Clusters,
    DPLinearSVC,
    DPLogisticRegression,
    DPNaiveBayesClassifier,
    DPNewtonClassifier,
    DPSGDClassifier,
    PETDLClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.model_selection import PrivateSearchCV
from sklearn_pate.students import TableRepresentation

CLASSES = ["ill", "unsure", "well"]
LINEAR = {"feature_bounds": (-15.0, 15.0), "classes": CLASSES}


class Net(torch.nn.Module):
    """A network of somebody's own."""

    def __init__(self, n_hidden=4):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(2, n_hidden), torch.nn.ReLU(), torch.nn.Linear(n_hidden, 3)
        )

    def forward(self, X):
        return self.layers(X)


def network(module=Net, **parameters):
    given = {"batch_size": 100, "max_epochs": 2, "lr": 0.5} | parameters
    return skorch.NeuralNetClassifier(
        module, **({"criterion": torch.nn.CrossEntropyLoss} | given)
    )


PUBLIC = {"n_queries": 20, "classes": CLASSES, "random_state": 0}
LEARNERS = {
    "pate": PATEClassifier(LogisticRegression(), n_teachers=40, **PUBLIC),
    "knn": PrivateKNNClassifier(LogisticRegression(), **PUBLIC),
    "newton": DPNewtonClassifier(classes=CLASSES, random_state=0),
    "petdl": PETDLClassifier(
        LogisticRegression(),
        LogisticRegression(),
        n_teachers=40,
        batches=Clusters(20),
        classes=CLASSES,
        random_state=0,
    ),
    "objective": DPLogisticRegression(**LINEAR),
    "output": DPLogisticRegression(method="output", **LINEAR),
    "gaussian": DPLinearSVC(method="gaussian", **LINEAR),
    "represented": DPLogisticRegression(representation="auto", classes=CLASSES),
    "counts": DPNaiveBayesClassifier((-15.0, 15.0), classes=CLASSES),
    "dpsgd": DPSGDClassifier(network(module__n_hidden=5), classes=CLASSES),
    "represented dpsgd": DPSGDClassifier(
        network(), representation=TableRepresentation(2), classes=CLASSES
    ),
    "pure search": PrivateSearchCV(
        make_pipeline(Normalizer(), DPLogisticRegression(data_norm=1.0)),
        {"dplogisticregression__C": [0.1, 1.0]},
        n_trials_distribution="geometric",
        mean_n_trials=2,
        classes=CLASSES,
    ),
    "search": PrivateSearchCV(
        PATEClassifier(LogisticRegression(), n_teachers=40, n_queries=20),
        {"epsilon": [0.5, 1.0]},
        mean_n_trials=2,
        classes=CLASSES,
    ),
    "disjoint search": PrivateSearchCV(
        PrivateKNNClassifier(LogisticRegression(), n_queries=20),
        {"epsilon": [0.5, 1.0]},
        n_trials_distribution="disjoint",
        classes=CLASSES,
    ),
    "search of networks": PrivateSearchCV(
        # Of given noise, as the search of a scale takes a second in each fit.
        make_pipeline(
            Normalizer(),
            DPSGDClassifier(network(), epsilon=None, noise_multiplier=1.5),
        ),
        {"dpsgdclassifier__max_grad_norm": [0.5, 1.0]},
        mean_n_trials=2,
        classes=CLASSES,
    ),
}
TRUSTED = [Net]
WITHOUT_PUBLIC = (
    *("objective", "output", "gaussian", "counts", "dpsgd", "pure search"),
    "search of networks",
)


def fit(learner, rows, *, public=True):
    X, y = rows
    given = {"X_public": PublicData(X[2000:2200])} if public else {}
    return clone(learner).fit(X[:2000], y[:2000], **given)


def assert_predicts_alike(one, other, X):
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    for method in ("predict_proba", "decision_function"):
        assert hasattr(one, method) == hasattr(other, method)
        if hasattr(one, method):
            of_one, of_other = getattr(one, method)(X), getattr(other, method)(X)
            # A copy lies elsewhere in memory, which decides the last bits of a sum.
            np.testing.assert_allclose(of_one, of_other, rtol=1e-12, atol=1e-14)
