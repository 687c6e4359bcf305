"""A released hint: which groups of public rows are alike to the teachers."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from sklearn_pate._estimators._hidden_layer import hidden_layer, hidden_of_batch
from sklearn_pate._inputs._checks import check_count, check_number
from sklearn_pate.students.networks._network_training import SemiSupervisedNet
from sklearn_pate.students.networks._public_batches import PublicRows

__all__ = ["RelationalHint"]


@dataclass(frozen=True, eq=False)
class RelationalHint:
    """How alike groups of public rows are in the hidden layers of the teachers.

    A network learns it before its first label. All in it was released or is public, so
    that learning it costs no privacy, however long it takes.

    Parameters
    ----------
    group_of_row : ndarray of int of shape (n_public,)
        The group of each public row; -1 for none. Made of public rows alone.

    similarities : ndarray of shape (n_groups, n_groups)
        Released similarity of each pair of groups: symmetric, noisy, perhaps negative,
        in any unit. The diagonal says nothing, and is set to 0. Without the noise, it
        and whoever learns it would be as sensitive as the teachers.

    max_epochs : int
        Number of passes over the rows that are in a group; on few rows, a pass is
        repeated until it has 20 batches.

    batch_size : int, default=128
        Number of rows that are compared with each other.

    lr : float, default=0.003
        Learning rate at the start; it decays to zero along a cosine.

    Raises
    ------
    ValueError
        If `similarities` is not square or holds NaN or infinity, a group is not in it,
        or another parameter is out of range.

    Notes
    -----
    Sun, Zhou, Wang, Li, Socher, Yu, Xiong (2019), "Private deep learning with teacher
    ensembles", where the hint is the output of a hidden layer. Hidden layers of several
    teachers have no axes in common, but which rows are alike in them can be compared,
    as in Tung, Mori (2019), "Similarity-preserving knowledge distillation".

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_pate.students import ConvSmall, FixMatchClassifier, RelationalHint
    >>> X = np.random.RandomState(0).normal(size=(40, 5))  # 40 public rows
    >>> released = np.array([[12, 9, 1], [9, 11, -2], [1, -2, 13]])
    >>> hint = RelationalHint(np.arange(40) % 3, released, max_epochs=1)
    >>> hint.similarities
    array([[ 0.,  9.,  1.],
           [ 9.,  0., -2.],
           [ 1., -2.,  0.]])
    >>> y = np.array([0, 1] + 38 * [-1])  # two answers
    >>> student = FixMatchClassifier(ConvSmall(), max_epochs=1, random_state=0)
    >>> student.fit(X, y, hint=hint).predict_proba(X).shape
    (40, 2)
    """

    group_of_row: NDArray[np.intp]
    similarities: NDArray[np.floating]
    max_epochs: int
    batch_size: int = 128
    lr: float = 3e-3

    def __post_init__(self):
        similarities = np.array(self.similarities, dtype=np.float64)
        if similarities.ndim != 2 or len(similarities) != similarities.shape[1]:
            raise ValueError(
                f"similarities has shape {similarities.shape}; pass a row and a column "
                "for each group."
            )
        if not np.all(np.isfinite(similarities)):
            raise ValueError(
                "similarities holds NaN or infinity; pass 0 where nothing is known."
            )
        groups = np.asarray(self.group_of_row)
        if np.any(groups >= len(similarities)):
            raise ValueError(
                f"group_of_row names group {groups.max()} and similarities has "
                f"{len(similarities)} groups; number them from 0."
            )
        check_count("max_epochs", self.max_epochs)
        check_count("batch_size", self.batch_size)
        check_number("lr", self.lr, 0, 1)
        np.fill_diagonal(similarities, 0)
        object.__setattr__(self, "similarities", similarities)
        object.__setattr__(self, "group_of_row", groups)

    def teach(self, module: Any, inputs: Any, device: Any) -> Any:
        """Train all of a network below its last linear layer.

        Parameters
        ----------
        module : torch.nn.Module
            From a batch of inputs to logits. It is changed.

        inputs : Tensor of shape (n_public, ...)
            All public rows.

        device : str or torch.device
            Where to train.

        Returns
        -------
        module : torch.nn.Module
            The same one. It is as it was if the hint tells no two of its groups from
            the others, as one of zeros, or of a single group.

        Raises
        ------
        ValueError
            If the module has no linear layer, or the hint is about another number of
            rows.
        """
        hidden_layer(module)  # or an error, whatever the noise made of the hint
        if len(inputs) != len(self.group_of_row):
            raise ValueError(
                f"hint is about {len(self.group_of_row)} rows and X has {len(inputs)}; "
                "pass the rows that it was made for."
            )
        rows = np.flatnonzero(self.group_of_row >= 0)
        present, groups = np.unique(self.group_of_row[rows], return_inverse=True)
        similarities = self.similarities[np.ix_(present, present)]
        if not similarities.any():
            return module
        batch_size = min(self.batch_size, len(rows))
        net = HintNet(
            module,
            similarities=torch.tensor(similarities, dtype=torch.float32),
            max_epochs=self.max_epochs,
            batch_size=batch_size,
            labeled_batch_size=batch_size,
            lr=self.lr,
            device=device,
            verbose=0,
        )
        one_hot = functional.one_hot(torch.from_numpy(groups)).float()
        return net.fit(PublicRows(inputs[rows], one_hot)).module_


class HintNet(SemiSupervisedNet):
    """Training by :class:`RelationalHint`: the label of a row is its group.

    Parameters
    ----------
    module : torch.nn.Module
        From a batch of inputs to logits.

    similarities : Tensor of shape (n_groups, n_groups)
        Released.

    **parameters : dict
        As for :class:`SemiSupervisedNet`.
    """

    def __init__(self, module, *, similarities, **parameters):
        super().__init__(module, **parameters)
        self.similarities = similarities

    def batch_loss(self, labeled, targets, unlabeled):
        """Compute the loss of one batch.

        Parameters
        ----------
        labeled : Tensor of shape (n_labeled, ...)
            Inputs.

        targets : Tensor of shape (n_labeled, n_groups)
            1 for the group of each row, 0 elsewhere.

        unlabeled : Tensor of shape (n_unlabeled, ...)
            Not used: every row has a group.

        Returns
        -------
        loss : Tensor
            A number.
        """
        hidden = hidden_of_batch(self.module_, labeled)
        wanted = targets @ self.similarities.to(self.device) @ targets.T
        return disagreement(hidden, wanted, targets @ targets.T == 0)


def alike(hidden):
    """Compute how alike the rows of a batch are.

    Parameters
    ----------
    hidden : Tensor of shape (n_rows, n_hidden)
        Hidden representations.

    Returns
    -------
    similarities : Tensor of shape (n_rows, n_rows)
        The cosine between them as seen from their mean, or 0 where that is negative.
    """
    directions = functional.normalize(hidden - hidden.mean(dim=0))
    return (directions @ directions.T).relu()


def disagreement(hidden, wanted, counted):
    """Compute 1 - <S, T> / (|S| |T|), S being what is alike in a batch.

    Parameters
    ----------
    hidden : Tensor of shape (n_rows, n_hidden)
        Hidden representations; S is how :func:`alike` they are.

    wanted : Tensor of shape (n_rows, n_rows)
        T.

    counted : Tensor of bool of shape (n_rows, n_rows)
        Pairs to sum over: nothing was released about two rows of one group.

    Returns
    -------
    loss : Tensor
        A number; 0 where S or T is zero, as then there is nothing to agree on.

    Notes
    -----
    Cristianini, Shawe-Taylor, Elisseeff, Kandola (2001), "On kernel-target alignment",
    definition 1. The scale of noisy similarities does not matter to it.
    """
    found = alike(hidden) * counted
    wanted = wanted * counted
    scale = found.norm() * wanted.norm()
    return (scale > 0).float() - (found * wanted).sum() / scale.clamp_min(1e-12)
