"""Runs of one scenario under several settings: which is fastest, which is enough, and what each costs. Pure arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_low
from typing import Any

from .result import NEIGHBOURS_SHARE, Result, labels
from .steady import STALL_THRESHOLD
from .units import count, share, size, speedup

ENOUGH_SHARE = 0.97
"""Of the best throughput: settings that reach it differ by less than runs of one setting do."""
MEMORY_STEP = 1.1
"""Memory within 10 % counts as the same: the cores then decide."""


@dataclass(frozen=True)
class Measured:
    """One run, as much of it as a comparison rests on."""

    run: str
    """Its directory, beside summary.json."""
    setting: int | None
    """Which setting it is a run of; None: loading was removed, so as to see what the consumer takes."""
    throughput_samples_per_s: float | None
    """Steady; of a run too short for that, the whole run's."""
    ci95: tuple[float, float] | None
    """Of the steady throughput, over blocks of the run. Drift between runs is not in it."""
    device_idle_share: float | None
    input_stall_share: float | None
    demand_samples_per_s: float | None
    startup_s: float | None
    cpu_cores: float | None
    """CPU that all its processes used while the loop ran, in cores."""
    memory_bytes: int | None
    """Highest reading of the memory of all its processes, once a second, shared pages counted once."""
    foreign_cpu_share: float | None
    verdict: str
    labels: Sequence[str] = ()
    """What its figures must not be quoted without: simulated device, emulated storage."""
    complete: bool = True

    @property
    def noisy(self) -> bool:
        """The run is made again, and marked if it stays so."""
        return self.foreign_cpu_share is not None and self.foreign_cpu_share > NEIGHBOURS_SHARE


@dataclass(frozen=True)
class Interval:
    """Samples per second of one setting."""

    median: float
    low: float | None
    """With several runs the slowest and the fastest of them; with one, the 95 % interval over its blocks."""
    high: float | None


@dataclass(frozen=True)
class Setting:
    """One of the settings that are compared, and the middle one of its runs."""

    group: str
    label: str
    settings: Mapping[str, Any]
    """As `vary` sets them: "loader.num_workers" -> 2."""
    scenario: Mapping[str, Any]
    """The effective settings of its runs, every default filled in."""
    runs: Sequence[str] = ()
    """Those that count: the noisy ones only where there is no other."""
    throughput_samples_per_s: Interval | None = None
    """null: not measured."""
    device_idle_share: float | None = None
    input_stall_share: float | None = None
    startup_s: float | None = None
    cpu_cores: float | None = None
    memory_bytes: int | None = None
    labels: Sequence[str] = ()
    noisy: bool = False
    """Other processes took more than 10 % of the cores in every run that counts."""
    reference: bool = False
    """Samples that are made up, among real ones: shows what is possible, and is nothing to take."""
    problem: str | None = None
    """Why it was not measured, in words."""
    installed: bool = True
    """False: a framework that it needs is not there, so it was left out."""

    @property
    def name(self) -> str:
        return ": ".join(filter(None, (self.group, self.label)))


@dataclass(frozen=True)
class Comparison:
    """The content of summary.json, schema 1. Keys may be added, never renamed or given another meaning."""

    name: str
    settings: Sequence[Setting]
    repeats: int
    runs: Sequence[Measured] = ()
    """In the order in which they were made."""
    schema: int = 1
    complete: bool = False
    """Every setting has the runs that were asked for, or a reason why not."""
    ceiling_samples_per_s: float | None = None
    """What the consumer takes when loading is removed: a few batches, made before, are given again and again."""
    demand_samples_per_s: float | None = None
    """What the consumer takes while it is not waiting, beside the loaders at work: median over the runs."""
    best: int | None = None
    """The setting of the highest median throughput."""
    enough: int | None = None
    """Of the settings that reach 97 % of the best, the one that takes the least memory, then the fewest cores."""
    conclusion: str = ""
    """Which to take, in a sentence."""
    cost: str = ""
    """What that costs, and what it rests on."""
    throughput_samples_per_s: Mapping[str, float | None] | None = None
    """median, min and max over the runs of the only setting; null where several are compared."""


def measured(run: str, setting: int | None, result: Result, memory_bytes: int | None) -> Measured:
    throughput = result.throughput_samples_per_s
    return Measured(
        run,
        setting,
        throughput.steady or throughput.epoch,
        throughput.steady_ci95,
        result.device_idle_share,
        result.input_stall_share,
        result.demand_samples_per_s,
        result.startup_s,
        result.cpu_cores,
        memory_bytes,
        result.foreign_cpu_share,
        result.verdict,
        labels(result),
        result.complete,
    )


def compare(name: str, settings: Sequence[Setting], runs: Sequence[Measured], repeats: int, complete: bool) -> Comparison:
    """All settings with the runs so far. Problems are given in the settings, and are kept."""
    named = _referenced(settings)
    whole = [_summed(setting, [run for run in runs if run.setting == i]) for i, setting in enumerate(named)]
    ceilings = [run.throughput_samples_per_s for run in runs if run.setting is None and run.throughput_samples_per_s]
    demands = [run.demand_samples_per_s for run in runs if run.setting is not None and run.demand_samples_per_s]
    choices = [i for i, setting in enumerate(whole) if setting.throughput_samples_per_s and not setting.reference]
    best = max(choices, key=lambda i: _median(whole[i])) if choices else None
    comparison = Comparison(
        name,
        whole,
        repeats,
        runs,
        complete=complete,
        ceiling_samples_per_s=median_low(ceilings) if ceilings else None,
        demand_samples_per_s=median_low(demands) if demands else None,
        best=best,
        enough=None if best is None else _enough(whole, best),
        throughput_samples_per_s=_only(whole),
    )
    return _concluded(comparison)


def _referenced(settings: Sequence[Setting]) -> list[Setting]:
    made_up = [setting.scenario.get("source", {}).get("kind") == "synthetic" for setting in settings]
    return [replace(each, reference=is_it and not all(made_up)) for each, is_it in zip(settings, made_up, strict=True)]


MIDDLE = ("device_idle_share", "input_stall_share", "startup_s", "cpu_cores", "memory_bytes", "labels", "noisy")
"""What a setting takes from the middle one of its runs: numbers of one run belong together."""


def _summed(setting: Setting, runs: Sequence[Measured]) -> Setting:
    """The setting with what its runs say."""
    usable = [run for run in runs if run.throughput_samples_per_s and run.complete]
    counted = sorted([run for run in usable if not run.noisy] or usable, key=_rate)
    if not counted:
        return setting
    middle = counted[(len(counted) - 1) // 2]
    apart = (_rate(counted[0]), _rate(counted[-1])) if len(counted) > 1 else middle.ci95 or (None, None)
    facts = {name: getattr(middle, name) for name in MIDDLE}
    runs_in_order = [run.run for run in runs if run in counted]
    return replace(setting, runs=runs_in_order, throughput_samples_per_s=Interval(_rate(middle), *apart), **facts)


def _rate(run: Measured) -> float:
    return run.throughput_samples_per_s or 0.0


def _median(setting: Setting) -> float:
    return setting.throughput_samples_per_s.median if setting.throughput_samples_per_s else 0.0


def _only(settings: Sequence[Setting]) -> Mapping[str, float | None] | None:
    rates = settings[0].throughput_samples_per_s if len(settings) == 1 else None
    return None if rates is None else {"median": rates.median, "min": rates.low, "max": rates.high}


def _enough(settings: Sequence[Setting], best: int) -> int:
    """What was not measured counts as dear."""
    enough = ENOUGH_SHARE * _median(settings[best])
    near = [i for i, setting in enumerate(settings) if not setting.reference and _median(setting) >= enough]
    memory = {i: _or_dear(settings[i].memory_bytes) for i in near}
    cheap = [i for i in near if memory[i] <= MEMORY_STEP * min(memory.values())]
    return min(cheap, key=lambda i: _or_dear(settings[i].cpu_cores))


def _or_dear(cost: float | None) -> float:
    return math.inf if cost is None else cost


# In words


def _concluded(comparison: Comparison) -> Comparison:
    if comparison.best is None or comparison.enough is None or len(comparison.settings) == 1:
        return comparison
    return replace(comparison, conclusion=_conclusion(comparison), cost=_price(comparison))


def _conclusion(comparison: Comparison) -> str:
    """Which to take, how much faster it is than the slowest, and whether it is fast enough for the device."""
    assert comparison.enough is not None
    taken = comparison.settings[comparison.enough]
    rates = [_median(setting) for setting in comparison.settings if setting.throughput_samples_per_s]
    text = f"Take {taken.name}: {count(_median(taken))} samples/s"
    text += f", {speedup(_median(taken) / min(rates))} the slowest" if _median(taken) >= 1.1 * min(rates) else ""
    return f"{text}. {_left(taken)}"


def _left(taken: Setting) -> str:
    """What is still to be gained."""
    if taken.device_idle_share is None:
        return "How long the device idles was not measured."
    if taken.input_stall_share is not None and taken.input_stall_share >= STALL_THRESHOLD:
        return f"The device still idles {share(taken.device_idle_share)} of the time: none of these feeds it fast enough."
    return f"The device idles {share(taken.device_idle_share)} of the time: faster loading would gain next to nothing."


def _price(comparison: Comparison) -> str:
    """What the taken setting costs, beside the cheapest one; and what the fastest would gain, if that is another."""
    assert comparison.best is not None
    assert comparison.enough is not None
    best, taken = comparison.settings[comparison.best], comparison.settings[comparison.enough]
    costs = []
    if taken.memory_bytes:
        least = min(setting.memory_bytes for setting in comparison.settings if setting.memory_bytes)
        costs.append(f"{size(taken.memory_bytes)} of memory" + _beside(taken.memory_bytes, least, size(least)))
    if taken.cpu_cores is not None:
        fewest = min(setting.cpu_cores for setting in comparison.settings if setting.cpu_cores is not None)
        costs.append(f"{taken.cpu_cores:.1f} cores" + _beside(taken.cpu_cores, fewest, f"{fewest:.1f}"))
    text = f"It takes {' and '.join(costs)}." if costs else ""
    gain = _median(best) / _median(taken) - 1
    return text if gain < 0.001 else f"{text} The fastest, {best.name}, gains {share(gain)} more.".strip()


def _beside(taken: float, least: float, text: str) -> str:
    return "" if taken <= MEMORY_STEP * least else f" (the least here: {text})"
