"""lanes.png: why the loop waited. Its wait by stage, who did what in typical steps, which batches lay ready, what is slow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ..attribution import pieces
from ..events import Kind
from ..handoff import arrivals_ns
from ..intervals import Intervals, complement, intersect, subtract, union
from ..queue_depth import queue_depth
from ..result import Diagnosis, Result
from ..run import Run
from ..stretch import typical
from ..timeline import Columns, Timeline, timeline
from ..units import count, duration, share
from . import _palette as palette
from ._figure import PAPER, blank, fitted, header, heading, in_line, say, to_png, width_pt, write
from ._words import NOT_MEASURED, PARTS, STAGES

Floats = NDArray[np.floating]

WIDTH_IN, LEFT, RIGHT = 12.0, 0.1, 0.97
SPLIT_IN, LANE_IN, QUEUE_IN, NO_QUEUE_IN, HARDEST_IN = 1.25, 0.5, 1.3, 0.2, 1.9
GAP_IN, FOOT_IN = 0.9, 0.25
"""Between two panels, for an axis below and a heading above; at the end."""
MOST_MAKERS = 8
BAR_HEIGHT = 0.56
BOX, TAIL = (-0.4, 0.2), (0.24, 0.4)
"""Of a lane, from top to bottom: where boxes lie, and the tails of finished batches."""
TAIL_LEVELS = 2
"""A worker may have several finished batches: their tails take turns."""
NUMBER_PX = 5.0
"""Width of a digit."""
SMALLEST_SHARE, MOST_SMALL = 0.0005, 6
"""Less of the wall time reads 0.0 % and is left out; more labels in a line than this would not fit."""
MOST_CHANGES, QUEUE_BINS = 3000, 700
"""More changes of the queue than pixels are drawn as means."""
HARDEST = 8


def render(run: Run, result: Result, diagnosis: Diagnosis) -> bytes:
    """A PNG. Drawn from the run's events and the result's numbers; the title is the first finding."""
    line = timeline(run)
    if line is not None and (line.end_ns == 0 or len(line.steps) == 0):
        line = None
    shown = None if line is None else _shown(line, result)
    lanes_in = LANE_IN * (1 if shown is None else len(shown.lanes))
    queue_in = QUEUE_IN if result.loader.get("n_workers") and len(run.made["pid"]) else NO_QUEUE_IN
    figure, (split, lanes, queue, hardest) = _page(run, result, diagnosis, (SPLIT_IN, lanes_in, queue_in, HARDEST_IN))
    _split(split, result)
    if line is None or shown is None:
        say(lanes, "no steps were recorded")
        say(queue, "")
    else:
        _lanes(lanes, line, shown, result)
        _queue(queue, line, shown, result)
    waits, samples = hardest.inset_axes((0.02, 0, 0.36, 1)), hardest.inset_axes((0.52, 0, 0.48, 1))
    hardest.set_axis_off()
    _longest_waits(waits, run, result)
    _slowest_samples(samples, result)
    return to_png(figure)


def _page(run: Run, result: Result, diagnosis: Diagnosis, heights_in: Sequence[float]) -> tuple[Figure, list[Axes]]:
    """Panels of these heights below each other, and a page as high as they need."""
    below_in = sum(heights_in) + GAP_IN * len(heights_in) + FOOT_IN
    trial = blank(WIDTH_IN, below_in)
    top_in = below_in * (1 - header(trial, run, result, diagnosis)) + 0.4
    height_in = top_in + below_in - GAP_IN
    figure = blank(WIDTH_IN, height_in)
    header(figure, run, result, diagnosis)
    axes = []
    for tall_in in heights_in:
        axes.append(figure.add_axes((LEFT, 1 - (top_in + tall_in) / height_in, RIGHT - LEFT, tall_in / height_in)))
        top_in += tall_in + GAP_IN
    return figure, axes


# Wait and stall by stage


class Part(NamedTuple):
    """A stage of a bar."""

    name: str
    share: float
    """Of the wall time."""
    ms: float
    """A step."""
    colour: str


def split(result: Result) -> list[tuple[str, list[Part]]]:
    """The loop's wait, and of a device that was watched its stall."""
    bars = [("loop's wait", result.input_wait_by_stage)]
    if result.device_busy_share is not None:
        bars.append(("device's stall", result.input_stall_by_stage))
    ms = result.wall_s * 1e3 / max(1, result.steps)
    return [
        (
            name,
            [
                Part(STAGES[stage].name, part, part * ms, palette.STAGES[stage])
                for stage, part in by_stage.items()
                if part and part >= SMALLEST_SHARE
            ],
        )
        for name, by_stage in bars
    ]


def _split(axes: Axes, result: Result) -> None:
    if not result.wall_s:
        say(axes, "nothing was recorded: the run ended before its first iter()")
        return
    bars = split(result)
    note = "a step on average, and its share of the wall time" + (
        "" if result.device_busy_share is not None else "; the device was not watched"
    )
    heading(axes, "Wait and stall, split", note=note)
    axes.set_xlim(0, 1.2 * max([sum(part.ms for part in parts) for _, parts in bars]) or 1.0)
    axes.set_ylim(len(bars) - 0.3, -0.45)
    axes.set_yticks(range(len(bars)), [name for name, _ in bars], fontsize=10)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=9)
    axes.set_xlabel("ms a step", fontsize=9, labelpad=1)
    axes.spines[["top", "right", "left"]].set_visible(False)
    for row, (_, parts) in enumerate(bars):
        _bar(axes, row, parts)


def _bar(axes: Axes, row: int, parts: Sequence[Part]) -> None:
    """Labels inside where they fit, those of the largest others in a line below; the sum behind."""
    left = 0.0
    small: list[Part] = []
    (x0, x1), (y0, y1) = axes.get_xlim(), axes.get_ylim()
    for part in parts:
        axes.barh(row, part.ms, left=left, height=BAR_HEIGHT, color=part.colour, edgecolor="white", linewidth=0.8)
        room = part.ms / (x1 - x0) * axes.bbox.width - 8, BAR_HEIGHT / (y0 - y1) * axes.bbox.height
        figures = _figures(part.ms, part.share)
        spellings = (f"{part.name} {figures}", f"{part.name}\n{figures}")
        if not fitted(axes, (left + part.ms / 2, row), room, spellings, part.colour):
            small.append(part)
        left += part.ms
    total = _figures(left, sum(part.share for part in parts)) if parts else "none"
    write(axes, total, (left, row), (6, 0), coords="data", weight="bold")
    largest = sorted(small, key=lambda part: -part.ms)[:MOST_SMALL]
    told = [(f"{part.name} {_figures(part.ms, part.share)}", part.colour) for part in small if part in largest]
    in_line(axes, told, (0, row + 0.43), (0, 0), coords="data")


def _figures(ms: float, part: float) -> str:
    return f"{_ms(ms)}, {share(part)}"


def _ms(ms: float) -> str:
    return duration(ms * 1e6)


# Lanes: who did what in a typical stretch


class Lane(NamedTuple):
    """A row of the picture."""

    name: str
    maker: tuple[int, int] | None = None
    """pid and thread id; None: the loop or the device."""


class Shown(NamedTuple):
    """What the lanes show."""

    steps: slice
    """Places of the steps."""
    start_ns: int
    end_ns: int
    lanes: Sequence[Lane]
    left_out: int
    """Makers that there is no room for."""


def _shown(line: Timeline, result: Result) -> Shown:
    steps = typical(line, result.warmup_steps)
    start, end = int(line.steps.asked[steps.start]), int(line.steps.ended[steps.stop - 1])
    makers = _makers(line, steps, result)
    device = [] if line.busy is None else [Lane("device")]
    return Shown(
        steps, start, max(start + 1, end), [Lane("the loop"), *device, *makers[:MOST_MAKERS]], max(0, len(makers) - MOST_MAKERS)
    )


def _makers(line: Timeline, steps: slice, result: Result) -> list[Lane]:
    """Those that made batches in the epochs of these steps, also if they did nothing meanwhile."""
    numbers = set(line.steps.epoch[steps].tolist())
    spans = [(epoch.start_ns, epoch.end_ns) for epoch in line.epochs if epoch.number in numbers]
    begins = line.made["begin_ns"]
    there = np.zeros(len(begins), dtype=np.bool_)
    for start, end in spans:
        there |= (begins >= start) & (begins < end)
    makers = [
        divmod(maker, 1 << 32) for maker in np.unique(line.made["pid"][there] << 32 | line.made["thread_id"][there]).tolist()
    ]
    if not result.loader.get("n_workers"):
        return [Lane("making" if len(makers) == 1 else f"maker {count(i)}", m) for i, m in enumerate(makers)]
    ids = dict(zip(line.started["pid"].tolist(), line.started["worker_id"].tolist(), strict=True))
    if all(pid in ids for pid, _ in makers):
        return [Lane(f"worker {count(ids[m[0]])}", m) for m in sorted(makers, key=lambda m: ids[m[0]])]
    kind = "thread" if len({pid for pid, _ in makers}) == 1 and len(makers) > 1 else "maker"
    return [Lane(f"{kind} {count(i)}", m) for i, m in enumerate(makers)]


def _lanes(axes: Axes, line: Timeline, shown: Shown, result: Result) -> None:
    axes.set_xlim(0, (shown.end_ns - shown.start_ns) / 1e6)
    axes.set_ylim(len(shown.lanes) - 0.5, -0.5)
    axes.set_yticks(range(len(shown.lanes)), [lane.name for lane in shown.lanes], fontsize=10)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=9)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.hlines(np.arange(1, len(shown.lanes)) - 0.5, *axes.get_xlim(), color=palette.UNEXPLAINED, linewidth=0.6)
    _loop(axes, line, shown)
    if line.busy is not None:
        _device(axes, line, shown)
    batches = _Batches(line)
    for row, lane in enumerate(shown.lanes):
        if lane.maker is not None:
            batches.draw(axes, row, lane.maker, shown)
    _legend(axes, line, shown, batches)
    last = shown.steps.stop - 1
    told = f"ms since the loop asked for the batch of step {count(shown.steps.start)}, up to step {count(last)}"
    if shown.left_out:
        told += f"; {count(shown.left_out)} more makers are not shown"
    if bool((line.made["batch"] >= 0).any()) and not len(line.received["step"]):
        told += f"; how batches came to the loop was {NOT_MEASURED}"
    axes.set_xlabel(told, fontsize=9, labelpad=1)


def _legend(axes: Axes, line: Timeline, shown: Shown, batches: _Batches) -> None:
    """Two lines: the loop and its device, then the makers."""
    loop = [(PARTS["wait"].name, palette.PARTS["wait"]), (PARTS["step"].name, palette.PARTS["step"])]
    loop += [(PARTS["outside_loop"].name, palette.OUTSIDE)] if len(_within(line.outside, shown)) else []
    loop += [("taking it in", palette.STAGES["handoff"])] if len(_taking_in(line, shown)) else []
    if line.busy is not None:
        loop += [("device busy", palette.BUSY), ("idle for want of a batch", palette.CAUSES["input"])]
        loop += [("idle otherwise", palette.UNEXPLAINED)]
    steps = shown.steps.stop - shown.steps.start
    heading(axes, f"{count(steps)} typical steps", loop, rise_pt=24)
    stages = [(f"{STAGES[stage].name}: {HOW[stage]}", palette.STAGES[stage]) for stage in HOW if stage in batches.seen]
    if len(_within(line.sampler, shown)):
        stages.append((STAGES["sampler"].name, palette.STAGES["sampler"]))
    x = in_line(axes, stages, (0, 1), (0, 9))
    if "handoff" in batches.seen:
        mark = write(axes, "▨", (0, 1), (x, 9), colour=palette.STAGES["handoff"])
        write(axes, "made, not yet read by the loop", (0, 1), (x + width_pt(mark) + 3, 9))


HOW = {"fetch": "blocked", "decode": "computing", "core_shortage": "no free core", "collate": "one batch of samples"}
"""What a maker does in a stage, for the legend."""


def _within(spans: Intervals, shown: Shown) -> Intervals:
    """What of them lies in the stretch, from its beginning."""
    return intersect(spans, union([[shown.start_ns, shown.end_ns]])) - shown.start_ns


def _fill(axes: Axes, spans: Intervals, low: float | Floats, high: float | Floats, colour: str, **look: Any) -> None:
    """Boxes from spans in ns and heights, each in one colour."""
    if len(spans) == 0:
        return
    left, right = spans[:, 0] / 1e6, spans[:, 1] / 1e6
    low, high = np.broadcast_to(low, left.shape), np.broadcast_to(high, left.shape)
    x, y = np.column_stack((left, left, right, right)), np.column_stack((low, high, high, low))
    given: dict[str, Any] = {"facecolor": colour, "linewidth": 0} | look
    boxes = PolyCollection(list(np.stack((x, y), axis=-1)), **given)
    axes.add_collection(boxes, autolim=False)


def _loop(axes: Axes, line: Timeline, shown: Shown) -> None:
    top, bottom = BOX[0], TAIL[1]
    for spans, colour in (
        (line.wait, palette.PARTS["wait"]),
        (line.step, palette.PARTS["step"]),
        (line.outside, palette.OUTSIDE),
    ):
        _fill(axes, _within(spans, shown), top, bottom, colour)
    _fill(axes, intersect(_within(line.wait, shown), _within(line.sampler, shown)), top, bottom, palette.STAGES["sampler"])
    _fill(
        axes,
        _taking_in(line, shown),
        0.1,
        bottom,
        palette.STAGES["handoff"],
        edgecolor=palette.STAGES["handoff"],
        linewidth=0.8,
    )
    if not len(line.gaps):
        steps = np.arange(shown.steps.start, shown.steps.stop)
        starts = np.array([line.steps.first_of(int(number)) for number in line.steps.epoch[steps]])
        edges = np.column_stack((line.steps.asked[steps], line.steps.ended[steps])) - shown.start_ns
        _number(axes, -0.18, edges, steps - starts)


def _taking_in(line: Timeline, shown: Shown) -> Intervals:
    """When a batch was read and unpickled while the loop waited."""
    reading = np.column_stack((line.received["start_ns"], line.received["end_ns"]))
    there = (reading[:, 1] > shown.start_ns) & (reading[:, 0] < shown.end_ns)
    return intersect(_within(line.wait, shown), _within(union(reading[there]), shown))


def _number(axes: Axes, y: float, spans: Intervals, numbers: NDArray[np.int64]) -> None:
    """Writes them into boxes that have room."""
    left, right = np.clip(spans / 1e6, *axes.get_xlim()).T
    px_per_ms = axes.bbox.width / np.diff(axes.get_xlim())[0]
    for x, width, number in zip((left + right) / 2, (right - left) * px_per_ms, numbers.tolist(), strict=True):
        if number >= 0 and width >= NUMBER_PX * len(str(number)) + 5:
            axes.text(x, y, str(number), ha="center", va="center", fontsize=7, color=palette.INK, bbox=PAPER)


def _device(axes: Axes, line: Timeline, shown: Shown) -> None:
    assert line.busy is not None
    busy, wait = _within(line.busy, shown), _within(line.wait, shown)
    idle = complement(busy, 0, shown.end_ns - shown.start_ns)
    for spans, colour in (
        (busy, palette.BUSY),
        (intersect(idle, wait), palette.CAUSES["input"]),
        (subtract(idle, wait), palette.UNEXPLAINED),
    ):
        _fill(axes, spans, 1 + BOX[0], 1 + TAIL[1], colour)


class _Batches:
    """What makers did, batch by batch. When in a batch each stage took place is not known: its shares are stacked."""

    def __init__(self, line: Timeline) -> None:
        self._made: Columns = line.made
        self._pieces = pieces(line.made)
        self._arrived = arrivals_ns(line.received, line.made)
        self.seen: set[str] = set()
        """Stages that were drawn."""

    def draw(self, axes: Axes, row: int, maker: tuple[int, int], shown: Shown) -> None:
        made = self._made
        until = np.maximum(made["end_ns"], self._arrived)
        mine = np.flatnonzero(
            (made["pid"] == maker[0])
            & (made["thread_id"] == maker[1])
            & (until > shown.start_ns)
            & (made["begin_ns"] < shown.end_ns)
        )
        mine = mine[np.argsort(made["begin_ns"][mine], kind="stable")]
        self._tails(axes, row, mine, shown)
        top, bottom = row + BOX[0], row + BOX[1]
        for piece in self._pieces:
            spans = np.column_stack((piece.start[mine], piece.end[mine])) - shown.start_ns
            low = np.full(len(mine), float(bottom))
            for stage, part in piece.shares.items():
                high = low + (top - bottom) * part[mine]
                there = (spans[:, 1] > spans[:, 0]) & (high < low)
                if there.any():
                    _fill(axes, spans[there], low[there], high[there], palette.STAGES[stage])
                    self.seen.add(stage)
                low = high
        whole = np.column_stack((made["begin_ns"][mine], made["end_ns"][mine])) - shown.start_ns
        _fill(axes, whole, top, bottom, "none", edgecolor="white", linewidth=1)
        _number(axes, (top + bottom) / 2, whole, made["batch"][mine])

    def _tails(self, axes: Axes, row: int, mine: NDArray[np.intp], shown: Shown) -> None:
        """From the end of its making to its arrival at the loop."""
        level = np.arange(len(mine)) % TAIL_LEVELS
        there = self._arrived[mine] >= 0
        spans = np.column_stack((self._made["end_ns"][mine], self._arrived[mine]))[there] - shown.start_ns
        tall = (TAIL[1] - TAIL[0]) / TAIL_LEVELS
        low = row + TAIL[0] + level[there] * tall
        colour = palette.STAGES["handoff"]
        _fill(axes, spans, low, low + 0.8 * tall, "white", edgecolor=colour, linewidth=0.6, hatch="//////")
        if there.any():
            self.seen.add("handoff")


# How many batches lay ready


def _queue(axes: Axes, line: Timeline, shown: Shown, result: Result) -> None:
    if not result.loader.get("n_workers"):
        say(axes, "no queue of batches: the loop makes each one itself while it waits")
        return
    if len(line.made["end_ns"]) == 0:
        say(axes, f"how many batches lay ready: {NOT_MEASURED}, since no making of a batch is on record")
        return
    most = int(result.loader.get("prefetch_batches") or 0)
    depth = queue_depth(line, most)
    note = f"none {share(depth.share(0, line.end_ns))} of the time"
    if most:
        note += f", all {count(most)} of them {share(depth.share(most, line.end_ns))}"
    if len(depth.at) <= MOST_CHANGES:
        edges, heights = np.append(depth.at, max(line.end_ns, int(depth.at[-1]))).astype(np.float64), depth.ready
    else:
        edges = np.linspace(0, line.end_ns, QUEUE_BINS + 1)
        heights = depth.means(edges)  # type: ignore[assignment]
        note += f"; means of {duration(line.end_ns / QUEUE_BINS)}"
    top = 1.35 * max(most, float(heights.max()), 1.0)
    axes.set_xlim(0, line.end_ns / 1e9)
    axes.set_ylim(0, top)
    _mark_stretch(axes, shown, top)
    entries = [("batches ready", palette.STAGES["handoff"]), *_mark_starts(axes, line, top)]
    axes.stairs(heights, edges / 1e9, fill=True, color=palette.STAGES["handoff"])
    if most:
        axes.axhline(most, color=palette.INK, linestyle="--", linewidth=1)
        text = f"limit: {count(most)} ahead of the loop"
        axes.text(0.995 * line.end_ns / 1e9, most * 1.04, text, ha="right", va="bottom", fontsize=9, bbox=PAPER)
    heading(axes, "Finished, not yet taken", entries, note)
    axes.yaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
    axes.set_ylabel("batches", fontsize=9)
    axes.set_xlabel("seconds since the first iter()", fontsize=9, labelpad=1)
    axes.tick_params(labelsize=9)
    axes.spines[["top", "right"]].set_visible(False)


def _mark_stretch(axes: Axes, shown: Shown, top: float) -> None:
    start, end = shown.start_ns / 1e9, shown.end_ns / 1e9
    axes.broken_barh([(start, end - start)], (0, top), facecolor="none", edgecolor=palette.INK, zorder=3)
    text = axes.text(start, 0.985 * top, " shown above", ha="left", va="top", fontsize=8, color=palette.INK)
    if start > 0.85 * axes.get_xlim()[1]:
        text.set_horizontalalignment("right")


def _mark_starts(axes: Axes, line: Timeline, top: float) -> list[tuple[str, str]]:
    """From each iter() to the epoch's first batch."""
    firsts = ((epoch.start_ns, line.steps.first_of(epoch.number)) for epoch in line.epochs)
    spans = union([(start, line.steps.got[first]) for start, first in firsts if first is not None]) / 1e9
    starts, lengths = spans[:, 0], spans[:, 1] - spans[:, 0]
    colour = palette.STAGES["startup"]
    places = list(zip(starts.tolist(), lengths.tolist(), strict=True))
    axes.broken_barh(places, (0, top), color=colour, alpha=0.35, linewidth=0.5)
    return [("start of an epoch, up to its first batch", colour)]


# What was slow


def hardest_steps(run: Run, result: Result) -> list[dict[str, Any]]:
    """The longest waits of the run, the longest first: step and epoch, counted from 0, and wait_ms. Older runs kept none."""
    rows = run.of(Kind.WAIT)
    took = rows["end_ns"] - rows["start_ns"]
    waits = [dict(wait) for wait in result.worst_steps] or [
        {"step": int(rows["step"][i]), "epoch": int(rows["epoch"][i]), "wait_ms": int(took[i]) / 1e6}
        for i in np.argsort(-took, kind="stable")[:HARDEST].tolist()
    ]
    return [wait for wait in sorted(waits, key=lambda wait: -wait["wait_ms"]) if wait["wait_ms"] > 0][:HARDEST]


def _longest_waits(axes: Axes, run: Run, result: Result) -> None:
    waits = hardest_steps(run, result)
    if not waits:
        say(axes, "")
        return
    firsts = set(run.of(Kind.ITER)["step"].tolist())
    colours = {True: palette.STAGES["startup"], False: palette.PARTS["wait"]}
    rows = [
        (
            f"step {count(wait['step'])}, epoch {count(wait['epoch'] + 1)}",
            [(wait["wait_ms"], colours[wait["step"] in firsts])],
            _ms(wait["wait_ms"]),
        )
        for wait in waits
    ]
    _table(axes, rows)
    heading(axes, "Longest waits", [("an epoch's first", colours[True]), ("others", colours[False])])


def _slowest_samples(axes: Axes, result: Result) -> None:
    samples = result.slowest_samples
    if not samples:
        say(axes, f"Slowest samples: {NOT_MEASURED}, or none takes long enough\nto be timed one by one")
        return
    stages = {"blocked_ms": "fetch", "cpu_ms": "decode", "runq_ms": "core_shortage"}
    rows = [
        (
            f"sample {sample['index']}" if sample["index"] >= 0 else "no number",
            [(sample[key], palette.STAGES[stage]) for key, stage in stages.items()],
            _told(sample),
        )
        for sample in samples[:HARDEST]
    ]
    _table(axes, rows)
    heading(axes, "Slowest samples", [(HOW[stage], palette.STAGES[stage]) for stage in stages.values()])


def _told(sample: Mapping[str, Any]) -> str:
    return f"{_ms(sample['ms'])}: blocked {_ms(sample['blocked_ms'])}, CPU {_ms(sample['cpu_ms'])}"


def _table(axes: Axes, rows: Sequence[tuple[str, Sequence[tuple[float, str]], str]]) -> None:
    """A name, a bar of lengths and colours, and words behind it, in each row."""
    for row, (_, parts, words) in enumerate(rows):
        left = 0.0
        for length, colour in parts:
            axes.barh(row, length, left=left, height=0.62, color=colour, linewidth=0)
            left += length
        write(axes, words, (left, row), (5, 0), coords="data", size=8.5)
    axes.set_xlim(0, 2 * max(sum(length for length, _ in parts) for _, parts, _ in rows) or 1.0)
    axes.set_ylim(HARDEST - 0.4, -0.6)
    axes.set_yticks(range(len(rows)), [name for name, _, _ in rows], fontsize=8.5)
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "bottom"]].set_visible(False)
