"""Results of finished teachers on disk, so that an interrupted fit can continue.

They are raw votes, and warnings that may quote rows: sensitive. joblib.Memory writes
arguments into its messages and metadata, so it is passed a hash and a function only.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
from sklearn.base import BaseEstimator

from sklearn_pate._estimators._hashing import estimator_hash
from sklearn_pate._estimators._seeding import seeded_clone
from sklearn_pate._inputs._containers import Table
from sklearn_pate._teachers._task import Outcome
from sklearn_pate._teachers._vote_form import Form

__all__ = ["TeacherMemory"]


class TeacherMemory:
    """Cache of the results of one fit's teachers, in a folder shared by all workers.

    Results are stored in a subfolder that only this user can read, by hashes of the
    estimator's parameters (not of its code), `X_public`, the form, the representation
    fitted on public rows, and package versions.
    """

    def __init__(
        self,
        location: str,
        estimator: BaseEstimator,
        X_public: Table,
        form: Form,
        representation: BaseEstimator | None = None,
    ) -> None:
        teacher = seeded_clone(estimator, 0), representation
        try:
            of_teacher = estimator_hash(*teacher)
        except Exception as error:
            raise ValueError(
                f"memory={location!r} needs an estimator (and a representation) that "
                "can be hashed; define its classes and functions in a module "
                f"({error})."
            ) from error
        versions = _versions(*teacher)
        self._location = location
        self._poll = joblib.hash((of_teacher, X_public, form, versions))
        cached = _cached(location)
        if not any(_private(location).rglob("func_code.py")):
            # joblib stores the function's code. Workers that do it at the same time may
            # read an incomplete file, take it for other code, and clear the cache.
            cached.clear(warn=False)

    def of_teacher(self, *parts: object) -> Callable[[Callable[[], Outcome]], Outcome]:
        """Return the cache slot of a teacher: it calls a function the first time only.

        `parts` are hashed in this process: pickling changes the hashes of some objects.
        A function that raises leaves the slot empty.
        """
        return _Slot(self._location, joblib.hash((self._poll, parts)))


@dataclass(frozen=True)
class _Slot:
    location: str
    key: str

    def __call__(self, train: Callable[[], Outcome]) -> Outcome:
        return _cached(self.location)(self.key, train)


def _private(location: str) -> Path:
    folder = Path(location, "joblib", "sklearn_pate")
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    return folder


def _cached(location: str) -> Any:
    _private(location)
    return joblib.Memory(location, verbose=0).cache(_call, ignore=["train"])


def _call(key: str, train: Callable[[], Outcome]) -> Outcome:
    return train()


def _versions(
    teacher: BaseEstimator, representation: BaseEstimator | None
) -> list[tuple[str, str]]:
    """List the versions of the packages used by the teacher."""
    parts = [teacher, *teacher.get_params(deep=True).values(), representation]
    packages = {type(part).__module__.partition(".")[0] for part in parts}
    packages |= {"sklearn_pate", "sklearn", "numpy", "scipy"}
    return [
        (name, str(getattr(sys.modules.get(name), "__version__", None)))
        for name in sorted(packages)
    ]
