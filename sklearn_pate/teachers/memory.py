"""Finished teachers on disk, so that a poll that was killed can go on.

What is kept are raw votes, and warnings that may quote rows: sensitive. joblib.Memory
writes arguments into its messages and metadata, so it gets to see a hash and a function
only.
"""

from importlib.metadata import version
from pathlib import Path

import joblib

from sklearn_pate.seeding import seeded_clone

__all__ = ["TeacherMemory"]

# Votes from another version are not the same votes.
PACKAGES = ("sklearn-pate", "scikit-learn", "numpy")


class TeacherMemory:
    """Remembers what teachers of one poll returned, by what they were made of.

    Parameters
    ----------
    location : str
        A folder that all workers share. In it, a folder that only this user can read is
        made.

    estimator : classifier
        The teacher. Its parameters count, the code of its class does not.

    X_public : {ndarray, sparse matrix, dataframe} of shape (n_public, n_features)
        Public rows.

    n_classes : int
        Number of classes.

    Raises
    ------
    ValueError
        If the estimator cannot be told from another one.
    """

    def __init__(self, location, estimator, X_public, n_classes):
        try:
            teacher = joblib.hash(seeded_clone(estimator, 0))
        except Exception as error:
            raise ValueError(
                f"memory={location!r} needs an estimator that can be pickled, to tell "
                f"it from others; define its class and functions in a module ({error})."
            ) from error
        versions = [version(name) for name in PACKAGES]
        self._location = location
        self._poll = joblib.hash((teacher, X_public, n_classes, versions))
        private = Path(location, "joblib", "sklearn_pate")
        private.mkdir(parents=True, exist_ok=True)
        private.chmod(0o700)
        # Writes down the function's code before several workers would.
        self._cached().check_call_in_cache(None, None)

    def __call__(self, train, *parts):
        """Return what `train` returned for the same parts, or call it.

        Parameters
        ----------
        train : callable
            Without arguments. If it raises, nothing is kept.

        *parts : object
            What its result depends on, beside what all teachers share.

        Returns
        -------
        result : object
            Of `train`.
        """
        # Rows may or may not reach a worker by memory map.
        key = joblib.hash((self._poll, parts), coerce_mmap=True)
        return self._cached()(key, train)

    def _cached(self):
        memory = joblib.Memory(self._location, verbose=0)
        return memory.cache(_call, ignore=["train"])


def _call(key, train):
    return train()
