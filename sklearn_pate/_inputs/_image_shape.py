"""Shape of the inputs of estimators that take rows or images."""

from math import prod
from typing import Any

__all__ = ["read_input_shape"]


def read_input_shape(image_shape: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return (n_features,), or (channels, height, width), for an array's shape."""
    n_features = prod(shape[1:])
    if image_shape is None:
        image_shape = shape[1:]
        if len(image_shape) == 1:
            return (n_features,)
    given = tuple(image_shape)
    input_shape = (1, *given) if len(given) == 2 else given
    if len(input_shape) != 3 or prod(input_shape) != n_features:
        raise ValueError(
            f"image_shape={image_shape!r} must be (height, width) or (channels, "
            f"height, width), with the {n_features} values of each row of X."
        )
    return input_shape
