"""Your own images: a folder of them, one sub-folder a class."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from . import _disk
from ._files import Progress, evict, resident_share

_NEED_OTHER_PROGRAMS = {"BUFR", "EPS", "GRIB", "HDF5", "MPEG", "PDF", "WMF"}
"""Formats that Pillow knows by name, and hands to somebody else to draw."""


def build(cache_dir: Path, *, path: str, image: int = 64, samples: int | None = None, cold: bool = False) -> Folder:
    """path: the folder. The sorted names of its sub-folders are the classes, and what lies deeper belongs to them; without
    sub-folders all images are of one class. Hidden files are left out. image: the edge after the resize. samples: of more
    images only so many, evenly spaced in the sorted order. cold: evicted from the page cache before each epoch.
    """
    if not 1 <= image <= 4096:
        raise ValueError(f"image={image}: must be 1 to 4096, the edge in pixels after the resize")
    if samples is not None and samples < 1:
        raise ValueError(f"samples={samples}: must be at least 1; leave it out for all images")
    folder = Path(os.path.expanduser(path)).absolute()
    _disk.refuse_cold_in_memory(folder, cold)
    return Folder(folder, image, samples, cold)


class Folder:
    """Image files of any size, format and mode that Pillow reads, each made RGB and `image` x `image` pixels."""

    def __init__(self, folder: Path, image: int, samples: int | None, cold: bool) -> None:
        self.folder, self.cold = folder, cold
        self.sample_shape = (image, image, 3)
        self._left_out: Counter[str] = Counter()
        classes = _classes(folder, self._left_out)
        found = [(name, label) for label, names in enumerate(classes) for name in names]
        if not found:
            raise ValueError(f"path: {folder} holds no images{_in_words(self._left_out)}")
        n_chosen = min(samples or len(found), len(found))
        chosen = [found[i * len(found) // n_chosen] for i in range(n_chosen)]
        self._names = [name for name, _ in chosen]
        self._labels = [label for _, label in chosen]
        self._of = len(found)
        self._n_classes_found = len(classes)
        self.n_classes = max(2, len(classes))  # a classifier of one class has nothing to tell apart
        self._total_bytes: int | None = None
        self._disk = _disk.identify(folder) | _disk.NOT_MEASURED

    def __len__(self) -> int:
        return len(self._names)

    @property
    def jpeg_paths(self) -> list[str]:
        """Only where all are JPEG files: see contracts.Source."""
        if not all(name.lower().endswith((".jpg", ".jpeg")) for name in self._names):
            raise AttributeError("jpeg_paths: not all of these images are JPEG files")
        return self._names

    def name(self, index: int) -> str:
        return self._names[index]

    def label(self, index: int) -> int:
        return self._labels[index]

    def read(self, index: int) -> bytes:
        with open(self._names[index], "rb", buffering=0) as file:
            return file.readall()

    def decode(self, encoded: bytes) -> NDArray[np.uint8]:
        edge = self.sample_shape[0]
        try:
            with Image.open(io.BytesIO(encoded)) as opened:
                small = _as_rgb(opened).resize((edge, edge), Image.Resampling.BILINEAR)
        except Exception as error:  # on damaged files Pillow raises SyntaxError, struct.error, IndexError and others
            what = "not an image" if isinstance(error, UnidentifiedImageError) else f"{type(error).__name__}: {error}"
            raise ValueError(f"cannot be decoded ({what})") from error
        return np.array(small, dtype=np.uint8)

    def prepare(self, progress: Progress) -> None:
        """Reads some files cold, to say how fast the disk is. Nothing is written."""
        names = self._readable()
        self._total_bytes = sum(map(os.path.getsize, names))
        self._disk |= _disk.measure(names)

    def start_epoch(self) -> float | None:
        names = self._readable()
        if self.cold:
            evict(names)
        return resident_share(names)

    def describe(self) -> dict[str, Any]:
        size = f", {self._total_bytes / 1e6:,.0f} MB" if self._total_bytes is not None else ""
        of = f" of {self._of:,}" if self._of > len(self) else ""
        classes = f"{self._n_classes_found:,} class{'' if self._n_classes_found == 1 else 'es'}"
        how = "read cold" if self.cold else "read through the page cache"
        images = f"image{'' if len(self) == 1 and not of else 's'}"
        return {
            "medium": "disk",
            "emulated": False,
            "cold": self.cold,
            "label": f"{len(self):,}{of} {images} in {classes}{size}, on {_disk.label(self._disk)}, {how}"
            f"{_in_words(self._left_out)}",
            "samples": len(self),
            "bytes": self._total_bytes,
            "folder": str(self.folder),
            "left_out": dict(self._left_out),
            "disk": self._disk,
        }

    def _readable(self) -> list[str]:
        """Without those that are gone, or not for us: whoever reads them will say so."""
        return [name for name in self._names if os.access(name, os.R_OK)]


def _classes(folder: Path, left_out: Counter[str]) -> list[list[str]]:
    """The sorted image files of each class. A sub-folder without images is none."""
    suffixes = _suffixes()
    entries = _entries(str(folder))
    of_folders = [sorted(_images(entry.path, suffixes, left_out)) for entry in entries if _is(os.DirEntry.is_dir, entry)]
    classes = [names for names in of_folders if names]
    beside = Counter[str]()
    directly = [entry.path for entry in entries if not _is(os.DirEntry.is_dir, entry) and _is_image(entry, suffixes, beside)]
    left_out.update(beside)
    if classes and directly:
        left_out["outside the class folders"] += len(directly)
    return classes or ([sorted(directly)] if directly else [])


def _images(folder: str, suffixes: frozenset[str], left_out: Counter[str]) -> Iterator[str]:
    """All images below a folder. Links are followed; a folder that is met again, as in a loop of links, is not entered."""
    to_see, seen = [folder], set()
    while to_see:
        current = to_see.pop()
        status = os.stat(current)
        if (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        for entry in _entries(current):
            if _is(os.DirEntry.is_dir, entry):
                to_see.append(entry.path)
            elif _is_image(entry, suffixes, left_out):
                yield entry.path


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """What lies in a folder, by name, without what is hidden."""
    try:
        with os.scandir(folder) as entries:
            return sorted((entry for entry in entries if not entry.name.startswith(".")), key=lambda entry: entry.name)
    except OSError as error:
        raise ValueError(f"path: {folder}: {error.strerror}. Give a folder of images that may be read") from None


def _is_image(entry: os.DirEntry[str], suffixes: frozenset[str], left_out: Counter[str]) -> bool:
    """By its name alone: opening a hundred thousand files would take minutes on a cold disk."""
    if os.path.splitext(entry.name)[1].lower() not in suffixes:
        left_out["not images"] += 1
        return False
    if not _is(os.DirEntry.is_file, entry):
        left_out["broken links or no files"] += 1
        return False
    return True


def _is(what: Callable[[os.DirEntry[str]], bool], entry: os.DirEntry[str]) -> bool:
    """False too for a link that leads to itself, or to where we may not look."""
    try:
        return what(entry)
    except OSError:
        return False


def _suffixes() -> frozenset[str]:
    """Of the formats that this Pillow can read by itself."""
    known = Image.registered_extensions()
    return frozenset(suffix for suffix, name in known.items() if name in Image.OPEN and name not in _NEED_OTHER_PROGRAMS)


def _as_rgb(opened: Image.Image) -> Image.Image:
    """The first frame, 8 bits a channel. 16-bit grey keeps its upper 8 bits; of 32-bit grey, which has no declared white,
    the range that it has becomes 0 to 255. Transparency is dropped.
    """
    if opened.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(opened) >> 8).astype(np.uint8)).convert("RGB")
    if opened.mode in ("I", "F"):
        grey = np.nan_to_num(np.asarray(opened, np.float64))
        low, high = float(grey.min()), float(grey.max())
        return Image.fromarray(((grey - low) * (255 / (high - low or 1))).astype(np.uint8)).convert("RGB")
    if opened.mode == "P" and "transparency" in opened.info:
        return opened.convert("RGBA").convert("RGB")  # else Pillow warns of it, once for each file
    return opened.convert("RGB")


def _in_words(left_out: Counter[str]) -> str:
    """A clause for a label or a message; nothing if nothing was left out."""
    parts = [f"{count:,} {why}" for why, count in sorted(left_out.items())]
    return f" (left out: {', '.join(parts)})" if parts else ""
