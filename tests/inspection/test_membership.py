from contextlib import redirect_stderr

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from sklearn_pate import PATEClassifier, PublicData
from sklearn_pate.inspection import audit_membership


@pytest.fixture(scope="module")
def people(data_set):
    """Some rows of Adult, and public ones."""
    adult = data_set("adult")
    return adult.data[:2000], adult.target[:2000], PublicData(adult.data[2000:2500])


@pytest.mark.slow
def test_rows_of_a_forest_are_found_and_those_of_a_student_are_not(people):
    X, y, X_public = people
    forest = audit_membership(RandomForestClassifier(30), X, y, random_state=0)
    assert forest.auc > 0.6
    assert forest.true_positive_rate > 2 * forest.false_positive_rate
    pate = PATEClassifier(
        DecisionTreeClassifier(max_depth=3),
        RandomForestClassifier(30),
        n_teachers=20,
        epsilon=2.0,
    )
    student = audit_membership(
        pate, X, y, fit_params={"X_public": X_public}, random_state=0
    )
    assert abs(student.auc - 0.5) < 0.03
    assert student.true_positive_rate < 2 * student.false_positive_rate


class Deaf(KNeighborsClassifier):
    """Learns nothing but noise of its own."""

    def fit(self, X, y):
        self.rng_ = np.random.default_rng(int(1e6 * abs(X).sum()))
        return super().fit(X, y)

    def predict_proba(self, X):
        share = self.rng_.random(len(X))
        return np.column_stack([share, 1 - share])


@pytest.mark.parametrize("n_models", [6, 8, 16])
def test_noise_gives_an_auc_of_one_half(n_models):
    X = np.random.default_rng(0).normal(size=(4000, 1))
    y = np.arange(4000) % 2
    result = audit_membership(Deaf(), X, y, n_models=n_models, random_state=0)
    standard_error = 1 / np.sqrt(12 * 1000 * n_models)
    assert abs(result.auc - 0.5) < 5 * standard_error
    assert 0.005 < result.true_positive_rate < 0.02


def test_a_terminal_shows_models_and_not_the_phases_of_their_fits(terminal):
    X = np.random.default_rng(0).normal(size=(300, 2))
    y = np.arange(300) % 2
    pate = PATEClassifier(epsilon=1.0, classes=[0, 1], verbose=1)
    X_public = PublicData(np.random.default_rng(1).normal(size=(100, 2)))
    with redirect_stderr(terminal):
        audit_membership(
            pate, X, y, fit_params={"X_public": X_public}, n_models=6, random_state=0
        )
    assert terminal.lines == [f"training models {n}/6" for n in range(7)]
    shown = terminal.getvalue()
    with redirect_stderr(terminal):
        audit_membership(LinearSVC(), X, y, n_models=6, random_state=0, verbose=0)
    assert terminal.getvalue() == shown


def test_what_is_memorised_is_found_without_probabilities():
    X = np.random.default_rng(0).normal(size=(600, 5))
    y = np.random.default_rng(1).integers(2, size=600)  # nothing to learn
    assert audit_membership(LinearSVC(), X[:100], y[:100], random_state=0).auc > 0.52

    class Memory(KNeighborsClassifier):
        predict_proba = property()

    result = audit_membership(Memory(1), X, y, random_state=0)
    assert result.auc > 0.7
    assert f"AUC of {result.auc:.3f}" in str(result)


def test_a_label_that_a_model_never_saw_has_no_probability():
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.array(["rare", *["often", "also"] * 29, "often"])
    result = audit_membership(LogisticRegression(), X, y, n_models=6)
    assert 0 <= result.auc <= 1


@pytest.mark.slow
def test_a_seed_repeats_the_attack(people):
    X, y, _ = people
    one, other = (
        audit_membership(DecisionTreeClassifier(), X, y, n_models=6, random_state=1)
        for _ in range(2)
    )
    assert one == other


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_models": 7}, "n_models=7 is odd"),
        ({"n_models": 4}, "n_models=4"),
        ({"false_positive_rate": 0}, "false_positive_rate=0"),
        ({"estimator": Ridge()}, "not a classifier"),
    ],
)
def test_an_attack_that_cannot_work_is_refused(parameters, message):
    arguments = {
        "estimator": LogisticRegression(),
        "X": [[0.0]] * 9,
        "y": [0, 1, 0] * 3,
    }
    with pytest.raises(ValueError, match=message):
        audit_membership(**(arguments | parameters))
