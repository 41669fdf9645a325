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
    BACKWARD = 11
    """Host inside a backward pass. Lies in a step, as does OPTIMIZER."""
    OPTIMIZER = 12
    """Host inside an optimizer's step."""
    OTHER_WAIT = 13
    """Host waiting for another loader's batch, inside a step of this one: of two loaders that are zipped, or nested. Never
    recorded; see loops.py."""


LEARNING = (Kind.BACKWARD, Kind.OPTIMIZER)
"""Spans that show which thread trains."""


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
    loop: int = -1
    """Which of a script's loaders; -1: there is one."""


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
    """CPU of the process from `begin_ns` to `items_ns`, without threads that hand batches over: above `items_cpu_ns` it is that
    of libraries' threads. Only of workers that have such threads."""
    lock_ns: int = -1
    """How long the three stamps of this record took: each makes a system call, which gives the interpreter lock away and has to
    get it back. A sample of what the maker meets."""
    loop: int = -1
    """As in Row."""


class Item(NamedTuple):
    """How one sample was made. Recorded only where samples take long enough, and then of some batches: see `probe.Items`."""

    pid: int
    thread_id: int
    batch: int
    """As in Made."""
    sample: int
    """Its index; -1: the loader gives no number."""
    start_ns: int
    end_ns: int
    cpu_ns: int
    runq_ns: int
    in_row: int
    """1: one of a whole batch that was recorded; 0: kept alone, for it is among the slowest of its maker so far."""
    loop: int = -1
    """As in Row."""


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
    loop: int = -1
    """As in Row."""


STAGES = ("startup", "sampler", "fetch", "decode", "core_shortage", "collate", "handoff", "unexplained")
"""Where a batch's time goes before the consumer has it: `fetch` is blocked, `decode` CPU, `core_shortage` run-queue time."""

CAUSES = ("outside_loop", "input", "copy", "sync", "host", "unexplained")
"""Why the device idles, in the order in which they are asked: each idle instant takes the first that holds."""

PARTS = ("wait", "step", "outside_loop")
"""Where the host is: at every instant of the window in exactly one."""

STEP_PARTS = ("copy", "sync", "forward", "backward", "optimizer", "own_code", "core_shortage")
"""What the host does in a step."""


class Counter(IntEnum):
    """What a background reading tells. The numbers are stored in run files: they are never reused.

    `_NS`, `_US`, `_BYTES`, `_PERCENT` are units; the others are counts. What is marked (since ...) only ever grows, and the
    difference of two readings is what counts; the others are levels, as they are at that instant.
    """

    TREE_CPU_NS = 1
    """CPU time of the process and its children, living and ended (since they started). In ticks of 10 ms."""
    BUSY_CPU_NS = 2
    """Busy time of the cores that the process may run on, whoever used them (since boot). In ticks of 10 ms a core."""
    THROTTLED_NS = 3
    """Time that run queues of the cgroups stood still because a CPU quota was used up (since the cgroups were made). The
    kernel counts each core's run queue: 4 cores that are stopped for 1 s are 4 s. Levels that have a quota are added up."""
    THROTTLED_PERIODS = 4
    """Quota periods in which that happened: the kernel's nr_throttled (since the cgroups were made)."""
    QUOTA_PERIODS = 5
    """Quota periods in which the cgroups had anything to run: the kernel's nr_periods (since the cgroups were made)."""
    CPU_PRESSURE_US = 6
    """PSI `some`: time in which at least one runnable thread waited for a core (since boot, or since the cgroup was made)."""
    AFFINITY_CORES = 7
    """Cores that a process may run on."""
    THREADS = 8
    """Native threads of a process: those of C++ pools as well as Python's."""
    RSS_BYTES = 9
    """Resident memory of a process, pages that it shares with others counted in full."""
    USS_BYTES = 10
    """Resident memory that is the process's alone: what would be free if it ended."""
    PSS_BYTES = 11
    """Resident memory of a process, each shared page divided by the number of processes that share it: sums count it once."""
    DESCRIPTORS = 12
    """Open file descriptors of a process."""
    MAJOR_FAULTS = 13
    """Page faults of a process for which the kernel had to read from a device (since it started)."""
    SHM_BYTES = 14
    """Used of /dev/shm, where worker processes hand tensors over; whoever used it."""
    MEMORY_PRESSURE_US = 15
    """PSI `some`: time in which at least one thread waited for memory to be reclaimed or swapped in (since, as above)."""
    READ_BYTES = 16
    """Bytes that a process, and children of it that have ended, had fetched from a device (since it started)."""
    RCHAR_BYTES = 17
    """Bytes that their read() calls returned, from the page cache, pipes and sockets too (since it started)."""
    SYSCR = 18
    """Their read() calls (since it started)."""
    IO_PRESSURE_US = 19
    """PSI `some`: time in which at least one thread waited for a device's I/O (since, as above)."""
    DEVICE_READS = 20
    """Reads that the block device beneath the samples has completed, whoever asked (since boot)."""
    DEVICE_READ_BYTES = 21
    """Bytes of those reads: sectors of 512 bytes (since boot)."""
    DEVICE_READ_NS = 22
    """Time that those reads took, queueing in the kernel included, added up (since boot). In ms."""
    DEVICE_IN_FLIGHT = 23
    """Requests that the device has been given and has not completed."""
    GPU_UTILIZATION_PERCENT = 24
    """Share of the driver's last sampling interval, 1/6 s to 1 s, in which a kernel ran on the GPU, whosever it was."""
    GPU_MEMORY_BYTES = 25
    """Used memory of the GPU, whoever uses it."""


class Reading(NamedTuple):
    """What a sampler tells at one instant: one counter of one process."""

    counter: int
    pid: int
    """0: the whole machine. Of a GPU counter the GPU's number; of TREE_CPU_NS and what is of a cgroup the root of the tree."""
    value: int


class Count(NamedTuple):
    """One recorded reading. What was not measured has no row."""

    at_ns: int
    """When it was read, on the clock of the events. All rows of one reading of a sampler have the same."""
    counter: int
    pid: int
    """As in `Reading`."""
    value: int
