"""A fit and its metrics on other rows, at the larger of both costs."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from sklearn_pate import (
    BudgetExceededError,
    PATEClassifier,
    PrivacyLedger,
    PrivateMarginals,
    PublicData,
)
from sklearn_pate.learners import (
    DPLogisticRegression,
    DPNewtonClassifier,
    PrivateKNNClassifier,
)
from sklearn_pate.model_selection import MeasuredFit, PrivateSearchCV, fit_and_measure
from tests.cases import thorough_but
from tests.model_selection.learners import BY_GROUP, FITS, Constant, NoisyMeans
from tests.private import FITTED_APART, MODEL_IS_PUBLIC, SCORES_OF_ROW, _private_metrics
from tests.seeding import equal_noise

pytestmark = pytest.mark.filterwarnings("ignore:With .* rows, noise of")

X = np.column_stack([np.arange(2000.0), np.zeros(2000)])
Y = (np.arange(2000) * 7 % 10 > 3).astype(int)


class Scored(Constant):
    """Predict probabilities, too."""

    def predict_proba(self, X):
        return np.full((X.shape[0], len(self.classes_)), 1 / len(self.classes_))


class Linear(DPLogisticRegression):
    """Private logistic regression of rows within one bound."""

    def __init__(self, epsilon=1.0, *, classes=(0, 1), ledger=None):
        super().__init__(
            epsilon=epsilon, data_norm=2000.0, classes=classes, ledger=ledger
        )


@pytest.fixture
def scored_rows(monkeypatch):
    """Keep the rows that are scored."""
    kept, score_rows = [], _private_metrics.score_rows

    def spy(model, X, rows, *others):
        kept.append(np.asarray(X)[rows])
        return score_rows(model, X, rows, *others)

    monkeypatch.setattr(_private_metrics, "score_rows", spy)
    return kept


def numbers(rows):
    """Return the numbers of rows, which are in the first column."""
    return np.asarray(rows)[:, 0].astype(int)


def test_each_row_is_fitted_on_or_measured(scored_rows):
    fit_and_measure(Scored(), X, Y, random_state=0)
    [fit], [measured] = FITS, scored_rows
    assert sorted([*numbers(fit["X"]), *numbers(measured)]) == list(range(2000))
    assert len(measured) == 500
    np.testing.assert_array_equal(fit["y"], Y[numbers(fit["X"])])


def test_each_group_is_fitted_on_or_measured(scored_rows):
    groups = np.arange(2000) // 4
    fit_and_measure(Scored(**BY_GROUP), X, Y, groups=groups, random_state=0)
    [fit], [measured] = FITS, scored_rows
    fitted_on = set(groups[numbers(fit["X"])])
    np.testing.assert_array_equal(fit["groups"], groups[numbers(fit["X"])])
    assert fitted_on.isdisjoint(groups[numbers(measured)])
    assert len(fitted_on) + len(measured) == 500  # one row of each measured group
    # Within six standard deviations.
    assert abs(len(measured) - 125) < 60


def test_the_share_to_measure_on_is_a_parameter(scored_rows):
    fit_and_measure(Scored(), X, Y, test_size=0.5, random_state=0)
    assert len(scored_rows[0]) == 1000


def test_public_rows_and_subgroups_reach_their_parts(scored_rows):
    subgroups = np.arange(2000) % 2
    public = PublicData(X)
    by_parity = {"subgroups": subgroups, "subgroup_values": [0, 1]}
    measured = fit_and_measure(Scored(), X, Y, X_public=public, **by_parity)
    assert FITS[0]["X_public"] is public
    assert measured.metrics.subgroups_ == [0, 1, "other or missing"]


@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_the_larger_cost_is_stated(epsilon):
    measured = fit_and_measure(Scored(), X, Y, metrics_epsilon=epsilon)
    of_fit, of_metrics, both = (
        measured.model.privacy_spent_,
        measured.metrics.privacy_spent_,
        measured.privacy_spent,
    )
    expected = max(of_fit.epsilon_at(1e-5), of_metrics.epsilon)
    assert both.epsilon == pytest.approx(expected, rel=1e-6)
    assert np.all(
        both.curve.values == np.maximum(of_fit.curve.values, of_metrics.curve.values)
    )
    for at in np.linspace(0, 3, 40):
        larger = max(of_fit.delta_at(at), of_metrics.delta_at(at))
        assert larger * (1 - 1e-9) <= both.delta_at(at) <= larger * 1.02 + 1e-6
    assert (both.unit, both.relation) == ("row", "replace-one")
    assert both.facts.composition == "larger"
    assert FITTED_APART in of_metrics.assumptions
    assert MODEL_IS_PUBLIC not in both.assumptions
    assert SCORES_OF_ROW in both.assumptions
    assert "This fit with its metrics" in str(both)


@pytest.mark.slow
def test_of_two_gaussian_releases_the_larger_mu_holds():
    newton = DPNewtonClassifier(
        epsilon=0.5, synthetic=PrivateMarginals((0, 2000)), classes=[0, 1]
    )
    for epsilon in (0.2, 0.9):
        measured = fit_and_measure(newton, X, Y, metrics_epsilon=epsilon)
        both = measured.model.privacy_spent_.mu, measured.metrics.privacy_spent_.mu
        assert measured.privacy_spent.mu == max(both)
        assert measured.privacy_spent.epsilon == pytest.approx(max(0.5, epsilon), 1e-3)


@pytest.mark.slow
def test_metrics_add_nothing_by_default():
    measured = fit_and_measure(Linear(epsilon=0.7), X, Y)
    assert measured.privacy_spent.epsilon <= 0.7
    assert measured.metrics.privacy_spent_.epsilon > 0.69
    assert isinstance(measured, MeasuredFit)


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=4, delta=1e-5)


def test_one_charge_comes_before_the_fit(ledger, monkeypatch):
    n_entries, fit = [], Scored.fit

    def spy(self, *args, **kwargs):
        n_entries.append(len(ledger.entries()))
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(Scored, "fit", spy)
    measured = fit_and_measure(Scored(), X, Y, ledger=ledger)
    assert n_entries == [1]
    [entry] = ledger.entries()
    assert entry.description == measured.privacy_spent.mechanism
    share, _ = ledger.budget_fractions(measured.privacy_spent.curve)
    assert ledger.spent == pytest.approx(share, rel=1e-6)


def test_beyond_the_budget_nothing_is_fitted_or_charged(ledger, scored_rows):
    with pytest.raises(BudgetExceededError):
        fit_and_measure(Scored(epsilon=5.0), X, Y, ledger=ledger)
    assert FITS == scored_rows == ledger.entries() == []


@pytest.mark.slow
def test_each_call_is_charged(ledger):
    for n_charges in (1, 2):
        fit_and_measure(Scored(epsilon=0.1), X, Y, ledger=ledger, random_state=0)
        assert len(ledger.entries()) == n_charges


@pytest.mark.slow
def test_seeded_noise_voids_all_statements():
    with equal_noise():
        measured = fit_and_measure(Linear(), X, Y)
    for spent in (measured.privacy_spent, measured.metrics.privacy_spent_):
        assert np.isinf(spent.epsilon)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    thorough_but(
        ["groups", "naive"], ["votes", "groups", "pipeline", "search", "naive"]
    ),
)
def test_private_classifiers_of_rows_that_are_replaced_or_of_groups(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    y = (X[:, 0] + 0.3 * rng.normal(size=3000) > 0).astype(int)
    public = {"X_public": PublicData(rng.normal(size=(300, 2)))}
    pate = PATEClassifier(GaussianNB(), n_teachers=40, mechanism="gnmax", epsilon=4)
    linear = DPLogisticRegression(epsilon=2.0, data_norm=5.0, classes=[0, 1])
    groups = np.arange(3000) // 2
    of_groups = pate.set_params(privacy_unit="group") if kind == "groups" else pate
    estimator, params = {
        "votes": (pate, public),
        "groups": (of_groups, {"groups": groups, **public}),
        "pipeline": (make_pipeline(Normalizer(), linear), {}),
        "search": (PrivateSearchCV(linear, {"C": [0.1, 1.0]}, mean_n_trials=2), {}),
        "naive": (linear, {}),
    }[kind]
    measured = fit_and_measure(estimator, X, y, random_state=0, **params)
    assert measured.metrics["roc_auc"].value > 0.85
    expected = "group" if kind == "groups" else "row"
    assert measured.privacy_spent.unit == expected


REFUSED = {
    "DP-SGD, DP-ERM and neighbours that add or remove": (
        DPLogisticRegression(method="gaussian", delta=1e-5, data_norm=2000.0),
        "relation='add-remove', for which the larger cost of fit and metrics is",
    ),
    "nearest neighbours": (
        PrivateKNNClassifier(epsilon=4, public_size=0.2),
        "relation='add-remove', for which the larger cost",
    ),
    "groups that are added or removed": (
        Scored(unit="group", relation="add-remove"),
        "unit='group' with relation='add-remove', for which the larger cost",
    ),
    "no statement": (LogisticRegression(), "cannot state its privacy cost before a"),
    "no probabilities": (NoisyMeans(), "has no predict_proba, which metrics need"),
    "a step that learns": (
        make_pipeline(StandardScaler(), Scored()),
        "standardscaler",
    ),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_proved_is_refused_before_any_fit(name, scored_rows):
    estimator, message = REFUSED[name]
    params = {"groups": np.arange(2000)} if "added or removed" in name else {}
    with pytest.raises(ValueError, match=message):
        fit_and_measure(estimator, X, Y, **params)
    assert FITS == scored_rows == []


def test_a_ledger_of_the_estimator_is_refused(ledger):
    with pytest.raises(ValueError, match="pass it to fit_and_measure, which charges"):
        fit_and_measure(Scored(ledger=ledger), X, Y)
    assert ledger.entries() == []


def test_wrong_parameters_are_refused():
    for test_size in (0, 1, 1.5, "half"):
        with pytest.raises(ValueError, match=r"test_size=.* must be a number strictly"):
            fit_and_measure(Scored(), X, Y, test_size=test_size)
    with pytest.raises(ValueError, match="bins='x' must be 'auto'"):
        fit_and_measure(Scored(), X, Y, bins="x")
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        fit_and_measure(Scored(), X, Y[1:])
    with pytest.raises(ValueError, match="leave one part of the rows empty"):
        fit_and_measure(Scored(), X[:2], Y[:2], test_size=0.9)
    assert FITS == []


def test_a_fit_without_a_finite_epsilon_needs_one_for_metrics():
    endless = Scored(sigma=1e-9)
    with pytest.raises(ValueError, match=r"no finite epsilon at .*; set metrics_eps"):
        fit_and_measure(endless, X, Y)


def test_a_fit_that_costs_more_than_planned_is_not_handed_out():
    with pytest.raises(RuntimeError, match="cost more than its plan_privacy stated"):
        fit_and_measure(Scored(costs_more=True), X, Y)


def test_a_fit_with_other_classes_than_planned_is_not_handed_out():
    class Forgets(Scored):
        def fit(self, X, y, **params):
            super().fit(X, y, **params)
            self.classes_ = np.array([0, 1, 2])
            return self

    with pytest.raises(RuntimeError, match="has 3 classes, but 2 were planned"):
        fit_and_measure(Forgets(), X, Y)
