"""A training loop of somebody else's, recorded by us: the one place where benchmarks do it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from profiler.runfile import RunWriter
from profiler.watch import Watch

BatchT = TypeVar("BatchT")


@contextmanager
def recorded(loader: Iterable[BatchT], folder: Path) -> Iterator[Iterable[BatchT]]:
    """The loader's batches, recorded into `folder`, which must be empty or not exist. Batches must have a len()."""
    writer = RunWriter(folder)
    stamps = Watch(writer.write)
    try:
        # Here goes: yield watched(loader, Probe(writer.making), stamps)
        yield stamps.batches(loader, len)
    finally:
        stamps.flush()
        writer.abandon()
