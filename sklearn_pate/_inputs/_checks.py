"""Checks of single parameters."""

from numbers import Integral, Real
from typing import Any

__all__ = ["check_count", "check_device", "check_number"]


def check_count(
    name: str, value: Any, smallest: int = 1, *, optional: bool = False
) -> None:
    """Raise ValueError unless a parameter is a whole number that is large enough."""
    if optional and value is None:
        return
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or value < smallest:
        none = ", or None" if optional else ""
        raise ValueError(
            f"{name}={value!r} must be a whole number of at least {smallest}{none}."
        )


def check_number(name: str, value: Any, low: float, high: float) -> None:
    """Raise ValueError unless a parameter is a number from `low` to `high`."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not low <= value <= high:
        raise ValueError(f"{name}={value!r} must be a number from {low} to {high}.")


def check_device(device: Any) -> None:
    """Raise ValueError unless torch can compute there."""
    import torch  # not earlier: some parameters are checked without it

    try:
        kind = torch.device(device).type
    except (RuntimeError, TypeError) as error:
        raise ValueError(
            f"device={device!r} is unknown to torch; use 'cpu' or 'cuda'."
        ) from error
    if kind == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            f"device={device!r} was asked for and torch finds no GPU; use device='cpu'."
        )
