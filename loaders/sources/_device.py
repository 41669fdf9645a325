"""A storage device emulated in time: requests wait as long as they would, whoever makes them, and nothing else happens.

A request reserves its time on the device and then sleeps until it is over. The device's state, a few numbers and a byte a
sample, lies in a small file that every thread and process of the run maps. It is changed under a lock of the kernel's, which a
killed process loses: at worst a read that nobody waits for any more has taken its time.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import struct
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

_PREFIX = "stallscope-device-"
_NOWHERE = -(1 << 62)
"""Where the head is before the first read: near nothing."""
_MAX_LATE_NS = 200_000


class Speed(NamedTuple):
    """What a device can do."""

    latency_ns: int
    """From a request to its first byte: seek and rotation, or a network's round trip."""
    bytes_per_s: int
    """Shared by all requests."""
    requests_in_flight: int
    """So many have their latency at the same time; the others queue. A disk with one head: 1."""
    readahead_bytes: int = 0
    """How far it reads on by itself, and keeps what it passed over. 0: every read pays the latency, wherever it lies."""


class Device:
    """`start = max(now, a slot is free)`; `end = max(start + latency, all transfers are over) + size / bandwidth`.

    Picklable: a copy in another process works on the same device. clock and sleep are there to be replaced by tests.
    """

    def __init__(
        self,
        speed: Speed,
        n_samples: int,
        clock_ns: Callable[[], int] = time.perf_counter_ns,  # one clock for all processes of a Linux machine
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._speed, self._n_samples, self._clock_ns, self._sleep = speed, n_samples, clock_ns, sleep
        _remove_left_overs()
        handle, name = tempfile.mkstemp(prefix=f"{_PREFIX}{os.getpid()}-")
        os.ftruncate(handle, _Layout(speed.requests_in_flight).size(n_samples))
        os.close(handle)
        self._path = name
        self._open()
        _attached[name] = self
        self._layout.numbers.pack_into(self._state, 0, 0, _NOWHERE, *[0] * speed.requests_in_flight)
        self._remover = weakref.finalize(self, _remove, name, os.getpid())

    def __reduce__(self) -> tuple[object, ...]:
        return _attach, (self._speed, self._n_samples, self._clock_ns, self._sleep, self._path)

    def read(self, sample: int, first_byte: int, n_bytes: int, asked_ns: int | None = None) -> None:
        """Returns when the device would have read these bytes. Nothing is computed meanwhile, and no lock is held.

        A sleep ends 60 to 100 us late, which would make a read of 0.3 ms cost 0.4. A thread's next read counts as asked for
        that much earlier; at most 0.2 ms, since a longer delay is the machine's.
        """
        asked_ns = (self._clock_ns() if asked_ns is None else asked_ns) - getattr(self._thread, "late_ns", 0)
        end_ns = max(asked_ns, self._reserve(sample, first_byte, n_bytes, asked_ns))
        while (left_ns := end_ns - self._clock_ns()) > 0:
            self._sleep(left_ns / 1e9)
        self._thread.late_ns = min(self._clock_ns() - end_ns, _MAX_LATE_NS)

    def now_ns(self) -> int:
        return self._clock_ns()

    def was_read(self, sample: int) -> bool:
        """Since `forget`: a page cache would have it."""
        with self._locked() as state:
            return bool(state[self._layout.samples + sample])

    def read_share(self) -> float:
        """The share of the samples that were read since `forget`."""
        with self._locked() as state:
            return state[self._layout.samples : self._layout.size(self._n_samples)].count(1) / self._n_samples

    def forget(self) -> None:
        """As if nothing had been read yet."""
        with self._locked() as state:
            state[self._layout.samples : self._layout.size(self._n_samples)] = bytes(self._n_samples)

    def _reserve(self, sample: int, first_byte: int, n_bytes: int, asked_ns: int) -> int:
        """When the read will be over."""
        speed, layout = self._speed, self._layout
        with self._locked() as state:
            pipe_free_ns, head_at, *slots_ns = layout.numbers.unpack_from(state)
            slot = min(range(len(slots_ns)), key=slots_ns.__getitem__)
            start_ns, moved_bytes, end_at = asked_ns, n_bytes, first_byte + n_bytes
            if abs(first_byte - head_at) <= speed.readahead_bytes != 0:
                # The head is there, and has read on while it was not asked, as far as its buffer holds; what it passes over
                # stays there as well: two readers that take turns come in any order.
                start_ns -= _duration_ns(speed.readahead_bytes, speed)
                moved_bytes, end_at = max(0, end_at - head_at), max(end_at, head_at)
                first_byte_ns = max(start_ns, slots_ns[slot])
            else:
                first_byte_ns = max(start_ns, slots_ns[slot]) + speed.latency_ns
            end_ns: int = max(first_byte_ns, pipe_free_ns) + _duration_ns(moved_bytes, speed)
            slots_ns[slot] = end_ns
            layout.numbers.pack_into(state, 0, end_ns, end_at, *slots_ns)
            state[layout.samples + sample] = 1
        return end_ns

    def _open(self) -> None:
        self._layout = _Layout(self._speed.requests_in_flight)
        self._lock, self._pid, self._thread = threading.Lock(), os.getpid(), threading.local()
        self._file = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        self._state = mmap.mmap(self._file, 0)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[mmap.mmap]:
        """Alone among threads and processes. The kernel's lock is a process's, and ends with it."""
        if self._pid != os.getpid():  # forked: the lock may have been held by a thread that is not there
            self._open()
        with self._lock:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                yield self._state
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)


_attached: weakref.WeakValueDictionary[str, Device] = weakref.WeakValueDictionary()
"""The devices of this process. Its lock of a file keeps out other processes only, and is lost when any descriptor of the file
is closed: so an unpickled copy beside the original must be the original."""


def _attach(speed: Speed, n_samples: int, clock_ns: Callable[[], int], sleep: Callable[[float], None], path: str) -> Device:
    device = _attached.get(path)
    if device is None:
        device = Device.__new__(Device)
        device._speed, device._n_samples, device._path = speed, n_samples, path
        device._clock_ns, device._sleep = clock_ns, sleep
        device._open()
        _attached[path] = device
    return device


def _duration_ns(n_bytes: int, speed: Speed) -> int:
    return n_bytes * 1_000_000_000 // speed.bytes_per_s


class _Layout:
    """The state file: when the last transfer ends, where it ends, when each slot is free; then a byte a sample."""

    def __init__(self, requests_in_flight: int) -> None:
        self.numbers = struct.Struct(f"={2 + requests_in_flight}q")
        self.samples = self.numbers.size

    def size(self, n_samples: int) -> int:
        return self.samples + n_samples


def _remove(name: str, pid: int) -> None:
    """By the process that made it alone: forked workers hold copies."""
    if os.getpid() == pid:
        with contextlib.suppress(OSError):
            os.unlink(name)


def _remove_left_overs() -> None:
    """What killed processes left."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        pid = path.name.removeprefix(_PREFIX).partition("-")[0]
        if pid.isdecimal() and not os.path.exists(f"/proc/{pid}"):
            with contextlib.suppress(OSError):
                path.unlink()
