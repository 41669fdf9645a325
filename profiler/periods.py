"""Work that a loop does in every so many steps only: logging, a checkpoint, a small validation. Pure arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LEAST_TIMES, LEAST_LONGER_NS = 2.0, 1_000_000
"""A long step takes so many times the median one, and so much longer: less is noise."""
LEAST_LONG, MOST_OFTEN = 3, 2
"""Fewer long steps show no period; every second one is the oftenest, as else the long ones are the median."""
SAME_SHARE = 0.8
"""So many of the distances between long steps must be equal: an epoch's end may fall between two."""


def period(step_ns: NDArray[np.int64], wall_ns: int) -> dict[str, Any] | None:
    """every_steps, longer_ms (the median long step beyond the median step) and share (of the wall time, beyond the median).

    step_ns: of each step, in order, none left out, how long the loop was busy with its batch. None: nothing recurs.
    """
    if len(step_ns) == 0:
        return None
    usual = float(np.median(step_ns))
    long = np.flatnonzero(step_ns > max(LEAST_TIMES * usual, usual + LEAST_LONGER_NS))
    if len(long) < LEAST_LONG:
        return None
    distances = np.diff(long)
    every = int(np.median(distances))
    if every < MOST_OFTEN or np.mean(distances == every) < SAME_SHARE:
        return None
    beyond = step_ns[long] - usual
    return {"every_steps": every, "longer_ms": float(np.median(beyond)) / 1e6, "share": float(beyond.sum()) / wall_ns}
