"""A training loop of somebody else's, recorded by us: the one place where benchmarks do it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from profiler.clocks import ThreadClock
from profiler.instrument import watched
from profiler.probe import Probe
from profiler.runfile import RunWriter
from profiler.sampler import Samplers
from profiler.stamps import Watch

BatchT = TypeVar("BatchT")


@contextmanager
def recorded(loader: Iterable[BatchT], folder: Path) -> Iterator[Iterable[BatchT]]:
    """The loader's batches, recorded into `folder`, which must be empty or not exist. Batches must have a len()."""
    writer = RunWriter(folder)
    stamps = Watch(writer.write, thread=ThreadClock())
    try:
        with Samplers(os.getpid(), writer.write_counts):
            yield stamps.batches(watched(loader, Probe(writer.making), stamps), len)
    finally:
        stamps.flush()
        writer.abandon()
