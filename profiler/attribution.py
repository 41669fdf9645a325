"""Why the consumer waited: what all makers of batches were doing meanwhile, in nanoseconds that add up to the wait.

"What was the batch I waited for doing" misleads: a worker's hand-off starves while the same worker computes the next batch,
and decoding would look like hand-off. So each waited instant is shared out over everything that all makers did in it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .events import STAGES
from .intervals import Intervals, intersect, overlap, subtract, total

Columns = dict[str, NDArray[np.int64]]
Stages = dict[str, float | None]


def stages(waited: Intervals, startup: Intervals | None, made: Columns, n_workers: int) -> Stages:
    """Nanoseconds of `waited` by stage. They sum to its length; None: not told apart, its time is in `unexplained`.

    waited: when the consumer (or the device) stood still for input. n_workers: 0 where the consumer makes the batches itself;
    then nothing is handed over, and hand-off is a measured 0. With workers hand-off and sampler are not recorded yet.
    """
    split: Stages = dict.fromkeys(STAGES)
    split["unexplained"] = float(total(waited))
    if startup is None:
        return split
    split["startup"] = float(total(intersect(waited, startup)))
    split |= _making(subtract(waited, startup), made, max(1, n_workers))
    if n_workers == 0:
        split["handoff"] = 0.0
    explained = sum(ns or 0.0 for stage, ns in split.items() if stage != "unexplained")
    split["unexplained"] = max(0.0, total(waited) - explained)
    return split


def _making(waited: Intervals, made: Columns, n_makers: int) -> Stages:
    """Nanoseconds that the makers spent in each state while the consumer waited, each maker's time counting 1 / n_makers."""
    items, items_cpu, items_runq = _section(waited, made, "begin_ns", "items_ns", "items")
    collate, _, collate_runq = _section(waited, made, "items_ns", "end_ns", "collate")
    runq_known = bool((made["items_runq_ns"] >= 0).all())
    return {
        "fetch": float((items - items_cpu - items_runq).sum()) / n_makers,
        "decode": float(items_cpu.sum()) / n_makers,
        "collate": float((collate - collate_runq).sum()) / n_makers,
        "core_shortage": float((items_runq + collate_runq).sum()) / n_makers if runq_known else None,
    }


def _section(waited: Intervals, made: Columns, start: str, end: str, name: str) -> tuple[NDArray[np.float64], ...]:
    """Of one section of each batch: its waited time, and the CPU and run-queue parts of it, taken as spread evenly over it."""
    wall = made[end] - made[start]
    cpu = np.clip(made[f"{name}_cpu_ns"], 0, wall)
    runq = np.clip(made[f"{name}_runq_ns"], 0, wall - cpu)
    inside = overlap(waited, made[start], made[end]).astype(np.float64)
    per_ns = inside / np.maximum(1, wall)
    return inside, cpu * per_ns, runq * per_ns
