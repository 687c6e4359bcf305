"""Former names of parameters of estimators."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from sklearn_pate.exceptions import warn_user

Kind = TypeVar("Kind", bound=type)


def renamed_parameters(**names: str) -> Callable[[Kind], Kind]:
    """Let an estimator accept former names of parameters, as in ``former="new"``.

    The constructor and `set_params` warn of a former name. `__setstate__` does not, as
    files of earlier versions are read for ever.
    """

    def renamed(given: Mapping[str, Any], *, warns: bool) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in given.items():
            head, *tail = name.split("__", 1)
            new = "__".join([names.get(head, head), *tail])
            if new in given.keys() - {name}:
                raise TypeError(f"{name} is the former name of {new}; pass only {new}.")
            if new != name and warns:
                warn_user(f"{name} is now called {new}; use {new}.", FutureWarning)
            found[new] = value
        return found

    def decorate(kind: Kind) -> Kind:
        for method in ("__init__", "set_params", "__setstate__"):
            setattr(kind, method, wrapped(getattr(kind, method)))
        return kind

    def wrapped(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(self: Any, *args: Any, **parameters: Any) -> Any:
            if method.__name__ == "__setstate__":
                return method(self, renamed(args[0], warns=False))
            return method(self, *args, **renamed(parameters, warns=True))

        return call

    return decorate
