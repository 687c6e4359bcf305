"""Codes of a column, counted by class with noise, as features."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import norm
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import OneHotEncoder

from sklearn_pate import (
    DPNewtonClassifier,
    PATEClassifier,
    PrivacyLedger,
    PrivacyUtilityWarning,
    PrivateMarginals,
    PublicData,
    PublishedClassifier,
)
from sklearn_pate.inspection import PrivacyReport, audit_neighbours, plan
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.students import TableRepresentation
from tests._aggregation.fits import Crash
from tests.private import (
    ClassTables,
    CodedColumns,
    FitEntry,
    MarginalCounts,
    _entry,
    largest_gdp_mu,
    read_codes,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_pate.PrivacyUtilityWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_pate.StudentWarning"),
]
N_CODES = 300
CODES = [f"c{number:03d}" for number in range(N_CODES)]


def table_of_codes(n_rows, *, effect=1.5, seed=0):
    """Make rows with a code whose effect on the log-odds is normal, and numbers."""
    rng = np.random.default_rng(seed)
    effects = effect * rng.normal(size=N_CODES)
    place = rng.integers(N_CODES, size=n_rows)
    X = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=[*"abc"])
    X["code"] = np.array(CODES)[place]
    logits = effects[place] + 0.3 * X["a"].to_numpy()
    return X, (rng.uniform(size=n_rows) < 1 / (1 + np.exp(-logits))).astype(int)


X, Y = table_of_codes(12_000)
PRIVATE, PUBLIC, TEST = slice(0, 8000), slice(8000, 9000), slice(9000, 12_000)
LEARNERS = {
    "DPNewton": DPNewtonClassifier(epsilon=4, random_state=0),
    "mean scores": PATEClassifier(epsilon=4, random_state=0),
    "votes": PATEClassifier(epsilon=4, random_state=0, mechanism="gnmax"),
}
every_learner = pytest.mark.parametrize("learner", LEARNERS)


def fit(learner="DPNewton", X=X, y=Y, groups=None, **parameters):
    clf = clone(LEARNERS[learner]).set_params(**parameters)
    public = PublicData(X[PUBLIC])
    return clf.fit(X[PRIVATE], y[PRIVATE], X_public=public, groups=groups)


def auc(fitted, X=X):
    return roc_auc_score(Y[TEST], fitted.predict_proba(X[TEST])[:, 1])


# What the features are worth


@every_learner
def test_counts_tell_codes_apart_that_public_rows_hardly_show(learner):
    with_counts, without = fit(learner), fit(learner, codes=None)
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


def test_codes_without_any_effect_become_no_feature():
    X, y = table_of_codes(12_000, effect=0.0)
    message = r"the codes in the columns \['code'\] tell the classes apart no better"
    with pytest.warns(PrivacyUtilityWarning, match=message):
        fitted = fit(X=X, y=y)
    [log_odds] = fitted.representation_.codes.log_odds_
    assert not log_odds.any()


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


@every_learner
def test_the_statement_holds_the_counts_and_what_follows(learner):
    fitted = fit(learner)
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


def test_the_plan_is_the_statement_of_the_fit():
    given = X[PRIVATE], Y[PRIVATE]
    fitted = fit()
    planned = plan(LEARNERS["DPNewton"], *given, X_public=PublicData(X[PUBLIC]))
    assert planned.mechanism == fitted.privacy_spent_.mechanism
    assert "the codes in 1 column are counted by class" in str(planned)


# Neighbours


def counts_of(rows, labels):
    declared = dict.fromkeys(range(rows.shape[1]), CODES[:40])
    given = {"n_units": len(rows), "n_classes": 3, "sigma_of": lambda n: 1.0}
    return read_codes(declared, rows[:0], **given).count(rows, labels, 3)


class Odd:
    def __str__(self):
        raise RuntimeError


@pytest.mark.neighbours
@pytest.mark.parametrize(
    "value",
    ["c003", "other", None, np.nan, 7, 1e300, [1], Odd(), b"c003"],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("label", [-1, 0, 2])
@pytest.mark.parametrize("n_columns", [1, 3])
def test_a_replaced_row_moves_one_count_of_each_table(value, label, n_columns):
    rows = np.random.default_rng(0).choice(CODES[:60], (50, n_columns)).astype(object)
    labels = np.arange(50) % 3
    other, other_labels = rows.copy(), labels.copy()
    replaced = np.empty(n_columns, dtype=object)
    replaced[:] = [value] * n_columns
    other[7], other_labels[7] = replaced, label
    before, after = counts_of(rows, labels), counts_of(other, other_labels)
    moved = after - before
    assert np.abs(moved).max(initial=0) <= 1
    assert moved @ moved <= 2 * n_columns
    assert before.sum() == 50 * n_columns


GROUPS = np.arange(8000) // 4
OF_GROUPS = DPNewtonClassifier(
    codes={"code": CODES},
    privacy_unit="group",
    n_groups=2000,
    classes=[0, 1],
    random_state=0,
)


def counts_of_groups(X_private, y, groups):
    planned = OF_GROUPS._plan(
        X_private, y, X_public=PublicData(X[PUBLIC]), groups=groups
    )
    rows = _entry.counted_rows(planned.private, planned.seeds.synthetic)
    return planned.public.coded.count(*rows, 2)


@pytest.mark.neighbours
@pytest.mark.parametrize("change", ["removed", "changed"])
def test_a_group_counts_once(change):
    rows, labels = X[PRIVATE].reset_index(drop=True), Y[PRIVATE]
    before = counts_of_groups(rows, labels, GROUPS)
    of_group = GROUPS == 5
    if change == "removed":
        stays = ~of_group
        after = counts_of_groups(rows[stays], labels[stays], GROUPS[stays])
    else:
        other = rows.copy()
        other.loc[of_group, "code"] = "c001"
        after = counts_of_groups(other, np.where(of_group, 1 - labels, labels), GROUPS)
    moved = after - before
    assert 0 < moved @ moved <= 2
    assert before.sum() == 2000


# A planted defect


def audit():
    rows = pd.DataFrame({"code": ["a"] * 60 + ["b"] * 60})
    y = np.arange(120) % 2
    other = rows.copy()
    other.loc[0, "code"] = "c"
    clf = DPNewtonClassifier(
        codes={"code": [*"abc"]}, epsilon=0.5, classes=[0, 1], random_state=0
    )
    return audit_neighbours(
        clf,
        (rows, y),
        (other, y),
        X_public=PublicData(pd.DataFrame({"code": [*"abc"] * 20})),
        statistic=lambda fitted: fitted.marginals_["code"][0, 2],
        n_runs=60,
    )


@pytest.mark.slow
def test_sound_counts_pass_and_a_row_that_is_counted_many_times_is_found(monkeypatch):
    assert not audit().contradicted
    honest = CodedColumns.count
    monkeypatch.setattr(CodedColumns, "count", lambda *given: 1000 * honest(*given))
    assert audit().contradicted


# The ledger


def test_a_repeated_fit_is_charged_once_and_gets_the_same_model(tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=10, delta=1e-4)
    first, again = fit(ledger=ledger), fit(ledger=ledger)
    assert_array_equal(first.coefficients_, again.coefficients_)
    [entry] = ledger.entries()
    assert entry.epsilon == pytest.approx(first.privacy_spent_.epsilon)
    assert "noisy counts of the codes in 1 column, then" in entry.description


@pytest.mark.parametrize(
    ("owner", "name", "when", "n_charges"),
    [
        (FitEntry, "open", "before", 1),
        (MarginalCounts, "release", "before", 2),
        (FitEntry, "keep", "before", 2),
        (FitEntry, "keep", "after", 1),
    ],
)
def test_a_fit_that_died_counts_once_for_each_charge(
    tmp_path, monkeypatch, owner, name, when, n_charges
):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=100, delta=1e-3)
    work = getattr(owner, name)

    def dies(*args, **kwargs):
        if when == "after":
            work(*args, **kwargs)
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, dies)
        with pytest.raises(Crash):
            fit(ledger=ledger)
    fitted = fit(ledger=ledger)
    assert len(ledger.entries()) == n_charges
    assert_array_equal(fit(ledger=ledger).coefficients_, fitted.coefficients_)
    assert len(ledger.entries()) == n_charges


# Which columns are counted


def coded(X_public, n_units=8000, sigma=5.0, declared="auto"):
    given = {"n_units": n_units, "n_classes": 2, "sigma_of": lambda n: sigma * n**0.5}
    found = read_codes(declared, X_public, **given)
    return [] if found is None else [*found.by_name]


def test_ids_few_categories_few_rows_and_numbers_are_not_counted():
    rng = np.random.default_rng(0)
    X_public = X[PUBLIC].assign(
        id=[f"id{number}" for number in range(1000)],
        few=rng.choice([*"abcdefghij"], 1000),
        number=rng.integers(300, size=1000),
    )
    assert coded(X_public) == ["code"]
    assert not coded(X_public, n_units=800)
    assert not coded(X_public, n_units=None)
    assert not coded(X_public, sigma=100.0)


def test_codes_of_a_type_have_a_count_although_no_public_row_has_them():
    typed = X.assign(code=pd.Categorical(X["code"], categories=[*CODES, "rare"]))
    fitted = fit(X=typed)
    assert set(fitted.codes_["code"]) == {*CODES, "rare"}


def test_columns_of_arrays_are_declared_by_number():
    rows = X.to_numpy(dtype=object)
    fitted = fit(X=rows, codes={3: None})
    assert [*fitted.codes_] == [3]
    assert auc(fitted, rows) > 0.7


def test_a_dict_gives_groups_of_codes():
    groups = {code: code[:3] for code in CODES}
    fitted = fit(codes={"code": groups})
    assert fitted.codes_ == {"code": CODES}
    assert auc(fitted) > 0.7


def test_other_learners_of_tables_leave_codes_alone():
    forest = RandomForestClassifier(n_estimators=5)
    rows = X[[*"abc"]]
    assert not hasattr(fit("votes", X=rows, estimator=forest), "codes_")
    domain = dict.fromkeys("abc", (-5.0, 5.0)) | {"code": CODES}
    clf = DPNewtonClassifier(synthetic=PrivateMarginals(domain), random_state=0)
    fitted = clf.fit(X[PRIVATE], Y[PRIVATE])
    assert fitted.privacy_spent_.n_coded is None
    assert not hasattr(fitted, "codes_")


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


def test_the_holder_is_told_of_values_without_a_declared_code():
    clf = clone(LEARNERS["DPNewton"]).set_params(codes={"code": CODES[1:]})
    n_values = int(np.sum(X["code"][PRIVATE] == CODES[0]))
    problems = clf.check_data(X[PRIVATE], Y[PRIVATE], X_public=X[PUBLIC])
    assert f"Column 'code': {n_values} values without a declared code." in problems


# What is published


@every_learner
def test_a_published_model_predicts_as_before(learner, tmp_path):
    fitted = fit(learner)
    fitted.publish().save(tmp_path / "model.skops")
    published = PublishedClassifier.load(tmp_path / "model.skops")
    rows = X[TEST].assign(code=["never seen", *X["code"][TEST][1:]])
    assert_array_equal(published.predict_proba(rows), fitted.predict_proba(rows))
    assert published.privacy_spent_ == fitted.privacy_spent_


@every_learner
def test_a_report_names_the_counts(learner):
    report = PrivacyReport.from_estimator(fit(learner))
    assert report.to_dict()["n_coded"] == 1
    page = report.to_markdown()
    assert "First, the codes in 1 column are counted by class" in page
    assert "of the codes in 1 column by class: the first release" in page
    assert "log-odds of the codes, from the noisy counts" in page


def test_a_representation_keeps_its_codes_in_a_clone():
    fitted = fit()
    copied = clone(TableRepresentation(codes=fitted.representation_.codes))
    assert copied.codes is fitted.representation_.codes
