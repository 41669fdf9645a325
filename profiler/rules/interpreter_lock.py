"""Threads that should run side by side serialise on the interpreter lock."""

from __future__ import annotations

from ..result import Finding, Result
from ..units import share
from . import _stall


def judge(result: Result) -> Finding | None:
    if not result.lock_wait_s or not _stall.is_main(result, "decode", "core_shortage"):
        return None
    part, work = _stall.part_of_stall(result, "decode", "core_shortage"), result.work_s_by_stage
    if part is None or not work:
        return None
    of_work = result.lock_wait_s / sum(s or 0.0 for s in work.values())
    return Finding(
        kind="interpreter_lock",
        severity=_stall.severity(_stall.wall_share(result, "decode", "core_shortage")),
        verdict="Threads take turns: the interpreter lock lets one of them compute at a time.",
        because=f"{_stall.stall_in_words(result).capitalize()}; {share(part)} of that stall is computing, and of their time "
        f"the {_stall.n_workers(result)} threads spend {share(of_work)} waiting for the lock.",
        try_next="Worker processes, each of which has a lock of its own (--set loader=torch_workers "
        "--set loader.num_workers=2), or decoding by a library that gives the lock away. More threads cannot help.",
        evidence=_stall.evidence(result) | {"lock_wait_s": result.lock_wait_s, "lock_wait_part_of_work": of_work},
        wall_share=_stall.wall_share(result, "decode", "core_shortage"),
    )
