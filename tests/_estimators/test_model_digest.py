"""Fingerprints of fitted models of other packages."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
import scipy.sparse as sp
import skops.io
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_blobs
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC

from tests.private import model_fingerprint

X, Y = make_blobs(200, centers=3, random_state=0)
MODELS = {
    "forest": RandomForestClassifier(5, random_state=0),
    "boosting": HistGradientBoostingClassifier(max_iter=3, random_state=0),
    "neighbours in a tree": KNeighborsClassifier(algorithm="kd_tree"),
    "vectors": SVC(),
    "network": MLPClassifier(max_iter=5, random_state=0),
    "process": GaussianProcessClassifier(),
    "spreading": LabelSpreading(),
    "calibrated": CalibratedClassifierCV(GaussianNB()),
    "search": GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}),
    "columns": make_pipeline(
        make_column_transformer((StandardScaler(), [0]), remainder="passthrough"),
        FunctionTransformer(np.tanh),
        LogisticRegression(random_state=np.random.RandomState(0)),
    ),
}
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(params=MODELS)
def model(request):
    return clone(MODELS[request.param]).fit(X, Y)


def test_sparse_rows_of_neighbours_count_by_their_values():
    rows = sp.csr_matrix(np.maximum(X, 0))
    model = KNeighborsClassifier().fit(rows, Y)
    model.predict(rows)
    copy = through_skops(model)
    assert model_fingerprint(copy) == model_fingerprint(model)
    copy._fit_X.data[3] += 1
    assert model_fingerprint(copy) != model_fingerprint(model)


def through_skops(model):
    saved = skops.io.dumps(model)
    return skops.io.loads(saved, trusted=skops.io.get_untrusted_types(data=saved))


@pytest.mark.slow
def test_a_model_keeps_its_fingerprint_in_copies_and_files(model):
    fingerprint = model_fingerprint(model)
    model.predict(X)
    copies = [deepcopy(model), pickle.loads(pickle.dumps(model)), through_skops(model)]
    copies.append(FrozenEstimator(model))
    assert {*map(model_fingerprint, [model, *copies])} == {fingerprint}


@pytest.mark.slow
def test_a_model_of_other_rows_has_another_fingerprint(model):
    changed = X + (np.arange(len(X)) == 7)[:, np.newaxis]
    assert model_fingerprint(clone(model).fit(changed, Y)) != model_fingerprint(model)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("var_", 2.0),
        ("classes_", np.array([0, 2, 1])),
        ("feature_names_in_", np.array(["b", "a"], dtype=object)),
        ("n_features_in_", 3),
        ("threshold_", 0.5),
    ],
)
def test_whatever_a_model_predicts_by_counts(name, value):
    model = GaussianNB().fit(X, Y)
    fingerprint = model_fingerprint(model)
    setattr(model, name, value)
    assert model_fingerprint(model) != fingerprint


def test_a_model_that_cannot_be_pickled_has_a_fingerprint():
    model = make_pipeline(FunctionTransformer(lambda rows: rows), GaussianNB())
    model.fit(X, Y).open_file = (number for number in range(3))
    model.itself = model
    assert len(model_fingerprint(model)) == 64
    assert len(model_fingerprint(object())) == 64
