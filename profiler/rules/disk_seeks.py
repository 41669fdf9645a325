"""One device serves one request at a time; small random reads bound it."""

from __future__ import annotations

from ..result import Finding, Result
from ..units import count, duration, share
from . import _stall

DISK = (
    "Keep the data on an SSD or in memory (--set source=ssd, or ram), or pack samples into large files that are read in "
    "sequence."
)
LINE = (
    "If it is a disk: an SSD, memory, or large files that are read in sequence. If it is a lock, as round a file or a "
    "connection that all share: one of its own for each worker."
)


def judge(result: Result) -> Finding | None:
    if not _stall.is_main(result, "fetch") or not _stall.serves_one_at_a_time(result):
        return None
    part, rate = _stall.part_of_stall(result, "fetch"), result.throughput_samples_per_s.steady
    if part is None or not rate:
        return None
    emulated = " (emulated)" if result.storage.emulated else ""
    if _stall.has_one_head(result):
        verdict = f"The disk is what the device waits for: it moves its head for every sample{emulated}."
        served, advice = "the disk serves one at a time", DISK
    else:
        verdict = "Samples wait in line: what they come from serves one at a time, as a disk's head or a lock does."
        served, advice = f"samples that are read at once wait for each other ({_seen(result)})", LINE
    return Finding(
        kind="disk_seeks",
        severity=_stall.severity(_stall.wall_share(result, "fetch")),
        verdict=verdict,
        because=f"{_stall.stall_in_words(result).capitalize()}; {share(part)} of that stall is blocked in reads, and "
        f"{served}: {count(rate)} reads/s, {duration(1e9 / rate)} each.",
        try_next=f"More workers or prefetching cannot help. {advice}",
        evidence=_stall.evidence(result)
        | {"fetch_part_of_stall": part, "reads_per_s": rate, "blocked_samples": result.blocked_samples},
        wall_share=_stall.wall_share(result, "fetch"),
    )


def _seen(result: Result) -> str:
    """The measured ground."""
    blocked = result.blocked_samples or {}
    return f"each by {share(blocked.get('slope') or 0.0)} of the time that another one still takes"
