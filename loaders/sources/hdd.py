"""JPEG files on a hard disk: a real one if `path` lies on it, else one emulated in time, and labelled so."""

from __future__ import annotations

from pathlib import Path

from . import _disk, ssd
from ._device import Figures
from .emulated import EmulatedFiles, emulate, folder_of

READAHEAD_BYTES = 1_500_000
"""A track: what passes under the head in one of 120 turns a second at 180 MB/s. Drives read on that far into their buffer."""


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
    """seek, rotation (half a turn: the mean wait for a sector), bandwidth: of the emulated disk; a real one has its own. The
    defaults are a 7200 rpm disk's by data sheet (Seagate, WD: 8.5 ms average seek, 60 s / 7200 / 2 = 4.17 ms, 180 MB/s).
    cold: false: what was read once is served from memory from then on.
    """
    folder = folder_of(cache_dir, path)
    disk = _disk.identify(folder)
    if path is not None and _disk.rotates(disk):
        return ssd.build(cache_dir, samples=samples, image=image, path=path, cold=cold)
    figures = Figures(seek_ns + rotation_ns, bandwidth_bytes_per_s, 1, READAHEAD_BYTES)
    source = (
        f"hard disk: seek {seek_ns / 1e6:g} ms, rotation {rotation_ns / 1e6:g} ms, {bandwidth_bytes_per_s / 1e6:g} MB/s "
        "(defaults: data sheets of 7200 rpm disks); one request at a time"
    )
    return emulate(folder, samples, image, cold, figures, "hard disk", source)
