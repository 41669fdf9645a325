"""JPEG files behind a storage device given in numbers: reads wait as they would on it; the bytes come from the page cache."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ._device import MOST_IN_FLIGHT, Device, Figures
from ._files import JpegFiles, Progress, in_threads, write_missing


class Preset(NamedTuple):
    figures: Figures
    source: str


# Sizes of order, from what makers and providers publish; a device at hand is better described by its own numbers.
PRESETS = {
    "sata_ssd": Preset(
        Figures(100_000, 550_000_000, 32),
        "SATA SSD: 550 MB/s and some 10,000 random reads/s one at a time (Samsung 870 EVO data sheet); NCQ holds 32 requests",
    ),
    "nvme": Preset(
        Figures(80_000, 3_500_000_000, 64),
        "NVMe SSD on PCIe 3: 3,500 MB/s, some 12,000 to 15,000 random reads/s one at a time (Samsung 970 EVO Plus data sheet)",
    ),
    "nfs": Preset(
        Figures(1_000_000, 117_000_000, 16),
        "NFS over 1 Gbit/s: 117 MB/s are left of it after headers; 1 ms a read is a choice, not a standard",
    ),
    "object_store": Preset(
        Figures(100_000_000, 1_250_000_000, 256),
        "object store: 100 to 200 ms to the first byte of small objects (Amazon S3 performance guidelines); a 10 Gbit/s link",
    ),
}


def build(
    cache_dir: Path,
    *,
    samples: int = 1200,
    image: int = 64,
    path: str | None = None,
    cold: bool = True,
    device: str = "sata_ssd",
    latency_ns: int | None = None,
    bandwidth_bytes_per_s: int | None = None,
    requests_in_flight: int | None = None,
) -> EmulatedFiles:
    """device: sata_ssd, nvme, nfs or object_store, whose numbers the next three replace. latency: from the request to the first
    byte. bandwidth: shared by all requests. cold: false: what was read once is served from memory from then on.
    """
    if device not in PRESETS:
        raise ValueError(f"device: no device '{device}'. It can be: {', '.join(PRESETS)}")
    own: dict[str, Any] = {
        "latency_ns": latency_ns,
        "bandwidth_bytes_per_s": bandwidth_bytes_per_s,
        "requests_in_flight": requests_in_flight,
    }
    own = {name: value for name, value in own.items() if value is not None}
    figures, source = PRESETS[device]
    name = f"{device} with its {', '.join(option.removesuffix('_ns').removesuffix('_bytes_per_s') for option in own)} replaced"
    if not own:
        name = device
    elif len(own) == 3:
        name, source = "device", "all figures are the scenario's own"
    return emulate(folder_of(cache_dir, path), samples, image, cold, figures._replace(**own), name, source)


def folder_of(cache_dir: Path, path: str | None) -> Path:
    """Where the sample files lie: the named folder, else the cache."""
    return Path(os.path.expanduser(path)).absolute() if path is not None else cache_dir / "jpeg-v1"


def emulate(folder: Path, samples: int, image: int, cold: bool, figures: Figures, name: str, source: str) -> EmulatedFiles:
    """Sample files behind a device of these figures. ValueError names the option that makes no device."""
    if not figures.bandwidth_bytes_per_s:
        raise ValueError("bandwidth: must be above 0")
    if not 1 <= figures.requests_in_flight <= MOST_IN_FLIGHT:
        raise ValueError(f"requests_in_flight={figures.requests_in_flight}: must be 1 to {MOST_IN_FLIGHT:,}")
    return EmulatedFiles(folder, samples, image, cold, figures, name, source)


class EmulatedFiles(JpegFiles):
    """Sample files that lie one after another on an emulated device."""

    def __init__(self, folder: Path, samples: int, image: int, cold: bool, figures: Figures, name: str, source: str) -> None:
        super().__init__(folder, samples, image)
        self.cold, self.figures = cold, figures
        self._device_name, self._source = name, source
        self._device: Device | None = None
        self._total_bytes: int | None = None

    def prepare(self, progress: Progress) -> None:
        """Also leaves all files in the page cache, so that reading them in truth takes much less than it is to seem."""
        steps = 2 * self.samples  # each sample is written, if missing, and read
        write_missing(self.folder, self.samples, lambda done, _: progress(done, steps))
        sizes = np.zeros(self.samples, np.int64)
        for index, size in enumerate(
            in_threads(lambda index: len(super(EmulatedFiles, self).read(index)), range(self.samples))
        ):
            sizes[index] = size
            progress(self.samples + index + 1, steps)
        self._ends = np.cumsum(sizes)
        self._total_bytes = int(self._ends[-1])
        self._device = Device(self.figures, blocks=self.samples)

    def read(self, index: int) -> bytes:
        device = self._device
        assert device is not None, "not prepared"
        asked_ns = device.now_ns()  # the file is really read within the time that it is to take
        encoded = super().read(index)
        if self.cold or not device.in_memory[index]:
            device.read(int(self._ends[index]) - len(encoded), len(encoded), asked_ns)
            device.in_memory[index] = 1
        return encoded

    def start_epoch(self) -> float | None:
        """The share that the emulated host's memory holds."""
        if self.cold or self._device is None or not self._total_bytes:
            return 0.0
        sizes = np.diff(self._ends, prepend=0)
        return float(sizes[self._device.in_memory.astype(bool)].sum() / self._total_bytes)

    def describe(self) -> dict[str, Any]:
        size = f", {self._total_bytes / 1e6:,.0f} MB" if self._total_bytes else ""
        how = "read cold" if self.cold else "kept in memory once read"
        return {
            "medium": "emulated",
            "emulated": True,
            "cold": self.cold,
            "label": f"{self.samples:,} JPEG files{size}, on an emulated {self._device_name}, {how}",
            "samples": self.samples,
            "bytes": self._total_bytes,
            "folder": str(self.folder),
            "emulated_device": {"name": self._device_name, **self.figures._asdict(), "source": self._source},
        }
