import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from tests.private import GaussianMagnitude, Geometric, invert


class EarlyEnd(GaussianMagnitude):
    """A table shorter than need be: the outcomes beyond it must not be lost."""

    def thresholds(self, bits):
        return itertools.islice(super().thresholds(bits), bits // 2)


def geometric(rate, size=None):
    return Geometric(Fraction(rate), size)


def gaussian(sigma):
    return GaussianMagnitude(Fraction(sigma))


def exact(fraction):
    return mpmath.mpf(fraction.numerator) / fraction.denominator


def distribution_function(law, count):
    """F(0), ..., F(count - 1) to the precision of mpmath, from the definitions."""
    if isinstance(law, Geometric):
        whole = 1 if law.size is None else 1 - mpmath.exp(-exact(law.rate) * law.size)
        return [
            (1 - mpmath.exp(-exact(law.rate) * (k + 1))) / whole for k in range(count)
        ]
    n_terms = count + math.ceil(25 * law.sigma)
    terms = [2 * mpmath.exp(-((m / exact(law.sigma)) ** 2) / 2) for m in range(n_terms)]
    terms[0] /= 2
    whole = mpmath.fsum(terms)
    part = mpmath.mpf(0)
    return [(part := part + term) / whole for term in terms[:count]]


def settle_every_word(law, width, n_words):
    """Read words in every possible way until they settle an outcome.

    Returns (words, outcome) of each way, and the number of ways not settled yet.
    """

    class OutOfWordsError(Exception):
        pass

    settled, n_open = [], 0
    ways = [(word,) for word in range(2**width)]
    while ways:
        words = ways.pop()
        unread = iter(words[1:])

        def more(n_words, unread=unread):
            assert n_words == 1
            for word in unread:
                return np.array([word], dtype=np.uint64)
            raise OutOfWordsError

        try:
            outcome = invert(law, np.array(words[:1], np.uint64), more, width).item()
        except OutOfWordsError:
            if len(words) < n_words:
                ways.extend((*words, word) for word in range(2**width))
            else:
                n_open += 1
        else:
            settled.append((words, outcome))
    return settled, n_open


@pytest.mark.slow
@pytest.mark.parametrize("bits", [64, 128])
@pytest.mark.parametrize(
    "law",
    [
        *(gaussian(sigma) for sigma in (0.1, 1, 40, 1000)),
        *(geometric(rate) for rate in (0.01, 0.05, 1, 30)),
        *(geometric(rate, math.ceil(1 / rate)) for rate in (0.01, 0.05, 0.3)),
        geometric(30, 5),
    ],
    ids=repr,
)
def test_thresholds_are_at_most_one_unit_off(law, bits):
    thresholds = list(law.thresholds(bits))
    assert thresholds == sorted(thresholds)
    assert thresholds[0] >= 0
    assert thresholds[-1] < 2**bits
    with mpmath.workprec(bits + 100):
        truth = distribution_function(law, len(thresholds))
        for threshold, share in zip(thresholds, truth, strict=True):
            assert abs(threshold + 1 - share * 2**bits) <= 1


@pytest.mark.parametrize("law", [gaussian(0.1), gaussian(40), geometric(0.05)])
def test_thresholds_reach_to_the_precision_of_a_word(law):
    with mpmath.workprec(200):
        last = distribution_function(law, len(list(law.thresholds(64))))[-1]
        assert (1 - last) * 2**64 <= 1


def test_thresholds_of_a_finite_law_are_one_fewer_than_its_outcomes():
    assert len(list(geometric(0.3, 4).thresholds(64))) == 3


@pytest.mark.slow
@pytest.mark.parametrize(("width", "n_words"), [(2, 12), (5, 5)])
@pytest.mark.parametrize(
    "law",
    [
        *(gaussian(sigma) for sigma in (0.4, 1.3, 3)),
        EarlyEnd(Fraction(1)),
        geometric(0.7),
        geometric(0.3, 4),
    ],
    ids=repr,
)
def test_every_sequence_of_small_words_gives_the_outcome_it_is_inside(
    law, width, n_words
):
    # With words so small most outcomes take several. Whatever words may follow, the
    # number that they spell stays between F(outcome - 1) and F(outcome).
    settled, n_open = settle_every_word(law, width, n_words)
    largest = max(outcome for _, outcome in settled)
    mass = [Fraction(0)] * (largest + 1)
    assert max(len(words) for words, _ in settled) == n_words
    with mpmath.workprec(200):
        limits = [0, *distribution_function(law, largest + 1)]
        if law.size is not None:
            limits[law.size] = 1
        for words, outcome in settled:
            value = 0
            for word in words:
                value = value << width | word
            unit = mpmath.mpf(2) ** (-width * len(words))
            assert limits[outcome] <= value * unit
            assert (value + 1) * unit <= limits[outcome + 1]
            mass[outcome] += Fraction(1, 2 ** (width * len(words)))
        # Almost all ways are settled, so that no outcome misses any of its mass.
        unsettled = Fraction(n_open, 2 ** (width * n_words))
        assert sum(mass) + unsettled == 1
        assert unsettled < Fraction(1, 10**5)
        for outcome, share in enumerate(mass):
            missing = limits[outcome + 1] - limits[outcome] - exact(share)
            assert 0 <= missing <= exact(unsettled)


@pytest.mark.parametrize("law", [gaussian(40), geometric(0.05), geometric(0.05, 20)])
def test_the_next_word_decides_whether_a_draw_is_above_a_threshold(law):
    with mpmath.workprec(300):
        for k, share in enumerate(distribution_function(law, 15)):
            first, second = divmod(int(share * 2**128), 2**64)
            for follower, outcome in ((second - 2, k), (second + 2, k + 1)):
                n_read = 0

                def more(n_words, follower=follower):
                    nonlocal n_read
                    n_read += n_words
                    return np.array([follower], dtype=np.uint64)

                drawn = invert(law, np.array([first], dtype=np.uint64), more)
                assert drawn.tolist() == [outcome]
                assert n_read == 1


def test_a_word_off_the_thresholds_is_settled_at_once():
    def more(n_words):
        raise AssertionError("no more words are needed")

    law = gaussian(40)
    thresholds = np.array(list(law.thresholds(64))[:100], dtype=np.uint64)
    outcomes = np.arange(100)
    np.testing.assert_array_equal(invert(law, thresholds - 1, more), outcomes)
    np.testing.assert_array_equal(invert(law, thresholds + 2, more), outcomes + 1)


def test_outcomes_have_the_shape_of_the_words():
    words = np.full((2, 0, 3), 2**40, dtype=np.uint64)
    assert invert(gaussian(1), words, None).shape == (2, 0, 3)
    assert invert(gaussian(1), np.array(2**40, np.uint64), None).shape == ()
    assert invert(gaussian(1), words, None).dtype == np.int64


def test_a_table_is_built_once():
    laws = [gaussian(123.25), gaussian(123.25)]
    n_built = 0

    class Counted(GaussianMagnitude):
        def thresholds(self, bits):
            nonlocal n_built
            n_built += 1
            return super().thresholds(bits)

    for law in laws:
        invert(Counted(law.sigma), np.full(3, 2**40, dtype=np.uint64), None)
    assert n_built == 1
