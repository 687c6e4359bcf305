"""Pairs of batches of labelled and of any public rows."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

__all__ = ["PairedBatches", "PublicRows"]

# Fewest batches in an epoch, as few rows would give too few training steps.
MIN_BATCHES = 20


class PublicRows(Dataset):
    """Scaled public rows and targets, zeros for an unlabelled row.

    `inputs` have shape (n_rows, *input_shape), `targets` (n_rows, n_classes).
    """

    def __init__(self, inputs: Tensor, targets: Tensor) -> None:
        self.inputs = inputs
        self.targets = targets
        self.labeled = torch.nonzero(targets.sum(dim=1)).flatten()

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: Any) -> tuple[Tensor, Tensor]:
        return self.inputs[index], self.targets[index]


class PairedBatches:
    """Batches (labelled inputs, their targets, inputs of any rows) for one epoch.

    An epoch is a pass over all rows in random order, repeated until it has 20 batches.
    Labelled rows are repeated as often as needed.
    """

    def __init__(
        self, rows: PublicRows, batch_size: int, labeled_batch_size: int
    ) -> None:
        self.rows = rows
        self.batch_size = min(batch_size, len(rows))
        self.labeled_batch_size = labeled_batch_size

    def __len__(self) -> int:
        return max(len(self.rows) // self.batch_size, MIN_BATCHES)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        inputs, targets = self.rows.inputs, self.rows.targets
        unlabeled = _in_turns(torch.arange(len(self.rows)), self.batch_size)
        labeled = _in_turns(self.rows.labeled, self.labeled_batch_size)
        for _ in range(len(self)):
            known = next(labeled)
            yield inputs[known], targets[known], inputs[next(unlabeled)]


def _in_turns(indices: Tensor, size: int) -> Iterator[Tensor]:
    """Yield batches of indices without end, each index once per pass."""
    waiting = indices[:0]
    while True:
        while len(waiting) < size:
            waiting = torch.cat([waiting, indices[torch.randperm(len(indices))]])
        yield waiting[:size]
        waiting = waiting[size:]
