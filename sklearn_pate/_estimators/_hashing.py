"""Hashes of objects by their content, equal in all processes."""

import hmac
import pickle

import joblib

__all__ = ["estimator_hash", "fingerprint"]


def estimator_hash(*estimators: object) -> str:
    """Hash estimators and parameters by content; the code of classes does not count.

    Equal content may hash differently once in a while. Raises an exception for objects
    that cannot be pickled, and for those defined in ``__main__``, whose names may stand
    for something else in the next run.
    """
    if b"__main__" in pickle.dumps(estimators):
        raise TypeError("something in it is defined in __main__")
    return joblib.hash(estimators)


def fingerprint(key: bytes, *digests: str) -> str:
    """Compute the HMAC-SHA256 of hashes, which only holders of the key can repeat."""
    return hmac.new(key, "\n".join(digests).encode(), "sha256").hexdigest()
