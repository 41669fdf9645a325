"""JPEG files on a hard disk: a real one where `path` leads to one, else one that is emulated in time, and labelled so."""

from __future__ import annotations

from pathlib import Path

from . import _disk, ssd
from ._device import Speed
from ._emulated import EmulatedFiles
from ._files import samples_folder

_READAHEAD_BYTES = 256_000
_SOURCE = (
    "seek and sequential rate as data sheets of 7200 rpm desktop disks have them (8.5 ms, 180 MB/s); "
    "rotation: half a turn at 7200 rpm"
)


def build(
    cache_dir: Path,
    *,
    samples: int = 1200,
    image: int = 64,
    path: str | None = None,
    cold: bool = True,
    seek_ns: int = 8_500_000,
    rotation_ns: int = 4_170_000,
    bandwidth_bytes_per_s: int = 180_000_000,
) -> EmulatedFiles | ssd.Ssd:
    """seek, rotation (half a turn) and bandwidth are the emulated disk's. It has one head and takes one request after another,
    in the order in which they come; a read that follows on the last one, or nearly, costs neither seek nor rotation.
    """
    for option, value, least in (("seek", seek_ns, 0), ("rotation", rotation_ns, 0), ("bandwidth", bandwidth_bytes_per_s, 1)):
        if value < least:
            raise ValueError(f"{option}={value}: must be at least {least}")
    folder = samples_folder(cache_dir, path)
    if path is not None and rotates(_disk.identify(folder)):
        return ssd.Ssd(folder, samples, image, cold)
    speed = Speed(seek_ns + rotation_ns, bandwidth_bytes_per_s, 1, _READAHEAD_BYTES)
    what = f"hard disk (seek {seek_ns / 1e6:g} ms, rotation {rotation_ns / 1e6:g} ms, {bandwidth_bytes_per_s / 1e6:g} MB/s)"
    return EmulatedFiles(folder, samples, image, cold, speed, what, _SOURCE)


def rotates(disk: dict[str, object]) -> bool:
    """Virtual disks call themselves rotational, over any storage."""
    return disk["rotational_flag"] is True and disk["virtual"] is False
