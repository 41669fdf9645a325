"""A source with one cause of slowness built in, for loaders that make batches in threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks.accuracy.costs import Cost


def build(
    cache_dir: Path,
    *,
    cause: Literal["none", "wait", "one_head", "decode_python", "decode_unlocked", "slow_sample", "mixed"] = "none",
    samples: int = 1000,
    io_ns: int = 0,
    cpu_ns: int = 0,
) -> Injected:
    """io: what a read waits. cpu: what a decode computes."""
    if samples < 1:
        raise ValueError(f"samples={samples}: must be at least 1")
    return Injected(samples, cause, io_ns, cpu_ns, cache_dir / "one-head.lock" if cause == "one_head" else None)


class Injected:
    sample_shape = (4,)
    n_classes = 10

    def __init__(self, samples: int, cause: str, io_ns: int, cpu_ns: int, head: Path | None) -> None:
        self._samples, self._cause, self._head = samples, cause, head
        self._cost = Cost(cause, io_ns, cpu_ns, head)

    def __len__(self) -> int:
        return self._samples

    def read(self, index: int) -> bytes:
        self._cost.read(index)
        return index.to_bytes(8, "little")

    def decode(self, encoded: bytes) -> np.ndarray[Any, np.dtype[np.uint8]]:
        self._cost.decode()
        return np.frombuffer(encoded[:4], dtype=np.uint8)

    def label(self, index: int) -> int:
        return index % self.n_classes

    def name(self, index: int) -> str:
        return f"sample {index}"

    def prepare(self, progress: Any) -> None:
        if self._head is not None:
            self._head.parent.mkdir(parents=True, exist_ok=True)
            self._head.touch()

    def start_epoch(self) -> None:
        return None

    def describe(self) -> dict[str, Any]:
        label = f"{self._samples} samples, {self._cause}"
        return {"medium": "synthetic", "emulated": False, "cold": None, "label": label}
