"""Datasets and functions as users write them, in a module that spawned workers can import."""

import random
import time

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset, default_collate, get_worker_info

MS = 1_000_000


def worker():
    info = get_worker_info()
    return -1 if info is None else info.id


def drawn(index):
    """Tells who made it, and draws from every random state."""
    return torch.tensor([index, worker()]), torch.rand(1), np.random.rand(), random.random()


class Items(Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, index):
        return drawn(index)


class AtOnce(Items):
    def __getitems__(self, indices):
        return [(*drawn(i), len(indices)) for i in indices]


class Named(Items):
    def __getitem__(self, index):
        return {"drawn": drawn(index), "name": f"number {index}", "nested": {"index": index}}


class Stream(IterableDataset):
    """Each worker makes its share. Its length is a guess, and too low."""

    def __init__(self, n=11):
        self.n = n

    def __len__(self):
        return self.n // 3

    def __iter__(self):
        info = get_worker_info()
        yield from map(drawn, range(*((0, self.n) if info is None else (info.id, self.n, info.num_workers))))


class Initialised(Items):
    """Tells what `worker_init_fn` did, and whether it is the object that the user gave."""

    calls, greeting = 0, ""

    def __getitem__(self, index):
        return index, worker(), self.calls, self.greeting, get_worker_info().dataset is self, type(self) is Initialised


def greet(greeting, worker_id):
    dataset = get_worker_info().dataset
    dataset.calls += 1
    dataset.greeting = f"{greeting} {worker_id} {torch.rand(1).item()}"


def hello(worker_id):
    greet("hello", worker_id)


class Batch:
    """Of a class of the user's."""

    def __init__(self, samples):
        self.columns, self.made_by = default_collate(samples), worker()


class Uneven:
    """A batch sampler."""

    def __iter__(self):
        yield from ([3, 1], [2], [], [0, 4, 5, 9], [random.randrange(10)])

    def __len__(self):
        return 5


class Resumable:
    """A sampler that can tell how far it is."""

    drawn = 0

    def __iter__(self):
        for self.drawn in range(10):
            yield self.drawn

    def __len__(self):
        return 10

    def state_dict(self):
        return {"drawn": self.drawn}


def spin(ms):
    until = time.thread_time_ns() + ms * MS
    while time.thread_time_ns() < until:
        pass


def slow_collate(samples):
    spin(20)
    return samples


class Busy(Items):
    """Two batches that take known time."""

    def __init__(self, sleep_ms, spin_ms):
        self.sleep_ms, self.spin_ms = sleep_ms, spin_ms

    def __len__(self):
        return 2

    def __getitem__(self, index):
        time.sleep(self.sleep_ms / 1e3)
        spin(self.spin_ms)
        return (index,)


# What goes wrong


class OwnError(Exception):
    pass


def fail(*_):
    raise OwnError("of the user's own making")


def fail_later(index):
    if index >= 4:
        fail()
    return index


class BadItems(Items):
    def __getitem__(self, index):
        return fail_later(index)


class Uncollatable(Items):
    def __getitem__(self, index):
        return object() if index >= 4 else index


class BadItemsAtOnce(BadItems):
    def __getitems__(self, indices):
        return [fail_later(index) for index in indices]


class NoStream(IterableDataset):
    def __iter__(self):
        fail()


class BadStream(IterableDataset):
    def __iter__(self):
        yield from map(fail_later, range(10))


class BadSampler:
    def __iter__(self):
        yield from map(fail_later, range(10))

    def __len__(self):
        return 10


class NoSampler:
    def __iter__(self):
        fail()

    def __len__(self):
        return 10


def bad_collate(samples):
    return fail_later(max(int(sample[0][0]) for sample in samples))
