"""Runs a program in a process of its own and keeps what its hooks tell: the program writes to shared memory, we to the disk.

So nothing of ours but the hooks runs in it: no thread, no file of the run, no library. Whatever ends it, even a SIGKILL, what
was recorded before is kept; and whatever befalls us, it goes on.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import UserError
from .keeper import Keeper, header
from .ring import RingReader, create
from .runfile import MAKING, RunWriter
from .sampler import Samplers
from .sampling import LEAST_BLOCKS, MOST_BLOCKS
from .stacks import Stacks

FORWARDED = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2") if hasattr(signal, name))


BLOCK_BYTES = 300_000
"""What a thousand steps take on disk at most, with what their making cost: four spans of theirs and a record, packed."""


@dataclass(frozen=True)
class Asked:
    """How much is recorded."""

    limits: Mapping[str, Any] = field(default_factory=lambda: {"steps": None, "for_ns": None})
    """See `attach.Limits`."""
    loop: str | None = None
    """The one that reports are about; None: the busiest."""
    most_bytes: int | None = None
    deep: bool = False
    """Stacks are looked at all the time."""

    @property
    def most_blocks(self) -> int:
        return MOST_BLOCKS if self.most_bytes is None else max(LEAST_BLOCKS, min(MOST_BLOCKS, self.most_bytes // BLOCK_BYTES))


@dataclass
class Ended:
    """How it went."""

    status: int
    """As subprocess has it: below 0 the signal that killed it."""
    trouble: OSError | None = None
    """What kept us from recording it to its end: a full disk."""


def supervise(
    program: Sequence[str],
    *,
    module: bool,
    name: str,
    folder: Path,
    command: Sequence[str],
    asked: Asked,
) -> Ended:
    """Runs `python program`, with all of its streams and signals, and writes the run to `folder`.

    command: what the user typed. Raises UserError and OSError for what is refused before it starts.
    """
    if not hasattr(signal, "sigtimedwait"):
        raise UserError("trace needs Linux as yet. From inside the program it goes anywhere: with stallscope.record(): ...")
    file = create()
    keeper = Keeper(RunWriter(folder, asked.most_blocks), folder, RingReader(file))
    told = json.dumps({"ring": file, "folder": os.path.abspath(folder / MAKING), "module": module, "limits": asked.limits})
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    entry = Path(__file__).with_name("_traced.py")
    with _Signals() as signals:
        child = subprocess.Popen([sys.executable, *flags, str(entry), told, *program], pass_fds=[file])
        os.close(file)
        signals.block()
        keeper.begin(header(name, command, child.pid, asked.loop))
        stacks = Stacks(child.pid, folder, deep=asked.deep)
        with Samplers(child.pid, keeper.write_counts) as samplers:
            while not _ended(child):
                signals.wait(keeper.patience_s, child)
                keeper.take()
                stacks.look(has_begun=keeper.has_batches)
        stacks.end()
        keeper.end(_stopped_by(child.returncode), samplers.faults, stacks.problem)
    return Ended(child.returncode, keeper.trouble)


def _ended(child: subprocess.Popen[bytes]) -> bool:
    return child.poll() is not None


def _stopped_by(status: int) -> str | None:
    if status >= 0:
        return None if status == 0 else f"the script's exit status, {status}"
    with suppress(ValueError):
        return signal.Signals(-status).name
    return f"signal {-status}"


class _Signals:
    """Signals meant for the program reach it. What a terminal sends, it sends to both of us."""

    def __enter__(self) -> _Signals:
        kinds = (signal.SIGINT, signal.SIGQUIT, *FORWARDED)
        # A handler, not SIG_IGN: that would be the program's from its birth. What was ignored before, as by nohup, stays so.
        self._heeded = [kind for kind in kinds if signal.getsignal(kind) is not signal.SIG_IGN]
        self._before = {kind: signal.signal(kind, lambda number, frame: None) for kind in self._heeded}
        return self

    def block(self) -> None:
        """They wait until we ask. Only now: a process that is started has the mask of the one that starts it."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {*self._heeded, signal.SIGCHLD})

    def wait(self, seconds: float, child: subprocess.Popen[bytes]) -> None:
        """Until the program has ended, or so long."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            came = signal.sigtimedwait({*self._heeded, signal.SIGCHLD}, left)
            if came is None or came.si_signo == signal.SIGCHLD:
                return
            if came.si_signo in FORWARDED or came.si_code <= 0:  # Ctrl-C of a terminal has a code above 0
                with suppress(ProcessLookupError):
                    child.send_signal(came.si_signo)

    def __exit__(self, *_: object) -> None:
        while signal.sigtimedwait(self._heeded, 0) is not None:
            pass
        for kind, handler in self._before.items():
            signal.signal(kind, handler or signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {*self._heeded, signal.SIGCHLD})
