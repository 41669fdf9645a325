"""Measures several settings side by side: in random order, again where neighbours disturbed it, saved as soon as it is had."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np

from .child import Ended, Task, carry_out
from .comparison import Comparison, Measured, Setting, compare, measured
from .conclude import draw_comparison, keep
from .errors import UserError
from .measure import measure
from .runfile import SUMMARY, read_comparison, read_run, write_whole
from .scenario import Scenario, Variant
from .scenario import settings as effective

MOST_EXTRA_SHARE = 1 / 3
"""Of the planned runs: so many more are made, at most, in place of those that neighbours disturbed."""
MOST_TRIES = 3
"""Of a setting's run: some neighbours stay."""


_RUN = re.compile(r"(run|ceiling)-[0-9]{3,}")


class Board(Protocol):
    """Shows how far it is."""

    def checking(self) -> None: ...
    def planned(self, runs: int) -> None: ...
    def running(self, name: str) -> None: ...
    def had(self, name: str, run: Measured | None, problem: str | None) -> None: ...


class Sweep:
    """What is asked for, what is had so far, and where it is kept."""

    def __init__(self, name: str, variants: Sequence[Variant], folder: Path, command: Sequence[str], device: str) -> None:
        self.name, self.variants, self.folder, self._command, self._device = name, variants, folder, command, device
        self.repeats = variants[0].scenario.repeats
        self.settings = [Setting(v.group, v.label, v.settings, effective(v.scenario)) for v in variants]
        self.runs: list[Measured] = []

    def take_up(self) -> None:
        """Goes on with what a killed sweep of the same settings left in the directory. Raises UserError if it is another's."""
        before = read_comparison(self.folder)
        if before.complete:
            raise UserError(f"{self.folder} holds a finished comparison: choose another --out, or remove it")
        if [setting.scenario for setting in before.settings] != [setting.scenario for setting in self.settings]:
            raise UserError(
                f"{self.folder} holds an unfinished comparison of other settings: go on with those, or choose another --out"
            )
        memory = {run.run: run.memory_bytes for run in before.runs}
        self.runs = list(self._finished(memory))

    def compared(self, complete: bool = False) -> Comparison:
        return compare(self.name, self.settings, self.runs, self.repeats, complete)

    def save(self, complete: bool = False) -> Comparison:
        comparison = self.compared(complete)
        write_whole(self.folder / SUMMARY, draw_comparison(comparison, "json"))
        return comparison

    def check(self, silent: bool) -> None:
        """Makes all samples ready and builds all parts: what cannot be measured is refused before anything is.

        One process for each pair of frameworks, so that none meets another. It also leaves their files in memory: a first
        import from a cold disk takes many times longer. A setting whose framework is missing is left out, with the reason.
        """
        together: dict[tuple[object, ...], list[int]] = {}
        for i, variant in enumerate(self.variants):
            loader, model = variant.scenario.loader, variant.scenario.model
            together.setdefault((loader.kind, model.kind, model.options.get("implementation")), []).append(i)
        ready: list[object] = []
        for group in together.values():
            tasks = []
            for i in group:
                scenario = self.variants[i].scenario
                tasks.append(Task(scenario, self._device, prepare=scenario.source not in ready, silent=silent))
                ready.append(scenario.source)
            for i, ended in zip(group, carry_out(tasks), strict=False):
                self._checked(i, ended)

    def _checked(self, i: int, ended: Ended) -> None:
        if ended.status == "not_installed":
            self.settings[i] = replace(self.settings[i], problem=ended.words, installed=False)
        elif ended.status == "interrupted":
            raise KeyboardInterrupt
        elif ended.status != "well":
            raise UserError(f"{self.settings[i].name}: {ended.words}" if len(self.settings) > 1 else ended.words)

    def plan(self) -> list[int | None]:
        """What is left to measure, in order: the ceiling, then round after round all settings, each round in an order of its
        own, so that neither drift nor a neighbour meets one setting in all of its runs."""
        had = Counter(run.setting for run in self.runs)
        rng = np.random.default_rng(self.variants[0].scenario.seed)
        rounds = [rng.permutation(len(self.settings)).tolist() for _ in range(self.repeats)]
        measurable = [[i for i in order if not self.settings[i].problem] for order in rounds]
        left: list[int | None] = [i for number, order in enumerate(measurable) for i in order if had[i] <= number]
        return [*([None] if self._has_ceiling() and not had[None] else []), *left]

    def _has_ceiling(self) -> bool:
        """Whether all settings feed one consumer, so that one figure says what it takes."""
        scenarios = [variant.scenario for variant in self.variants]
        consumers = [(s.model, s.batch_size, s.sync_every_step) for s in scenarios]
        return len(scenarios) > 1 and all(consumer == consumers[0] for consumer in consumers)

    def disturbed(self) -> Iterator[int]:
        """Settings with fewer undisturbed runs than were asked for, asked again after each run; a limited number of times."""
        extra = int(len(self.settings) * self.repeats * MOST_EXTRA_SHARE) or 1
        tries = Counter[int | None]()
        for _ in range(extra):
            quiet = Counter(run.setting for run in self.runs if not run.noisy)
            had = Counter(run.setting for run in self.runs)
            short = [i for i in range(len(self.settings)) if had[i] >= self.repeats > quiet[i] and tries[i] < MOST_TRIES - 1]
            if not short:
                return
            i = min(short, key=lambda i: tries[i])
            tries[i] += 1
            yield i

    def measure(self, i: int | None, silent: bool) -> Measured | None:
        """One run of a setting, or of the ceiling; kept at once. None: it could not be measured, and the setting says why."""
        scenario = self._ceiling() if i is None else self.variants[i].scenario
        folder = self._next("ceiling" if i is None else "run")
        task = Task(scenario, self._device, folder, replay=i is None, command=self._command, silent=silent)
        [ended] = carry_out([task])
        if ended.status == "interrupted":
            raise KeyboardInterrupt
        if ended.status != "well":
            self._failed(i, ended)
            return None
        self.runs.append(measured(folder.name, i, keep(folder).result, ended.memory_bytes))
        self.save()
        return self.runs[-1]

    def _ceiling(self) -> Scenario:
        return next(v.scenario for v, setting in zip(self.variants, self.settings, strict=True) if not setting.problem)

    def _failed(self, i: int | None, ended: Ended) -> None:
        if ended.status == "failed":
            print(ended.words, file=sys.stderr)
        if i is not None:
            self.settings[i] = replace(self.settings[i], problem=ended.words.splitlines()[-1])
            self.save()

    def _next(self, kind: str) -> Path:
        """A new directory: one that a killed run left is kept as it is."""
        numbers = [int(found.name.rpartition("-")[2]) for found in self._run_folders() if found.name.startswith(kind)]
        return self.folder / f"{kind}-{max(numbers, default=-1) + 1:03d}"

    def _run_folders(self) -> list[Path]:
        """In their order. A copy that somebody made of one, under another name, is none."""
        return sorted(found for found in self.folder.iterdir() if _RUN.fullmatch(found.name))

    def _finished(self, memory: dict[str, int | None]) -> Iterator[Measured]:
        """The whole runs that lie in the directory, whether or not the summary knew of them before it was killed."""
        wanted = [setting.scenario for setting in self.settings]
        for folder in self._run_folders():
            try:
                run = read_run(folder)
            except UserError:  # killed before it had begun
                continue
            ceiling = folder.name.startswith("ceiling-")
            if run.complete and (ceiling or run.header.scenario in wanted):
                setting = None if ceiling else wanted.index(run.header.scenario)
                yield measured(folder.name, setting, measure(run), memory.get(folder.name))


def sweep(made: Sweep, board: Board, silent: bool) -> Comparison:
    """Measures whatever is not measured yet. What was had before an interrupt, or a full disk, is kept."""
    board.checking()
    made.check(silent)
    if all(setting.problem for setting in made.settings):
        raise UserError("; ".join(dict.fromkeys(setting.problem or "" for setting in made.settings)))
    made.folder.mkdir(parents=True, exist_ok=True)
    made.save()
    plan = made.plan()
    board.planned(len(plan))
    for i in plan:
        _one(made, i, board, silent)
    for i in made.disturbed():
        board.planned(1)
        _one(made, i, board, silent)
    return made.save(complete=True)


def _one(made: Sweep, i: int | None, board: Board, silent: bool) -> None:
    if i is not None and made.settings[i].problem:  # an earlier run of it failed: so would this one
        board.had(made.settings[i].name, None, None)
        return
    name = "with loading removed" if i is None else made.settings[i].name
    board.running(name)
    run = made.measure(i, silent)
    board.had(name, run, None if i is None else made.settings[i].problem)
