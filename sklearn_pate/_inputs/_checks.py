"""Checks of single parameters."""

from numbers import Real
from typing import Any

__all__ = ["check_device", "check_number"]


def check_number(
    name: str, value: Any, low: float, high: float, *, closed: str = "both"
) -> None:
    """Raise ValueError unless a parameter is a number in an interval.

    `closed` names the ends that belong to it: "both", "right" or "neither".
    """
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if (
        not is_number
        or not low <= value <= high
        or (value == low and closed != "both")
        or (value == high and closed == "neither")
    ):
        interval = {
            "both": f"from {low} to {high}",
            "right": f"above {low} and at most {high}",
            "neither": f"strictly between {low} and {high}",
        }[closed]
        raise ValueError(f"{name}={value!r} must be a number {interval}.")


def check_device(device: Any) -> None:
    """Raise ValueError unless torch can compute on a device."""
    import torch  # here, as the other checks do without it

    try:
        kind = torch.device(device).type
    except (RuntimeError, TypeError) as error:
        raise ValueError(
            f"device={device!r} is unknown to torch; use 'cpu' or 'cuda'."
        ) from error
    if kind == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            f"device={device!r} needs a GPU and torch finds none; use device='cpu'."
        )
