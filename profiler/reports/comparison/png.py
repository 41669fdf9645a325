"""compare.png: which setting to take and what it costs. A row a setting: throughput against the ceiling, idle, the price."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ...comparison import Comparison, Setting
from ...units import count
from .. import _palette as palette
from .._words import NOT_MEASURED
from ._words import OVER, PRICES, UNKNOWN, between_what, heading, is_disturbed, is_unknown, prices, said_of, said_of_all

WIDTH_IN, ROW_IN, DPI = 12.0, 0.36, 100
HEAD_IN, FOOT_IN = 1.95, 1.15
LEFT, THROUGHPUT, IDLE, PRICE = 0.02, (0.27, 0.37), (0.68, 0.11), (0.81, 0.18)
"""Of the width: where names begin; left edge and width of the panels."""
BAR_HEIGHT = 0.62
NAME_WIDTH = 42
"""In characters."""
SAME_LINE_SHARE = 0.03
"""Demand and ceiling closer than this are drawn as one line."""
TAKEN, OTHER = palette.BUSY, "#b4c4d4"


class Row(NamedTuple):
    """A line of the picture: the name of a group, or a setting."""

    y: float
    group: str | None
    number: int | None


def render(comparison: Comparison) -> bytes:
    """A PNG. The title is the conclusion."""
    rows = _rows(comparison.settings)
    height = HEAD_IN + FOOT_IN + ROW_IN * len(rows)
    figure = Figure(figsize=(WIDTH_IN, height), dpi=DPI, facecolor="white")
    canvas = FigureCanvasAgg(figure)
    _head(figure, comparison, height)
    bottom, tall = FOOT_IN / height, ROW_IN * len(rows) / height
    throughput, idle, price = (figure.add_axes((left, bottom, width, tall)) for left, width in (THROUGHPUT, IDLE, PRICE))
    for axes in (throughput, idle, price):
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_yticks([])
        axes.spines[["top", "right", "left"]].set_visible(False)
    _names(throughput, rows, comparison)
    _throughput(throughput, rows, comparison)
    _idle(idle, rows, comparison.settings)
    _price(price, rows, comparison)
    _foot(figure, comparison, height)
    png = io.BytesIO()
    canvas.print_png(png)  # type: ignore[no-untyped-call]
    return png.getvalue()


def _rows(settings: Sequence[Setting]) -> list[Row]:
    """The settings in their order, and the name of each group before its first."""
    rows: list[Row] = []
    group = ""
    for number, setting in enumerate(settings):
        if setting.group and setting.group != group:
            rows.append(Row(len(rows), setting.group, None))
        group = setting.group
        rows.append(Row(len(rows), None, number))
    return rows


def _head(figure: Figure, comparison: Comparison, height: float) -> None:
    title = textwrap.wrap(
        comparison.conclusion or f"{comparison.name}: nothing to compare yet", 92, max_lines=2, placeholder=" ..."
    )
    below = " | ".join([heading(comparison), *said_of_all(comparison)])
    figure.text(
        LEFT, 1 - 0.16 / height, "\n".join(title), va="top", fontsize=14, fontweight="bold", color=palette.INK, parse_math=False
    )
    after = 0.16 + 0.27 * len(title) + 0.08
    lines = "\n".join([*textwrap.wrap(comparison.cost, 150), below])
    figure.text(LEFT, 1 - after / height, lines, va="top", fontsize=10, color=palette.INK, linespacing=1.4, parse_math=False)


def _names(axes: Axes, rows: Sequence[Row], comparison: Comparison) -> None:
    """Beside their bars; the name of a group has the whole width."""
    for row in rows:
        lines, weight, indent = [textwrap.shorten(row.group or "", 120, placeholder=" ...")], "bold", 0.0
        if row.number is not None:
            setting = comparison.settings[row.number]
            own = "".join(f" ({said})" for said in said_of(setting, comparison))
            text = (setting.label or comparison.name) + own
            lines = textwrap.wrap(text, NAME_WIDTH, max_lines=2, placeholder=" ...")
            weight, indent = "bold" if row.number == comparison.enough else "normal", 0.01 if setting.group else 0.0
        axes.text(
            (LEFT + indent - THROUGHPUT[0]) / THROUGHPUT[1],
            row.y,
            "\n".join(lines),
            transform=axes.get_yaxis_transform(),
            va="center",
            fontsize=9.5 if len(lines) == 1 else 8.5,
            fontweight=weight,
            color=palette.INK,
            parse_math=False,
        )


def _throughput(axes: Axes, rows: Sequence[Row], comparison: Comparison) -> None:
    """Bars from zero, with the interval; what the consumer could take, as lines across all of them."""
    rates = [setting.throughput_samples_per_s for setting in comparison.settings]
    highest = max([rate.high or rate.median for rate in rates if rate] + [comparison.ceiling_samples_per_s or 0, 1])
    axes.set_xlim(0, 1.16 * highest)
    for row in rows:
        if row.number is None:
            continue
        setting, rate = comparison.settings[row.number], rates[row.number]
        if rate is None:
            problem = textwrap.shorten(setting.problem or "", 62, placeholder=" ...")
            axes.text(0, row.y, f"{NOT_MEASURED}: {problem}", va="center", fontsize=8.5, color=palette.MUTED, parse_math=False)
            continue
        axes.barh(row.y, rate.median, BAR_HEIGHT, color=TAKEN if row.number == comparison.enough else OTHER)
        if rate.low is not None and rate.high is not None:
            for colour, width in (("white", 3.5), (palette.INK, 1.4)):  # dark on dark would not be seen
                axes.plot([rate.low, rate.high], [row.y] * 2, color=colour, linewidth=width, marker="|", markersize=7)
        text = count(rate.median) + (" *" if setting.noisy else "")
        axes.annotate(
            text,
            (max(rate.high or 0, rate.median), row.y),
            (5, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            color=palette.INK,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5},
        )
    _lines(axes, comparison)
    axes.set_xlabel("samples/s", fontsize=9.5, color=palette.INK)
    axes.tick_params(labelsize=9)
    axes.set_title("Throughput", loc="left", fontsize=10.5, fontweight="bold", pad=22)


def _lines(axes: Axes, comparison: Comparison) -> None:
    ceiling, demand = comparison.ceiling_samples_per_s, comparison.demand_samples_per_s
    lines = [(ceiling, "ceiling: loading removed", "-"), (demand, "demand of the consumer", ":")]
    if ceiling and demand and abs(ceiling - demand) <= SAME_LINE_SHARE * ceiling:
        lines = [(ceiling, "ceiling (loading removed) = demand of the consumer", "-")]
    for i, (at, name, style) in enumerate(lines):
        if at and at <= axes.get_xlim()[1]:
            axes.axvline(at, color=palette.INPUT, linewidth=1.5, linestyle=style)
            axes.annotate(
                f"{name}, {count(at)}",
                (at, 1),
                (0, 5 + 10 * i),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                ha="right",
                fontsize=8.5,
                color=palette.INPUT,
            )


def _idle(axes: Axes, rows: Sequence[Row], settings: Sequence[Setting]) -> None:
    """Device idle of the wall time: the part for want of input in its colour."""
    axes.set_xlim(0, 1)
    for row in rows:
        setting = settings[row.number] if row.number is not None else None
        if setting is None or setting.throughput_samples_per_s is None:
            continue
        if setting.device_idle_share is None:
            axes.text(0, row.y, NOT_MEASURED, va="center", fontsize=8.5, color=palette.MUTED)
            continue
        idle, stall = setting.device_idle_share, setting.input_stall_share or 0.0
        axes.barh(row.y, stall, BAR_HEIGHT, color=palette.INPUT)
        axes.barh(row.y, idle - stall, BAR_HEIGHT, left=stall, color=palette.UNEXPLAINED)
        inside = idle > 0.6
        axes.text(
            idle + (-0.03 if inside else 0.03),
            row.y,
            f"{100 * idle:.0f} %",
            va="center",
            ha="right" if inside else "left",
            fontsize=9,
            color=palette.ink_on(palette.INPUT) if inside else palette.INK,
        )
    axes.set_xticks([0, 0.5, 1], ["0", "50", "100 %"])
    axes.tick_params(labelsize=9)
    axes.set_xlabel("of the wall time", fontsize=9.5, color=palette.INK)
    axes.set_title("Device idle", loc="left", fontsize=10.5, fontweight="bold", pad=22)


def _price(axes: Axes, rows: Sequence[Row], comparison: Comparison) -> None:
    """What a setting takes, in numbers."""
    axes.set_xlim(0, 3)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    axes.set_title("What it takes", loc="left", fontsize=10.5, fontweight="bold", pad=22)
    for column, name in enumerate(PRICES):
        axes.annotate(
            name,
            (column + 0.9, 1),
            (0, 5),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha="right",
            fontsize=9,
            color=palette.MUTED,
        )
    for row in rows:
        setting = comparison.settings[row.number] if row.number is not None else None
        if setting is None or setting.throughput_samples_per_s is None:
            continue
        weight = "bold" if row.number == comparison.enough else "normal"
        for column, text in enumerate(prices(setting)):
            axes.text(column + 0.9, row.y, text, va="center", ha="right", fontsize=9, fontweight=weight, color=palette.INK)


def _foot(figure: Figure, comparison: Comparison, height: float) -> None:
    notes = [
        f"Throughput: without warm-up; whiskers: {between_what(comparison)}."
        + (f" * others took {OVER}." if is_disturbed(comparison) else ""),
        "Idle: of the whole run; orange: for want of a batch, grey: for other causes.",
        "Memory: all processes, at its highest. Cores: CPU used while the loop ran. Start-up: until the loader began to work."
        + (f" {UNKNOWN}: {NOT_MEASURED}." if is_unknown(comparison) else ""),
    ]
    figure.text(
        LEFT, 0.08 / height, "\n".join(notes), va="bottom", fontsize=8.5, color=palette.MUTED, linespacing=1.4, parse_math=False
    )
