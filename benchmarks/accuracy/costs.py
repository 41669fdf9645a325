"""What one sample costs under a cause. Shared by the DataLoader of cells.py and the source of cells_source.py."""

from __future__ import annotations

import fcntl
import hashlib
import threading
import time
from pathlib import Path

from loaders.sources.synthetic import Wait, compute

SLOW_EVERY, SLOW_FACTOR = 50, 30
"""slow_sample: one sample of so many costs so many times the others."""
_BUFFER = bytes(1 << 18)


class Cost:
    """One sample: first its reading, then its decoding. Picklable: worker processes get a copy.

    io_ns: how long a read waits. cpu_ns: thread CPU time of a sample: waking up from its read costs 0.1 ms of that, which is
    taken off the decode, so that what is injected is what is declared.
    """

    def __init__(self, cause: str, io_ns: int, cpu_ns: int, head: Path | None = None) -> None:
        self._cause, self._io_ns, self._cpu_ns, self._head = cause, io_ns, cpu_ns, head
        self._wait, self._began = Wait(), _Began()
        self._compute = compute if cause == "decode_python" else ComputeUnlocked()

    def read(self, index: int) -> None:
        self._began.cpu_ns = time.thread_time_ns()
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
            began_ns, self._began.cpu_ns = self._began.cpu_ns, None
            spent_ns = 0 if began_ns is None else time.thread_time_ns() - began_ns
            self._compute(max(0, self._cpu_ns - spent_ns))


class _Began(threading.local):
    """Of each thread: its CPU time when it began to read the sample at hand; None: nothing has been read for it."""

    cpu_ns: int | None = None

    def __reduce__(self) -> tuple[type[_Began], tuple[()]]:
        return _Began, ()


class ComputeUnlocked:
    """Burns CPU time outside the interpreter lock, exact on average: what one call took too long, by a part of a hash, is
    taken off the thread's next. Smaller hashes would be exact at once, and fight for the lock between them."""

    def __init__(self) -> None:
        self._thread = threading.local()

    def __call__(self, cost_ns: int) -> None:
        now_ns = time.thread_time_ns()
        end_ns = now_ns + cost_ns - getattr(self._thread, "debt_ns", 0)
        while now_ns < end_ns:
            hashlib.sha256(_BUFFER).digest()
            now_ns = time.thread_time_ns()
        self._thread.debt_ns = now_ns - end_ns

    def __reduce__(self) -> tuple[type[ComputeUnlocked], tuple[()]]:
        return ComputeUnlocked, ()
