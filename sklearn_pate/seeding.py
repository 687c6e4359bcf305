"""Seeds for teachers and students. Never for the noise, which is `mechanisms.noise`."""

import sys
from contextlib import contextmanager

from sklearn.base import clone

MAX_SEED = 2**31 - 1


def seeded_clone(estimator, seed):
    """Return a clone in which every unset `random_state` is derived from `seed`.

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
    return estimator.set_params(**seeds)


@contextmanager
def seeded_torch(seed):
    """Seed torch for the duration of a block, if torch is in use at all.

    skorch networks have no `random_state`; they draw from torch's global generator.

    Parameters
    ----------
    seed : int
        The seed. The generator's state from before is restored afterwards.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield
