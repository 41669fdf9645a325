"""The sample files: JPEGs of about 110 KB, written once, used by every source that reads files of ours.

A folder of samples is known by its manifest. Each file appears under its name only when all of it is on the disk, so
whatever is there after an interruption is finished: it is kept, and only the rest is written.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import io
import json
import mmap
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ._images import refuse_edge

N_CLASSES = 10
MANIFEST = "stallscope-samples.json"
MOST_SAMPLES = 10_000_000
"""A terabyte. More would be counted for minutes before the disk is found too small."""
MEAN_FILE_BYTES = 110_000
"""What a file takes, for plans made before the files are there."""

_SCHEMA = 1
_RECIPE = "jpeg-v1"
_WIDTH, _HEIGHT = 500, 375
_NOISE_EDGE = 1024
_JPEG_QUALITY = 91
_FILES_PER_FOLDER = 1000
_TEMPORARY = ".stallscope-tmp"
_N_THREADS = 4  # encoding drops the interpreter lock, and an fsync only waits: more threads than cores keep both going

In = TypeVar("In")
Out = TypeVar("Out")
Progress = Callable[[int, int], None]


class JpegFiles:
    """`samples` JPEG files in a folder, each decoded to `image` x `image` pixels. What all sources over these files share."""

    n_classes = N_CLASSES

    def __init__(self, folder: Path, samples: int, image: int) -> None:
        if not 1 <= samples <= MOST_SAMPLES:
            raise ValueError(f"samples={samples}: must be 1 to {MOST_SAMPLES:,}")
        refuse_edge(image)
        with contextlib.suppress(OSError):  # not there yet, or not for us to see: `prepare` will meet it
            _known_sizes(folder)
        self.folder = folder
        self.samples = samples
        self.sample_shape = (image, image, 3)
        self._prefix = f"{folder}/"  # joining Paths would cost a read 5 us

    def __len__(self) -> int:
        return self.samples

    def name(self, index: int) -> str:
        return self._prefix + _relative_name(index)

    def names(self) -> list[str]:
        """All files, in order."""
        return [self.name(index) for index in range(self.samples)]

    def read(self, index: int) -> bytes:
        with open(self.name(index), "rb", buffering=0) as file:
            return file.readall()

    def decode(self, encoded: bytes) -> NDArray[np.uint8]:
        edge = self.sample_shape[0]
        with Image.open(io.BytesIO(encoded)) as opened:
            small = opened.convert("RGB").resize((edge, edge), Image.Resampling.BILINEAR)
        return np.array(small, dtype=np.uint8)  # a copy, since torch warns of an array that it must not write to

    def label(self, index: int) -> int:
        return index % N_CLASSES


def samples_folder(cache_dir: Path, path: str | None) -> Path:
    """Where the sample files lie: a folder that the user names, else one in the cache."""
    return cache_dir / _RECIPE if path is None else Path(os.path.expanduser(path)).absolute()


def write_missing(folder: Path, samples: int, progress: Progress) -> int:
    """Writes what the first `samples` files of the folder lack, and returns their size in bytes. Finished files are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        known = _known_sizes(folder)
        promised = dict(enumerate(known))
        sizes = [_size(folder / _relative_name(index)) for index in range(samples)]
        missing = [index for index, size in enumerate(sizes) if not size or size != promised.get(index, size)]
        if missing or len(known) < samples:
            _refuse_without_space(folder, len(missing) * MEAN_FILE_BYTES)
            for left_over in _temporaries(folder):
                left_over.unlink(missing_ok=True)
            _save_manifest(folder, known)  # before the first file: an interrupted folder must be known as ours
            written = in_threads(functools.partial(_write_sample, folder), missing)
            for done, (index, size) in enumerate(zip(missing, written, strict=True), start=samples - len(missing) + 1):
                sizes[index] = size
                progress(done, samples)
            _save_manifest(folder, sizes + known[samples:])
    return sum(sizes)


def in_threads(work: Callable[[In], Out], items: Iterable[In]) -> Iterator[Out]:
    """Yields work(item) in order, worked out by a few threads. What has not begun when one fails is dropped."""
    pool = ThreadPoolExecutor(_N_THREADS)
    try:
        yield from pool.map(work, items)
    finally:
        pool.shutdown(cancel_futures=True)


def evict(names: Iterable[str]) -> None:
    """Asks the kernel to drop these files from the page cache. Needs no root, and is only a wish: ask `resident_share`."""
    if not hasattr(os, "posix_fadvise"):
        return
    for name in names:
        with contextlib.suppress(OSError), _opened(name) as file:  # gone, or not for us: whoever reads it will say so
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)


def resident_share(names: Iterable[str]) -> float | None:
    """The share of these files' pages that lies in the page cache now. None: the kernel would not tell the truth."""
    if sys.platform != "linux":
        return None
    mincore = ctypes.CDLL(None, use_errno=True).mincore
    mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    n_pages = n_resident = 0
    for name in (name for name in names if os.access(name, os.R_OK)):
        with _opened(name) as file:
            status = os.fstat(file)
            # Of a file that we neither own nor may write to, mincore calls every page resident, so as to leak nothing.
            if status.st_uid != os.geteuid() and not os.access(name, os.W_OK):
                return None
            if not status.st_size:
                continue
            pages = np.zeros(-(-status.st_size // mmap.PAGESIZE), np.uint8)
            mapped = np.frombuffer(mmap.mmap(file, status.st_size, access=mmap.ACCESS_READ), np.uint8)
        if mincore(mapped.ctypes.data, status.st_size, pages.ctypes.data):
            return None
        n_pages += len(pages)
        n_resident += int(np.count_nonzero(pages & 1))
    return n_resident / n_pages if n_pages else None


class SampleFolder(NamedTuple):
    """A folder of our sample files, as `clean` shows it."""

    folder: Path
    files: int
    bytes: int


def sample_folders(cache_dir: Path) -> list[SampleFolder]:
    """What sample files lie in the cache, folder by folder."""
    folders = sorted(manifest.parent for manifest in cache_dir.glob(f"*/{MANIFEST}"))
    held = [(folder, _our_files(folder)) for folder in folders]
    return [SampleFolder(folder, len(files), sum(_size(file) for file in files)) for folder, files in held]


def clean(folder: Path) -> int:
    """Removes the sample files of a folder and returns the bytes that were freed. What is not ours stays."""
    if not (folder / MANIFEST).is_file():
        raise ValueError(f"{folder}: holds no sample files of ours (it has no {MANIFEST}), so nothing is removed")
    freed_bytes = 0
    with _alone(folder):
        for file in _our_files(folder):  # the manifest comes last: a clean that was interrupted can be repeated
            freed_bytes += _size(file)
            file.unlink(missing_ok=True)
    for emptied in [*folder.glob("*/"), folder]:
        with contextlib.suppress(OSError):  # something that is not ours lies in it
            emptied.rmdir()
    return freed_bytes


def _encode(index: int) -> bytes:
    """The JPEG of a sample: the colours of its class, its own tint, and grain that takes as many bytes as a photograph's."""
    rng = np.random.default_rng(index)
    top, left = rng.integers(0, (_NOISE_EDGE - _HEIGHT, _NOISE_EDGE - _WIDTH))
    grain = _noise()[top : top + _HEIGHT, left : left + _WIDTH] * np.int16(rng.integers(32, 49)) >> 7
    tint = rng.integers(-24, 25, 3, dtype=np.int16)
    pixels = np.clip(_class_colours(index % N_CLASSES) + tint + grain, 0, 255).astype(np.uint8)
    encoded = io.BytesIO()
    Image.fromarray(pixels).save(encoded, "JPEG", quality=_JPEG_QUALITY)
    return encoded.getvalue()


@functools.cache
def _noise() -> NDArray[np.int16]:
    """One field of noise, from which each sample cuts a window: fresh noise would cost more than the encoding."""
    return np.random.default_rng(0).integers(-128, 128, (_NOISE_EDGE, _NOISE_EDGE, 3), dtype=np.int16)


@functools.cache
def _class_colours(label: int) -> NDArray[np.int16]:
    """Slow waves of colour by which a class is told from the others, still there in a thumbnail."""
    rng = np.random.default_rng(label)
    turns_x, turns_y, phase = rng.uniform(-1.5, 1.5, 3), rng.uniform(-1.5, 1.5, 3), rng.uniform(0, 1, 3)
    y, x = np.mgrid[0 : 1 : _HEIGHT * 1j, 0 : 1 : _WIDTH * 1j][..., np.newaxis]
    waves = np.cos(2 * np.pi * (turns_x * x + turns_y * y + phase))
    colours: NDArray[np.int16] = np.rint(rng.uniform(90, 166, 3) + 50 * waves).astype(np.int16)
    return colours


def _relative_name(index: int) -> str:
    return f"{index // _FILES_PER_FOLDER:03d}/{index:06d}.jpg"


def _write_sample(folder: Path, index: int) -> int:
    encoded = _encode(index)
    path = folder / _relative_name(index)
    path.parent.mkdir(exist_ok=True)
    _write_whole(path, encoded)
    return len(encoded)


def _write_whole(path: Path, content: bytes) -> None:
    """Writes a file that is seen whole or not at all. The fsync also makes it evictable: dirty pages stay in memory."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}{_TEMPORARY}")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):  # a failed write names no file, a failed open the temporary one
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def _known_sizes(folder: Path) -> list[int]:
    """The file sizes that the manifest holds. Refuses a folder that is neither ours nor empty."""
    try:
        text = (folder / MANIFEST).read_bytes()
    except FileNotFoundError:
        # A fresh disk brings lost+found; a temporary file is ours, left when the very first write was interrupted.
        strangers = [entry for entry in os.listdir(folder) if entry != "lost+found" and not entry.endswith(_TEMPORARY)]
        if strangers:
            raise ValueError(f"path: {folder} holds other files ({min(strangers)}, ...): give an empty folder") from None
        return []
    try:
        manifest = json.loads(text)
        known, sizes = (manifest["schema"], manifest["recipe"]) == (_SCHEMA, _RECIPE), [*manifest["sizes_bytes"]]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise ValueError(f"path: {folder}/{MANIFEST} is damaged: clean that folder, or give an empty one") from None
    if not known:
        raise ValueError(f"path: {folder} holds samples of another version: clean that folder, or give an empty one")
    return [size if isinstance(size, int) else 0 for size in sizes]  # 0 is no file's size: that file is written again


def _save_manifest(folder: Path, sizes_bytes: Sequence[int]) -> None:
    manifest = {"schema": _SCHEMA, "recipe": _RECIPE, "n_classes": N_CLASSES, "sizes_bytes": sizes_bytes}
    _write_whole(folder / MANIFEST, json.dumps(manifest).encode())


def _refuse_without_space(folder: Path, needed_bytes: int) -> None:
    free_bytes = shutil.disk_usage(folder).free
    if needed_bytes > free_bytes:
        needed = f"sample files need {needed_bytes / 1e6:,.0f} MB, {free_bytes / 1e6:,.0f} MB are free"
        raise OSError(errno.ENOSPC, needed, str(folder))


def _temporaries(folder: Path) -> list[Path]:
    return [*folder.glob(f"*{_TEMPORARY}"), *folder.glob(f"*/*{_TEMPORARY}")]


def _our_files(folder: Path) -> list[Path]:
    """Samples, temporaries and, last, the manifest. A file that only looks like a sample is not ours."""
    samples = [path for path in folder.glob("*/*.jpg") if path.stem.isdecimal()]
    samples = [path for path in samples if path == folder / _relative_name(int(path.stem))]
    return [*samples, *_temporaries(folder), folder / MANIFEST]


def _size(path: Path) -> int:
    """Bytes in a file; 0 if there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


@contextlib.contextmanager
def _opened(name: str) -> Iterator[int]:
    file = os.open(name, os.O_RDONLY)
    try:
        yield file
    finally:
        os.close(file)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lets one process at a time write into a folder: of several ranks one writes, the others wait and find it done."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ImportError, OSError):  # no locks here: writing stays safe, it is only done twice
            import fcntl

            fcntl.flock(stack.enter_context(_opened(str(folder))), fcntl.LOCK_EX)
        yield
