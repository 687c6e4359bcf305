"""Models that are no better than a constant one, by public and released numbers."""

import re
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from sklearn_pate import DPNewtonClassifier, PATEClassifier, PrivacyLedger, PublicData
from sklearn_pate.exceptions import PrivacyUtilityWarning, StudentWarning
from sklearn_pate.inspection import plan
from sklearn_pate.learners import (
    DPLinearSVC,
    DPLogisticRegression,
    PrivateKNNClassifier,
)
from sklearn_pate.mechanisms import Oracle
from tests.cases import thorough_but
from tests.private import StoredSums, _linear
from tests.seeding import equal_noise

# The warnings that the configuration of the tests ignores.
pytestmark = pytest.mark.filterwarnings("always")

RNG = np.random.RandomState(1)
X, X_PUBLIC = RNG.normal(size=(4000, 3)), RNG.normal(size=(1500, 3))
RANDOM = RNG.permutation(np.arange(4000) % 3 == 0).astype(int)
LEARNABLE = (X[:, 0] + X[:, 1] > 0.6).astype(int)
BOUNDS = {"feature_bounds": (-3, 3)}

VOTES = {"n_teachers": 60, "n_queries": 400, "mechanism": "gnmax", "epsilon": 3.0}
WITH_PUBLIC_ROWS = {
    "Newton": DPNewtonClassifier(random_state=0),
    "votes": PATEClassifier(LogisticRegression(), **VOTES, random_state=0),
    "scores": PATEClassifier(mechanism="scores", random_state=0),
    "neighbours": PrivateKNNClassifier(
        LogisticRegression(),
        n_neighbors=60,
        n_queries=200,
        epsilon=4.0,
        random_state=0,
    ),
    "linear": DPLogisticRegression(representation=StandardScaler()),
    "output": DPLogisticRegression(representation=StandardScaler(), method="output"),
    "machine": DPLinearSVC(representation=StandardScaler()),
}
WITHOUT = {
    "bounds": DPLogisticRegression(**BOUNDS),
    "bounds of a machine": DPLinearSVC(**BOUNDS),
    "bounds, output": DPLogisticRegression(**BOUNDS, method="output"),
}
LEARNERS = WITH_PUBLIC_ROWS | WITHOUT
every_learner = pytest.mark.parametrize(
    "name", thorough_but(LEARNERS.keys() - {"linear", "output", "machine"}, LEARNERS)
)


def reasons(name, y, X=X):
    """Return the warnings of a fit about useless models."""
    arguments = {"X_public": PublicData(X_PUBLIC)} if name in WITH_PUBLIC_ROWS else {}
    with warnings.catch_warnings(record=True) as caught, equal_noise():
        warnings.simplefilter("always")
        LEARNERS[name].fit(X, y, **arguments)
    useless = PrivacyUtilityWarning, StudentWarning
    return [str(one.message) for one in caught if issubclass(one.category, useless)]


@pytest.mark.slow
@every_learner
def test_a_model_of_labels_without_signal_is_warned_of_once(name):
    [reason] = reasons(name, RANDOM)
    assert re.search("told from noise|predicts one class|name one class", reason)


@pytest.mark.slow
@every_learner
def test_a_model_of_learnable_labels_is_not(name):
    assert reasons(name, LEARNABLE) == []


@pytest.mark.slow
def test_votes_that_never_name_a_rare_class_are_warned_of():
    chances = 0.25 / (1 + np.exp(-2 * X[:, 0])) ** 3
    [reason] = reasons("neighbours", (RNG.uniform(size=len(X)) < chances).astype(int))
    assert re.search("told from noise|name one class", reason)


@pytest.mark.slow
@every_learner
def test_with_equal_sums_neighbours_have_equal_warnings(name, monkeypatch):
    released = []

    def recorded(owner, method):
        """Replace what is released of the second data set by that of the first."""
        inner = getattr(owner, method)

        def draw(*args, **kwargs):
            if len(second) == 0:
                released.append(inner(*args, **kwargs))
                return released[-1]
            return released.pop(0)

        monkeypatch.setattr(owner, method, draw)

    second = []
    recorded(StoredSums, "draw")
    recorded(Oracle, "answer")
    recorded(_linear, "minimise")
    found = [reasons(name, RANDOM)]
    second.append(True)
    other, labels = X.copy(), RANDOM.copy()
    other[0], labels[0] = 100, 1 - RANDOM[0]
    found.append(reasons(name, labels, other))
    assert found[0] == found[1]
    assert released == []


FEW_ROWS = {
    "logistic regression": DPLogisticRegression(data_norm=3),
    "machine": DPLinearSVC(**BOUNDS),
    "of many classes": DPLogisticRegression(data_norm=3, classes=range(10)),
}


@pytest.mark.parametrize("name", FEW_ROWS)
def test_too_few_rows_for_noisy_gradients_cost_nothing(name, tmp_path):
    ledger = PrivacyLedger(tmp_path / "few.sqlite", epsilon=9, delta=1e-5)
    learner = clone(FEW_ROWS[name]).set_params(ledger=ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyUtilityWarning)
        with pytest.raises(PrivacyUtilityWarning, match="at least") as caught:
            learner.fit(X[:60], RANDOM[:60])
        assert not ledger.entries()
        [needed] = re.findall(r"at least (\d+) rows", str(caught.value))
        n_copies = int(needed) // len(X) + 1
        enough = np.tile(X, (n_copies, 1)), np.tile(RANDOM, n_copies)
        learner.plan_privacy(*(one[: int(needed)] for one in enough))


def of_newton(n_rows, **more):
    return plan(DPNewtonClassifier(), n_rows=n_rows, **more)


@pytest.mark.parametrize("share", [0.5, 0.2, 0.03])
def test_the_plan_names_the_rows_that_a_released_share_needs(share):
    few = of_newton(40, class_prior=share)
    enough = of_newton(few.n_units_needed, class_prior=share)
    assert enough.warnings == ()
    assert f"{few.n_units_needed} rows for a rarest class with a sh" in unwrapped(few)
    too_few = of_newton(few.n_units_needed - 1, class_prior=share)
    assert f"at least {few.n_units_needed} rows" in too_few.warnings[0]
    data = X[:400], RANDOM[:400]
    learner = DPNewtonClassifier(classes=[0, 1])
    planned = plan(learner, *data, X_public=X_PUBLIC, class_prior=share)
    assert planned.n_units_needed == few.n_units_needed


def unwrapped(planned):
    return " ".join(str(planned).split())


def test_without_shares_the_plan_says_what_depends_on_them():
    assert "equal shares; a rare class needs more" in unwrapped(of_newton(9000))
    [warning] = of_newton(100).warnings
    assert "2 classes of equal shares" in warning
    assert "a rare class needs more" in warning


@pytest.mark.slow
def test_a_plan_of_teachers_takes_shares():
    pate = PATEClassifier(LogisticRegression(), vote="plain", **VOTES, random_state=0)
    data = X, RANDOM
    plans = [
        plan(pate, *data, X_public=X_PUBLIC, class_prior=share)
        for share in (None, 0.5, 0.01)
    ]
    assert [len(one.warnings) for one in plans] == [0, 0, 1]
    assert "share of 0.01" in plans[2].warnings[0]
    with pytest.raises(ValueError, match=r"class_prior=0\.7 must be"):
        plan(pate, *data, X_public=X_PUBLIC, class_prior=0.7)


@pytest.mark.parametrize("n_classes", [2, 7])
def test_naive_bayes_is_named_where_it_needs_fewer_rows_of_many_classes(n_classes):
    [warning] = of_newton(60 * n_classes - 1, n_classes=n_classes).warnings
    assert ("DPNaiveBayesClassifier" in warning) == (n_classes == 7)
