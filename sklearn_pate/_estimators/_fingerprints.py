"""Fingerprints of data, fits and fitted models."""

import hashlib
import hmac
import pickle
from contextlib import suppress
from functools import cached_property
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator

from sklearn_pate._estimators._kinds import is_of

_NAMED = (type, FunctionType, BuiltinFunctionType, MethodType, ModuleType)
# Search trees for nearest neighbours, in a module that is slow to import.
_TREES = ("KDTree", "BallTree")
_RANDOM = (np.random.RandomState, np.random.Generator, np.random.BitGenerator)


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


def model_fingerprint(model: Any) -> str:
    """Return the SHA-256 of all that a fitted model predicts by.

    A private classifier is its published model: fitted, published and loaded, it has
    one fingerprint. Neither versions nor the identity of objects in the model count,
    and of functions only the names.
    """
    return _Digests().of(model).hex()


class _Digests:
    """Digests of objects by content. Each object is read once."""

    def __init__(self) -> None:
        # With the objects, so that no other gets the same id.
        self._known: dict[int, tuple[Any, bytes]] = {}

    def of(self, one: Any) -> bytes:
        if isinstance(one, FrozenEstimator):
            return self.of(one.estimator)
        if id(one) not in self._known:
            self._known[id(one)] = one, b"inside itself"
            kind, parts = self._parts(one)
            hashed = hashlib.sha256(kind.encode())
            for part in parts:
                content = part if isinstance(part, bytes) else self.of(part)
                hashed.update(len(content).to_bytes(8, "little") + content)
            self._known[id(one)] = one, hashed.digest()
        return self._known[id(one)][1]

    def _parts(self, one: Any) -> tuple[str, list[Any]]:
        """Return the kind of an object, and its parts: bytes, or objects to digest."""
        kind = f"{type(one).__module__}.{type(one).__qualname__}"
        if one is None or isinstance(one, (bool, int, float, complex, str)):
            return type(one).__name__, [repr(one).encode()]
        if isinstance(one, (bytes, bytearray)):
            return "bytes", [bytes(one)]
        if isinstance(one, _RANDOM):  # predictions do not depend on them
            return kind, []
        if isinstance(one, _NAMED):
            return "named", [getattr(one, "__qualname__", one.__name__).encode()]
        if isinstance(one, (np.ndarray, np.generic)):
            return self._parts_of_array(np.asarray(one))
        if isinstance(one, dict):
            pairs = ([self.of(name), self.of(value)] for name, value in one.items())
            return "dict", [part for pair in sorted(pairs) for part in pair]
        if type(one) in (list, tuple):
            return kind, list(one)
        if isinstance(one, (set, frozenset)):
            return "set", sorted(map(self.of, one))
        if hasattr(one, "_published_model") and hasattr(one, "privacy_spent_"):
            with suppress(ValueError):  # a search among learners of other packages
                return "published", _published(one)
        if sp.issparse(one):
            rows = one.tocsr(copy=True)
            rows.sum_duplicates()
            places = [each.astype(np.int64) for each in (rows.indices, rows.indptr)]
            return f"sparse {rows.shape}", [rows.data, *places]
        if type(one).__name__ in _TREES and is_of(one, "sklearn"):  # count queries
            return kind, [np.asarray(one.data)]
        if is_of(one, "torch") and hasattr(one, "state_dict"):
            return kind, [repr(one), one.state_dict()]  # layers, and their weights
        if is_of(one, "torch") and hasattr(one, "detach"):
            return "array", [one.detach().cpu().numpy()]
        if is_of(one, "skorch") and hasattr(one, "module_"):
            return kind, [one.module_, one.criterion, one.predict_nonlinearity]
        return kind, _state(one)

    def _parts_of_array(self, array: NDArray[Any]) -> tuple[str, list[Any]]:
        if array.dtype.hasobject:
            return f"objects {array.shape}", array.ravel().tolist()
        if array.dtype.names:  # apart, as there may be anything between fields
            return "fields", [(name, array[name]) for name in array.dtype.names]
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        return f"{array.dtype.str} {array.shape}", [array.tobytes()]


def _published(one: Any) -> list[Any]:
    """Return what publication keeps of a classifier, beside its statement."""
    names = getattr(one, "feature_names_in_", getattr(one, "_column_names", None))
    outcome = getattr(one, "_outcome", None)
    return [
        one._published_model(),
        one.classes_.tolist(),
        int(one.n_features_in_),
        None if names is None else list(names),
        *([] if outcome is None else [outcome]),
    ]


def _state(one: Any) -> list[Any]:
    """Return the state of an object without values that it computes when asked."""
    state: Any = vars(one) if isinstance(one, BaseEstimator) else None
    if state is None:
        try:
            reduced = one.__reduce_ex__(4)
        except Exception:  # cannot be pickled
            state = getattr(one, "__dict__", {})
        else:
            if isinstance(reduced, str):
                return [reduced]
            _, arguments, state, *items = (*reduced, None, None, None)[:5]
            items = [None if each is None else list(each) for each in items]
            return [arguments, _without_computed(one, state), *items]
    return [_without_computed(one, state)]


def _without_computed(one: Any, state: Any) -> Any:
    if not isinstance(state, dict):
        return state
    return {
        name: value
        for name, value in state.items()
        if not isinstance(getattr(type(one), str(name), None), cached_property)
    }
