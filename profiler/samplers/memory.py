"""Memory, open files and major faults of each process, /dev/shm, and memory pressure."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from ..clocks import PROC
from ..contracts import Sampler
from ..environment import SHM
from ..events import Counter, Reading
from ._pressure import Pressure
from ._processes import numbers, stats, text

SHARES_PERIOD_NS = 2_000_000_000
SHARES_COST = 100
"""USS and PSS take at most a hundredth of the time."""


def build(pid: int) -> Sampler:
    return Memory(pid)


class Memory:
    """About 50 us a process; with USS and PSS, for which the kernel walks the page tables, about 1 ms a GB of it on top.

    While it walks, the process can touch its memory but map no more: hence not more often than is needed.
    """

    def __init__(
        self,
        pid: int,
        proc: Path = PROC,
        shm: Path = SHM,
        clock: Callable[[], int] = time.perf_counter_ns,
        cpu_clock: Callable[[], int] = time.thread_time_ns,
    ) -> None:
        self._pid, self._proc, self._shm = pid, proc, shm
        self._clock, self._cpu_clock = clock, cpu_clock
        self._pressure = Pressure("memory", Counter.MEMORY_PRESSURE_US, pid, proc)
        self._page_bytes = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
        self._shares_due_ns: int | None = None

    def read(self) -> Iterator[Reading]:
        living = []
        for pid, stat in stats(self._pid, self._proc):
            if not stat.ended:
                living.append(pid)
                yield Reading(Counter.RSS_BYTES, pid, stat.rss_pages * self._page_bytes)
                yield Reading(Counter.MAJOR_FAULTS, pid, stat.major_faults)
                yield from self._descriptors(pid)
        yield from self._shares(living)
        yield from self._shm_used()
        yield from self._pressure.read()

    def _descriptors(self, pid: int) -> Iterator[Reading]:
        with suppress(OSError):
            yield Reading(Counter.DESCRIPTORS, pid, len(os.listdir(f"{self._proc}/{pid}/fd")))

    def _shares(self, pids: list[int]) -> Iterator[Reading]:
        """USS and PSS, of all processes at once: only what is of one instant can be added up."""
        now_ns, began_ns = self._clock(), self._cpu_clock()
        if self._shares_due_ns is not None and now_ns < self._shares_due_ns:
            return
        for pid in pids:
            sizes = numbers(text(f"{self._proc}/{pid}/smaps_rollup"))
            if "Pss" in sizes:
                alone = (size for name, size in sizes.items() if name.startswith("Private_"))
                yield Reading(Counter.USS_BYTES, pid, sum(alone) * 1024)
                yield Reading(Counter.PSS_BYTES, pid, sizes["Pss"] * 1024)
        self._shares_due_ns = now_ns + max(SHARES_PERIOD_NS, SHARES_COST * (self._cpu_clock() - began_ns))

    def _shm_used(self) -> Iterator[Reading]:
        with suppress(OSError, AttributeError):  # Windows has no statvfs
            disk = os.statvfs(self._shm)
            yield Reading(Counter.SHM_BYTES, 0, (disk.f_blocks - disk.f_bfree) * disk.f_frsize)
