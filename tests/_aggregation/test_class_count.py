"""The count of the classes before balanced votes: cost, ledger, audits and texts."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_pate import (
    BudgetExceededError,
    PrivacyLedger,
    PrivateMarginals,
    PublicData,
    PublishedClassifier,
)
from sklearn_pate.inspection import (
    AnswerCostDisplay,
    PrivacyReport,
    audit_mechanism,
    plan,
)
from sklearn_pate.mechanisms import PluralityMechanism
from sklearn_pate.students import ReweightedClassifier, UncertaintyQueries
from tests._aggregation.balanced_fits import (
    X_PUBLIC,
    X,
    Y,
    audit_fits,
    fit,
    make,
    released,
)
from tests._aggregation.fits import Crash
from tests.private import (
    STEPS,
    ClassCounts,
    FitEntry,
    GaussianSum,
    PrivateRows,
    largest_gdp_mu,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_pate.PrivacyUtilityWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_pate.StudentWarning"),
]
SHARE = 0.03


# The cost


MECHANISMS = ["gnmax", "lnmax", "gumbel", "permute-and-flip", "histogram"]


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("unit", ["row", "group"])
def test_epsilon_holds_the_count_and_the_answers(mechanism, unit):
    given = {"mechanism": mechanism, "epsilon": 1.0, "privacy_unit": unit}
    groups = np.arange(len(Y)) if unit == "group" else None
    fitted = fit(groups=groups, **given)
    spent, (counts, answers) = fitted.privacy_spent_, fitted.mechanism_.parts
    assert 0.999 < spent.epsilon <= 1
    assert spent.class_count
    alone = answers.cost(100, 2, unit=unit)
    assert alone.epsilon(1e-5) < 0.99 * spent.epsilon
    # Three hundredths of the squared mu, whatever the mechanism of the answers.
    squared = largest_gdp_mu(1.0, 1e-5) ** 2
    assert_allclose(2 / counts.noise_scale**2, SHARE * squared, rtol=1e-4)
    # One row moves two counts by one: a * 2 / (2 sigma^2) at order a.
    of_counts = spent.curve.orders / counts.noise_scale**2
    assert_allclose(spent.curve.values, alone.curve.values + of_counts, rtol=1e-12)


@pytest.mark.slow
def test_epsilon_of_gaussian_noise_is_that_of_both_squares_of_mu():
    fitted = fit(mechanism="histogram", epsilon=1.0)
    counts, answers = fitted.mechanism_.parts
    squared = 2 / (counts.noise_scale**2 - 2.25 / STEPS**2)
    squared += 100 * 2 / (answers.sigma**2 - 2.25)
    with mpmath.workdps(40):
        mu, epsilon = mpmath.sqrt(squared), mpmath.mpf(fitted.privacy_spent_.epsilon)
        delta = mpmath.ncdf(mu / 2 - epsilon / mu)
        delta -= mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)
    assert 0.999e-5 < delta <= 1e-5 * (1 + 1e-9)
    assert fitted.privacy_spent_.mu == pytest.approx(float(mu), rel=1e-9)


def test_the_plan_is_the_statement_of_the_fit():
    given = X, Y
    planned = plan(make(), *given, X_public=PublicData(X_PUBLIC))
    fitted = fit()
    assert make().plan_privacy(*given, X_public=PublicData(X_PUBLIC)) == (
        fitted.privacy_spent_
    )
    assert planned.mechanism == fitted.privacy_spent_.mechanism
    assert planned.class_noise == fitted.mechanism_.counts.noise_scale
    assert "each class is counted with noise of 4.9 rows" in str(planned)


def test_the_count_has_the_stated_noise():
    counts = ClassCounts(noise_scale=5.0)
    noise = counts.release(np.zeros((1, 40_000), dtype=int)) / STEPS
    # Five standard errors of a variance and of a mean of this many numbers.
    assert noise.var() == pytest.approx(25, rel=5 * (2 / 40_000) ** 0.5)
    assert abs(noise.mean()) < 5 * 5.0 / 200


@pytest.mark.slow
def test_a_fit_draws_noise_of_the_stated_scale(monkeypatch):
    drawn = []
    release = ClassCounts.release

    def kept(self, sums, noise):
        drawn.append((self.noise_scale, release(self, sums, noise) - np.array(sums)))
        return drawn[-1][1] + np.array(sums)

    monkeypatch.setattr(ClassCounts, "release", kept)
    fitted = fit()
    [(scale, noise)] = drawn
    assert scale == fitted.mechanism_.counts.noise_scale
    assert np.all(np.abs(noise) < 6 * scale * STEPS)
    exact = np.bincount(Y) + noise[0] / STEPS
    assert_allclose(fitted.class_shares_, exact / exact.sum(), rtol=1e-12)


def test_a_count_below_its_noise_is_taken_for_its_noise():
    shares = ClassCounts(noise_scale=5.0).shares(np.array([-40, 95]) * STEPS)
    assert_array_equal(shares, [0.05, 0.95])


@pytest.mark.slow
def test_a_sanitised_cost_includes_the_count():
    fitted = fit(n_queries=20)
    counts = fitted.mechanism_.counts
    analysis, release = fitted.privacy_analysis_, {"order": 9.5, "smoothness": 0.01}
    release["noise_scale"] = 10.0
    of_answers = analysis.mechanism.sanitized_cost(
        analysis.counts, n_teachers=20, delta=1e-5, **release
    )
    both = analysis.sanitize(**release)
    assert both.release_cost - of_answers.release_cost == pytest.approx(
        9.5 / counts.noise_scale**2
    )


# Audits: planted defects are found


def audited():
    counts = ClassCounts(noise_scale=2.0)
    row, other = STEPS * np.eye(2, dtype=int)
    return audit_mechanism(counts, row, other, n_trials=10_000, delta=0.01)


@pytest.mark.slow
def test_the_honest_count_passes_its_audit():
    result = audited()
    assert not result.contradicted
    assert result.epsilon_lower > 0.5 * result.epsilon_claimed


@pytest.mark.slow
def test_half_of_the_noise_on_the_count_is_found(monkeypatch):
    sigma = GaussianSum._sigma.fget
    monkeypatch.setattr(GaussianSum, "_sigma", property(lambda one: sigma(one) / 2))
    claim = ClassCounts(noise_scale=4.0).cost()  # as of all the noise
    monkeypatch.setattr(ClassCounts, "cost", lambda *one, **given: claim)
    assert audited().contradicted


@pytest.mark.slow
def test_a_count_that_is_hardly_charged_is_found(monkeypatch):
    monkeypatch.setattr(ClassCounts, "_squared_distance", lambda self, n: 0.1)
    assert audited().contradicted


def test_a_release_of_two_parts_is_audited_by_its_parts():
    parts = fit().mechanism_
    with pytest.raises(ValueError, match=r"pass one of its parts: mechanism\.counts"):
        audit_mechanism(parts, [5, 1], [4, 2])
    assert audit_mechanism(
        parts.mechanism, [5, 1], [4, 2], n_trials=100
    ).epsilon_claimed


def share(fitted):
    return fitted.class_shares_[1]


@pytest.mark.thorough
def test_sound_fits_pass_and_a_row_that_is_counted_many_times_is_found(monkeypatch):
    assert not audit_fits(share, n_teachers=10).contradicted
    honest = PrivateRows.class_sum
    monkeypatch.setattr(PrivateRows, "class_sum", lambda *given: 1000 * honest(*given))
    assert audit_fits(share, n_teachers=10).contradicted


# The ledger


@pytest.mark.slow
def test_a_repeated_fit_is_charged_once_and_gets_the_same_shares(ledger):
    first, again = fit(ledger=ledger), fit(ledger=ledger)
    assert released(first) == released(again)
    [entry] = ledger.entries()
    assert entry.epsilon == pytest.approx(first.privacy_spent_.epsilon)
    assert "after a noisy count of each class" in entry.description


@pytest.mark.slow
def test_a_fit_beyond_the_budget_counts_nothing(tmp_path, monkeypatch):
    small = PrivacyLedger(tmp_path / "small.sqlite", epsilon=1, delta=1e-5)
    monkeypatch.setattr(GaussianSum, "release", None)
    with pytest.raises(BudgetExceededError):
        fit(ledger=small)
    assert not small.entries()


# Where a fit dies: what is called, whether before or after that, at which call; and the
# number of charges in the end.
MOMENTS = {
    "before the charge": (FitEntry, "open", "before", 1, 1),
    "before the draw of the count": (GaussianSum, "release", "before", 1, 2),
    "before the storing of the count": (FitEntry, "keep", "before", 1, 2),
    "after the storing of the count": (FitEntry, "keep", "after", 1, 1),
    "before the draw of answers": (PluralityMechanism, "respond", "before", 1, 2),
    "before the storing of answers": (FitEntry, "keep", "before", 2, 2),
    "after the storing of answers": (FitEntry, "keep", "after", 2, 1),
    "before the student": (ReweightedClassifier, "with_shares", "before", 1, 1),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy", ["random", UncertaintyQueries(n_rounds=2)], ids=str
)
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_fit_that_died_goes_on_and_counts_once_for_each_charge(
    ledger, moment, strategy, monkeypatch
):
    owner, name, when, call, n_charges = MOMENTS[moment]
    work, calls, counted_on = getattr(owner, name), 0, []
    open_entry, release, opened = FitEntry.open, GaussianSum.release, []

    def dies(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls < call:
            return work(*args, **kwargs)
        if when == "after":
            work(*args, **kwargs)
        raise Crash

    def opening(entry, n_new):
        given = open_entry(entry, n_new)
        opened.append(entry._number)
        return given

    def counting(*args):
        counted_on.append(opened[-1])
        return release(*args)

    monkeypatch.setattr(FitEntry, "open", opening)
    monkeypatch.setattr(GaussianSum, "release", counting)
    work = getattr(owner, name)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, dies)
        with pytest.raises(Crash):
            fit(ledger=ledger, query_strategy=strategy)
    fitted = fit(ledger=ledger, query_strategy=strategy)
    assert len(ledger.entries()) == n_charges
    assert 1 <= len(counted_on) == len(set(counted_on)) <= n_charges
    assert released(fit(ledger=ledger, query_strategy=strategy)) == released(fitted)
    assert len(ledger.entries()) == n_charges


# What is released


@pytest.mark.slow
def test_synthetic_rows_have_the_shares_of_their_noisy_counts():
    synthetic = PrivateMarginals((-6, 6), n_rows=500)
    fitted = make(synthetic=synthetic).fit(X, Y)
    assert not fitted.privacy_spent_.class_count
    assert fitted.privacy_spent_.n_tables == 4
    assert_allclose(fitted.class_shares_, np.bincount(Y) / len(Y), atol=0.1)
    assert isinstance(fitted.student_, ReweightedClassifier)


# What is published


def test_a_published_model_predicts_as_before(tmp_path):
    fitted = fit()
    fitted.publish().save(tmp_path / "model.skops")
    published = PublishedClassifier.load(tmp_path / "model.skops")
    assert_array_equal(published.predict_proba(X), fitted.predict_proba(X))
    assert_array_equal(published.predict(X), fitted.predict(X))
    assert published.privacy_spent_ == fitted.privacy_spent_


@pytest.mark.slow
def test_texts_name_the_count_and_its_place():
    fitted = fit()
    spent = fitted.privacy_spent_
    assert "after a noisy count of each class by ClassCounts(" in spent.mechanism
    text = " ".join(str(spent).split())
    assert "The cost includes this count." in text
    report = PrivacyReport.from_estimator(fitted)
    assert report.to_dict()["class_count"] is True
    page = report.to_markdown()
    steps = (
        "about public rows, and shares of the classes: the only release",
        "ClassCounts(",
    )
    assert all(one in page for one in steps)
    assert "First, the rows of each class are counted" in page
    of_published = PrivacyReport.from_estimator(fitted.publish()).to_markdown()
    assert all(one in of_published for one in steps)
    plain = PrivacyReport.from_estimator(fit(vote="plain")).to_markdown()
    assert not any(one in plain for one in steps)


@pytest.mark.slow
def test_costs_of_more_answers_include_the_count():
    pytest.importorskip("matplotlib.pyplot")
    fitted = fit()
    display = AnswerCostDisplay.from_estimator(fitted, n_queries=150)
    assert display.paid == (100, fitted.privacy_spent_.epsilon)
    [costs] = display.epsilons.values()
    at_fit = costs[display.n_queries.tolist().index(100)]
    assert at_fit == pytest.approx(fitted.privacy_spent_.epsilon, rel=1e-6)
