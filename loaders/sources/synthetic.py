"""Samples with a declared cost and no files: reading waits and decoding computes for exactly as long as you say."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

N_CLASSES = 10
_HEADER_BYTES = 8
_LOGNORMAL_SIGMA = 0.5
_HEAVY_SHARE, _HEAVY_FACTOR = 0.05, 20
_MAX_DEBT_NS = 200_000

MOST_SAMPLES = 10_000_000
"""Each has its costs in memory."""
MOST_BYTES = 1 << 28
"""Of one sample; ten prototypes are kept."""

Progress = Callable[[int, int], None]
Spread = Literal["fixed", "lognormal", "heavy_tail"]


def build(
    cache_dir: Path,
    *,
    samples: int = 2000,
    shape: tuple[int, ...] = (64, 64, 3),
    read_ns: int = 1_000_000,
    decode_ns: int = 1_000_000,
    spread: Spread = "fixed",
    decode_mode: Literal["compute", "wait"] = "compute",
) -> Synthetic:
    """Samples whose read and decode cost this on average. decode_mode: burn CPU under the interpreter lock, or wait.

    spread: how single samples differ. lognormal: sigma 0.5; heavy_tail: 5 % of them cost 20 times the others.
    """
    if not 1 <= samples <= MOST_SAMPLES:
        raise ValueError(f"samples={samples}: must be 1 to {MOST_SAMPLES:,}")
    if not shape or min(shape) < 1:
        raise ValueError(f"shape={list(shape)}: must be one or more sizes, each at least 1")
    if math.prod(shape) > MOST_BYTES:
        raise ValueError(f"shape={list(shape)}: a sample of {math.prod(shape):,} bytes; at most {MOST_BYTES:,}")
    for option, cost_ns in (("read", read_ns), ("decode", decode_ns)):
        if cost_ns < 0:
            raise ValueError(f"{option}={cost_ns} ns: must not be negative")
    if spread not in ("fixed", "lognormal", "heavy_tail"):
        raise ValueError(f"spread={spread}: must be fixed, lognormal or heavy_tail")
    if decode_mode not in ("compute", "wait"):
        raise ValueError(f"decode_mode={decode_mode}: must be compute or wait")
    wait = Wait()
    return Synthetic(
        tuple(shape),
        sample_costs_ns(read_ns, spread, samples, seed=1),
        sample_costs_ns(decode_ns, spread, samples, seed=2),
        spend_read=wait,
        spend_decode=wait if decode_mode == "wait" else compute,
        label=f"synthetic samples: read {read_ns / 1e6:g} ms (waits), "
        f"decode {decode_ns / 1e6:g} ms ({'waits' if decode_mode == 'wait' else 'computes'}), {spread}",
    )


class Synthetic:
    """Made-up samples. The encoded form is the index alone; the cost is spent apart from it."""

    n_classes = N_CLASSES

    def __init__(
        self,
        shape: tuple[int, ...],
        read_costs_ns: list[int],
        decode_costs_ns: list[int],
        spend_read: Callable[[int], None],
        spend_decode: Callable[[int], None],
        label: str,
    ) -> None:
        self.sample_shape = shape
        self._read_costs_ns = read_costs_ns
        self._decode_costs_ns = decode_costs_ns
        self._spend_read = spend_read
        self._spend_decode = spend_decode
        self._label = label
        self._prototypes = np.random.default_rng(0).integers(0, 256, (N_CLASSES, math.prod(shape)), dtype=np.uint8)

    def __len__(self) -> int:
        return len(self._read_costs_ns)

    def read(self, index: int) -> bytes:
        cost_ns = self._read_costs_ns[index]
        if cost_ns:
            self._spend_read(cost_ns)
        return index.to_bytes(_HEADER_BYTES, "little")

    def decode(self, encoded: bytes) -> NDArray[np.uint8]:
        index = int.from_bytes(encoded, "little")
        if len(encoded) != _HEADER_BYTES or index >= len(self):
            raise ValueError("not a synthetic sample: its bytes are not the number of one")
        cost_ns = self._decode_costs_ns[index]
        if cost_ns:
            self._spend_decode(cost_ns)
        sample: NDArray[np.uint8] = self._prototypes[index % N_CLASSES].copy()
        sample.data[:_HEADER_BYTES] = encoded[: sample.size]  # its number, so that no two samples are equal
        return sample.reshape(self.sample_shape)

    def label(self, index: int) -> int:
        return index % N_CLASSES

    def name(self, index: int) -> str:
        return f"sample {index}"

    def prepare(self, progress: Progress) -> None:
        """Nothing to do: samples are made as they are decoded."""

    def start_epoch(self) -> float | None:
        return None

    def describe(self) -> dict[str, Any]:
        return {"medium": "synthetic", "emulated": False, "cold": None, "label": self._label, "samples": len(self)}


class Wait:
    """Waits that are exact on average.

    A sleep ends 60 to 100 us late, which would make 0.3 ms cost 0.4. What one wait was too long is taken off the thread's
    next waits. Only up to 0.2 ms is owed: a long delay is the machine's, and hiding it would turn later waits into none.
    """

    def __init__(self, clock_ns: Callable[[], int] = time.perf_counter_ns, sleep: Callable[[float], None] = time.sleep) -> None:
        self._clock_ns = clock_ns
        self._sleep = sleep
        self._thread = threading.local()

    def __call__(self, wait_ns: int) -> None:
        start_ns = self._clock_ns()
        debt_ns = getattr(self._thread, "debt_ns", 0)
        if wait_ns > debt_ns:
            self._sleep((wait_ns - debt_ns) / 1e9)
        end_ns = self._clock_ns()
        self._thread.debt_ns = min(debt_ns + end_ns - start_ns - wait_ns, _MAX_DEBT_NS)
        self._thread.debt_ns += self._clock_ns() - end_ns  # after a sleep the caches are cold: that line took 5 us

    def __reduce__(self) -> tuple[Any, ...]:
        return Wait, (self._clock_ns, self._sleep)  # debts belong to threads, and stay with them


def compute(cost_ns: int) -> None:
    """Burns this much CPU time in Python. Takes longer on the wall when cores or the interpreter lock are short."""
    end_ns = time.thread_time_ns() + cost_ns
    while time.thread_time_ns() < end_ns:
        pass


def sample_costs_ns(mean_ns: int, spread: Spread, samples: int, seed: int) -> list[int]:
    """A cost for each sample. Their mean over all samples is as declared, not only that of the distribution."""
    rng = np.random.default_rng(seed)
    weights = np.ones(samples)
    if spread == "lognormal":
        weights = rng.lognormal(sigma=_LOGNORMAL_SIGMA, size=samples)
    elif spread == "heavy_tail":
        weights[rng.permutation(samples)[: round(samples * _HEAVY_SHARE)]] = _HEAVY_FACTOR
    costs: list[int] = np.rint(mean_ns * weights / weights.mean()).astype(int).tolist()
    return costs
