"""Whole files read with O_DIRECT: from the device, past the page cache."""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
from pathlib import Path

BLOCK_BYTES = 4096
"""Address and length of a direct read are multiples of the device's block; no disk of today has a larger one."""


def read(name: str) -> bytes:
    """The file's bytes. Raises OSError, EINVAL where the file system takes no O_DIRECT."""
    file = os.open(name, os.O_RDONLY | os.O_DIRECT)
    try:
        size = os.fstat(file).st_size
        with mmap.mmap(-1, max(1, -(-size // BLOCK_BYTES)) * BLOCK_BYTES) as buffer:  # begins on a page, which is aligned
            done = 0
            while done < size:
                got = os.preadv(file, [memoryview(buffer)[done:]], done)
                if not got:
                    break
                done += got
            return buffer[:done]
    finally:
        os.close(file)


def works(folder: Path) -> bool:
    """Whether a file that is written there could be read so. The folder need not exist yet."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    if not hasattr(os, "O_DIRECT"):
        return False
    with contextlib.suppress(OSError), tempfile.NamedTemporaryFile(dir=there) as file:
        file.write(bytes(BLOCK_BYTES))
        file.flush()
        return read(file.name) == bytes(BLOCK_BYTES)
    return False
