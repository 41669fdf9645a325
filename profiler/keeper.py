"""Takes a program's rows out of the memory that they are written to, and keeps them.

A run's file holds blocks of a thousand steps, so that a long one can be thinned. What is not a block yet lies beside it, where
a report on a run that goes on, or was killed, finds it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import clocks, environment, probe, ranks
from .attach import LOOPS
from .environment import CpuReading
from .events import Kind, Row
from .instrument import torch_dataloader
from .ring import SLOTS, RingReader
from .run import Header, Outcome, table
from .runfile import LOOSE_SPANS, MAKING, RunWriter
from .stamps import STEPS_PER_FLUSH

POLL_S = 0.25
BUSY_POLL_S = 0.01
"""While rows come so fast that the memory they lie in might get full."""
_KIND, _LOOP, _SAMPLES, _EPOCH = (Row._fields.index(name) for name in ("kind", "loop", "n_samples", "epoch"))
_OF_NEXT = (Kind.ITER, Kind.END, Kind.SAMPLER, Kind.RECEIVE)


@dataclass
class Keeper:
    """A disk that refuses ends the recording, not the program."""

    writer: RunWriter
    folder: Path
    ring: RingReader
    trouble: OSError | None = None
    patience_s: float = POLL_S
    has_batches: bool = False
    """Whether the program has had one."""
    _rows: NDArray[np.int64] = field(default_factory=lambda: table(Row, ()))
    _announced: int = 0
    _has_workers: bool = False
    _counted: dict[str, dict[str, int]] = field(default_factory=dict)
    _began: CpuReading | None = None

    def begin(self, header: Header) -> None:
        self._guarded(self.writer.begin, header)
        self._began = environment.read_cpu(time.perf_counter_ns)

    def _guarded(self, act: Any, *arguments: Any, **named: Any) -> None:
        if self.trouble is None:
            try:
                act(*arguments, **named)
            except OSError as error:
                self.trouble = error
                self.writer.abandon()

    def write_counts(self, counts: Any) -> None:
        if self.trouble is None:
            self.writer.write_counts(counts)

    def take(self, *, last: bool = False) -> None:
        """What has come since. last: nothing more will come."""
        rows = self.ring.take(last=last)
        self.patience_s = BUSY_POLL_S if len(rows) > SLOTS // 16 else POLL_S
        self._learn_loops()
        self.has_batches = self.has_batches or bool((rows[:, _KIND] == Kind.WAIT).any())
        self._rows = np.concatenate((self._rows, rows))
        *blocks, rest = _blocks(self._rows)
        if last and len(rest):
            blocks, rest = [*blocks, rest], rest[:0]
        for block in blocks:
            self._count(block)
            self._guarded(self.writer.write, block)
        self._guarded(self._lay_aside, rest if blocks else rows, anew=bool(blocks))
        self._rows = rest

    def _lay_aside(self, rows: NDArray[np.int64], *, anew: bool) -> None:
        with (self.folder / MAKING / LOOSE_SPANS).open("wb" if anew else "ab", buffering=0) as file:
            file.write(rows.tobytes())

    def _count(self, rows: NDArray[np.int64]) -> None:
        """Totals are of all steps, those that are not kept included."""
        waits = rows[rows[:, _KIND] == Kind.WAIT]
        for loop in np.unique(waits[:, _LOOP]).tolist():
            mine = waits[waits[:, _LOOP] == loop]
            known = self._counted.setdefault(str(loop), {"steps": 0, "samples": 0, "epochs": 0})
            known["steps"] += len(mine)
            known["samples"] += int(mine[:, _SAMPLES].sum())
            known["epochs"] = max(known["epochs"], 1 + int(mine[:, _EPOCH].max()))

    def _learn_loops(self) -> None:
        with suppress(OSError):
            whole, _, _ = (self.folder / MAKING / LOOPS).read_text().rpartition("\n")
            lines = whole.splitlines()
            if len(lines) > self._announced:
                self._announced, said = len(lines), [json.loads(line) for line in lines]
                loops, devices = ([each for each in said if what in each] for what in ("loop", "device"))
                self._has_workers = any(loop["n_workers"] for loop in loops)
                self._guarded(self.writer.note, loops=loops, device=_device(*(each["device"] for each in devices)))

    def end(self, stopped_by: str | None, faults: Mapping[str, int], stacks_problem: str | None = None) -> None:
        self.take(last=True)
        lost = {"rows": self.ring.lost} if self.ring.lost else {}
        cpu = self._began, environment.read_cpu(time.perf_counter_ns)
        cores = environment.usable_cores(len(environment.affinity_cores() or ()) or None, environment.quota_cores())
        outcome = Outcome(
            complete=stopped_by is None and self.trouble is None,
            stopped_by=stopped_by,
            cpu_cores=environment.cpu_cores(*cpu),
            foreign_cpu_share=environment.foreign_cpu_share(*cpu, cores),
            us_per_step_main=torch_dataloader.us_per_step() + (torch_dataloader.us_per_batch() if self._has_workers else 0.0),
            us_per_batch_maker=probe.us_per_batch(),
            faults={**faults, **lost},
            stacks_problem=stacks_problem,
            loops=self._counted,
        )
        self._guarded(self.writer.end, outcome)


def _blocks(rows: NDArray[np.int64]) -> Sequence[NDArray[np.int64]]:
    """Of a thousand steps each, and what is left, which may be nothing. Cut between two steps: an iter() goes with the step
    that follows it."""
    in_step = ~np.isin(rows[:, _KIND], _OF_NEXT)
    last_of_step = np.maximum.accumulate(np.where(in_step, np.arange(len(rows)), -1))
    waits = np.flatnonzero(rows[:, _KIND] == Kind.WAIT)
    return np.split(rows, last_of_step[waits[STEPS_PER_FLUSH::STEPS_PER_FLUSH] - 1] + 1)


def _device(*said: Mapping[str, Any]) -> Mapping[str, Any]:
    """The loop's body stands for one, as long as the program has said no better."""
    device = {"kind": "cpu", "name": environment.cpu_model() or "CPU", "simulated": False, "method": "loop_body"}
    return {key: value for known in (device, *said) for key, value in known.items()}


def header(name: str, command: Sequence[str], pid: int, loop: str | None = None) -> Header:
    """Of a program that is about to load something, in this process or another."""
    return Header(
        name=name,
        command=list(command),
        scenario={},
        asked_loop=loop,
        environment=environment.describe(),
        identity=ranks.identity(os.environ),
        device=_device(),
        source={},
        loader={"n_workers": 0, "prefetch_batches": 0},
        clock={"perf_counter_ns": time.perf_counter_ns(), "time_ns": time.time_ns()},
        process_start_ns=clocks.process_start_ns(pid=pid),
    )
