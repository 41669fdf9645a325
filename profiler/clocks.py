"""Clocks of threads and processes as the kernel keeps them: what computed, what stood in the queue for a core."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")


class ThreadClock:
    """CPU time and run-queue delay of the thread that makes it, in nanoseconds. Kept open: two microseconds a reading."""

    def __init__(self) -> None:
        self._schedstat = open_kept("/proc/thread-self/schedstat")

    def read(self) -> tuple[int, int]:
        """CPU time, then run-queue delay (-1: not kept by this kernel).

        In this order: reading the CPU clock makes the kernel bring its books up to date.
        """
        cpu = time.thread_time_ns()
        return cpu, -1 if self._schedstat is None else int(os.pread(self._schedstat, 64, 0).split(None, 2)[1])

    def close(self) -> None:
        close_kept(self._schedstat)


class ThreadClocks:
    """The same of whichever thread reads it."""

    def __init__(self) -> None:
        self._local = threading.local()

    def read(self) -> tuple[int, int]:
        try:
            return self._local.clock.read()  # type: ignore[no-any-return]
        except AttributeError:
            self._local.clock = ThreadClock()
            return self.read()


def open_kept(path: str) -> int | None:
    """A kept-open file of /proc, which is ten times cheaper to read again than to open; None where there is none."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def close_kept(file: int | None) -> None:
    """Also if somebody else, who closes all that is open, has done so."""
    if file is not None and file >= 0:
        with suppress(OSError):
            os.close(file)


def process_start_ns(clock: Callable[[], int] = time.perf_counter_ns, proc: Path = PROC, pid: int | None = None) -> int | None:
    """When a process, this one if none is named, started, on `clock`, to 10 ms: the kernel keeps it in ticks since boot.
    None where it keeps none."""
    try:
        stat = (proc / f"{pid or 'self'}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return None
    started_ticks = int(stat.rpartition(")")[2].split()[19])  # the name before it may hold spaces and parentheses
    age_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - started_ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    return clock() - max(0, age_ns)
