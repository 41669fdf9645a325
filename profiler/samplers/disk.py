"""Bytes and calls of reads of each process, the block device beneath the samples, and I/O pressure."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ..clocks import PROC
from ..contracts import Sampler
from ..events import Counter, Reading
from ._pressure import Pressure
from ._processes import numbers, text, tree

SYSFS = Path("/sys")
SECTOR_BYTES = 512
"""What the kernel counts in, whatever the device's own sectors are."""
COUNTERS = {"read_bytes": Counter.READ_BYTES, "rchar": Counter.RCHAR_BYTES, "syscr": Counter.SYSCR}


def build(pid: int, folder: Path | None = None) -> Sampler:
    """folder: where the samples lie; its device is read too, if it is a block device and not, say, a share on the network."""
    return Disk(pid, folder)


class Disk:
    """About 20 us a process."""

    def __init__(self, pid: int, folder: Path | None = None, proc: Path = PROC, sysfs: Path = SYSFS) -> None:
        self._pid, self._proc = pid, proc
        self._device = None if folder is None else device_stat(folder, sysfs)
        self._pressure = Pressure("io", Counter.IO_PRESSURE_US, pid, proc)

    def read(self) -> Iterator[Reading]:
        for pid in tree(self._pid, self._proc):
            said = numbers(text(f"{self._proc}/{pid}/io"))
            yield from (Reading(counter, pid, said[name]) for name, counter in COUNTERS.items() if name in said)
        if self._device is not None:
            yield from _device_readings(text(self._device))
        yield from self._pressure.read()


def device_stat(folder: Path, sysfs: Path = SYSFS) -> Path | None:
    """The `stat` of the whole disk that a folder lies on; None where its file system names no block device."""
    with suppress(OSError):
        number = os.stat(folder).st_dev
        device = (sysfs / f"dev/block/{os.major(number)}:{os.minor(number)}").resolve(strict=True)
        return (device.parent if (device / "partition").exists() else device) / "stat"
    return None


def _device_readings(line: str | None) -> Iterator[Reading]:
    """From the text of /sys/block/<device>/stat: reads, merged, sectors, milliseconds; as much of writes; in flight."""
    fields = [int(field) for field in (line or "").split()]
    if len(fields) >= 9:
        reads, _, sectors, reading_ms = fields[:4]
        yield Reading(Counter.DEVICE_READS, 0, reads)
        yield Reading(Counter.DEVICE_READ_BYTES, 0, sectors * SECTOR_BYTES)
        yield Reading(Counter.DEVICE_READ_NS, 0, reading_ms * 1_000_000)
        yield Reading(Counter.DEVICE_IN_FLIGHT, 0, fields[8])
