"""Fits on rows drawn from noisy counts: their release, statement and ledger entry."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from sklearn_pate import (
    BudgetExceededError,
    LedgerError,
    PrivacyLeakWarning,
    PrivacyLedger,
    PrivacyUtilityWarning,
    PrivateMarginals,
    PublicData,
)
from sklearn_pate.inspection import plan
from sklearn_pate.learners import Clusters, Hint, RandomBatches
from sklearn_pate.mechanisms import GNMax
from sklearn_pate.students import FixMatchClassifier, UncertaintyQueries
from sklearn_pate.testing import seeded_noise
from tests._aggregation.fits import X_PUBLIC, X, Y
from tests._aggregation.synthetic_fits import (
    FITS,
    SYNTHETIC,
    fit,
    of_votes,
    released,
    spy_on_counts,
)
from tests.private import (
    DOMAIN_DECLARED,
    PUBLIC_ROWS,
    NoiseSource,
    TwoPartRelease,
    _entry,
)
from tests.seeding import equal_noise

GROUPS = np.arange(len(Y)) // 3
# The noise of the others always follows from epsilon.
WITH_OWN_NOISE = [kind for kind in FITS if kind != "newton"]


def other(**changes):
    """Return other parameters of the noisy counts."""
    return {"synthetic": clone(SYNTHETIC).set_params(**changes)}


# What is released and stated


@pytest.mark.parametrize("kind", FITS)
@pytest.mark.parametrize("unit", ["row", "group"])
def test_the_release_has_two_parts_at_one_stated_cost(kind, unit):
    groups = GROUPS if unit == "group" else None
    more = {"n_groups": 100} if (kind, unit) == ("newton", "group") else {}
    fitted = fit(kind, privacy_unit=unit, groups=groups, **more)
    spent, whole = fitted.privacy_spent_, fitted.mechanism_
    assert type(whole) is TwoPartRelease
    if kind != "newton":
        assert whole.counts.sigma == SYNTHETIC.sigma
    assert spent.n_tables == whole.counts.n_tables == 2
    n_queries = spent.n_queries or 0
    if kind in ("sum", "scores"):
        n_queries = 1
    assert spent.epsilon == whole.cost(n_queries, 2).epsilon(spent.delta)
    assert spent.relation == whole.mechanism.relation(unit)
    assert whole.counts.add_remove == (kind == "neighbours")


@pytest.mark.parametrize("kind", FITS)
def test_the_statement_is_about_a_domain_in_place_of_public_rows(kind):
    spent = fit(kind).privacy_spent_
    assert DOMAIN_DECLARED in spent.assumptions
    assert PUBLIC_ROWS not in spent.assumptions
    assert "drawn from noisy counts of the values in 2 columns" in spent.in_one_line()


@pytest.mark.parametrize("kind", FITS)
def test_the_counts_that_are_released_are_near_the_exact_ones(kind):
    fitted = fit(kind)
    assert list(fitted.marginals_) == [0, 1]
    edges = np.linspace(-3, 5, 9)
    edges[[0, -1]] = -np.inf, np.inf
    for column, table in fitted.marginals_.items():
        exact = [np.histogram(X[label == Y, column], edges)[0] for label in (0, 1)]
        assert np.all(np.abs(table - exact) < 6 * SYNTHETIC.sigma)
        assert np.any(table != exact)


def test_one_row_of_each_group_is_counted():
    fitted = fit("votes", privacy_unit="group", groups=GROUPS, **other(sigma=0.5))
    for table in fitted.marginals_.values():
        assert table.sum() == pytest.approx(len(np.unique(GROUPS)), abs=15)


def test_rows_with_a_label_that_is_no_class_are_not_counted():
    y = np.where(np.arange(len(Y)) < 200, Y, 7)
    with pytest.warns(PrivacyUtilityWarning, match="a label that is not in classes"):
        fitted = fit("votes", y=y, classes=[0, 1], **other(sigma=0.5))
    for table in fitted.marginals_.values():
        assert table.sum() == pytest.approx(200, abs=15)


@pytest.mark.parametrize("kind", ["votes", "votes in rounds"])
def test_the_analysis_of_votes_adds_the_cost_of_the_counts(kind):
    fitted = fit(kind, mechanism=GNMax(sigma=3), **other(sigma=30.0))
    analysis, spent = fitted.privacy_analysis_, fitted.privacy_spent_
    counts = fitted.mechanism_.counts.cost(1, 2, orders=analysis.curve.orders).curve
    assert np.all(analysis.curve.values > counts.values)
    assert counts.quiet_epsilon(1e-5) < analysis.epsilon <= spent.epsilon
    assert analysis.optimal_epsilon > counts.quiet_epsilon(1e-5)
    assert analysis.paper_epsilon is None


def test_the_analysis_is_no_bound_and_cannot_be_sanitized():
    analysis = fit("votes", mechanism=GNMax(sigma=20)).privacy_analysis_
    assert analysis.along_transcript
    with pytest.raises(ValueError, match="or on noisy counts"):
        analysis.sanitize()


@pytest.mark.parametrize("kind", FITS)
def test_the_cost_is_known_before_the_fit(kind, no_noise):
    spent = fit(kind).privacy_spent_
    no_noise()
    assert clone(FITS[kind]).plan_privacy(X, Y) == spent


@pytest.mark.parametrize("kind", ["votes", "scores", "newton"])
def test_a_plan_has_the_cost_of_both_parts(kind, no_noise):
    spent = fit(kind).privacy_spent_
    no_noise()
    planned = plan(FITS[kind], X, Y)
    assert (planned.epsilon, planned.mechanism) == (spent.epsilon, spent.mechanism)


def test_counts_are_gone_after_a_fit_on_public_rows():
    fitted = fit("votes")
    fitted.set_params(synthetic=None).fit(X, Y, X_public=PublicData(X_PUBLIC))
    assert not hasattr(fitted, "marginals_")
    assert type(fitted.mechanism_) is not TwoPartRelease
    assert fitted.privacy_spent_.n_tables is None


@pytest.mark.parametrize("kind", FITS)
def test_counts_are_pickled_with_the_fit_and_not_cloned(kind):
    fitted = fit(kind)
    again = pickle.loads(pickle.dumps(fitted))
    assert released(again) == released(fitted)
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert not hasattr(clone(fitted), "marginals_")
    assert "PrivateMarginals(domain=(-3, 5)" in repr(fitted)


@pytest.mark.parametrize("kind", FITS)
def test_seeded_noise_repeats_the_counts_and_voids_the_statement(kind):
    fits = []
    for _ in range(2):
        with pytest.warns(PrivacyLeakWarning) as caught, seeded_noise(3):
            fits.append(fit(kind))
        assert sum(one.category is PrivacyLeakWarning for one in caught) == 1
    assert released(fits[0]) == released(fits[1])
    assert fits[0].privacy_spent_.epsilon == np.inf


def test_the_noise_of_counts_is_not_that_of_answers():
    with equal_noise():
        fitted = fit("votes")
    with equal_noise():
        # Of the counts, and of the answers.
        own, others = (
            NoiseSource().discrete_gaussian(SYNTHETIC.sigma, (48,)) for _ in range(2)
        )
    edges = np.linspace(-3, 5, 9)
    edges[[0, -1]] = -np.inf, np.inf
    exact = [
        np.histogram(X[label == Y, column], edges)[0]
        for column in (0, 1)
        for label in (0, 1)
    ]
    drawn = np.concatenate([table.ravel() for table in fitted.marginals_.values()])
    # Behind the tables are the counts of values outside the domain.
    np.testing.assert_array_equal(drawn - np.concatenate(exact), own[:32])
    assert not np.array_equal(own, others)


# Parameters


@pytest.mark.parametrize("kind", FITS)
def test_public_rows_have_one_source(kind):
    with pytest.raises(ValueError, match="X_public and synthetic were both given"):
        clone(FITS[kind]).fit(X, Y, X_public=PublicData(X_PUBLIC))
    with pytest.raises(ValueError, match=r"public_size=0\.2 and synthetic were both"):
        fit(kind, public_size=0.2)
    with pytest.raises(ValueError, match=r"set synthetic=PrivateMarginals\(domain\)"):
        fit(kind, synthetic=None)


@pytest.mark.parametrize("kind", FITS)
@pytest.mark.parametrize("synthetic", [{"a": (0, 1)}, PrivateMarginals, 0.1])
def test_something_else_in_place_of_private_marginals_is_refused(kind, synthetic):
    with pytest.raises(ValueError, match=r"pass PrivateMarginals\(domain\), or None"):
        fit(kind, synthetic=synthetic)


def test_votes_of_parties_have_no_rows_to_count():
    pate = of_votes(classes=[0, 1])
    with pytest.raises(
        ValueError, match="counts private rows, but fit_from_votes gets"
    ):
        pate.fit_from_votes(X_PUBLIC, 10 * [np.zeros(60, dtype=int)])


def test_outputs_of_parties_have_no_rows_to_count():
    petdl = clone(FITS["sum"]).set_params(classes=[0, 1])
    with pytest.raises(ValueError, match="set synthetic=None"):
        petdl.fit_from_outputs(X_PUBLIC, np.zeros((10, 60, 2)))


@pytest.mark.parametrize("kind", WITH_OWN_NOISE)
def test_noise_is_given_or_calibrated_and_not_both(kind):
    with pytest.raises(ValueError, match=r"epsilon=None needs PrivateMarginals\(sigma"):
        fit(kind, **other(sigma=None))
    calibrating = {
        "votes": {"mechanism": "gnmax"},
        "votes in rounds": {"mechanism": "gnmax"},
        "scores": {"mechanism": "scores"},
        "sum": {"noise_scale": None},
        "neighbours": {"mechanism": "gnmax"},
    }
    with pytest.raises(ValueError, match=r"epsilon=1\.0 and PrivateMarginals\(sigma="):
        fit(kind, epsilon=1.0, **calibrating[kind])


# Warnings


@pytest.mark.parametrize("kind", [one for one in WITH_OWN_NOISE if one != "neighbours"])
def test_counts_lost_in_noise_are_a_warning_before_anything_is_spent(
    kind, ledger, no_noise
):
    no_noise()
    # A quarter of the rows of a class.
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyUtilityWarning)
        with pytest.raises(PrivacyUtilityWarning, match="150 rows in each of 2 class"):
            fit(kind, ledger, **other(sigma=38.0))
    assert ledger.entries() == []


@pytest.mark.parametrize(
    ("by_class", "largest", "rows"),
    [(True, 37.5, "150 rows in each of 2 classes"), (False, 75.0, "300 rows:")],
)
def test_counts_lost_in_noise_are_a_warning_of_the_plan(by_class, largest, rows):
    for sigma, n_warnings in ((largest, 0), (largest + 0.1, 1)):
        pate = of_votes(**other(sigma=sigma, by_class=by_class))
        found = [one for one in plan(pate, X, Y).warnings if "MarginalCounts" in one]
        assert len(found) == n_warnings
        assert all(f"is too large for {rows}" in one for one in found)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("neighbours", {}),
        ("votes", {"privacy_unit": "group", "groups": GROUPS}),
    ],
)
def test_a_number_of_units_that_is_not_public_is_in_no_warning(kind, changes):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(kind, **changes, **other(sigma=1000.0))
    assert not any("MarginalCounts" in str(one.message) for one in caught)


@pytest.mark.parametrize("kind", FITS)
@pytest.mark.parametrize("values", ["one value", "nothing declared", "missing"])
@pytest.mark.filterwarnings("ignore:By the released counts")
@pytest.mark.filterwarnings("ignore::sklearn_pate.exceptions.StudentWarning")
@pytest.mark.filterwarnings("ignore:The private rows vary")
def test_no_value_of_a_private_row_is_an_error(kind, values):
    private = np.full_like(X, {"one value": 1.0, "missing": np.nan}.get(values, 1e300))
    # Teachers that learn nothing of it; where all of them fail, there are no votes.
    teacher = DummyClassifier(strategy="prior")
    changes = {"estimator": teacher}
    if kind in ("newton", "neighbours"):
        changes = {}
    if kind != "newton":
        changes |= other(sigma=0.5)
    fitted = fit(kind, X=private, **changes)
    assert fitted.marginals_.keys() == {0, 1}


@pytest.mark.parametrize("kind", WITH_OWN_NOISE)
def test_missing_values_that_cannot_be_learned_from_are_an_error_before_any_noise(
    kind, ledger, no_noise
):
    no_noise()
    rare = {"range": (-3, 5), "missing": True}
    with pytest.raises(ValueError, match="Rows of the domain of PrivateMarginals"):
        fit(kind, ledger, **other(domain=rare, n_bins=5000))
    assert ledger.entries() == []


# The ledger


@pytest.mark.parametrize("kind", FITS)
def test_the_entry_is_on_disk_before_any_noise_is_drawn(kind, ledger, monkeypatch):
    draw = NoiseSource.words

    def watched(self, shape):
        assert len(PrivacyLedger(ledger.path).entries()) == 1
        return draw(self, shape)

    monkeypatch.setattr(NoiseSource, "words", watched)
    fit(kind, ledger)


@pytest.mark.parametrize("kind", FITS)
def test_a_fit_is_charged_once_for_both_parts(kind, ledger):
    fitted = fit(kind, ledger)
    (entry,) = ledger.entries()
    assert entry.epsilon == fitted.privacy_spent_.epsilon
    assert entry.description.startswith("noisy counts of 2 columns, then ")
    assert "MarginalCounts(" in entry.description


@pytest.mark.parametrize("kind", FITS)
def test_the_same_fit_has_the_same_counts_and_answers_at_no_further_charge(
    kind, ledger, no_noise
):
    first = fit(kind, ledger)
    no_noise()
    again = fit(kind, ledger)
    assert released(again) == released(first)
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"domain": (-3, 6)},
        {"domain": {0: (-3, 5), 1: (-3, 4)}},
        {"n_rows": 61},
        {"n_bins": 9},
        {"by_class": False},
        {"sigma": 15.5},
    ],
    ids=str,
)
def test_other_counts_are_another_fit(ledger, changes):
    fit("votes", ledger)
    fit("votes", ledger, **other(**changes))
    assert len(ledger.entries()) == 2


def test_another_share_is_another_fit(ledger):
    changes = {"epsilon": 20.0, "mechanism": "gnmax"}
    for share in 0.1, 0.2:
        fit("votes", ledger, **changes, **other(sigma=None, share=share))
    assert len(ledger.entries()) == 2


def test_counts_of_a_fit_with_a_ledger_are_used_by_no_other_data(ledger):
    fitted = fit("votes", ledger)
    X_other = X.copy()
    X_other[0] = 4.5
    assert released(fit("votes", ledger, X=X_other)) != released(fitted)
    assert len(ledger.entries()) == 2


def test_stored_counts_of_other_rows_are_refused(ledger, monkeypatch, no_noise):
    fit("votes", ledger)
    draw = _entry.Marginals.draw

    def of_another_version(self, n_rows, seed, **options):
        return draw(self, n_rows, seed + 1, **options)

    monkeypatch.setattr(_entry.Marginals, "draw", of_another_version)
    no_noise()
    with pytest.raises(
        LedgerError, match="as numpy or a dataframe library has another"
    ):
        fit("votes", ledger)
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize("kind", FITS)
def test_a_fit_beyond_the_budget_is_not_charged_and_draws_nothing(
    kind, tmp_path, no_noise
):
    no_noise()
    ledger = PrivacyLedger(tmp_path / "small.sqlite", epsilon=0.1, delta=1e-5)
    with pytest.raises(BudgetExceededError, match="Nothing was charged"):
        fit(kind, ledger)
    assert ledger.entries() == []


CALIBRATED = {
    "votes": {"mechanism": "gnmax"},
    "newton": {},
    "sum": {"noise_scale": None},
    "neighbours": {"mechanism": "gnmax"},
}


@pytest.mark.parametrize("kind", CALIBRATED)
@pytest.mark.parametrize("before", [None, 3.0])
@pytest.mark.filterwarnings("ignore::sklearn_pate.exceptions.PrivacyUtilityWarning")
@pytest.mark.filterwarnings("ignore::sklearn_pate.exceptions.StudentWarning")
def test_the_epsilon_that_is_advised_fits(kind, before, tmp_path):
    ledger = PrivacyLedger(tmp_path / "small.sqlite", epsilon=5.0, delta=1e-5)
    # With most of it on counts, whose noise is then small, a curve costs less than mu.
    changes = CALIBRATED[kind] | other(sigma=None, share=0.1)
    if before is not None:
        fit(kind, ledger, epsilon=before, **changes)
    with pytest.raises(BudgetExceededError) as caught:
        fit(kind, ledger, epsilon=8.0, **changes)
    advised = float(str(caught.value).rpartition("epsilon=")[2].split()[0])
    assert advised > 2
    fit(kind, ledger, epsilon=advised, **changes)
    assert ledger.spent > 0.95


def test_the_number_of_queries_that_is_advised_fits(tmp_path):
    ledger = PrivacyLedger(tmp_path / "small.sqlite", epsilon=8.0, delta=1e-5)
    with pytest.raises(BudgetExceededError) as caught:
        fit("votes", ledger)
    advised = int(str(caught.value).rpartition("n_queries=")[2].split()[0])
    with pytest.raises(BudgetExceededError):
        fit("votes", ledger, n_queries=advised + 1)
    fit("votes", ledger, n_queries=advised)


def test_the_stored_counts_are_not_drawn_again_for_more_rounds(ledger, monkeypatch):
    drawn_on = spy_on_counts(monkeypatch)
    fit("votes in rounds", ledger)
    fit("votes in rounds", ledger, query_strategy=UncertaintyQueries(n_rounds=4))
    assert drawn_on == [1]


@pytest.mark.slow
@pytest.mark.parametrize("batches", [RandomBatches(10), Clusters(10)])
@pytest.mark.filterwarnings("ignore::sklearn_pate.exceptions.StudentWarning")
def test_equal_rows_may_make_fewer_batches_than_were_paid_for(batches, ledger):
    changes = {"batches": batches, "hint": Hint(1)}
    changes["student"] = FixMatchClassifier(max_epochs=1)
    changes["estimator"] = DummyClassifier(strategy="prior")
    fitted = fit("sum", ledger, X=np.ones_like(X), **changes, **other(sigma=0.5))
    # Six batches and two parts of the hint.
    assert fitted.mechanism_.mechanism.n_parts == 6 + 2
    assert len(fitted.released_) <= 6
    assert fitted.similarities_.shape == 2 * (len(fitted.released_),)
    again = fit("sum", ledger, X=np.ones_like(X), **changes, **other(sigma=0.5))
    assert released(again) == released(fitted)
