"""Released hint on which clusters of public rows teachers find similar."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from sklearn_pate._estimators._hidden_layer import hidden_layer, hidden_of_batch
from sklearn_pate._inputs._checks import check_number
from sklearn_pate.accounting._counted import counted
from sklearn_pate.accounting._value_checks import check_count
from sklearn_pate.students.networks._network_training import SemiSupervisedNet
from sklearn_pate.students.networks._public_batches import PublicRows

__all__ = ["RelationalHint"]


@dataclass(frozen=True, eq=False)
class RelationalHint:
    """Similarities of clusters of public rows in the hidden layers of the teachers.

    A network learns them before the labels. They were released, and the clusters are
    public: learning them has no privacy cost.

    Parameters
    ----------
    cluster_of_row : ndarray of int of shape (n_public,)
        Cluster of each public row; -1 for none. It depends on public rows alone.

    similarities : ndarray of shape (n_clusters, n_clusters)
        Released similarity of each pair of clusters: symmetric, noisy, possibly
        negative, in any unit. The diagonal is not used, and is set to 0. Similarities
        without noise, and a network that learns them, would be as sensitive as the
        teachers.

    max_epochs : int
        Number of passes over the rows in clusters; on few rows, a pass is repeated
        until it has 20 batches.

    batch_size : int, default=128
        Number of rows in a batch, which are compared with each other.

    lr : float, default=0.003
        Learning rate at the start; it decays to zero along a cosine.

    Raises
    ------
    ValueError
        If `similarities` is not square or holds NaN or infinity, a cluster is not in
        it, or another parameter is out of range.

    Notes
    -----
    Sun, Zhou, Wang, Li, Socher, Yu, Xiong (2019), "Private deep learning with teacher
    ensembles", where the hint is the output of a hidden layer. Hidden layers of several
    teachers have no axes in common, but similarities of rows in them can be compared,
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

    cluster_of_row: NDArray[np.intp]
    similarities: NDArray[np.floating]
    max_epochs: int
    batch_size: int = 128
    lr: float = 3e-3

    def __post_init__(self) -> None:
        similarities = np.array(self.similarities, dtype=np.float64)
        if similarities.ndim != 2 or len(similarities) != similarities.shape[1]:
            raise ValueError(
                f"similarities has shape {similarities.shape}; pass a row and a column "
                "for each cluster."
            )
        if not np.all(np.isfinite(similarities)):
            raise ValueError(
                "similarities holds NaN or infinity; pass 0 for unknown ones."
            )
        clusters = np.asarray(self.cluster_of_row)
        if np.any(clusters >= len(similarities)):
            raise ValueError(
                f"cluster_of_row has cluster {clusters.max()} and similarities has "
                f"{counted(len(similarities), 'cluster')}; number them from 0."
            )
        check_count("max_epochs", self.max_epochs)
        check_count("batch_size", self.batch_size)
        check_number("lr", self.lr, 0, 1)
        np.fill_diagonal(similarities, 0)
        object.__setattr__(self, "similarities", similarities)
        object.__setattr__(self, "cluster_of_row", clusters)

    def teach(self, module: Any, inputs: Any, device: Any) -> Any:
        """Train all of a network below its last linear layer.

        Parameters
        ----------
        module : torch.nn.Module
            Network from a batch of inputs to logits; changed in place.

        inputs : Tensor of shape (n_public, ...)
            All public rows.

        device : str or torch.device
            Device of the training.

        Returns
        -------
        module : torch.nn.Module
            The same module, unchanged if all similarities are 0.

        Raises
        ------
        ValueError
            If the module has no linear layer, or the number of rows is not that of the
            hint.
        """
        hidden_layer(module)  # raises without one, also if the hint is all zeros
        if len(inputs) != len(self.cluster_of_row):
            raise ValueError(
                f"hint is about {counted(len(self.cluster_of_row), 'row')} and X has "
                f"{len(inputs)}; pass the rows of the hint."
            )
        rows = np.flatnonzero(self.cluster_of_row >= 0)
        present, clusters = np.unique(self.cluster_of_row[rows], return_inverse=True)
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
        one_hot = functional.one_hot(torch.from_numpy(clusters)).float()
        return net.fit(PublicRows(inputs[rows], one_hot)).module_


class HintNet(SemiSupervisedNet):
    """Training by :class:`RelationalHint`; the label of each row is its cluster."""

    def __init__(
        self, module: nn.Module, *, similarities: Tensor, **parameters: Any
    ) -> None:
        super().__init__(module, **parameters)
        self.similarities = similarities

    def batch_loss(self, labeled: Tensor, targets: Tensor, unlabeled: Tensor) -> Tensor:
        """Compute the loss of one batch; `targets` are one-hot clusters."""
        hidden = hidden_of_batch(self.module_, labeled)
        wanted = targets @ self.similarities.to(self.device) @ targets.T
        return disagreement(hidden, wanted, targets @ targets.T == 0)


def alike(hidden: Tensor) -> Tensor:
    """Compute cosines of hidden representations around their mean, 0 if negative."""
    directions = functional.normalize(hidden - hidden.mean(dim=0))
    return (directions @ directions.T).relu()


def disagreement(hidden: Tensor, wanted: Tensor, counted: Tensor) -> Tensor:
    """Compute 1 - <S, T> / (|S| |T|), where S are the similarities of a batch.

    Cristianini, Shawe-Taylor, Elisseeff, Kandola (2001), "On kernel-target alignment",
    definition 1, which does not depend on the scale of T (`wanted`). The sums are over
    the `counted` pairs, as nothing was released about two rows of one cluster. The loss
    is 0 where S or T is zero.
    """
    found = alike(hidden) * counted
    wanted = wanted * counted
    scale = found.norm() * wanted.norm()
    return (scale > 0).float() - (found * wanted).sum() / scale.clamp_min(1e-12)
