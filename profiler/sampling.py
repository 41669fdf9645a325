"""What is kept of a run that is too long to keep: whole blocks of steps, evenly spread, and what was between them in sums.

A block is what the Watch hands on at once, about a thousand steps. Block n is kept if n is a multiple of the stride. Whenever
more than `most` are kept the stride doubles, and every other one is dropped. So however long a run gets, between most / 2 and
most whole blocks of equal weight stay, and shares of the kept time stand for the whole. In place of what was dropped stands one
GAP row; `timeline` cuts it out of the clock as it does with the profiler's own work.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .events import Kind, Row
from .intervals import Intervals

Rows = NDArray[np.int64]
"""The fields of `events.Row`."""

LEAST_BLOCKS, MOST_BLOCKS = 4, 256
WORST_STEPS = 20

_KIND, _EPOCH, _STEP, _START, _END, _SAMPLES = range(6)
_FOREVER = np.iinfo(np.int64).max
_NONE: Rows = np.empty((0, len(Row._fields)), dtype=np.int64)


class Block(NamedTuple):
    """Rows on their way to the file. Late rows of a device have the number of the block in whose time they lie."""

    number: int
    rows: Rows


@dataclass
class _Gap:
    """What was dropped since the last block that is kept."""

    start_ns: int
    step: int
    epoch: int
    n_samples: int = 0
    harness_ns: int = 0
    end_ns: int = 0
    """As far as it is known: it reaches up to the next block that is kept."""

    def rows(self, end_ns: int) -> Rows:
        gap = Row(Kind.GAP, self.epoch, self.step, self.start_ns, end_ns, self.n_samples)
        own = Row(Kind.HARNESS, self.epoch, self.step, self.start_ns, self.start_ns + self.harness_ns, 0)
        return np.array([gap, own][: 2 if self.harness_ns else 1], dtype=np.int64)


class _Pass:
    """Goes through blocks in their order, keeps some and sums up the others."""

    def __init__(self) -> None:
        self.gap: _Gap | None = None
        self.kept = 0
        """The number of the last block that was kept."""
        self._carried = _NONE

    def block(self, number: int, rows: Rows, keep: bool) -> Iterator[Block]:
        rows, gap = _without_gap(rows)
        if gap is not None:
            self.gap = gap if self.gap is None else _joined(self.gap, gap)
        if keep:
            opening = self.gap.rows(_first_ns(rows)) if self.gap is not None else _NONE
            yield Block(number, np.concatenate((opening, self._carried, rows)))
            self.gap, self._carried, self.kept = None, _NONE, number
            return
        aside = _aside(rows)
        host = rows[~aside]
        if self.gap is None:
            self.gap = _Gap(_first_ns(rows), int(host[0, _STEP]), int(host[0, _EPOCH]))
        device = rows[aside]
        late = device[device[:, _START] < self.gap.start_ns]
        if len(late):
            yield Block(self.kept, late)
        self._carried = device[device[:, _END] > host[:, _END].max()]
        self.gap.end_ns = int(host[:, _END].max())
        self.gap.n_samples += int(host[host[:, _KIND] == Kind.WAIT, _SAMPLES].sum())
        own = host[host[:, _KIND] == Kind.HARNESS]
        self.gap.harness_ns += int((own[:, _END] - own[:, _START]).sum())


class Sampling:
    """Which blocks of a run are kept. Knows what lies in the file, never the file."""

    def __init__(self, most: int = MOST_BLOCKS) -> None:
        self._most, self._stride, self._next = most, 1, 0
        self._pass = _Pass()
        self._numbers: list[int] = []
        """Of each record batch in the file: the block that it is of."""
        self._time: dict[int, list[int]] = {}
        """Of each block that is kept: from its start to that of the next."""
        self._worst: list[tuple[int, tuple[int, ...]]] = []

    @property
    def thinned(self) -> bool:
        """Whether anything was ever dropped."""
        return self._stride > 1

    @property
    def full(self) -> bool:
        """Whether more blocks are kept than may be: the file is to be thinned."""
        return len(set(self._numbers)) > self._most

    @property
    def kept_time(self) -> Intervals:
        """When the blocks that are kept were made. The latest goes on."""
        return np.array([self._time[number] for number in sorted(self._time)], dtype=np.int64).reshape(-1, 2)

    @property
    def worst(self) -> list[tuple[int, ...]]:
        """The rows of the longest waits of the whole run, the longest first."""
        return [row for _, row in sorted(self._worst, reverse=True)]

    def take(self, rows: Rows) -> Iterator[Rows]:
        """What of the next block goes to the file: all of it or, in a long run, mostly nothing."""
        if _aside(rows).all():  # a device's last spans, after the last step
            self._numbers.append(self._pass.kept)
            yield rows
            return
        number, self._next = self._next, self._next + 1
        self._note_worst(rows)
        keep = number % self._stride == 0
        if number - 1 in self._time:
            self._time[number - 1][1] = _first_ns(rows)
        if keep:
            self._time[number] = [_first_ns(rows), _FOREVER]
        for block in self._pass.block(number, rows, keep):
            self._numbers.append(block.number)
            yield block.rows

    def finish(self) -> Iterator[Rows]:
        """What stands for the blocks that were dropped last."""
        if self._pass.gap is not None:
            yield self._pass.gap.rows(self._pass.gap.end_ns)

    def thin(self, batches: Iterable[Rows]) -> Iterator[Rows]:
        """What of the file stays, batch by batch in its order. Every other block goes."""
        self._stride *= 2
        self._time = {number: time for number, time in self._time.items() if number % self._stride == 0}
        numbers, self._numbers, before, self._pass = self._numbers, [], self._pass, _Pass()
        for number, rows in zip(numbers, batches, strict=False):
            if _aside(rows).all():
                kept = [Block(number, rows)] if number % self._stride == 0 else []
            else:
                kept = list(self._pass.block(number, rows, keep=number % self._stride == 0))
            for block in kept:
                self._numbers.append(block.number)
                yield block.rows
        assert before.gap is None, "thinned right after a block that was kept"

    def _note_worst(self, rows: Rows) -> None:
        waits = rows[rows[:, _KIND] == Kind.WAIT]
        lengths = waits[:, _END] - waits[:, _START]
        least = self._worst[0][0] if len(self._worst) == WORST_STEPS else -1
        for i in np.flatnonzero(lengths > least)[np.argsort(-lengths[lengths > least])[:WORST_STEPS]].tolist():
            entry = (int(lengths[i]), tuple(waits[i].tolist()))
            (heapq.heappush if len(self._worst) < WORST_STEPS else heapq.heappushpop)(self._worst, entry)


def _aside(rows: Rows) -> NDArray[np.bool_]:
    """Rows that do not keep to the steps of the training thread: of the device, and of a thread that receives batches."""
    return np.isin(rows[:, _KIND], (Kind.BUSY, Kind.COPY, Kind.RECEIVE))


def _first_ns(rows: Rows) -> int:
    """When the host began a block: it is cut between two steps."""
    return int(rows[~_aside(rows), _START].min())


def _without_gap(rows: Rows) -> tuple[Rows, _Gap | None]:
    """A block's own rows, and the gap that its first ones stand for."""
    if len(rows) == 0 or rows[0, _KIND] != Kind.GAP:
        return rows, None
    _, epoch, step, start, _, n_samples = rows[0, :6].tolist()
    own = len(rows) > 1 and rows[1, _KIND] == Kind.HARNESS and rows[1, _START] == start
    harness = int(rows[1, _END] - rows[1, _START]) if own else 0
    return rows[2 if own else 1 :], _Gap(start, step, epoch, n_samples, harness)


def _joined(first: _Gap, second: _Gap) -> _Gap:
    samples, harness = first.n_samples + second.n_samples, first.harness_ns + second.harness_ns
    return _Gap(first.start_ns, first.step, first.epoch, samples, harness)
