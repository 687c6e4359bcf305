"""Batches of labelled and unlabelled public rows side by side."""

import torch
from torch.utils.data import Dataset

__all__ = ["PairedBatches", "PublicRows"]

# Small data give few batches a pass, and a network needs some steps all the same.
MIN_BATCHES = 20


class PublicRows(Dataset):
    """Scaled public rows and what is known of their classes.

    Parameters
    ----------
    inputs : Tensor of float32 of shape (n_rows, *input_shape)
        All rows.

    targets : Tensor of float32 of shape (n_rows, n_classes)
        Distributions over classes, zeros for an unlabelled row.
    """

    def __init__(self, inputs, targets):
        self.inputs = inputs
        self.targets = targets
        self.labeled = torch.nonzero(targets.sum(dim=1)).flatten()

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        return self.inputs[index], self.targets[index]


class PairedBatches:
    """Batches (labelled inputs, their targets, inputs of any rows) for one epoch.

    An epoch is a pass over all rows in random order, or several until there were 20
    batches. Labelled rows come round as often as needed.

    Parameters
    ----------
    rows : PublicRows
        All rows.

    batch_size : int
        Number of rows of any kind in a batch; all rows if there are fewer.

    labeled_batch_size : int
        Number of labelled rows in a batch.
    """

    def __init__(self, rows, batch_size, labeled_batch_size):
        self.rows = rows
        self.batch_size = min(batch_size, len(rows))
        self.labeled_batch_size = labeled_batch_size

    def __len__(self):
        return max(len(self.rows) // self.batch_size, MIN_BATCHES)

    def __iter__(self):
        inputs, targets = self.rows.inputs, self.rows.targets
        unlabeled = _in_turns(torch.arange(len(self.rows)), self.batch_size)
        labeled = _in_turns(self.rows.labeled, self.labeled_batch_size)
        for _ in range(len(self)):
            known = next(labeled)
            yield inputs[known], targets[known], inputs[next(unlabeled)]


def _in_turns(indices, size):
    """Deal out indices for ever, each once a round, in batches of equal size."""
    waiting = indices[:0]
    while True:
        while len(waiting) < size:
            waiting = torch.cat([waiting, indices[torch.randperm(len(indices))]])
        yield waiting[:size]
        waiting = waiting[size:]
