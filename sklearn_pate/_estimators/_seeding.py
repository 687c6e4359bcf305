"""Seeds for teachers and students. Never for the noise, which is `mechanisms.noise`."""

import random
import sys
import threading
from contextlib import contextmanager, nullcontext

import numpy as np
from sklearn.base import clone

MAX_SEED = 2**31 - 1

# The global generators belong to the whole process: one teacher at a time.
_GLOBAL_GENERATORS = threading.RLock()


def seeded_clone(estimator, seed):
    """Return a clone in which every `random_state` is derived from `seed`.

    Parameters
    ----------
    estimator : estimator
        Possibly with nested estimators; an integer `random_state` is replaced too, so
        that two teachers do not share their randomness.

    seed : int
        The seed.

    Returns
    -------
    estimator : estimator
        An unfitted clone.
    """
    estimator = clone(estimator)
    names = (
        name
        for name in estimator.get_params(deep=True)
        if name == "random_state" or name.endswith("__random_state")
    )
    seeds = {
        name: (seed + offset) % MAX_SEED for offset, name in enumerate(sorted(names))
    }
    if seeds:
        estimator.set_params(**seeds)
    return estimator  # not what set_params returns: of a FrozenEstimator, nothing


@contextmanager
def seeded_globals(seed):
    """Seed the global generators of Python, numpy and torch for the length of a block.

    Some estimators draw from them: skorch networks, a shuffling cross-validator inside
    a search. Without this, what one teacher draws would depend on how much the teachers
    before it drew, and so on their shards. Threads take turns.

    Parameters
    ----------
    seed : int
        The seed. The states from before are restored afterwards.
    """
    torch = sys.modules.get("torch")
    with _GLOBAL_GENERATORS:
        of_python, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
        try:
            with torch.random.fork_rng() if torch is not None else nullcontext():
                random.seed(seed)
                np.random.seed(seed)  # noqa: NPY002
                if torch is not None:
                    torch.manual_seed(seed)
                yield
        finally:
            random.setstate(of_python)
            np.random.set_state(of_numpy)  # noqa: NPY002
