"""One device serves one request at a time; small random reads bound it."""

from __future__ import annotations

from ..result import Finding, Result
from ..units import duration, share
from . import _stall


def judge(result: Result) -> Finding | None:
    if not _stall.is_main(result, "fetch") or _stall.from_memory(result) or not _stall.one_at_a_time(result):
        return None
    blocked, part, readers = _stall.per_item(result, "blocked"), _stall.part_of_stall(result, "fetch"), _readers(result)
    if blocked is None or part is None:
        return None
    emulated = " (emulated storage)" if result.storage.emulated else ""
    turns = "one reader waits for each seek" if readers == 1 else f"{readers} readers take turns at it"
    return Finding(
        kind="disk_seeks",
        severity=_stall.severity(_stall.wall_share(result, "fetch")),
        verdict=f"The disk seeks: it serves one small read at a time{emulated}.",
        because=f"{_stall.stall_in_words(result).capitalize()}; {share(part)} of that stall is blocked time, "
        f"{duration(blocked)} a sample: {turns}.",
        try_next=_next(result),
        evidence=_stall.evidence(result) | {"fetch_part_of_stall": part, "readers": readers},
        wall_share=_stall.wall_share(result, "fetch"),
    )


def _readers(result: Result) -> int:
    return max(1, _stall.n_workers(result))


def _next(result: Result) -> str:
    overlap = "" if _stall.n_workers(result) else "A worker process reads while the device works, so try one first. "
    return (
        f"{overlap}More readers than that cannot help. Read in long runs instead of here and there: pack samples into large "
        "files and shuffle what was read; or keep them where nothing seeks, on an SSD or in memory (source ssd, or ram)."
    )
