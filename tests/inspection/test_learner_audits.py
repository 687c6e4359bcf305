"""Audits of learners without teachers: sound ones pass, planted defects are found."""

import numpy as np
import pytest

from sklearn_pate.baselines import (
    DPLinearSVC,
    DPLogisticRegression,
    erm_perturbation,
)
from sklearn_pate.inspection import audit_neighbours
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


@pytest.mark.parametrize("name", LEARNERS)
def test_sound_noise_in_training_is_not_contradicted(name):
    result = audit(*LEARNERS[name])
    assert not result.contradicted
    assert result.epsilon_claimed <= 1


@pytest.mark.parametrize("name", LEARNERS)
def test_noise_of_a_tenth_of_its_scale_is_found(name, monkeypatch):
    for law in ("gamma_vector", "standard_normal"):
        sound = getattr(erm_perturbation, law)
        monkeypatch.setattr(
            erm_perturbation, law, lambda *given, sound=sound: sound(*given) / 10
        )
    assert audit(*LEARNERS[name]).contradicted


def test_a_private_search_is_not_contradicted():
    search = PrivateSearchCV(
        DPLogisticRegression(method="output", **LINEAR),
        {"C": [0.1, 1.0]},
        expected_trials=2,
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


def test_an_estimator_without_a_price_is_refused():
    from sklearn.linear_model import LogisticRegression

    with pytest.raises(ValueError, match="cannot state its price"):
        audit(LogisticRegression(), TURNED)
