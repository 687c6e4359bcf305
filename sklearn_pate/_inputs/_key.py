"""Keys of shards: their bytes, and commitments to them."""

import hashlib
from numbers import Integral

__all__ = ["key_bytes", "key_commitment"]

_LARGEST_KEY = 2**64


def key_bytes(key: int | bytes) -> bytes:
    """Return the bytes of a key, or raise ValueError."""
    if isinstance(key, bytes):
        if key:
            return key
    elif (
        isinstance(key, Integral)
        and not isinstance(key, bool)
        and 0 <= key < _LARGEST_KEY
    ):
        return int(key).to_bytes(8, "little")
    raise ValueError(
        "key must be a whole number from 0 to 2**64 - 1, or bytes, such as those of "
        "secrets.token_bytes(32)."
    )


def key_commitment(key: int | bytes) -> str:
    """Return a hash that only this key has; it does not reveal a random key."""
    committed = hashlib.sha256(b"sklearn_pate key of shards\0" + key_bytes(key))
    return committed.hexdigest()
