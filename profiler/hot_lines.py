"""Which line of the program costs most in each stage, from stacks that were looked at now and then. Pure counting."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

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


def hot_lines(stacks: Sequence[Stack]) -> list[dict[str, Any]]:
    """Of each role and stage its costliest line: role, stage, share (of all that was seen of this role), function, file, line,
    and line_share (of the stage). The costliest stage first."""
    seen: Counter[str] = Counter()
    lines: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for stack in stacks:
        seen[stack.role] += stack.n
        if stack.stage not in ("wait", "idle"):
            lines[stack.role, stack.stage][stack.frames[stack.users]] += stack.n
    found = []
    for (role, stage), counted in lines.items():
        frame, count = counted.most_common(1)[0]
        function, _, place = frame.rstrip(")").partition(" (")
        file, _, line = place.rpartition(":")
        where = {"function": function, "file": file, "line": int(line) if line.isdecimal() else None}
        whole = counted.total()
        found.append({"role": role, "stage": stage, "share": whole / seen[role], **where, "line_share": count / whole})
    return sorted(found, key=lambda each: -each["share"])


def forward_share(stacks: Sequence[Stack]) -> float | None:
    """Of the time in steps, what was the forward pass; None: no step was seen."""
    counted: Counter[str] = Counter()
    for stack in stacks:
        if stack.role == "loop" and stack.stage in IN_STEP:
            counted[stack.stage] += stack.n
    return counted["forward"] / counted.total() if counted else None
