import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sklearn_pate import (
    BudgetExceededError,
    DPNewtonClassifier,
    PATEClassifier,
    PrivacyLedger,
    PrivateMarginals,
    PublicData,
)
from sklearn_pate.inspection import plan, privacy_leaks
from sklearn_pate.mechanisms import GumbelMax

RNG = np.random.default_rng(0)
Y = RNG.integers(2, size=300)
X = RNG.normal(size=(300, 2)) + 2 * Y[:, np.newaxis]
PUBLIC = PublicData(RNG.normal(size=(60, 2)) + 2 * RNG.integers(2, size=(60, 1)))
GRID = {"n_queries": [15, 25], "mechanism": [GumbelMax(c=0.3), GumbelMax(c=0.2)]}


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "patients.sqlite", epsilon=200, delta=1e-6)


def make(ledger, **changes):
    parameters = {"n_teachers": 10, "n_queries": 20, "mechanism": GumbelMax(c=0.3)}
    parameters |= {"epsilon": None, "ledger": ledger}
    return PATEClassifier(GaussianNB(), **(parameters | changes))


@pytest.mark.slow
@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.parametrize("in_pipeline", [True, False])
def test_a_search_has_the_planned_cost(ledger, refit, in_pipeline):
    pate, grid = make(ledger), {"n_queries": [15, 25], "delta": [1e-6]}
    if in_pipeline:
        pate = make_pipeline(FunctionTransformer(), pate)
        grid = {f"pateclassifier__{name}": values for name, values in grid.items()}
    cv = KFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(pate, grid, cv=cv, refit=refit)
    cost = plan(search, X, Y, X_public=PUBLIC)
    assert ledger.spent == 0
    name = "pateclassifier__X_public" if in_pipeline else "X_public"
    search.fit(X, Y, **{name: PUBLIC})
    assert len(ledger.entries()) == cost.n_fits == 6 + refit
    # The winner may be the cheaper one.
    if refit:
        assert ledger.spent <= cost.share * (1 + 1e-12)
    else:
        assert ledger.spent == pytest.approx(cost.share, rel=1e-12)
    assert plan(search, X, Y, X_public=PUBLIC).left == 1 - ledger.spent


LEARNERS = {
    "newton": DPNewtonClassifier(),
    "scores": PATEClassifier(GaussianNB(), n_teachers=60, mechanism="scores"),
    "votes": PATEClassifier(GaussianNB(), n_teachers=10, n_queries=20),
    "synthetic": DPNewtonClassifier(synthetic=PrivateMarginals((-4, 6), n_rows=100)),
}


@pytest.mark.slow
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.filterwarnings("ignore::sklearn_pate.PrivacyUtilityWarning")
@pytest.mark.filterwarnings("ignore::sklearn_pate.StudentWarning")
def test_the_plan_is_of_what_each_fit_releases(ledger, learner):
    pate = clone(LEARNERS[learner])
    pate.set_params(ledger=ledger, epsilon=2.0, delta=1e-6, classes=[0, 1])
    search = GridSearchCV(pate, {}, cv=KFold(2), refit=False)
    public = {} if learner == "synthetic" else {"X_public": PUBLIC}
    planned = plan(search, X, Y, **public)
    search.fit(X, Y, **public)
    assert ledger.spent == pytest.approx(planned.share, rel=1e-12)


@pytest.mark.slow
def test_a_search_beyond_the_budget_is_told_an_epsilon_that_fits(tmp_path):
    ledger = PrivacyLedger(tmp_path / "small.sqlite", epsilon=2, delta=1e-5)
    pate = PATEClassifier(ledger=ledger, epsilon=1.0, delta=1e-5, classes=[0, 1])
    search = GridSearchCV(pate, {"n_teachers": [20, 20]}, cv=KFold(3))
    planned = plan(search, X, Y, X_public=PUBLIC)
    assert not planned.fits
    assert f"epsilon={planned.fitting_epsilon:g} would fit this budget." in str(planned)
    for factor, fits in [(1, True), (1.05, False)]:
        pate.set_params(epsilon=factor * planned.fitting_epsilon)
        assert plan(search, X, Y, X_public=PUBLIC).fits is fits
    assert ledger.entries() == []
    several = GridSearchCV(pate, {"epsilon": [1.0, 2.0]}, cv=KFold(3))
    assert not hasattr(plan(several, X, Y, X_public=PUBLIC), "fitting_epsilon")


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::sklearn_pate.PrivacyUtilityWarning")
def test_a_refused_fit_of_a_search_names_the_plan_and_an_epsilon(tmp_path):
    ledger = PrivacyLedger(tmp_path / "small.sqlite", epsilon=2, delta=1e-5)
    pate = PATEClassifier(
        GaussianNB(), n_teachers=10, n_queries=20, ledger=ledger, classes=[0, 1]
    )
    search = GridSearchCV(pate, {"delta": [1e-5]}, cv=KFold(3), error_score="raise")
    with pytest.raises(BudgetExceededError, match=r"plan\(search, X") as caught:
        search.fit(X, Y, X_public=PUBLIC)  # three fits leave too little for a refit
    assert len(ledger.entries()) == 3
    assert "times this cost" not in str(caught.value)
    [suggested] = re.findall(r"epsilon=([\d.]+) would fit", str(caught.value))
    pate.set_params(epsilon=float(suggested), delta=1e-5).fit(X, Y, X_public=PUBLIC)


@pytest.mark.slow
def test_the_plan_has_the_number_of_fits_and_their_budget(ledger):
    cv = KFold(3, shuffle=True)
    cost = plan(GridSearchCV(make(ledger), GRID, cv=cv), X, Y, X_public=PUBLIC)
    text = " ".join(str(cost).split())
    assert text.startswith("fits 13: 4 candidates on 3 splits, and a refit. Each new")
    assert cost.fits
    assert "left 100.00% of the budget" in text
    assert "for the data holder alone" in text
    assert "The choice between candidates depends on private labels" in text
    costly = GridSearchCV(make(ledger, mechanism=GumbelMax(c=2)), {"n_queries": [50]})
    cost = plan(costly, X, Y, X_public=PUBLIC)
    assert not cost.fits
    assert "The search would fail before its end, for lack of budget" in str(cost)


@pytest.mark.slow
def test_nothing_is_left_after_a_first_fit_with_the_epsilon_of_the_budget(tmp_path):
    ledger = PrivacyLedger(tmp_path / "small.sqlite", epsilon=1, delta=1e-5)
    pate = make(ledger, mechanism="gnmax", epsilon=1.0, delta=1e-5)
    pate.fit(X, Y, X_public=PUBLIC)
    planned = plan(GridSearchCV(pate, {"n_queries": [5]}), X, Y, X_public=PUBLIC)
    assert planned.left == 0
    assert not planned.fits


@pytest.mark.slow
def test_splits_that_look_at_labels_are_pointed_out(ledger):
    stratified = GridSearchCV(make(ledger), GRID)
    text = "one changed label moves other rows between folds"
    assert text in " ".join(plan(stratified, X, Y, X_public=PUBLIC).warnings)
    assert text in str(privacy_leaks(stratified)[0])
    shuffled = GridSearchCV(make(ledger), GRID, cv=KFold(shuffle=True))
    assert text not in " ".join(plan(shuffled, X, Y, X_public=PUBLIC).warnings)
    assert text not in str(privacy_leaks(shuffled)[0])


@pytest.mark.slow
def test_a_random_search_has_a_cost_if_its_candidates_are_known(ledger):
    search = RandomizedSearchCV(
        make(ledger), GRID, n_iter=3, random_state=0, cv=KFold(2), refit=False
    )
    cost = plan(search, X, Y, X_public=PUBLIC)
    search.fit(X, Y, X_public=PUBLIC)
    assert ledger.spent == pytest.approx(cost.share, rel=1e-12)


def test_held_out_rows_count_as_public(ledger):
    pate = make(ledger, public_size=0.2, n_queries="auto", n_teachers="auto")
    cost = plan(GridSearchCV(pate, {}, cv=KFold(2), refit=False), X, Y)
    with pytest.warns(UserWarning, match="private rows as public rows"):
        GridSearchCV(pate, {}, cv=KFold(2), refit=False).fit(X, Y)
    assert ledger.spent == pytest.approx(cost.share, rel=1e-12)


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (lambda pate: HalvingGridSearchCV(pate, GRID), "is of type HalvingGridSearch"),
        (lambda pate: RandomizedSearchCV(pate, GRID), "set an integer random_state"),
        (lambda _: GridSearchCV(make(None), GRID), "has no ledger; set ledger="),
        (lambda _: GridSearchCV(LogisticRegression(), {}), "has no ledger"),
        (lambda pate: GridSearchCV(pate, {"epsilon": [-1]}), "epsilon=-1 must be"),
        (lambda pate: GridSearchCV(pate, {"n_queries": [99]}), "more than the 60 publ"),
        (lambda pate: GridSearchCV(pate, {"ledger": [None]}), "have different ledgers"),
        (lambda pate: GridSearchCV(pate, {}, cv=iter([([0], [1])])), "read only once"),
    ],
)
def test_a_search_without_a_known_cost_is_refused(ledger, search, message):
    with pytest.raises(ValueError, match=message):
        plan(search(make(ledger)), X, Y, X_public=PUBLIC)


def test_public_rows_are_asked_for(ledger):
    with pytest.raises(
        ValueError,
        match=r"X_public=None, but .* neither public_size nor synthetic; pass",
    ):
        plan(GridSearchCV(make(ledger), GRID), X, Y)
