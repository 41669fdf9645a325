"""Worker creation or warm-up at each epoch, or once, is a material part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..result import Finding, Result
from ..units import count, duration, share
from . import _stall

MATERIAL = 0.1
"""Of the wall time: a run of some minutes starts its workers once in less."""


def judge(result: Result) -> Finding | None:
    """Judged by totals, of however short a run: a longer one may pay it again in each epoch."""
    part = result.input_wait_by_stage.get("startup")
    if not part or part < MATERIAL or not _stall.n_workers(result):
        return None
    epochs = [epoch["startup"] for epoch in result.epochs_detail]
    restarted = sum(bool(epoch["workers_started"]) for epoch in epochs)
    return Finding(
        kind="worker_startup",
        severity=_stall.severity(part),
        verdict="Starting workers takes a material part of the time"
        + (f": they are started in each of {count(restarted)} epochs." if restarted > 1 else "."),
        because=f"Start-up and shutting down take {share(part)} of the wall time{_slowest(epochs)}.",
        try_next=_next(result, restarted),
        evidence={"startup_wait_share": part, "startup_s": result.startup_s, "epochs_with_a_start": restarted},
        wall_share=result.input_stall_by_stage.get("startup") or part,
    )


def _slowest(epochs: list[Mapping[str, Any]]) -> str:
    known = [epoch for epoch in epochs if epoch["workers_started"]]
    if not known:
        return ""
    worst = max(known, key=lambda epoch: float(epoch["ready_at_ms"]))
    process = "" if worst["process_ms"] is None else f"process and imports {duration(worst['process_ms'] * 1e6)}, "
    ready = duration(worst["ready_at_ms"] * 1e6)
    return f"; a worker is ready {ready} after iter() ({process}worker_init_fn {duration(worst['init_ms'] * 1e6)})"


def _next(result: Result, restarted: int) -> str:
    keep = "persistent_workers: true keeps them from epoch to epoch. " if restarted > 1 else ""
    return (
        f"{keep}Make a start cheaper: fewer workers, less work in worker_init_fn, fewer imports at the top of the script, no "
        "large objects in the dataset, which are pickled for each worker where they are spawned."
    )
