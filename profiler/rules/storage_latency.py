"""Reads wait for each answer, and more in flight would help."""

from __future__ import annotations

from ..result import Finding, Result
from ..units import duration, share
from . import _stall

CACHED = 0.95
"""Above it the bytes came from memory, and blocked time is something else than storage."""
MOST_READERS = 64
"""More than these are proposed by nobody on the strength of two rates."""


def judge(result: Result) -> Finding | None:
    if not _stall.is_main(result, "fetch") or _from_memory(result) or _stall.serves_one_at_a_time(result):
        return None
    blocked, part, workers = _stall.per_item(result, "blocked"), _stall.part_of_stall(result, "fetch"), _stall.n_workers(result)
    if blocked is None or part is None:
        return None
    readers = max(1, workers)
    proposed = max(2 * readers, min(_stall.workers_needed(result) or 0, MOST_READERS))
    emulated = " (emulated storage)" if result.storage.emulated else ""
    return Finding(
        kind="storage_latency",
        severity=_stall.severity(_stall.wall_share(result, "fetch")),
        verdict=f"Reads wait: the device idles while readers are blocked{emulated}.",
        because=f"{_stall.stall_in_words(result).capitalize()}; {share(part)} of that stall is blocked time, "
        f"{duration(blocked)} a sample, with {readers} reader{'s' if readers > 1 else ''} in flight.",
        try_next=f"More reads in flight: {_stall.more_workers(result, proposed)}. Readers that wait need no core of their own; "
        "if throughput then stays the same, the device behind them is the limit.",
        evidence=_stall.evidence(result) | {"fetch_part_of_stall": part, "readers": readers, "proposed": proposed},
        wall_share=_stall.wall_share(result, "fetch"),
    )


def _from_memory(result: Result) -> bool:
    return result.source.get("medium") in ("disk", "emulated") and (result.storage.cached_share or 0.0) > CACHED
