"""What a person reads in the terminal of several runs: which setting to take, what it costs, and a line a setting."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ...comparison import Comparison, Interval, Setting
from ...units import count
from .._page import fitting, page
from .._words import NOT_MEASURED, share_or_not
from ._words import (
    OVER,
    PRICES,
    UNKNOWN,
    between_what,
    heading,
    is_disturbed,
    is_unknown,
    prices,
    said_of,
    said_of_all,
)

WIDE = 100
"""From so many characters on there is room for the intervals."""
APART = "from .. to"
FIGURES = ("samples/s", APART, "idle", *PRICES)
BOLD, DIM, WARN = "bold", "dim", "bold yellow"


def render(comparison: Comparison, *, width: int | None = None, colour: bool = False) -> str:
    """Plain text, or text with terminal colours."""
    table = _table(comparison, wide=fitting(width) >= WIDE)
    sections = [_title(comparison), _conclusion(comparison), table, _notes(comparison)]
    return page(filter(None, sections), width=width, colour=colour)


def _title(comparison: Comparison) -> RenderableType:
    title, said = Text(heading(comparison), style=BOLD), said_of_all(comparison)
    return Group(title, Text(" ".join(f"[{label}]" for label in said), style=WARN)) if said else title


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
        said = [*said_of(setting, comparison), *(["disturbed"] * setting.noisy)]
        name = ("  " if group else "") + (setting.label or comparison.name) + (f" [{', '.join(said)}]" if said else "")
        taken = i == comparison.enough and len(comparison.settings) > 1
        table.add_row(">" if taken else "", name, *_figures(setting, wide), style=BOLD if taken else "")
    return table


def _figures(setting: Setting, wide: bool) -> tuple[str, ...]:
    if setting.throughput_samples_per_s is None:
        return (NOT_MEASURED,)
    return (
        count(setting.throughput_samples_per_s.median),
        *([_between(setting.throughput_samples_per_s)] if wide else []),
        share_or_not(setting.device_idle_share),
        *prices(setting),
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
    if is_disturbed(comparison):
        notes.append(f"disturbed: other processes took {OVER}, in each of up to three tries")
    if is_unknown(comparison):
        notes.append(f"{UNKNOWN}: {NOT_MEASURED}")
    return Group(*(Text(note, style=DIM) for note in notes))
