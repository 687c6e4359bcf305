"""Warnings that point at the user's line."""

import contextlib
import functools
import os
import sys
import warnings
from types import FrameType

import joblib
import sklearn

__all__ = ["warn_user"]

_PACKAGES = (__file__, sklearn.__file__, joblib.__file__)
#: Folders and files whose code may run between the user's line and a warning.
_BETWEEN = (
    *(os.path.dirname(file) + os.sep for file in _PACKAGES),
    contextlib.__file__,
    functools.__file__,
)


def warn_user(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line outside this package, scikit-learn and joblib."""
    # From Python 3.12 on, skip_file_prefixes of warnings.warn does the same.
    frame: FrameType | None = sys._getframe()
    stacklevel = 1
    while frame is not None and frame.f_code.co_filename.startswith(_BETWEEN):
        frame = frame.f_back
        stacklevel += 1
    warnings.warn(message, category, stacklevel=stacklevel)
