"""What single samples tell of the storage beneath: how long one waits, how many wait at once, and whether they wait in line.

Samples that are blocked at the same time either do not mind each other, or the later one also waits for the earlier. So the
blocked time of each is held against how long the one before it, of another maker, was still blocked when it began: in a device
that serves one at a time it grows by that very time (slope 1), in one that serves many at once it does not (slope 0).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .timeline import Columns

SERIAL_SLOPE = 0.6
MIN_MEETINGS = 40
"""Samples that began while another maker's was blocked: fewer say too little."""
MIN_BLOCKED_NS = 50_000
"""What is blocked for less than a sleep's own inaccuracy does not wait for storage."""


@dataclass(frozen=True)
class Requests:
    """Of samples that were recorded one by one and were blocked."""

    n: int
    """So many were."""
    blocked_ms_mean: float
    in_flight_mean: float
    """How many are blocked at once, while any is."""
    meetings: int
    """So many began while another maker's was blocked."""
    slope: float | None
    """None: too few meetings."""
    one_at_a_time: bool | None
    """Whether they wait in line, as for a disk with one head or a lock."""


def requests(items: Columns) -> Requests | None:
    """items: columns of `events.Item`; what blocks comes before what computes, as reads before decoding. None: none blocked."""
    whole = items["in_row"] == 1
    start, wall = items["start_ns"][whole], (items["end_ns"] - items["start_ns"])[whole]
    blocked = wall - items["cpu_ns"][whole] - np.maximum(0, items["runq_ns"][whole])
    maker = (items["pid"] << 32 | items["thread_id"])[whole]
    waits = blocked >= MIN_BLOCKED_NS
    if not waits.any():
        return None
    order = np.argsort(start[waits], kind="stable")
    start, blocked, maker = start[waits][order], blocked[waits][order], maker[waits][order]
    remaining = _remaining(start, start + blocked, maker)
    met = remaining > 0
    enough = int(met.sum()) >= MIN_MEETINGS and float(np.ptp(remaining[met])) > 0
    slope = float(np.polyfit(remaining[met], blocked[met], 1)[0]) if enough else None
    return Requests(
        n=len(start),
        blocked_ms_mean=float(blocked.mean()) / 1e6,
        in_flight_mean=float(blocked.sum()) / _covered(start, start + blocked),
        meetings=int(met.sum()),
        slope=slope,
        one_at_a_time=None if slope is None else slope >= SERIAL_SLOPE,
    )


def _remaining(start: NDArray[np.int64], end: NDArray[np.int64], maker: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of each, for how long another maker's was still blocked when it began, 0 if none was; the longest of them."""
    longest = np.zeros_like(start)
    for each in np.unique(maker).tolist():
        own = maker == each
        if own.all():
            break
        last = np.searchsorted(start[own], start[~own], side="right") - 1
        ends = np.where(last >= 0, end[own][np.maximum(last, 0)], 0)
        longest[~own] = np.maximum(longest[~own], ends - start[~own])
    return longest


def _covered(start: NDArray[np.int64], end: NDArray[np.int64]) -> int:
    reach = np.maximum.accumulate(end)
    before = np.concatenate(([start[0]], reach[:-1]))
    return int(np.maximum(0, reach - np.maximum(start, before)).sum())
