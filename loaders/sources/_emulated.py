"""Sample files as if they lay on another device: their bytes come from the page cache, and the time from an emulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ._device import Device, Speed
from ._files import JpegFiles, Progress, write_missing


class EmulatedFiles(JpegFiles):
    """The files lie one after another on the device, in the order of their numbers.

    cold: every read goes to the device. Otherwise what was read once is there without it, as from a page cache.
    """

    def __init__(self, folder: Path, samples: int, image: int, cold: bool, speed: Speed, what: str, source: str) -> None:
        super().__init__(folder, samples, image)
        self.cold, self.speed = cold, speed
        self._what, self._source = what, source
        self._device = Device(speed, samples)
        self._first_bytes: list[int] = []

    def prepare(self, progress: Progress) -> None:
        write_missing(self.folder, self.samples, progress)
        # All are read into the page cache: what a real disk takes must not come on top.
        sizes = [len(super(EmulatedFiles, self).read(index)) for index in range(self.samples)]
        self._first_bytes = [0, *np.cumsum(sizes).tolist()]

    def read(self, index: int) -> bytes:
        asked_ns = self._device.now_ns()  # the file is really read within the time that it is to take
        encoded = super().read(index)
        if self.cold or not self._device.was_read(index):
            self._device.read(index, self._first_bytes[index], len(encoded), asked_ns)
        return encoded

    def start_epoch(self) -> float | None:
        if self.cold:
            self._device.forget()
        return self.resident_share()

    def resident_share(self) -> float | None:
        return self._device.read_share()

    def describe(self) -> dict[str, Any]:
        total_bytes = self._first_bytes[-1] if self._first_bytes else None
        size = f", {total_bytes / 1e6:,.0f} MB" if total_bytes else ""
        how = "read cold" if self.cold else "read through an emulated page cache"
        return {
            "medium": "emulated",
            "emulated": True,
            "cold": self.cold,
            "label": f"{self.samples:,} JPEG files{size}, on an emulated {self._what}, {how}",
            "samples": self.samples,
            "bytes": total_bytes,
            "device": {**self.speed._asdict(), "source": self._source},
        }
