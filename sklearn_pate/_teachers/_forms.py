"""Forms of what a teacher sends: votes, score functions, class probabilities."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert

from sklearn_pate._estimators._class_codes import (
    RelabeledClassifier,
    in_all_classes,
    read_codes,
    soften_probabilities,
)
from sklearn_pate._votes._sums import STEPS, SoftVoteLayout
from sklearn_pate.accounting._value_checks import counted

Contribution: TypeAlias = NDArray[Any] | tuple[NDArray[Any] | None, ...]

# Largest probability, with round-off in half precision.
_LARGEST = 1.001


class Form(Protocol):
    """Form of a teacher's contribution."""

    @property
    def n_classes(self) -> int:
        """Number of classes."""

    def read(self, teacher: Any, X_public: Any) -> Contribution:
        """Return the contribution of a teacher, which may modify these rows."""

    def constant(self, code: int, n_public: int) -> Contribution:
        """Return the contribution of a teacher of a single class."""


@dataclass(frozen=True)
class VoteForm:
    """Votes: a class index for each public row, -1 for an abstention."""

    n_classes: int

    def read(self, teacher: Any, X_public: Any) -> NDArray[np.signedinteger]:
        """Return the predictions of a fitted teacher; invalid ones are abstentions."""
        codes = read_codes(teacher.predict(X_public), X_public.shape[0], self.n_classes)
        return codes.astype(self._dtype)

    def constant(self, code: int, n_public: int) -> NDArray[np.signedinteger]:
        """Return votes for one class."""
        return np.full(n_public, code, dtype=self._dtype)

    @property
    def _dtype(self) -> np.dtype[Any]:
        # Signed, for -1 .. n_classes - 1.
        return np.min_scalar_type(-self.n_classes)


@dataclass(frozen=True)
class ScoreForm:
    """Coefficients of a teacher's score function in a public basis.

    The score function is p(x) - 1/K for class probabilities p. `basis` has its
    functions at public rows, shape (n_public, n_coordinates), with basis' basis /
    n_public = I.
    """

    n_classes: int
    basis: NDArray[np.float64]

    def read(self, teacher: Any, X_public: Any) -> NDArray[np.float64]:
        """Return coefficients of shape (n_coordinates, n_classes - 1)."""
        if not hasattr(teacher, "predict_proba"):
            codes = read_codes(
                teacher.predict(X_public), len(self.basis), self.n_classes
            )
            # A row without a class index has no scores.
            return self._project(self._one_hot(codes), codes >= 0)
        probabilities = _class_probabilities(
            teacher,
            X_public,
            self.n_classes,
            lambda values: bool(np.all(np.isfinite(values))),
            "not finite",
        )
        return self._project(probabilities.astype(np.float64))

    def constant(self, code: int, n_public: int) -> NDArray[np.float64]:
        """Return the coefficients of a teacher of a single class."""
        return self._project(self._one_hot(np.full(n_public, code)))

    def _one_hot(self, codes: NDArray[np.intp]) -> NDArray[np.float64]:
        return (codes[:, np.newaxis] == np.arange(self.n_classes)).astype(np.float64)

    def _project(
        self, probabilities: NDArray[Any], known: NDArray[np.bool_] | bool = True
    ) -> NDArray[np.float64]:
        scores = (probabilities - 1 / self.n_classes) * np.reshape(known, (-1, 1))
        return self.basis.T @ scores @ helmert(self.n_classes).T / len(self.basis)


@dataclass(frozen=True)
class SoftVoteForm:
    """Soft votes: a clipped vector about public batches.

    The vector is sensitive. Its length is bounded for any teacher, so that the sum over
    teachers can be released with noise (:class:`~sklearn_pate.mechanisms.NoisySum`).
    `batch_of_row` is -1 for a row in no batch, and is made of public rows alone.
    `clipping_bound` is the L2 norm that the values of a batch are scaled down to, in
    probabilities; noise is in units of it. Softening by `temperature`, and weights by
    the teacher's confidence if `weighted`, come before the clipping.

    For a batch, the mean over its rows of the softened probabilities (Sun et al. 2019,
    Section 2.2), each multiplied by the confidence if `weighted` (Section 3.2). The sum
    of the weights need not be sent: the values of a batch add up to it.

    For the hint, the mean over each batch of the teacher's hidden representation,
    centred by the mean over all batches; the cosines between batches, and zero
    instead of negative ones; all scaled to the norm that the layout allows. It needs no
    correspondence between the hidden layers of teachers.

    All numbers are rounded down to multiples of 1/1024 of the bound. The squared norm
    of the result is a whole number, at most that of the vector before, which floating
    point puts above the bound's by less than one part in 10^12: it is within the bound.
    """

    layout: SoftVoteLayout
    batch_of_row: NDArray[np.intp]
    temperature: float
    clipping_bound: float
    weighted: bool

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.layout.n_classes

    def read(self, teacher: Any, X_public: Any) -> NDArray[np.int32]:
        """Return the soft votes of a fitted teacher."""
        has_hint = self.layout.n_hint_parts > 0
        return self.of_outputs(
            *read_outputs(
                teacher, X_public, self.n_classes, with_representation=has_hint
            )
        )

    def constant(self, code: int, n_public: int) -> NDArray[np.int32]:
        """Return the soft votes of a teacher of a single class, without a hint."""
        probabilities = np.zeros((n_public, self.n_classes), dtype=np.float32)
        probabilities[:, code] = 1
        return self.of_outputs(probabilities, probabilities)

    def of_outputs(
        self, probabilities: NDArray[Any], representation: NDArray[Any] | None
    ) -> NDArray[np.int32]:
        """Turn a teacher's outputs into a vector of shape (1, layout.size)."""
        probabilities = np.asarray(probabilities, dtype=np.float64)
        values = soften_probabilities(probabilities, self.temperature)
        if self.weighted:
            values *= probabilities.max(axis=1, keepdims=True)
        means = self._batch_means(values)
        norms = np.linalg.norm(means, axis=1, keepdims=True)
        clipped = means / np.maximum(norms, self.clipping_bound)
        parts = [np.floor(clipped * STEPS).ravel()]
        if self.layout.n_hint_parts:
            means = self._batch_means(np.asarray(representation, dtype=np.float64))
            parts.append(_hint(means, np.sqrt(self.layout.n_hint_parts)))
        return np.concatenate(parts).astype(np.int32)[np.newaxis]

    def _batch_means(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        rows = np.flatnonzero(self.batch_of_row >= 0)
        batches = self.batch_of_row[rows]
        sums = np.zeros((self.layout.n_batches, values.shape[1]))
        np.add.at(sums, batches, values[rows])
        sizes = np.bincount(batches, minlength=self.layout.n_batches)
        return sums / np.maximum(sizes, 1)[:, np.newaxis]


def read_outputs(
    teacher: Any, X_public: Any, n_classes: int, *, with_representation: bool
) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
    """Return a teacher's class probabilities, and its hidden representation of rows.

    They are unclipped and sensitive: no mechanism releases them (Sun et al. 2019,
    Section 2.2). The representation, of shape (n_public, n_hidden), is the input of the
    last linear layer of a network; for any other teacher, its probabilities.
    """
    probabilities = _class_probabilities(
        teacher, X_public, n_classes, _are_probabilities, "no probabilities"
    ).astype(np.float32)
    if not with_representation:
        return probabilities, None
    representation = _representation(teacher, X_public, probabilities)
    if not np.all(np.isfinite(representation)):
        raise ValueError("the hidden representation is not finite")
    return probabilities, representation


def _class_probabilities(
    teacher: Any,
    X_public: Any,
    n_classes: int,
    are_valid: Callable[[NDArray[Any]], bool],
    otherwise: str,
) -> NDArray[Any]:
    """Return what `predict_proba` predicts, with a column for each class."""
    predicted = np.asarray(teacher.predict_proba(X_public))
    probabilities = in_all_classes(predicted, teacher, n_classes, absent=0.0)
    shape = X_public.shape[0], n_classes
    if probabilities.shape != shape or not are_valid(probabilities):
        raise ValueError(
            f"predict_proba returned shape {probabilities.shape} for "
            f"{counted(shape[0], 'row')} and {shape[1]} classes, or values that are "
            f"{otherwise}"
        )
    return probabilities


def _are_probabilities(values: NDArray[Any]) -> bool:
    # They need not add up to 1, as vectors are clipped.
    is_float = values.dtype.kind == "f"
    return is_float and bool(np.all((values >= 0) & (values <= _LARGEST)))


def _hint(means: NDArray[np.float64], norm: float) -> NDArray[np.float64]:
    """Return the similarity of each pair of batches, in units of the norm / STEPS."""
    centred = means - means.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    # Batches at the mean, up to round-off, are similar to no other.
    negligible = 1e-9 * max(np.linalg.norm(means, axis=1).max(), 1e-300)
    directions = np.where(lengths > negligible, centred, 0) / np.maximum(
        lengths, negligible
    )
    pairs = (directions @ directions.T)[np.triu_indices(len(means), 1)].clip(min=0)
    total = np.linalg.norm(pairs)
    if total == 0:
        return pairs
    return np.floor(pairs * (norm / total) * STEPS)


def _representation(
    teacher: Any, X_public: Any, probabilities: NDArray[np.float32]
) -> NDArray[Any]:
    """Return a network's hidden representation of rows, else the probabilities."""
    steps = getattr(teacher, "steps", None)
    if steps is not None:  # a Pipeline
        if len(steps) > 1:
            X_public = teacher[:-1].transform(X_public)
        teacher = steps[-1][1]
    if isinstance(teacher, RelabeledClassifier):
        return _representation(teacher.estimator_, X_public, probabilities)
    if not hasattr(teacher, "module_"):
        return probabilities
    import torch  # optional

    from sklearn_pate._estimators._hidden_layer import hidden_representation

    inputs = torch.as_tensor(np.asarray(X_public))
    return hidden_representation(teacher.module_, inputs).numpy().astype(np.float32)
