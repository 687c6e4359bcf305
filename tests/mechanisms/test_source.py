import secrets

import numpy as np
import pytest
from scipy import stats

from tests.mechanisms.laws import goodness_of_fit
from tests.private import LARGEST_SCALE, NoiseSource
from tests.seeding import equal_noise

# A fair test fails below this: once in a million runs.
P_VALUE = 1e-6
N_DRAWS = 1_000_000


def source_of(first_bytes):
    """A source that starts with one draw of the same byte over and over."""
    source = NoiseSource()
    answers = iter([lambda n_bytes: first_bytes * n_bytes])
    source._random_bytes = lambda n_bytes: next(answers, secrets.token_bytes)(n_bytes)
    return source


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [0.3, 1, 3, 7.3, 10, 40, 100, 1000, 1e5])
def test_gaussian_draws_follow_their_law(sigma):
    draws = NoiseSource().discrete_gaussian(sigma, (1000, N_DRAWS // 1000))
    assert draws.shape == (1000, N_DRAWS // 1000)
    assert draws.dtype == np.int64
    p_value = goodness_of_fit(draws.ravel(), lambda z: -((z / sigma) ** 2) / 2, sigma)
    assert p_value > P_VALUE


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [10, 3, 1, 0.7, 0.3, 0.05, 0.01, 0.001, 1e-5])
def test_laplace_draws_follow_their_law(gamma):
    draws = NoiseSource().discrete_laplace(gamma, (1000, N_DRAWS // 1000))
    assert draws.shape == (1000, N_DRAWS // 1000)
    assert draws.dtype == np.int64
    p_value = goodness_of_fit(draws.ravel(), lambda z: -gamma * np.abs(z), 1 / gamma)
    assert p_value > P_VALUE


@pytest.mark.slow
def test_neighbouring_draws_are_uncorrelated():
    source = NoiseSource()
    for draws in (
        source.discrete_gaussian(40, N_DRAWS),
        source.discrete_laplace(0.05, N_DRAWS),
    ):
        assert stats.pearsonr(draws[1:], draws[:-1]).pvalue > P_VALUE
        assert stats.pearsonr(abs(draws[1:]), abs(draws[:-1])).pvalue > P_VALUE


@pytest.mark.parametrize("sigma", [0.1, 0.01, 5e-324, np.float32(0.01)])
def test_gaussian_noise_much_narrower_than_a_vote_is_zero(sigma):
    assert not NoiseSource().discrete_gaussian(sigma, 1000).any()


@pytest.mark.parametrize("gamma", [100, 1.7e308])
def test_laplace_noise_much_narrower_than_a_vote_is_zero(gamma):
    assert not NoiseSource().discrete_laplace(gamma, 1000).any()


@pytest.mark.parametrize("value", [0, -1, np.nan, np.inf])
@pytest.mark.parametrize(
    ("name", "draw"),
    [
        ("sigma", lambda value: NoiseSource().discrete_gaussian(value, 1)),
        ("gamma", lambda value: NoiseSource().discrete_laplace(value, 1)),
        ("rate", lambda value: NoiseSource().bernoulli_exp(value, np.ones(1, int))),
    ],
)
def test_a_scale_that_is_not_positive_and_finite_is_refused(name, draw, value):
    with pytest.raises(ValueError, match=f"{name}={value!r} must be a positive"):
        draw(value)


@pytest.mark.slow
def test_the_widest_laplace_noise_is_drawn():
    draws = NoiseSource().discrete_laplace(1 / LARGEST_SCALE, 10_000)
    assert stats.kstest(draws, stats.laplace(scale=LARGEST_SCALE).cdf).pvalue > P_VALUE


def test_noise_wider_than_the_widest_is_refused():
    source = NoiseSource()
    with pytest.raises(ValueError, match=r"sigma=1048577 is more than .*; lower sigma"):
        source.discrete_gaussian(LARGEST_SCALE + 1, 1)
    with pytest.raises(ValueError, match=r"gamma=9e-07 is less than .*; raise gamma"):
        source.discrete_laplace(9e-7, 1)
    with pytest.raises(ValueError, match=r"rate=9e-07 is less than .*; raise rate"):
        source.bernoulli_exp(9e-7, np.ones(1, int))


@pytest.mark.parametrize("rate", [0.01, 0.3, 1, 2.5])
def test_successes_have_their_probability(rate):
    gaps = np.tile(np.arange(1, 9), (N_DRAWS // 8, 1))
    successes = NoiseSource().bernoulli_exp(rate, gaps)
    assert successes.dtype == bool
    assert successes.shape == gaps.shape
    for gap, n_successes in enumerate(successes.sum(axis=0), start=1):
        test = stats.binomtest(int(n_successes), len(gaps), np.exp(-rate * gap))
        assert test.pvalue > P_VALUE


def test_a_gap_of_zero_always_succeeds_and_a_huge_one_never():
    source = NoiseSource()
    assert source.bernoulli_exp(3.0, np.zeros(1000, int)).all()
    assert not source.bernoulli_exp(0.05, np.full(1000, 10**9)).any()
    for byte in (b"\x00", b"\xff"):
        assert source_of(byte).bernoulli_exp(3.0, np.zeros(10, int)).all()


def test_a_negative_gap_is_refused():
    with pytest.raises(ValueError, match="the smallest is -3"):
        NoiseSource().bernoulli_exp(1, np.array([0, -3]))


@pytest.mark.parametrize("n", [1, 2, 10, 3 * 2**61, 2**63])
def test_indices_are_uniform(n):
    # A quarter of the words is above the last multiple of 3 * 2^61.
    draws = NoiseSource().index(n, (1000, N_DRAWS // 1000))
    assert draws.shape == (1000, N_DRAWS // 1000)
    assert draws.dtype == np.int64
    assert draws.min() >= 0
    assert draws.max() <= n - 1
    n_groups = min(n, 12)
    observed = np.bincount(draws.ravel() // -(-n // n_groups), minlength=n_groups)
    if n > 1:
        assert stats.chisquare(observed).pvalue > P_VALUE


def test_a_word_of_the_incomplete_top_is_drawn_again():
    # 2^64 - 1 is a multiple of 3, so that its highest word must not become a zero.
    source = NoiseSource()
    answers = iter([b"\xff" * 8, b"\x05" + b"\x00" * 7])
    source._random_bytes = lambda n_bytes: next(answers)
    assert source.index(3, ()) == 2


def test_ties_are_broken_uniformly():
    values = np.tile([5, -1, 5, 5, 4], (300_000, 1))
    wins = np.bincount(NoiseSource().argmax(values), minlength=5)
    assert wins[1] == wins[4] == 0
    assert stats.chisquare(wins[[0, 2, 3]]).pvalue > P_VALUE


@pytest.mark.parametrize("byte", [b"\x00", b"\xff"])
def test_ties_stay_uniform_after_equal_priorities(byte):
    values = np.tile([0, 7, 7], (100_000, 1))
    wins = np.bincount(source_of(byte).argmax(values), minlength=3)
    assert wins[0] == 0
    assert stats.chisquare(wins[1:]).pvalue > P_VALUE


def test_a_row_without_a_tie_takes_no_randomness():
    source = NoiseSource()
    values = np.array([[1, 2, 0], [-5, -7, -6], [0, 0, 2**62]])
    n_read = 0

    def count_bytes(n_bytes):
        nonlocal n_read
        n_read += n_bytes
        return secrets.token_bytes(n_bytes)

    source._random_bytes = count_bytes
    np.testing.assert_array_equal(source.argmax(values), [1, 0, 2])
    assert n_read == 0
    source.argmax(np.array([[1, 2, 0], [3, 3, 0]]))
    assert n_read == 3 * 8


def test_bytes_of_zeros_give_the_centre():
    np.testing.assert_array_equal(source_of(b"\x00").discrete_gaussian(40, 5), 0)
    assert np.all(source_of(b"\x00").discrete_laplace(0.05, 5) <= 20)


def test_bytes_of_ones_reach_the_tail_beyond_a_word():
    # 2^-64 of the mass of a Gaussian is beyond 9.1 sigma, of geometric k beyond 44.
    draws = source_of(b"\xff").discrete_gaussian(40, 5)
    assert np.all((abs(draws) > 360) & (abs(draws) < 600))
    draws = source_of(b"\xff").discrete_laplace(1, 5)
    assert np.all((draws > 20) & (draws < 100))


def test_two_sources_from_the_operating_system_differ():
    assert not np.array_equal(NoiseSource().words(8), NoiseSource().words(8))


@pytest.mark.parametrize("shape", [(), 3, (2, 3), (0, 4)])
def test_words_have_the_given_shape(shape):
    words = NoiseSource().words(shape)
    assert words.shape == np.empty(shape).shape
    assert words.dtype == np.uint64


def test_every_bit_of_a_word_is_fair():
    words = NoiseSource().words(100_000)
    for bit in range(64):
        n_ones = int(np.count_nonzero(words >> np.uint64(bit) & np.uint64(1)))
        assert stats.binomtest(n_ones, 100_000).pvalue > P_VALUE / 64


def test_random_state_of_numpy_does_not_reach_the_noise():
    def draw():
        np.random.seed(0)
        return NoiseSource().discrete_gaussian(40, 20)

    assert not np.array_equal(draw(), draw())


@pytest.mark.parametrize(
    "draw",
    [
        lambda source: source.discrete_gaussian(40, 20),
        lambda source: source.discrete_laplace(0.05, 20),
        lambda source: source.bernoulli_exp(0.7, np.ones(200, int)),
        lambda source: source.index(1000, 20),
        lambda source: source.argmax(np.zeros((20, 10), int)),
    ],
)
def test_a_seeded_source_repeats_itself_moves_on_and_warns(draw):
    one, other = (equal_noise()(NoiseSource)() for _ in range(2))
    first = draw(one)
    np.testing.assert_array_equal(first, draw(other))
    assert not np.array_equal(first, draw(one))
