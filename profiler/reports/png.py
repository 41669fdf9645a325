"""stalls.png: what idles and why, in three panels on one page: the wall time shared out, the steps, the rates over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from ..intervals import Intervals
from ..result import Diagnosis, Result, Storage
from ..run import Run
from ..timeline import Steps, Timeline, timeline
from ..units import count, duration, share, size
from . import _palette as palette
from ._figure import PAPER, blank, fitted, header, heading, in_line, say, to_png, write
from ._words import CAUSES, HOST_AS_DEVICE, NOT_MEASURED, PARTS, STAGES, no_storage

Floats = NDArray[np.float64]

INCHES = (12.0, 10.0)
LEFT, RIGHT = 0.1, 0.97
MOST_STEPS = 1500
"""More steps than this are drawn as bins: the picture has no more pixels, and a million steps stay quick."""
STEP_BINS, TIME_BINS, STEPS_PER_TIME_BIN = 700, 60, 8
BAR_HEIGHT = 0.5
"""Of the distance between bars: room for a line of labels below each."""
SMALLEST_SHARE = 0.0005
"""Less of the wall time reads 0.0 % and is left out."""
CLIP_AT = 3.0
"""Steps longer than this many 95th percentiles are cut off at the top and labelled, so that the others stay visible."""
EPOCHS_APART, STEPS_APART = 0.07, 0.12
"""Of the width: names of epochs, and lengths of steps, that are closer than this would overlap."""


def render(run: Run, result: Result, diagnosis: Diagnosis) -> bytes:
    """A PNG. Drawn from the run's events and the result's numbers; the title is the first finding."""
    figure = blank(*INCHES)
    top = header(figure, run, result, diagnosis)
    bottom = 0.055
    middle = bottom + 0.58 * (top - bottom)
    where = figure.add_axes((LEFT, middle + 0.085, RIGHT - LEFT, top - middle - 0.13))
    grid = figure.add_gridspec(
        3, 1, height_ratios=(5, 3.4, 2.2), left=LEFT, right=RIGHT, top=middle, bottom=bottom, hspace=0.36
    )
    steps, rates, storage = (figure.add_subplot(grid[row]) for row in range(3))
    _where(where, result)
    line = timeline(run)
    if line is None or line.end_ns == 0 or len(line.steps) == 0:
        for axes, words in ((steps, "no steps were recorded"), (rates, ""), (storage, "")):
            say(axes, words)
    else:
        edges = np.linspace(0, line.end_ns, 1 + min(TIME_BINS, max(1, len(line.steps) // STEPS_PER_TIME_BIN)))
        _steps(steps, line)
        _rates(rates, line, edges, result.demand_samples_per_s)
        _storage(storage, line, edges, no_storage(result), result.storage)
        for axes in (steps, rates, storage):
            _time_axis(axes, line, last=axes is storage)
        _name_epochs(steps, line)
    return to_png(figure)


# Where the wall time went


class Segment(NamedTuple):
    """A part of a bar."""

    name: str
    share: float
    colour: str


def bars(result: Result) -> list[tuple[str, list[Segment]]]:
    """The device's bar first, then its input stall by stage, then the host's; without a measured device the host's two.

    Input comes first in each, so that stall, its stages and the host's wait begin at the same line and can be compared.
    """
    host = _segments(result.wall_by_part, {part: word.name for part, word in PARTS.items()}, palette.PARTS)
    stages = {stage: word.name for stage, word in STAGES.items()}
    if result.device_busy_share is None:
        return [("host", host), ("its wait\nby stage", _segments(result.input_wait_by_stage, stages, palette.STAGES))]
    causes = {"input": result.idle_by_cause.get("input")} | dict(result.idle_by_cause)
    device = _segments(causes, {cause: f"idle: {word.name}" for cause, word in CAUSES.items()}, palette.CAUSES)
    device += _segments({"busy": result.device_busy_share}, {"busy": "busy"}, {"busy": palette.BUSY})
    stalls = _segments(result.input_stall_by_stage, stages, palette.STAGES)
    return [("device", device), ("its input\nstall by\nstage", stalls), ("host", host)]


def _segments(shares: Mapping[str, float | None], names: Mapping[str, str], colours: Mapping[str, str]) -> list[Segment]:
    """What was measured and is not nothing."""
    return [Segment(names[key], part, colours[key]) for key, part in shares.items() if part and part >= SMALLEST_SHARE]


def _where(axes: Axes, result: Result) -> None:
    if not result.wall_s:
        say(axes, "nothing was recorded: the run ended before its first iter()")
        return
    heading(axes, "Where the wall time went", note=_note(result))
    drawn = bars(result)
    axes.set_xlim(0, 100)
    axes.set_ylim(len(drawn) - 0.35, -0.45)
    axes.set_yticks(range(len(drawn)), [name for name, _ in drawn], fontsize=10)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(f"share of the wall time of {duration(result.wall_s * 1e9)}, %", fontsize=9)
    axes.spines[["top", "right", "left"]].set_visible(False)
    for row, (_, segments) in enumerate(drawn):
        _bar(axes, row, segments)


def _note(result: Result) -> str:
    if result.device_busy_share is None:
        return "when the device was busy was not measured: this is the host"
    if words := HOST_AS_DEVICE.get(str(result.device.get("method"))):
        return words
    if result.sync_every_step:
        return "the loop waits for the device in each step: it is never busy while the host waits for a batch"
    return "the device may be busy while the host waits: only where it idles is time lost"


def _bar(axes: Axes, row: int, segments: Sequence[Segment]) -> None:
    """Labels inside where they fit; those of the rest in a line below."""
    left, small = 0.0, []
    for segment in segments:
        width = 100 * segment.share
        axes.barh(row, width, left=left, height=BAR_HEIGHT, color=segment.colour, edgecolor="white", linewidth=0.8)
        if not _label(axes, (left + width / 2, row), width, segment):
            small.append((f"{segment.name} {share(segment.share)}", segment.colour))
        left += width
    if not segments:
        write(axes, "none", (0, row), (0, 0), coords="data", colour=palette.MUTED)
    in_line(axes, small, (0, row + 0.4), (0, 0), coords="data")


def _label(axes: Axes, centre: tuple[float, float], width: float, segment: Segment) -> bool:
    """Writes the label into its segment, on one line or two; False if it is too wide for it."""
    room_px = width / 100 * axes.bbox.width - 8, BAR_HEIGHT * axes.bbox.height / abs(np.diff(axes.get_ylim())[0])
    spellings = (f"{segment.name}{gap}{share(segment.share)}" for gap in (" ", "\n"))
    return fitted(axes, centre, room_px, spellings, segment.colour)


# Steps over time


class Strip(NamedTuple):
    """Steps, or means over bins of them, side by side along the time axis."""

    left_s: Floats
    right_s: Floats
    wait_ms: Floats
    step_ms: Floats
    highest_ms: Floats
    """The longest step of each bin, its wait included."""
    steps_per_bin: int


def strip(steps: Steps) -> Strip:
    per_bin = 1 if len(steps) <= MOST_STEPS else -(-len(steps) // STEP_BINS)
    first = np.arange(0, len(steps), per_bin)
    sizes = np.diff(np.append(first, len(steps)))
    return Strip(
        left_s=steps.asked[first] / 1e9,
        right_s=steps.ended[first + sizes - 1] / 1e9,
        wait_ms=np.add.reduceat(steps.got - steps.asked, first) / sizes / 1e6,
        step_ms=np.add.reduceat(steps.ended - steps.got, first) / sizes / 1e6,
        highest_ms=np.maximum.reduceat(steps.ended - steps.asked, first) / 1e6,
        steps_per_bin=per_bin,
    )


def _steps(axes: Axes, line: Timeline) -> None:
    drawn = strip(line.steps)
    mean_ms, top_ms = drawn.wait_ms + drawn.step_ms, _top_ms(drawn)
    axes.set_ylim(0, top_ms)
    _fill(axes, drawn, np.zeros_like(mean_ms), drawn.wait_ms, palette.PARTS["wait"])
    _fill(axes, drawn, drawn.wait_ms, mean_ms, palette.PARTS["step"])
    entries = [("waiting for a batch", palette.PARTS["wait"]), ("in the step", palette.PARTS["step"])]
    for spans, name, colour in (
        (line.startup, "start-up", palette.STAGES["startup"]),
        (line.outside, "outside the loop", palette.OUTSIDE),
    ):
        if spans is not None and len(spans):
            _shade(axes, spans, top_ms, colour)
            entries.append((name, colour))
    note = ""
    if drawn.steps_per_bin > 1:
        note = f"mean of each {count(drawn.steps_per_bin)} steps; line: the longest of them"
        axes.plot((drawn.left_s + drawn.right_s) / 2, drawn.highest_ms, color=palette.MUTED, linewidth=0.6)
    heading(axes, "Each step", entries, note)
    _cut_off(axes, drawn, top_ms, line.end_ns / 1e9)
    axes.set_ylabel("ms a step", fontsize=9)


def _top_ms(drawn: Strip) -> float:
    """Leaves out the few that are much longer than the rest; of bins, shows the longest of most and still the means."""
    usual = CLIP_AT * float(np.percentile(drawn.wait_ms + drawn.step_ms, 95))
    shown = float(np.clip(1.2 * np.median(drawn.highest_ms), usual, 2 * usual))
    return 1.3 * min(float(drawn.highest_ms.max()), shown) or 1.0


def _shade(axes: Axes, spans: Intervals, top_ms: float, colour: str) -> None:
    starts, lengths = spans[:, 0] / 1e9, (spans[:, 1] - spans[:, 0]) / 1e9
    axes.broken_barh(list(zip(starts.tolist(), lengths.tolist(), strict=True)), (0, top_ms), color=colour, linewidth=0)


def _fill(axes: Axes, drawn: Strip, low_ms: Floats, high_ms: Floats, colour: str) -> None:
    """One polygon for all: thousands of bars narrower than a pixel would leave pale stripes between them."""
    x = np.column_stack((drawn.left_s, drawn.left_s, drawn.right_s, drawn.right_s)).ravel()
    none = np.zeros_like(low_ms)
    low, high = (np.column_stack((none, edge, edge, none)).ravel() for edge in (low_ms, high_ms))
    axes.fill_between(x, low, high, color=colour, linewidth=0)


def _cut_off(axes: Axes, drawn: Strip, top_ms: float, end_s: float) -> None:
    """Says how long the steps are that do not fit: the three longest, as far as their labels do not overlap."""
    beyond = np.flatnonzero(drawn.highest_ms > top_ms)
    taken: list[float] = []
    for i in beyond[np.argsort(-drawn.highest_ms[beyond])][:3]:
        x = float(drawn.left_s[i] + drawn.right_s[i]) / 2
        if any(abs(x - other) < STEPS_APART * end_s for other in taken):
            continue
        taken.append(x)
        text = write(axes, f"▲ {duration(drawn.highest_ms[i] * 1e6)}", (x, 0.8 * top_ms), (0, 0), coords="data")
        text.set_horizontalalignment("right" if x > 0.8 * end_s else "left")
        text.set_bbox(PAPER)


# Rates over time


def _rates(axes: Axes, line: Timeline, edges: Floats, demand: float | None) -> None:
    rates = _samples(line.steps, edges) / np.diff(edges) * 1e9
    axes.stairs(rates, edges / 1e9, fill=True, color=palette.PARTS["step"])
    axes.set_ylim(0, 1.4 * max(float(rates.max()), demand or 0.0) or 1.0)
    axes.set_ylabel("samples/s", fontsize=9)
    heading(axes, "Throughput", [("samples taken by the loop", palette.PARTS["step"])])
    if demand is not None:
        axes.axhline(demand, color=palette.INK, linestyle="--", linewidth=1.2)
        text = f"demand: {count(demand)} samples/s if no batch were ever late"
        axes.text(0.995 * edges[-1] / 1e9, demand * 1.06, text, ha="right", va="bottom", fontsize=9, bbox=PAPER)


def _samples(steps: Steps, edges: Floats) -> Floats:
    """Samples in each bin, those of a step spread evenly over it: so that bins do not flicker with where steps end."""
    after = np.cumsum(steps.n_samples)
    times = np.column_stack((steps.asked, steps.ended)).ravel()
    samples = np.column_stack((after - steps.n_samples, after)).ravel()
    return np.diff(np.interp(edges, times, samples))


def _storage(axes: Axes, line: Timeline, edges: Floats, nothing: str | None, storage: Storage) -> None:
    """nothing: why there is nothing to draw, if so."""
    if nothing is not None:
        heading(axes, "Storage", note=nothing)
        axes.set_yticks([])
        return
    ends, asked, fetched = (line.made[name] for name in ("end_ns", "bytes_asked", "bytes_from_device"))
    if storage.emulated:  # the kernel's count is of the page cache, and of single batches there is no other
        fetched = np.zeros_like(fetched)
    seconds = np.diff(edges) / 1e9
    asked_mb, fetched_mb = (np.histogram(ends, edges, weights=column)[0] / seconds / 1e6 for column in (asked, fetched))
    entries = [("asked for", palette.INK)]
    note = "bytes from a device were not measured" if bool((fetched < 0).any()) else "no bytes from a device"
    if storage.emulated:
        fetched_bytes = storage.bytes_from_device
        note = f"from an emulated device {NOT_MEASURED if fetched_bytes is None else f'{size(fetched_bytes)} in all'}"
    elif fetched.min() >= 0 and fetched.sum() > 0:
        entries, note = [("from a device", palette.STAGES["fetch"]), *entries], ""
        axes.stairs(fetched_mb, edges / 1e9, fill=True, color=palette.STAGES["fetch"])
    axes.stairs(asked_mb, edges / 1e9, color=palette.INK, linewidth=1)
    axes.set_ylim(0, 1.2 * max(float(asked_mb.max()), float(fetched_mb.max())) or 1.0)
    axes.set_ylabel("MB/s", fontsize=9)
    heading(axes, "Storage", entries, note)


def _time_axis(axes: Axes, line: Timeline, last: bool) -> None:
    """The same time axis below each panel, with the beginnings of epochs marked."""
    end_s = line.end_ns / 1e9 or 1.0
    axes.set_xlim(0, end_s)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=9, labelbottom=last)
    if last:
        axes.set_xlabel("seconds since the first iter()", fontsize=9)
    starts = [epoch.start_ns / 1e9 for epoch in line.epochs]
    axes.vlines(starts[1:], 0, 1, transform=axes.get_xaxis_transform(), color=palette.MUTED, linewidth=0.8, linestyle=":")


def _name_epochs(axes: Axes, line: Timeline) -> None:
    """At the top of the panel, as many as fit."""
    end_s, named_s = line.end_ns / 1e9, 0.0
    for number, epoch in enumerate(line.epochs, 1):
        start_s = epoch.start_ns / 1e9
        fits = start_s - named_s >= EPOCHS_APART * end_s and end_s - start_s >= EPOCHS_APART * end_s
        if number == 1 or fits:
            text = write(axes, f"epoch {count(number)}", (start_s, 0.93), (3, 0), coords="data")
            text.xycoords = ("data", "axes fraction")
            text.set_bbox(PAPER)
            named_s = start_s
