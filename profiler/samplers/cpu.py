"""CPU time of the tree and of everybody, throttling by a quota, CPU pressure, and each process's cores and threads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ..clocks import PROC
from ..contracts import Sampler
from ..environment import affinity_cores, busy_core_s, cgroup_levels
from ..events import Counter, Reading
from ._pressure import Pressure
from ._processes import numbers, stats, text

STAT_BYTES = 1 << 18
"""Of /proc/stat: its lines of cores come first, 2000 of them in so much."""


def build(pid: int) -> Sampler:
    return Cpu(pid)


class Cpu:
    """About 50 us a process, and of /proc/stat 1 us a core."""

    def __init__(self, pid: int, proc: Path = PROC) -> None:
        self._pid, self._proc = pid, proc
        self._pressure = Pressure("cpu", Counter.CPU_PRESSURE_US, pid, proc)
        self._ticks_per_s = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
        levels = [*cgroup_levels(proc, "cgroup2", pid), *cgroup_levels(proc, "cpu", pid)]
        self._throttled = [path for path in (level / "cpu.stat" for level in levels) if _throttling(text(path))]

    def read(self) -> Iterator[Reading]:
        yield from self._processes()
        yield from self._throttling()
        yield from self._pressure.read()

    def _processes(self) -> Iterator[Reading]:
        ticks, cores = 0, None
        for pid, stat in stats(self._pid, self._proc):
            ticks += stat.cpu_ticks
            if stat.ended:
                continue
            yield Reading(Counter.THREADS, pid, stat.threads)
            with suppress(OSError):
                own = affinity_cores(pid)
                cores = own if pid == self._pid else cores
                yield from [] if own is None else [Reading(Counter.AFFINITY_CORES, pid, len(own))]
        yield from self._busy(ticks, cores)

    def _busy(self, ticks: int, cores: frozenset[int] | None) -> Iterator[Reading]:
        """Both or neither: what others took is their difference."""
        lines = text(self._proc / "stat", STAT_BYTES)
        busy_s = None if cores is None or lines is None else busy_core_s(lines, cores, self._ticks_per_s)
        if busy_s is not None:
            yield Reading(Counter.BUSY_CPU_NS, 0, round(busy_s * 1e9))
            yield Reading(Counter.TREE_CPU_NS, self._pid, ticks * 1_000_000_000 // self._ticks_per_s)

    def _throttling(self) -> Iterator[Reading]:
        levels = [known for known in (_throttling(text(path)) for path in self._throttled) if known]
        for counter in levels[0] if len(levels) == len(self._throttled) > 0 else ():
            yield Reading(counter, self._pid, sum(level[counter] for level in levels))


def _throttling(lines: str | None) -> dict[Counter, int]:
    """From the text of a cgroup's cpu.stat: v2 counts in microseconds, v1 in nanoseconds. Empty: no quota can be set there."""
    said = numbers(lines, " ")
    throttled_ns = said.get("throttled_time", said.get("throttled_usec", -1) * 1000)
    if throttled_ns < 0:
        return {}
    return {
        Counter.THROTTLED_NS: throttled_ns,
        Counter.THROTTLED_PERIODS: said.get("nr_throttled", 0),
        Counter.QUOTA_PERIODS: said.get("nr_periods", 0),
    }
