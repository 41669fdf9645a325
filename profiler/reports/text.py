"""What a person reads in the terminal: the finding first, then the numbers it rests on, then what was not measured."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any, NamedTuple

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ..result import NEIGHBOURS_SHARE, Cost, Diagnosis, Finding, Result, Storage
from ..run import Run
from ..units import count, duration, rate, share, size, speedup
from . import _making as _making_words
from ._page import page
from ._words import BUSY, CAUSES, NOT_MEASURED, PARTS, STAGES, labels, no_storage, setup, share_or_not, throughput

MOST_FINDINGS = 5
MOST_EPOCHS = 6
"""Of more epochs the first few and the last are shown: later ones seldom differ from each other."""
COLD_SHARE = 0.01
"""Up to this share of the files in memory still counts as cold."""
BOLD, DIM, WARN = "bold", "dim", "bold yellow"
SEVERITY = {"high": "red", "moderate": "yellow", "info": "green"}


def render(run: Run, result: Result, diagnosis: Diagnosis, *, width: int | None = None, colour: bool = False) -> str:
    """Plain text, or text with terminal colours. width: in characters; the terminal's, within 80..120, if not given."""
    sections = [
        _title(run, result),
        _findings(diagnosis.findings),
        _headline(result),
        _where(result),
        _making(result),
        _storage(result),
        _cost(result),
        _not_measured(result),
    ]
    return page(filter(None, sections), width=width, colour=colour)


def footer(folder: str, program: str) -> str:
    """The line that every measuring run ends with: the command that draws its report again."""
    return f"Draw this again: {program} report {shlex.quote(folder)}"


def _pairs(rows: Iterable[tuple[str, str | Text]], key_width: int = 12) -> Table:
    """A name and its text, which wraps beside the name and not below it."""
    table = Table.grid(padding=(0, 2), expand=False)
    table.add_column(min_width=key_width, style=BOLD)
    table.add_column()
    for name, text in rows:
        table.add_row(Text(name), Text(text) if isinstance(text, str) else text)
    return table


def _title(run: Run, result: Result) -> RenderableType:
    title, said = Text(f"{result.name}: {setup(run, result)}", style=BOLD), labels(run, result)
    return Group(title, Text(" ".join(f"[{label}]" for label in said), style=WARN)) if said else title


# What was found


def _findings(findings: Sequence[Finding]) -> RenderableType:
    first, *others = findings[:MOST_FINDINGS]
    blocks: list[RenderableType] = [Panel(_finding(first), box=box.HEAVY, border_style=SEVERITY[first.severity])]
    blocks += [_finding(finding, f"{number}. ") for number, finding in enumerate(others, 2)]
    if len(findings) > MOST_FINDINGS:
        blocks.append(Text(f"{len(findings) - MOST_FINDINGS} more, smaller ones: see result.json", style=DIM))
    return Group(*blocks)


def _finding(finding: Finding, number: str = "") -> RenderableType:
    rows = [("because", finding.because), ("try next", finding.try_next)]
    if finding.predicted_gain:
        rows.append(("gain", _predicted(finding.predicted_gain)))
    return Group(Text(number + finding.verdict, style=BOLD), _pairs(((f"   {name}", text) for name, text in rows), 11))


def _predicted(predicted: Mapping[str, Any]) -> str:
    interval = predicted.get("ci95")
    sure = f" (95 % interval {speedup(interval[0])} to {speedup(interval[1])})" if interval else ""
    return f"predicted {speedup(predicted['speedup'])}{sure}"


# The numbers in one look


def _headline(result: Result) -> RenderableType:
    rows = [
        ("Throughput", _throughput(result)),
        ("Device idle", _idle(result)),
        ("Input stall", _stall(result)),
        ("Headroom", _headroom(result)),
        ("Done", _done(result)),
    ]
    if result.loss:
        rows.append(("Loss", _loss(result.loss["first"], result.loss["last"])))
    return _pairs(rows)


def _throughput(result: Result) -> str:
    rates = result.throughput_samples_per_s
    interval = "" if rates.steady_ci95 is None else f" (95 % interval {' to '.join(map(count, rates.steady_ci95))})"
    return f"whole run {throughput(rates.epoch)}; steady {throughput(rates.steady)}{interval}"


def _idle(result: Result) -> str:
    idle, busy = result.device_idle_share, result.device_busy_share
    return NOT_MEASURED if idle is None or busy is None else f"{share(idle)} of the wall time; busy {share(busy)}"


def _stall(result: Result) -> str:
    stall = result.steady_input_stall
    if stall is None:
        whole = result.input_stall_share
        return NOT_MEASURED if whole is None else f"{share(whole)} of the wall time; of the steady time {NOT_MEASURED}"
    low, high = stall.ci95
    return f"{share(stall.share)} of the steady time (95 % interval {share(low)} to {share(high)}): idle for want of a batch"


def _headroom(result: Result) -> str:
    if result.demand_samples_per_s is None or result.headroom_max_speedup is None:
        return f"{NOT_MEASURED} (what faster loading could gain)"
    can = f"the device could take {throughput(result.demand_samples_per_s)}, "
    can += f"the loader can make {throughput(result.capacity_samples_per_s)}"
    return f"{can}: faster loading can gain at most {speedup(result.headroom_max_speedup)}"


def _done(result: Result) -> str:
    text = f"{_plural(result.steps, 'step')} in {_plural(result.epochs, 'epoch')}, {_plural(result.samples, 'sample')}"
    text += f" in {_seconds(result.wall_s)}"
    text += "" if result.startup_s is None else f", {_seconds(result.startup_s)} of it start-up"
    text += "" if result.before_loop_s is None else f"; {_seconds(result.before_loop_s)} before the loop"
    if result.unreadable_samples:
        text += f"; {_plural(result.unreadable_samples, 'unreadable sample')} left out"
    return text


def _loss(first: float | None, last: float | None) -> str:
    if first is None or last is None:
        return "not a number: the training diverged"
    moved = f" ({'fell' if last <= first else 'rose'} by {share(abs(first - last) / abs(first))})" if first else ""
    return f"{first:.4g} -> {last:.4g}{moved}"


def _seconds(seconds: float | None) -> str:
    return NOT_MEASURED if seconds is None else duration(seconds * 1e9)


def _plural(n: int, noun: str) -> str:
    return f"{count(n)} {noun}{'' if n == 1 else 's'}"


# Where the wall time went


class Row(NamedTuple):
    """One part of the wall time."""

    name: str
    share: float | None
    meaning: str
    within: bool = False
    """Part of the last row that is not: left out of the total."""


def wall_rows(result: Result) -> list[Row]:
    """The parts of the wall time, of the device or, if it is not measured, of the host. Those not within another sum to 1."""
    if result.device_busy_share is None:
        whole = [Row(PARTS[part].name, part_share, PARTS[part].meaning) for part, part_share in result.wall_by_part.items()]
        return _with_stages(whole, PARTS["wait"].name, result.input_wait_by_stage)
    busy = Row("device busy", result.device_busy_share, BUSY.get(str(result.device.get("method")), "computing"))
    idle = [Row(f"idle: {CAUSES[cause].name}", part, CAUSES[cause].meaning) for cause, part in result.idle_by_cause.items()]
    return _with_stages([busy, *idle], f"idle: {CAUSES['input'].name}", result.input_stall_by_stage)


def _with_stages(rows: list[Row], parent: str, stages: Mapping[str, float | None]) -> list[Row]:
    """The stages below the row that they split; none below a row of nothing."""
    at = next(i for i, row in enumerate(rows) if row.name == parent)
    split = [Row(STAGES[stage].name, part, STAGES[stage].meaning, within=True) for stage, part in stages.items()]
    return [*rows[: at + 1], *(split if rows[at].share else []), *rows[at + 1 :]]


def total(rows: Iterable[Row]) -> float:
    return sum(row.share or 0.0 for row in rows if not row.within)


def _where(result: Result) -> RenderableType:
    title = Text("Where the wall time went", style=BOLD)
    if not result.wall_s:
        return Group(title, Text("nothing was recorded: the run ended before its first iter()"))
    rows = wall_rows(result)
    table = Table.grid(padding=(0, 2, 0, 0))
    for justify in ("left", "right", "right", "left"):
        table.add_column(justify=justify, no_wrap=justify == "right")
    for row in rows:
        indent, style = ("    ", DIM) if row.within else ("", "")
        time = "" if row.share is None else _seconds(row.share * result.wall_s)
        table.add_row(indent + row.name, share_or_not(row.share), time, row.meaning, style=style)
    table.add_row("total", share(total(rows)), _seconds(total(rows) * result.wall_s), "", style=BOLD)
    return Group(title, table, *(Text(note) for note in _notes(result)))


def _notes(result: Result) -> list[str]:
    notes = []
    if result.device_busy_share is not None:
        host = (f"{PARTS[part].name} {share_or_not(part_share)}" for part, part_share in result.wall_by_part.items())
        notes.append(f"The host meanwhile: {', '.join(host)}")
    else:
        notes.append("This is where the host was: when the device was busy was not measured")
    if result.sync_every_step:
        notes.append("The loop waits for the device in each step (sync_every_step)")
    return notes


# Where batches are made


def _making(result: Result) -> RenderableType | None:
    told = _making_words.rows(result)
    return _pairs(told) if told else None


# What the storage shows


def _storage(result: Result) -> RenderableType:
    nothing = no_storage(result)
    rows = [("Storage", nothing or _read(result.storage))]
    if result.storage.emulated:
        rows.append(("", "emulated: the device is arithmetic in time, not hardware"))
    if result.source.get("disk"):
        rows.append(("Disk", _disk(result.source["disk"])))
    return Group(_pairs(rows), *([_epochs(result.epochs_detail, nothing is None)] if result.epochs_detail else []))


def _read(storage: Storage) -> str:
    asked, fetched = _bytes(storage.bytes_asked), _bytes(storage.bytes_from_device)
    text = f"asked for {asked}; from a device {fetched}; from memory {share_or_not(storage.cached_share)}"
    return text if storage.reads is None else f"{text}; {_plural(storage.reads, 'sample')} read"


def _bytes(n_bytes: int | None) -> str:
    return NOT_MEASURED if n_bytes is None else size(n_bytes)


def _disk(disk: Mapping[str, Any]) -> str:
    device = f"/dev/{disk['device']}" if disk.get("device") else None
    what = " ".join(filter(None, (disk.get("file_system"), device, "(virtual)" if disk.get("virtual") else None)))
    sequential, random = disk.get("sequential_bytes_per_s"), disk.get("random_read_p50_ns")
    speed = f"one reader {NOT_MEASURED if sequential is None else rate(sequential)}"
    speed += f", a random read {NOT_MEASURED if random is None else duration(random)} (median)"
    return f"{what or 'unknown'}; read cold before the run: {speed}"


def _epochs(epochs: Sequence[Mapping[str, Any]], stored: bool) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style=DIM)
    names = ("epoch", "wall", "first wait", "cached before", "asked for", "from device", "came from")
    for name in names if stored else names[:3]:
        table.add_column(name, justify="left" if name == "came from" else "right", overflow="fold")
    shown = list(enumerate(epochs, 1))
    skipped = len(shown) - MOST_EPOCHS
    for i, epoch in shown if skipped <= 0 else [*shown[: MOST_EPOCHS - 1], shown[-1]]:
        if skipped > 0 and i == len(epochs):
            table.add_row("...", f"{count(skipped)} more")
        table.add_row(*(str(epoch.get("epoch", i - 1) + 1), *_epoch(epoch))[: len(table.columns)])
    return table


def _epoch(epoch: Mapping[str, Any]) -> tuple[str, ...]:
    wait, before = epoch["first_wait_ms"], epoch["resident_share_before"]
    return (
        _seconds(epoch["wall_s"]),
        NOT_MEASURED if wait is None else duration(wait * 1e6),
        share_or_not(before) + (" (cold)" if before is not None and before <= COLD_SHARE else ""),
        _bytes(epoch["bytes_asked"]),
        _bytes(epoch["bytes_from_device"]),
        _came_from(epoch["bytes_asked"], epoch["bytes_from_device"]),
    )


def _came_from(asked: int | None, fetched: int | None) -> str:
    """In words, what the two numbers beside it say."""
    if not asked or fetched is None:
        return ""
    from_memory = min(1.0, max(0.0, 1 - fetched / asked))
    whole = {0: "the device", 100: "memory"}
    return whole.get(round(100 * from_memory), f"memory {share(from_memory)}")


# What to believe of it


def _cost(result: Result) -> RenderableType:
    return _pairs([("Profiling", _profiling(result.profiler_cost)), ("Neighbours", _neighbours(result.foreign_cpu_share))])


def _profiling(cost: Cost) -> str:
    text = f"cost {NOT_MEASURED}" if cost.share is None else f"cost {share(cost.share)} of the wall time"
    text += "" if cost.us_per_step_main is None else f", {duration(cost.us_per_step_main * 1e3)} a step in the loop"
    text += "" if cost.us_per_batch_worker is None else f", {duration(cost.us_per_batch_worker * 1e3)} a batch where it is made"
    text += f"; {_plural(cost.records, 'record')}, {NOT_MEASURED if cost.dropped is None else count(cost.dropped)} lost"
    failed = ", ".join(f"{name} {count(times)}" for name, times in cost.faults.items())
    return text + (f"; background readings that failed: {failed}" if failed else "")


def _neighbours(foreign: float | None) -> Text:
    if foreign is None:
        return Text(f"CPU taken by other processes {NOT_MEASURED}")
    text = f"other processes took {share(foreign)} of the usable cores"
    return Text(f"{text}: the results move with it", style=WARN) if foreign > NEIGHBOURS_SHARE else Text(text)


MEASURES = {
    "device_idle_share": "when the device was busy, and why it was not",
    "steady_input_stall": "the steady input stall and what faster loading can gain (both need 30 steady steps)",
    "throughput_samples_per_s": "throughput",
    "step_time_ms": "step times",
    "idle_by_cause": "causes of idling",
    "input_wait_by_stage": "stages of waiting",
    "step_by_part": "parts of the step",
    "startup_s": "start-up",
    "before_loop_s": "time before the loop",
    "capacity_samples_per_s": "what the loader can make",
    "storage": "storage",
    "workers": "workers",
    "handoff_latency_ms": "latency of the hand-off",
    "loss": "loss",
    "distinct_samples": "distinct samples",
    "memory": "memory",
    "foreign_cpu_share": "CPU used by other processes",
    "throttled_share": "throttling by a CPU quota",
    "pressure": "pressure on CPU, I/O and memory",
    "au": "accelerator utilisation against an ideal loader",
    "profiler_cost": "cost of profiling",
}
"""What can be null in a result, in words."""


def unmeasured(result: Result) -> list[str]:
    """What is null in the result. Of a group of numbers only those that are, unless all are."""
    said = []
    for key, words in MEASURES.items():
        value = getattr(result, key)
        parts: Mapping[str, Any] = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
        if value is None:
            said.append(words)
        elif isinstance(parts, Mapping) and (missing := [name for name, part in parts.items() if part is None]):
            covered = key == "idle_by_cause" and result.device_idle_share is None
            said += [] if covered else [_group(words, missing, sum(not isinstance(part, bool) for part in parts.values()))]
    return said


def _group(words: str, missing: Sequence[str], n_parts: int) -> str:
    names = ", ".join(STAGES[name].name if name in STAGES else name.replace("_", " ") for name in missing)
    return words if len(missing) == n_parts else f"{words} ({names})"


def _not_measured(result: Result) -> RenderableType:
    missing = unmeasured(result)
    return _pairs([("Not measured", "; ".join(missing) if missing else "nothing: every number of the contract is there")])
