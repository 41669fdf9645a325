"""Time that passes before the first batch, of the run or of every epoch."""

import os

from costs import compute, wait
from items import Items, ready, remote
from loop import train
from machine import scratch_folder
from torch.utils.data import DataLoader


def workers_every_epoch(bad):
    """The workers, and the index that each of them parses first, are made anew for every epoch.

    good: they persist.
    """
    index = {}

    def look_up(number):
        if not index:
            compute(350)
            index["parsed"] = True
        return ready(number)

    loader = DataLoader(Items(12 * 16, look_up), batch_size=12, num_workers=2, persistent_workers=not bad)
    return train(loader, step_ms=48, epochs=7)


class _Annotated(Items):
    """Carries notes on every item: a great many small objects."""

    def __init__(self, count):
        super().__init__(count, ready)
        self.notes = {number: {"label": number % 10, "box": [number] * 4} for number in range(120_000)}


def pickled_dataset(bad):
    """Spawned workers get a data set of many small objects as a pickle, one worker after the other.

    good: forked workers find it in their memory.
    """
    context = "spawn" if bad else "fork"
    return train(DataLoader(_Annotated(10 * 85), batch_size=10, num_workers=2, multiprocessing_context=context), step_ms=48)


def imports_in_every_worker(bad):
    """Spawned workers import everything again, and one module works for more than a second when it is imported.

    good: forked workers have what the training process imported before.
    """
    import vocabulary

    items = Items(10 * 85, vocabulary.encode)
    context = "spawn" if bad else "fork"
    return train(DataLoader(items, batch_size=10, num_workers=2, multiprocessing_context=context), step_ms=48)


def large_batches_short_epochs(bad):
    """An epoch is one batch a worker, and its first batch takes as long as all its items, however many workers there are.

    good: small batches, the first of which is soon there.
    """
    loader = DataLoader(Items(576, remote(7)), batch_size=96 if bad else 8, num_workers=6)
    return train(loader, step_ms=40, epochs=8 if bad else 2)


def file_by_file_index(bad):
    """Before the first step the data set looks at each of thousands of files, on a drive where a look takes half a millisecond.

    good: it takes the names from one listing.
    """
    folder = scratch_folder()
    for number in range(5000):
        (folder / str(number)).touch()
    names = []
    for entry in os.scandir(folder):
        if bad:
            entry.stat()
            wait(0.6)
        names.append(entry.name)
    return train(DataLoader(Items(12 * 95, ready), batch_size=12, num_workers=2), step_ms=48)
