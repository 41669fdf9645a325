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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .keeper import Keeper, header
from .ring import RingReader, create
from .runfile import MAKING, RunWriter
from .sampler import Samplers
from .stacks import Stacks

FORWARDED = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2") if hasattr(signal, name))


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
    limits: Mapping[str, Any],
    loop: str | None = None,
) -> Ended:
    """Runs `python program`, with all of its streams and signals, and writes the run to `folder`.

    command: what the user typed. limits: what is recorded, see `attach.Limits`. loop: which one reports are about. Raises
    UserError and OSError for what is refused before it starts.
    """
    file = create()
    keeper = Keeper(RunWriter(folder), folder, RingReader(file))
    asked = json.dumps({"ring": file, "folder": os.path.abspath(folder / MAKING), "module": module, "limits": limits})
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    entry = Path(__file__).with_name("_traced.py")
    with _Signals() as signals:
        child = subprocess.Popen([sys.executable, *flags, str(entry), asked, *program], pass_fds=[file])
        os.close(file)
        signals.block()
        keeper.begin(header(name, command, child.pid, loop))
        stacks = Stacks(child.pid, folder)
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
