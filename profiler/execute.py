"""The loop: the only place where a batch is taken from a loader and given to a model."""

from __future__ import annotations

import itertools
import math
import os
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import clocks, environment, instrument, probe, ranks
from .contracts import Loader, Model, Source
from .environment import CpuReading
from .interrupts import Interrupts
from .replay import Replay
from .run import Header, Outcome
from .runfile import MAKING, RunWriter
from .sampler import Samplers
from .scenario import Scenario, build, settings
from .stamps import Watch, us_per_step

MOST_EPOCHS_NOTED = 1000
"""Each is noted by writing the header anew: the time that takes would grow with the square of the epochs."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Parts:
    source: Source
    loader: Loader
    model: Model
    probe: probe.Probe


def prepare(scenario: Scenario, cache_dir: Path, device: str, progress: Progress) -> Source:
    """The scenario's source with its samples ready. May take long the first time: files are written.

    All parts are built once before: what they refuse is refused before a file is written.
    """
    source = check(scenario, cache_dir, device)
    source.prepare(progress)
    return source


def check(scenario: Scenario, cache_dir: Path, device: str) -> Source:
    """Builds all parts once, so that they can refuse, and returns the source as it is: its samples may be missing."""
    source: Source = build("source", scenario.source, cache_dir)
    _build(scenario, source, Path(os.devnull), device).loader.close()
    return source


def execute(
    scenario: Scenario,
    source: Source,
    folder: Path,
    command: Sequence[str],
    device: str,
    live: Callable[[Watch, Model], AbstractContextManager[object]],
    *,
    replay: bool = False,
) -> BaseException | None:
    """Measures one run of the scenario into `folder`. Returns what ended it early, None if it ended by itself.

    live: shows progress while the loop runs. replay: with loading removed (see `replay.py`).
    Raises UserError for what is refused before anything is measured.
    """
    parts = (_replayed if replay else _build)(scenario, source, Path(os.path.abspath(folder)) / MAKING, device)
    writer = RunWriter(folder)
    thread = clocks.ThreadClock() if parts.loader.n_workers else None  # else the makers' records, of the same thread, know
    stamps = Watch(writer.write, parts.model.drain, thread=thread)
    delivered = Delivered(len(source))
    interrupts = Interrupts()
    samplers = Samplers(os.getpid(), writer.write_counts, folder=_folder_of(source))
    ended_by: BaseException | None = None
    before = environment.read_cpu(stamps.clock)
    try:
        writer.begin(_header(scenario, parts, command))
        with samplers, live(stamps, parts.model), interrupts:
            train(scenario, parts, stamps, delivered, writer.note, interrupts)
            parts.model.sync()
    except (Exception, KeyboardInterrupt, SystemExit) as error:  # the latter: a user's own part
        _let_go(error)
        ended_by = interrupts.pending or error  # a terminal's Ctrl-C ends workers too, which is an error of its own
    try:
        after = environment.read_cpu(stamps.clock)
        parts.loader.close()
        # Before the last flush: it asks for the loss, and so waits for a GPU's last steps.
        outcome = replace(_outcome(parts, stamps, delivered, (before, after), ended_by), faults=dict(samplers.faults))
        stamps.flush()
        writer.end(outcome)
    except OSError as error:  # a full disk: what was written before stays readable
        writer.abandon()
        ended_by = ended_by or error
    finally:
        interrupts.over()
    return ended_by


def _folder_of(source: Source) -> Path | None:
    """Where the samples lie, if it is on a disk whose load can be read."""
    folder = source.describe().get("folder")
    return None if folder is None else Path(folder)


def _let_go(error: BaseException | None) -> None:
    """Drops what the frames of an error's traceback hold on to: an iterator there keeps its worker processes alive."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__


def train(
    scenario: Scenario,
    parts: Parts,
    stamps: Watch,
    delivered: Delivered,
    note: Callable[..., None],
    interrupted: Callable[[], None],
) -> None:
    """Take a batch, give it to the model, until the scenario's end."""
    resident_share: Callable[[], float | None] = getattr(parts.source, "resident_share", lambda: None)
    before: list[float | None] = []
    after: list[float | None] = []
    for epoch in itertools.count() if scenario.epochs is None else range(scenario.epochs):
        with stamps.aside():
            before.append(parts.source.start_epoch())
            if before[-1] is not None and len(before) <= MOST_EPOCHS_NOTED:
                note(resident_shares=list(before), resident_shares_after=list(after))
            delivered.next_epoch()
            batches = index_batches(len(parts.source), scenario.batch_size, scenario.seed, epoch)
        epoch_batches = instrument.watched(parts.loader.epoch(batches), parts.probe, stamps)
        for batch in stamps.batches(epoch_batches, lambda batch: len(batch.index)):
            parts.model.step(batch)
            if scenario.sync_every_step:
                stamps.sync(parts.model.sync)
            delivered.add(batch.index)
            interrupted()
            if _is_over(scenario, stamps):
                break
        with stamps.aside():
            after.append(resident_share() if len(after) < MOST_EPOCHS_NOTED else None)
        if _is_over(scenario, stamps):
            break
    note(resident_shares_after=after)


def _is_over(scenario: Scenario, stamps: Watch) -> bool:
    """Whether the asked-for steps or duration are reached; epochs end by themselves."""
    if scenario.steps is not None:
        return stamps.steps >= scenario.steps
    return scenario.duration_ns is not None and stamps.elapsed_ns >= scenario.duration_ns


def index_batches(n_samples: int, batch_size: int, seed: int, epoch: int) -> list[list[int]]:
    """The epoch's batches, the same for every loader: all samples once in a seeded order, the last batch as long as it gets."""
    order: list[int] = np.random.default_rng([seed, epoch]).permutation(n_samples).tolist()
    return [order[i : i + batch_size] for i in range(0, n_samples, batch_size)]


class Delivered:
    """Which samples reached the model: two loaders, or two workers, that deliver the same ones look fast and teach nothing."""

    def __init__(self, n_samples: int) -> None:
        self._seen: NDArray[np.bool_] = np.zeros(n_samples, dtype=np.bool_)
        self._most = 0

    def next_epoch(self) -> None:
        self._most = self.distinct
        self._seen[:] = False

    def add(self, index: Any) -> None:
        self._seen[np.asarray(index)] = True

    @property
    def distinct(self) -> int:
        """Of the epoch that delivered most."""
        return max(self._most, int(self._seen.sum()))


def _build(scenario: Scenario, source: Source, making: Path, device: str) -> Parts:
    model = build("model", scenario.model, source.sample_shape, source.n_classes, device, scenario.seed)
    records = probe.Probe(making)
    return Parts(source, build("loader", scenario.loader, source, records, scenario.on_error), model, records)


def _replayed(scenario: Scenario, source: Source, _making: Path, device: str) -> Parts:
    """The parts with a few batches in place of the loader. What making those costs is nobody's to know."""
    with tempfile.TemporaryDirectory() as folder:
        source.start_epoch()
        parts = _build(scenario, source, Path(folder), device)
        batches = index_batches(len(source), scenario.batch_size, scenario.seed, 0)
        return replace(parts, loader=Replay(parts.loader, batches))


def _header(scenario: Scenario, parts: Parts, command: Sequence[str]) -> Header:
    return Header(
        name=scenario.name,
        command=list(command),
        scenario=settings(scenario),
        environment=environment.describe(),
        identity=ranks.identity(os.environ),
        device=dict(parts.model.device),
        source=dict(parts.source.describe()),
        loader={
            "n_workers": parts.loader.n_workers,
            "prefetch_batches": parts.loader.prefetch_batches,
            "replayed": isinstance(parts.loader, Replay),
        },
        clock={"perf_counter_ns": time.perf_counter_ns(), "time_ns": time.time_ns()},
        process_start_ns=clocks.process_start_ns(),
    )


def _outcome(
    parts: Parts,
    stamps: Watch,
    delivered: Delivered,
    cpu: tuple[CpuReading | None, CpuReading | None],
    ended_by: BaseException | None,
) -> Outcome:
    losses = parts.model.losses()
    cores = environment.usable_cores(len(environment.affinity_cores() or ()) or None, environment.quota_cores())
    return Outcome(
        complete=ended_by is None,
        stopped_by=None if ended_by is None else f"{type(ended_by).__name__}: {ended_by}".removesuffix(": "),
        loss=None if losses is None else (_finite(losses[0]), _finite(losses[1])),
        distinct_samples=delivered.distinct,
        cpu_cores=environment.cpu_cores(*cpu),
        foreign_cpu_share=environment.foreign_cpu_share(*cpu, cores),
        steps=stamps.steps,
        samples=stamps.samples,
        epochs=stamps.epochs,
        us_per_step_main=us_per_step() + instrument.us_per_batch(parts.loader.n_workers),
        us_per_batch_maker=probe.us_per_batch(),
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
