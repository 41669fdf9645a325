"""How many finished batches lay ready for the consumer, at each instant: 0 while it waits, the limit while makers must."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .intervals import Times
from .timeline import Timeline


class Depth(NamedTuple):
    """A step function on the cut clock: `ready[i]` batches from `at[i]` on."""

    at: Times
    ready: NDArray[np.int64]

    def means(self, edges: NDArray[np.float64]) -> NDArray[np.float64]:
        """Over the time between each two edges, in ns."""
        area = np.concatenate(([0], np.cumsum(self.ready[:-1] * np.diff(self.at))))
        within = np.interp(edges, self.at, area) + self.ready[-1] * np.maximum(0, edges - self.at[-1])
        means: NDArray[np.float64] = np.diff(within) / np.maximum(1, np.diff(edges))
        return means

    def share(self, ready: int, end_ns: int) -> float:
        """Of the time up to end_ns: that in which exactly so many were ready."""
        lengths = np.diff(np.append(self.at, max(end_ns, int(self.at[-1]))))
        return float(lengths[self.ready == ready].sum() / max(1, lengths.sum()))


def queue_depth(line: Timeline, most: int) -> Depth:
    """Counts up where a batch is finished, and down where the consumer has one. most: the loader's limit; 0: it has none.

    Each epoch begins with none. After steps that were not kept it goes on with as many as before them, or so many more or less
    as what follows shows to be possible.
    """
    finished, taken = line.made["end_ns"], line.steps.got
    at = np.concatenate((finished, taken))
    change = np.repeat((1, -1), (len(finished), len(taken)))
    order = np.argsort(at, kind="stable")  # at one instant it is finished first
    at, change = at[order], change[order]
    starts = np.array([epoch.start_ns for epoch in line.epochs], dtype=np.int64)
    borders = np.unique(np.concatenate((starts, line.gaps)))
    cuts = np.searchsorted(at, borders)
    times: list[Times] = []
    levels: list[NDArray[np.int64]] = []
    ready = 0
    for border, low, high in zip(borders.tolist(), cuts.tolist(), [*cuts[1:].tolist(), len(at)], strict=True):
        moved = np.cumsum(np.concatenate(([0], change[low:high])))
        ready = 0 if border in starts else _begun_with(ready, moved, most)
        moved += ready
        moved -= np.minimum(0, np.minimum.accumulate(moved))  # one that was taken, and whose making is not on record
        times += [np.array([border]), at[low:high]]
        levels.append(moved)
        ready = int(moved[-1])
    return Depth(np.concatenate(times), np.concatenate(levels))


def _begun_with(before: int, moved: NDArray[np.int64], most: int) -> int:
    """As many as before, yet never below none, nor above the limit."""
    least = -int(moved.min())
    return max(least, min(before, most - int(moved.max())) if most else before)
