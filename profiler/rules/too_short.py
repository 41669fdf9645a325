"""Too few steady steps to judge; says how many are needed."""

from __future__ import annotations

from ..result import Finding, Result
from ..steady import MIN_STEADY_STEPS


def judge(result: Result) -> Finding | None:
    if result.verdict != "too_short":
        return None
    steady = result.steps - result.warmup_steps
    prefetch, workers = (int(result.loader.get(key, 0)) for key in ("prefetch_batches", "n_workers"))
    warmup = max(10, prefetch + workers)
    needed = warmup + MIN_STEADY_STEPS
    how = f": --steps {needed}, or more epochs" if result.scenario else ": more epochs, or more batches in one"
    return Finding(
        kind="too_short",
        severity="info",
        verdict=f"Too short to judge: {steady} steady steps, and {MIN_STEADY_STEPS} are needed.",
        because=f"{result.steps} steps ran, and the first {warmup} say nothing about the rate: they use up what lay ready.",
        try_next=f"Run at least {needed} steps{how}.",
        evidence={
            "steps": result.steps,
            "steady_steps": steady,
            "warmup_steps": warmup,
            "needed_steps": needed,
            "min_steady_steps": MIN_STEADY_STEPS,
        },
    )
