"""Trials: their number, their candidates, and the one that is selected."""

from itertools import islice

import numpy as np
import pytest
from scipy.stats import binom, chisquare

from sklearn_pate.accounting.composition import (
    OnDisjointRows,
    TruncatedNegativeBinomial,
    TruncatedPoisson,
)
from tests.model_selection.learners import FITS, Constant
from tests.private import (
    GROUP_SCORE,
    Candidate,
    DisjointChoice,
    FitArguments,
    NoiseSource,
    NoisyScores,
    RowSplit,
    TrialSetup,
    best_of_trials,
    best_on_disjoint_rows,
    draw_number_of_trials,
)

LAWS = {
    "logarithmic": TruncatedNegativeBinomial.of_mean(0, 10),
    "geometric": TruncatedNegativeBinomial.of_mean(1, 10),
    "poisson": TruncatedPoisson.of_mean(10),
    "poisson, many": TruncatedPoisson.of_mean(1000),
}
ONCE = TruncatedNegativeBinomial(1, 1 - 1e-15)
X = np.arange(20.0)[:, np.newaxis]
Y = np.array([0, 1] * 10)


def setup(scoring=None, *, n_parts=1, ceiling=np.inf):
    """Rows 0 to 11 train, 12 to 19 are for scores."""
    split = RowSplit(np.array_split(np.arange(12), n_parts), np.arange(12, 20), None)
    scoring = scoring or NoisyScores(0.1)
    return TrialSetup(
        FitArguments(X, Y, Y, {}), split, np.array([0, 1]), scoring, [ceiling] * 4
    )


def candidates(*settings):
    return [Candidate(one, Constant(**one), ()) for one in settings]


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_the_number_of_trials_has_its_law(name):
    law, noise = LAWS[name], NoiseSource()
    n_draws = 5000 if law.mean < 100 else 500
    draws = np.array([draw_number_of_trials(law, noise) for _ in range(n_draws)])
    probabilities = np.array([float(p) for p in islice(law.probabilities(), 3000)])
    cdf = probabilities.cumsum()
    # About twenty classes of draws that are about equally likely.
    edges = np.unique(np.searchsorted(cdf, np.arange(0.05, 1, 0.05)) + 1)
    classes = np.searchsorted(edges, draws, side="left")
    expected = np.diff(np.concatenate([[0], cdf[edges - 1], [1]])) * n_draws
    kept = expected > 5
    observed = np.bincount(classes, minlength=len(expected))
    assert observed[~kept].sum() < 50
    total = expected[kept].sum()
    expected = expected[kept] / total * observed[kept].sum()
    assert chisquare(observed[kept], expected).pvalue > 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_as_many_trials_are_made_as_expected(name):
    law, noise = LAWS[name], NoiseSource()
    draws = [draw_number_of_trials(law, noise) for _ in range(500)]
    k = np.arange(1, 3001)
    p = np.array([float(one) for one in islice(law.probabilities(), 3000)])
    deviation = np.sqrt((p * (k - law.mean) ** 2).sum() / 500)
    # The logarithmic law has a heavier tail than its deviation suggests.
    assert abs(np.mean(draws) - law.mean) < 8 * deviation


@pytest.mark.thorough
def test_every_candidate_is_as_likely_as_any_other():
    four = candidates(*({"answer": answer} for answer in range(4)))
    law = TruncatedPoisson.of_mean(600)
    best_of_trials(four, setup(), law, NoiseSource())
    answers = [fit["estimator"].answer for fit in FITS]
    assert chisquare(np.bincount(answers, minlength=4)).pvalue > 1e-6


@pytest.mark.slow
def test_no_two_trials_share_a_seed():
    best_of_trials(
        candidates({"random_state": 7}),
        setup(),
        TruncatedPoisson.of_mean(200),
        NoiseSource(),
    )
    seeds = [fit["random_state"] for fit in FITS]
    # Out of 2^31: two equal ones have odds of one in a hundred thousand.
    assert len(set(seeds)) >= len(seeds) - 1


def test_fits_see_the_training_rows_and_no_other():
    best_of_trials(candidates({}), setup(), ONCE, NoiseSource())
    (fit,) = FITS
    assert fit["X"].ravel().tolist() == list(range(12))


def right(X):
    return X[:, 0] % 2


@pytest.mark.slow
def test_the_best_wins():
    # Eight right out of eight against four, with noise of a tenth.
    two = candidates({"answer": 0}, {"answer": right})
    law = TruncatedPoisson.of_mean(60)  # both are tried but for one in 10^12
    for _ in range(5):
        best = best_of_trials(two, setup(), law, NoiseSource())
        assert best.candidate.params == {"answer": right}


@pytest.mark.thorough
def test_equal_scores_win_equally_often():
    two = candidates({"answer": 0}, {"answer": 1})
    law = TruncatedPoisson.of_mean(3)
    n_runs = 400
    won = sum(
        best_of_trials(two, setup(), law, NoiseSource()).candidate.params["answer"]
        for _ in range(n_runs)
    )
    # Each run is symmetric in the two.
    assert 1e-7 < binom.cdf(won, n_runs, 0.5) < 1 - 1e-7


@pytest.mark.thorough
def test_the_noise_of_scores_is_there():
    # With so much noise, four of eight beat eight of eight nearly as often.
    two = candidates({"answer": 0}, {"answer": right})
    law = TruncatedPoisson.of_mean(5)
    for scoring in (NoisyScores(1e5), NoisyScores.at(1e-5)):
        won = sum(
            best_of_trials(two, setup(scoring), law, NoiseSource()).candidate.params[
                "answer"
            ]
            == 0
            for _ in range(100)
        )
        assert 10 < won < 90  # 8 deviations


@pytest.mark.parametrize("pure", [False, True])
def test_noise_is_wider_where_one_unit_moves_a_score_further(pure):
    scoring, noise = NoisyScores(1.0, pure=pure), NoiseSource()
    draws = {
        sensitivity: [scoring.draw(sensitivity, noise) for _ in range(500)]
        for sensitivity in (1, GROUP_SCORE)
    }
    ratio = np.std(draws[GROUP_SCORE]) / np.std(draws[1])
    assert GROUP_SCORE / 2 < ratio < GROUP_SCORE * 2


@pytest.mark.slow
def test_a_failed_trial_loses_to_any_other():
    two = candidates({"fails": True}, {"answer": 7})  # never right, but there
    law = TruncatedPoisson.of_mean(60)
    for _ in range(5):
        best = best_of_trials(two, setup(NoisyScores(1e4)), law, NoiseSource())
        assert best.fitted.answer == 7


def test_if_all_fail_the_selected_fit_failed():
    best = best_of_trials(candidates({"fails": True}), setup(), ONCE, NoiseSource())
    assert best.fitted is None


def cannot_read_row_13(X):
    if 13 in X[:, 0]:
        raise ValueError("13")
    return X[:, 0] % 2


def test_a_row_that_cannot_be_predicted_is_one_error():
    assert setup().fit_and_score(Constant(cannot_read_row_13), index=0)[1] == 7


def last_bits(X):
    """Predict by the last bit of a product: every row lies at the edge of the rule."""
    if not np.isfinite(X).all():
        raise ValueError("X holds NaN")
    products = X @ np.random.default_rng(1).normal(size=X.shape[1]).astype(X.dtype)
    return products.view(f"i{X.dtype.itemsize}") % 2


def score_of_last_bits(X, codes):
    split = RowSplit([np.array([1])], np.arange(len(X)), None)
    rows = FitArguments(X, codes, codes, {})
    one = TrialSetup(rows, split, np.array([0, 1]), NoisyScores(0.1), [np.inf])
    return one.fit_and_score(Constant(last_bits), index=0)[1]


@pytest.mark.slow
@pytest.mark.neighbours
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_that_joins_changes_no_other_prediction(dtype):
    X = np.random.default_rng(0).normal(size=(110, 64)).astype(dtype)
    for n_rows in range(96, 109):  # about the ends of blocks
        codes = last_bits(X[1:n_rows])
        before = score_of_last_bits(X[1:n_rows], codes)
        after = score_of_last_bits(X[:n_rows], np.append(0, codes))
        assert 0 <= after - before <= 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_that_cannot_be_predicted_changes_no_other_prediction(dtype):
    X = np.random.default_rng(0).normal(size=(400, 64)).astype(dtype)
    codes = last_bits(X)
    X_changed = X.copy()
    X_changed[0] = np.nan
    before, after = (score_of_last_bits(one, codes) for one in (X, X_changed))
    assert abs(after - before) <= 1


def test_a_label_that_does_not_count_is_never_right():
    codes = np.where(np.arange(20) < 16, Y, -1)
    rows = setup()._replace(rows=FitArguments(X, Y, codes, {}))
    assert rows.fit_and_score(Constant(right), index=0)[1] == 4
    # Nor is an answer that is no class, for a label that is none.
    assert rows.fit_and_score(Constant(9), index=0)[1] == 0


def test_a_fit_that_costs_more_than_planned_stops_the_search():
    planned = Constant().plan_privacy(X, Y).curve.values
    checked = setup(ceiling=planned)
    best_of_trials(candidates({}), checked, ONCE, NoiseSource())
    with pytest.raises(
        RuntimeError, match="Constant cost more than its plan_privacy stated"
    ):
        best_of_trials(candidates({"costs_more": True}), checked, ONCE, NoiseSource())


def test_disjoint_candidates_see_a_part_each():
    three = candidates(*({"answer": answer} for answer in range(3)))
    best_on_disjoint_rows(three, setup(DisjointChoice(0.1), n_parts=3), NoiseSource())
    seen = [fit["X"].ravel().tolist() for fit in FITS]
    assert seen == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert [fit["estimator"].answer for fit in FITS] == [0, 1, 2]


@pytest.mark.parametrize("pure", [False, True])
def test_the_best_of_disjoint_candidates_is_chosen(pure):
    two = candidates({"answer": 0}, {"answer": right})
    # Odds of e^-40 that four of eight beat eight of eight.
    scoring = DisjointChoice(0.1, pure)
    best = best_on_disjoint_rows(two, setup(scoring, n_parts=2), NoiseSource())
    assert best.candidate.params == {"answer": right}


@pytest.mark.slow
def test_a_disjoint_choice_has_the_law_of_the_exponential_mechanism():
    n_draws, noise = 3000, NoiseSource()
    chosen = [DisjointChoice(2.0).choose([0, 2, 3], 1, noise) for _ in range(n_draws)]
    weights = np.exp(np.array([0, 2, 3]) / 2)
    expected = weights / weights.sum() * n_draws
    assert chisquare(np.bincount(chosen, minlength=3), expected).pvalue > 1e-6


def test_the_cost_of_a_disjoint_choice_covers_scores_that_all_change():
    # Votes move one score up and one down; here each moves independently.
    rng, orders = np.random.default_rng(0), np.array([1.5, 2, 8, 64])
    for _ in range(200):
        c = rng.uniform(0.05, 2)
        scores = rng.integers(0, 6, size=rng.integers(2, 6))
        changed = scores + rng.integers(-1, 2, size=len(scores))
        p, q = (np.exp(c * (one - one.max())) for one in (scores, changed))
        p, q = p / p.sum(), q / q.sum()
        cost = np.log((p * (p / q) ** (orders[:, None] - 1)).sum(axis=1)) / (orders - 1)
        assert np.all(cost <= DisjointChoice(1 / c).curve(orders).values + 1e-12)
        assert np.abs(np.log(p / q)).max() <= 2 * c + 1e-12


def test_pure_noise_on_scores_has_the_requested_cost():
    orders = np.array([2.0, 2.0**18])
    for scoring in (NoisyScores.at(0.7), DisjointChoice.at(0.7)):
        assert scoring.curve(orders).values[-1] == pytest.approx(0.7, abs=1e-4)
    assert OnDisjointRows().pure_cost(0.7, scoring.curve(orders)) == 0.7
