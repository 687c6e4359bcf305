"""Numbers that are learned in bins."""

import warnings
from datetime import date, timedelta

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC

from sklearn_pate import (
    DPNewtonClassifier,
    PATEClassifier,
    PrivacyLedger,
    PublicData,
    privacy_leaks,
)
from sklearn_pate.learners import DPNaiveBayesClassifier
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.outcomes import BinnedRegressor
from tests.outcomes.outcomes import (
    N_PRIVATE,
    N_PUBLIC,
    classifier,
    fitted,
    numbers,
    parts,
    rows,
)


def test_means_quantiles_and_intervals_follow_the_outcome(of_numbers):
    model, X, y = of_numbers
    assert model.score(X, y) > 0.7
    below, middle, above = model.predict_quantiles(X, [0.1, 0.5, 0.9]).T
    assert np.all(below <= middle)
    assert np.all(middle <= above)
    assert np.corrcoef(middle, y)[0, 1] > 0.8
    ends = model.predict_interval(X, confidence_level=0.8)
    assert np.allclose(ends, np.stack([below, above], axis=1))
    clipped = y.clip(0, 10)
    inside = (ends[:, 0] <= clipped) & (clipped <= ends[:, 1])
    assert 0.7 < inside.mean() < 0.95
    assert np.array_equal(model.edges_, [0, 2, 4, 6, 8, 10])


def test_a_mean_is_that_of_the_bins_middles(of_numbers):
    model, X, _ = of_numbers
    probabilities = model.classifier_.predict_proba(X)
    assert np.allclose(model.predict(X), probabilities @ [1, 3, 5, 7, 9])


def test_quantiles_are_those_of_a_density_that_is_constant_in_bins(of_numbers):
    model, X, _ = of_numbers
    [first] = model.classifier_.predict_proba(X[:1])
    rng = np.random.default_rng(0)
    drawn = rng.choice(5, size=200_000, p=first) * 2 + rng.uniform(0, 2, 200_000)
    wanted = [0.05, 0.3, 0.5, 0.95]
    found = model.predict_quantiles(X[:1], wanted)[0]
    assert found == pytest.approx(np.quantile(drawn, wanted), abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda: PATEClassifier(LogisticRegression(), n_teachers=50, epsilon=2.0),
        lambda: PATEClassifier(
            LogisticRegression(),
            n_teachers=50,
            n_queries=100,
            epsilon=None,
            mechanism=GNMax(sigma=8),
        ),
        lambda: DPNaiveBayesClassifier((-5, 5), epsilon=1.0),
    ],
    ids=["mean scores", "votes", "naive Bayes"],
)
def test_any_private_classifier_learns_the_bins(make):
    X = rows()
    y = numbers(X)
    given = {"X_public": PublicData(X[N_PRIVATE : N_PRIVATE + N_PUBLIC])}
    if isinstance(make(), DPNaiveBayesClassifier):
        given = {}
    model = BinnedRegressor(make(), bins=[0, 3, 5, 7, 10])
    assert model.fit(X[:N_PRIVATE], y[:N_PRIVATE], **given).score(X, y) > 0.4


@pytest.mark.thorough
def test_bins_of_a_range_depend_on_public_numbers_alone():
    X = rows()
    few = BinnedRegressor(classifier(epsilon=0.1), bins=(0, 10))
    many = BinnedRegressor(classifier(epsilon=10.0), bins=(0, 10))
    sizes = []
    for model in (few, many):
        for y in (numbers(X), np.zeros(len(X))):
            model.fit(X[:N_PRIVATE], y[:N_PRIVATE], X_public=PublicData(X[N_PRIVATE:]))
            assert model.edges_[0] == 0
            assert model.edges_[-1] == 10
            sizes.append(len(model.edges_))
    assert sizes[0] == sizes[1] < sizes[2] == sizes[3]


def test_outcomes_beyond_the_edges_count_in_the_outer_bins():
    codes = codes_of([-5.0, 0.0, 1.99, 2.0, 4.0, 9.0], [0, 2, 4])
    assert codes.tolist() == [0, 0, 0, 1, 1, 1]


def codes_of(y, bins):
    """Return the classes that the classifier gets."""
    seen = []

    class Spy(DPNewtonClassifier):
        def plan_privacy(self, X, y, **given):
            seen.append(np.asarray(y))
            return super().plan_privacy(X, y, **given)

    X = rows()
    y = np.resize(np.asarray(y, dtype=object), len(X))
    model = BinnedRegressor(Spy(), bins=bins)
    model.plan_privacy(X, y, X_public=PublicData(rows(1)[:100]))
    return seen[0][: len(y)][:6]


@pytest.mark.parametrize("odd", [None, np.nan, np.inf, "unknown", pd.NA, object()])
def test_a_row_without_a_number_is_dropped_without_a_word(odd):
    assert codes_of([1.0, odd], [0, 2, 4])[:2].tolist() == [0, -1]
    X, y = rows()[:200], np.ones(200, dtype=object)
    y[3] = odd
    model = BinnedRegressor(classifier(), bins=[0, 2, 4])
    problems = model.check_data(X, y, X_public=X)
    assert "1 row left out: the outcome is missing, or no number." in problems


def test_the_holder_hears_of_units_edges_and_empty_bins():
    X = rows()[:1000]
    model = BinnedRegressor(classifier(), bins=[0, 2, 4, 6])
    said = str(model.check_data(X, np.full(1000, 72.0), X_public=X))
    assert "1000 outcomes of 1000 are above 6, the last edge" in said
    assert "No outcome is between 0 and 2." in said
    whole = np.arange(1000) % 7
    assert "put edges at halves" in str(model.check_data(X, whole, X_public=X))
    at_halves = BinnedRegressor(classifier(), bins=[0.5, 2.5, 6.5])
    assert "halves" not in str(at_halves.check_data(X, whole, X_public=X))
    # What the classifier finds is told, too.
    X[:, 0] += 100
    said = str(model.check_data(X, numbers(rows()[:1000]), X_public=rows()[1000:]))
    assert "use the same units" in said


@pytest.mark.slow
def test_the_statement_says_where_the_edges_are_from():
    make, X, y, given = parts("number")
    del make
    for bins, code in (([0, 5, 10], "bins-declared"), (None, "range-read")):
        model = BinnedRegressor(classifier(), bins=bins)
        planned = model.plan_privacy(X[:N_PRIVATE], y[:N_PRIVATE], **given)
        model.fit(X[:N_PRIVATE], y[:N_PRIVATE], **given)
        codes = [one.code for one in model.privacy_spent_.assumptions]
        assert code in codes
        assert "label-set-public" not in codes
        assert planned.to_dict() == model.privacy_spent_.to_dict()
        assert model.publish().card["assumptions"][0]["code"] in codes
    ends = y[:N_PRIVATE].min(), y[:N_PRIVATE].max()
    assert (model.edges_[0], model.edges_[-1]) == ends


def test_an_outcome_of_one_value_has_a_range():
    X = rows()[:300]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BinnedRegressor(classifier()).fit(
            X[:200], np.full(200, 3.0), X_public=PublicData(X[200:])
        )
    assert model.edges_[[0, -1]].tolist() == [2.5, 3.5]


@pytest.mark.parametrize(
    ("bins", "y", "message"),
    [
        ([0, 2, 2], None, "bins=.* must be finite numbers that increase"),
        ([3, 2, 1], None, "bins=.* must be finite numbers that increase"),
        ([0, np.inf], None, "bins=.* must be finite numbers that increase"),
        ("ten", None, "bins='ten' must be finite numbers that increase"),
        ([1], None, "bins=.* must be finite numbers that increase"),
        ([0, 1, 2], np.array(["a"] * 200), "y is declared to be .*outcome is a number"),
        ([0, 1, 2], np.ones(200, bool), "y is declared to be bool"),
        (None, np.append(np.ones(199), np.nan), "contains NaN"),
    ],
)
def test_bad_bins_and_types_are_refused_in_one_sentence(bins, y, message, tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.db", epsilon=3, delta=1e-5)
    X = rows()[:200]
    y = np.ones(200) if y is None else y
    model = BinnedRegressor(classifier(ledger=ledger), bins=bins)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, X_public=PublicData(rows(1)))
    assert ledger.spent == 0


@pytest.mark.parametrize(
    ("inner", "message"),
    [
        (RandomForestRegressor(), "is not a private classifier"),
        (RandomForestClassifier(), "is not a private classifier"),
        (DPNewtonClassifier(classes=[0, 1]), "leave classes at None"),
        (PATEClassifier(LogisticRegression(), LinearSVC()), "has no predict_proba"),
        (PATEClassifier(RandomForestRegressor()), "is not a classifier"),
    ],
)
def test_other_classifiers_are_refused_in_one_sentence(inner, message):
    X = rows()[:200]
    with pytest.raises(ValueError, match=message):
        BinnedRegressor(inner, bins=(0, 10)).fit(
            X, X[:, 0], X_public=PublicData(rows(1))
        )


@pytest.mark.slow
def test_it_works_in_pipelines_and_searches():
    make, X, y, _ = parts("number")
    few = rows(1)[:1000]
    given = {"X_public": PublicData(few)}
    model = make(classifier())
    pipeline = make_pipeline(FunctionTransformer(np.abs), model)
    pipeline.fit(X, y, binnedregressor__X_public=PublicData(np.abs(few)))
    assert pipeline.predict(X).shape == (len(X),)
    assert privacy_leaks(pipeline) == []
    search = GridSearchCV(
        model, {"classifier__epsilon": [0.5, 2.0]}, cv=KFold(2), refit=False
    ).fit(X, y, **given)
    assert search.cv_results_["mean_test_score"].min() > 0.5
    assert privacy_leaks(search)[0].estimator == "GridSearchCV"
    assert clone(model).get_params(deep=False)["bins"] == [0, 2, 4, 6, 8, 10]


@pytest.mark.slow
def test_groups_are_the_unit_of_the_classifier():
    _, X, y, given = parts("number")
    groups = np.arange(N_PRIVATE) // 2
    inner = classifier(privacy_unit="group", n_groups=2500)
    model = BinnedRegressor(inner, bins=(0, 10))
    model.fit(X[:N_PRIVATE], y[:N_PRIVATE], groups=groups, **given)
    assert model.privacy_spent_.unit == "group"
    assert len(model.edges_) == 6  # the number of groups is protected
    requests = model.get_metadata_routing().fit.requests
    assert requests == {"X_public": True, "groups": True}


def test_one_ledger_entry_for_a_fit(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.db", epsilon=3, delta=1e-5)
    model, _, _ = fitted("number", ledger=ledger)
    assert len(ledger.entries()) == 1
    assert ledger.entries()[0].epsilon == pytest.approx(model.privacy_spent_.epsilon)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
def test_days_in_hospital_reach_what_was_asked(data_set):
    """R^2 of 0.40 at epsilon 1 on Diabetes, one row of each stay."""
    data = data_set("diabetes130", as_frame=True)
    frame = data.data.drop(columns=["weight", "payer_code"])
    days = frame.pop("time_in_hospital").to_numpy(dtype=float)
    order = np.random.default_rng(0).permutation(len(days))
    public, test, train = np.split(order, [2000, 10_000])
    model = BinnedRegressor(
        DPNewtonClassifier(epsilon=1.0, random_state=0),
        bins=[0.5, 1.5, 2.5, 3.5, 4.5, 6.5, 9.5, 14.5],
    )
    model.fit(frame.iloc[train], days[train], X_public=PublicData(frame.iloc[public]))
    assert model.score(frame.iloc[test], days[test]) > 0.40


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [3162, 3163])
def test_bins_do_not_depend_on_a_protected_number_of_rows(n_rows):
    """The number of bins of so many public rows would differ."""
    X = rows()
    clf = DPNaiveBayesClassifier(
        (-5.0, 5.0), epsilon=2.0, privacy_unit="group", random_state=0
    )
    model = BinnedRegressor(clf, bins=(0, 10))
    model.fit(X[:n_rows], numbers(X)[:n_rows], groups=np.arange(n_rows))
    assert len(model.edges_) == 6


def test_the_interval_of_level_one_is_the_whole_range(of_numbers, monkeypatch):
    model, X, _ = of_numbers
    sure = np.array([[0.0, 0.0, 0.5, 0.5, 0.0]])
    monkeypatch.setattr(model.classifier_, "predict_proba", lambda X: sure, False)
    assert model.predict_interval(X[:1], 1.0).tolist() == [[0, 10]]
    assert model.predict_interval(X[:1], 0.5).tolist() == [[5, 7]]


@pytest.mark.parametrize(
    "odd", [timedelta(days=1), date(2020, 1, 1), True, [1.0, 2.0], (), np.True_]
)
def test_a_value_of_another_kind_is_no_number_and_changes_no_other(odd):
    assert codes_of([1.0, odd], [0, 2, 4])[:2].tolist() == [0, -1]
    X = rows()[:5]
    model = BinnedRegressor(classifier(), bins=[0, 2, 4])
    listed = [[3.0], [odd], [1.0], ["1"], [None]]
    said = str(model.check_data(X, listed, X_public=rows(1)))
    assert "2 rows left out" in said


def test_y_of_another_length_is_refused_by_check_data_too():
    X = rows()[:200]
    model = BinnedRegressor(classifier(), bins=(0, 10))
    for y, groups in ((X[:199, 0], None), (X[:, 0], np.arange(199))):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            model.check_data(X, y, X_public=rows(1), groups=groups)


def test_an_outcome_without_a_number_is_refused_in_its_own_words():
    X = rows()[:200]
    for bins, message in (
        ([0, 5], "No row of y has an outcome"),
        (None, "y has no number to read the range from"),
    ):
        model = BinnedRegressor(classifier(), bins=bins)
        with pytest.raises(ValueError, match=message):
            model.fit(X, ["low", "high"] * 100, X_public=PublicData(rows(1)))
