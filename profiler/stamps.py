"""Stamps a training loop: when each batch was asked for and had. Computes nothing, judges nothing, touches no batch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from .clocks import ThreadClock, ThreadClocks
from .events import Kind, Row

BatchT = TypeVar("BatchT")
Span = tuple[str, int, int, int]

STEPS_PER_FLUSH = 1000
"""Rows are handed on once in so many steps: packing one costs half a microsecond, and a crash loses no more than these."""

_DEVICE_KINDS = {"busy": Kind.BUSY, "copy": Kind.COPY}


class Rows(Protocol):
    """Takes rows one by one."""

    def append(self, row: tuple[int, ...], /) -> object: ...


class Watch:
    """Records the spans of one loop. Two readings of the clocks and one append a step; the rest happens once in a thousand.

    write: takes rows, in the order in which they were recorded; what it raises ends the loop.
    drain: device spans that are finished, from the model (see `contracts.Model.drain`).
    thread: what the training thread computes and waits for a core; None: not measured.
    loop: which of a script's loaders, as in `events.Row`. rows: takes them one by one, in place of `write`; never flushed.
    """

    def __init__(
        self,
        write: Callable[[Sequence[tuple[int, ...]]], None] = lambda rows: None,
        drain: Callable[[], Sequence[Span]] = lambda: (),
        clock: Callable[[], int] = time.perf_counter_ns,
        thread: ThreadClock | ThreadClocks | None = None,
        loop: int = -1,
        rows: Rows | None = None,
    ) -> None:
        self._write, self._drain, self.clock = write, drain, clock
        self._thread = _nothing if thread is None else thread.read
        self._rows: Any = [] if rows is None else rows
        self._handed_on = rows is not None
        self._loop = loop
        self._epoch = -1
        self.steps = 0
        """Batches delivered so far. This, samples and wait_ns (time in next()) are for the progress line."""
        self.samples = 0
        self.wait_ns = 0
        self.harness_ns = 0
        self.first_iter_ns: int | None = None

    def batches(self, epoch: Iterable[BatchT], size: Callable[[BatchT], int]) -> Iterator[BatchT]:
        """The same batches in the same order, recorded. size: a batch's number of samples."""
        clock, thread = self.clock, self._thread
        number = self.iterating()
        started = clock()
        iterator = iter(epoch)
        self.iterated(number, started)
        while True:
            cpu, runq = thread()
            asked = clock()
            try:
                batch = next(iterator)
            except BaseException as error:
                self.raised(number, asked, clock(), *since(cpu, runq, thread()))
                if isinstance(error, StopIteration):
                    return
                raise
            got = clock()
            spent = since(cpu, runq, thread())
            self.returned(number, asked, got, size(batch), *spent)
            yield batch
            if self.steps % STEPS_PER_FLUSH == 0:
                self.flush()

    def iterating(self) -> int:
        """iter() is about to be called. Returns the number of the epoch that begins."""
        self._epoch += 1
        if self.first_iter_ns is None:
            self.first_iter_ns = self.clock()
        return self._epoch

    def iterated(self, epoch: int, started_ns: int) -> None:
        """iter() has returned."""
        self._rows.append((Kind.ITER, epoch, self.steps, started_ns, self.clock(), 0, -1, -1, self._loop))

    def returned(self, epoch: int, asked_ns: int, got_ns: int, n_samples: int, cpu_ns: int, runq_ns: int) -> None:
        """A next() that returned a batch."""
        self._rows.append((Kind.WAIT, epoch, self.steps, asked_ns, got_ns, n_samples, cpu_ns, runq_ns, self._loop))
        self.steps += 1
        self.samples += n_samples
        self.wait_ns += got_ns - asked_ns

    def raised(self, epoch: int, asked_ns: int, ended_ns: int, cpu_ns: int, runq_ns: int) -> None:
        """A next() that raised."""
        self._rows.append((Kind.END, epoch, self.steps, asked_ns, ended_ns, 0, cpu_ns, runq_ns, self._loop))

    def note(self, kind: Kind, step: int, start_ns: int, end_ns: int) -> None:
        """One more span of this epoch. From any thread."""
        self._rows.append((kind, self._epoch, step, start_ns, end_ns, 0, -1, -1, self._loop))

    def sync(self, wait_for_device: Callable[[], None]) -> None:
        """Calls it and records that the host stood still for the device."""
        started = self.clock()
        wait_for_device()
        self.note(Kind.SYNC, self.steps - 1, started, self.clock())

    @contextmanager
    def aside(self) -> Iterator[None]:
        """The profiler's own work, to be cut out of the window."""
        started = self.clock()
        try:
            yield
        finally:
            ended = self.clock()
            self._rows.append((Kind.HARNESS, max(0, self._epoch), self.steps, started, ended, 0, -1, -1, -1))
            self.harness_ns += 0 if self.first_iter_ns is None else ended - started

    @property
    def epochs(self) -> int:
        """Begun so far."""
        return self._epoch + 1

    @property
    def elapsed_ns(self) -> int:
        """Since the first iter(), own work left out."""
        return 0 if self.first_iter_ns is None else self.clock() - self.first_iter_ns - self.harness_ns

    def flush(self) -> None:
        """Hands on what has been recorded, and what the device has finished."""
        if self._handed_on:
            return
        rows, self._rows = self._rows, []
        spans = self._drain()
        rows += [
            (_DEVICE_KINDS[what], self._epoch, step, start, end, 0, -1, -1, self._loop) for what, step, start, end in spans
        ]
        if rows:
            self._write(rows)


def _nothing() -> tuple[int, int]:
    return -1, -1


def since(cpu: int, runq: int, now: tuple[int, int]) -> tuple[int, int]:
    """CPU time and run-queue delay since a reading; -1: not measured."""
    return -1 if cpu < 0 else now[0] - cpu, -1 if runq < 0 else now[1] - runq


def us_per_step(steps: int = 2000, repeats: int = 5) -> float:
    """Direct cost of recording one empty step on this machine, in microseconds: best of `repeats`, the bare loop taken off.

    Rows go where they always go but for the disk: they are packed, and then dropped.
    """
    from .runfile import pack

    batch = range(1)

    def once(wrap: bool) -> int:
        watch = Watch(lambda rows: pack(Row, rows) and None, thread=ThreadClock())
        loop: Iterable[range] = watch.batches([batch] * steps, len) if wrap else iter([batch] * steps)
        started = time.perf_counter_ns()
        for _ in loop:
            pass
        watch.flush()
        return time.perf_counter_ns() - started

    bare, watched = (min(once(wrap) for _ in range(repeats)) for wrap in (False, True))
    return max(0.0, (watched - bare) / steps / 1e3)
