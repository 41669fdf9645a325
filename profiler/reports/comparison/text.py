"""What a person reads in the terminal of several runs: which setting to take, what it costs, and a line a setting."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ...comparison import NOISY_SHARE, Comparison, Interval, Setting
from ...units import count, duration, share, size
from .._page import fitting, page
from .._words import NOT_MEASURED, share_or_not

WIDE = 100
"""From so many characters on there is room for the intervals."""
APART = "from .. to"
FIGURES = ("samples/s", APART, "idle", "memory", "cores", "start-up")
BOLD, DIM, WARN = "bold", "dim", "bold yellow"


def render(comparison: Comparison, *, width: int | None = None, colour: bool = False) -> str:
    """Plain text, or text with terminal colours."""
    return page(
        filter(
            None, (_title(comparison), _conclusion(comparison), _table(comparison, fitting(width) >= WIDE), _notes(comparison))
        ),
        width=width,
        colour=colour,
    )


def _title(comparison: Comparison) -> RenderableType:
    said = list(shared_labels(comparison.settings))
    said += [] if comparison.complete else ["incomplete: not all runs were made"]
    title = Text(f"{comparison.name}: {count(len(comparison.settings))} settings, {runs_each(comparison)}", style=BOLD)
    return Group(title, Text(" ".join(f"[{label}]" for label in said), style=WARN)) if said else title


def runs_each(comparison: Comparison) -> str:
    return "one run each" if comparison.repeats == 1 else f"{count(comparison.repeats)} runs each"


def shared_labels(settings: Sequence[Setting]) -> Sequence[str]:
    """What holds for all that was measured; other labels stand beside their setting."""
    measured = [setting.labels for setting in settings if setting.throughput_samples_per_s]
    return [label for label in measured[0] if all(label in labels for labels in measured)] if measured else []


def _conclusion(comparison: Comparison) -> RenderableType | None:
    if not comparison.conclusion:
        return None
    return Panel(Text(" ".join((comparison.conclusion, comparison.cost))), box=box.HEAVY)


def _table(comparison: Comparison, wide: bool) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style=DIM)
    table.add_column("", width=1)
    table.add_column("setting", min_width=20)
    for name in FIGURES if wide else (name for name in FIGURES if name != APART):
        table.add_column(name, justify="right", no_wrap=True)
    group = ""
    for i, setting in enumerate(comparison.settings):
        if setting.group not in ("", group):
            table.add_row("", Text(setting.group, style=BOLD))
        group = setting.group
        name = ("  " if group else "") + (setting.label or comparison.name) + _said_of(setting, comparison)
        taken = i == comparison.enough and len(comparison.settings) > 1
        table.add_row(">" if taken else "", name, *_figures(setting, wide), style=BOLD if taken else "")
    return table


def _said_of(setting: Setting, comparison: Comparison) -> str:
    said = [label for label in setting.said_of_it if label not in shared_labels(comparison.settings)]
    said += ["disturbed"] if setting.noisy else []
    return f" [{', '.join(said)}]" if said else ""


def _figures(setting: Setting, wide: bool) -> tuple[str, ...]:
    if setting.throughput_samples_per_s is None:
        return (NOT_MEASURED,)
    return (
        count(setting.throughput_samples_per_s.median),
        *([_between(setting.throughput_samples_per_s)] if wide else []),
        share_or_not(setting.device_idle_share),
        "?" if setting.memory_bytes is None else size(setting.memory_bytes),
        "?" if setting.cpu_cores is None else f"{setting.cpu_cores:.1f}",
        "?" if setting.startup_s is None else duration(setting.startup_s * 1e9),
    )


def _between(interval: Interval) -> str:
    return "" if interval.low is None or interval.high is None else f"{count(interval.low)} .. {count(interval.high)}"


def _notes(comparison: Comparison) -> RenderableType:
    notes = [f"Not measured: {setting.name}: {setting.problem}" for setting in comparison.settings if setting.problem]
    if comparison.ceiling_samples_per_s:
        notes.append(f"Ceiling, with loading removed: {count(comparison.ceiling_samples_per_s)} samples/s")
    if comparison.demand_samples_per_s:
        demand = count(comparison.demand_samples_per_s)
        notes.append(f"Demand, what the consumer takes while no batch is late: {demand} samples/s (median of the runs)")
    notes.append(f"{APART}: {between_what(comparison)}")
    if any(setting.noisy for setting in comparison.settings):
        notes.append(f"disturbed: other processes took over {share(NOISY_SHARE)} of the cores, in each of up to three tries")
    return Group(*(Text(note, style=DIM) for note in notes))


def between_what(comparison: Comparison) -> str:
    """What an interval is here."""
    if comparison.repeats > 1:
        return "the slowest and the fastest run"
    return "95 % interval over blocks of the one run; drift between runs is not in it"
