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


STAGES = ("startup", "sampler", "fetch", "decode", "core_shortage", "collate", "handoff", "unexplained")
"""Where a batch's time goes before the consumer has it: `fetch` is blocked, `decode` CPU, `core_shortage` run-queue time."""

CAUSES = ("outside_loop", "input", "copy", "sync", "host", "unexplained")
"""Why the device idles, in the order in which they are asked: each idle instant takes the first that holds."""

PARTS = ("wait", "step", "outside_loop")
"""Where the host is: at every instant of the window in exactly one."""

STEP_PARTS = ("copy", "sync", "forward", "backward", "optimizer", "own_code", "core_shortage")
"""What the host does in a step."""
