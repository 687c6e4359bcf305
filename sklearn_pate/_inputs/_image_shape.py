"""Shape and layout of the inputs of estimators that take rows or images."""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_pate.accounting._counted import counted
from sklearn_pate.exceptions import PublicDataWarning, warn_user

__all__ = ["channels_first", "read_input_shape"]

# Numbers of channels of grey, coloured and transparent images.
_CHANNELS = (1, 3, 4)


def read_input_shape(image_shape: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return (n_features,), or (channels, height, width), for an array's shape.

    The last axis has the channels if there are 1, 3 or 4 and the first is larger than
    that. A layout that the sizes leave open is taken for channels first, with a warning
    unless `image_shape` is the shape of an image in an array of images.
    """
    n_features = prod(shape[1:])
    is_given = image_shape is not None and len(shape) > 2
    if image_shape is None:
        image_shape = shape[1:]
        if len(image_shape) == 1:
            return (n_features,)
    given = tuple(image_shape) if np.iterable(image_shape) else ()
    input_shape = (1, *given) if len(given) == 2 else given
    whole = all(
        isinstance(size, int | np.integer) and not isinstance(size, bool) and size > 0
        for size in given
    )
    if not whole or len(input_shape) != 3 or prod(input_shape) != n_features:
        raise ValueError(
            f"image_shape={image_shape!r} must be (height, width) or (channels, "
            f"height, width), with the {counted(n_features, 'value')} of each row of X."
        )
    first, height, width = input_shape
    if width in _CHANNELS and first > max(_CHANNELS):
        return width, first, height
    is_open = first in _CHANNELS and width in _CHANNELS
    if not is_given and (is_open or (first >= width and not first > width == height)):
        warn_user(
            f"Images of shape {input_shape} are read as {counted(first, 'channel')} of "
            f"{height} x {width} pixels. If the channels are last, move them: "
            "np.moveaxis(X, -1, 1), for X_public and new images, too.",
            PublicDataWarning,
        )
    return input_shape


def channels_first(
    X: NDArray[Any], layout: Any, input_shape: tuple[int, ...]
) -> NDArray[Any]:
    """Return rows as images of `input_shape`, which `layout` holds in either order.

    Without a layout, as for flat rows after a fit on images, the channels are first.
    """
    channels, *size = input_shape
    if layout is not None and tuple(layout) == (*size, channels) != input_shape:
        images = X.reshape(len(X), *layout)
        return np.ascontiguousarray(np.moveaxis(images, -1, 1))
    return X.reshape(len(X), *input_shape)
