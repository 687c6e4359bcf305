"""PrivateSearchCV: the best estimator, the statement, the ledger."""

import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import chisquare
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import (
    BudgetExceededError,
    DPNewtonClassifier,
    PATEClassifier,
    PrivacyLeakWarning,
    PrivacyLedger,
    PublicData,
    PublishedClassifier,
)
from sklearn_pate.accounting import calibrate_noise
from sklearn_pate.accounting.bounds import pure_dp_curve, threshold_worst_case
from sklearn_pate.accounting.composition import (
    TruncatedNegativeBinomial,
    TruncatedPoisson,
    upper_envelope,
)
from sklearn_pate.inspection import audit_neighbours
from sklearn_pate.learners import DPLogisticRegression
from tests.model_selection.learners import (
    FITS,
    SET_BY_TEST,
    Constant,
    NoisyMeans,
    X,
    Y,
    search,
)
from tests.private import LABEL_SET, LABEL_SET_READ, SEEDED
from tests.seeding import equal_noise

TRIALS = ("logarithmic", "geometric", "poisson", "disjoint")
each_law = pytest.mark.parametrize("distribution", TRIALS)


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "patients.sqlite", epsilon=10, delta=1e-6)


# The best estimator.


def right(X):
    return np.isin(X[:, 0] % 3, [1, 2]).astype(int)


@pytest.mark.thorough
@each_law
def test_a_useless_candidate_loses(distribution):
    good = Constant(right, epsilon=4)
    searched = search(
        {"answer": [0, right]},
        good,
        n_trials_distribution=distribution,
        mean_n_trials=8,
    )
    n_won = sum(searched.fit(X, Y).best_params_["answer"] is right for _ in range(60))
    # With the logarithmic law, one search in five has trials of the other one only.
    assert n_won > 24


@pytest.mark.slow
def test_the_best_estimator_predicts(easy):
    X, y, X_test, _ = easy
    searched = search({"radius": [10]}, NoisyMeans(epsilon=4)).fit(X, y)
    assert searched.best_params_ == {"radius": 10}
    assert searched.best_estimator_.radius == 10
    predicted = searched.predict(X_test)
    np.testing.assert_array_equal(predicted, searched.best_estimator_.predict(X_test))
    np.testing.assert_array_equal(searched.classes_, [0, 1, 2])
    assert not hasattr(searched, "predict_proba")
    assert not hasattr(searched, "decision_function")


@pytest.mark.thorough
def test_it_has_the_methods_of_the_best_estimator(easy):
    X, y, X_test, _ = easy
    pate = PATEClassifier(GaussianNB(), LogisticRegression(max_iter=1000))
    searched = search({"n_queries": [20]}, pate, mean_n_trials=2)
    assert hasattr(searched, "predict_proba")
    searched.fit(X, y, X_public=PublicData(X_test))
    for method in ("predict_proba", "decision_function"):
        np.testing.assert_array_equal(
            getattr(searched, method)(X_test),
            getattr(searched.best_estimator_, method)(X_test),
        )


def test_predict_before_fit_raises_not_fitted():
    with pytest.raises(NotFittedError):
        search().predict(X)


@pytest.mark.slow
def test_fits_see_no_row_that_scores_see():
    searched = search(random_state=0, mean_n_trials=20).fit(X, Y)
    seen = {tuple(fit["X"].ravel()) for fit in FITS}
    assert len(seen) == 1
    assert {len(one) for one in seen} == {48}
    searched.fit(X, Y)
    assert {tuple(fit["X"].ravel()) for fit in FITS} == seen


@each_law
def test_the_labels_of_all_rows_are_known_in_every_part(distribution):
    y = np.array(["a"] * 59 + ["b"])
    search({"answer": ["a"]}, n_trials_distribution=distribution).fit(X, y)
    assert all(fit["estimator"].classes == ["a", "b"] for fit in FITS)


def test_labels_may_be_given():
    searched = search({"answer": [1]}, classes=[0, 1, 2]).fit(X, Y)
    assert searched.best_estimator_.classes == [0, 1, 2]
    assert LABEL_SET in searched.privacy_spent_.assumptions
    given = search({"answer": [1]}, Constant(classes=[0, 1, 3])).fit(X, Y)
    assert given.best_estimator_.classes == [0, 1, 3]


# The statement.

PURE, GAUSSIAN = Constant(epsilon=0.7), Constant(sigma=20.0)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [PURE, GAUSSIAN], ids=["pure", "gaussian"])
@each_law
def test_the_plan_is_what_a_fit_states(estimator, distribution):
    searched = search(estimator=estimator, n_trials_distribution=distribution)
    planned = searched.plan_privacy(X, Y)
    assert FITS == []
    assert not hasattr(searched, "n_features_in_")
    spent = searched.fit(X, Y).privacy_spent_
    assert str(planned) == str(spent)
    assert planned.curve == spent.curve
    assert planned.unit == "row"


def test_the_cost_of_pure_fits_is_pure():
    planned = search(estimator=PURE, n_trials_distribution="logarithmic").plan_privacy(
        X, Y
    )
    assert planned.delta == 0
    assert planned.epsilon == pytest.approx(1.4)
    assert planned.curve.values[-1] <= 1.4
    geometric = search(
        estimator=PURE, n_trials_distribution="geometric", mean_n_trials=100
    )
    assert geometric.plan_privacy(X, Y).epsilon == pytest.approx(2.1)
    disjoint = search(estimator=PURE, n_trials_distribution="disjoint").plan_privacy(
        X, Y
    )
    assert tuple(disjoint) == (0.7, 0)


def test_the_cost_is_that_of_the_best_of_trials():
    law = TruncatedNegativeBinomial.of_mean(0, 3)
    planned = search(estimator=GAUSSIAN, delta=1e-6).plan_privacy(X, Y)
    free = law.cost(threshold_worst_case(20.0)).to_epsilon(1e-6)
    assert planned.epsilon == pytest.approx(free)
    charged = planned.curve.to_epsilon(1e-6)
    assert planned.epsilon <= charged < 1.01001 * free
    assert planned.delta == 1e-6
    poisson = search(estimator=PURE, n_trials_distribution="poisson").plan_privacy(X, Y)
    of_pure = TruncatedPoisson.of_mean(3).cost(pure_dp_curve(0.7))
    assert poisson.epsilon == pytest.approx(of_pure.to_epsilon(1e-5))
    assert poisson.delta == 1e-5


def test_a_delta_of_zero_is_stated_for_a_pure_cost_only():
    for distribution in TRIALS:
        planned = search(
            estimator=PURE, n_trials_distribution=distribution
        ).plan_privacy(X, Y)
        assert planned.delta == (1e-5 if distribution == "poisson" else 0)
        assert np.isfinite(planned.curve.pure_epsilon) == (planned.delta == 0)


def test_the_most_costly_candidate_sets_the_cost():
    grids = [{"epsilon": [0.1, 0.5]}, {"epsilon": [0.5]}]
    assert len({str(search(one).plan_privacy(X, Y).epsilon) for one in grids}) == 1
    mixed = search([{"sigma": [10.0]}, {"epsilon": [0.3]}]).plan_privacy(X, Y)
    law = TruncatedNegativeBinomial.of_mean(0, 3)
    both = upper_envelope([threshold_worst_case(10.0), pure_dp_curve(0.3)])
    free = law.cost(both).to_epsilon(1e-5)
    assert mixed.epsilon == pytest.approx(free)


def test_disjoint_candidates_cost_as_much_as_the_most_costly_one():
    # Curves that cross: a ledger is charged for both, but a changed row is in one fit.
    sigma = calibrate_noise(threshold_worst_case, epsilon=0.3, delta=1e-5)
    grid = [{"sigma": [sigma]}, {"epsilon": [0.3]}]
    planned = search(grid, n_trials_distribution="disjoint").plan_privacy(X, Y)
    assert planned.epsilon == pytest.approx(0.3, rel=1e-3)
    assert planned.curve.to_epsilon(1e-5) > planned.epsilon


def test_the_statement_names_what_must_stay_secret():
    spent = search(estimator=PURE).plan_privacy(X, Y)
    assert SET_BY_TEST in spent.assumptions
    assert LABEL_SET_READ in spent.assumptions
    stated = spent.in_one_line()
    assert "The number of fits, their scores and the duration of the search" in stated
    assert "over 2 candidates of Constant" in stated
    assert "mean_n_trials=3" in stated
    assert "scores with discrete Laplace noise of scale 1.42857" in stated


def test_the_best_estimator_states_the_cost_of_the_search():
    searched = search(estimator=PURE).fit(X, Y)
    own = searched.best_estimator_.privacy_spent_
    assert tuple(own) == tuple(searched.privacy_spent_)
    assert own.curve == searched.privacy_spent_.curve
    assert own.mechanism.startswith("Constant(")
    assert "PrivateSearchCV(" in own.mechanism


@pytest.mark.thorough
def test_a_published_estimator_states_the_cost_of_the_search(easy):
    X, y, X_public, _ = easy
    pate = PATEClassifier(GaussianNB(), n_teachers=20)
    searched = search({"n_queries": [20]}, pate, mean_n_trials=2).fit(
        X, y, X_public=PublicData(X_public)
    )
    published = searched.best_estimator_.publish()
    assert tuple(published.privacy_spent_) == tuple(searched.privacy_spent_)


@pytest.mark.slow
def test_a_published_estimator_states_no_mu_of_one_fit(easy, tmp_path):
    X, y, X_public, _ = easy
    newton = DPNewtonClassifier(classes=[0, 1, 2])
    fit = newton.fit(X, y, X_public=PublicData(X_public))
    assert fit.privacy_spent_.mu is not None
    searched = search({"epsilon": [1.0]}, newton).fit(
        X, y, X_public=PublicData(X_public)
    )
    for one in (searched, searched.best_estimator_):
        spent = one.privacy_spent_
        assert (spent.mu, spent.facts.rho) == (None, None)
        assert (spent.facts.tuning, spent.facts.composition) == ("paid", "search")
        one.publish().save(tmp_path / "model.skops", overwrite=True)
        loaded = PublishedClassifier.load(tmp_path / "model.skops")
        assert loaded.privacy_spent_.facts == spent.facts


def test_seeded_noise_of_the_search_voids_it():
    with equal_noise():
        spent = search().fit(X, Y).privacy_spent_
    assert np.isinf(spent.epsilon)
    assert np.all(np.isinf(spent.curve.values))
    assert SEEDED in spent.assumptions


@pytest.mark.filterwarnings("ignore:Without data_norm")
def test_a_candidate_without_a_guarantee_voids_the_search():
    bounds = {"data_norm": [60.0, None]}
    with pytest.warns(PrivacyLeakWarning, match="nothing of this search is private"):
        spent = search(bounds, DPLogisticRegression()).fit(X, Y).privacy_spent_
    assert np.isinf(spent.epsilon)


@pytest.mark.slow
@pytest.mark.parametrize("learner", [NoisyMeans(), Constant(sigma=20.0)])
def test_scores_of_a_seeded_search_have_the_noise_of_an_honest_one(easy, learner):
    X, y, *_ = easy
    honest = search({"epsilon": [1.0]}, learner).fit(X, y).mechanism_
    with equal_noise():
        seeded = search({"epsilon": [1.0]}, learner).fit(X, y).mechanism_
    assert seeded.in_one_line() == honest.in_one_line()
    assert seeded.fits == honest.fits


@pytest.mark.thorough
def test_with_a_seed_searches_can_be_repeated(easy):
    X, y, X_test, _ = easy
    radii = {"radius": list(range(1, 30))}

    @equal_noise()
    def fit():
        return search(radii, NoisyMeans(), random_state=0).fit(X, y)

    one, other = fit(), fit()
    assert one.best_params_ == other.best_params_
    np.testing.assert_array_equal(one.predict(X_test), other.predict(X_test))


def test_a_large_delta_is_warned_of():
    with pytest.warns(PrivacyLeakWarning, match="is not below 1 / n_rows"):
        search(estimator=PURE, delta=0.09).plan_privacy(X, Y)


@pytest.mark.parametrize(
    ("stated", "groups"),
    [
        ({"relation": "add-remove"}, None),
        ({"unit": "group", "relation": "add-remove"}, np.arange(len(X)) // 2),
    ],
)
def test_a_protected_number_of_rows_is_not_told(stated, groups):
    searched = search(estimator=Constant(**stated), delta=0.09)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        searched.plan_privacy(X, Y, **({} if groups is None else {"groups": groups}))
    assert not [one for one in told if "n_rows" in str(one.message)]


@pytest.mark.slow
def test_rows_that_may_be_added_are_cut_by_secret_coins():
    adding = search(estimator=Constant(relation="add-remove"), random_state=0)
    sizes = {
        adding.fit(X, Y) and tuple(FITS[-1]["X"].ravel().tolist()) for _ in range(20)
    }
    assert len(sizes) > 10
    spent = adding.privacy_spent_
    assert (spent.unit, spent.relation) == ("row", "add-remove")
    assert spent.neighbours == "add or remove one row"


def noise_for(n_rows):
    return 10 + n_rows / 100


@pytest.mark.slow
def test_a_cost_that_shows_the_number_of_rows_is_an_assumption():
    shows = "The number of rows that the model was trained on is public."
    for relation, sigma, is_stated in [
        ("add-remove", noise_for, True),
        ("add-remove", 10.0, False),
        ("replace-one", noise_for, False),
    ]:
        constant = Constant(sigma=sigma, relation=relation)
        spent = search(estimator=constant).plan_privacy(X, Y)
        assert (shows in spent.in_one_line()) is is_stated


# The ledger.


@pytest.mark.slow
@each_law
def test_a_search_is_charged_once_and_first(ledger, distribution):
    searched = search(
        n_trials_distribution=distribution, ledger=ledger, estimator=GAUSSIAN
    )
    assert clone(searched).ledger == ledger
    planned = searched.plan_privacy(X, Y)
    assert ledger.entries() == []
    searched.fit(X, Y)
    (charge,) = ledger.entries()
    assert charge.epsilon == pytest.approx(planned.epsilon, rel=0.011)
    assert charge.description == planned.mechanism
    searched.fit(X, Y)
    assert len(ledger.entries()) == 2


def test_a_search_beyond_the_budget_fits_nothing(ledger):
    with pytest.raises(BudgetExceededError):
        search(estimator=Constant(epsilon=9.0), ledger=ledger).fit(X, Y)
    assert FITS == []
    assert ledger.entries() == []


def test_if_the_selected_fit_failed_nothing_is_published(ledger):
    failing = search(estimator=Constant(fails=True), ledger=ledger)
    with pytest.raises(RuntimeError, match="failed: there is nothing") as info:
        failing.fit(X, Y)
    assert "secret" not in str(info.value)
    assert info.value.__cause__ is None
    assert info.value.__context__ is None
    assert not hasattr(failing, "privacy_spent_")
    assert len(ledger.entries()) == 1


def law_of_the_best(n_right, rate, law):
    """Selection probabilities of two candidates, with discrete Laplace noise."""
    z = np.arange(-80, 81)
    noise = np.exp(-rate * np.abs(z)) / np.exp(-rate * np.abs(z)).sum()
    scores = np.zeros((2, 400))
    for candidate, n in enumerate(n_right):
        scores[candidate, 100 + n + z] += noise / 2
    of_score = scores.sum(axis=0)
    at_most = np.log1p(-(1 - law.gamma) * np.append(0, of_score.cumsum()))
    best = np.diff(at_most / np.log(law.gamma))
    shares = np.divide(scores, of_score, out=np.zeros_like(scores), where=of_score > 0)
    return (shares * best).sum(axis=1)


@pytest.mark.thorough
def test_the_best_has_the_law_of_the_stated_cost():
    y = np.arange(60) % 2
    searched = search(estimator=Constant(epsilon=0.3), mean_n_trials=10, random_state=1)
    spent = searched.fit(X, y).privacy_spent_
    held_out = np.setdiff1d(X.ravel(), FITS[0]["X"].ravel()).astype(int)
    n_right = np.bincount(y[held_out], minlength=2)
    law = TruncatedNegativeBinomial.of_mean(0, 10)
    expected = law_of_the_best(n_right, 0.3, law)
    n_runs = 300
    won = [searched.fit(X, y).best_params_["answer"] for _ in range(n_runs)]
    assert chisquare(np.bincount(won, minlength=2), expected * n_runs).pvalue > 1e-6
    # Another label in one validation row.
    changed = law_of_the_best(n_right + np.array([1, -1]), 0.3, law)
    assert 0.05 < np.abs(np.log(expected / changed)).max() < spent.epsilon


@pytest.mark.thorough
def test_an_audit_finds_no_contradiction():
    X = np.full((40, 1), 5.0)
    y = np.array([0, 1] * 20)
    changed = X.copy()
    changed[0] = -5.0
    audited = search({"radius": [1, 5]}, NoisyMeans(epsilon=0.5), random_state=0)
    result = audit_neighbours(
        audited,
        (X, y),
        (changed, y),
        statistic=lambda fitted: fitted.best_estimator_.means_[0, 0],
        n_runs=150,
        confidence=1 - 1e-7,
    )
    assert result.epsilon_claimed == pytest.approx(1.0)
    assert not result.contradicted


def test_costs_rise_from_law_to_law():
    def cost(distribution):
        return search(
            estimator=PURE, n_trials_distribution=distribution, mean_n_trials=30
        ).plan_privacy(X, Y)

    costs = [cost(one) for one in ("disjoint", "logarithmic", "geometric", "poisson")]
    assert all(a.epsilon < b.epsilon for a, b in pairwise(costs))


def test_a_fitted_search_can_be_pickled():
    searched = search().fit(X, Y)
    again = pickle.loads(pickle.dumps(searched))
    np.testing.assert_array_equal(again.predict(X), searched.predict(X))
