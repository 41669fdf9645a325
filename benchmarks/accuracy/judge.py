"""result.json of a cell against what was injected. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from benchmarks.accuracy.grid import Cell

WAIT_SHARE = 0.05
"""Of wall: a shorter wait has no cause worth naming, and is not judged."""
RATIO_POINTS, RATIO_POINTS_BUSY = 0.03, 0.06
"""Off in the ratio of waiting to computing; the latter where more makers compute than there are cores."""
UNEXPLAINED_MEDIAN, UNEXPLAINED_MOST = 0.03, 0.08
"""Of wall."""
SUM_ERROR = 1e-6
DISTURBED_SHARE = 0.25
"""Of the usable cores taken by others: what is wrong then may be their doing."""
STOLEN_SHARE = 0.02
"""Of the usable cores taken by a hypervisor: to a thread that is neither computing nor queueing, and so seems blocked."""

Verdict = Literal["ok", "WRONG", "disturbed"]


@dataclass(frozen=True)
class Judged:
    """One run of one cell."""

    cell: Cell
    expected: tuple[str, ...]
    verdict: Verdict
    problems: tuple[str, ...]
    """What is wrong."""
    wall_s: float
    wait_share: float
    """Of wall, with start-up."""
    found: str | None
    """The largest stage of the wait; None: it is too short to be judged."""
    found_share: float | None
    """Of the wait that was asked about: all of it for slow_start, for others what comes after start-up."""
    unexplained_share: float | None
    """Of wall."""
    work_share: float | None
    """fetch / (fetch + decode) of the work."""
    foreign_share: float | None
    stolen_share: float | None

    @property
    def others_share(self) -> float:
        """Taken by other processes and machines, of the usable cores; without the hogs that belong to a cell."""
        return (0.0 if self.cell.cause == "hogs" else self.foreign_share or 0.0) + (self.stolen_share or 0.0)


def judged(cell: Cell, result: Mapping[str, Any], cores: int, stolen: float | None = None) -> Judged:
    """stolen: of the usable cores, by a hypervisor; None: not known."""
    found, found_share = largest(cell, result["input_wait_by_stage"])
    unexplained, work = result["input_wait_by_stage"]["unexplained"], work_share(result)
    expected = cell.expected(cores)
    problems = [*_stage(expected, found), *_sums(result), *_healthy(expected, result), *_ratio(cell, work, cores)]
    if unexplained is not None and unexplained > UNEXPLAINED_MOST:
        problems.append(f"unexplained is {unexplained:.1%} of wall")
    foreign = result["foreign_cpu_share"]
    return Judged(
        cell=cell,
        expected=expected,
        verdict="ok" if not problems else "disturbed" if _is_disturbed(cell, foreign, stolen) else "WRONG",
        problems=tuple(problems),
        wall_s=result["wall_s"],
        wait_share=result["input_wait_share"],
        found=found,
        found_share=found_share,
        unexplained_share=unexplained,
        work_share=work,
        foreign_share=foreign,
        stolen_share=stolen,
    )


def failed(cell: Cell, cores: int, why: str) -> Judged:
    """A cell that could not be measured."""
    return Judged(cell, cell.expected(cores), "WRONG", (why,), 0.0, 0.0, None, None, None, None, None, None)


def _is_disturbed(cell: Cell, foreign: float | None, stolen: float | None) -> bool:
    return (cell.cause != "hogs" and (foreign or 0.0) > DISTURBED_SHARE) or (stolen or 0.0) > STOLEN_SHARE


def largest(cell: Cell, by_stage: Mapping[str, float | None]) -> tuple[str | None, float | None]:
    """The largest stage and its share. Starting worker processes takes long and is no fault of the cause: it is left out,
    but where it is the cause. (None, None) where the rest is at most 5 % of wall."""
    asked = {stage: share or 0.0 for stage, share in by_stage.items() if stage != "startup" or cell.cause == "slow_start"}
    whole = sum(asked.values())
    if whole <= WAIT_SHARE:
        return None, None
    stage = max(asked, key=lambda each: asked[each])
    return stage, asked[stage] / whole


def work_share(result: Mapping[str, Any]) -> float | None:
    """fetch / (fetch + decode) of what the makers did, whether anybody waited for it or not."""
    work = result["work_s_by_stage"] or {}
    fetch, decode = work.get("fetch"), work.get("decode")
    return fetch / (fetch + decode) if fetch is not None and decode is not None and fetch + decode > 0 else None


def _stage(expected: Sequence[str], found: str | None) -> list[str]:
    if not expected:
        return []
    if found is None:
        return [f"the wait is under {WAIT_SHARE:.0%} of wall, and {expected[0]} was injected"]
    return [] if found in expected else [f"found {found}"]


def _healthy(expected: Sequence[str], result: Mapping[str, Any]) -> list[str]:
    return ["healthy, and called input_bound"] if not expected and result["verdict"] == "input_bound" else []


def _ratio(cell: Cell, work: float | None, cores: int) -> list[str]:
    if cell.work_share is None:
        return []
    if work is None:
        return ["the work was not told apart"]
    off = work - cell.work_share
    return (
        [f"fetch is {off:+.1%} off in the work"]
        if abs(off) > (RATIO_POINTS if cell.workers <= cores else RATIO_POINTS_BUSY)
        else []
    )


def _sums(result: Mapping[str, Any]) -> list[str]:
    problems = []
    for name in ("wait", "stall"):
        parts, whole = result[f"input_{name}_by_stage"], result[f"input_{name}_share"]
        if whole is not None and abs(sum(share or 0.0 for share in parts.values()) - whole) > SUM_ERROR:
            problems.append(f"the stages of the {name} do not sum to it")
    return problems


def unexplained_median(rows: Sequence[Judged]) -> float | None:
    """Of the undisturbed ones, of wall."""
    known = [row.unexplained_share for row in rows if row.verdict != "disturbed" and row.unexplained_share is not None]
    return median(known) if known else None
