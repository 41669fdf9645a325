"""What it costs to bring a batch from a worker to the training process."""

import numpy as np
import torch
from items import Items
from loop import train
from torch.utils.data import DataLoader


def _as_they_are(samples):
    return samples


def _as_one_tensor(samples):
    return torch.from_numpy(np.stack(samples))


def pickled_arrays(bad):
    """A batch is a list of numpy arrays, so 13 MB of it are pickled through a pipe.

    good: the same numbers as one tensor, which goes through shared memory.
    """
    frame = np.random.default_rng(0).random(170_000)
    items = Items(10 * 90, lambda _number: frame.copy())
    collate = _as_they_are if bad else _as_one_tensor
    return train(DataLoader(items, batch_size=10, num_workers=2, collate_fn=collate), step_ms=48)


def needless_workers(bad):
    """The items lie in memory, and two workers hand over sixty small tensors a batch, which costs more than fetching them.

    good: no workers.
    """
    sequences = [torch.randn(16 + number % 40, 8) for number in range(800)]
    items = Items(60 * 200, lambda number: sequences[number % len(sequences)])
    return train(DataLoader(items, batch_size=60, num_workers=2 if bad else 0, collate_fn=_as_they_are), step_ms=20)
