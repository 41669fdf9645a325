"""A Run laid out on one clock: the window, its steps, and sets of time. The profiler's own work between epochs is cut out.

The window runs from the first iter() to the end of the next() that ended the last epoch; after a break to the end of the last
step, which is given the median length; and to the end of the device's last work, if that is later.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .events import Kind
from .intervals import Intervals, Times, complement, cut, intersect, subtract, total, union
from .run import Run

Columns = dict[str, NDArray[np.int64]]
NEVER = np.iinfo(np.int64).min
"""A time that was not measured."""


@dataclass(frozen=True)
class Steps:
    """One entry a step, in order. Nanoseconds on the cut clock, 0 at the first iter()."""

    epoch: NDArray[np.int64]
    asked: Times
    """next() was called."""
    got: Times
    """It returned."""
    ended: Times
    """The next batch was asked for."""
    n_samples: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.asked)

    def first_of(self, epoch: int) -> int | None:
        """The place of an epoch's first step; None if it has none. Epochs follow each other."""
        i = int(np.searchsorted(self.epoch, epoch))
        return i if i < len(self) and self.epoch[i] == epoch else None


@dataclass(frozen=True)
class Waits:
    """One entry a next(), those that raised included, in order of their ends. Nanoseconds on the cut clock."""

    asked: Times
    got: Times
    cpu: NDArray[np.int64]
    """What the training thread computed in it; -1: not measured."""
    runq: NDArray[np.int64]
    """How long it was held up in it by the lack of a core."""


@dataclass(frozen=True)
class Epoch:
    """One pass over a loader."""

    number: int
    start_ns: int
    iterated_ns: int
    """iter() had returned."""
    end_ns: int
    """Its last next() ended, or its last step after a break."""
    raised: bool = False
    """Whether it ended with a next() that raised."""


@dataclass(frozen=True)
class Timeline:
    """Where the host and the device were. `wait`, `step` and `outside` share out [0, end_ns) with no hole and no overlap."""

    end_ns: int
    harness_ns: int
    steps: Steps
    epochs: tuple[Epoch, ...]
    wait: Intervals
    step: Intervals
    outside: Intervals
    sync: Intervals
    busy: Intervals | None
    """Device computing; None: not measured."""
    copy: Intervals
    startup: Intervals | None
    """Part of `wait`: iter(), and of each first next() what passed before a first item was begun. None: not measured."""
    made: Columns
    """The run's `made` columns with their times on the cut clock."""
    waits: Waits
    sampler: Intervals
    """The training thread draws indices."""
    ending: Intervals
    """It is in a next() that raises, and shuts workers down."""
    received: Columns
    """The spans of kind RECEIVE, their times on the cut clock; likewise the run's items, starts of workers and readings."""
    items: Columns
    started: Columns
    counts: Columns
    backward: Intervals
    """The training thread is in a backward pass; likewise in an optimizer's step."""
    optimizer: Intervals
    gap_ns: int = 0
    """How much more time the window had: that of steps which were not kept."""
    gaps: Times = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Where on the cut clock it is missing."""
    gap_samples: int = 0

    @property
    def idle(self) -> Intervals | None:
        return None if self.busy is None else complement(self.busy, 0, self.end_ns)


def timeline(run: Run) -> Timeline | None:
    """Lays the run out; None where no iter() was recorded."""
    if len(run.of(Kind.ITER)["start_ns"]) == 0:
        return None
    zero = int(run.of(Kind.ITER)["start_ns"][0])
    harness = union(_pairs(run.of(Kind.HARNESS)))
    harness = intersect(harness, union([[zero, max(zero, int(run.spans["end_ns"].max()))]]))
    gaps = run.of(Kind.GAP)
    away = union(np.concatenate((harness, _pairs(gaps))))
    spans = _shifted(run.spans, ("start_ns", "end_ns"), zero, away)
    made = _shifted(run.made, ("begin_ns", "items_ns", "end_ns"), zero, away)
    if len(gaps["kind"]):  # what was made meanwhile belongs to steps that are not there
        made = {name: column[made["end_ns"] > made["begin_ns"]] for name, column in made.items()}

    by_kind = {kind: {name: column[spans["kind"] == kind] for name, column in spans.items()} for kind in Kind}
    steps, epochs = _steps(by_kind)
    busy, copy = union(_pairs(by_kind[Kind.BUSY])), union(_pairs(by_kind[Kind.COPY]))
    host_end = max([*steps.ended[-1:].tolist(), *(epoch.end_ns for epoch in epochs)])
    # A run that was broken off ends with its host: what the device had not done by then did not happen.
    end = max([host_end, *(busy[-1:, 1].tolist() + copy[-1:, 1].tolist() if run.complete else [])])

    wait = union(np.concatenate([_iterations(epochs, steps), _pairs(by_kind[Kind.WAIT]), _pairs(by_kind[Kind.END])]))
    tail = [[host_end, end]]  # the host is through, the device still works: part of the last steps
    step = subtract(union(np.concatenate([np.column_stack((steps.got, steps.ended)), tail])), wait)
    other = intersect(step, union(_pairs(by_kind[Kind.OTHER_WAIT])))
    wait, step = union(np.concatenate((wait, other))), subtract(step, other)
    return Timeline(
        end_ns=end,
        harness_ns=total(harness),
        steps=steps,
        epochs=epochs,
        wait=wait,
        step=step,
        outside=complement(union(np.concatenate((wait, step))), 0, end),
        sync=union(_pairs(by_kind[Kind.SYNC])),
        busy=_busy(str(run.header.device.get("method")), busy, step),
        backward=intersect(step, union(_pairs(by_kind[Kind.BACKWARD]))),
        optimizer=intersect(step, union(_pairs(by_kind[Kind.OPTIMIZER]))),
        copy=copy,
        startup=_startup(epochs, steps, made) if len(made["begin_ns"]) else None,
        made=made,
        waits=_waits(by_kind[Kind.WAIT], by_kind[Kind.END]),
        ending=union(_pairs(by_kind[Kind.END])),
        sampler=union(_pairs(by_kind[Kind.SAMPLER])),
        received=by_kind[Kind.RECEIVE],
        items=_shifted(run.items, ("start_ns", "end_ns"), zero, away),
        started=_shifted(run.started, ("process_start_ns", "init_ns", "ready_ns"), zero, away),
        counts=_shifted(run.counts, ("at_ns",), zero, away),
        gap_ns=total(away) - total(harness),
        gaps=by_kind[Kind.GAP]["start_ns"],
        gap_samples=int(gaps["n_samples"].sum()),
    )


def _busy(method: str, spans: Intervals, step: Intervals) -> Intervals | None:
    """loop_body: a script without an accelerator, whose own steps stand for one. None: not measured."""
    return {"None": None, "loop_body": step}.get(method, spans)


def _waits(wait: Columns, end: Columns) -> Waits:
    names = ("start_ns", "end_ns", "cpu_ns", "runq_ns")
    asked, got, cpu, runq = (np.concatenate((wait[name], end[name])) for name in names)
    order = np.argsort(got, kind="stable")
    return Waits(asked[order], got[order], cpu[order], runq[order])


def _pairs(spans: Columns) -> Intervals:
    return np.column_stack((spans["start_ns"], spans["end_ns"]))


def _shifted(table: object, times: tuple[str, ...], zero: int, away: Intervals) -> Columns:
    columns: Columns = dict(table)  # type: ignore[call-overload]
    origin = int(cut(zero, away))
    return columns | {name: np.where(columns[name] < 0, NEVER, cut(columns[name], away) - origin) for name in times}


def _steps(by_kind: dict[Kind, Columns]) -> tuple[Steps, tuple[Epoch, ...]]:
    """Steps end where the next batch is asked for; the last one before a break is given the median length of the others."""
    wait, end, iters = by_kind[Kind.WAIT], by_kind[Kind.END], by_kind[Kind.ITER]
    asks = np.concatenate((wait["start_ns"], end["start_ns"]))
    ask_epochs = np.concatenate((wait["epoch"], end["epoch"]))
    raised = np.arange(len(asks)) >= len(wait["start_ns"])
    order = np.lexsort((raised, asks, ask_epochs))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    following = order[np.minimum(rank[~raised] + 1, len(order) - 1)]
    known = (rank[~raised] + 1 < len(order)) & (ask_epochs[following] == wait["epoch"])
    ended = np.where(known, asks[following], wait["end_ns"])
    lengths = ended[known] - wait["end_ns"][known]
    next_iter = np.searchsorted(iters["start_ns"], wait["end_ns"], side="left")
    bounded = next_iter < len(iters["start_ns"])
    if not len(lengths):  # next(iter(loader)): a step lasts until there is a new iterator
        lengths = iters["start_ns"][next_iter[bounded]] - wait["end_ns"][bounded]
        ended[bounded] = iters["start_ns"][next_iter[bounded]]
        known = bounded
    ended[~known] += int(np.median(lengths)) if len(lengths) else 0
    ended[bounded] = np.minimum(ended[bounded], iters["start_ns"][next_iter[bounded]])
    gaps = by_kind[Kind.GAP]["start_ns"]
    before = np.searchsorted(wait["end_ns"], gaps, side="right") - 1
    ended[before] = gaps  # the next batch was asked for then, in whatever epoch
    raised_in = dict(zip(end["epoch"].tolist(), end["end_ns"].tolist(), strict=True))

    epochs = []
    after_last = np.searchsorted(wait["epoch"], iters["epoch"], side="right")
    for i, number, start, iterated in zip(
        after_last, *(iters[name].tolist() for name in ("epoch", "start_ns", "end_ns")), strict=True
    ):
        stepped = [int(ended[i - 1])] if i and wait["epoch"][i - 1] == number else []
        epochs.append(
            Epoch(number, start, iterated, max([iterated, *stepped, raised_in.get(number, iterated)]), number in raised_in)
        )
    return Steps(wait["epoch"], wait["start_ns"], wait["end_ns"], ended, wait["n_samples"]), tuple(epochs)


def _first(epoch: Epoch, steps: Steps, column: Times) -> int | None:
    """The first step's entry of an epoch."""
    i = steps.first_of(epoch.number)
    return None if i is None else int(column[i])


def _iterations(epochs: tuple[Epoch, ...], steps: Steps) -> Intervals:
    """iter(), up to the first next(): the moment between the two belongs to the wait as well."""
    pairs = [(e.start_ns, max(e.iterated_ns, _first(e, steps, steps.asked) or 0)) for e in epochs]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _startup(epochs: tuple[Epoch, ...], steps: Steps, made: Columns) -> Intervals:
    begins = np.sort(made["begin_ns"])
    pairs = []
    for epoch in epochs:
        i = int(np.searchsorted(begins, epoch.start_ns))
        begun = int(begins[i]) if i < len(begins) else epoch.iterated_ns
        got = _first(epoch, steps, steps.got)
        end = max(epoch.iterated_ns, begun)
        pairs.append((epoch.start_ns, min(end, got) if got is not None else min(end, epoch.end_ns)))
    return union(pairs)
