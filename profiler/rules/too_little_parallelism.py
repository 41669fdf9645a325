"""The loader could do more at once and has the cores, or its items wait: more workers raise throughput (0 workers included)."""

from __future__ import annotations

import math

from ..result import Finding, Result
from ..units import count
from . import _stall


def judge(result: Result) -> Finding | None:
    if result.verdict != "input_bound" or not _making_is_main(result) or _waits_in_line(result):
        return None
    workers, proposed = _stall.n_workers(result), _proposed(result)
    if proposed is None or proposed <= workers:
        return None
    who = "1 worker makes" if workers == 1 else f"{workers} workers make"
    making = "batches are made in the training process, one after another" if workers == 0 else f"{who} batches"
    return Finding(
        kind="too_little_parallelism",
        severity=_stall.severity(_stall.wall_share(result, *_MAKING)),
        verdict="Too little parallelism: loading and training take turns."
        if workers == 0
        else f"Too little parallelism: {who} fewer samples than the device takes.",
        because=f"{_stall.stall_in_words(result).capitalize()}; {making}: {_rates(result)}; "
        f"{_stall.per_item_in_words(result)}{_stall.neighbours_in_words(result)}.",
        try_next=_stall.more_workers(result, proposed)
        + (". Already one worker overlaps loading with training." if workers == 0 else "."),
        evidence=_stall.evidence(result) | {"proposed": proposed},
        wall_share=_stall.wall_share(result, *_MAKING),
    )


_MAKING = ("fetch", "decode", "collate", "core_shortage")


def _making_is_main(result: Result) -> bool:
    part = _stall.part_of_stall(result, *_MAKING)
    return part is not None and part >= _stall.MAIN


def _waits_in_line(result: Result) -> bool:
    """More makers would only queue for a disk that serves one at a time."""
    return _stall.serves_one_at_a_time(result) and _stall.is_main(result, "fetch")


def _proposed(result: Result) -> int | None:
    """Workers that the demand needs; those that compute are bounded by the cores, those that wait are not."""
    needed = _stall.workers_needed(result)
    if needed is None:
        return None
    blocked, cpu = _stall.per_item(result, "blocked"), _stall.per_item(result, "cpu")
    cores = _stall.usable_cores(result)
    if cores is None or blocked is None or not cpu:
        return needed
    return min(needed, max(1, math.floor(cores * (blocked + cpu) / cpu)))


def _rates(result: Result) -> str:
    capacity, demand = count(result.capacity_samples_per_s or 0), count(result.demand_samples_per_s or 0)
    return f"that is {capacity} samples/s, and the device could take {demand}"
