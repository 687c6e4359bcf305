"""Audits of learners: sound ones pass, planted defects are found."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from skorch import NeuralNetClassifier
from torch import nn

from sklearn_pate.inspection import audit_neighbours
from sklearn_pate.learners import (
    Clusters,
    DPLinearSVC,
    DPLogisticRegression,
    DPSGDClassifier,
    PETDLClassifier,
)
from sklearn_pate.model_selection import PrivateSearchCV
from tests.cases import thorough_but
from tests.private import PrivateRows, _dpsgd_training, _noisy_training

N_ROWS = 12
# A strong regularisation: the shift is then near the bound that is paid for.
LINEAR = {"C": 0.01, "data_norm": 1.0, "fit_intercept": False, "delta": 1e-3}
X, Y = np.ones((N_ROWS, 1)), np.arange(N_ROWS) % 2
TURNED = X, np.where(np.arange(N_ROWS) == 0, 1, Y)
ONE_MORE = np.ones((N_ROWS + 1, 1)), np.append(Y, 1)


def weight(fitted):
    return fitted.coef_[0, 0]


def audit(estimator, neighbour, statistic=weight, n_runs=200):
    return audit_neighbours(
        estimator, (X, Y), neighbour, statistic=statistic, n_runs=n_runs
    )


LEARNERS = {
    "output": (DPLogisticRegression(method="output", **LINEAR), TURNED),
    "objective": (DPLogisticRegression(method="objective", **LINEAR), TURNED),
    "Gaussian objective": (DPLinearSVC(method="gaussian", **LINEAR), ONE_MORE),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", thorough_but([*LEARNERS][:1], LEARNERS))
def test_sound_noise_in_training_is_not_contradicted(name):
    result = audit(*LEARNERS[name])
    assert not result.contradicted
    assert result.epsilon_claimed <= 1


def quieten(monkeypatch, factor):
    """Plant a defect: less noise than is paid for."""
    for module in (_noisy_training, _dpsgd_training):
        for law in {"gamma_vector", "standard_normal"} & vars(module).keys():
            sound = getattr(module, law)
            monkeypatch.setattr(
                module, law, lambda *given, sound=sound: sound(*given) / factor
            )


@pytest.mark.slow
@pytest.mark.parametrize("name", thorough_but([*LEARNERS][:1], LEARNERS))
def test_noise_of_a_tenth_of_its_scale_is_found(name, monkeypatch):
    quieten(monkeypatch, 10)
    assert audit(*LEARNERS[name]).contradicted


@pytest.mark.thorough
def test_a_private_search_is_not_contradicted():
    search = PrivateSearchCV(
        DPLogisticRegression(method="output", **LINEAR),
        {"C": [0.1, 1.0]},
        mean_n_trials=2,
        delta=1e-3,
    )
    result = audit(
        search, TURNED, lambda fitted: weight(fitted.best_estimator_), n_runs=100
    )
    assert not result.contradicted


def test_neighbours_are_those_of_the_statement():
    objective, gaussian = LEARNERS["objective"][0], LEARNERS["Gaussian objective"][0]
    with pytest.raises(ValueError, match="replace one row"):
        audit(objective, ONE_MORE)
    with pytest.raises(ValueError, match="add or remove one row"):
        audit(gaussian, TURNED)


def test_an_estimator_without_a_stated_cost_is_refused():
    from sklearn.linear_model import LogisticRegression

    with pytest.raises(ValueError, match="cannot state its privacy cost"):
        audit(LogisticRegression(), TURNED)


class Linear(nn.Linear):
    """A map of one number to the scores of two classes."""

    def __init__(self):
        super().__init__(1, 2)


def dpsgd():
    net = NeuralNetClassifier(
        Linear, criterion=nn.CrossEntropyLoss, lr=1.0, batch_size=N_ROWS, max_epochs=1
    )
    # The noise of about epsilon=0.2: to find it for each fit takes most of an audit.
    return DPSGDClassifier(
        net,
        epsilon=None,
        noise_multiplier=16.0,
        delta=1e-3,
        accountant="rdp",
        classes=[0, 1],
        random_state=0,
    )


def probability(fitted):
    return fitted.predict_proba(np.ones((1, 1)))[0, 1]


@pytest.mark.thorough
def test_noise_that_is_missing_in_steps_is_found(monkeypatch):
    quieten(monkeypatch, 1e4)
    result = audit(dpsgd(), ONE_MORE, probability, n_runs=50)
    assert result.epsilon_claimed < 0.5
    assert result.contradicted


class NearestRow(ClassifierMixin, BaseEstimator):
    """Predicts the label of the nearest row, fast, as it checks nothing."""

    def fit(self, X, y):
        self.X_, self.y_, self.classes_ = X, y, np.unique(y)
        return self

    def predict_proba(self, X):
        nearest = ((X[:, np.newaxis] - self.X_) ** 2).sum(axis=2).argmin(axis=1)
        return (self.y_[nearest][:, np.newaxis] == self.classes_).astype(float)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def audit_petdl(n_runs):
    """Audit fits of which one row, next to a public row, has another label."""
    X, y = np.random.default_rng(0).uniform(size=(120, 2)), np.zeros(120, dtype=int)
    petdl = PETDLClassifier(
        NearestRow(),
        NearestRow(),
        n_teachers=120,
        batches=Clusters(1),
        epsilon=0.5,
        classes=[0, 1],
        random_state=0,
    )
    return audit_neighbours(
        petdl,
        (X, y),
        (X, np.where(np.arange(120) == 0, 1, y)),
        X_public=X[:10].copy(),
        statistic=lambda fitted: np.diff(fitted.released_[fitted.batch_of_row_[0]])[0],
        n_runs=n_runs,
    )


@pytest.mark.thorough
def test_soft_votes_of_teachers_that_get_all_rows_are_found(monkeypatch):
    assert not audit_petdl(6).contradicted
    monkeypatch.setattr(PrivateRows, "shards", all_rows_to_all)
    assert audit_petdl(52).contradicted


def all_rows_to_all(private, n_teachers, key):
    return [np.arange(private.n_rows)] * n_teachers
