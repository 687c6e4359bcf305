"""Codes of a column, counted by class with noise, as features."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import norm
from sklearn.base import clone
from sklearn.preprocessing import OneHotEncoder

from sklearn_pate import (
    DPNewtonClassifier,
    PrivacyUtilityWarning,
    PrivateMarginals,
    PublicData,
    PublicDataWarning,
    PublishedClassifier,
)
from sklearn_pate.inspection import PrivacyReport, plan
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.students import TableRepresentation
from tests._aggregation.code_fits import (
    CODES,
    LEARNERS,
    N_CODES,
    PRIVATE,
    PUBLIC,
    TEST,
    WHOLE,
    X,
    Y,
    auc,
    every_learner,
    fit,
    fitted_of,
    table_of_codes,
)
from tests.private import (
    ClassTables,
    CodedColumns,
    largest_gdp_mu,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_pate.PrivacyUtilityWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_pate.StudentWarning"),
    pytest.mark.filterwarnings("ignore:.* of the public rows have none of the codes"),
]
# What the features are worth


@pytest.mark.slow
@every_learner
def test_counts_tell_codes_apart_that_public_rows_hardly_show(learner):
    with_counts, without = fitted_of(learner), fit(learner, codes=None)
    assert auc(with_counts) > auc(without) + 0.08
    assert [*with_counts.codes_] == ["code"]
    assert set(with_counts.codes_["code"]) == set(X["code"][PUBLIC])
    table = with_counts.marginals_["code"]
    assert table.shape == (2, 1 + len(with_counts.codes_["code"]))
    sigma = with_counts.mechanism_.counts.sigma
    n_classes = np.bincount(Y[PRIVATE])
    spread = 5 * sigma * np.sqrt(table.shape[1])
    assert np.all(np.abs(table.sum(axis=1) - n_classes) < spread)
    assert not hasattr(without, "codes_")
    assert not hasattr(without, "marginals_")


# No row tells the curvature, where labels depend on nothing.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The private rows vary")
def test_codes_without_any_effect_become_no_feature():
    X, y = table_of_codes(12_000, effect=0.0)
    message = r"the codes in the columns \['code'\] tell the classes apart no better"
    with pytest.warns(PrivacyUtilityWarning, match=message):
        fitted = fit(X=X, y=y)
    [log_odds] = fitted.representation_.codes.log_odds_
    assert not log_odds.any()


@pytest.mark.slow
def test_a_code_that_public_rows_never_show_has_the_log_odds_of_all_such():
    listed = CODES[: N_CODES // 2]
    fitted = fit(codes={"code": listed})
    codes = fitted.representation_.codes
    [log_odds] = codes.log_odds_
    unseen = X[TEST].assign(code="never seen")
    assert_array_equal(codes.transform(unseen), log_odds[-1] + np.zeros((3000, 1)))
    missing = X[TEST].assign(code=None)
    assert_array_equal(codes.transform(missing), codes.transform(unseen))
    assert fitted.codes_ == {"code": listed}


def effects_of(n_per_cell, effects, sigma, groups=None, seed=0):
    """Return log-odds from noisy counts of codes with known effects."""
    rng = np.random.default_rng(seed)
    second = rng.binomial(n_per_cell, 1 / (1 + np.exp(-effects)))
    table = np.array([n_per_cell - second, second])
    noisy = np.rint(table + sigma * rng.normal(size=table.shape)).astype(np.int64)
    codes = {0: {f"c{place}": place for place in range(len(effects) - 1)}}
    coded = CodedColumns(codes, {} if groups is None else {0: groups}, ["code"])
    n_units = n_per_cell * len(effects)
    released = ClassTables.of_counts([noisy], sigma, n_units)
    [log_odds] = coded.log_odds([noisy], released).log_odds_
    # Helmert's contrast of two classes.
    return -np.sqrt(2) * log_odds[:, 0] / 2


def test_effects_of_many_rows_are_found_as_they_are():
    effects = np.random.default_rng(1).normal(size=200)
    found = effects_of(100_000, effects - effects.mean(), sigma=1.0)
    # Log-odds of a code, less those of all rows, are only nearly linear.
    assert np.corrcoef(found, effects)[0, 1] > 0.98


def test_effects_are_shrunk_to_the_best_linear_estimate():
    effects = np.random.default_rng(1).normal(scale=0.5, size=400)
    effects -= effects.mean()
    found = effects_of(100, effects, sigma=10.0)
    error = np.mean((found - effects) ** 2)
    # information 25, variance 25 + 50 of sampling and noise, prior variance 1 / 4.
    expected = 0.25 * (1 - 0.25 * 25**2 / (0.25 * 25**2 + 75))
    assert error == pytest.approx(expected, rel=0.3)


@pytest.mark.parametrize("sigma", [0.5, 10.0, 100.0])
def test_effects_of_chance_alone_are_rarely_any(sigma):
    found = [
        effects_of(100, np.zeros(300), sigma, seed=seed).any() for seed in range(40)
    ]
    assert np.mean(found) < 0.25


def test_groups_of_codes_share_what_they_have_in_common():
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(40), 10)
    effects = np.append(rng.normal(size=40)[groups], 0)
    alone, grouped = (
        effects_of(30, effects, 15.0, groups=one) for one in (None, groups)
    )
    errors = [np.mean((found - effects) ** 2) for found in (alone, grouped)]
    assert errors[1] < 0.7 * errors[0]


# The cost


@pytest.mark.slow
@every_learner
def test_the_statement_holds_the_counts_and_what_follows(learner):
    fitted = fitted_of(learner)
    spent, (counts, rest) = fitted.privacy_spent_, fitted.mechanism_.parts
    assert 3.99 < spent.epsilon <= 4
    assert spent.n_coded == 1
    assert spent.n_tables is None
    assert not spent.class_count
    squared = 2 / (counts.sigma**2 - 2.25)
    assert squared == pytest.approx(0.3 * largest_gdp_mu(4, 1e-5) ** 2, rel=1e-4)
    alone = rest.cost(spent.n_queries or 0, 2).epsilon(1e-5)
    assert alone < 0.95 * spent.epsilon
    if spent.mu is not None:
        mu = spent.mu
        delta = norm.cdf(mu / 2 - 4 / mu) - np.exp(4) * norm.cdf(-mu / 2 - 4 / mu)
        assert 0.99e-5 < delta <= 1e-5 * (1 + 1e-6)
    text = " ".join(str(spent).split())
    assert "The log-odds of the codes in 1 column are from noisy counts" in text
    assert "drawn from noisy counts" not in text


@pytest.mark.slow
def test_the_plan_is_the_statement_of_the_fit():
    given = X[PRIVATE], Y[PRIVATE]
    fitted = fitted_of()
    planned = plan(LEARNERS["DPNewton"], *given, X_public=PublicData(X[PUBLIC]))
    assert planned.mechanism == fitted.privacy_spent_.mechanism
    assert "the codes in 1 column are counted by class" in str(planned)


# Wrong input

ONE_HOT = OneHotEncoder(handle_unknown="ignore", sparse_output=False)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"codes": "code"}, r"codes='code' must be 'auto', None, or a dict"),
        ({"codes": {}}, r"codes=\{\} must be 'auto', None, or a dict"),
        ({"codes": {"code": "c001"}}, r"codes\['code'\] is of type str; pass a list"),
        ({"codes": {"code": []}}, r"codes\['code'\] has 0 codes; pass 1 to 10000"),
        ({"codes": {"code": ["a", "a"]}}, r"codes\['code'\] has 'a' twice"),
        ({"codes": {"other": ["a"]}}, r"codes has 'other', which is no column of X"),
        ({"codes": {"code": ["C001", "C002"]}}, r"No public row has one of the codes"),
        ({"codes": {"code": [1, 2]}}, r"No public row has one of the codes"),
        ({"codes": {"code": [None, np.nan]}}, r"has missing values twice"),
        ({"codes": {"code": WHOLE}}, r"convert whole numbers from 2\^53 on to text"),
        ({"codes": {"code": [["c001"]]}}, r"has list among codes or groups"),
        (
            {"codes": {"code": {"G": CODES[:50], "H": CODES[50:]}}},
            r"the keys are codes, and the values are groups",
        ),
        (
            {"codes": {"code": CODES}, "representation": ONE_HOT},
            r"features of a TableRepresentation; set representation=",
        ),
    ],
)
@every_learner
def test_codes_that_cannot_be_counted_are_refused(learner, parameters, message):
    with pytest.raises(ValueError, match=message):
        fit(learner, **parameters)


def test_codes_need_an_epsilon_and_no_synthetic_rows():
    with pytest.raises(ValueError, match="epsilon=None leaves the noise of their"):
        fit("votes", codes={"code": CODES}, epsilon=None, mechanism=GNMax(sigma=40))
    clf = DPNewtonClassifier(
        synthetic=PrivateMarginals({"code": CODES}), codes={"code": CODES}
    )
    with pytest.raises(ValueError, match="declare the codes in its domain"):
        clf.fit(X[["code"]], Y)


def test_codes_of_few_public_rows_are_told_of():
    with pytest.warns(PublicDataWarning, match=r"9\d % of the public rows have none"):
        fit(codes={"code": CODES[:10]})


def test_values_are_counted_as_public_rows_have_them():
    listed = [f"{number:03d}" for number in range(N_CODES)]
    private = X[PRIVATE].assign(code=[code[1:] for code in X["code"][PRIVATE]])
    public = X[PUBLIC].assign(code=[int(code[1:]) for code in X["code"][PUBLIC]])
    clf = clone(LEARNERS["DPNewton"]).set_params(codes={"code": listed})
    problems = clf.check_data(private, Y[PRIVATE], X_public=public)
    n_below = int(np.sum(X["code"][PRIVATE] < "c100"))
    assert f"Column 'code': {n_below} values without a declared code." in problems


def test_the_holder_is_told_of_values_without_a_declared_code():
    clf = clone(LEARNERS["DPNewton"]).set_params(codes={"code": CODES[1:]})
    n_values = int(np.sum(X["code"][PRIVATE] == CODES[0]))
    problems = clf.check_data(X[PRIVATE], Y[PRIVATE], X_public=X[PUBLIC])
    assert f"Column 'code': {n_values} values without a declared code." in problems


# What is published


@pytest.mark.slow
@every_learner
def test_a_published_model_predicts_as_before(learner, tmp_path):
    fitted = fitted_of(learner)
    fitted.publish().save(tmp_path / "model.skops")
    published = PublishedClassifier.load(tmp_path / "model.skops")
    rows = X[TEST].assign(code=["never seen", *X["code"][TEST][1:]])
    assert_array_equal(published.predict_proba(rows), fitted.predict_proba(rows))
    assert published.privacy_spent_ == fitted.privacy_spent_


@pytest.mark.slow
@every_learner
def test_a_report_names_the_counts(learner):
    report = PrivacyReport.from_estimator(fitted_of(learner))
    assert report.to_dict()["n_coded"] == 1
    page = report.to_markdown()
    assert "First, the codes in 1 column are counted by class" in page
    assert "of the codes in 1 column by class: the first release" in page
    assert "log-odds of the codes, from the noisy counts" in page


@pytest.mark.slow
def test_a_representation_keeps_its_codes_in_a_clone():
    fitted = fitted_of()
    copied = clone(TableRepresentation(codes=fitted.representation_.codes))
    assert copied.codes is fitted.representation_.codes
