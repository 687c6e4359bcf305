"""Tests of ScoreBasis and ScoreFunction: orthonormal, nested, probabilities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax
from sklearn.decomposition import PCA

from sklearn_pate.students import ScoreFunction
from tests.private import (
    ScoreBasis,
    bounded,
    resolve_threshold,
    row_products,
    shift_to_shares,
)


@pytest.fixture
def rows():
    return np.random.RandomState(0).standard_normal((300, 5)) @ np.diag([5, 3, 2, 1, 1])


@pytest.mark.parametrize("rbf", [False, True])
def test_functions_are_orthonormal_on_public_rows(rows, rbf):
    basis = ScoreBasis(40, rbf, random_state=0).fit(rows)
    values = basis.transform(rows)
    assert_allclose(values.T @ values / len(rows), np.eye(values.shape[1]), atol=1e-8)
    assert_allclose(values[:, 0], 1)
    assert values.shape[1] == basis.n_coordinates_ == (40 if rbf else 6)


def test_principal_components_come_first_by_their_variance(rows):
    values = ScoreBasis(50, True, random_state=0).fit(rows).transform(rows)
    scores = PCA(whiten=True).fit_transform(rows) * np.sqrt(300 / 299)
    assert_allclose(np.abs(values[:, 1:6].T @ scores / 300), np.eye(5), atol=1e-7)


def test_fewer_functions_are_the_first_of_more(rows):
    few = ScoreBasis(10, True, random_state=0).fit(rows).transform(rows)
    many = ScoreBasis(40, True, random_state=0).fit(rows).transform(rows)
    assert_allclose(few, many[:, :10], atol=1e-8)


def test_a_row_has_the_same_values_alone(rows):
    basis = ScoreBasis(80, True, random_state=0).fit(rows)
    new = np.random.RandomState(1).standard_normal((40, 5))
    alone = np.vstack([basis.transform(new[i : i + 1]) for i in range(40)])
    assert_array_equal(alone, basis.transform(new))


@pytest.mark.parametrize(
    "X",
    [
        np.ones((1, 3)),
        np.ones((7, 3)),
        np.arange(3.0).reshape(1, 3),
        np.repeat(np.arange(4.0), 2).reshape(4, 2),
        np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]),
    ],
    ids=["one row", "constant", "one distinct row", "dependent columns", "repeats"],
)
def test_few_or_constant_rows_have_few_functions(X):
    basis = ScoreBasis(400, True, random_state=0).fit(X)
    values = basis.transform(X)
    assert 1 <= basis.n_coordinates_ <= len(np.unique(X, axis=0))
    assert_allclose(values.T @ values / len(X), np.eye(values.shape[1]), atol=1e-8)


def test_landmarks_are_means_of_several_public_rows(rows):
    basis = ScoreBasis(50, True, random_state=0).fit(rows)
    known = {tuple(row) for row in rows}
    assert not known & {tuple(row) for row in basis.landmarks_}
    assert 20 < len(basis.landmarks_) <= 60
    assert ScoreBasis(50, False).fit(rows).landmarks_ is None


def test_products_are_those_of_matrices_but_for_the_last_bits():
    random_state = np.random.RandomState(0)
    rows = random_state.standard_normal((700, 90)) * 10.0 ** np.arange(-45, 45)
    weights = random_state.standard_normal((90, 7)) * 10.0 ** np.arange(-3, 4)
    lengths = np.linalg.norm(rows, axis=1)[:, np.newaxis]
    error = row_products(rows, weights) - rows @ weights
    assert np.abs(error / lengths / np.linalg.norm(weights, axis=0)).max() < 1e-11


@pytest.mark.slow
@pytest.mark.neighbours
def test_products_of_a_row_have_the_same_bits_in_any_position():
    random_state = np.random.RandomState(0)
    rows = random_state.standard_normal((1100, 1000))
    weights = random_state.standard_normal((1000, 217))
    together = row_products(rows, weights)
    for start, stop in ((1, 1100), (700, 1090), (1099, 1100)):
        assert_array_equal(
            row_products(rows[start:stop], weights), together[start:stop]
        )
    rows[1:] = random_state.standard_normal((1099, 1000)) * 1e9
    assert_array_equal(row_products(rows, weights)[0], together[0])


@pytest.mark.slow
@given(
    scores=arrays(np.float64, (8, 3), elements=st.floats(-1e6, 1e6)),
    bound=st.floats(1e-3, 1e3),
)
def test_bounded_scores_keep_their_direction_and_are_no_longer_than_the_bound(
    scores, bound
):
    short = bounded(scores, bound)
    lengths = np.linalg.norm(scores, axis=1)
    found = np.linalg.norm(short, axis=1)
    assert_allclose(found, bound * np.tanh(lengths / bound), rtol=1e-9, atol=1e-12)
    assert_allclose(short * lengths[:, None], scores * found[:, None], atol=1e-3)


@given(
    seed=st.integers(0, 2**32 - 1),
    n_classes=st.integers(2, 6),
    scale=st.sampled_from([0.0, 0.1, 3.0, 50.0]),
)
def test_shifted_scores_have_the_given_mean_probabilities(seed, n_classes, scale):
    rng = np.random.RandomState(seed)
    scores = scale * rng.standard_normal((200, n_classes))
    shares = rng.dirichlet(np.full(n_classes, 2.0))
    shares = np.maximum(shares, 1e-3)
    shares /= shares.sum()
    shift = shift_to_shares(scores, shares)
    assert_allclose(softmax(scores + shift, axis=1).mean(axis=0), shares, atol=1e-6)


def of_two_classes(second):
    second = np.asarray(second, dtype=float)
    return np.c_[1 - second, second]


@pytest.mark.parametrize("sharpness", [0.01, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("intercept", [-4.0, -1.5, 0.0, 2.0])
def test_by_default_a_class_is_predicted_as_often_as_its_mean_probability(
    sharpness, intercept
):
    scores = np.random.RandomState(0).standard_normal(2000)
    second = expit(intercept + sharpness * scores)
    threshold = resolve_threshold("auto", of_two_classes(second))
    share = second.mean()
    atol = np.sqrt(share * (1 - share) / 2000) + 1 / 2000
    assert_allclose(np.mean(second > threshold), share, atol=atol)


def test_of_thresholds_that_public_rows_cannot_tell_apart_one_half_is_taken():
    second = np.r_[np.linspace(0.01, 0.3, 60), np.linspace(0.52, 0.99, 40)]
    assert abs(second.mean() - 0.4) < 0.05
    assert resolve_threshold("auto", of_two_classes(second)) == 0.5


@pytest.mark.parametrize(
    ("second", "n_predicted"),
    [
        ([0.1] * 7 + [0.45] * 3, 3),  # a quantile would predict none
        ([0.2] * 5, 0),
        ([0.45 + 1e-16, 0.45, 0.45 - 1e-16] + [0.1] * 7, 3),  # but for round-off
        ([0.7] * 5, 5),
        ([0.0, 0.0, 1.0], 1),
        ([0.0] * 3, 0),
        ([1.0] * 3, 3),
        ([0.3], 0),
    ],
)
def test_rows_with_equal_probabilities_are_predicted_alike(second, n_predicted):
    threshold = resolve_threshold("auto", of_two_classes(second))
    assert 0 < threshold < 1
    assert np.sum(np.array(second) > threshold) == n_predicted


@pytest.mark.parametrize(
    ("threshold", "second", "expected"),
    [
        ("balanced", [0.1, 0.3], 0.2),
        ("accuracy", [0.1, 0.3], None),
        (0.3, [0.1, 0.3], 0.3),
    ],
)
def test_other_thresholds_are_the_mean_one_half_and_a_number(
    threshold, second, expected
):
    assert resolve_threshold(threshold, of_two_classes(second)) == expected


def test_of_several_classes_the_most_probable_one_is_predicted():
    assert resolve_threshold("auto", np.full((5, 3), 1 / 3)) is None


@pytest.mark.parametrize("n_coordinates", [1, 3, 6, 20])
def test_the_first_functions_are_those_of_all(rows, n_coordinates):
    basis = ScoreBasis(20, True, random_state=0).fit(rows)
    first = basis.chosen(slice(n_coordinates))
    expected = basis.transform(rows)[:, :n_coordinates]
    assert_allclose(first.transform(rows), expected, atol=1e-12)
    n_linear = np.count_nonzero(~basis.landmark_weights_.any(axis=0))
    assert (first.landmarks_ is None) == (n_coordinates <= n_linear)


class Identity:
    def transform(self, X):
        return X


def test_a_function_predicts_by_its_coefficients(rows):
    basis = ScoreBasis(6, False).fit(rows)
    coef = np.zeros((6, 1))
    coef[1] = -0.2  # the first of two classes has the positive sign
    function = ScoreFunction.of_release(coef, Identity(), basis)
    first = basis.transform(rows)[:, 1]
    assert_array_equal(function.predict(rows), first > 0)
    probabilities = function.predict_proba(rows)[:, 1]
    function.threshold = 0.6
    assert_array_equal(function.predict(rows), probabilities > 0.6)


def test_values_in_single_precision_are_near_those_of_each_row():
    X = np.random.default_rng(0).normal(size=(2000, 12))
    basis = ScoreBasis(100, rbf=True, random_state=0).fit(X[:1000])
    # Values are of order 1, and single precision has 24 bits.
    np.testing.assert_allclose(basis.near(X), basis.transform(X), atol=1e-4)
