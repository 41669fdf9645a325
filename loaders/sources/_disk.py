"""What disk lies behind a path, and how fast it is when it is read cold."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter_ns
from typing import Any, NamedTuple

import numpy as np

from ._files import evict, resident_share

NOT_MEASURED: dict[str, int | None] = {
    "sequential_bytes_per_s": None,
    "random_read_p50_ns": None,
    "random_read_p95_ns": None,
}
IN_MEMORY = ("tmpfs", "ramfs")
"""File systems without a disk beneath."""
_MAX_FILES, _MAX_BYTES, _MAX_NS = 512, 64_000_000, 400_000_000
_RANDOM_READS, _RANDOM_READ_BYTES = 256, 4096
_VIRTUAL_NAME = re.compile(r"(vd|xvd|zram|loop|dm-|nbd)")
_VIRTUAL_MODEL = re.compile(r"virtual|qemu|elastic block|persistent ?disk", re.IGNORECASE)


class Mount(NamedTuple):
    """A line of mountinfo, as much of it as we need."""

    point: str
    file_system: str
    source: str
    number: str
    """major:minor of the device; 0:x where the file system has no single device."""


def identify(path: Path, mountinfo: Path = Path("/proc/self/mountinfo"), sysfs: Path = Path("/sys")) -> dict[str, Any]:
    """What the kernel knows of the disk behind a path, which need not exist yet. None: it does not say.

    rotational_flag is kept as the kernel gives it and is no sign of a hard disk: virtual disks say 1 over any storage.
    """
    mount = _mount_of(path, mountinfo)
    device = _block_device(mount, sysfs) if mount else None
    return {
        "file_system": mount.file_system if mount else None,
        "mount_point": mount.point if mount else None,
        "device": device.name if device else None,
        "virtual": _is_virtual(device) if device else None,
        "rotational_flag": _rotational_flag(device) if device else None,
    }


def label(disk: dict[str, Any]) -> str:
    """A disk in a few words, such as `ext4 /dev/vda (virtual)`."""
    device = f" /dev/{disk['device']}" if disk["device"] else ""
    return f"{disk['file_system'] or 'an unknown file system'}{device}{' (virtual)' if disk['virtual'] else ''}"


def measure(names: Sequence[str]) -> dict[str, int | None]:
    """Reads some of these files cold, for under a second. What could not be read cold for certain is None.

    sequential_bytes_per_s: one reader, file after file: what a loader with one worker can get, not the disk's limit.
    random_read_*_ns: one 4 KiB page at a time, nothing read ahead. A disk with a cache of its own may flatter both.
    """
    names = names[:_MAX_FILES]
    random_ns = _random_reads_ns(names) if _make_cold(names) else []
    # The sequential pass comes last: it leaves the files in the page cache again, where they were if just written.
    sequential = _sequential_bytes_per_s(names) if _make_cold(names) else None
    p50, p95 = (int(ns) for ns in np.percentile(random_ns, [50, 95])) if random_ns else (None, None)
    return {"sequential_bytes_per_s": sequential, "random_read_p50_ns": p50, "random_read_p95_ns": p95}


def _make_cold(names: Sequence[str]) -> bool:
    evict(names)
    resident = resident_share(names)
    return resident is not None and resident < 0.01


def _random_reads_ns(names: Sequence[str]) -> list[int]:
    pages = [(name, page) for name in names for page in range(os.path.getsize(name) // _RANDOM_READ_BYTES)]
    chosen = random.Random(0).sample(pages, min(_RANDOM_READS, len(pages)))
    stop_ns = perf_counter_ns() + _MAX_NS
    taken_ns: list[int] = []
    for name, page in chosen:
        with open(name, "rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # else the kernel reads far more than the page
            start_ns = perf_counter_ns()
            os.pread(file.fileno(), _RANDOM_READ_BYTES, page * _RANDOM_READ_BYTES)
            end_ns = perf_counter_ns()
        taken_ns.append(end_ns - start_ns)
        if end_ns > stop_ns:
            break
    return taken_ns


def _sequential_bytes_per_s(names: Sequence[str]) -> int:
    buffer = bytearray(1 << 20)
    n_bytes = 0
    start_ns = end_ns = perf_counter_ns()
    for name in names:
        with open(name, "rb", buffering=0) as file:
            while n_read := file.readinto(buffer):
                n_bytes += n_read
        end_ns = perf_counter_ns()
        if n_bytes >= _MAX_BYTES or end_ns - start_ns > _MAX_NS:
            break
    return round(n_bytes * 1e9 / (end_ns - start_ns))


def _mount_of(path: Path, mountinfo: Path) -> Mount | None:
    """The mount that a path lies on: the longest that leads to it and, of several at one place, the last."""
    try:
        lines = mountinfo.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return None
    real = Path(os.path.realpath(path))
    leading = [mount for mount in map(_parse_mount, lines) if real.is_relative_to(mount.point)]
    return max(reversed(leading), key=lambda mount: len(mount.point), default=None)


def _parse_mount(line: str) -> Mount:
    left, _, right = line.partition(" - ")
    number, point = left.split()[2], left.split()[4]
    file_system, source = right.split()[:2]
    return Mount(_unescaped(point), file_system, _unescaped(source), number)


def _unescaped(text: str) -> str:
    """mountinfo writes a space as \\040, and so on."""
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), text)


def _block_device(mount: Mount, sysfs: Path) -> Path | None:
    """The folder in sysfs of the whole disk; of a file system with a made-up number (btrfs), by its source."""
    for number in (mount.number, _device_number(mount.source)):
        if number and (sysfs / "dev/block" / number).exists():
            device = (sysfs / "dev/block" / number).resolve()
            return device.parent if (device / "partition").exists() else device
    return None


def _device_number(node: str) -> str | None:
    try:
        number = os.stat(node).st_rdev
    except OSError:
        return None
    return f"{os.major(number)}:{os.minor(number)}" if number else None


def _is_virtual(device: Path) -> bool:
    """True for a disk that something else provides: a hypervisor, the network, other disks or memory."""
    driver = (device / "device/driver").resolve().name
    made_up = "virtual" in device.parts or bool(_VIRTUAL_NAME.match(device.name)) or driver.startswith("virtio")
    return made_up or bool(_VIRTUAL_MODEL.search(_read(device / "device/model")))


def _rotational_flag(device: Path) -> bool | None:
    return {"0": False, "1": True}.get(_read(device / "queue/rotational"))


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
