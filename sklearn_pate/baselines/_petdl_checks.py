"""Checks of the parameters of PETDLClassifier, and of the outputs of parties."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sklearn_pate._base._parameters import as_teacher
from sklearn_pate._base._split_inputs import PublicInputs
from sklearn_pate._inputs._checks import check_number
from sklearn_pate.accounting._value_checks import check_count
from sklearn_pate.students._train_student import accepts_hints

__all__ = [
    "check_petdl_parameters",
    "petdl_student",
    "read_outputs",
]

BATCHES = ("cluster", "random")


def petdl_student(petdl: Any) -> Any:
    """Return the student of a PETDLClassifier, by default a small network."""
    if petdl.student is not None:
        return petdl.student
    from sklearn_pate.students import ConvSmall, FixMatchClassifier  # imports torch

    return FixMatchClassifier(
        ConvSmall(petdl.compression),
        image_shape=petdl.image_shape,
        augmentation=petdl.augmentation,
        max_epochs=petdl.distillation_epochs,
        batch_size=petdl.public_batch_size,
        labeled_batch_size=min(64, petdl.public_batch_size),
    )


def check_petdl_parameters(petdl: Any) -> None:
    """Raise ValueError for the first parameter of a PETDLClassifier that is invalid."""
    for name in ("public_batch_size", "distillation_epochs"):
        check_count(name, getattr(petdl, name))
    if petdl.hint_epochs != 0:
        check_count("hint_epochs", petdl.hint_epochs)
    check_number("hint_share", petdl.hint_share, 0, 1)
    if petdl.hint_share in (0, 1):
        raise ValueError(
            f"hint_share={petdl.hint_share!r} must lie between 0 and 1; for no hint, "
            "set hint_epochs=0."
        )
    for name in ("temperature", "clipping_bound", "core"):
        value = getattr(petdl, name)
        check_number(name, value, 0, 1 if name == "core" else math.inf)
        if value == 0 or math.isinf(value):
            raise ValueError(
                f"{name}={value!r} must be positive and finite, such as 1.0."
            )
    check_number("compression", petdl.compression, 1, math.inf)
    if not isinstance(petdl.weighted, bool | np.bool_):
        raise ValueError(f"weighted={petdl.weighted!r} must be True or False.")
    if petdl.batches not in BATCHES:
        raise ValueError(
            f"batches={petdl.batches!r} is unknown; use one of {[*BATCHES]}."
        )
    teacher = as_teacher(petdl.estimator)
    if not hasattr(teacher, "predict_proba"):
        raise ValueError(
            f"estimator={teacher!r} has no predict_proba, and teachers vote with "
            "class probabilities; use another classifier, or PATEClassifier."
        )
    if petdl.hint_epochs and not accepts_hints(petdl_student(petdl)):
        raise ValueError(
            f"hint_epochs={petdl.hint_epochs!r} releases a hint, which "
            f"{petdl.student!r} does not accept; set hint_epochs=0, or use a student "
            "such as FixMatchClassifier()."
        )
    if petdl.clipping_bound > 1:
        raise ValueError(
            f"clipping_bound={petdl.clipping_bound!r} only adds noise, as the norm of "
            "probabilities is at most 1; pass 1.0 or less."
        )


def read_outputs(
    outputs: Iterable, public: PublicInputs
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Check the outputs of parties one by one.

    Yields the probabilities of a party, of shape (n_public, n_classes), and its hidden
    representation, of shape (n_public, n_hidden), by default its probabilities.
    """
    if not isinstance(outputs, Iterable):
        raise ValueError(
            f"outputs={outputs!r} must hold an array of class probabilities per party."
        )
    for party, output in enumerate(outputs):
        pair = output if isinstance(output, tuple) else (output, output)
        try:
            probabilities, representation = map(_as_float32, pair)
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"The outputs of party {party} are neither an array of numbers nor a "
                "pair of such arrays; pass the result of predict_proba."
            ) from error
        expected = public.n_public, len(public.classes)
        if probabilities.shape != expected:
            raise ValueError(
                f"The outputs of party {party} have shape {probabilities.shape}; pass "
                f"class probabilities of shape {expected}, a row for each public row "
                "and a column for each of the sorted classes."
            )
        if representation.ndim != 2 or len(representation) != public.n_public:
            raise ValueError(
                f"The representation of party {party} has shape "
                f"{representation.shape}; pass one row for each of the "
                f"{public.n_public} public rows."
            )
        if not (np.all(probabilities >= 0) and np.all(np.isfinite(probabilities))):
            raise ValueError(
                f"The outputs of party {party} are not probabilities; pass the result "
                "of predict_proba."
            )
        if not np.all(np.isfinite(representation)):
            raise ValueError(
                f"The representation of party {party} holds NaN or infinity; pass the "
                "class probabilities only."
            )
        yield probabilities, representation


def _as_float32(values: Any) -> NDArray[np.float32]:
    """Convert to float32, the type of outputs of teachers; large values overflow."""
    with np.errstate(over="ignore"):
        return np.asarray(values).astype(np.float32)
