"""What lines of the program its time goes to: py-spy looks at the stacks of the loop and its workers, in short windows.

    stacks.folded   role;stage;users;frame;frame;... count    one line a stack, nearly the form that flame graphs are drawn from

users is the place, from 0, of the innermost frame that is the user's own, and after a colon that of its caller, if it is too.

The windows come further and further apart: two seconds after the first batch, then after 15, 60, ... so that of a long run a
small part is looked at. Where the system does not allow it (ptrace), a run has no stacks, and says what is missing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from .attach import OURS, is_users
from .clocks import PROC
from .runfile import MAKING, STACKS
from .samplers._processes import tree

RAW = "stacks.raw"
STACKS_PER_S, LEAST_RATE_PER_S = 100, 4
"""Looks, shared out among all processes of the tree: sixteen workers looked at 50 times a second each would take a core."""
WINDOW_S = 2
FIRST_S, FACTOR = 1.0, 4.0
"""After the first batch; each further window comes so many times as late as the one before."""
TIMEOUT_S = 30.0


class Stacks:
    """Windows of py-spy on a process tree. Called now and then; waits for nothing."""

    def __init__(self, pid: int, folder: Path, *, deep: bool = False) -> None:
        """deep: one window after another."""
        self._pid, self._raw, self._out = pid, folder / MAKING / RAW, folder / STACKS
        self._began: float | None = None
        self._due, self._factor = (0.0, 1.0) if deep else (FIRST_S, FACTOR)
        self._spy: subprocess.Popen[str] | None = None
        self._counts: Counter[str] = Counter()
        self.problem: str | None = None
        """Why there are none."""

    def look(self, *, has_begun: bool) -> None:
        """Begins and ends windows as they are due. has_begun: the program has had a batch."""
        if self._spy is not None:
            self._finish_if_over()
        elif has_begun and self.problem is None:
            self._began = self._began or time.monotonic()
            if time.monotonic() - self._began >= self._due:
                self._due *= self._factor
                self._start()

    def _start(self) -> None:
        found = shutil.which("py-spy", path=os.path.dirname(sys.executable)) or shutil.which("py-spy")
        if found is None:
            self.problem = "py-spy is not installed: pip install py-spy"
            return
        rate = max(LEAST_RATE_PER_S, STACKS_PER_S // max(2, len(tree(self._pid, PROC))))
        options = (
            f"--format raw --full-filenames --idle --threads --subprocesses --nonblocking --rate {rate} --duration {WINDOW_S}"
        )
        command = [found, "record", "--pid", str(self._pid), "--output", str(self._raw), *options.split()]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        try:
            self._spy = subprocess.Popen(command, **pipes, text=True)  # type: ignore[call-overload]
        except OSError as error:
            self.problem = f"py-spy cannot be started: {error.strerror}"

    def _finish_if_over(self) -> None:
        assert self._spy is not None
        if self._spy.poll() is None:
            return
        spy, self._spy = self._spy, None
        said = spy.stderr.read() if spy.stderr else ""
        if spy.returncode != 0:
            self.problem = _why(said)
            return
        with suppress(OSError):
            for stack, count in folded(self._raw.read_text(errors="replace")):
                self._counts[stack] += count
            self._out.write_text("".join(f"{stack} {count}\n" for stack, count in self._counts.most_common()))

    def end(self) -> None:
        """The program has ended, and with it what looked at it."""
        if self._spy is not None:
            with suppress(subprocess.TimeoutExpired):
                self._spy.wait(TIMEOUT_S)
            self._spy.kill()
            self._finish_if_over()


def _why(said: str) -> str:
    """What py-spy's refusal means."""
    if "ermission" in said or "ptrace" in said or "Operation not permitted" in said:
        return (
            "py-spy may not look at the program: in a container --cap-add SYS_PTRACE, "
            "elsewhere sysctl kernel.yama.ptrace_scope=0, or root"
        )
    last = [line for line in said.strip().splitlines() if line.strip()][-1:] or ["it said nothing"]
    return f"py-spy failed: {last[0].strip()}"


# What a stack tells


def folded(raw: str) -> Iterator[tuple[str, int]]:
    """From py-spy's raw format: of each stack that is of the loop or of a worker its role, its stage, and the frames below."""
    for line in raw.splitlines():
        stack, _, count = line.rpartition(" ")
        frames = [part for part in stack.split(";") if FRAME.fullmatch(part)]  # a command line may hold semicolons too
        placed = place(frames)
        if placed is not None and count.isdecimal():
            yield ";".join([*placed, ":".join(map(str, _users(frames))), *frames]), int(count)


FRAME = re.compile(r"\S.* \(.*:\d+\)")
FETCH = "utils/data/_utils/fetch.py"
WORKER = "utils/data/_utils/worker.py"
NEXT = "utils/data/dataloader.py"


def place(frames: list[str]) -> tuple[str, str] | None:
    """Role and stage of a stack, outermost frame first. None: it is neither of the loop nor of a worker."""
    role = "worker" if _find(frames, "_worker_loop", WORKER) is not None else "loop"
    fetch = _find(frames, "fetch", FETCH)
    if fetch is not None:
        return role, "collate" if _is_collate([frame for frame in frames[fetch + 1 :] if not _is_ours(frame)]) else "item"
    if role == "worker":
        return role, "idle"
    for stage, is_in in STEP_STAGES.items():
        if any(map(is_in, frames)):
            return role, stage
    return (role, "own_code") if any(is_users(_file(frame)) for frame in frames) else None


def _of(name: str, file: str) -> Callable[[str], bool]:
    return lambda frame: _name(frame) == name and _file(frame).endswith(file)


STEP_STAGES: Mapping[str, Callable[[str], bool]] = {
    "wait": lambda frame: _name(frame) in ("__next__", "__iter__") and _file(frame).endswith(NEXT),
    "backward": _of("backward", "torch/autograd/__init__.py"),
    "optimizer": lambda frame: _name(frame) in ("step", "zero_grad") and "/torch/optim/" in _file(frame),
    "forward": _of("_call_impl", "torch/nn/modules/module.py"),
}
"""The first that holds of one of the loop's frames."""


def _users(frames: list[str]) -> list[int]:
    """The place of the innermost frame that is the user's own and was called by torch's fetch, if that is there; and the place
    of the one that called it, if there is one."""
    above = _find(frames, "fetch", FETCH) or -1
    mine = [i for i, frame in enumerate(frames) if i > above and is_users(_file(frame))]
    if mine:
        return mine[:-3:-1]
    others = [i for i, frame in enumerate(frames) if not _is_ours(frame)]  # what calls a hook of ours stands above it
    return others[-1:] or [0]


def _is_ours(frame: str) -> bool:
    return _file(frame).startswith(OURS)


def _is_collate(inside: list[str]) -> bool:
    """What torch calls to fetch a sample has one of these names; what it calls otherwise is collate_fn."""
    return bool(inside) and _name(inside[0]) not in ("<listcomp>", "__getitem__", "__getitems__", "__next__", "__iter__")


def _find(frames: list[str], name: str, file: str) -> int | None:
    is_it = _of(name, file)
    return next((i for i, frame in enumerate(frames) if is_it(frame)), None)


def _name(frame: str) -> str:
    """Of the function alone: py-spy says of which class it is, or of which function, where Python knows it (3.11)."""
    return frame.partition(" (")[0].rpartition(".")[2]


def _file(frame: str) -> str:
    return frame.partition(" (")[2].rpartition(":")[0]
