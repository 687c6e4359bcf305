"""Keyed hashes of many short texts at once."""

import hashlib

import numpy as np
from numpy.typing import NDArray

__all__ = ["keyed_words"]

_Words = NDArray[np.uint64]

# Texts hashed at once. Their words fit in the processor's cache, and below the size at
# which memory comes from the system and goes back each time.
_BLOCK = 2**12
_START = b"somepseudorandomlygeneratedbytes"


def keyed_words(texts: NDArray[np.bytes_], key: bytes, purpose: bytes) -> _Words:
    """Map each text to 64 bits by SipHash-2-4, keyed with `key` for a purpose.

    Aumasson, Bernstein (2012), "SipHash: a fast short-input PRF". The texts are UTF-8
    without NULs at the end, which arrays of bytes do not keep. SipHash takes 128 bits:
    these are BLAKE2b (RFC 7693) of the key, personalised with the purpose.
    """
    words_of_key = np.frombuffer(
        hashlib.blake2b(key, digest_size=16, person=purpose).digest(), dtype="<u8"
    )
    hashed = np.empty(len(texts), dtype=np.uint64)
    for start in range(0, len(texts), _BLOCK):
        block = texts[start : start + _BLOCK]
        lengths = np.strings.str_len(block)
        for n_whole in np.unique(lengths // 8).tolist():
            rows = np.flatnonzero(lengths // 8 == n_whole)
            hashed[start + rows] = siphash(block[rows], lengths[rows], words_of_key)
    return hashed


def siphash(
    texts: NDArray[np.bytes_], lengths: NDArray[np.intp], key: _Words
) -> _Words:
    """Hash texts with the same number of whole words of 8 bytes."""
    n_words = int(lengths[0]) // 8 + 1
    padded = texts.astype(f"S{8 * n_words}").view(np.uint8).reshape(len(texts), -1)
    padded[:, -1] = lengths % 256
    words = padded.view("<u8")
    state = [
        np.full(len(texts), one ^ of_key)
        for one, of_key in zip(
            np.frombuffer(_START, dtype=">u8").astype(np.uint64),
            [*key, *key],
            strict=True,
        )
    ]
    for place in range(n_words):
        word = np.ascontiguousarray(words[:, place], dtype=np.uint64)
        state[3] ^= word
        _mix(state, 2)
        state[0] ^= word
    state[2] ^= np.uint64(0xFF)
    _mix(state, 4)
    found: _Words = state[0] ^ state[1] ^ state[2] ^ state[3]
    return found


def _mix(state: list[_Words], n_rounds: int) -> None:
    """Apply rounds of SipHash in place."""
    for _ in range(n_rounds):
        for first, second, by, turned in (
            (0, 1, 13, True),
            (2, 3, 16, False),
            (0, 3, 21, False),
            (2, 1, 17, True),
        ):
            state[first] += state[second]
            state[second] = _turned(state[second], by) ^ state[first]
            if turned:
                state[first] = _turned(state[first], 32)


def _turned(words: _Words, by: int) -> _Words:
    return (words << np.uint64(by)) | (words >> np.uint64(64 - by))
