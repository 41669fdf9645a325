"""One run in a process of its own: frameworks, thread pools and page tables of one setting are never those of the next."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from . import environment, faults, live
from .errors import NotInstalled, UserError
from .interrupts import terminate
from .places import cache_dir
from .scenario import Scenario

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

READ_EVERY_S = 1.0
"""Reading a tree's memory keeps a core busy for some milliseconds."""
PATIENCE_S = 10.0
"""How long a run that was told to end may take to keep what it has."""


@dataclass(frozen=True)
class Task:
    """What a child does."""

    scenario: Scenario
    device: str
    folder: Path | None = None
    """Where the run goes; None: it is not measured, only made ready, and refused if it cannot be."""
    prepare: bool = True
    """Its samples may be missing. False: they are there, the parts are only built."""
    replay: bool = False
    command: Sequence[str] = ()
    silent: bool = False


@dataclass(frozen=True)
class Ended:
    """How a task ended."""

    status: Literal["well", "refused", "not_installed", "interrupted", "failed"]
    words: str = ""
    memory_bytes: int | None = None
    """Highest reading of the memory of the child and its children."""


def carry_out(tasks: Sequence[Task]) -> list[Ended]:
    """Does the tasks, one after another, in one new process. An interrupt reaches it as SIGTERM, and then goes on from here."""
    context = multiprocessing.get_context("spawn")
    said, saying = context.Pipe(duplex=False)
    child = context.Process(target=_main, args=(list(tasks), saying))
    with _without_ctrl_c():
        child.start()
    saying.close()
    try:
        ended, memory_bytes = _listen(child, said)
    except KeyboardInterrupt:
        child.terminate()
        raise
    finally:
        child.join(PATIENCE_S)
        child.kill()
        child.join()
    if len(ended) < len(tasks):
        ended.append(Ended("failed", f"its process died (exit status {child.exitcode}). {faults.WHY_IT_DIED}"))
    return [Ended(each.status, each.words, memory_bytes) for each in ended]


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """A process that is started meanwhile never gets the terminal's Ctrl-C: what ends a run is decided in one place."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _listen(child: BaseProcess, said: Connection) -> tuple[list[Ended], int | None]:
    """What it says until it has ended, and the most memory that it took."""
    ended: list[Ended] = []
    most: int | None = None
    while True:
        ready = wait([said, child.sentinel], READ_EVERY_S)
        if said in ready:
            try:
                ended.append(said.recv())
            except EOFError:
                return ended, most
        elif ready:
            return ended, most
        else:
            memory_bytes = environment.tree_memory_bytes(child.pid or 0)
            most = max(most or 0, memory_bytes) if memory_bytes else most


# In the child


def _main(tasks: Sequence[Task], saying: Connection) -> None:
    signal.signal(signal.SIGTERM, terminate)
    # A spawned process spawns its own: the loader's workers must start as they would in a process of the user's.
    multiprocessing.set_start_method(None, force=True)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for task in tasks:
        saying.send(_carried_out(task))


def _end_with_parent() -> None:
    """Nobody waits for this run any more: it would only disturb the next one."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(PATIENCE_S)
    os._exit(1)


def _carried_out(task: Task) -> Ended:
    try:
        error = _done(task)
    except BaseException as raised:
        error = raised
    if error is None:
        return Ended("well")
    if isinstance(error, KeyboardInterrupt):
        return Ended("interrupted")
    words = str(error) if isinstance(error, UserError) else faults.in_words(error)
    if words is None:
        return Ended("failed", "".join(traceback.format_exception(error)).rstrip())
    return Ended("not_installed" if isinstance(error, NotInstalled) else "refused", words)


def _done(task: Task) -> BaseException | None:
    """Returns what ended the run early; raises what kept it from beginning."""
    from .execute import check, execute, prepare

    cache = cache_dir(os.environ)
    if not task.prepare:
        check(task.scenario, cache, task.device)
        return None
    with live.preparing("writing sample files", task.silent) as progress:
        source = prepare(task.scenario, cache, task.device, progress)
    if task.folder is None:
        return None
    quiet = live.progress(quiet=True)
    return execute(task.scenario, source, task.folder, task.command, task.device, quiet, replay=task.replay)
