"""What background readings say of a window: memory at its largest, and which shares of the time something held threads up.

A total that only grows is read off at both ends of the window, in between two readings on the straight line through them, and
as far as there are readings. What was not measured is None.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .events import Counter

Columns = Mapping[str, NDArray[np.int64]]
"""The fields of `events.Count`, one array each, in any order of rows."""

MOST_PROCESSES = 64
"""Described one by one: workers that are started anew in each epoch are many. The largest of them are kept."""
GROWTH_READINGS = 5
"""Fewer in the second half of the window tell no trend."""


class Series(NamedTuple):
    """Readings of one counter in their order, one an instant."""

    at_ns: NDArray[np.int64]
    value: NDArray[np.int64]


class Grown(NamedTuple):
    """What a total grew by, and in what time."""

    amount: float
    wall_ns: float


def summary(counts: Columns, start_ns: int, end_ns: int, usable_cores: float | None) -> dict[str, Any]:
    """JSON values. usable_cores: cores' worth of time that the tree could get, a quota counted in."""
    window = _Window(counts, start_ns, end_ns)
    return {
        "memory": _memory(window),
        "processes": _processes(window),
        "throttled_share": _throttled_share(window),
        "throttled_periods_share": _part(window.grown(Counter.THROTTLED_PERIODS), window.grown(Counter.QUOTA_PERIODS)),
        "foreign_cpu_share": _foreign_cpu_share(window, usable_cores),
        "pressure": {
            "cpu": _share_us(window.grown(Counter.CPU_PRESSURE_US)),
            "io": _share_us(window.grown(Counter.IO_PRESSURE_US)),
            "memory": _share_us(window.grown(Counter.MEMORY_PRESSURE_US)),
        },
        "device": _device(window),
        "gpu": _gpu(window),
    }


class _Window:
    """The rows, counter by counter, and the time that is asked about."""

    def __init__(self, counts: Columns, start_ns: int, end_ns: int) -> None:
        self.start_ns, self.end_ns = start_ns, end_ns
        order = np.lexsort((counts["pid"], counts["at_ns"], counts["counter"]))
        self._at, self._pid, self._value = (counts[name][order] for name in ("at_ns", "pid", "value"))
        self._counter = counts["counter"][order]

    def _rows(self, counter: Counter) -> slice:
        first, last = np.searchsorted(self._counter, (counter, counter + 1))
        return slice(int(first), int(last))

    def by_pid(self, counter: Counter) -> Iterator[tuple[int, Series]]:
        """Of each process its readings within the window."""
        rows = self._rows(counter)
        inside = (self._at[rows] >= self.start_ns) & (self._at[rows] <= self.end_ns)
        at, pid, value = (column[rows][inside] for column in (self._at, self._pid, self._value))
        order = np.argsort(pid, kind="stable")
        pids, firsts = np.unique(pid[order], return_index=True)
        for each, own in zip(pids.tolist(), np.split(order, firsts[1:]), strict=False):
            yield each, Series(at[own], value[own])

    def total(self, counter: Counter) -> Series:
        """The sum over all processes, at each instant within the window."""
        rows = self._rows(counter)
        at, firsts = np.unique(self._at[rows], return_index=True)
        value = np.add.reduceat(self._value[rows], firsts) if len(firsts) else self._value[rows]
        inside = (at >= self.start_ns) & (at <= self.end_ns)
        return Series(at[inside], value[inside])

    def grown(self, counter: Counter) -> Grown | None:
        """Of a total that is one for all: what it grew by within the window. None: fewer than two readings around it."""
        rows = self._rows(counter)
        at, value = self._at[rows], self._value[rows]
        if len(at) < 2:
            return None
        start, end = np.clip((self.start_ns, self.end_ns), at[0], at[-1]).tolist()
        before, after = np.interp((start - at[0], end - at[0]), at - at[0], (value - value[0]).astype(float)).tolist()
        return Grown(max(0.0, after - before), end - start) if end > start else None


def _memory(window: _Window) -> dict[str, Any]:
    """Of the tree. PSS counts shared pages once; the sum of RSS counts them once a process."""
    pss, rss = window.total(Counter.PSS_BYTES), window.total(Counter.RSS_BYTES)
    descriptors = window.total(Counter.DESCRIPTORS)
    return {
        "pss_bytes_max": _max(pss),
        "uss_sum_bytes_max": _max(window.total(Counter.USS_BYTES)),
        "rss_sum_bytes_max": _max(rss),
        "shm_bytes_max": _max(window.total(Counter.SHM_BYTES)),
        "descriptors_max": _max(descriptors),
        "major_faults": _sum_of_growth(window, Counter.MAJOR_FAULTS),
        "pss_growth_bytes_per_s": _growth_per_s(pss, window),
        "rss_growth_bytes_per_s": _growth_per_s(rss, window),
        "descriptors_growth_per_s": _growth_per_s(descriptors, window),
    }


def _processes(window: _Window) -> dict[str, dict[str, Any]]:
    """Of each process by its number, those that grew largest; the tree's root is among them, as any other."""
    rss, uss = (dict(window.by_pid(counter)) for counter in (Counter.RSS_BYTES, Counter.USS_BYTES))
    pss, descriptors = (dict(window.by_pid(counter)) for counter in (Counter.PSS_BYTES, Counter.DESCRIPTORS))
    threads, cores = (dict(window.by_pid(counter)) for counter in (Counter.THREADS, Counter.AFFINITY_CORES))
    largest = sorted(rss.keys() | threads.keys(), key=lambda pid: (-(_max(rss.get(pid)) or 0), pid))
    return {
        str(pid): {
            "rss_bytes_max": _max(rss.get(pid)),
            "uss_bytes_max": _max(uss.get(pid)),
            "pss_bytes_max": _max(pss.get(pid)),
            "uss_growth_bytes_per_s": _growth_per_s(uss.get(pid), window),
            "descriptors_max": _max(descriptors.get(pid)),
            "threads_max": _max(threads.get(pid)),
            "affinity_cores_min": int(cores[pid].value.min()) if pid in cores else None,
        }
        for pid in sorted(largest[:MOST_PROCESSES])
    }


def _throttled_share(window: _Window) -> float | None:
    """Of the time in which run queues ran or were not let run, what a quota held them for: stopped / (stopped + CPU time).

    The kernel counts throttled time a run queue, that is a core, so wall time is no measure for it: one thread under a quota
    of half a core is stopped half the time on any number of cores, and that is 0.5. Other processes of the cgroup are
    stopped too, but their CPU time is not counted here. 0: there is a cgroup that could throttle, and it never did.
    """
    throttled, used = window.grown(Counter.THROTTLED_NS), window.grown(Counter.TREE_CPU_NS)
    if throttled is None or used is None:
        return None
    return throttled.amount / (throttled.amount + used.amount) if throttled.amount else 0.0


def _foreign_cpu_share(window: _Window, usable_cores: float | None) -> float | None:
    """What processes outside of the tree took of the usable cores, 0..1 (clamped: ticks are coarse)."""
    busy, own = window.grown(Counter.BUSY_CPU_NS), window.grown(Counter.TREE_CPU_NS)
    if busy is None or own is None or not usable_cores:
        return None
    return min(1.0, max(0.0, (busy.amount - own.amount) / (usable_cores * busy.wall_ns)))


def _device(window: _Window) -> dict[str, Any]:
    """The disk beneath the samples, whoever read: the mean time of a read is what iostat calls r_await."""
    reads, size = window.grown(Counter.DEVICE_READS), window.grown(Counter.DEVICE_READ_BYTES)
    reading, in_flight = window.grown(Counter.DEVICE_READ_NS), window.total(Counter.DEVICE_IN_FLIGHT)
    per_read_ns = _part(reading, reads)
    return {
        "reads_per_s": None if reads is None else reads.amount / reads.wall_ns * 1e9,
        "read_bytes_per_s": None if size is None else size.amount / size.wall_ns * 1e9,
        "read_ms_mean": None if per_read_ns is None else per_read_ns / 1e6,
        "in_flight_mean": _mean(in_flight),
    }


def _gpu(window: _Window) -> dict[str, dict[str, Any]]:
    """Of each GPU by its number."""
    busy, memory = (dict(window.by_pid(c)) for c in (Counter.GPU_UTILIZATION_PERCENT, Counter.GPU_MEMORY_BYTES))
    return {
        str(gpu): {
            "utilization_percent_mean": _mean(busy.get(gpu)),
            "memory_bytes_max": _max(memory.get(gpu)),
        }
        for gpu in sorted(busy.keys() | memory.keys())
    }


def _max(series: Series | None) -> int | None:
    return int(series.value.max()) if series is not None and len(series.value) else None


def _mean(series: Series | None) -> float | None:
    return float(series.value.mean()) if series is not None and len(series.value) else None


def _part(some: Grown | None, of: Grown | None) -> float | None:
    return None if some is None or of is None or not of.amount else some.amount / of.amount


def _share_us(grown: Grown | None) -> float | None:
    """Of wall time. Clamped: the kernel adds up a little late."""
    return None if grown is None else min(1.0, grown.amount * 1000 / grown.wall_ns)


def _sum_of_growth(window: _Window, counter: Counter) -> int | None:
    """Of all processes, each from its own first reading to its last."""
    grown = [int(series.value[-1] - series.value[0]) for _, series in window.by_pid(counter)]
    return sum(grown) if grown else None


def _growth_per_s(series: Series | None, window: _Window) -> float | None:
    """Slope of the least-squares line through the second half of the window: in the first, workers start and caches fill."""
    if series is None:
        return None
    late = series.at_ns >= (window.start_ns + window.end_ns) // 2
    if late.sum() < GROWTH_READINGS:
        return None
    at_s = (series.at_ns[late] - series.at_ns[late][0]) / 1e9
    at_s, value = at_s - at_s.mean(), series.value[late] - series.value[late].mean()
    return float((at_s * value).sum() / (at_s * at_s).sum())
