"""Seeds of teachers and students. The noise has its own: `mechanisms.noise`."""

import random
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from sklearn_pate._inputs._preprocessing_advice import cause_of, in_short

MAX_SEED = 2**31 - 1

# Held while the generators of the whole process are seeded for one teacher.
_GLOBAL_GENERATORS = threading.RLock()


@dataclass(frozen=True)
class Seeds:
    """Seeds of the parts of a fit, which may be public."""

    public_rows: int
    #: Key of the shards and of the teachers' seeds.
    key: int
    queries: int
    student: int
    representation: int
    synthetic: int

    @classmethod
    def drawn(cls, random_state: Any) -> Self:
        """Draw all seeds, in a fixed order, so that no seed depends on the data.

        An integer is the key itself, so that teachers can be trained elsewhere.
        """
        seeds = cls(
            *check_random_state(random_state).randint(MAX_SEED, size=6).tolist()
        )
        if isinstance(random_state, Integral):
            return replace(seeds, key=int(random_state))
        return seeds


def check_cloneable(name: str, parameter: Any) -> None:
    """Raise ValueError unless scikit-learn can clone an estimator, or None."""
    try:
        clone(parameter, safe=False)
    except Exception as error:
        raise ValueError(
            f"{name}={in_short(parameter)} cannot be cloned, as teachers and students "
            "are: its constructor has to keep each parameter as it is given, and its "
            f"get_params has to return it ({cause_of(str(error))})."
        ) from error


def seeded_clone(estimator: Any, seed: int) -> Any:
    """Return an unfitted clone in which every `random_state` is derived from `seed`.

    Integers are replaced too, so that two teachers do not share their random numbers.
    """
    return with_seeds(clone(estimator), seed_names(estimator), seed)


def seed_names(estimator: Any) -> list[str]:
    """List the names of all `random_state` of an estimator and its parts."""
    return sorted(
        name
        for name in estimator.get_params(deep=True)
        if name == "random_state" or name.endswith("__random_state")
    )


def with_seeds(estimator: Any, names: Sequence[str], seed: int) -> Any:
    """Set parameters of these names to seeds that are derived from `seed`."""
    seeds = {name: (seed + offset) % MAX_SEED for offset, name in enumerate(names)}
    if seeds:
        estimator.set_params(**seeds)
    return estimator  # not what set_params returns: of a FrozenEstimator, nothing


@contextmanager
def seeded_globals(seed: int) -> Iterator[None]:
    """Seed the global generators of Python, numpy and torch for the length of a block.

    Some estimators draw from them: skorch networks, a shuffling cross-validator inside
    a search. Otherwise, the random numbers of a teacher would depend on how many the
    earlier teachers drew, and so on their shards. Threads enter one at a time; the
    states from before are restored.
    """
    with kept_globals() as seed_globals:
        seed_globals(seed)
        yield


@contextmanager
def kept_globals() -> Iterator[Callable[[int], None]]:
    """Restore the global generators after a block that seeds them several times.

    Yields the function that seeds them. Their states are kept once, as that takes a
    tenth of the time of a small teacher.
    """
    with _GLOBAL_GENERATORS, ExitStack() as states:
        states.callback(random.setstate, random.getstate())
        states.callback(np.random.set_state, np.random.get_state())  # noqa: NPY002
        is_torch_kept = False

        def seed_globals(seed: int) -> None:
            nonlocal is_torch_kept
            torch = sys.modules.get("torch")
            if torch is not None and not is_torch_kept:
                states.enter_context(torch.random.fork_rng())
                is_torch_kept = True
            random.seed(seed)
            np.random.seed(seed)  # noqa: NPY002
            if torch is None:
                return
            if torch.accelerator.is_available():
                torch.manual_seed(seed)
            else:  # the same numbers, without notes of the seed for devices to come
                torch.default_generator.manual_seed(seed)

        yield seed_globals
