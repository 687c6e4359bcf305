"""Parameters and parties' outputs of PETDLClassifier, checked before any work."""

import math
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from sklearn_pate._base._parameters import as_teacher
from sklearn_pate._base._split_inputs import PublicInputs
from sklearn_pate._inputs._checks import check_count, check_number
from sklearn_pate.students._train_student import accepts_hints

__all__ = [
    "check_default_student",
    "check_petdl_parameters",
    "petdl_student",
    "read_outputs",
]

BATCHES = ("cluster", "random")


def petdl_student(petdl):
    """Return the student to be cloned.

    Parameters
    ----------
    petdl : PETDLClassifier
        Its parameters are read.

    Returns
    -------
    student : classifier
        A small network where no student is named.
    """
    if petdl.student is not None:
        return petdl.student
    from sklearn_pate.students import ConvSmall, FixMatchClassifier  # they import torch

    return FixMatchClassifier(
        ConvSmall(petdl.compression),
        image_shape=petdl.image_shape,
        augmentation=petdl.augmentation,
        max_epochs=petdl.distillation_epochs,
        batch_size=petdl.batch_size,
        labeled_batch_size=min(64, petdl.batch_size),
    )


def check_petdl_parameters(petdl):
    """Raise ValueError for the first parameter that cannot work, whatever the data.

    Parameters
    ----------
    petdl : PETDLClassifier
        Its parameters are read, not changed.
    """
    for name in ("batch_size", "distillation_epochs"):
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
                f"{name}={value!r} leaves nothing to learn; pass 1.0, say."
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
            f"estimator={teacher!r} has no predict_proba, and teachers send class "
            "probabilities; use another classifier, or PATEClassifier."
        )
    if petdl.hint_epochs and not accepts_hints(petdl_student(petdl)):
        raise ValueError(
            f"hint_epochs={petdl.hint_epochs!r} would pay for a hint that "
            f"{petdl.student!r} does not learn from; set hint_epochs=0, or use a "
            "student such as FixMatchClassifier()."
        )
    if petdl.clipping_bound > 1:
        raise ValueError(
            f"clipping_bound={petdl.clipping_bound!r} clips nothing, as probabilities "
            "are never longer than 1, and only adds noise; pass 1.0 or less."
        )


def check_default_student(petdl, X_public):
    """Raise for what the default student would not take, before it is paid for.

    Parameters
    ----------
    petdl : PETDLClassifier
        Its parameters are read.

    X_public : {ndarray, sparse matrix, dataframe} of shape (n_public, n_features)
        Public rows.

    Raises
    ------
    ValueError
        If `image_shape` is not that of the rows, `augmentation` cannot work, or the
        rows are no numbers.
    """
    if petdl.student is None:
        student = petdl_student(petdl)
        student._check_parameters()
        student._check_rows(X_public, reset=True)


def read_outputs(
    outputs: Iterable, public: PublicInputs
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Check the outputs that `fit_from_outputs` received, one by one.

    Parameters
    ----------
    outputs : iterable
        As in :meth:`PETDLClassifier.fit_from_outputs`.

    public : PublicInputs
        What they are about.

    Yields
    ------
    probabilities : ndarray of float32 of shape (n_public, n_classes)
        Of one party.

    representation : ndarray of float32 of shape (n_public, n_hidden)
        The probabilities where the party sent no other.
    """
    if not isinstance(outputs, Iterable):
        raise ValueError(
            f"outputs={outputs!r} must hold one array of class probabilities a party."
        )
    for party, output in enumerate(outputs):
        pair = output if isinstance(output, tuple) else (output, output)
        try:
            probabilities, representation = map(_as_float32, pair)
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"The outputs of party {party} are no array of numbers, nor a pair of "
                "such arrays; send what predict_proba returns."
            ) from error
        expected = public.n_public, len(public.classes)
        if probabilities.shape != expected:
            raise ValueError(
                f"The outputs of party {party} have shape {probabilities.shape}; "
                f"every party sends class probabilities of shape {expected}, a row for "
                "each public row and a column for each of the sorted classes."
            )
        if representation.ndim != 2 or len(representation) != public.n_public:
            raise ValueError(
                f"The representation of party {party} has shape "
                f"{representation.shape}; pass one row for each of the "
                f"{public.n_public} public rows."
            )
        if not (np.all(probabilities >= 0) and np.all(np.isfinite(probabilities))):
            raise ValueError(
                f"The outputs of party {party} are no probabilities; send what "
                "predict_proba returns."
            )
        if not np.all(np.isfinite(representation)):
            raise ValueError(
                f"The representation of party {party} holds NaN or infinity; send the "
                "class probabilities alone."
            )
        yield probabilities, representation


def _as_float32(values):
    # As teachers' outputs are; what is too large for it is found to be infinite.
    with np.errstate(over="ignore"):
        return np.asarray(values).astype(np.float32)
