"""Who gets the cores: native threads, too many workers, limits of the job, and others."""

import os
import threading

import numpy as np
import torch
from costs import wait
from items import Items, augmented, thumbnails
from loop import StepClock, train
from machine import limit_cpu, set_blas_threads, start_stranger
from torch.utils.data import DataLoader


def _two_workers_that_keep_up(items=15 * 100):
    """The healthy loader of these cases: 54 ms of CPU a batch between two workers, for a step of 40 ms."""
    return DataLoader(Items(items, thumbnails(3.6)), batch_size=15, num_workers=2, collate_fn=np.stack)


def library_threads(bad):
    """Each of four workers computes with four threads of a native library, on two cores.

    good: one thread a worker.
    """

    def multiply(_number):
        matrix = np.full((256, 256), 1 / 256, np.float32)
        return torch.from_numpy(matrix @ matrix)

    def configure(_worker):
        set_blas_threads(4 if bad else 1)

    return train(DataLoader(Items(3 * 80, multiply), batch_size=3, num_workers=4, worker_init_fn=configure), step_ms=48)


def crowd_of_workers(bad):
    """Thirty-two workers are started where two would do, and starting them takes longer than they ever save.

    good: two.
    """
    return train(DataLoader(Items(14 * 100, augmented(2)), batch_size=14, num_workers=32 if bad else 2), step_ms=45)


def one_core_granted(bad):
    """The job may use one core of the machine, and eight workers share it.

    good: all cores, and two workers.
    """
    if not bad:
        return train(_two_workers_that_keep_up(), step_ms=40)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    loader = DataLoader(Items(15 * 100, thumbnails(3.6)), batch_size=15, num_workers=8, collate_fn=np.stack)
    return train(loader, step_ms=40)


def container_quota(bad):
    """The container may use two fifths of a core, whatever it sees of the machine.

    good: no quota. The bad one needs root and a control group that may be written.
    """
    if bad:
        limit_cpu(0.4)
    return train(_two_workers_that_keep_up(15 * 70 if bad else 15 * 100), step_ms=40)


def busy_neighbour(bad):
    """A second after the start, two processes of somebody else begin to compute, and take half of the cores.

    good: nobody else computes.
    """
    if bad:
        arrival = threading.Timer(1, lambda: [start_stranger(seconds=25) for _ in range(2)])
        arrival.daemon = True
        arrival.start()
    return train(_two_workers_that_keep_up(15 * 110), step_ms=40)


def busy_helper_thread(bad):
    """A helper thread of the training process multiplies on all cores without pause; the workers get what is left.

    good: no such thread.
    """
    loader, clock, finished = _two_workers_that_keep_up(), StepClock(), threading.Event()
    helper = threading.Thread(target=_multiply_until, args=(finished,), daemon=True)
    for step, _batch in enumerate(clock.batches(loader)):
        if bad and step == 0:  # the workers are forked by now: a fork beside a pool of native threads may never end
            helper.start()
        wait(40)
    clock.stop()
    finished.set()
    return clock


def _multiply_until(finished):
    torch.set_num_threads(2)
    source, target = torch.ones(3_000_000), torch.empty(3_000_000)
    while not finished.is_set():
        torch.mul(source, 3, out=target)
