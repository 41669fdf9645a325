"""Sets of time: sorted, disjoint, half-open intervals as int64 arrays of shape (n, 2), in nanoseconds. Exact; no clock."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Intervals = NDArray[np.int64]
Times = NDArray[np.int64]


def union(intervals: ArrayLike) -> Intervals:
    """The set covered by any number of intervals in any order, overlapping or not. Empty and reversed ones vanish."""
    rows = _without_empty(np.asarray(intervals, dtype=np.int64).reshape(-1, 2))
    if (rows[1:, 0] > rows[:-1, 1]).all():  # recorded in order, as most are: a million need no sorting
        return rows
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    reach = np.maximum.accumulate(rows[:, 1])
    opens = np.concatenate(([True], rows[1:, 0] > reach[:-1]))
    last = np.concatenate((np.flatnonzero(opens)[1:] - 1, [len(rows) - 1]))
    return np.column_stack((rows[opens, 0], reach[last]))


def complement(inside: Intervals, start_ns: int, end_ns: int) -> Intervals:
    """What of [start, end) is not inside. `inside` must be a union."""
    edges = np.concatenate(([start_ns], np.clip(inside, start_ns, end_ns).ravel(), [end_ns]))
    return _without_empty(edges.reshape(-1, 2))


def intersect(a: Intervals, b: Intervals) -> Intervals:
    """What lies in both unions: walking along all their edges, where both are open."""
    edges = np.concatenate((a.ravel(), b.ravel()))
    order = np.argsort(edges, kind="stable")  # two sorted runs: merged, not sorted
    opens = np.where(order % 2 == 0, 1, -1)  # even places hold starts: both arrays are of even length
    both = np.flatnonzero(np.cumsum(opens) == 2)
    edges = edges[order]
    return _without_empty(np.column_stack((edges[both], edges[both + 1])))


def subtract(a: Intervals, b: Intervals) -> Intervals:
    """What lies in union `a` and not in union `b`."""
    if len(a) == 0 or len(b) == 0:
        return a
    return intersect(a, complement(b, int(a[0, 0]), int(a[-1, 1])))


def total(a: Intervals) -> int:
    """Nanoseconds covered by a union."""
    return int((a[:, 1] - a[:, 0]).sum())


def covered_before(a: Intervals, times: ArrayLike) -> Times:
    """For each time t, how many nanoseconds of union `a` lie before t. What lies in [s, e) is the difference at e and s."""
    t = np.asarray(times, dtype=np.int64)
    if len(a) == 0:
        return np.zeros_like(t)
    whole = np.concatenate(([0], np.cumsum(a[:, 1] - a[:, 0])))
    i = np.searchsorted(a[:, 0], t, side="right")
    begun = np.maximum(i - 1, 0)
    missing = np.where(i > 0, np.maximum(a[begun, 1] - t, 0), 0)
    return whole[i] - missing


def overlap(a: Intervals, starts: ArrayLike, ends: ArrayLike) -> Times:
    """For each interval [start, end), how many nanoseconds of union `a` lie in it. The intervals may overlap each other."""
    return covered_before(a, ends) - covered_before(a, starts)


def cut(times: ArrayLike, removed: Intervals) -> Times:
    """Times on a clock that stood still during `removed`: how the profiler's own work between epochs leaves the window."""
    t = np.asarray(times, dtype=np.int64)
    return t - covered_before(removed, t)


def _without_empty(rows: Intervals) -> Intervals:
    whole = rows[:, 1] > rows[:, 0]
    return rows if whole.all() else rows[whole]
