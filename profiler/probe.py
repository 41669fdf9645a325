"""Stamps the making of batches, in whatever thread or process makes them: what waited, what computed, what stood in the queue.

A thread's wall time is CPU time, plus time it was runnable without a core (run-queue delay), plus time it was blocked. The
kernel counts the first two for every thread, so reading, decoding and core shortage separate without a mark inside user code.
"""

from __future__ import annotations

import heapq
import itertools
import os
import struct
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from .clocks import ThreadClock, close_kept, open_kept
from .events import Item, Made, Started

RECORD = struct.Struct(f"={len(Made._fields)}q")
ITEM = struct.Struct(f"={len(Item._fields)}q")
STARTED = struct.Struct(f"={len(Started._fields)}q")
RECORDS_PER_FILE = 1 << 15
RECORDS_PER_READ = 1 << 14
"""Files are read in pieces of 2.2 MB: a run of any length stays in the memory that it has."""
SHORT_COLLATE_NS = 20_000
"""Collating that ends sooner has computed: asking the kernel would take a tenth of it, and tell nothing else."""
LONG_STAMP_NS = 100_000
"""Twenty times what a stamp takes: something came between."""
ITEM_NS = 100_000
"""Samples that take so long on average are stamped one by one, in some batches."""
STAMP_NS, COLD_STAMP_NS = 3_000, 50_000
"""What a sample's own stamp takes; the latter after a sample that waited, when the caches are cold."""
STAMP_SHARE = 0.0025
"""Of the samples' time: no more batches are stamped than cost this; but a maker's first ones, and one of so many at least."""
FIRST_STAMPED, MOST_BETWEEN = 16, 32
ITEMS_KEPT = 1 << 14
"""Of a maker, one after another; later ones only if they are among its slowest."""
SLOWEST_ITEMS = 20
RECORDS_PER_LOOK = 64
"""Whether a worker has threads of libraries is looked up once in so many batches."""
IO_INTERVAL_NS = 1_000_000
"""/proc/thread-self/io is cumulative and costs 3 us to read: twice a millisecond is 0.6 %, and loses next to nothing."""

WARM_UP, LONG_PAUSE_NS = 32, 50_000_000
"""A thread that does other things too reads other files in its first steps, when libraries are loaded, and between epochs."""

_makers: dict[tuple[Path, int, int], Maker] = {}
"""By the kernel's number and not threading.local: threads of a C++ pool are new ones to Python in each call. Of the module, so
that all copies of a run's Probe in one process, a loader's and an instrument's, go on with the same record."""


class Probe:
    """Picklable, one for a run; each thread keeps its own state and its own file, made at its first batch.

    A record is one unbuffered append: it never touches a batch, and what was written survives a killed worker. A write that
    fails is not raised, nor is a file that cannot be made: it shows as fewer records than batches.
    """

    def __init__(self, folder: Path, loop: int = -1) -> None:
        self._folder = folder
        self._loop = loop
        """Which of a script's loaders, as in `events.Row`."""

    def here(self) -> Maker:
        """This thread's maker of records. Never to be used in another one."""
        key = self._here()
        maker = _makers.get(key)
        if maker is None or maker.pid != os.getpid():  # a forked worker inherits its parent's makers, files and all
            _forget_ended()
            maker = _makers[key] = Maker(self._folder, self._loop)
        return maker

    def _here(self) -> tuple[Path, int, int]:
        return self._folder, self._loop, threading.get_native_id()

    def begin(self) -> None:
        """The first item is about to be read."""
        try:
            self.here().begin()
        except ProcessLookupError:  # another thread that has ended had this number
            _makers.pop(self._here()).close()
            self.here().begin()

    def item(self, index: int) -> None:
        """This sample comes next."""
        self.here().item(index)

    def items(self, n_items: int, n_skipped: int, bytes_asked: int) -> None:
        """All items are read and decoded; collating begins."""
        self.here().items(n_items, n_skipped, bytes_asked)

    def end(self) -> None:
        """The batch is made."""
        self.here().end()

    def started(self, worker_id: int, process_start_ns: int, unpickled_ns: int, init_ns: int, ready_ns: int) -> None:
        """This process is a worker, and now ready."""
        record = STARTED.pack(os.getpid(), worker_id, process_start_ns, unpickled_ns, init_ns, ready_ns, self._loop)
        with suppress(OSError):
            (self._folder / f"started-{os.getpid()}.bin").write_bytes(record)


def _forget_ended() -> None:
    """Closes the files of threads that are no more: tf.data starts new ones in each epoch."""
    if os.path.exists("/proc/self/task"):
        for key in [each for each in list(_makers) if not os.path.exists(f"/proc/self/task/{each[-1]}")]:
            if ended := _makers.pop(key, None):
                ended.close()


_Stamp = tuple[int, int, int]
"""Clock, CPU and run-queue delay of this thread, in nanoseconds."""


class Maker:
    """One thread's open files and its unfinished record. Whoever knows more may say it again: the last `begin`, and the first
    `items` and `end` after it, count."""

    def __init__(self, folder: Path, loop: int = -1) -> None:
        self.pid = os.getpid()
        self._id = threading.get_native_id()
        self._folder, self._loop = folder, loop
        self._name = f"{self.pid}-{self._id}" + (f".{loop}" if loop >= 0 else "")
        self._n_files = self._n_made = 0
        self._file = -1
        with suppress(OSError):  # else every write fails
            self._file = self._next_file()
        self._clock = ThreadClock()
        self._io = open_kept("/proc/thread-self/io")
        self._io_read_ns, self._io_due = 0, False
        self._asked, self._from_device = self._read_io()
        self._runq_at_end = -1
        self._siblings: list[int] | None = None
        """The CPU clocks of the other threads that Python started, in a worker that has threads of libraries besides."""
        self.alone = False
        """Whether this thread does nothing else than make batches, and its process nothing else than that: it is a worker."""
        self.batch = -1
        """Of the record at hand: its number in its epoch."""
        self.n_items = 0
        """Of the record at hand, as far as it is known before it is made."""
        self._began: _Stamp | None = None
        self._had_items: _Stamp | None = None
        self.indices: Sequence[Any] | None = None
        """Of the record at hand: the samples that were asked for."""
        self.stamps_items = False
        """Whether samples of the batch at hand are stamped one by one."""
        self._item_stamps: list[tuple[int, _Stamp]] = []
        self._items = Items(self._folder / f"items-{self._name}.bin", loop)

    def close(self) -> None:
        self._clock.close()
        close_kept(self._file)
        close_kept(self._io)

    def _next_file(self) -> int:
        """A long run's records go to one file after another: those that are full can be collected while it goes on."""
        self._left, self._n_files = RECORDS_PER_FILE, self._n_files + 1
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        return os.open(self._folder / f"made-{self._name}-{self._n_files:06d}.bin", flags, 0o644)

    @property
    def has_items(self) -> bool:
        """Whether a record is at hand whose items are made."""
        return self._had_items is not None

    def begin(self) -> None:
        self._had_items, self._lock_ns = None, 0
        self._item_stamps.clear()
        self._process_cpu = -1 if self._siblings is None else self._native_cpu_ns()
        self._began = self._stamp()
        if not self.alone:  # what this thread read since its last batch, in the model's step perhaps, is no sample
            since_ns = self._began[0] - self._io_read_ns
            self._io_due = since_ns >= IO_INTERVAL_NS
            if self._io_due and (self._n_made < WARM_UP or since_ns >= LONG_PAUSE_NS):
                self._asked, self._from_device = self._read_io()

    def item(self, index: int = -1) -> None:
        """The next sample is about to be made, and the one before it is."""
        if self.stamps_items:
            self._item_stamps.append((index, self._stamp()))

    def items(self, n_items: int, n_skipped: int = 0, bytes_asked: int | None = None) -> None:
        """bytes_asked: None where only the kernel knows, which counts what system calls read."""
        if self._began is not None and self._had_items is None:
            self._counts = n_items, n_skipped, bytes_asked
            self._had_items = self._stamp()
            if self._process_cpu >= 0 and self._siblings is not None:
                self._process_cpu = self._native_cpu_ns() - self._process_cpu

    def end(self) -> None:
        if self._began is None or self._had_items is None:
            return
        t0, cpu0, runq0 = self._began
        t1, cpu1, runq1 = self._had_items
        t2 = time.perf_counter_ns()
        if t2 - t1 < SHORT_COLLATE_NS:
            cpu2, runq2 = cpu1 + t2 - t1, runq1
        else:
            t2, cpu2, runq2 = self._stamp()
        wake = -1 if self._runq_at_end < 0 else runq0 - self._runq_at_end
        runqs = (-1, -1, -1) if runq0 < 0 else (runq1 - runq0, runq2 - runq1, wake)
        n_items, n_skipped, bytes_asked = self._counts
        asked, from_device = self._io_since(t2)
        times = (t0, t1, t2, cpu1 - cpu0, runqs[0], cpu2 - cpu1, runqs[1])
        read = (asked if bytes_asked is None else bytes_asked, from_device)
        rest = (self.batch, runqs[2], self._process_cpu, self._lock_ns, self._loop)
        record = RECORD.pack(self.pid, self._id, n_items, n_skipped, *times, *read, *rest)
        self._keep_items(n_items, t1 - t0, cpu1 - cpu0)
        self._runq_at_end, self._began, self._had_items, self.batch, self.indices = runq2, None, None, -1, None
        try:
            os.write(self._file, record)
        except OSError:
            return
        self._left -= 1
        self._n_made += 1
        if self.alone and self._left % RECORDS_PER_LOOK == 0:
            self._siblings = _python_threads() if _native_threads() > 0 else None
        if not self._left:
            with suppress(OSError):
                full, self._file = self._file, self._next_file()
                os.close(full)

    def _keep_items(self, n_items: int, wall_ns: int, cpu_ns: int) -> None:
        """Those of the batch at hand, and whether the next one's are to be stamped."""
        if self._item_stamps:
            assert self._had_items is not None
            if numbered := self._numbered():
                self._items.keep((self.pid, self._id, self.batch), numbered, self._had_items)
            self._item_stamps = []
        mean_ns = wall_ns // max(1, n_items)
        stamp_ns = STAMP_NS if cpu_ns > 0.8 * wall_ns else COLD_STAMP_NS
        one_in = min(MOST_BETWEEN, 1 + int(stamp_ns / (STAMP_SHARE * mean_ns))) if mean_ns >= ITEM_NS else 0
        self.stamps_items = one_in > 0 and (self._n_made < FIRST_STAMPED or self._n_made % one_in == 0)

    def _native_cpu_ns(self) -> int:
        """CPU of the process without those threads: they hand over the batch before, and make nothing. -1: one has ended."""
        try:
            total = time.process_time_ns()
            return total - sum(map(time.clock_gettime_ns, self._siblings)) if self._siblings else total
        except OSError:
            return -1

    def _numbered(self) -> list[tuple[int, _Stamp]]:
        """The stamps of the samples, none where they cannot be told: torch looks at its dataset once more before the first one,
        and as often as it likes if the dataset makes a batch at once."""
        asked, stamps = self.indices, self._item_stamps
        if asked is None or stamps[-1][0] >= 0:
            return stamps
        if not asked or len(stamps) not in (len(asked), len(asked) + 1):
            return []
        numbers = (index if isinstance(index, int) else -1 for index in asked)
        return [(number, stamp) for number, (_, stamp) in zip(numbers, stamps[-len(asked) :], strict=True)]

    def forget_io(self) -> None:
        """The next record reads the I/O counters, however soon it comes: for measuring what that costs."""
        self._io_read_ns = 0

    def _stamp(self) -> _Stamp:
        """The reading of run-queue delay is a system call, which gives the interpreter lock away: having to wait for its
        return, less what was waited for a core, is waiting for the lock."""
        before = time.perf_counter_ns()
        cpu, runq = self._clock.read()
        now = time.perf_counter_ns()
        if now - before > LONG_STAMP_NS:
            runq_before, (cpu, runq) = runq, self._clock.read()
            self._lock_ns += max(0, now - before - max(0, runq - runq_before))
            now = time.perf_counter_ns()
        return now, cpu, runq

    def _read_io(self) -> tuple[int, int]:
        """Bytes that this thread asked for in system calls, and bytes of them that came from a device, since it began."""
        if self._io is None:
            return -1, -1
        words = os.pread(self._io, 512, 0).split(None, 10)  # rchar: n wchar: n syscr: n syscw: n read_bytes: n ...
        return int(words[1]), int(words[9])

    def _io_since(self, now_ns: int) -> tuple[int, int]:
        if self._io is None:
            return -1, -1
        if not self._io_due and now_ns - self._io_read_ns < IO_INTERVAL_NS:
            return 0, 0
        self._io_read_ns, asked, from_device = now_ns, self._asked, self._from_device
        self._asked, self._from_device = self._read_io()
        return self._asked - asked, self._from_device - from_device


class Items:
    """A maker's samples, on their way to a file of bounded length: the first so many, and whichever are slowest so far."""

    def __init__(self, path: Path, loop: int = -1) -> None:
        self._path, self._loop = path, loop
        self._left = ITEMS_KEPT
        self._slowest: list[int] = []

    def keep(self, maker: tuple[int, int, int], begun: list[tuple[int, _Stamp]], made: _Stamp) -> None:
        """begun: of each sample its index and the stamp before it; made: the stamp after the last one."""
        ends = itertools.chain((stamp for _, stamp in begun[1:]), [made])
        rows = []
        for (index, (t0, cpu0, runq0)), (t1, cpu1, runq1) in zip(begun, ends, strict=True):
            slow = self._is_slow(t1 - t0)
            if self._left > 0 or slow:
                runq = -1 if runq0 < 0 else runq1 - runq0
                rows.append(ITEM.pack(*maker, index, t0, t1, cpu1 - cpu0, runq, int(self._left > 0), self._loop))
        self._left -= len(begun)
        with suppress(OSError):
            if rows:
                with self._path.open("ab", buffering=0) as file:
                    file.write(b"".join(rows))

    def _is_slow(self, took_ns: int) -> bool:
        if len(self._slowest) < SLOWEST_ITEMS:
            heapq.heappush(self._slowest, took_ns)
            return True
        return took_ns > self._slowest[0] and heapq.heappushpop(self._slowest, took_ns) < took_ns


def _python_threads() -> list[int]:
    """The CPU clocks of all threads but this one that Python started."""
    others = [thread.ident for thread in threading.enumerate() if thread is not threading.current_thread()]
    return [time.pthread_getcpuclockid(ident) for ident in others if ident is not None]


def _native_threads() -> int:
    """Threads of this process that Python did not start: the pools of libraries."""
    try:
        return len(os.listdir("/proc/self/task")) - threading.active_count()
    except OSError:
        return 0


Table = np.ndarray[tuple[int, int], np.dtype[np.int64]]


def records(folder: Path, ended: bool = False) -> Iterator[Table]:
    """What the probes wrote, in tables with the columns of `events.Made`. A record cut short at the end is left out.

    ended: only of files that nobody writes to any more, which are then removed.
    """
    names = sorted(os.listdir(folder))
    for name, following in itertools.pairwise([*names, ""]):
        if name.startswith("made-") and (not ended or _is_over(name, following)):
            yield from pieces(folder / name, len(Made._fields))
            if ended:
                os.unlink(folder / name)


def items(folder: Path) -> Iterator[Table]:
    """Samples that were recorded one by one, with the columns of `events.Item`."""
    for path in sorted(folder.glob("items-*.bin")):
        yield from pieces(path, len(Item._fields))


def starts(folder: Path) -> Iterator[Table]:
    """Of each worker that became ready, one row with the columns of `events.Started`."""
    for path in sorted(folder.glob("started-*.bin")):
        yield from pieces(path, len(Started._fields))


def _is_over(name: str, following: str) -> bool:
    """Whether its thread writes to a later file already, or is gone."""
    _, pid, thread, _ = name.split("-")  # of one loader among several the thread is 12.3
    return following.startswith(f"made-{pid}-{thread}-") or (
        os.path.exists("/proc") and not os.path.exists(f"/proc/{pid}/task/{thread.partition('.')[0]}")
    )


def pieces(path: Path, width: int) -> Iterator[Table]:
    """The whole rows of a file of integers."""
    size = 8 * width
    with path.open("rb") as file:
        while data := file.read(size * RECORDS_PER_READ):
            whole = len(data) - len(data) % size
            yield np.frombuffer(data[:whole], dtype=np.int64).reshape(-1, width)


def us_per_batch(batches: int = 500, repeats: int = 5, alone: bool = False) -> float:
    """Direct cost of recording one batch where it is made, in microseconds: best of `repeats`.

    As of a batch that takes over a millisecond, whose record reads the I/O counters; of a shorter one it is less. alone: in a
    worker process.
    """
    with tempfile.TemporaryDirectory() as folder:
        maker = Probe(Path(folder)).here()
        maker.alone = alone

        def once() -> int:
            started = time.perf_counter_ns()
            for _ in range(batches):
                maker.begin()
                maker.items(0)
                maker.end()
                maker.forget_io()
            return time.perf_counter_ns() - started

        return min(once() for _ in range(repeats)) / batches / 1e3
