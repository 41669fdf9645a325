"""JPEG files on a local disk, read cold: each epoch starts with none of them in the page cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import _direct, _disk
from ._files import JpegFiles, Progress, clean, evict, resident_share, sample_folders, samples_folder, write_missing

__all__ = ["build", "clean", "sample_folders"]  # the latter two are what `stallscope clean` calls


def build(
    cache_dir: Path,
    *,
    samples: int = 1200,
    image: int = 64,
    path: str | None = None,
    cold: bool = True,
    o_direct: bool = False,
) -> Ssd:
    """JPEG files in `path` (an empty folder, or one of ours), else in the cache. cold: evicted before each epoch.

    o_direct: read past the page cache, in one request a file and with nothing read ahead, as databases do.
    """
    folder = samples_folder(cache_dir, path)
    file_system = _disk.identify(folder)["file_system"]
    if cold and file_system in _disk.IN_MEMORY:
        raise ValueError(f"cold: {folder} lies in memory ({file_system}): give a path on a disk or set cold: false")
    if o_direct and (file_system in _disk.IN_MEMORY or not _direct.works(folder)):  # newer kernels take it in memory too
        raise ValueError(f"o_direct: the file system of {folder} ({file_system}) reads no device directly: leave it out")
    return Ssd(folder, samples, image, cold, o_direct)


class Ssd(JpegFiles):
    """Sample files that are read from the disk they lie on, whatever disk that is: `describe` says."""

    def __init__(self, folder: Path, samples: int, image: int, cold: bool, o_direct: bool = False) -> None:
        super().__init__(folder, samples, image)
        self.cold, self.o_direct = cold, o_direct
        if not o_direct:  # what others read for us goes through the page cache
            self.jpeg_paths = self.names()
        self._total_bytes: int | None = None
        self._disk = _disk.identify(folder) | _disk.NOT_MEASURED

    def prepare(self, progress: Progress) -> None:
        self._total_bytes = write_missing(self.folder, self.samples, progress)
        self._disk |= _disk.measure(self.names())

    def read(self, index: int) -> bytes:
        return _direct.read(self.name(index)) if self.o_direct else super().read(index)

    def start_epoch(self) -> float | None:
        if self.cold:
            evict(self.names())
        return self.resident_share()

    def resident_share(self) -> float | None:
        return None if self.o_direct else resident_share(self.names())  # direct reads come from the disk, whatever is cached

    def describe(self) -> dict[str, Any]:
        size = f", {self._total_bytes / 1e6:,.0f} MB" if self._total_bytes else ""
        how = "read cold" if self.cold else "read through the page cache"
        how = "read with O_DIRECT" if self.o_direct else how
        return {
            "medium": "disk",
            "emulated": False,
            "cold": self.cold,
            "label": f"{self.samples:,} JPEG files{size}, on {_disk.label(self._disk)}, {how}",
            "samples": self.samples,
            "bytes": self._total_bytes,
            "folder": str(self.folder),
            "disk": self._disk,
        }
