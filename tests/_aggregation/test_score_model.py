"""Tests of the score model: values of rows one by one, slopes, shares and bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.metrics import log_loss

from sklearn_pate.students import ScoreFunction, TableRepresentation
from tests.private import (
    LONGEST_VALUE,
    DirectionScores,
    RowValues,
    SlopedModels,
    _aggregation,
    bounded,
    shift_to_shares,
    sum_of_units,
)

N_PUBLIC, N_COLUMNS = 300, 7
CLASSES = [2, 3, 11]  # sums over eight numbers or more have an order of their own


class Refusing(TransformerMixin, BaseEstimator):
    """Representation that refuses rows that are not finite."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        if not np.all(np.isfinite(X)):
            raise ValueError(f"refused: {X}")
        return 2 * X


REPRESENTATIONS = {
    "table": TableRepresentation(),
    "refusing": Refusing(),
    "PCA": PCA(5),
}


def rows(n, seed=0):
    return np.random.RandomState(seed).standard_normal((n, N_COLUMNS))


def scored_rows(representation=None):
    return _aggregation.score_rows(
        rows(N_PUBLIC), representation, max_coordinates=30, rbf=True, seed=0
    )


def direction_scores(scored, n_classes=2, n=12, seed=1, shares=None):
    random_state = np.random.RandomState(seed)
    direction = random_state.standard_normal((n, n_classes - 1))
    direction /= np.linalg.norm(direction)
    if shares is None:
        shares = random_state.dirichlet(np.ones(n_classes))
    return DirectionScores.of_public_rows(
        direction, shares, scored.values[:, 1 : 1 + n]
    )


def row_values(name="table", n_classes=2, *, by_group=False):
    scored = scored_rows(REPRESENTATIONS[name])
    return RowValues(direction_scores(scored, n_classes), scored, by_group)


ODD = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 1e-300]


@pytest.mark.parametrize("n_classes", CLASSES)
@pytest.mark.parametrize("name", REPRESENTATIONS)
def test_the_value_of_every_row_is_bounded(name, n_classes):
    X = rows(200, seed=2)
    X[: len(ODD)] = np.reshape(ODD, (-1, 1))
    X[10 : 10 + len(ODD), 3] = ODD
    codes = np.arange(200) % (n_classes + 1) - 1
    values = row_values(name, n_classes)(X, codes)
    assert values.dtype == np.int64
    assert np.abs(values).max() <= LONGEST_VALUE
    assert len(np.unique(values)) > 20
    assert not values[codes < 0].any()
    if name == "refusing":
        assert not values[:3].any()


@settings(max_examples=50)
@given(
    row=st.lists(st.floats(width=64), min_size=N_COLUMNS, max_size=N_COLUMNS),
    code=st.integers(-1, 2),
)
def test_no_row_has_a_larger_value(row, code):
    [value] = OF_THREE(np.array([row]), np.array([code]))
    assert abs(int(value)) <= LONGEST_VALUE


OF_THREE = row_values(n_classes=3)


@pytest.mark.slow
@pytest.mark.neighbours
@pytest.mark.parametrize("by_group", [False, True])
@pytest.mark.parametrize("n_classes", CLASSES)
@pytest.mark.parametrize("name", REPRESENTATIONS)
def test_a_row_has_the_same_value_whatever_the_others(name, n_classes, by_group):
    values_of = row_values(name, n_classes, by_group=by_group)
    X, codes = rows(1100, seed=3), np.arange(1100) % n_classes
    together = values_of(X, codes)
    for start, stop in ((1, 1100), (700, 1090), (1099, 1100)):
        assert_array_equal(
            values_of(X[start:stop], codes[start:stop]), together[start:stop]
        )
    for value in ODD:
        X[1:] = value
        assert values_of(X, codes)[0] == together[0]


@pytest.mark.neighbours
@pytest.mark.parametrize("n_classes", CLASSES)
def test_scores_are_the_same_bit_by_bit_before_rounding(n_classes):
    scored = scored_rows()
    scores = direction_scores(scored, n_classes)
    values = rows(1100, seed=4)[:, [0] * 12] * np.arange(1.0, 13)
    for layout in (np.ascontiguousarray, np.asfortranarray):
        together = scores.excess(scores.of_rows(layout(values)))
        for start, stop in ((1, 1100), (700, 1090), (1099, 1100)):
            part = scores.excess(scores.of_rows(layout(values[start:stop])))
            assert_array_equal(part, together[start:stop])


def test_a_group_that_joins_moves_the_sum_by_its_own_rows():
    values_of = row_values(n_classes=3, by_group=True)
    X, codes = rows(400, seed=5), np.arange(400) % 3
    X[:4] = np.array([[np.nan], [1e308], [np.inf], [0.5]])
    groups = np.arange(400) // 4
    joined = sum_of_units(values_of(X, codes), groups)
    without = sum_of_units(values_of(X[4:], codes[4:]), groups[4:])
    own = sum_of_units(values_of(X[:4], codes[:4]), groups[:4])
    assert joined - without == own
    assert abs(own) <= LONGEST_VALUE


def test_a_value_is_the_clipped_score_of_the_own_class():
    scored = scored_rows()
    scores = direction_scores(scored, 2)
    codes = np.arange(N_PUBLIC) % 2
    values = RowValues(scores, scored, False)(rows(N_PUBLIC), codes)
    public = bounded(scored.values[:, 1:13] @ scores.direction, 2.0)[:, 0]
    standard = (public - public.mean()) / public.std()
    by_class = standard[:, np.newaxis] * np.array([1, -1]) / np.sqrt(2)
    excess = by_class[np.arange(N_PUBLIC), codes] - by_class @ scores.shares
    assert_allclose(values / LONGEST_VALUE, np.clip(excess, -1, 1), atol=0.5 / 228)


# Models


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    released=st.floats(-3, 3),
    sd=st.floats(1e-4, 3),
    n_classes=st.sampled_from(CLASSES),
    alpha=st.sampled_from([0.1, 1.0, 10.0]),
)
def test_a_model_never_ranks_against_its_direction_and_has_the_released_shares(
    seed, released, sd, n_classes, alpha
):
    shares = np.random.RandomState(seed).dirichlet(np.full(n_classes, alpha))
    shares = np.maximum(shares, 0.01)
    shares /= shares.sum()
    scores = direction_scores(SCORED, n_classes, seed=seed, shares=shares)
    models = SlopedModels(scores, SCORED.values[:, 1:13])
    slope = models.most_probable(released, sd**2)
    assert slope >= 0.02
    model = models.model(slope, SCORED)
    probabilities = model.predict_proba(rows(N_PUBLIC))
    assert_allclose(probabilities.mean(axis=0), shares, atol=1e-6)
    of_classes = scores.of_rows(SCORED.values[:, 1:13])
    expected = softmax(
        slope * of_classes + shift_to_shares(slope * of_classes, shares), axis=1
    )
    assert_allclose(probabilities, expected, atol=1e-9)
    if n_classes == 2:
        order = np.argsort(of_classes[:, 1])
        assert np.all(np.diff(probabilities[order, 1]) >= -1e-12)


SCORED = scored_rows()


@pytest.mark.slow
def test_the_slope_of_labels_is_found():
    scores = direction_scores(SCORED, 3, shares=np.array([0.6, 0.3, 0.1]))
    models = SlopedModels(scores, SCORED.values[:, 1:13])
    X = rows(20_000, seed=6)
    of_classes = [
        RowValues(scores, SCORED, False)(X, np.full(len(X), code)) for code in range(3)
    ]
    for slope in (0.3, 1.0, 2.5):
        # The mean over all labels that could be drawn, which depends on no draw.
        probabilities = models.model(slope, SCORED).predict_proba(X)
        values = np.sum(probabilities * np.transpose(of_classes), axis=1)
        found = models.most_probable(values.mean() / LONGEST_VALUE, 1e-6)
        assert found == pytest.approx(slope, rel=0.15)


def test_a_hidden_slope_leaves_a_model_that_is_as_good_as_its_shares():
    scores = direction_scores(SCORED, 2, shares=np.array([0.9, 0.1]))
    models = SlopedModels(scores, SCORED.values[:, 1:13])
    codes = (np.random.RandomState(1).uniform(size=N_PUBLIC) < 0.1).astype(int)
    constant = log_loss(codes, np.full(N_PUBLIC, 0.1))
    for released in (-1.0, 0.0):
        slope = models.most_probable(released, 0.01**2)
        probabilities = models.model(slope, SCORED).predict_proba(rows(N_PUBLIC))
        assert slope < 0.03
        assert log_loss(codes, probabilities[:, 1]) == pytest.approx(constant, abs=0.01)


def test_a_public_row_alone_gives_the_shares():
    scored = _aggregation.score_rows(
        rows(1), None, max_coordinates=30, rbf=True, seed=0
    )
    scores = direction_scores(scored, 3, n=0, shares=np.array([0.5, 0.3, 0.2]))
    models = SlopedModels(scores, scored.values[:, 1:])
    model = models.model(models.most_probable(0.5, 0.01), scored)
    assert_allclose(
        model.predict_proba(rows(4)), np.tile(scores.shares, (4, 1)), atol=1e-6
    )


# Bounds of models


@pytest.mark.parametrize("scale", [0.0, 5e-324, 1e300, np.inf])
def test_scores_of_any_size_are_bounded(scale):
    found = bounded(np.full((2, 3), scale), 2.0)
    assert_allclose(np.linalg.norm(found, axis=1), 0 if scale < 1 else 2.0, atol=1e-12)


@pytest.mark.neighbours
@pytest.mark.parametrize("n_classes", CLASSES)
@pytest.mark.parametrize("bound", [None, 0.7])
def test_a_row_is_predicted_the_same_whatever_the_others(n_classes, bound):
    random_state = np.random.RandomState(0)
    coef = random_state.standard_normal((12, n_classes - 1))
    model = ScoreFunction.of_release(
        coef, SCORED.of_basis, SCORED.basis.chosen(slice(12)), bound
    )
    X = rows(1100, seed=7)
    together = model.predict_proba(X)
    for start, stop in ((1, 1100), (700, 1090), (1099, 1100)):
        assert_array_equal(model.predict_proba(X[start:stop]), together[start:stop])
    X[1:] = 1e308
    assert_array_equal(model.predict_proba(X)[0], together[0])
