"""Audits of learners without teachers: sound ones pass, planted defects are found."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier
from skorch import NeuralNetClassifier
from torch import nn

from sklearn_pate._aggregation._rows import PrivateInputs
from sklearn_pate.inspection import audit_canaries, audit_neighbours
from sklearn_pate.learners import (
    DPLinearSVC,
    DPLogisticRegression,
    DPSGDClassifier,
    PETDLClassifier,
    _dpsgd_training,
)
from sklearn_pate.mechanisms import _noisy_training
from sklearn_pate.model_selection import PrivateSearchCV

N_ROWS = 12
# A strong regularisation: the shift is then near the bound that is paid for.
LINEAR = {"C": 0.01, "data_norm": 1.0, "fit_intercept": False, "delta": 1e-3}
X, Y = np.ones((N_ROWS, 1)), np.arange(N_ROWS) % 2
TURNED = X, np.where(np.arange(N_ROWS) == 0, 1, Y)
ONE_MORE = np.ones((N_ROWS + 1, 1)), np.append(Y, 1)


def weight(fitted):
    return fitted.coef_[0, 0]


def audit(estimator, neighbour, statistic=weight, n_runs=400):
    return audit_neighbours(
        estimator, (X, Y), neighbour, statistic=statistic, n_runs=n_runs
    )


LEARNERS = {
    "output": (DPLogisticRegression(method="output", **LINEAR), TURNED),
    "objective": (DPLogisticRegression(method="objective", **LINEAR), TURNED),
    "Gaussian objective": (DPLinearSVC(method="gaussian", **LINEAR), ONE_MORE),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNERS)
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
@pytest.mark.parametrize("name", LEARNERS)
def test_noise_of_a_tenth_of_its_scale_is_found(name, monkeypatch):
    quieten(monkeypatch, 10)
    assert audit(*LEARNERS[name]).contradicted


@pytest.mark.slow
def test_a_private_search_is_not_contradicted():
    search = PrivateSearchCV(
        DPLogisticRegression(method="output", **LINEAR),
        {"C": [0.1, 1.0]},
        mean_n_trials=2,
        delta=1e-3,
    )
    result = audit(
        search, TURNED, lambda fitted: weight(fitted.best_estimator_), n_runs=200
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

    with pytest.raises(ValueError, match="cannot state its cost"):
        audit(LogisticRegression(), TURNED)


# Canaries: rows that a model can distinguish, each with a secret bit

N_CANARIES = 300
NOTHING = np.full((150, N_CANARIES), 1e-9, dtype=np.float32), np.arange(150) // 149
CANARIES = np.eye(N_CANARIES, dtype=np.float32)


def dpsgd():
    net = NeuralNetClassifier(
        nn.Linear,
        module__in_features=N_CANARIES,
        module__out_features=2,
        criterion=nn.CrossEntropyLoss,
        lr=1.0,
        batch_size=30,
        max_epochs=5,
    )
    return DPSGDClassifier(net, epsilon=1.0, classes=[0, 1])


def petdl():
    return PETDLClassifier(
        KNeighborsClassifier(1),
        KNeighborsClassifier(1),
        n_teachers=200,
        public_batch_size=1,
        epsilon=1.0,
        classes=[0, 1],
    )


def guess(estimator, X, y, X_canaries):
    return audit_canaries(
        clone(estimator).set_params(delta=1e-6),
        X,
        y,
        X_canaries=X_canaries,
        labels=(0, 1),
        n_guesses=len(X_canaries) * 2 // 3,
    )


def guess_on_axes(name):
    estimator = dpsgd() if name == "DP-SGD" else LEARNERS[name][0]
    return guess(estimator, *NOTHING, CANARIES)


def guess_in_plane():
    X, X_canaries = np.split(np.random.default_rng(0).uniform(size=(700, 2)), [600])
    return guess(petdl(), X, np.zeros(600, dtype=int), X_canaries)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*LEARNERS, "DP-SGD"])
def test_canaries_do_not_contradict_sound_noise(name):
    result = guess_on_axes(name)
    assert not result.contradicted
    assert f"of 200 guesses of {N_CANARIES} bits" in result.evidence


@pytest.mark.slow
@pytest.mark.parametrize("name", [*LEARNERS, "DP-SGD"])
def test_canaries_show_that_noise_is_missing(name, monkeypatch):
    quieten(monkeypatch, 1e4)
    assert guess_on_axes(name).contradicted


@pytest.mark.slow
def test_canaries_among_public_rows_of_petdl(monkeypatch):
    assert not guess_in_plane().contradicted
    monkeypatch.setattr(
        PrivateInputs,
        "shards",
        lambda private, n_teachers, key: [np.arange(private.n_rows)] * n_teachers,
    )
    assert guess_in_plane().contradicted


def test_public_rows_for_a_learner_without_queries_are_refused():
    with pytest.raises(ValueError, match="DPLogisticRegression has none"):
        audit_canaries(
            LEARNERS["output"][0],
            *NOTHING,
            X_canaries=CANARIES,
            labels=(0, 1),
            X_public=CANARIES,
        )
