"""Collate inside the workers (or the loop) dominates."""

from __future__ import annotations

from ..result import Finding, Result
from ..units import duration, share
from . import _stall


def judge(result: Result) -> Finding | None:
    if not _stall.is_main(result, "collate"):
        return None
    part, batches = _stall.part_of_stall(result, "collate"), sum(worker["batches"] for worker in result.workers or ())
    if part is None or not batches or not result.work_s_by_stage:
        return None
    each_ns = (result.work_s_by_stage["collate"] or 0.0) / batches * 1e9
    return Finding(
        kind="collate",
        severity=_stall.severity(_stall.wall_share(result, "collate")),
        verdict="Making one batch of the samples (collate) is what the device waits for.",
        because=f"{_stall.stall_in_words(result).capitalize()}; {share(part)} of that stall is collate, "
        f"{duration(each_ns)} a batch.",
        try_next="Let collate_fn only stack: pad, convert and normalise in each sample or on the device, keep samples small "
        "(uint8), and write into one array that was made before in place of copying twice.",
        evidence=_stall.evidence(result) | {"collate_part_of_stall": part, "collate_ns_per_batch": each_ns},
        wall_share=_stall.wall_share(result, "collate"),
    )
