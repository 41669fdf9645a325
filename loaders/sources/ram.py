"""The same JPEG samples held in memory, encoded or decoded: what is left to wait for is not the disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import psutil
from numpy.typing import NDArray

from ._files import MEAN_FILE_BYTES, JpegFiles, Progress, in_threads, samples_folder, write_missing


def build(cache_dir: Path, *, samples: int = 1200, image: int = 64, hold: Literal["encoded", "decoded"] = "encoded") -> Ram:
    """The samples of `ssd`, read into memory once. hold: the JPEGs, or their pixels, which leaves nothing to decode."""
    if hold not in ("encoded", "decoded"):
        raise ValueError(f"hold={hold}: must be encoded or decoded")
    source = Ram(samples_folder(cache_dir, None), samples, image, hold)
    available_bytes = psutil.virtual_memory().available
    sample_bytes = MEAN_FILE_BYTES if hold == "encoded" else image * image * 3
    if samples * sample_bytes > available_bytes / 2:
        most = available_bytes // 2 // sample_bytes
        raise ValueError(f"samples={samples}: would fill over half of the memory that is free; at most {most} fit")
    return source


class Ram(JpegFiles):
    """Sample files read into memory. A worker process that is spawned, not forked, gets a copy of its own."""

    def __init__(self, folder: Path, samples: int, image: int, hold: Literal["encoded", "decoded"]) -> None:
        super().__init__(folder, samples, image)
        self.hold = hold
        self._held: list[bytes] = []

    def prepare(self, progress: Progress) -> None:
        steps = 2 * self.samples  # each sample is written, if missing, and loaded
        write_missing(self.folder, self.samples, lambda done, _: progress(done, steps))
        self._held = []
        for held in in_threads(self._load, range(self.samples)):
            self._held.append(held)
            progress(self.samples + len(self._held), steps)

    def read(self, index: int) -> bytes:
        return self._held[index]

    def decode(self, encoded: bytes) -> NDArray[np.uint8]:
        if self.hold == "encoded":
            return super().decode(encoded)
        # The copy costs a microsecond; without it the array is read-only, of which torch warns.
        return np.frombuffer(encoded, np.uint8).reshape(self.sample_shape).copy()

    def start_epoch(self) -> float | None:
        return None

    def describe(self) -> dict[str, Any]:
        total_bytes = sum(map(len, self._held)) or None
        size = f", {total_bytes / 1e6:,.0f} MB" if total_bytes else ""
        what = "JPEG files" if self.hold == "encoded" else "decoded samples"
        return {
            "medium": "memory",
            "emulated": False,
            "cold": None,
            "label": f"{self.samples:,} {what}{size}, in memory",
            "samples": self.samples,
            "bytes": total_bytes,
        }

    def _load(self, index: int) -> bytes:
        encoded = super().read(index)
        return encoded if self.hold == "encoded" else super().decode(encoded).tobytes()
