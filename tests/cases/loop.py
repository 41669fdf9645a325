"""The training loop of every case, and the script's own clock around it."""

import time

from costs import wait

SETTLING_STEPS = 10
"""Not judged in stall_share_after_warmup, besides those whose batches lay in the buffer when the first step began."""


class StepClock:
    """How long a loop was inside iter() and next(), as a careful user would measure it by hand.

    `for batch in clock.batches(loader): ...`, once an epoch, then `clock.stop()`.
    """

    def __init__(self):
        self._asked_ns, self._waited_ns = [], []
        self._last_waits_ns = 0  # the next() that ends an epoch brings no batch, and takes time all the same
        self._warmup_steps, self._ended_ns = SETTLING_STEPS, None

    def batches(self, loader):
        """The batches of one epoch; what passes between one yield and the next is the caller's step."""
        n_workers, prefetch = getattr(loader, "num_workers", 0), getattr(loader, "prefetch_factor", None)
        self._warmup_steps = SETTLING_STEPS + n_workers * (prefetch or 0)
        asked_ns, finished = time.perf_counter_ns(), object()
        iterator = iter(loader)
        while (batch := next(iterator, finished)) is not finished:
            self._asked_ns.append(asked_ns)
            self._waited_ns.append(time.perf_counter_ns() - asked_ns)
            yield batch
            asked_ns = time.perf_counter_ns()
        self._last_waits_ns += time.perf_counter_ns() - asked_ns

    def stop(self):
        self._ended_ns = time.perf_counter_ns()
        return self

    def figures(self):
        """What run.py prints: wall time is counted from the first iter() to the end of the last epoch."""
        steps = len(self._waited_ns)
        wall_ns = self._ended_ns - self._asked_ns[0]
        first = min(self._warmup_steps, steps // 2)
        return {
            "steps": steps,
            "wall_s": round(wall_ns / 1e9, 3),
            "stall_share": round((sum(self._waited_ns) + self._last_waits_ns) / wall_ns, 4),
            "stall_share_after_warmup": round(sum(self._waited_ns[first:]) / (self._ended_ns - self._asked_ns[first]), 4),
            "first_wait_ms": round(self._waited_ns[0] / 1e6, 1),
        }


def train(loader, *, step_ms, epochs=1):
    """Takes a batch and lets the accelerator work: here the main thread sleeps as long as that would take."""
    clock = StepClock()
    for _ in range(epochs):
        for _batch in clock.batches(loader):
            wait(step_ms)
    return clock.stop()
