"""Audits of noisy counts, and of answers after them; planted defects are found."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

from sklearn_pate import PATEClassifier, PrivateMarginals
from sklearn_pate.inspection import audit_neighbours
from sklearn_pate.mechanisms import GNMax
from tests.private import (
    MarginalCounts,
    NoiseSource,
    _entry,
    count_cells,
    epsilon_lower_bound,
)

# Few trials bound epsilon better at a large delta.
DELTA, CONFIDENCE, N_TRIALS = 1e-2, 0.9999, 2000
RNG = np.random.default_rng(0)
Y = np.arange(120) % 2
X = RNG.uniform(0, 2, size=(120, 2)) + 2 * Y[:, np.newaxis]
GROUPS = np.arange(120) // 3
PATE = PATEClassifier(
    GaussianNB(),
    GaussianNB(),
    n_teachers=4,
    n_queries=2,
    query_strategy="random",
    mechanism=GNMax(sigma=3.0),
    epsilon=None,
    classes=[0, 1],
    synthetic=PrivateMarginals((0, 8), n_rows=20, n_bins=8, sigma=2.9),
    random_state=0,
)


def with_one_row_replaced():
    X_other, y_other = X.copy(), Y.copy()
    # It is in cells that no other row is in.
    X_other[0], y_other[0] = 7.5, 1
    return [(X, Y), (X_other, y_other)]


def without_one_group():
    stays = GROUPS != 3
    return [(X, Y, GROUPS), (X[stays], Y[stays], GROUPS[stays])]


def plans(data_sets):
    for X, y, *groups in data_sets:
        pate = clone(PATE).set_params(privacy_unit="group" if groups else "row")
        named = {"groups": groups[0]} if groups else {}
        yield pate, pate._plan(X, y, **named)


def exact_counts(pate, plan):
    X, codes = _entry.counted_rows(plan.private, plan.seeds.synthetic)
    return count_cells(plan.public.domain, X, codes, 2, by_class=True)


def drawn_once(pate, plan):
    return plan.release.counts.release(exact_counts(pate, plan), NoiseSource())


def bound_and_claim(data_sets, drawn=drawn_once, score=None, n_trials=N_TRIALS):
    """Bound epsilon by an attacker who knows both data sets, and the claim."""
    planned = list(plans(data_sets))
    exact = [exact_counts(*one) for one in planned]
    # The log-likelihood ratio, for noise on all cells.
    score = score or (lambda counts: counts @ (exact[1] - exact[0]))
    scores = [
        np.array([score(drawn(*one)) for _ in range(n_trials)]) for one in planned
    ]
    counts = planned[0][1].release.counts
    bound, _ = epsilon_lower_bound(*scores, delta=DELTA, confidence=CONFIDENCE)
    return bound, counts.cost(1, 2).epsilon(DELTA)


@pytest.mark.thorough
@pytest.mark.parametrize("neighbours", [with_one_row_replaced, without_one_group])
def test_noisy_counts_do_not_contradict_their_cost(neighbours):
    bound, claim = bound_and_claim(neighbours())
    assert bound < claim < 2


@pytest.mark.thorough
def test_counts_without_noise_on_empty_cells_are_found(monkeypatch):
    release = MarginalCounts.release

    def without_empty_cells(self, counts, noise):
        return np.where(counts > 0, release(self, counts, noise), 0)

    monkeypatch.setattr(MarginalCounts, "release", without_empty_cells)
    bound, claim = bound_and_claim(
        with_one_row_replaced(), score=lambda counts: np.count_nonzero(counts)
    )
    assert bound > 1.5 * claim


@pytest.mark.thorough
def test_one_row_of_each_group_by_a_permutation_of_all_rows_is_found(monkeypatch):
    def by_permutation(ids, group_of_row, seed):
        order = np.random.RandomState(seed).permutation(len(group_of_row))
        _, first = np.unique(group_of_row[order], return_index=True)
        return order[first]

    monkeypatch.setattr(_entry, "one_row_of_groups", by_permutation)
    bound, claim = bound_and_claim(without_one_group())
    assert bound > 1.5 * claim


@pytest.mark.thorough
def test_counts_that_are_drawn_again_at_no_cost_are_found():
    def drawn_again(pate, plan):
        return sum(drawn_once(pate, plan) for _ in range(16))

    bound, claim = bound_and_claim(with_one_row_replaced(), drawn_again, n_trials=700)
    assert bound > 1.2 * claim


@pytest.mark.thorough
def test_counts_and_answers_together_do_not_contradict_the_statement():
    data = with_one_row_replaced()
    exact = [exact_counts(*one) for one in plans(data)]
    direction = exact[1] - exact[0]

    def statistic(pate):
        tables = np.concatenate([table.ravel() for table in pate.marginals_.values()])
        return tables @ direction[: len(tables)] + 3 * pate.answers_.sum()

    result = audit_neighbours(PATE, *data, statistic=statistic, n_runs=20)
    assert result.epsilon_claimed < 5
    assert not result.contradicted
