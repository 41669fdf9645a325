"""A traced script's loops told apart: each is a run of its own, and one of them is what the script is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .events import LEARNING, Kind
from .intervals import Intervals, intersect, total, union
from .run import Outcome, Run
from .timeline import timeline

Table = Mapping[str, NDArray[np.int64]]
ALL = -1
"""Rows of no loop: the profiler's own."""


def split(run: Run) -> list[Run]:
    """One run for each loop that was iterated, in the order in which they began. Empty: a scenario's run, which has one."""
    began = [int(loop["loop"]) for loop in run.header.loops]
    seen = set(run.of(Kind.ITER)["loop"].tolist())
    return [_of(run, loop) for loop in began if loop in seen]


def chosen(run: Run) -> Run:
    """What reports draw: a scenario's run, or of a script the loop that it is about."""
    loops = split(run)
    return busiest(loops) if loops else run


def number(loop: Run) -> int:
    """Of a run that was split off."""
    return int(loop.header.loops[0]["loop"])


def name(entry: Mapping[str, Any]) -> str:
    """What a report calls a loop: the file and line on which it is iterated."""
    return f"{str(entry['file']).replace(chr(92), '/').rpartition('/')[2]}:{entry['line']}"


def inside(entry: Mapping[str, Any]) -> tuple[float, float] | None:
    """Of an entry of `loops` in a result: seconds in the loop, without what lies between its epochs, and the share of them that
    it waited. None: not measured."""
    wait, step = entry["wall_by_part"]["wait"], entry["wall_by_part"]["step"]
    if wait is None or step is None or not wait + step:
        return None
    return (wait + step) * entry["wall_s"], wait / (wait + step)


def busiest(loops: list[Run]) -> Run:
    """What was asked for; else the loop with most step time in which a backward pass was seen; else that with most steps."""
    asked = [loop for loop in loops if name(loop.header.loops[0]) == loop.header.asked_loop]
    if asked:
        return asked[0]
    learning = [loop for loop in loops if len(loop.of(Kind.BACKWARD)["kind"])]
    return max(learning or loops, key=_step_ns if learning else _steps)


def _of(run: Run, loop: int) -> Run:
    entry = next(entry for entry in run.header.loops if entry["loop"] == loop)
    loader = {"n_workers": entry["n_workers"], "prefetch_batches": entry["prefetch_batches"], "settings": dict(entry)}
    outcome = run.header.outcome
    if outcome is not None:
        outcome = _outcome_of(outcome, loop)
    made, items, started = (_rows(table, loop) for table in (run.made, run.items, run.started))
    spans = _with_other_waits(_rows(run.spans, loop), run.spans, loop)
    header = replace(run.header, loader=loader, loops=[entry], outcome=outcome, device=_device_of(run.header.device, spans))
    return replace(run, header=header, spans=spans, made=made, items=items, started=started)


def _device_of(device: Mapping[str, Any], spans: Table) -> Mapping[str, Any]:
    """A thread that only hands its batches on, to another one that trains: its steps say nothing of the device."""
    if device.get("trains_elsewhere") and not np.isin(spans["kind"], LEARNING).any():
        return {**device, "method": None}
    return device


def _outcome_of(outcome: Outcome, loop: int) -> Outcome:
    counted = outcome.loops.get(str(loop), {})
    steps, samples, epochs = (counted.get(what) for what in ("steps", "samples", "epochs"))
    worst = [row for row in outcome.worst_steps if row[-1] == loop]
    return replace(outcome, steps=steps, samples=samples, epochs=epochs, worst_steps=worst)


_WAITING = (Kind.ITER, Kind.WAIT, Kind.END)


def _with_other_waits(mine: Table, spans: Table, loop: int) -> Table:
    """What a step waits for another loader is waiting as well, as where two are zipped. Told from loaders of other threads by
    their waits' never overlapping this one's."""
    own = _waits(mine)
    added = []
    for other in sorted(set(spans["loop"].tolist()) - {ALL, loop}):
        theirs = spans["loop"] == other
        rows = {column: values[theirs & np.isin(spans["kind"], _WAITING)] for column, values in spans.items()}
        if not total(intersect(own, _waits(rows))):
            added.append(rows | {"kind": np.full_like(rows["kind"], Kind.OTHER_WAIT), "loop": np.full_like(rows["kind"], loop)})
    return {column: np.concatenate([values, *(rows[column] for rows in added)]) for column, values in mine.items()}


def _waits(spans: Table) -> Intervals:
    waiting = np.isin(spans["kind"], _WAITING)
    return union(np.column_stack((spans["start_ns"][waiting], spans["end_ns"][waiting])))


def _rows(table: Table, loop: int) -> Table:
    mine = np.isin(table["loop"], (ALL, loop))
    if "kind" in table:  # there is one device, whatever loop it works for
        mine |= np.isin(table["kind"], (Kind.BUSY, Kind.COPY))
    return {column: values[mine] for column, values in table.items()}


def _steps(loop: Run) -> int:
    return len(loop.of(Kind.WAIT)["kind"])


def _step_ns(loop: Run) -> int:
    line = timeline(loop)
    return 0 if line is None else int((line.steps.ended - line.steps.got).sum())
