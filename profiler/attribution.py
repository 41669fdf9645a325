"""Why the consumer waited: what all makers of batches were doing meanwhile, in nanoseconds that add up to the wait.

"What was the batch I waited for doing" misleads: a worker's hand-off starves while the same worker computes the next batch,
and decoding would look like hand-off. So each waited instant is shared out over everything that all makers did in it. Makers
that had nothing to do, since they are ahead or at the end of an epoch, explain nothing and are left out of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .events import STAGES
from .intervals import Intervals, Times, intersect, subtract, total, union
from .timeline import Columns, Timeline, Waits

Stages = dict[str, float | None]
Floats = NDArray[np.float64]


def stages(waited: Intervals, line: Timeline, n_workers: int) -> Stages:
    """Nanoseconds of `waited` by stage. They sum to its length; None: not told apart, its time is in `unexplained`.

    waited: when the consumer (or the device) stood still for input. n_workers: 0 where the consumer makes the batches itself;
    then nothing is handed over, and hand-off is a measured 0.
    """
    split: Stages = dict.fromkeys(STAGES)
    split["unexplained"] = float(total(waited))
    if line.startup is None:
        return split
    waited_later = subtract(waited, line.startup)
    drawing, rest = intersect(waited_later, line.sampler), subtract(waited_later, line.sampler)
    split["sampler"] = float(total(drawing))
    taking = _taking(line.waits, line.made) if n_workers else _NOTHING
    later = _shared_out(rest, taking, line)
    if n_workers == 0:
        later |= {"handoff": 0.0, "startup": 0.0}
    split |= later | {"startup": float(total(waited) - total(waited_later)) + (later["startup"] or 0.0)}
    explained = sum(ns or 0.0 for stage, ns in split.items() if stage != "unexplained")
    split["unexplained"] = max(0.0, total(waited) - explained)
    return split


STAMPS = 3
"""In each record of a batch."""
LOCKED_NS = 500_000
"""A stamp that finds the interpreter lock free takes microseconds; else up to the switch interval of 5 ms, a waiting thread."""

BUSY_SHARE = 0.7
"""Of one core, while makers are at work: less, and the interpreter is free too often to be what they wait for."""


class Taking(NamedTuple):
    """The ends of waits, in which a finished batch was taken over. Per nanosecond of it: what the consumer itself did."""

    start: Times
    end: Times
    computing: Floats
    queueing: Floats


_NO_TIMES, _NO_FLOATS = np.empty(0, dtype=np.int64), np.empty(0)
_NOTHING = Taking(_NO_TIMES, _NO_TIMES, _NO_FLOATS, _NO_FLOATS)


def _taking(waits: Waits, made: Columns) -> Taking:
    """From the last moment at which a batch was finished, or as long as the consumer was busy, if that is longer.

    While it computes in a wait it takes messages in, unpickles them, sends indices and frees the last batch: hand-off. Else it
    is blocked, and what the makers do then tells why.
    """
    finished = np.sort(made["end_ns"])
    last = np.searchsorted(finished, waits.got, side="right") - 1
    since = np.where(last >= 0, waits.got - finished[np.maximum(last, 0)], 0) if len(finished) else np.zeros_like(waits.got)
    length = waits.got - waits.asked
    cpu, runq = np.clip(waits.cpu, 0, length), np.clip(waits.runq, 0, length)
    runq = np.minimum(runq, length - cpu)
    taken = np.maximum(np.clip(since, 0, length), cpu + runq)
    per_ns = 1 / np.maximum(1, taken)
    return Taking(waits.got - taken, waits.got, cpu * per_ns, runq * per_ns)


class Piece(NamedTuple):
    """Stretches of time in which a maker was at one thing; per nanosecond of it the shares of each stage, which sum to 1."""

    start: Times
    end: Times
    shares: dict[str, Floats]


def pieces(made: Columns) -> Sequence[Piece]:
    """What makers did, batch by batch: stood in the queue for a core before it, made items, collated them."""
    items = made["items_ns"] - made["begin_ns"]
    cpu, runq = np.clip(made["items_cpu_ns"], 0, items), np.clip(made["items_runq_ns"], 0, items)
    runq = np.minimum(runq, items - cpu)
    blocked = items - cpu - runq
    computed_beside = np.where(_behind_the_lock(made), blocked, np.minimum(_computed_beside(made), blocked))
    collate = made["end_ns"] - made["items_ns"]
    collate_runq = np.clip(made["collate_runq_ns"], 0, collate)
    per_item_ns, per_collate_ns = 1 / np.maximum(1, items), 1 / np.maximum(1, collate)
    woke = np.maximum(0, made["wake_runq_ns"])
    return (
        Piece(made["begin_ns"] - woke, made["begin_ns"], {"core_shortage": np.ones(len(woke))}),
        Piece(
            made["begin_ns"],
            made["items_ns"],
            {
                "fetch": (blocked - computed_beside) * per_item_ns,
                "decode": (cpu + computed_beside) * per_item_ns,
                "core_shortage": runq * per_item_ns,
            },
        ),
        Piece(
            made["items_ns"],
            made["end_ns"],
            {"collate": (collate - collate_runq) * per_collate_ns, "core_shortage": collate_runq * per_collate_ns},
        ),
    )


def work_ns(made: Columns) -> Stages:
    """Nanoseconds of all makers by stage, whether the consumer waited meanwhile or not; None: not measured."""
    ns = dict.fromkeys(("fetch", "decode", "core_shortage", "collate"), 0.0)
    for piece in pieces(made):
        for stage, share in piece.shares.items():
            ns[stage] += float((share * (piece.end - piece.start)).sum())
    known = bool((made["items_runq_ns"] >= 0).all())
    return {**ns, "core_shortage": ns["core_shortage"] if known else None}


def lock_wait_ns(made: Columns) -> int:
    """Nanoseconds of all makers in which they were blocked because another one held the interpreter lock."""
    blocked = made["items_ns"] - made["begin_ns"] - made["items_cpu_ns"] - np.maximum(0, made["items_runq_ns"])
    return int(np.maximum(0, blocked)[_behind_the_lock(made)].sum())


def _computed_beside(made: Columns) -> Times:
    """CPU nanoseconds, a batch, of threads of libraries, in a worker process that waits for them."""
    return np.where(made["process_cpu_ns"] < 0, 0, np.maximum(0, made["process_cpu_ns"] - made["items_cpu_ns"]))


def _behind_the_lock(made: Columns) -> NDArray[np.bool_]:
    """Batches made by one of several threads of a process whose interpreter is never free.

    Then one thread computes at all times, and only one; what others read meanwhile holds nobody up. Known by sample: the stamps
    themselves give the lock away and have to get it back. Where cores are short rather than the lock, nothing is said: then who
    holds the lock stands in the queue for a core, and everybody seems to wait for the lock.
    """
    behind = np.zeros(len(made["pid"]), dtype=np.bool_)
    for pid in np.unique(made["pid"]).tolist():
        mine = made["pid"] == pid
        if len(np.unique(made["thread_id"][mine])) > 1 and _is_never_free({name: made[name][mine] for name in made}):
            behind |= mine
    return behind


def _is_never_free(made: Columns) -> bool:
    wall = made["items_ns"] - made["begin_ns"]
    cpu, runq = int(made["items_cpu_ns"].sum()), int(np.maximum(0, made["items_runq_ns"]).sum())
    active = total(union(np.column_stack((made["begin_ns"], made["end_ns"]))))
    waits_long = float(np.median(made["lock_ns"])) >= STAMPS * LOCKED_NS
    return waits_long and cpu >= BUSY_SHARE * active and int(wall.sum()) - cpu - runq >= runq


def _shared_out(waited: Intervals, taking: Taking, line: Timeline) -> Stages:
    """Goes along all edges; between two of them nothing changes. While no maker is at anything a batch, or the indices for one,
    are on their way; or the consumer is shutting the makers down, which will have to be started again.
    """
    made = pieces(line.made)
    times = (waited.ravel(), line.ending.ravel(), taking.start, taking.end)
    edges = np.unique(np.concatenate([*times, *(each[i] for each in made for i in (0, 1))]))
    if len(waited) == 0 or len(edges) < 2:
        return dict.fromkeys(("startup", "fetch", "decode", "core_shortage", "collate", "handoff"), 0.0)
    inside = np.diff(edges) * _at(edges, waited[:, 0], waited[:, 1])
    computing = _at(edges, taking.start, taking.end, taking.computing)
    queueing = _at(edges, taking.start, taking.end, taking.queueing)
    asked = inside * np.clip(1 - computing - queueing, 0, 1)
    active = sum(_at(edges, piece.start, piece.end) for piece in made)
    per_maker = np.where(active > 0.5, asked / np.maximum(1, active), 0.0)
    ns = dict.fromkeys(("fetch", "decode", "core_shortage", "collate"), 0.0)
    for piece in made:
        for stage, share in piece.shares.items():
            ns[stage] += float((_at(edges, piece.start, piece.end, share) * per_maker).sum())
    shutting_down = _at(edges, line.ending[:, 0], line.ending[:, 1]) > 0.5
    idle = np.where(active < 0.5, asked, 0.0)
    ns["startup"] = float(idle[shutting_down].sum())
    ns["core_shortage"] += float((inside * queueing).sum())
    known = bool((line.made["items_runq_ns"] >= 0).all())
    handoff = float((inside * computing).sum() + idle[~shutting_down].sum())
    return {**ns, "core_shortage": ns["core_shortage"] if known else None, "handoff": handoff}


def _at(edges: Times, starts: Times, ends: Times, heights: Floats | None = None) -> Floats:
    """Between each two edges: the sum of the heights (1 each) of those that are there."""
    heights = np.ones(len(starts)) if heights is None else heights
    rises = np.bincount(np.searchsorted(edges, starts), heights, len(edges))
    falls = np.bincount(np.searchsorted(edges, ends), heights, len(edges))
    return np.maximum(0.0, np.cumsum(rises - falls)[:-1])
