"""Balanced votes, the count of the classes before them, and the shares of a student."""

import warnings
from fractions import Fraction

import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from sklearn_pate import (
    BudgetExceededError,
    PATEClassifier,
    PrivacyLedger,
    PrivateMarginals,
    PublicData,
    PublishedClassifier,
)
from sklearn_pate.inspection import (
    AnswerCostDisplay,
    PrivacyReport,
    audit_mechanism,
    audit_neighbours,
    plan,
)
from sklearn_pate.mechanisms import GNMax, PluralityMechanism
from sklearn_pate.students import ReweightedClassifier, UncertaintyQueries
from tests._aggregation.fits import Crash
from tests.private import (
    STEPS,
    ClassCounts,
    FitEntry,
    GaussianSum,
    PrivateRows,
    StoredSums,
    VoteForm,
    largest_gdp_mu,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_pate.PrivacyUtilityWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_pate.StudentWarning"),
]
SHARE = 0.03
X, Y = make_classification(
    1300, 4, n_informative=3, n_redundant=0, weights=[0.85], random_state=0
)
X, X_PUBLIC, Y = X[:1200], X[1200:], Y[:1200]


def make(estimator=None, student=None, **parameters):
    given = {"mechanism": "gnmax", "n_teachers": 20, "n_queries": 100, "epsilon": 8.0}
    given |= {"classes": [0, 1], "random_state": 0}
    estimator = GaussianNB() if estimator is None else estimator
    return PATEClassifier(estimator, student, **given | parameters)


def fit(estimator=None, student=None, *, data=(X, Y), groups=None, **parameters):
    clf = make(estimator, student, **parameters)
    return clf.fit(*data, X_public=PublicData(X_PUBLIC), groups=groups)


def released(fitted):
    """Return all that left the teachers and the count of the classes."""
    answers = fitted.queried_indices_.tolist(), fitted.answers_.tolist()
    return *answers, fitted.class_shares_.tolist()


# The vote


class Known:
    """A teacher of given probabilities, one row each for the public rows."""

    def __init__(self, probabilities):
        self.probabilities = np.asarray(probabilities, dtype=float)
        self.classes_ = np.arange(self.probabilities.shape[1])

    def predict_proba(self, X):
        return self.probabilities


class Predicting:
    """A teacher without probabilities."""

    def __init__(self, codes):
        self.codes = np.asarray(codes)

    def predict(self, X):
        return self.codes


def votes_of(teacher, n_rows, n_classes):
    return VoteForm(n_classes, balanced=True).read(teacher, np.zeros((n_rows, 1)))


def by_definition(rows):
    """Return the first class that exceeds its mean most, -1 if none does."""
    means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    votes = []
    for row in rows:
        excess = [one - mean for one, mean in zip(row, means, strict=True)]
        votes.append(excess.index(max(excess)) if max(excess) > 0 else -1)
    return votes


# Twentieths, so that classes tie often, and others differ by more than rounding.
TWENTIETHS = st.integers(2, 4).flatmap(
    lambda n_classes: arrays(
        np.int64,
        st.tuples(st.integers(1, 9), st.just(n_classes)),
        elements=st.integers(0, 20),
    )
)


@given(numerators=TWENTIETHS, seed=st.integers(0, 2**32 - 1))
def test_a_vote_is_for_the_class_that_exceeds_its_mean_most(numerators, seed):
    expected = by_definition(
        [[Fraction(int(n), 20) for n in row] for row in numerators]
    )
    round_off = 1e-13 * np.random.RandomState(seed).standard_normal(numerators.shape)
    for probabilities in (numerators / 20, numerators / 20 + round_off):
        assert_array_equal(votes_of(Known(probabilities), *numerators.shape), expected)


@given(codes=st.lists(st.integers(-1, 3), min_size=1, max_size=12))
def test_a_prediction_votes_as_a_probability_of_one(codes):
    known = [
        [Fraction(one == code) for one in range(3)] for code in codes if 0 <= code < 3
    ]
    expected = np.full(len(codes), -1)
    expected[[0 <= code < 3 for code in codes]] = by_definition(known)
    assert_array_equal(votes_of(Predicting(codes), len(codes), 3), expected)


def test_a_class_that_a_teacher_has_not_seen_gets_no_vote():
    teacher = Known([[0.9, 0.1], [0.2, 0.8]])
    teacher.classes_ = np.array([0, 2])
    assert_array_equal(votes_of(teacher, 2, 3), [0, 2])


@pytest.mark.filterwarnings("ignore:overflow")
def test_huge_scores_raise_no_error():
    assert_array_equal(votes_of(Known([[1e308, 0.0], [1e308, 1.0]]), 2, 2), [-1, 1])


def counts_of(fitted):
    return fitted.privacy_analysis_.counts


def test_constant_teachers_abstain():
    assert not counts_of(fit(DummyClassifier())).any()
    assert counts_of(fit(DummyClassifier(), vote="plain")).any()


@pytest.mark.parametrize("n_positive", [0, 1])
def test_teachers_of_one_class_abstain_and_raise_no_error(n_positive):
    y = np.zeros(len(Y), dtype=int)
    y[:n_positive] = 1
    counts = counts_of(fit(LogisticRegression(), data=(X, y)))
    assert counts.sum(axis=1).max() == n_positive
    assert counts_of(fit(data=(X, y), vote="plain")).sum(axis=1).min() == 20


@pytest.mark.parametrize(
    "teacher",
    [
        LogisticRegression(),
        LogisticRegression(class_weight="balanced"),
        LinearSVC(class_weight="balanced"),
        RandomForestClassifier(5),
    ],
    ids=repr,
)
def test_both_classes_get_many_votes_whatever_the_teachers_weigh(teacher):
    votes = counts_of(fit(teacher, n_teachers=10)).sum(axis=0)
    assert 0.2 < votes[1] / votes.sum() < 0.8


# Neighbours


class Sent:
    """What teachers sent in a fit, and the exact counts of its classes."""

    def __init__(self, monkeypatch, **changes):
        self.votes, self.sums = [], []
        read, constant, draw = VoteForm.read, VoteForm.constant, StoredSums.draw

        def keep(work):
            def kept(*given):
                self.votes.append(work(*given))
                return self.votes[-1]

            return kept

        def kept_sum(stored, number, total):
            self.sums.append(total())
            return draw(stored, number, total)

        with monkeypatch.context() as patch:
            # In order of the shards; those of the rehearsal come first.
            patch.setattr(VoteForm, "read", keep(read))
            patch.setattr(VoteForm, "constant", keep(constant))
            patch.setattr(StoredSums, "draw", kept_sum)
            self.counts = counts_of(fit(**changes))
        self.votes = np.array(self.votes[-20:])


CHANGES = {
    "label": (0, None),
    "row": (1, -3.0),
    "huge": (2, 1e300),
    "gone": (4, np.nan),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_replaced_row_moves_the_votes_of_one_teacher(monkeypatch, change):
    row, value = CHANGES[change]
    other, labels = X.copy(), Y.copy()
    labels[row] = 1 - Y[row]
    if value is not None:
        other[row] = value
    before, after = (Sent(monkeypatch, data=data) for data in ((X, Y), (other, labels)))
    check_neighbours(before, after)
    moved = np.zeros(2, dtype=int)
    moved[[labels[row], Y[row]]] = STEPS, -STEPS
    assert_array_equal(after.sums[0] - before.sums[0], moved)


def test_a_group_moves_the_votes_of_one_teacher(monkeypatch):
    groups = np.arange(len(Y)) // 3
    kept = groups != 0  # its rows come first, so that those of all others move

    def sent(rows):
        given = {"groups": groups[rows], "privacy_unit": "group"}
        return Sent(monkeypatch, data=(X[rows], Y[rows]), **given)

    before, after = sent(np.full(len(Y), True)), sent(kept)
    check_neighbours(before, after)
    left = before.sums[0] - after.sums[0]
    assert left.min() >= 0
    assert 0 < left.sum() <= STEPS


def check_neighbours(before, after):
    changed = (before.votes != after.votes).any(axis=1)
    assert np.count_nonzero(changed) == 1
    moved = after.counts - before.counts
    assert moved.any()
    assert moved.max() <= 1
    assert moved.min() >= -1
    assert np.abs(moved).sum(axis=1).max() <= 2
    [exact], [other] = before.sums, after.sums
    assert np.sum((exact - other) ** 2) <= 2 * STEPS**2


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


def audit_fits(statistic, n_runs=60):
    """Audit fits of which one row, next to half of the public rows, is changed."""
    rows, y = np.r_[np.zeros((1, 1)), np.ones((99, 1))], np.zeros(100, dtype=int)
    given = {"n_teachers": 90, "n_queries": 20, "epsilon": 0.5}
    return audit_neighbours(
        make(KNeighborsClassifier(1), GaussianNB(), **given),
        (rows, y),
        (rows, np.where(np.arange(100) == 0, 1, y)),
        X_public=PublicData(np.repeat([[0.0], [1.0]], 10, axis=0)),
        statistic=statistic,
        n_runs=n_runs,
    )


def share(fitted):
    return fitted.class_shares_[1]


def answers_at_the_row(fitted):
    answers = np.zeros(20)
    answers[fitted.queried_indices_] = fitted.answers_
    return answers[:10].sum() - answers[10:].sum()


@pytest.mark.slow
def test_sound_fits_pass_and_a_row_that_is_counted_many_times_is_found(monkeypatch):
    assert not audit_fits(share, n_runs=20).contradicted
    honest = PrivateRows.class_sum
    monkeypatch.setattr(PrivateRows, "class_sum", lambda *given: 1000 * honest(*given))
    assert audit_fits(share).contradicted


@pytest.mark.slow
def test_votes_of_teachers_that_get_all_rows_are_found(monkeypatch):
    assert not audit_fits(answers_at_the_row, n_runs=20).contradicted

    def all_rows_to_all(private, n_teachers, key):
        return [np.arange(private.n_rows)] * n_teachers

    monkeypatch.setattr(PrivateRows, "shards", all_rows_to_all)
    assert audit_fits(answers_at_the_row).contradicted


def test_a_vote_that_depends_on_two_shards_is_found(monkeypatch):
    honest = PrivateRows.shards

    def overlapping(private, n_teachers, key):
        shards = honest(private, n_teachers, key)
        following = [*shards[1:], shards[0]]
        return [np.union1d(*both) for both in zip(shards, following, strict=True)]

    monkeypatch.setattr(PrivateRows, "shards", overlapping)
    with pytest.raises(AssertionError, match=r"2\)? == 1"):
        test_a_replaced_row_moves_the_votes_of_one_teacher(monkeypatch, "row")


# The ledger


def test_a_repeated_fit_is_charged_once_and_gets_the_same_shares(ledger):
    first, again = fit(ledger=ledger), fit(ledger=ledger)
    assert released(first) == released(again)
    [entry] = ledger.entries()
    assert entry.epsilon == pytest.approx(first.privacy_spent_.epsilon)
    assert "after a noisy count of each class" in entry.description


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


# The student


STUDENTS = [
    None,
    LogisticRegression(),
    DecisionTreeClassifier(random_state=0),
    RandomForestClassifier(10, random_state=0),
    GaussianNB(),
]


@pytest.mark.parametrize("student", STUDENTS, ids=repr)
def test_the_mean_over_public_rows_is_the_released_share(student):
    fitted = fit(student=student)
    assert isinstance(fitted.student_, ReweightedClassifier)
    mean = fitted.predict_proba(X_PUBLIC).mean(axis=0)
    assert_allclose(mean, fitted.class_shares_, atol=1e-6)
    # Noise of five rows, of which six standard deviations are less than this.
    assert_allclose(fitted.class_shares_, np.bincount(Y) / len(Y), atol=0.04)


def test_shares_of_three_classes_of_which_one_is_in_no_shard():
    y = np.where(X[:, 1] > 1, 2, 0)
    fitted = fit(data=(X, y), classes=[0, 1, 2], epsilon=20.0)
    votes = counts_of(fitted).sum(axis=0)
    assert votes[1] == 0
    mean = fitted.predict_proba(X_PUBLIC).mean(axis=0)
    known = np.isin([0, 1, 2], fitted.student_.estimator_.classes_)
    shares = np.where(known, fitted.class_shares_, 0)
    assert_allclose(mean, shares / shares.sum(), atol=1e-6)


def test_thresholds_are_those_of_other_classifiers():
    share = fit().class_shares_[1]

    def with_threshold(threshold):
        # Equal shares, as the seeded noise of tests differs from fit to fit.
        return ReweightedClassifier.with_shares(
            fit().student_.estimator_,
            X_PUBLIC,
            np.array([1 - share, share]),
            slope=1.0,
            threshold=threshold,
        )

    auto, mean, half, own = map(with_threshold, ("auto", "balanced", "accuracy", 0.3))
    assert abs((auto.predict(X_PUBLIC) == 1).mean() - share) < 0.05
    assert mean.threshold == pytest.approx(share, abs=1e-6)
    assert half.threshold is None
    assert own.threshold == 0.3
    for one, cut in ((auto, auto.threshold), (mean, share), (half, 0.5), (own, 0.3)):
        positive = one.predict_proba(X_PUBLIC)[:, 1] > cut
        assert_array_equal(one.predict(X_PUBLIC), positive)
        assert_array_equal(one.decision_function(X_PUBLIC) > 0, positive)


@pytest.mark.parametrize("threshold", ["balanced", 0.3])
def test_a_fit_has_the_threshold_that_it_was_given(threshold):
    fitted = fit(threshold=threshold)
    wanted = fitted.class_shares_[1] if threshold == "balanced" else threshold
    assert fitted.student_.threshold == pytest.approx(wanted, abs=1e-6)
    positive = fitted.predict_proba(X_PUBLIC)[:, 1] > fitted.student_.threshold
    assert_array_equal(fitted.predict(X_PUBLIC), positive)


@pytest.mark.slow
def test_a_rare_class_of_a_real_table_is_ranked(data_home):
    path = data_home / "tables" / "stroke.csv.gz"
    if not path.exists():
        pytest.skip("tables of benchmarks are not downloaded")
    table = pd.read_csv(path)
    X, y = table.drop(columns=["id", "stroke"]), table["stroke"].to_numpy()
    gains, reached = [], []
    for seed in range(5):
        rows = np.random.RandomState(seed).permutation(len(y))
        test, public, private = np.split(rows, [1200, 2200])
        of_votes = []
        for vote in ("balanced", "plain"):
            clf = PATEClassifier(
                LogisticRegression(max_iter=1000),
                mechanism="gnmax",
                vote=vote,
                classes=[0, 1],
                random_state=seed,
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                clf.fit(
                    X.iloc[private], y[private], X_public=PublicData(X.iloc[public])
                )
            of_votes.append(
                roc_auc_score(y[test], clf.predict_proba(X.iloc[test])[:, 1])
            )
        gains.append(of_votes[0] - of_votes[1])
        reached.append(of_votes[0])
    assert np.mean(reached) > 0.65
    assert np.mean(gains) > 0.15


# What stays plain, and what is refused


@pytest.mark.parametrize(
    "parameters",
    [
        {"vote": "plain"},
        {"mechanism": "confident"},
        {"mechanism": "interactive", "query_strategy": "interactive"},
        {"mechanism": GNMax(sigma=5.0), "epsilon": None},
        {"student": LinearSVC()},
        {"synthetic": PrivateMarginals((-6, 6), by_class=False, n_rows=100)},
    ],
    ids=lambda one: next(iter(one)),
)
def test_votes_stay_plain_where_shares_have_no_use(parameters):
    clf = make(**parameters)
    public = {} if "synthetic" in parameters else {"X_public": PublicData(X_PUBLIC)}
    fitted = clf.fit(X, Y, **public)
    assert not hasattr(fitted, "class_shares_")
    assert not isinstance(fitted.student_, ReweightedClassifier)
    assert not fitted.privacy_spent_.class_count
    assert "count of each class" not in str(fitted.privacy_spent_)
    with pytest.raises(ValueError, match="but plain votes are counted here"):
        clone(clf).set_params(threshold=0.3).fit(X, Y, **public)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"vote": "soft"}, "vote='soft'"),
        ({"threshold": 1.5}, "threshold=1.5"),
        ({"threshold": "mean"}, "threshold='mean'"),
        ({"threshold": 0.5, "vote": "plain"}, "set threshold='auto'"),
        ({"threshold": 0.5, "classes": [0, 1, 2]}, "threshold=0.5 is for two classes"),
    ],
)
def test_wrong_parameters_are_refused_before_any_charge(ledger, parameters, message):
    with pytest.raises(ValueError, match=message):
        fit(ledger=ledger, **parameters)
    assert not ledger.entries()


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


def test_texts_name_the_count_and_its_place():
    fitted = fit()
    spent = fitted.privacy_spent_
    assert "after a noisy count of each class by ClassCounts(" in spent.mechanism
    text = " ".join(str(spent).split())
    assert "The cost includes this count." in text
    report = PrivacyReport.from_estimator(fitted)
    assert report.to_dict()["class_count"] is True
    page = report.to_markdown()
    steps = "Noisy counts: one for each class: the first release", "the second release"
    assert all(one in page for one in steps)
    assert "First, the rows of each class are counted" in page
    of_published = PrivacyReport.from_estimator(fitted.publish()).to_markdown()
    assert all(one in of_published for one in steps)
    plain = PrivacyReport.from_estimator(fit(vote="plain")).to_markdown()
    assert not any(one in plain for one in steps)


def test_costs_of_more_answers_include_the_count():
    plt = pytest.importorskip("matplotlib.pyplot")
    fitted = fit()
    display = AnswerCostDisplay.from_estimator(fitted, n_queries=150)
    assert display.paid == (100, fitted.privacy_spent_.epsilon)
    [costs] = display.epsilons.values()
    at_fit = costs[display.n_queries.tolist().index(100)]
    assert at_fit == pytest.approx(fitted.privacy_spent_.epsilon, rel=1e-6)
    plt.close(display.figure_)
