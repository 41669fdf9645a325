"""What can be recorded: the closed lists of spans, stages and causes. A new entry is a design decision."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Kind(IntEnum):
    """What a recorded span is. The numbers are stored in run files: they are never reused."""

    ITER = 1
    """Host inside `iter(loader)`: worker processes start here."""
    WAIT = 2
    """Host inside a `next()` that returned a batch."""
    END = 3
    """Host inside the `next()` that raised: StopIteration (workers shut down) or the loader's own error."""
    HARNESS = 4
    """The profiler's own work between epochs (evicting files, proving it). Cut out of the window."""
    SYNC = 5
    """Host inside a call that waits for the device."""
    BUSY = 6
    """Device computing."""
    COPY = 7
    """A batch on its way to the device."""
    GAP = 8
    """Of a long run: steps that were not kept, `n_samples` samples of them, the first of them `step`. Cut out of the window."""
    SAMPLER = 9
    """Host drawing the indices of a batch. Lies in an ITER, a WAIT or an END."""
    RECEIVE = 10
    """A finished batch on its way in from a worker: its message read and unpickled, by the host or by a thread that pins it.
    `step` is the batch's number in its epoch."""


class Row(NamedTuple):
    """One recorded span of the trainer or its device."""

    kind: int
    epoch: int
    step: int
    """Counted over the whole run, from 0."""
    start_ns: int
    """On the clock of `time.perf_counter_ns`, which forked and spawned processes of one Linux host share."""
    end_ns: int
    n_samples: int
    """Length of the batch that a WAIT returned; 0 for every other kind."""
    cpu_ns: int = -1
    """What the host computed in a WAIT or an END. -1: not measured."""
    runq_ns: int = -1
    """How long it was held up there by the lack of a core."""


class Made(NamedTuple):
    """What it cost to make one batch, recorded in the thread or process that made it. -1 means not measured.

    `begin_ns`..`items_ns` is reading and decoding the items, `items_ns`..`end_ns` is collating them.
    Wall time is CPU + run-queue delay + blocked; blocked also holds waiting for the interpreter lock.
    """

    pid: int
    thread_id: int
    n_items: int
    n_skipped: int
    begin_ns: int
    items_ns: int
    end_ns: int
    items_cpu_ns: int
    items_runq_ns: int
    collate_cpu_ns: int
    collate_runq_ns: int
    bytes_asked: int
    """Bytes that `source.read` returned."""
    bytes_from_device: int
    """Bytes that the kernel had to fetch from a device since this thread's previous record; read at most once a millisecond."""
    batch: int = -1
    """Its number in its epoch, where the loader says it."""
    wake_runq_ns: int = -1
    """Run-queue delay between the end of this maker's previous batch and `begin_ns`."""
    process_cpu_ns: int = -1
    """CPU of the whole process from `begin_ns` to `items_ns`; above `items_cpu_ns`, threads of libraries computed. Only of
    workers that have such threads."""
    lock_ns: int = -1
    """How long the three stamps of this record took: each makes a system call, which gives the interpreter lock away and has to
    get it back. A sample of what the maker meets."""


class Started(NamedTuple):
    """How a worker process came to be. -1 means not measured."""

    pid: int
    worker_id: int
    process_start_ns: int
    """Kept by the kernel to 10 ms."""
    unpickled_ns: int
    """What it was sent had been unpickled, its imports done; -1 for a forked one, which is sent nothing."""
    init_ns: int
    """`worker_init_fn` was called."""
    ready_ns: int
    """It had returned: the worker can take its first batch."""


STAGES = ("startup", "sampler", "fetch", "decode", "core_shortage", "collate", "handoff", "unexplained")
"""Where a batch's time goes before the consumer has it: `fetch` is blocked, `decode` CPU, `core_shortage` run-queue time."""

CAUSES = ("outside_loop", "input", "copy", "sync", "host", "unexplained")
"""Why the device idles, in the order in which they are asked: each idle instant takes the first that holds."""

PARTS = ("wait", "step", "outside_loop")
"""Where the host is: at every instant of the window in exactly one."""

STEP_PARTS = ("copy", "sync", "forward", "backward", "optimizer", "own_code", "core_shortage")
"""What the host does in a step."""
