"""The steady input stall is below 5 %: faster loading gains at most its share."""

from __future__ import annotations

from ..result import Finding, Result
from ..units import share, speedup
from . import _stall

WORDS = {
    "outside_loop": "time outside the loop (validation, checkpoints)",
    "copy": "copies to the device",
    "sync": "host and device taking turns at synchronising calls",
    "host": "the loop's own host code between steps",
    "input": "start-up of the loader and its first batches",
}


def judge(result: Result) -> Finding | None:
    if result.verdict != "not_input_bound" or result.headroom_max_speedup is None:
        return None
    hidden = ""
    wait, stall = result.input_wait_share, result.input_stall_share
    if wait is not None and stall is not None and wait > stall + 0.05:
        hidden = f"; the host waits {share(wait)} of the time for batches, while the device still works"
    return Finding(
        kind="not_input_bound",
        severity="info",
        verdict="Not input-bound: the device has its batches in time.",
        because=f"{_stall.stall_in_words(result).capitalize()}{hidden}.",
        try_next=_next(result),
        evidence=_stall.evidence(result)
        | {"input_wait_share": result.input_wait_share, "idle_by_cause": dict(result.idle_by_cause)},
    )


def _next(result: Result) -> str:
    """Where the idle time is, if there is any worth looking at."""
    gain = f"Leave the loader as it is: faster loading can gain at most {speedup(result.headroom_max_speedup or 1.0)}."
    causes = {cause: part for cause, part in result.idle_by_cause.items() if part and cause in WORDS}
    if not causes or max(causes.values()) < 0.05:
        return gain
    cause = max(causes, key=lambda name: causes[name])
    return f"{gain} What idles the device most is {WORDS[cause]}: {share(causes[cause])} of the wall time."
