"""Reads in the background what the system counts while a loop runs: one thread for all samplers, twice a second at most."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .contracts import Sampler
from .events import Count
from .samplers import cpu, disk, gpu, memory

PERIOD_S = 0.5
COST_SHARE = 0.02
"""Of one core: readings that cost more come half as often. USS and PSS, read now and then, have a bound of their own."""
MOST_ROWS = 20_000
"""Written at one period: after so many more the period doubles. A day of 5 processes is nine times as many."""
END_TIMEOUT_S = 5.0


def built(pid: int, folder: Path | None = None) -> dict[str, Sampler]:
    """All samplers by name. folder: where the samples lie."""
    return {"cpu": cpu.build(pid), "memory": memory.build(pid), "disk": disk.build(pid, folder), "gpu": gpu.build(pid)}


class Samplers:
    """Reads all samplers from entering the context to leaving it, at both ends too, and hands on what it read.

    `write` is called on the thread. It must take no lock: a process forked meanwhile inherits locks as they are, and the thread
    not at all. Nothing is raised or printed here: `faults` counts what went wrong.
    """

    def __init__(
        self,
        pid: int,
        write: Callable[[Sequence[Count]], None],
        period_s: float = PERIOD_S,
        clock: Callable[[], int] = time.perf_counter_ns,
        *,
        folder: Path | None = None,
        samplers: Mapping[str, Sampler] | None = None,
        cpu_clock: Callable[[], int] = time.thread_time_ns,
    ) -> None:
        """folder: where the samples lie. samplers: instead of all. cpu_clock: what a reading costs, not how long it waits."""
        self.period_s = max(PERIOD_S, period_s)
        """From the end of one reading to the next. Only ever doubles."""
        self.faults: dict[str, int] = {}
        """Name of the sampler, or `write` -> how often it raised."""
        self._samplers = built(pid, folder) if samplers is None else samplers
        self._write, self._clock, self._cpu_clock = write, clock, cpu_clock
        self._costly = False
        self._rows, self._rows_allowed = 0, MOST_ROWS
        self._stop, self._given_up = threading.Event(), False
        self._thread = threading.Thread(target=self._run, name="stallscope-samplers", daemon=True)
        self._owner = os.getpid()

    def __enter__(self) -> Samplers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if os.getpid() != self._owner:  # a forked child that leaves the block: the thread is not there, its lock may be held
            return
        self._stop.set()
        self._thread.join(END_TIMEOUT_S)
        self._given_up = self._thread.is_alive()

    def _run(self) -> None:
        self.read()
        while not self._stop.wait(self.period_s):
            self.read()
        self.read()

    def read(self) -> None:
        """One reading of all samplers, on the calling thread."""
        began_ns = self._cpu_clock()
        counts: list[Count] = []
        for name, sampler in self._samplers.items():
            at_ns = self._clock()
            try:
                for reading in sampler.read():
                    counts.append(Count(at_ns, *reading))
            except Exception:
                self._note(name)
        try:
            if not self._given_up:
                self._write(counts)
        except Exception:
            self._note("write")
        self._adapt(self._cpu_clock() - began_ns, len(counts))

    def _note(self, name: str) -> None:
        self.faults[name] = self.faults.get(name, 0) + 1

    def _adapt(self, cost_ns: int, rows: int) -> None:
        """Two costly readings in a row double the period: a single one has read USS and PSS."""
        costly = cost_ns > COST_SHARE * self.period_s * 1e9
        if costly and self._costly:
            self.period_s *= 2
        self._costly = costly and not self._costly
        self._rows += rows
        while self._rows > self._rows_allowed:
            self._rows_allowed += MOST_ROWS
            self.period_s *= 2
