"""The progress line on stderr while a run is measured: redrawn twice a second by a thread of its own, never by the loop."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from .comparison import Measured
from .contracts import Model
from .stamps import Watch
from .units import count, duration, share

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


class Board:
    """Progress of several runs: a bar with the time left on a terminal, a line a run anywhere else. None of it if silent."""

    def __init__(self, silent: bool) -> None:
        self._silent = silent
        self._bar: Progress | None = None
        self._runs = self._done = 0
        self._began = time.monotonic()
        if not silent and sys.stderr.isatty():
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True, speed_estimate_period=600)

    def __enter__(self) -> Board:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()

    def checking(self) -> None:
        self._say("checking all settings, and making the samples ready")

    def planned(self, runs: int) -> None:
        """So many more runs are to be made."""
        self._runs += runs
        if self._done == 0:
            self._began = time.monotonic()
        if self._bar and self._bar.tasks:
            self._bar.update(self._bar.task_ids[0], total=self._runs)
        elif self._bar:
            self._bar.add_task("measuring", total=self._runs)
            self._bar.start()

    def running(self, name: str) -> None:
        if self._bar:
            self._bar.update(self._bar.task_ids[0], description=name, refresh=True)

    def had(self, name: str, run: Measured | None, problem: str | None) -> None:
        """One of the runs is over."""
        self._done += 1
        if self._bar:
            self._bar.advance(self._bar.task_ids[0])
        self._say(f"{self._done}/{self._runs}  {name}: {_outcome(run, problem)}{self._left()}")

    def _left(self) -> str:
        left_s = (self._runs - self._done) * (time.monotonic() - self._began) / self._done
        return "" if self._bar or self._done == self._runs else f"   about {duration(left_s * 1e9)} left"

    def _say(self, text: str) -> None:
        if self._bar:
            self._bar.console.print(text, highlight=False, markup=False)
        elif not self._silent:
            print(text, file=sys.stderr)


def _outcome(run: Measured | None, problem: str | None) -> str:
    if run is None:
        return f"not measured: {problem or 'it failed before'}"
    idle = "not measured" if run.device_idle_share is None else share(run.device_idle_share)
    disturbed = f"   disturbed: others took {share(run.foreign_cpu_share or 0)} of the cores" if run.noisy else ""
    rate = run.throughput_samples_per_s
    return f"{'throughput not measured' if rate is None else f'{count(rate)} samples/s'}, idle {idle}{disturbed}"


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
