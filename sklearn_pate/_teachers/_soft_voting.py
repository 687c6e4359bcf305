"""What a teacher says of groups of public rows: softened, clipped, in whole numbers."""

from dataclasses import dataclass

import numpy as np

from sklearn_pate._estimators._class_codes import ContiguousClasses, in_all_classes
from sklearn_pate._votes._soft_votes import STEPS, SoftVoteLayout

__all__ = ["OutputsForm", "SoftVoteForm"]

# A probability, but for round-off in half precision.
_LARGEST = 1.001


@dataclass(frozen=True)
class OutputsForm:
    """What a teacher is asked for: its outputs on public rows, as they are.

    They are sensitive, and no mechanism releases them: :class:`SoftVoteForm` clips them
    first.

    Parameters
    ----------
    n_classes : int
        Number of classes.

    with_representation : bool
        Whether its hidden representation is asked for, too.

    Notes
    -----
    Sun et al. 2019, Section 2.2: predictions, and the outputs of a hidden layer as a
    hint.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn_pate._teachers import OutputsForm
    >>> teacher = LogisticRegression().fit([[-1.0], [1.0]], [0, 2])
    >>> form = OutputsForm(n_classes=3, with_representation=False)
    >>> probabilities, _ = form.read(teacher, np.array([[0.0], [9.0]]))
    >>> probabilities[0]  # class 1 was not in its shard
    array([0.5, 0. , 0.5], dtype=float32)
    """

    n_classes: int
    with_representation: bool

    def read(self, teacher, X_public):
        """Ask a fitted teacher.

        Parameters
        ----------
        teacher : classifier
            Fitted on class indices.

        X_public : {ndarray, sparse matrix, dataframe} of shape (n_public, n_features)
            Public rows, for this teacher to do with as it likes.

        Returns
        -------
        probabilities : ndarray of float32 of shape (n_public, n_classes)
            Of all classes.

        representation : ndarray of float32 of shape (n_public, n_hidden) or None
            What goes into the last linear layer of a network; for any other teacher,
            its probabilities.

        Raises
        ------
        ValueError
            If these are no probabilities.
        """
        probabilities = in_all_classes(
            np.asarray(teacher.predict_proba(X_public)),
            teacher,
            self.n_classes,
            absent=0.0,
        )
        shape = X_public.shape[0], self.n_classes
        if probabilities.shape != shape or not _are_probabilities(probabilities):
            raise ValueError(
                f"predict_proba returned shape {probabilities.shape} for {shape[0]} "
                f"rows and {shape[1]} classes, or values that are no probabilities"
            )
        probabilities = probabilities.astype(np.float32)
        if not self.with_representation:
            return probabilities, None
        representation = _representation(teacher, X_public, probabilities)
        if not np.all(np.isfinite(representation)):
            raise ValueError("the hidden representation is not finite")
        return probabilities, representation

    def constant(self, code, n_public):
        """Return what a teacher says that knows one class only.

        Parameters
        ----------
        code : int
            Index of the class.

        n_public : int
            Number of public rows.

        Returns
        -------
        probabilities : ndarray of float32 of shape (n_public, n_classes)
            All of that class.

        representation : ndarray or None
            The same: all rows are alike to this teacher.
        """
        probabilities = np.zeros((n_public, self.n_classes), dtype=np.float32)
        probabilities[:, code] = 1
        return probabilities, probabilities if self.with_representation else None


@dataclass(frozen=True)
class SoftVoteForm:
    """What a teacher is asked for: a clipped vector about groups of public rows.

    The vector is sensitive. It is short enough, whatever the teacher has seen, that the
    sum over teachers can be released with noise
    (:class:`~sklearn_pate.mechanisms.NoisySum`).

    Parameters
    ----------
    layout : SoftVoteLayout
        Where things are in the vector.

    group_of_row : ndarray of int of shape (n_public,)
        The group of each public row, -1 for none. Made of public rows alone.

    temperature : float
        Class probabilities are softened to p^(1/T), scaled to sum to 1. That is before
        the clipping, and costs no privacy.

    clipping_bound : float
        L2 norm that the values of a group are scaled down to, in probabilities. Noise
        is in multiples of it, so that it costs no privacy.

    weighted : bool
        Whether each row counts by the teacher's confidence, the probability of its
        likeliest class. That is before the clipping, too.

    Notes
    -----
    For a group of rows, the mean over them of the softened probabilities (Sun et al.
    2019, Section 2.2), each multiplied by the confidence if `weighted` (Section 3.2).
    The sum of the weights need not be sent: the values of a group add up to it.

    For the hint, the mean over each group of the teacher's hidden representation, from
    which the mean over all groups is taken; the cosines between groups, and zero
    instead of negative ones; all scaled to the norm that the layout allows. It needs no
    hidden layers that correspond to one another.

    Everything is rounded down to multiples of 1/1024 of the bound. The squared norm of
    the result is a whole number, at most that of the vector before, which floating
    point puts above the bound's by less than one part in 10^12: it is within the bound.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pate._votes._soft_votes import SoftVoteLayout
    >>> from sklearn_pate._teachers import SoftVoteForm
    >>> form = SoftVoteForm(
    ...     SoftVoteLayout(n_groups=2, n_classes=2),
    ...     group_of_row=np.array([0, 0, 1]),
    ...     temperature=1.0,
    ...     clipping_bound=0.5,
    ...     weighted=False,
    ... )
    >>> probabilities = np.array([[0.8, 0.2], [0.6, 0.4], [0.0, 1.0]])
    >>> vector = form.of_outputs(probabilities, None)  # in multiples of 0.5 / 1024
    >>> vector
    array([[ 941,  403,    0, 1024]], dtype=int32)
    """

    layout: SoftVoteLayout
    group_of_row: np.ndarray
    temperature: float
    clipping_bound: float
    weighted: bool

    @property
    def n_classes(self):
        """Number of classes."""
        return self.layout.n_classes

    @property
    def _outputs(self):
        return OutputsForm(self.n_classes, self.layout.n_hint_parts > 0)

    def read(self, teacher, X_public):
        """Ask a fitted teacher.

        Parameters
        ----------
        teacher : classifier
            Fitted on class indices.

        X_public : {ndarray, sparse matrix, dataframe} of shape (n_public, n_features)
            Public rows, for this teacher to do with as it likes.

        Returns
        -------
        vector : ndarray of int32 of shape (1, layout.size)
            Within the bounds of the layout.
        """
        return self.of_outputs(*self._outputs.read(teacher, X_public))

    def constant(self, code, n_public):
        """Return what a teacher says that knows one class only.

        Parameters
        ----------
        code : int
            Index of the class.

        n_public : int
            Number of public rows.

        Returns
        -------
        vector : ndarray of int32 of shape (1, layout.size)
            That class, and no hint.
        """
        return self.of_outputs(*self._outputs.constant(code, n_public))

    def of_outputs(self, probabilities, representation):
        """Make a vector of a teacher's outputs.

        Parameters
        ----------
        probabilities : ndarray of shape (n_public, n_classes)
            Of all classes.

        representation : ndarray of shape (n_public, n_hidden) or None
            Only read if the layout has a hint.

        Returns
        -------
        vector : ndarray of int32 of shape (1, layout.size)
            Within the bounds of the layout.
        """
        probabilities = np.asarray(probabilities, dtype=np.float64)
        values = soften_probabilities(probabilities, self.temperature)
        if self.weighted:
            values *= probabilities.max(axis=1, keepdims=True)
        means = self._group_means(values)
        norms = np.linalg.norm(means, axis=1, keepdims=True)
        clipped = means / np.maximum(norms, self.clipping_bound)
        parts = [np.floor(clipped * STEPS).ravel()]
        if self.layout.n_hint_parts:
            means = self._group_means(np.asarray(representation, dtype=np.float64))
            parts.append(_hint(means, np.sqrt(self.layout.n_hint_parts)))
        return np.concatenate(parts).astype(np.int32)[np.newaxis]

    def _group_means(self, values):
        rows = np.flatnonzero(self.group_of_row >= 0)
        groups = self.group_of_row[rows]
        sums = np.zeros((self.layout.n_groups, values.shape[1]))
        np.add.at(sums, groups, values[rows])
        sizes = np.bincount(groups, minlength=self.layout.n_groups)
        return sums / np.maximum(sizes, 1)[:, np.newaxis]


def _are_probabilities(values):
    # They need not add up to 1: what is too long is clipped.
    return values.dtype.kind == "f" and np.all((values >= 0) & (values <= _LARGEST))


def soften_probabilities(probabilities, temperature):
    """Even out class probabilities.

    Parameters
    ----------
    probabilities : ndarray of float of shape (n_rows, n_classes)
        Not negative.

    temperature : float
        Positive; 1 changes nothing but the scale.

    Returns
    -------
    softened : ndarray of shape (n_rows, n_classes)
        The softmax of logits over T, p^(1/T) scaled to sum to 1; zeros where all were
        zero.
    """
    largest = probabilities.max(axis=1, keepdims=True)
    weights = (probabilities / np.where(largest > 0, largest, 1)) ** (1 / temperature)
    total = weights.sum(axis=1, keepdims=True)
    return weights / np.where(total > 0, total, 1)


def _hint(means, norm):
    """Return how alike groups are, in whole numbers, within a norm."""
    centred = means - means.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    # Groups that lie in the middle, but for round-off, are like no other.
    negligible = 1e-9 * max(np.linalg.norm(means, axis=1).max(), 1e-300)
    directions = np.where(lengths > negligible, centred, 0) / np.maximum(
        lengths, negligible
    )
    pairs = (directions @ directions.T)[np.triu_indices(len(means), 1)].clip(min=0)
    total = np.linalg.norm(pairs)
    if total == 0:
        return pairs
    return np.floor(pairs * (norm / total) * STEPS)


def _representation(teacher, X_public, probabilities):
    """Return what a network makes of rows before its last layer, if it is one."""
    steps = getattr(teacher, "steps", None)
    if steps is not None:  # a Pipeline
        if len(steps) > 1:
            X_public = teacher[:-1].transform(X_public)
        teacher = steps[-1][1]
    if isinstance(teacher, ContiguousClasses):
        return _representation(teacher.estimator_, X_public, probabilities)
    if not hasattr(teacher, "module_"):
        return probabilities
    import torch  # not earlier: not everybody has it

    from sklearn_pate._estimators._hidden_layer import hidden_representation

    inputs = torch.as_tensor(np.asarray(X_public))
    return hidden_representation(teacher.module_, inputs).numpy().astype(np.float32)
