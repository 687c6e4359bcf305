"""Features of public rows in front of learners without public rows of their own."""

import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import skorch
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_moons
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from sklearn_pate import PATEClassifier, PublicData, privacy_leaks
from sklearn_pate.learners import DPLinearSVC, DPLogisticRegression, DPSGDClassifier
from sklearn_pate.model_selection import PrivateSearchCV
from sklearn_pate.students import ImageRepresentation, TableRepresentation
from tests.cases import thorough_but
from tests.seeding import equal_noise

CURVED = TableRepresentation(40, basis="rbf")


def linear_network(n_features):
    return skorch.NeuralNetClassifier(
        torch.nn.Linear,
        module__in_features=n_features,
        module__out_features=2,
        criterion=torch.nn.CrossEntropyLoss,
        batch_size=200,
        max_epochs=5,
        lr=2.0,
    )


LEARNERS = {
    "logistic": DPLogisticRegression(representation="auto"),
    "gaussian": DPLogisticRegression(representation=CURVED, method="gaussian"),
    "machine": DPLinearSVC(representation=CURVED),
    "dpsgd": DPSGDClassifier(linear_network(40), representation=CURVED, random_state=0),
}
every_learner = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(6500, noise=0.3, random_state=0)
    return X[:5000], y[:5000], PublicData(X[5000:5500]), X[5500:], y[5500:]


@pytest.mark.slow
@every_learner
def test_a_linear_model_has_a_curved_boundary(moons, learner):
    X, y, X_public, X_test, y_test = moons
    clf = clone(learner).set_params(epsilon=4.0, classes=[0, 1])
    clf.fit(X, y, X_public=X_public)
    assert clf.score(X_test, y_test) > 0.88  # without, 0.84
    assert clf.privacy_spent_.epsilon == pytest.approx(4.0, abs=1e-3)
    assert "Everybody may see the public rows" in clf.privacy_spent_.in_one_line()
    assert clf.plan_privacy(X, y, X_public=X_public) == clf.privacy_spent_


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", thorough_but(["objective"], ["objective", "gaussian"])
)
def test_a_table_of_text_and_numbers_needs_no_encoder(data_set, method):
    adult = data_set("adult", as_frame=True)
    X, y = adult.data, (adult.target == ">50K").to_numpy().astype(int)
    clf = DPLogisticRegression(method=method, representation="auto", classes=[0, 1])
    clf.fit(X[:8000], y[:8000], X_public=PublicData(X[20_000:23_000]))
    assert clf.score(X[23_000:26_000], y[23_000:26_000]) > 0.82
    assert clf.n_features_in_ == X.shape[1]
    published = clf.publish()
    assert_array_equal(published.predict(X[-99:]), clf.predict(X[-99:]))


def test_the_norm_is_read_from_public_rows(moons):
    X, y, X_public, *_ = moons
    clf = DPLogisticRegression(representation=CURVED).fit(X, y, X_public=X_public)
    of_components = 1 / np.arange(1, clf.coef_.shape[1] + 1)  # their variances
    assert clf.data_norm_ == pytest.approx(math.sqrt(of_components.sum()))
    again = clone(clf).fit(100 * X[:500], y[:500], X_public=X_public)
    assert again.data_norm_ == clf.data_norm_
    bounded = clone(clf).set_params(data_norm=0.5).fit(X, y, X_public=X_public)
    assert bounded.data_norm_ == 0.5


def test_a_table_of_patients_may_have_missing_values():
    table = load_diabetes(as_frame=True)
    X, y = table.data, (table.target > 140).to_numpy().astype(int)
    X = X.mask(np.random.RandomState(0).random(X.shape) < 0.1)
    clf = DPLogisticRegression(representation="auto", epsilon=100.0, classes=[0, 1])
    clf.fit(X[:300], y[:300], X_public=PublicData(X[300:400]))
    assert clf.predict_proba(X[400:]).shape == (42, 2)
    assert clf.score(X[400:], y[400:]) > 0.6
    values = X[400:].to_numpy(copy=True)
    values[0] = np.inf
    clf.fit(X[:300].to_numpy(), y[:300], X_public=PublicData(X[300:400].to_numpy()))
    assert_array_equal(clf.publish().predict(values), clf.predict(values))


@pytest.mark.slow
@pytest.mark.parametrize("representation", [PCA(5), ImageRepresentation(n_filters=20)])
def test_another_representation_transforms_each_row_alone(digits, representation):
    X, y = digits
    X = X.reshape(-1, 8, 8) if isinstance(representation, ImageRepresentation) else X
    clf = DPLogisticRegression(representation=representation, epsilon=100.0)
    clf.fit(X[:1000], y[:1000], X_public=PublicData(X[1000:1400]))
    assert clf.score(X[1400:], y[1400:]) > 0.6
    codes = {one.code for one in clf.privacy_spent_.assumptions}
    assert {"representation-public", "representation-row-alone"} <= codes


@pytest.mark.neighbours
@pytest.mark.parametrize("name", ["curved", "PCA"])
def test_a_row_that_joins_changes_no_bit_of_the_features_of_others(name, monkeypatch):
    X = np.random.RandomState(0).standard_normal((900, 36))
    y, X_public = (X[:, 0] > 0).astype(int), PublicData(X[700:])
    representation = {"curved": CURVED, "PCA": PCA(20)}[name]
    clf = DPLogisticRegression(method="gaussian", representation=representation)
    whole = clf._plan(X[:402], y[:402], X_public=X_public).rows.X
    joined = np.vstack([np.full((1, 36), 1e300), X[:402]])
    more = clf._plan(joined, np.r_[0, y[:402]], X_public=X_public).rows.X
    assert_array_equal(more[1:], whole)
    odd = X[:402].copy()
    odd[7] = np.nan
    replaced = clf._plan(odd, y[:402], X_public=X_public).rows.X
    kept = np.arange(402) != 7
    assert_array_equal(replaced[kept], whole[kept])
    assert np.isfinite(replaced).all()


@pytest.mark.neighbours
def test_curved_features_of_a_row_are_the_same_in_any_position():
    X = np.random.RandomState(1).standard_normal((1102, 36))
    fitted = FrozenEstimator(TableRepresentation(basis="rbf").fit(X[:700]))
    together = fitted.transform(X)
    assert together.shape == (1102, 70)
    for start, stop in ((1, 1102), (3, 1102), (0, 1101), (64, 101)):
        assert_array_equal(fitted.transform(X[start:stop]), together[start:stop])
    for row in (0, 5, 1101):
        assert_array_equal(fitted.transform(X[row : row + 1])[0], together[row])


def test_a_frozen_step_in_front_is_named_unless_it_keeps_rows_apart():
    X = np.random.RandomState(0).standard_normal((200, 5))
    learner = DPSGDClassifier(linear_network(4))
    table = FrozenEstimator(TableRepresentation(4, basis="rbf").fit(X))
    assert privacy_leaks(make_pipeline(table, learner)) == []
    [leak] = privacy_leaks(make_pipeline(FrozenEstimator(PCA(4).fit(X)), learner))
    assert "last bits" in leak.reason
    assert "representation=" in leak.remedy


@pytest.mark.slow
def test_teachers_take_the_same_features(moons):
    X, y, X_public, X_test, y_test = moons
    clf = PATEClassifier(representation=CURVED, n_teachers=50, random_state=0)
    assert clf.fit(X, y, X_public=X_public).score(X_test, y_test) > 0.85


@pytest.mark.thorough
def test_a_search_passes_public_rows_on(moons):
    X, y, X_public, X_test, y_test = moons
    learner = DPLogisticRegression(representation=CURVED, epsilon=2.0)
    search = PrivateSearchCV(
        learner, {"C": [0.01, 0.1]}, mean_n_trials=2, classes=[0, 1]
    )
    search.fit(X, y, X_public=X_public)
    assert search.score(X_test, y_test) > 0.8


def test_equal_noise_gives_equal_models(moons):
    X, y, X_public, *_ = moons
    fits = [
        equal_noise()(clone(LEARNERS["logistic"]).fit)(X, y, X_public=X_public)
        for _ in range(2)
    ]
    assert_array_equal(fits[0].coef_, fits[1].coef_)


def test_parameters_are_cloned_and_changed():
    clf = clone(DPLinearSVC(representation=CURVED))
    assert clf.get_params()["representation__n_components"] == 40
    clf.set_params(representation__n_components=7)
    assert clf.representation.n_components == 7
    assert CURVED.n_components == 40


BAD = {
    "no public rows": ({}, None, r"representation=TableRepresentation\(.*pass fit\("),
    "not needed": ({"representation": None}, [[0.0, 1.0]], "does not read X_public"),
    "no transformer": ({"representation": "pca"}, [[0.0, 1.0]], "not a transformer"),
    "other columns": ({}, [[0.0], [1.0]], r"X_public has shape \(2, 1\)"),
    "no numbers": (
        {"representation": TableRepresentation(None)},
        sp.csr_array(np.eye(2)),
        "makes a sparse matrix",
    ),
}


@pytest.mark.parametrize(("parameters", "X_public", "message"), BAD.values(), ids=BAD)
def test_bad_input(parameters, X_public, message):
    X, y = np.random.RandomState(0).standard_normal((60, 2)), np.arange(60) % 2
    X = sp.csr_array(X) if sp.issparse(X_public) else X
    clf = DPLogisticRegression(representation=CURVED, data_norm=1.0)
    with pytest.raises(ValueError, match=message):
        clf.set_params(**parameters).fit(X, y, X_public=X_public)
    assert not hasattr(clf, "coef_")


def test_public_rows_are_not_the_private_ones(moons):
    X, y, *_ = moons
    with pytest.raises(ValueError, match="shares rows with it in memory"):
        DPLogisticRegression(representation="auto").fit(X, y, X_public=X[:99])


def test_columns_have_the_names_of_the_fit(moons):
    X, y, X_public, *_ = moons
    names = ["one", "two"]
    clf = DPLogisticRegression(representation=CURVED, epsilon=50.0)
    clf.fit(
        pd.DataFrame(X, columns=names),
        y,
        X_public=PublicData(pd.DataFrame(X_public.X, columns=names)),
    )
    assert list(clf.feature_names_in_) == names
    rows = pd.DataFrame(X[:5], columns=names)
    assert_allclose(
        clf.publish().predict_proba(rows), clf.predict_proba(rows), rtol=1e-12
    )
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(rows[names[::-1]])


def test_sparse_rows_have_linear_features():
    X = sp.random_array((900, 200), density=0.05, random_state=0, format="csr")
    y = (X.sum(axis=1) > 5).astype(int)
    clf = DPLogisticRegression(representation="auto", epsilon=50.0)
    clf.fit(X[:700], y[:700], X_public=PublicData(X[700:]))
    assert clf.coef_.shape == (1, 46)
    assert_array_equal(clf.publish().predict(X), clf.predict(X))


def test_a_pipeline_may_end_in_it(moons):
    X, y, X_public, *_ = moons
    pipeline = make_pipeline(Normalizer(), DPLogisticRegression(representation="auto"))
    pipeline.fit(X, y, dplogisticregression__X_public=X_public)
    assert pipeline.predict(X[:3]).shape == (3,)
