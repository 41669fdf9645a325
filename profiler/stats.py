"""Statistics of steps: how durations spread, and how sure a ratio of sums is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .result import Spread, Stall

RESAMPLES = 1000
MOST_BLOCKS = 500
"""Longer runs are cut into longer blocks: the interval needs no more, and a million steps stay quick."""


def spread_ms(durations_ns: NDArray[np.int64]) -> Spread | None:
    """Mean, quantiles and maximum in milliseconds; None for no steps at all."""
    if len(durations_ns) == 0:
        return None
    ms = durations_ns / 1e6
    p50, p95, p99 = np.percentile(ms, (50, 95, 99))
    return Spread(float(ms.mean()), float(p50), float(p95), float(p99), float(ms.max()))


def blocks(values: NDArray[np.int64], period: int) -> NDArray[np.int64]:
    """Sums over consecutive blocks of whole periods, about MOST_BLOCKS at most; a rest shorter than a block joins the last one.

    Batches of W workers come in bursts of W: a block that cuts a burst would count its wait and not its plenty.
    """
    n_periods = max(1, len(values) // period)
    length = period * -(-n_periods // MOST_BLOCKS)
    starts = np.arange(max(1, len(values) // length)) * length
    return np.add.reduceat(values, starts)


def ratio_ci95(numerator: NDArray[np.int64], denominator: NDArray[np.int64], period: int, seed: int = 0) -> tuple[float, float]:
    """95 % interval of sum(numerator) / sum(denominator) over steps, by the bootstrap of whole blocks (Carlstein 1986).

    The same run always gives the same interval: the resampling is seeded.
    """
    top, bottom = blocks(numerator, period), blocks(denominator, period)
    draws = np.random.default_rng(seed).integers(0, len(top), size=(RESAMPLES, len(top)))
    ratios = top[draws].sum(axis=1) / np.maximum(1, bottom[draws].sum(axis=1))
    low, high = np.percentile(ratios, (2.5, 97.5))
    return float(low), float(high)


def stall(stall_ns: NDArray[np.int64], time_ns: NDArray[np.int64], period: int) -> Stall:
    """The stall share of these steps, with its interval."""
    return Stall(float(stall_ns.sum() / time_ns.sum()), ratio_ci95(stall_ns, time_ns, period))
