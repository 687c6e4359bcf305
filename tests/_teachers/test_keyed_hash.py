import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.private import keyed_words, siphash

MASK = 2**64 - 1


def siphash_of_one(text, key):
    """Hash one text word by word, as in the paper's pseudocode."""
    first, second = (int.from_bytes(key[k : k + 8], "little") for k in (0, 8))
    v = [
        first ^ 0x736F6D6570736575,
        second ^ 0x646F72616E646F6D,
        first ^ 0x6C7967656E657261,
        second ^ 0x7465646279746573,
    ]

    def turned(word, by):
        return (word << by | word >> (64 - by)) & MASK

    def compress(n_rounds):
        for _ in range(n_rounds):
            v[0] = (v[0] + v[1]) & MASK
            v[1] = turned(v[1], 13) ^ v[0]
            v[0] = turned(v[0], 32)
            v[2] = (v[2] + v[3]) & MASK
            v[3] = turned(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & MASK
            v[3] = turned(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & MASK
            v[1] = turned(v[1], 17) ^ v[2]
            v[2] = turned(v[2], 32)

    padded = text + bytes(-(len(text) + 1) % 8) + bytes([len(text) % 256])
    for start in range(0, len(padded), 8):
        word = int.from_bytes(padded[start : start + 8], "little")
        v[3] ^= word
        compress(2)
        v[0] ^= word
    v[2] ^= 0xFF
    compress(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def hashed(text, key):
    words = np.frombuffer(key, dtype="<u8")
    return int(siphash(np.array([text]), np.array([len(text)]), words)[0])


def test_the_vector_of_the_paper():
    # Aumasson, Bernstein (2012), Appendix A.
    key, text = bytes(range(16)), bytes(range(15))
    assert hashed(text, key) == siphash_of_one(text, key) == 0xA129CA6149BE45E5


texts = st.binary(max_size=40).filter(lambda text: text[-1:] != b"\0")


@pytest.mark.slow
@given(texts=st.lists(texts, min_size=1), key=st.binary(min_size=16, max_size=16))
def test_each_text_is_hashed_as_if_it_were_alone(texts, key):
    assert [hashed(text, key) for text in texts] == [
        siphash_of_one(text, key) for text in texts
    ]


@pytest.mark.slow
@given(texts=st.lists(texts, min_size=1, max_size=30))
def test_texts_of_many_lengths_are_hashed_at_once(texts):
    together = keyed_words(np.array(texts), b"key", b"shard")
    alone = [keyed_words(np.array([text]), b"key", b"shard")[0] for text in texts]
    np.testing.assert_array_equal(together, alone)


def test_more_texts_than_a_block_are_hashed_in_their_order():
    texts = np.arange(40_000).astype(bytes)
    words = keyed_words(texts, b"key", b"shard")
    np.testing.assert_array_equal(
        words[::-1], keyed_words(texts[::-1], b"key", b"shard")
    )


@pytest.mark.parametrize(
    ("key", "purpose"), [(b"other", b"shard"), (b"key", b"public")]
)
def test_another_key_or_purpose_gives_independent_hashes(key, purpose):
    texts = np.arange(20_000).astype(bytes)
    one = keyed_words(texts, b"key", b"shard") >> np.uint64(61)
    other = keyed_words(texts, key, purpose) >> np.uint64(61)
    table = np.bincount((8 * one + other).astype(int), minlength=64).reshape(8, 8)
    assert stats.chi2_contingency(table).pvalue > 1e-6
