"""The progress line on stderr while a run is measured: redrawn twice a second by a thread of its own, never by the loop."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from .contracts import Model
from .units import count, share
from .watch import Watch

PER_SECOND = 2


def line(watch: Watch, model: Model) -> str:
    """Step, samples/s and idle so far. Where the device's busy time is only known later: the share of time spent waiting."""
    elapsed, busy = watch.elapsed_ns, model.busy_ns()
    if elapsed <= 0:
        return "starting"
    state = (
        f"waiting for data {share(watch.wait_ns / elapsed)}" if busy is None else f"idle {share(max(0.0, 1 - busy / elapsed))}"
    )
    return f"step {count(watch.steps)}   {count(watch.samples / elapsed * 1e9)} samples/s   {state}"


def progress(quiet: bool) -> Callable[[Watch, Model], AbstractContextManager[object]]:
    """What shows the line on a terminal, and nothing anywhere else."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        return lambda watch, model: nullcontext()
    return lambda watch, model: Live(
        get_renderable=lambda: Text(line(watch, model)),
        console=console,
        refresh_per_second=PER_SECOND,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


@contextmanager
def preparing(what: str, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A progress bar for the samples that are written, once. It appears with the first file."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None, visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)
