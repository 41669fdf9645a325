"""One device serves one request at a time; small random reads bound it."""

from __future__ import annotations

from ..result import Finding, Result
from ..units import count, duration, share
from . import _stall


def judge(result: Result) -> Finding | None:
    if not _stall.is_main(result, "fetch") or not _stall.serves_one_at_a_time(result):
        return None
    part, rate = _stall.part_of_stall(result, "fetch"), result.throughput_samples_per_s.steady
    if part is None or not rate:
        return None
    emulated = " (emulated)" if result.storage.emulated else ""
    return Finding(
        kind="disk_seeks",
        severity=_stall.severity(_stall.wall_share(result, "fetch")),
        verdict=f"The disk is what the device waits for: it moves its head for every sample{emulated}.",
        because=f"{_stall.stall_in_words(result).capitalize()}; {share(part)} of that stall is blocked in reads, and the disk "
        f"serves one at a time: {count(rate)} reads/s, {duration(1e9 / rate)} each.",
        try_next="More workers or prefetching cannot help. Keep the data on an SSD or in memory (--set source=ssd, or ram), or "
        "pack samples into large files that are read in sequence.",
        evidence=_stall.evidence(result) | {"fetch_part_of_stall": part, "reads_per_s": rate},
        wall_share=_stall.wall_share(result, "fetch"),
    )
