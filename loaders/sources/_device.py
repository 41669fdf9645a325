"""A storage device emulated in time: reads wait as long as they would on it, however many threads and processes read.

What it is doing lies in a small file that all readers map. A read books its time on the device and then sleeps until its end,
holding nothing. The kernel drops the lock of a reader that is killed, so that at worst the one read that it booked is wasted.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_IN_FLIGHT = 4096

_PREFIX = "stallscope-device-"
_MAX_LATE_NS = 200_000
_PIPE_FREE, _HEAD, _SLOTS = 0, 1, 2  # places in the state: two numbers, then one for each request in flight


class Figures(NamedTuple):
    """What a device is, in numbers."""

    latency_ns: int
    """From the request to the first byte."""
    bandwidth_bytes_per_s: int
    """Shared by all requests in flight."""
    requests_in_flight: int
    """How many it works on at once; others wait for one of them to end."""
    readahead_bytes: int = 0
    """How far it reads on behind a read, unasked. A read that follows on the last one is then served without the latency."""


class Device:
    """One device of these figures, and which of its blocks lie in the host's memory.

    A read starts when it is asked for and one of the places is free; its bytes come after the latency, when those before them
    are through: `end = max(start + latency, pipe free) + bytes / bandwidth`.

    Pickled, it stays the same device. It lasts as long as the object that made it, and ends with its process.
    """

    def __init__(
        self,
        figures: Figures,
        blocks: int,
        clock: Callable[[], int] = time.perf_counter_ns,  # CLOCK_MONOTONIC: the same in all processes
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        _remove_left_overs()
        n_times = _SLOTS + figures.requests_in_flight
        file, path = _new_file(n_times * 8 + blocks)
        self._open(figures, file, path, clock, sleep)
        self._times[_HEAD] = -1  # no read follows on this
        # A forked child has the object too, and must not remove what its parent uses.
        weakref.finalize(self, _remove, path, os.getpid())
        _attached[path] = self

    def _open(self, figures: Figures, file: int, path: str, clock: Callable[[], int], sleep: Callable[[float], None]) -> None:
        self.figures, self.path = figures, path
        self._clock, self._sleep = clock, sleep
        self._file = file
        weakref.finalize(self, os.close, file).atexit = False  # a thread may still read while the process ends
        state = mmap.mmap(file, 0)
        n_times = _SLOTS + figures.requests_in_flight
        self._times: NDArray[np.int64] = np.frombuffer(state, np.int64, n_times)
        self.in_memory: NDArray[np.uint8] = np.frombuffer(state, np.uint8, offset=n_times * 8)
        """One byte a block, shared: 1 if the block needs no device. Whoever reads a block may set it."""
        self._locks: dict[int, threading.Lock] = {}
        self._thread = threading.local()

    def __reduce__(self) -> tuple[Any, ...]:
        return _attach, (self.figures, self.path, self._clock, self._sleep)

    def read(self, position: int, n_bytes: int, asked_ns: int | None = None) -> None:
        """Waits until these bytes would be there, had they been asked for at `asked_ns` (default: now).

        A sleep ends 60 to 100 us late. A thread's next request counts as made that much earlier, so that reads take as long as
        they should on average; at most 0.2 ms, since a longer delay is the machine's.
        """
        asked_ns = self._clock() if asked_ns is None else asked_ns
        due_ns: int = asked_ns - getattr(self._thread, "late_ns", 0)
        end_ns = max(due_ns, self.book(position, n_bytes, due_ns))
        self.wait_until(end_ns)
        self._thread.late_ns = min(max(0, self._clock() - end_ns), _MAX_LATE_NS)

    def now_ns(self) -> int:
        return self._clock()

    def book(self, position: int, n_bytes: int, asked_ns: int) -> int:
        """Reserves the device for a read, and returns when that ends: before `asked_ns` if it was read ahead."""
        transfer_ns = round(n_bytes * 1e9 / self.figures.bandwidth_bytes_per_s)
        with self._alone():
            slots = self._times[_SLOTS:]
            slot = int(slots.argmin())
            if self.figures.readahead_bytes and position == self._times[_HEAD]:
                begin = self._read_ahead_since(asked_ns, int(slots[slot]))
            else:
                begin = max(asked_ns, int(slots[slot])) + self.figures.latency_ns
            end = max(begin, int(self._times[_PIPE_FREE])) + transfer_ns
            self._times[_PIPE_FREE] = end
            self._times[_HEAD] = position + n_bytes
            slots[slot] = end
        return end

    def wait_until(self, end_ns: int) -> None:
        left_ns = end_ns - self._clock()
        if left_ns > 0:
            self._sleep(left_ns / 1e9)

    def _read_ahead_since(self, asked_ns: int, free_ns: int) -> int:
        """Since when the device has been reading what is asked for now: it went on by itself until its buffer was full."""
        full_ns = round(self.figures.readahead_bytes * 1e9 / self.figures.bandwidth_bytes_per_s)
        return max(free_ns, asked_ns - full_ns)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Lets one reader at a time book. Locks of files keep processes apart, not threads; and a lock of threads, were it
        forked while held, would stay so for ever: each process has its own."""
        with self._locks.setdefault(os.getpid(), threading.Lock()):
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)


_attached: weakref.WeakValueDictionary[str, Device] = weakref.WeakValueDictionary()
"""The devices that this process has, by file. A process drops its lock of a file when it closes any descriptor of it, so a
copy that is unpickled beside the original must be the original."""


def _attach(figures: Figures, path: str, clock: Callable[[], int], sleep: Callable[[float], None]) -> Device:
    device = _attached.get(path)
    if device is None:
        device = Device.__new__(Device)
        device._open(figures, os.open(path, os.O_RDWR), path, clock, sleep)
        _attached[path] = device
    return device


def _folder() -> str:
    """In memory if possible: where the kernel writes a mapped page out to a disk, touching it again may wait for that disk."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()


def _new_file(n_bytes: int) -> tuple[int, str]:
    """A file of zeros. Whoever has it open holds a lock that the kernel drops: without one, it was left by the dead."""
    while True:
        file, path = tempfile.mkstemp(prefix=_PREFIX, dir=_folder())
        fcntl.flock(file, fcntl.LOCK_SH)
        if os.fstat(file).st_nlink:  # else removed as a left-over, just before it was locked
            break
        os.close(file)
    os.posix_fallocate(file, 0, n_bytes)  # a full disk is told here, and not by a SIGBUS later
    return file, path


def _remove_left_overs() -> None:
    for path in Path(_folder()).glob(f"{_PREFIX}*"):
        if str(path) in _attached:
            continue
        with contextlib.suppress(OSError), open(path, "rb") as file:  # another user's, held by someone, or already gone
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


def _remove(path: str, maker: int) -> None:
    if os.getpid() == maker:
        Path(path).unlink(missing_ok=True)
