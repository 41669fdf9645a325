"""Serialising, pipe, pinning or unpickling between processes dominates; fewer workers or tensors help."""

from __future__ import annotations

from ..result import Finding, Result
from ..units import duration, share
from . import _stall


def judge(result: Result) -> Finding | None:
    """More workers would hand over no faster: there is one consumer, and it takes one batch at a time."""
    if not _stall.is_main(result, "handoff"):
        return None
    part, took = _stall.part_of_stall(result, "handoff"), result.handoff_latency_ms
    if part is None:
        return None
    wall_share = _stall.wall_share(result, "handoff")
    a_step_ns = wall_share * result.wall_s * 1e9 / max(1, result.steps)
    fewer = f"fewer workers ({_stall.n_workers(result)} -> 1, or 0)" if _stall.n_workers(result) > 1 else "no workers (0)"
    return Finding(
        kind="handoff",
        severity=_stall.severity(wall_share),
        verdict="Handing batches over between processes is what the device waits for.",
        because=f"{_stall.stall_in_words(result).capitalize()}; {share(part)} of that stall is hand-off: "
        f"{duration(a_step_ns)} a step"
        f"{_stall.neighbours_in_words(result)}.",
        try_next="Hand over tensors, which go through shared memory; numpy arrays and other objects are pickled through a "
        f"pipe. Send less: a smaller type (uint8), no copies of what the consumer knows. Else {fewer}.",
        evidence=_stall.evidence(result)
        | {"handoff_part_of_stall": part, "handoff_latency_ms_p50": None if took is None else took.p50},
        wall_share=wall_share,
    )
