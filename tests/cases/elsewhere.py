"""The loader is quick, and the time goes elsewhere."""

import queue
import threading

import numpy as np
from costs import compute, wait
from items import Items, ready
from loop import StepClock
from torch.utils.data import DataLoader


def _quick_loader(batches=95):
    return DataLoader(Items(14 * batches, ready), batch_size=14, num_workers=2)


def copy_before_every_step(bad):
    """Each step begins with a copy of 120 MB; the batch was there long before.

    good: no copy.
    """
    clock, state, on_device = StepClock(), np.ones(7_500_000), np.empty(7_500_000)
    for _batch in clock.batches(_quick_loader()):
        if bad:
            np.copyto(on_device, state)
            np.copyto(state, on_device)
        wait(48)
    return clock.stop()


def validation_between_epochs(bad):
    """After every epoch the training process validates and plots for most of a second.

    good: it does not.
    """
    clock = StepClock()
    loader = DataLoader(Items(14 * 16, ready), batch_size=14, num_workers=2, persistent_workers=True)
    for _ in range(6):
        for _batch in clock.batches(loader):
            wait(50)
        if bad:
            compute(750)
    return clock.stop()


def busy_training_process(bad):
    """Python in the training process takes 42 ms of each step, and the accelerator 6.

    good: the other way round.
    """
    clock = StepClock()
    for _batch in clock.batches(_quick_loader()):
        compute(42 if bad else 6)
        wait(6 if bad else 42)
    return clock.stop()


class _Accelerator:
    """Works behind the back of the host: launch() returns at once, synchronize() waits for all that was launched."""

    def __init__(self):
        self._launched = queue.Queue()
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self):
        while True:
            wait(self._launched.get())
            self._launched.task_done()

    def launch(self, ms):
        self._launched.put(ms)

    def synchronize(self):
        self._launched.join()


def synchronised_every_step(bad):
    """The loop reads a number of the step before as its first act, so it waits for the accelerator where loading seems to be.

    good: it reads one every tenth step. In both the accelerator is busy all the time.
    """
    clock, accelerator = StepClock(), _Accelerator()
    for step, _batch in enumerate(clock.batches(_quick_loader())):
        if bad or step % 10 == 9:
            accelerator.synchronize()
        accelerator.launch(48)
    accelerator.synchronize()
    return clock.stop()
