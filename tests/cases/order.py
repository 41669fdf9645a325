"""The order of delivery, and who delivers what."""

import torch
from costs import wait
from items import Items, ready, remote
from loop import train
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


def bursts_of_batches(bad):
    """Three workers finish together, so batches come in threes with a long wait between; a deep prefetch changes nothing.

    good: the items are near, and the same workers keep up.
    """
    loader = DataLoader(
        Items(12 * (84 if bad else 100), remote(30 if bad else 2.5)), batch_size=12, num_workers=3, prefetch_factor=6
    )
    return train(loader, step_ms=45)


def late_sample(bad):
    """One sample in 150 takes most of a second, and finished batches wait behind its batch because order is kept.

    good: batches are delivered as they are finished.
    """

    def uneven(number):
        wait(850 if number % 150 == 40 else 2)
        return ready(number)

    return train(DataLoader(Items(10 * 105, uneven), batch_size=10, num_workers=4, in_order=bad), step_ms=45)


class _NumberedStream(IterableDataset):
    """Numbers as they come from a socket; `divided` among the workers, or all of them to each."""

    def __init__(self, count, divided):
        self._count, self._divided = count, divided

    def __iter__(self):
        worker = get_worker_info()
        first, stride = (worker.id, worker.num_workers) if self._divided else (0, 1)
        for number in range(first, self._count, stride):
            wait(1)
            yield torch.full((3, 32, 32), float(number))


def stream_in_every_worker(bad):
    """Each of three workers delivers the whole stream, so every sample is trained on three times.

    good: the workers divide the stream among them.
    """
    stream = _NumberedStream(16 * 36 if bad else 16 * 108, divided=not bad)
    return train(DataLoader(stream, batch_size=16, num_workers=3), step_ms=45)
