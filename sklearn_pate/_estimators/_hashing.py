"""Names for objects by what is in them, the same in another process and tomorrow."""

import hmac
import pickle

import joblib

__all__ = ["estimator_hash", "fingerprint"]


def estimator_hash(*estimators: object) -> str:
    """Hash estimators, and other parameters, by what is in them.

    Parameters
    ----------
    *estimators : object
        Their parameters count, the code of their classes and functions does not.

    Returns
    -------
    digest : str
        Equal for equal parameters; different once in a while for equal ones, too.

    Raises
    ------
    Exception
        If one cannot be told from others: what cannot be pickled, and what is defined
        in ``__main__``, which may mean something else in the next run.
    """
    if b"__main__" in pickle.dumps(estimators):
        raise TypeError("something in it is defined in __main__")
    return joblib.hash(estimators)


def fingerprint(key: bytes, *digests: str) -> str:
    """Name something so that only who has the key can tell what it is.

    Parameters
    ----------
    key : bytes
        Secret.

    *digests : str
        Hashes of what it consists of.

    Returns
    -------
    name : str
        HMAC-SHA256, in hexadecimal.
    """
    return hmac.new(key, "\n".join(digests).encode(), "sha256").hexdigest()
