"""Rows on their way from a training process to the one that keeps them: in memory that both share.

The training process writes a row where it lies, without a system call, a lock or a file. Whatever ends it, the rows are there;
and if nobody takes them any more it goes on, and those that find no room are counted.
"""

from __future__ import annotations

import itertools
import mmap
import os
import struct
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from .events import Row

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SLOT = struct.Struct(f"={1 + len(Row._fields)}q")
"""A row's number, counted from 1, and the row."""
SLOTS = 1 << 16
WORD = struct.Struct("=q")
TAKEN_AT, LOST_AT = 0, 8
"""How many rows have been taken, so that their slots are free again; how many were lost."""
HEAD_BYTES = 64
SIZE = HEAD_BYTES + SLOTS * SLOT.size
"""5 MB: a third of a second at the highest rate that a loop of empty steps reaches."""


def create() -> int:
    """A file of this size that has no name, all of its memory set aside: writing to it cannot fail later. Raises OSError."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("stallscope")
    else:
        file, path = tempfile.mkstemp()
        os.unlink(path)
    os.ftruncate(file, SIZE)
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, SIZE)
    return file


class RingWriter:
    """The training process's end. Any thread may append."""

    def __init__(self, file: int) -> None:
        self._map = mmap.mmap(file, SIZE)
        self._numbers = itertools.count()  # the next one is had in one step of the interpreter: no two threads get the same
        self._room_up_to = SLOTS
        self._full_at: int | None = None
        self._lost = 0

    def append(self, row: Sequence[int]) -> None:
        """Half a microsecond."""
        if self._full_at is not None and not self._has_room(self._full_at):
            self._lose()
            return
        self._full_at = None
        number = next(self._numbers)
        if number >= self._room_up_to and not self._has_room(number):
            self._full_at = number
            self._lose()
            return
        SLOT.pack_into(self._map, HEAD_BYTES + number % SLOTS * SLOT.size, number + 1, *row)

    def _has_room(self, number: int) -> bool:
        self._room_up_to = WORD.unpack_from(self._map, TAKEN_AT)[0] + SLOTS
        return number < self._room_up_to

    def _lose(self) -> None:
        self._lost += 1
        WORD.pack_into(self._map, LOST_AT, self._lost)


class RingReader:
    """The other end: takes rows, each once, in order."""

    def __init__(self, file: int) -> None:
        self._map = mmap.mmap(file, SIZE)
        self._taken = self._newest = 0

    @property
    def lost(self) -> int:
        """Rows that found no room."""
        return int(WORD.unpack_from(self._map, LOST_AT)[0])

    def take(self, *, last: bool = False) -> NDArray[np.int64]:
        """Shape (n, fields of Row): what has come since. The newest row may be half written: it is left until the next time;
        last: nobody writes any more."""
        import numpy as np

        whole = np.frombuffer(self._map, dtype=np.int64, offset=HEAD_BYTES).reshape(SLOTS, -1)
        rows = whole[np.flatnonzero(whole[:, 0] > self._taken)]
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        newest = int(rows[-1, 0]) if len(rows) else self._taken
        if not last and newest != self._newest:
            rows = rows[:-1]
        self._newest = newest
        if len(rows):
            self._taken = int(rows[-1, 0])
            WORD.pack_into(self._map, TAKEN_AT, self._taken)
        return rows[:, 1:]

    def close(self) -> None:
        with suppress(BufferError):
            self._map.close()
