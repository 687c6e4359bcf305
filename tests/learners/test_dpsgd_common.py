"""scikit-learn's own checks, all of them: there is no list of expected failures.

Several checks fit twice and compare, so each fit has equal noise here.
"""

import numpy as np
import pytest
import torch
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator
from skorch import NeuralNetClassifier
from torch import nn

from sklearn_pate.learners import DPSGDClassifier
from sklearn_pate.testing import seeded_noise

pytestmark = pytest.mark.slow


class AnyRows(nn.Module):
    """Logits from any number of features."""

    def __init__(self, n_classes=2):
        super().__init__()
        self.logits = nn.Linear(3, n_classes)

    def forward(self, X):
        return self.logits(torch.stack([X[:, 0], X.mean(dim=1), X[:, -1]], dim=1))


class AnyClasses(NeuralNetClassifier):
    """Makes its module for as many classes as there are."""

    def initialize_module(self):
        self.set_params(module__n_classes=len(self.classes))
        return super().initialize_module()


def make(**parameters):
    defaults = {"epsilon": None, "noise_multiplier": 1.0, "random_state": 0}
    net = AnyClasses(
        AnyRows, criterion=nn.CrossEntropyLoss, batch_size=20, max_epochs=2, lr=0.1
    )
    return DPSGDClassifier(net, **(defaults | parameters))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "routing", [False, pytest.param(True, marks=pytest.mark.thorough)]
)
def test_check_estimator_has_no_failures(routing, monkeypatch):
    fit = seeded_noise(0)(DPSGDClassifier.fit)
    monkeypatch.setattr(DPSGDClassifier, "fit", fit)
    with config_context(enable_metadata_routing=routing):
        results = check_estimator(make(), on_fail=None, on_skip=None)
    failed = {
        result["check_name"]: result["exception"]
        for result in results
        if result["status"] not in ("passed", "skipped")
    }
    assert failed == {}
    assert len(results) > 45


def test_fits_differ_as_their_tag_says(blobs):
    X, y, _, _ = blobs
    clf = make()

    def predicted():
        return clf.fit(X, y).predict_proba(X).tolist()

    assert get_tags(clf).non_deterministic
    assert predicted() != predicted()


def test_it_works_in_pipelines_and_under_cross_validation(blobs):
    X, y, _, _ = blobs
    clf = make(noise_multiplier=0.1).set_params(
        estimator__max_epochs=10, estimator__lr=1.0
    )
    assert clone(clf).estimator.max_epochs == 10
    pipeline = make_pipeline(FunctionTransformer(lambda X: X / 10), clf)
    assert np.mean(cross_val_score(pipeline, X, y, cv=2)) > 0.8
