"""Import of packages that are not required."""

from importlib import import_module
from types import ModuleType

__all__ = ["optional_module"]


def optional_module(module: str, package: str) -> ModuleType:
    """Import a module of an optional package, or raise with how to install it."""
    try:
        return import_module(module)
    except ImportError:
        raise ImportError(
            f"This needs {package}, which is not installed: pip install {package}"
        ) from None
