"""The steady state: the steps after what was loaded ahead of step 1 has been used up, worker start-up left out."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from . import stats
from .intervals import intersect, overlap, subtract
from .result import Stall, Verdict
from .run import Run
from .timeline import Timeline

MIN_STEADY_STEPS = 30
"""Fewer say too little: a block bootstrap over them has no meaning."""
STALL_THRESHOLD = 0.05
"""Above it a run is input-bound. Five percent is where the published tools of the field call a stall worth acting on."""


class Steady:
    """The steady steps of a run, and what follows from them alone. Below MIN_STEADY_STEPS most of it is None."""

    def __init__(self, run: Run, line: Timeline) -> None:
        loader, steps = run.header.loader, line.steps
        n_workers, prefetch = int(loader["n_workers"]), int(loader["prefetch_batches"])
        warmup = max(10, prefetch + n_workers)
        first = steps.epoch == (line.epochs[0].number if line.epochs else 0)
        warm = first & (np.cumsum(first) <= warmup)
        self.n_warmup = int(warm.sum())
        asked, got, ended = steps.asked[~warm], steps.got[~warm], steps.ended[~warm]
        starting = np.zeros_like(asked) if line.startup is None else overlap(line.startup, asked, ended)
        self.time_ns: NDArray[np.int64] = ended - asked - starting
        self.wait_ns: NDArray[np.int64] = got - asked - starting
        self.n_samples = steps.n_samples[~warm]
        self.made = {
            name: column[line.made["begin_ns"] >= (asked[0] if len(asked) else 0)] for name, column in line.made.items()
        }
        self._stall_ns = self._stalls(line, asked, ended)
        self._period = max(1, n_workers)

    @staticmethod
    def _stalls(line: Timeline, asked: NDArray[np.int64], ended: NDArray[np.int64]) -> NDArray[np.int64] | None:
        if line.idle is None:
            return None
        stalled = intersect(line.idle, line.wait)
        return overlap(stalled if line.startup is None else subtract(stalled, line.startup), asked, ended)

    @property
    def enough(self) -> bool:
        return len(self.time_ns) >= MIN_STEADY_STEPS and int(self.time_ns.sum()) > 0

    @property
    def samples_per_s(self) -> float | None:
        return float(self.n_samples.sum() / self.time_ns.sum() * 1e9) if self.time_ns.sum() > 0 else None

    @property
    def samples_per_s_ci95(self) -> tuple[float, float] | None:
        if not self.enough:
            return None
        low, high = stats.ratio_ci95(self.n_samples, self.time_ns, self._period)
        return low * 1e9, high * 1e9

    @cached_property
    def stall(self) -> Stall | None:
        return stats.stall(self._stall_ns, self.time_ns, self._period) if self.enough and self._stall_ns is not None else None

    @property
    def _unstalled_ns(self) -> int | None:
        """Steady time had no batch ever been late; None below MIN_STEADY_STEPS, or if the device did nothing else than wait."""
        if not self.enough or self._stall_ns is None:
            return None
        return int(self.time_ns.sum() - self._stall_ns.sum()) or None

    @property
    def demand(self) -> float | None:
        return None if self._unstalled_ns is None else float(self.n_samples.sum() / self._unstalled_ns * 1e9)

    @property
    def headroom(self) -> float | None:
        return None if self._unstalled_ns is None else float(self.time_ns.sum() / self._unstalled_ns)

    def capacity(self, n_workers: int) -> float | None:
        """n_workers x samples / time that workers were at it; without workers samples / wait."""
        if not self.enough:
            return None
        active = int((self.made["end_ns"] - self.made["begin_ns"]).sum()) if n_workers else int(self.wait_ns.sum())
        samples = int(self.made["n_items"].sum()) if n_workers else int(self.n_samples.sum())
        return max(1, n_workers) * samples / active * 1e9 if active > 0 else None

    @property
    def verdict(self) -> Verdict:
        if not self.enough:
            return "too_short"
        if self.stall is None:
            return "not_measured"
        low, high = self.stall.ci95
        if low >= STALL_THRESHOLD:
            return "input_bound"
        return "not_input_bound" if high < STALL_THRESHOLD else "borderline"
