"""The map-style data set of most cases: so many items, each made by a function of its number."""

import numpy as np
import torch
from costs import compute_natively, wait
from torch.utils.data import Dataset


class Items(Dataset):
    """`make(number)` is what a user would write into __getitem__."""

    def __init__(self, count, make):
        self._count, self._make = count, make

    def __len__(self):
        return self._count

    def __getitem__(self, number):
        return self._make(number)


def ready(_number):
    """A picture that lies in memory."""
    return torch.zeros(3, 64, 64)


def remote(ms):
    """Pictures that take so long to arrive; any number can be under way at once."""

    def fetch(_number):
        wait(ms)
        return torch.zeros(3, 64, 64)

    return fetch


def augmented(ms):
    """Pictures that cost so much CPU time."""

    def augment(_number):
        compute_natively(ms)
        return torch.zeros(3, 64, 64)

    return augment


def thumbnails(ms):
    """The same, but small numpy arrays: where all cores compute, handing over a shared tensor takes long by itself."""

    def shrink(_number):
        compute_natively(ms)
        return np.zeros((3, 16, 16), np.float32)

    return shrink
