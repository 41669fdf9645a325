"""Which lines of the program cost most in each stage, from stacks that were looked at now and then. Pure counting."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

MOST_LINES, LEAST_SHARE = 3, 0.1
"""Of a stage: so many lines, each with so much of it; but the costliest always."""
IN_STEP = ("forward", "backward", "optimizer", "own_code")


class Stack(NamedTuple):
    """One stack, and how often it was met."""

    role: str
    """loop, or worker: of a process that makes batches."""
    stage: str
    """Of the loop: wait, item and collate (it makes batches itself), forward, backward, optimizer, own_code. Of a worker: item,
    collate, idle."""
    frames: tuple[str, ...]
    """Outermost first, each `function (file:line)`."""
    users: int
    """Which of the frames is the innermost one of the user's own; where none is, the innermost of all."""
    n: int
    caller: int | None = None
    """Which frame called that one, if it is the user's own too."""


def hot_lines(stacks: Sequence[Stack]) -> list[dict[str, Any]]:
    """Of each role and stage its costliest lines: role, stage, share (of all that was seen of this role), function, file, line,
    line_share (of the stage), and caller (function, file, line; null: it was not the user's). The costliest stage first."""
    seen: Counter[str] = Counter()
    lines: dict[tuple[str, str], Counter[tuple[str, str | None]]] = defaultdict(Counter)
    for stack in stacks:
        seen[stack.role] += stack.n
        if stack.stage not in ("wait", "idle"):
            caller = None if stack.caller is None else stack.frames[stack.caller]
            lines[stack.role, stack.stage][stack.frames[stack.users], caller] += stack.n
    found = []
    for (role, stage), counted in lines.items():
        whole = counted.total()
        for rank, ((frame, caller), count) in enumerate(counted.most_common(MOST_LINES)):
            if rank == 0 or count >= LEAST_SHARE * whole:
                of = {"role": role, "stage": stage, "share": whole / seen[role]}
                found.append({**of, **_where(frame), "line_share": count / whole, "caller": caller and _where(caller)})
    return sorted(found, key=lambda each: -each["share"])


def weight(line: Mapping[str, Any]) -> float:
    """Of an entry of `hot_lines`: its share of all that was seen of its role."""
    return float(line["share"] * line["line_share"])


def _where(frame: str) -> dict[str, Any]:
    function, _, place = frame.rstrip(")").partition(" (")
    file, _, line = place.rpartition(":")
    return {"function": function, "file": file, "line": int(line) if line.isdecimal() else None}


def forward_share(stacks: Sequence[Stack]) -> float | None:
    """Of the time in steps, what was the forward pass; None: no step was seen."""
    counted: Counter[str] = Counter()
    for stack in stacks:
        if stack.role == "loop" and stack.stage in IN_STEP:
            counted[stack.stage] += stack.n
    return counted["forward"] / counted.total() if counted else None
