"""Noisy sums that are fixed numbers, whatever is summed, and what is public then."""

import pickle
from contextlib import contextmanager

import numpy as np
import pandas as pd
import scipy.sparse as sp
import torch
from sklearn.base import BaseEstimator

from tests.private import NoiseSource, NoisyOptimizer, NoisyScores, _linear

#: Attributes for the holder of the data alone.
SENSITIVE = {"data_problems_", "privacy_analysis_", "public_indices_"}


class Fixed(np.ndarray):
    """Noise that stays the same when something is added to it or compared with it."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        plain = [np.asarray(one) for one in inputs]
        if ufunc in (np.add, np.subtract):
            shape = np.broadcast_shapes(*(one.shape for one in plain))
            return np.broadcast_to(np.asarray(self), shape).copy()
        if ufunc in (np.greater, np.greater_equal, np.less, np.less_equal):
            return np.asarray(self) > 0
        result = getattr(ufunc, method)(*plain, **kwargs)
        return np.asarray(result).view(Fixed)


class FixedNumber(int):
    """A whole number that stays the same when something is added to it."""

    def __radd__(self, other):
        return self


def _numbers(shape, scale=1.0):
    """Return numbers that the shape alone determines."""
    n = int(np.prod(shape))
    drawn = np.random.RandomState(n % 2**31).standard_normal(n)
    return (scale * drawn).reshape(shape)


def _gaussian(noise, sigma, shape):
    return np.rint(_numbers(shape, sigma)).astype(np.int64).view(Fixed)


@contextmanager
def fixed_sums(monkeypatch):
    """Replace every noisy sum, noisy check and noisy minimum by fixed numbers."""
    with monkeypatch.context() as patch:
        patch.setattr(NoiseSource, "discrete_gaussian", _gaussian)
        patch.setattr(
            NoiseSource,
            "discrete_laplace",
            lambda noise, gamma, shape: _gaussian(noise, 1 / gamma, shape),
        )
        patch.setattr(
            NoiseSource,
            "bernoulli_exp",
            lambda noise, rate, gaps: np.ones(gaps.shape, dtype=bool),
        )
        patch.setattr(
            NoiseSource,
            "words",
            lambda noise, shape: (
                np.random.RandomState(int(np.prod(shape)) % 2**31)
                .randint(0, 2**63, shape)
                .astype(np.uint64)
                * np.uint64(2)
            ),
        )
        patch.setattr(
            NoisyScores, "draw", lambda *args: FixedNumber(_numbers((1,), 9)[0])
        )
        # A minimum is released with noise inside of it.
        patch.setattr(
            _linear,
            "minimise",
            lambda X, *args, **kwargs: _numbers((X.shape[1],)),
        )
        patch.setattr(NoisyOptimizer, "add_noise", _fixed_gradients)
        yield


def _fixed_gradients(optimizer):
    for p in optimizer.params:
        p.grad = torch.from_numpy(_numbers(tuple(p.shape))).to(p)


def contents(thing, path="", seen=()):
    """Yield each value within an object with its path, private attributes too."""
    if id(thing) in seen:
        return
    seen = (*seen, id(thing))
    if isinstance(thing, np.ndarray) and thing.dtype != object:
        yield path, (str(thing.dtype), thing.shape, thing.tobytes())
    elif isinstance(thing, str | int | float | None):
        yield path, thing
    elif isinstance(thing, torch.Tensor):
        yield path, thing.detach().numpy().tobytes()
    elif isinstance(thing, torch.nn.Module | torch.optim.Optimizer):
        yield from contents(thing.state_dict(), path, seen)
    elif isinstance(thing, pd.DataFrame | pd.Series):
        yield path, thing.to_dict()
    elif sp.issparse(thing):
        yield path, (thing.shape, thing.toarray().tobytes())
    elif isinstance(thing, dict):
        yield f"{path}.keys", [*map(repr, thing)]
        for name, value in thing.items():
            yield from contents(value, f"{path}[{name!r}]", seen)
    elif isinstance(thing, list | tuple | np.ndarray):
        yield f"{path}.length", len(thing)
        for place, value in enumerate(thing):
            yield from contents(value, f"{path}[{place}]", seen)
    elif isinstance(thing, BaseEstimator) or type(thing).__module__.startswith(
        "sklearn_pate"
    ):
        names = [*getattr(thing, "__slots__", ()), *getattr(thing, "__dict__", ())]
        for name in names:
            if name in SENSITIVE:
                continue
            yield from contents(getattr(thing, name), f"{path}.{name}", seen)
    else:
        try:
            yield path, pickle.dumps(thing)
        except Exception:
            yield path, type(thing)


def properties(thing, path=""):
    """Yield what the public properties of an object return."""
    for name in dir(type(thing)):
        if (
            not name.startswith("_")
            and name not in SENSITIVE
            and isinstance(getattr(type(thing), name, None), property)
        ):
            try:
                value = getattr(thing, name)
            except AttributeError:
                continue
            yield from contents(value, f"{path}.{name}")
