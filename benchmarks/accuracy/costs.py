"""What one sample costs under a cause. Shared by the DataLoader of cells.py and the source of cells_source.py."""

from __future__ import annotations

import fcntl
import hashlib
import time
from pathlib import Path

from loaders.sources.synthetic import Wait, compute

SLOW_EVERY, SLOW_FACTOR = 50, 30
"""slow_sample: one sample of so many costs so many times the others."""
_LARGE, _SMALL = bytes(1 << 17), bytes(1 << 12)
_LAST_NS = 500_000


class Cost:
    """One sample: first its reading, then its decoding. Picklable: worker processes get a copy.

    io_ns: how long a read waits. cpu_ns: thread CPU time of a decode.
    """

    def __init__(self, cause: str, io_ns: int, cpu_ns: int, head: Path | None = None) -> None:
        self._cause, self._io_ns, self._cpu_ns, self._head = cause, io_ns, cpu_ns, head
        self._wait = Wait()

    def read(self, index: int) -> None:
        slow = self._cause == "slow_sample" and index % SLOW_EVERY == 0
        io_ns = self._io_ns * (SLOW_FACTOR if slow else 1)
        if self._head is not None:
            with self._head.open() as head:  # a file of its own each time: such locks exclude threads and processes alike
                fcntl.flock(head, fcntl.LOCK_EX)
                self._wait(io_ns)
        elif io_ns:
            self._wait(io_ns)

    def decode(self) -> None:
        if self._cpu_ns:
            (compute if self._cause == "decode_python" else compute_unlocked)(self._cpu_ns)


def compute_unlocked(cost_ns: int) -> None:
    """Burns this much CPU time outside the interpreter lock, which is needed for microseconds between two hashes."""
    end_ns = time.thread_time_ns() + cost_ns
    while (left_ns := end_ns - time.thread_time_ns()) > 0:
        hashlib.sha256(_LARGE if left_ns > _LAST_NS else _SMALL).digest()
