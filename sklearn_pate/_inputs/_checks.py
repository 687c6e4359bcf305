"""Checks of students' parameters."""

from numbers import Integral, Real

__all__ = ["check_count", "check_device", "check_number"]


def check_count(name, value, *, optional=False):
    """Raise ValueError unless a parameter is a positive integer.

    Parameters
    ----------
    name : str
        Name of the parameter.

    value : object
        Its value.

    optional : bool, default=False
        Whether None will do.
    """
    if optional and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        none = " or None" if optional else ""
        raise ValueError(f"{name}={value!r} must be a positive integer{none}.")


def check_number(name, value, low, high):
    """Raise ValueError unless a parameter is a number within bounds.

    Parameters
    ----------
    name : str
        Name of the parameter.

    value : object
        Its value.

    low, high : float
        Bounds, which are allowed themselves.
    """
    if (
        isinstance(value, bool)
        or not isinstance(value, Real)
        or not low <= value <= high
    ):
        raise ValueError(f"{name}={value!r} must be a number from {low} to {high}.")


def check_device(device):
    """Raise ValueError unless torch can compute there.

    Parameters
    ----------
    device : str
        The parameter.
    """
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
