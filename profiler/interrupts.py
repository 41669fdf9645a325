"""Signals while a run is measured: Ctrl-C and SIGTERM are obeyed at the end of a step, and nothing disturbs keeping the run.

Broken off in the middle of taking a batch, a worker's end of the connection fails, and prints its traceback into the terminal.
"""

from __future__ import annotations

import signal
from types import FrameType, TracebackType

AT_ONCE_S = 1.0
"""A step that takes longer than this is broken off all the same; so it is by a second Ctrl-C."""


class Terminated(KeyboardInterrupt):
    """SIGTERM: ends a run as Ctrl-C does."""


def terminate(_number: int, _frame: FrameType | None) -> None:
    """What SIGTERM does while no run is measured."""
    raise Terminated("SIGTERM")


class Interrupts:
    """While entered, signals are kept until they are asked for by calling it. Only in the main thread."""

    def __init__(self) -> None:
        self.pending: KeyboardInterrupt | None = None
        self._told_of_deaths = signal.getsignal(signal.SIGCHLD)

    def __call__(self) -> None:
        """Raises what came since."""
        if self.pending is not None:
            raise self.pending

    def __enter__(self) -> Interrupts:
        handlers = {signal.SIGINT: self._note, signal.SIGTERM: self._note, signal.SIGALRM: self._overdue}
        self._before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        self._timer = signal.getitimer(signal.ITIMER_REAL)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Whatever ended the loop goes on; the handlers are as before.

        DataLoader raises a worker's death from a signal handler, wherever the program happens to be. Until `over` is called it
        is not told: the run is being kept, and what ended it is known.
        """
        self._told_of_deaths = signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.setitimer(signal.ITIMER_REAL, *self._timer)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def over(self) -> None:
        """The run is kept and its workers are gone: everything is as before."""
        signal.signal(signal.SIGCHLD, self._told_of_deaths or signal.SIG_DFL)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.pending is not None:
            raise self.pending
        self.pending = Terminated("SIGTERM") if number == signal.SIGTERM else KeyboardInterrupt()
        signal.setitimer(signal.ITIMER_REAL, AT_ONCE_S)

    def _overdue(self, _number: int, _frame: FrameType | None) -> None:
        self()
