"""Stamps the making of batches, in whatever thread or process makes them: what waited, what computed, what stood in the queue.

A thread's wall time is CPU time, plus time it was runnable without a core (run-queue delay), plus time it was blocked. The
kernel counts the first two for every thread, so reading, decoding and core shortage separate without a mark inside user code.
"""

from __future__ import annotations

import itertools
import os
import struct
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from .events import Made

RECORD = struct.Struct(f"={len(Made._fields)}q")
RECORDS_PER_FILE = 1 << 15
RECORDS_PER_READ = 1 << 14
"""Files are read in pieces of 1.7 MB: a run of any length stays in the memory that it has."""
IO_INTERVAL_NS = 1_000_000
"""/proc/thread-self/io is cumulative and costs 3 us to read: twice a millisecond is 0.6 %, and loses next to nothing."""


class Probe:
    """Picklable, one for a run; each thread keeps its own state and its own file, made at its first batch.

    A record is one unbuffered append: it never touches a batch, and what was written survives a killed worker. A write that
    fails is not raised: it shows as fewer records than batches.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # By the kernel's number and not threading.local: threads of a C++ pool are new ones to Python in each call.
        self._threads: dict[int, _Thread] = {}

    def __getstate__(self) -> Path:
        return self._folder

    def __setstate__(self, folder: Path) -> None:
        self.__init__(folder)  # type: ignore[misc]

    def begin(self) -> None:
        """The first item is about to be read."""
        number = threading.get_native_id()
        thread = self._threads.get(number)
        if thread is None or thread.pid != os.getpid():  # a forked worker inherits its parent's threads, files and all
            self._forget_ended()
            thread = self._threads[number] = _Thread(self._folder)
        try:
            thread.begin()
        except ProcessLookupError:  # another thread that has ended had this number
            thread.close()
            thread = self._threads[number] = _Thread(self._folder)
            thread.begin()

    def _forget_ended(self) -> None:
        """Closes the files of threads that are no more: tf.data starts new ones in each epoch."""
        if os.path.exists("/proc/self/task"):
            for number in [each for each in list(self._threads) if not os.path.exists(f"/proc/self/task/{each}")]:
                if ended := self._threads.pop(number, None):
                    ended.close()

    def items(self, n_items: int, n_skipped: int, bytes_asked: int) -> None:
        """All items are read and decoded; collating begins."""
        self._threads[threading.get_native_id()].items(n_items, n_skipped, bytes_asked)

    def end(self) -> None:
        """The batch is made."""
        self._threads[threading.get_native_id()].end()

    def forget_io(self) -> None:
        """The next record reads the I/O counters, however soon it comes: for measuring what that costs."""
        self._threads[threading.get_native_id()].io_read_ns = 0


class _Thread:
    """One thread's open files and its unfinished record."""

    def __init__(self, folder: Path) -> None:
        self.pid = os.getpid()
        self._id = threading.get_native_id()
        self._folder = folder
        self._file = self._next_file()
        self._schedstat = _open("/proc/thread-self/schedstat")
        self._io = _open("/proc/thread-self/io")
        self.io_read_ns = 0
        self._from_device = self._read_from_device()

    def close(self) -> None:
        for file in (self._file, self._schedstat, self._io):
            if file is not None:
                os.close(file)

    def _next_file(self) -> int:
        """A long run's records go to one file after another: those that are full can be collected while it goes on."""
        self._left = RECORDS_PER_FILE
        self._files = getattr(self, "_files", -1) + 1
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        return os.open(self._folder / f"made-{self.pid}-{self._id}-{self._files:06d}.bin", flags, 0o644)

    def begin(self) -> None:
        self._began = self._stamp()
        self._io_due = self._began[0] - self.io_read_ns >= IO_INTERVAL_NS
        if self._io_due:  # what this thread read since its last batch, in the model's step perhaps, is no sample
            self._from_device = self._read_from_device()

    def items(self, n_items: int, n_skipped: int, bytes_asked: int) -> None:
        self._counts = n_items, n_skipped, bytes_asked
        self._had_items = self._stamp()

    def end(self) -> None:
        t0, cpu0, runq0 = self._began
        t1, cpu1, runq1 = self._had_items
        t2, cpu2, runq2 = self._stamp()
        runqs = (-1, -1) if runq0 < 0 else (runq1 - runq0, runq2 - runq1)
        n_items, n_skipped, bytes_asked = self._counts
        fetched = self._fetched_since(t2)
        times = (t0, t1, t2, cpu1 - cpu0, runqs[0], cpu2 - cpu1, runqs[1])
        record = RECORD.pack(self.pid, self._id, n_items, n_skipped, *times, bytes_asked, fetched)
        with suppress(OSError):
            os.write(self._file, record)
            self._left -= 1
            if not self._left:
                full, self._file = self._file, self._next_file()
                os.close(full)

    def _stamp(self) -> tuple[int, int, int]:
        """Clock, CPU and run-queue delay of this thread. CPU first: reading it makes the kernel bring its books up to date."""
        cpu = time.thread_time_ns()
        runq = -1 if self._schedstat is None else int(os.pread(self._schedstat, 64, 0).split()[1])
        return time.perf_counter_ns(), cpu, runq

    def _read_from_device(self) -> int:
        if self._io is None:
            return -1
        return int(os.pread(self._io, 512, 0).partition(b"\nread_bytes: ")[2].partition(b"\n")[0])

    def _fetched_since(self, now_ns: int) -> int:
        if self._io is None:
            return -1
        if not self._io_due and now_ns - self.io_read_ns < IO_INTERVAL_NS:
            return 0
        self.io_read_ns, before = now_ns, self._from_device
        self._from_device = self._read_from_device()
        return self._from_device - before


def _open(path: str) -> int | None:
    """A kept-open file of /proc, which is ten times cheaper to read again than to open; None where there is none."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


Table = np.ndarray[tuple[int, int], np.dtype[np.int64]]


def records(folder: Path, ended: bool = False) -> Iterator[Table]:
    """What the probes wrote, in tables with the columns of `events.Made`. A record cut short at the end is left out.

    ended: only of files that nobody writes to any more, which are then removed.
    """
    names = sorted(os.listdir(folder))
    for name, following in itertools.pairwise([*names, ""]):
        if name.startswith("made-") and (not ended or _is_over(name, following)):
            yield from _pieces(folder / name)
            if ended:
                os.unlink(folder / name)


def _is_over(name: str, following: str) -> bool:
    """Whether its thread writes to a later file already, or is gone."""
    _, pid, thread, _ = name.split("-")
    return following.startswith(f"made-{pid}-{thread}-") or (
        os.path.exists("/proc") and not os.path.exists(f"/proc/{pid}/task/{thread}")
    )


def _pieces(path: Path) -> Iterator[Table]:
    with path.open("rb") as file:
        while data := file.read(RECORD.size * RECORDS_PER_READ):
            whole = len(data) - len(data) % RECORD.size
            yield np.frombuffer(data[:whole], dtype=np.int64).reshape(-1, len(Made._fields))


def us_per_batch(batches: int = 500, repeats: int = 5) -> float:
    """Direct cost of recording one batch where it is made, in microseconds: best of `repeats`.

    As of a batch that takes over a millisecond, whose record reads the I/O counters; of a shorter one it is less.
    """
    with tempfile.TemporaryDirectory() as folder:
        probe = Probe(Path(folder))

        def once() -> int:
            started = time.perf_counter_ns()
            for _ in range(batches):
                probe.begin()
                probe.items(0, 0, 0)
                probe.end()
                probe.forget_io()
            return time.perf_counter_ns() - started

        return min(once() for _ in range(repeats)) / batches / 1e3
