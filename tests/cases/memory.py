"""Memory and descriptors: what grows, what is nearly full, and what only looks so."""

import numpy as np
import torch
from costs import wait
from items import Items, ready
from loop import StepClock, train
from machine import limit_descriptors, private_shared_memory
from torch.utils.data import DataLoader


def copied_key_list(bad):
    """Forked workers look up strings in a list of millions, and reading one already copies its page into the worker.

    good: one numpy array of the same strings, which is read without being written.
    """
    width = 60
    strings = [str(number).zfill(width) for number in range(1_800_000)]
    keys = strings if bad else np.array(strings, f"S{width}")
    if not bad:
        del strings

    def look_up(number):
        return torch.tensor([len(keys[number * 7_919 % len(keys)]), len(keys[number * 99_991 % len(keys)])])

    loader = DataLoader(Items(400 * 120, look_up), batch_size=400, num_workers=2, multiprocessing_context="fork")
    return train(loader, step_ms=48)


def narrow_shared_memory(bad):
    """/dev/shm holds hardly more than the batches that may be under way: a little more, and the run dies of a bus error.

    good: a /dev/shm of two GiB. Both need root, to mount one of their own.
    """
    private_shared_memory(mib=44 if bad else 2048)
    items = Items(7 * 90, lambda _number: torch.zeros(3, 224, 224))
    return train(DataLoader(items, batch_size=7, num_workers=4), step_ms=60)


def kept_batches(bad):
    """The loop keeps every batch, and with each a descriptor; 256 may be open.

    good: it keeps copies.
    """
    limit_descriptors(256)
    kept, clock = [], StepClock()
    for batch in clock.batches(DataLoader(Items(2 * 140, ready), batch_size=2, num_workers=1)):
        kept.append(batch if bad else batch.clone())
        wait(48)
    return clock.stop()


def one_table_for_all_workers(bad):
    """Eight workers read one gigabyte of the training process: each seems to have its own, and nothing is wrong.

    good: a small table and two workers, so that there is no sum to misread.
    """
    table = np.ones((2_200_000 if bad else 2_200, 60))
    items = Items(48 * 110, lambda number: torch.from_numpy(table[number * 7_919 % len(table)]))
    loader = DataLoader(items, batch_size=48, num_workers=8 if bad else 2, multiprocessing_context="fork")
    return train(loader, step_ms=48)
