"""Finished teachers on disk, so that a poll that was killed can go on.

What is kept are raw votes, and warnings that may quote rows: sensitive. joblib.Memory
writes arguments into its messages and metadata, so it gets to see a hash and a function
only.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import joblib

from sklearn_pate._estimators._hashing import estimator_hash
from sklearn_pate._estimators._seeding import seeded_clone

__all__ = ["TeacherMemory"]


class TeacherMemory:
    """Remembers what teachers of one poll returned, by what they were made of.

    Parameters
    ----------
    location : str
        A folder that all workers share. In it, a folder that only this user can read is
        made.

    estimator : classifier
        The teacher. Its parameters count, the code of its classes and functions does
        not.

    X_public : {ndarray, sparse matrix, dataframe} of shape (n_public, n_features)
        Public rows.

    form : VoteForm or SoftVoteForm
        What teachers are asked for.

    representation : transformer, default=None
        Fitted on public rows; what shards are transformed by.

    Raises
    ------
    ValueError
        If the estimator cannot be told from another one.
    """

    def __init__(self, location, estimator, X_public, form, representation=None):
        teacher = seeded_clone(estimator, 0), representation
        try:
            of_teacher = estimator_hash(*teacher)
        except Exception as error:
            raise ValueError(
                f"memory={location!r} needs an estimator (and a representation) that "
                "can be told from others; define its classes and functions in a module "
                f"({error})."
            ) from error
        versions = _versions(*teacher)
        self._location = location
        self._poll = joblib.hash((of_teacher, X_public, form, versions))
        cached = _cached(location)
        if not any(_private(location).rglob("func_code.py")):
            # Writes down the function's code. Left to the workers, one may read what
            # another has half written, take it for other code, and remove everything.
            cached.clear(warn=False)

    def of_teacher(self, *parts):
        """Return the place for what one teacher returns.

        Parameters
        ----------
        *parts : object
            What it depends on, beside what all teachers share. Hashed here, in the
            polling process, as a journey to another one changes some hashes.

        Returns
        -------
        place : callable
            Takes a function without arguments, and returns what it returned the first
            time. If it raises, nothing is kept.
        """
        return _Place(self._location, joblib.hash((self._poll, parts)))


@dataclass(frozen=True)
class _Place:
    location: str
    key: str

    def __call__(self, train):
        return _cached(self.location)(self.key, train)


def _private(location):
    folder = Path(location, "joblib", "sklearn_pate")
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    return folder


def _cached(location):
    _private(location)
    return joblib.Memory(location, verbose=0).cache(_call, ignore=["train"])


def _call(key, train):
    return train()


def _versions(teacher, representation):
    """List the versions of the packages that the votes come from."""
    parts = [teacher, *teacher.get_params(deep=True).values(), representation]
    packages = {type(part).__module__.partition(".")[0] for part in parts}
    packages |= {"sklearn_pate", "sklearn", "numpy", "scipy"}
    return [
        (name, str(getattr(sys.modules.get(name), "__version__", None)))
        for name in sorted(packages)
    ]
