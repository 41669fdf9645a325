"""Your own images: a folder with one folder a class, in any format that Pillow reads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from . import _disk
from ._files import Progress, evict, in_threads, resident_share
from ._images import decode, refuse_edge

_JPEG = (".jpg", ".jpeg")


def build(cache_dir: Path, *, path: str, image: int = 64, samples: int | None = None, cold: bool = False) -> Folder:
    """path: the folder; names of the folders in it are the classes. image: edge in pixels after the resize. samples: so many,
    drawn from all classes alike by a fixed seed; left out, all. cold: evicted from the page cache before each epoch.
    """
    refuse_edge(image)
    if not path:
        raise ValueError("path: is empty: give a folder of images, one folder a class")
    folder = Path(os.path.expanduser(path)).absolute()
    file_system = _disk.identify(folder)["file_system"]
    if cold and file_system in _disk.IN_MEMORY:
        raise ValueError(f"cold: {folder} lies in memory ({file_system}): give a path on a disk or leave cold out")
    found = _Found(folder)
    files = found.images
    if samples is not None:
        if not 1 <= samples <= len(files):
            raise ValueError(f"samples={samples}: must be 1 to {len(files):,}, the images in {folder}")
        files = [files[i] for i in sorted(np.random.default_rng(0).permutation(len(files))[:samples].tolist())]
    return Folder(folder, files, found, image, cold)


class Folder:
    """Files as they are: nothing is written, copied or moved."""

    def __init__(self, folder: Path, files: list[tuple[str, int]], found: _Found, image: int, cold: bool) -> None:
        self.folder, self.cold = folder, cold
        self.sample_shape = (image, image, 3)
        self.classes = found.classes
        self.n_classes = max(2, len(found.classes))  # a network that tells one class apart learns nothing
        self._files, self._left_out = files, found.left_out
        if all(name.lower().endswith(_JPEG) for name, _ in files):
            self.jpeg_paths = [name for name, _ in files]
        self._bytes: int | None = None
        self._disk = _disk.identify(folder) | _disk.NOT_MEASURED

    def __len__(self) -> int:
        return len(self._files)

    def name(self, index: int) -> str:
        return self._files[index][0]

    def read(self, index: int) -> bytes:
        with open(self._files[index][0], "rb", buffering=0) as file:
            return file.readall()

    def decode(self, encoded: bytes) -> NDArray[np.uint8]:
        return decode(encoded, self.sample_shape[0])

    def label(self, index: int) -> int:
        return self._files[index][1]

    def prepare(self, progress: Progress) -> None:
        sizes = list(in_threads(_size, (name for name, _ in self._files)))
        self._bytes = sum(sizes)
        self._disk |= _disk.measure([name for name, _ in self._files if os.access(name, os.R_OK)]) if self.cold else {}

    def start_epoch(self) -> float | None:
        if self.cold:
            evict([name for name, _ in self._files])
        return self.resident_share()

    def resident_share(self) -> float | None:
        return resident_share([name for name, _ in self._files])

    def describe(self) -> dict[str, Any]:
        size = f", {self._bytes / 1e6:,.0f} MB" if self._bytes else ""
        left_out = "".join(f"; left out: {count:,} {what}" for what, count in self._left_out.items() if count)
        how = "read cold" if self.cold else "read through the page cache"
        classes = f"{len(self.classes)} class{'' if len(self.classes) == 1 else 'es'}"
        return {
            "medium": "disk",
            "emulated": False,
            "cold": self.cold,
            "label": f"{len(self):,} images of {classes}{size}, on {_disk.label(self._disk)}, {how}{left_out}",
            "samples": len(self),
            "bytes": self._bytes,
            "folder": str(self.folder),
            "classes": self.classes,
            "left_out": self._left_out,
            "disk": self._disk,
        }


class _Found:
    """What lies in the folder. Symbolic links are followed; a folder that leads back to one above it is entered once."""

    def __init__(self, folder: Path) -> None:
        self.left_out = {"files that are no images": 0, "broken links": 0, "folders that cannot be read": 0}
        self._suffixes = {suffix for suffix, kind in Image.registered_extensions().items() if kind in Image.OPEN}
        try:
            with os.scandir(folder) as entries:
                folders = sorted(
                    entry.name for entry in entries if not entry.name.startswith(".") and _is(os.DirEntry.is_dir, entry)
                )
        except OSError as error:
            raise ValueError(f"path: {folder}: {error.strerror}: give a folder of images, one folder a class") from None
        self.images: list[tuple[str, int]] = []
        self.classes: list[str] = []
        for name in folders:
            here = sorted(self._walk(os.path.join(folder, name), (os.path.realpath(folder),)))
            if here:
                self.images += [(file, len(self.classes)) for file in here]
                self.classes.append(name)
        loose = sorted(self._images_in(str(folder)))
        if self.images:
            self.left_out["images beside the class folders"] = len(loose)
        elif loose:
            self.classes, self.images = [folder.name], [(file, 0) for file in loose]
        else:
            raise ValueError(f"path: {folder} holds no images{self._instead()}: give a folder of images, one folder a class")

    def _instead(self) -> str:
        there = [f"{count:,} {what}" for what, count in self.left_out.items() if count]
        return f" ({', '.join(there)})" if there else ""

    def _walk(self, folder: str, above: tuple[str, ...]) -> Iterator[str]:
        real = os.path.realpath(folder)
        if real in above:
            return
        yield from self._images_in(folder)
        try:
            with os.scandir(folder) as entries:
                below = [entry.path for entry in entries if not entry.name.startswith(".") and _is(os.DirEntry.is_dir, entry)]
        except OSError:
            return
        for each in below:
            yield from self._walk(each, (*above, real))

    def _images_in(self, folder: str) -> Iterator[str]:
        """Images by their suffix: opening each of a million files would take minutes."""
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name.startswith(".") or _is(os.DirEntry.is_dir, entry):
                        continue
                    if not _is(os.DirEntry.is_file, entry):
                        self.left_out["broken links"] += 1
                    elif os.path.splitext(entry.name)[1].lower() in self._suffixes:
                        yield entry.path
                    else:
                        self.left_out["files that are no images"] += 1
        except OSError:
            self.left_out["folders that cannot be read"] += 1


def _is(what: Callable[[os.DirEntry[str]], bool], entry: os.DirEntry[str]) -> bool:
    """False too for a link that leads to itself, or to where we may not look."""
    try:
        return what(entry)
    except OSError:
        return False


def _size(name: str) -> int:
    """0 for a file that has vanished: whoever reads it will say so."""
    try:
        return os.stat(name).st_size
    except OSError:
        return 0
