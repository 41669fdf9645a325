"""JPEG files on a device that is emulated by its numbers: a SATA SSD, an NVMe SSD, a file server, an object store, or yours."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from ._device import Speed
from ._emulated import EmulatedFiles
from ._files import samples_folder

MOST_IN_FLIGHT = 4096
"""Each is looked at in every read."""


class Preset(NamedTuple):
    """A kind of device, by published figures. Yours will differ: give its own numbers."""

    what: str
    speed: Speed
    source: str


PRESETS = {
    "sata_ssd": Preset(
        "SATA SSD",
        Speed(latency_ns=90_000, bytes_per_s=550_000_000, requests_in_flight=32),
        "data sheets of SATA drives: 550 MB/s, 32 queued commands (the limit of SATA), about 90 us a random read",
    ),
    "nvme": Preset(
        "NVMe SSD",
        Speed(latency_ns=70_000, bytes_per_s=3_500_000_000, requests_in_flight=256),
        "data sheets of PCIe 3.0 x4 drives: 3.5 GB/s, about 70 us a random read",
    ),
    "nfs": Preset(
        "file server (NFS)",
        Speed(latency_ns=1_000_000, bytes_per_s=1_170_000_000, requests_in_flight=16),
        "a 10 Gbit/s network less its protocols, 16 slots of an NFSv4.1 session, about 1 ms for open and read; an assumption",
    ),
    "object_store": Preset(
        "object store",
        Speed(latency_ns=30_000_000, bytes_per_s=1_170_000_000, requests_in_flight=256),
        "first bytes of small objects after tens of milliseconds, as AWS writes of S3 (100 to 200 ms worst); 10 Gbit/s network",
    ),
}


def build(
    cache_dir: Path,
    *,
    samples: int = 1200,
    image: int = 64,
    path: str | None = None,
    cold: bool = True,
    device: Literal["sata_ssd", "nvme", "nfs", "object_store"] = "sata_ssd",
    latency_ns: int | None = None,
    bandwidth_bytes_per_s: int | None = None,
    requests_in_flight: int | None = None,
) -> EmulatedFiles:
    """device: whose numbers are used where none is given. latency: from a request to its first byte. bandwidth: of all
    requests together. requests_in_flight: how many are served at once; others queue.
    """
    if device not in PRESETS:
        raise ValueError(f"device={device}: must be one of {', '.join(PRESETS)}")
    if bandwidth_bytes_per_s is not None and bandwidth_bytes_per_s < 1:
        raise ValueError(f"bandwidth={bandwidth_bytes_per_s}: must be at least 1 B/s")
    if requests_in_flight is not None and not 1 <= requests_in_flight <= MOST_IN_FLIGHT:
        raise ValueError(f"requests_in_flight={requests_in_flight}: must be 1 to {MOST_IN_FLIGHT}")
    preset = PRESETS[device]
    own = {"latency_ns": latency_ns, "bytes_per_s": bandwidth_bytes_per_s, "requests_in_flight": requests_in_flight}
    given = {name: value for name, value in own.items() if value is not None}
    speed = preset.speed._replace(**given)
    folder = samples_folder(cache_dir, path)
    numbers = f"{speed.latency_ns / 1e6:g} ms, {speed.bytes_per_s / 1e6:g} MB/s, {speed.requests_in_flight} in flight"
    source = preset.source if not given else f"{', '.join(given)} as given; else {preset.source}"
    return EmulatedFiles(folder, samples, image, cold, speed, f"{preset.what} ({numbers})", source)
