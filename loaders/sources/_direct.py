"""Reading files past the page cache, with O_DIRECT."""

from __future__ import annotations

import errno
import mmap
import os
from pathlib import Path

from . import _disk

_ALIGNED_BYTES = 4096
"""No disk asks for more. Buffer, offset and length must be multiples of its block size."""


def read(name: str) -> bytes:
    file = os.open(name, os.O_RDONLY | os.O_DIRECT)
    try:
        n_bytes = os.fstat(file).st_size
        if not n_bytes:
            return b""
        room = -(-n_bytes // _ALIGNED_BYTES) * _ALIGNED_BYTES
        with mmap.mmap(-1, room) as buffer:  # begins at a page, which is aligned
            done = 0
            while done < n_bytes:
                with memoryview(buffer) as whole, whole[done:] as rest:
                    n_read = os.preadv(file, [rest], done)
                if not n_read:
                    raise OSError(f"{name}: ends after {done} of {n_bytes} bytes")
                done += n_read
            return buffer[:n_bytes]
    finally:
        os.close(file)


def refuse_unless_possible(folder: Path) -> None:
    """ValueError where the file system that the folder is on, or will be, has no direct reads. Leaves nothing behind."""
    file_system = _disk.identify(folder)["file_system"]
    if not hasattr(os, "O_DIRECT") or file_system in _disk.IN_MEMORY or not _opens(folder):
        where = f"{folder} lies on {file_system or 'a file system'}, which has no direct reads"
        raise ValueError(f"o_direct: {where}: give a path on a disk or leave o_direct out")


def _opens(folder: Path) -> bool:
    """Whether a file without a name opens with O_DIRECT there. Other refusals than EINVAL say nothing of O_DIRECT."""
    there = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
    try:
        os.close(os.open(there, os.O_TMPFILE | os.O_RDWR | os.O_DIRECT, 0o600))
    except OSError as error:
        return error.errno != errno.EINVAL
    return True
