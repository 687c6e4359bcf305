"""Tests of DPNaiveBayesClassifier: counts, cost, neighbours, ledger, publication."""

import functools

import numpy as np
import pandas as pd
import pytest
from dp_accounting import dp_event
from dp_accounting.pld import PLDAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.utils.estimator_checks import check_estimator

from sklearn_pate import BudgetExceededError, PrivacyLedger, PublishedClassifier
from sklearn_pate.inspection import PrivacyReport
from sklearn_pate.learners import DPNaiveBayesClassifier
from sklearn_pate.testing import seeded_noise
from tests.private import MarginalCounts, NoiseSource, epsilon_lower_bound

RNG = np.random.RandomState(0)
N_ROWS = 2000
FRAME = pd.DataFrame(
    {
        "age": RNG.randint(18, 90, N_ROWS),
        "sex": pd.Categorical(RNG.choice(["F", "M"], N_ROWS)),
        "job": RNG.choice(["nurse", "cook", "other"], N_ROWS, p=[0.49, 0.46, 0.05]),
        "glucose": np.where(RNG.uniform(size=N_ROWS) < 0.2, np.nan, RNG.randn(N_ROWS)),
    }
)
Y = np.where(FRAME["age"] + 10 * RNG.randn(N_ROWS) > 55, "ill", "well")
DOMAIN = {
    "age": (18, 90),
    "job": ["nurse", "cook"],
    "glucose": {"range": (-3, 3), "missing": True},
}
WHOLE_DOMAIN = DOMAIN | {"job": ["nurse", "cook", "other"]}
CLASSES = ["ill", "well"]


def make(**parameters):
    return DPNaiveBayesClassifier(DOMAIN, classes=CLASSES, **parameters)


@pytest.fixture
def without_noise(monkeypatch):
    monkeypatch.setattr(MarginalCounts, "release", lambda self, exact, noise: exact)


def counts_of(clf):
    return np.concatenate([table.ravel() for table in clf.marginals_.values()])


SMALL_GROUPS = RNG.randint(60, size=200)


@functools.cache
def counts_before(unit):
    """Return the counts of 200 rows before a change; the caller leaves out noise."""
    groups = {"groups": SMALL_GROUPS} if unit == "group" else {}
    clf = make(privacy_unit=unit, random_state=0)
    return counts_of(clf.fit(FRAME.iloc[:200], Y[:200], **groups))


def test_counts_are_those_of_rows_by_column_and_class(without_noise):
    clf = make(n_bins=32).fit(FRAME, Y)
    is_ill = Y == "ill"
    assert_array_equal(
        clf.marginals_["job"][0],
        [np.sum(is_ill & (FRAME["job"] == one)) for one in ("nurse", "cook")],
    )
    assert clf.marginals_["glucose"].shape == (2, 33)
    assert clf.marginals_["glucose"][1, -1] == np.sum(~is_ill & FRAME["glucose"].isna())
    assert clf.marginals_["age"].sum() == N_ROWS
    assert [*clf.marginals_] == ["age", "sex", "job", "glucose"]


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["row", "group"])
def test_epsilon_is_that_of_one_gaussian_release(unit):
    groups = {"groups": np.arange(N_ROWS) // 3} if unit == "group" else {}
    clf = make(privacy_unit=unit).fit(FRAME, Y, **groups)
    accountant = PLDAccountant()
    # The proof pays for whole numbers with a variance of 2.25.
    sigma = np.sqrt(clf.mechanism_.sigma**2 - 2.25)
    accountant.compose(dp_event.GaussianDpEvent(sigma / np.sqrt(2 * 4)))
    epsilon, delta = clf.privacy_spent_
    assert 0.999 < epsilon <= 1
    assert epsilon == pytest.approx(accountant.get_epsilon(delta), rel=2e-3)
    assert clf.privacy_spent_.release == "model"
    assert [one.code for one in clf.privacy_spent_.assumptions] == [
        "label-set-public",
        "domain-declared",
        "columns-public",
        "parameters-chosen-blindly",
    ]


@pytest.mark.thorough
@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 199), st.integers(0, N_ROWS - 1), st.sampled_from([*CLASSES, "x"])
)
def test_a_replaced_row_moves_the_counts_by_its_own_cells(place, other, label):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MarginalCounts, "release", lambda self, exact, noise: exact)
        changed, changed_y = FRAME.iloc[:200].copy(), Y[:200].astype(object)
        changed.iloc[place] = FRAME.iloc[other]
        changed_y[place] = label
        moved = counts_of(make().fit(changed, changed_y)) - counts_before("row")
    assert np.sum(moved**2) <= 2 * 4
    assert np.abs(moved).max() <= 1


@pytest.mark.thorough
@settings(max_examples=20, deadline=None)
@given(st.integers(0, 59), st.booleans())
def test_a_group_that_leaves_or_changes_moves_no_other_row(group, leaves):
    X, y, groups = FRAME.iloc[:200], Y[:200], SMALL_GROUPS
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MarginalCounts, "release", lambda self, exact, noise: exact)
        fit = make(privacy_unit="group", random_state=0).fit
        before = counts_before("group")
        if leaves:
            stays = groups != group
            after = counts_of(fit(X[stays], y[stays], groups=groups[stays]))
        else:
            changed = X.copy()
            changed.loc[groups == group, ["age", "job"]] = [20, "cook"]
            after = counts_of(fit(changed, y, groups=groups))
    assert np.sum((before - after) ** 2) <= (4 if leaves else 2 * 4)


def test_empty_cells_get_noise_too():
    clf = make(epsilon=0.5).fit(FRAME, np.full(N_ROWS, "ill"))
    of_absent_class = np.concatenate([one[1] for one in clf.marginals_.values()])
    assert np.count_nonzero(of_absent_class) > 0.9 * len(of_absent_class)


@pytest.mark.slow
def test_values_that_are_not_declared_never_raise_and_are_told_of(without_noise):
    odd = FRAME.astype(object)
    for row, values in enumerate(
        ([np.inf, None, {"a": 1}, "text"], [None, pd.NA, ["list"], -np.inf])
    ):
        for column, value in enumerate(values):
            odd.iat[row, column] = value
    clf = make().set_params(domain=DOMAIN | {"sex": ["F", "M"]}).fit(odd, Y)
    odd.loc[10:, "job"] = "other"
    with pytest.warns(UserWarning, match=r"does not know: \['job'\]"):
        assert np.isfinite(clf.predict_proba(odd)).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": 0}, "epsilon=0 must be a positive"),
        ({"domain": None}, "domain lacks 3 of 4 columns.*'age': .low, high."),
        ({"privacy_unit": "group"}, "needs groups in fit"),
        ({"privacy_unit": "patient"}, "privacy_unit='patient' is unknown"),
        ({"classes": ["a", "b"]}, "No private row of y has a label"),
        ({"n_bins": 1}, "n_bins=1"),
        (
            {"epsilon": 1e-6, "delta": 1e-9},
            "epsilon=1e-06 needs noise .* raise epsilon",
        ),
    ],
)
def test_bad_parameters_are_refused_before_any_charge(tmp_path, parameters, message):
    ledger = PrivacyLedger(tmp_path / "patients.sqlite", epsilon=3, delta=1e-4)
    clf = make(ledger=ledger).set_params(**parameters)
    with pytest.raises(ValueError, match=message):
        clf.fit(FRAME, Y)
    assert not ledger.entries()


def test_each_fit_is_charged_before_its_noise(tmp_path, monkeypatch):
    ledger = PrivacyLedger(tmp_path / "patients.sqlite", epsilon=1.2, delta=1e-4)
    charged = []
    release = MarginalCounts.release

    def watched(self, *arguments):
        charged.append(len(ledger.entries()))
        return release(self, *arguments)

    monkeypatch.setattr(MarginalCounts, "release", watched)
    make(ledger=ledger, delta=1e-5).fit(FRAME, Y)
    with pytest.raises(BudgetExceededError):
        make(ledger=ledger, delta=1e-5).fit(FRAME, Y)
    assert charged == [1]


@pytest.mark.slow
@pytest.mark.parametrize("as_array", [False, True])
def test_a_published_classifier_predicts_the_same(tmp_path, as_array):
    X, clf = FRAME, make().set_params(domain=WHOLE_DOMAIN)
    if as_array:
        X = FRAME[["age", "glucose"]].to_numpy()
        clf.set_params(domain={0: (18, 90), 1: {"range": (-3, 3), "missing": True}})
    clf.fit(X, Y)
    clf.publish().save(tmp_path / "model.skops")
    published = PublishedClassifier.load(tmp_path / "model.skops")
    assert_array_equal(published.predict_proba(X), clf.predict_proba(X))
    assert_array_equal(published.predict(X), clf.predict(X))
    assert "epsilon=1" in PrivacyReport.from_estimator(published).to_markdown()


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.25, 1.0])
def test_it_ranks_adult_well_and_its_probabilities_beat_a_constant(data_set, epsilon):
    X, y = data_set("adult", as_frame=True, return_X_y=True)
    X = X.drop(columns="fnlwgt")
    domain = {
        "age": (17, 90),
        "education-num": (1, 16),
        "hours-per-week": (1, 99),
        "capital-gain": (0, 1, 5000, 10_000, 20_000, 100_000),
        "capital-loss": (0, 1, 1000, 2000, 5000),
    }
    clf = DPNaiveBayesClassifier(domain, epsilon=epsilon).fit(X[:32_561], y[:32_561])
    is_rich = y[32_561:] == clf.classes_[1]
    scores = clf.predict_proba(X[32_561:])[:, 1]
    assert roc_auc_score(is_rich, scores) > 0.88
    assert abs(np.mean(scores) - np.mean(is_rich)) < 0.02
    # A constant has 0.55.
    assert log_loss(is_rich, scores) < 0.36


def test_what_a_row_gets_does_not_depend_on_other_rows():
    clf = make().set_params(domain=WHOLE_DOMAIN).fit(FRAME, Y)
    together = clf.predict_proba(FRAME)
    for row in (0, 7, N_ROWS - 1):
        alone = clf.predict_proba(FRAME.iloc[[row]])
        assert_array_equal(alone[0], together[row])


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["row", "group"])
def test_the_number_of_bins_depends_on_public_numbers_alone(unit):
    def shapes(n_rows, n_groups, **parameters):
        groups = {"groups": np.arange(n_rows) % n_groups} if unit == "group" else {}
        clf = make(privacy_unit=unit, **parameters)
        clf.fit(FRAME[:n_rows], Y[:n_rows], **groups)
        return {name: table.shape for name, table in clf.marginals_.items()}

    few, many = shapes(1000, 100, epsilon=0.5), shapes(N_ROWS, 900, epsilon=8.0)
    # The number of rows is public, and the number of groups is not.
    assert (few == many) == (unit == "group")
    assert few["age"][1] <= many["age"][1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_check_estimator_has_no_failures(monkeypatch):
    fit = seeded_noise(0)(DPNaiveBayesClassifier.fit)
    monkeypatch.setattr(DPNaiveBayesClassifier, "fit", fit)
    clf = DPNaiveBayesClassifier((-10, 10), epsilon=100)
    results = check_estimator(clf, on_fail=None, on_skip=None)
    failed = [one for one in results if one["status"] not in ("passed", "skipped")]
    assert not failed, failed


def audit(n_trials=3000):
    """Audit counts of one row against those of another, by their likelihood ratio."""
    mechanism = MarginalCounts(n_tables=4).for_share(1.0, 1.0, 0.01)
    exact = np.zeros((2, 40), dtype=np.int64)
    exact[0, [0, 10, 20, 30]] = exact[1, [1, 11, 21, 31]] = 1
    direction, noise = exact[0] - exact[1], NoiseSource()

    def score(counts):
        # By the likelihood ratio, but for what only missing noise would show.
        for sign in (1, -1):
            if not counts[direction == -sign].any():
                return sign * 1e6
        return counts @ direction

    scores = [
        [score(mechanism.release(one, noise)) for _ in range(n_trials)] for one in exact
    ]
    lower, _ = epsilon_lower_bound(
        *map(np.array, scores), delta=0.01, confidence=0.9999
    )
    return lower


@pytest.mark.slow
def test_an_audit_finds_nothing():
    assert 0.1 < audit() < 1


@pytest.mark.slow
def test_an_audit_finds_missing_noise_on_empty_cells(monkeypatch):
    release = MarginalCounts.release

    def without_empty(self, counts, noise):
        return np.where(np.asarray(counts) == 0, 0, release(self, counts, noise))

    monkeypatch.setattr(MarginalCounts, "release", without_empty)
    assert audit() > 1
