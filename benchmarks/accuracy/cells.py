"""A DataLoader as its user would write it, with one cause of slowness built in. It never calls the probe."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch.utils.data import DataLoader, Dataset

from benchmarks.accuracy.costs import Cost
from loaders.sources.synthetic import Wait, compute

Cause = Literal[
    "none",
    "wait",
    "one_head",
    "decode_python",
    "decode_unlocked",
    "collate",
    "tensor_copy",
    "numpy_pipe",
    "slow_start",
    "slow_sample",
    "sampler",
    "mixed",
]
ELSEWHERE = ("collate", "sampler")
"""Causes whose io and cpu are not an item's but a batch's."""


def build(
    source: Any,
    probe: Any,
    on_error: str,
    *,
    cause: Cause = "none",
    num_workers: int = 0,
    context: Literal["fork", "spawn"] = "fork",
    io_ns: int = 0,
    cpu_ns: int = 0,
    start_ns: int = 0,
) -> Cells:
    """io, cpu: what a sample waits and computes; with collate and sampler what a batch does. start: of each worker."""
    if num_workers < 0:
        raise ValueError(f"num_workers={num_workers}: must not be negative")
    return Cells(source, cause, num_workers, context if num_workers else None, io_ns, cpu_ns, start_ns)


class Batch(NamedTuple):
    index: Any
    x: Any
    y: Any


class Cells:
    def __init__(
        self,
        source: Any,
        cause: Cause,
        num_workers: int,
        context: str | None,
        io_ns: int,
        cpu_ns: int,
        start_ns: int,
    ) -> None:
        self.n_workers, self.prefetch_batches = num_workers, 2 * num_workers
        self._context, self._start_ns = context, start_ns
        self._head = _temporary_file() if cause == "one_head" else None
        item_costs = (0, 0) if cause in ELSEWHERE else (io_ns, cpu_ns)
        self._items = Items(source, Cost(cause, *item_costs, self._head), in_numpy=cause == "numpy_pipe")
        self._pause_ns = io_ns if cause == "sampler" else 0
        self._collate = Listed() if cause == "numpy_pipe" else Stacked(cpu_ns if cause == "collate" else 0)

    def epoch(self, batches: Sequence[Sequence[int]]) -> DataLoader[Batch]:
        return DataLoader(
            self._items,
            batch_sampler=Batches(batches, self._pause_ns),
            collate_fn=self._collate,
            num_workers=self.n_workers,
            multiprocessing_context=self._context,
            worker_init_fn=Start(self._start_ns) if self.n_workers else None,
        )

    def close(self) -> None:
        if self._head is not None:
            self._head.unlink(missing_ok=True)


def _temporary_file() -> Path:
    file, path = tempfile.mkstemp(prefix="one-head-")
    os.close(file)
    return Path(path)


class Items(Dataset[Any]):
    def __init__(self, source: Any, cost: Cost, in_numpy: bool) -> None:
        self._n, self._label, self._cost = len(source), source.label, cost
        sample = torch.zeros(source.sample_shape, dtype=torch.uint8)
        self._sample = sample.numpy() if in_numpy else sample

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, index: int) -> tuple[int, Any, int]:
        self._cost.read(index)
        sample = index, self._sample[:], self._label(index)  # a view: the pickler would send one object twice only once
        self._cost.decode()
        return sample


class Batches:
    """pause_ns: what choosing one batch takes, as where labels are balanced by looking something up."""

    def __init__(self, batches: Sequence[Sequence[int]], pause_ns: int) -> None:
        self._batches, self._pause_ns = batches, pause_ns

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[Sequence[int]]:
        wait = Wait()
        for indices in self._batches:
            if self._pause_ns:
                wait(self._pause_ns)
            yield indices


class Stacked:
    """Tensors, copied together; computes for cpu_ns in Python besides."""

    def __init__(self, cpu_ns: int) -> None:
        self._cpu_ns = cpu_ns

    def __call__(self, samples: Sequence[tuple[int, Any, int]]) -> Batch:
        if self._cpu_ns:
            compute(self._cpu_ns)
        index, x, y = zip(*samples, strict=True)
        return Batch(torch.tensor(index), torch.stack(x), torch.tensor(y))


class Listed:
    """The samples as they are, in a list: a worker pickles them through its pipe."""

    def __call__(self, samples: Sequence[tuple[int, Any, int]]) -> Batch:
        index, x, y = zip(*samples, strict=True)
        return Batch(torch.tensor(index), list(x), torch.tensor(y))


class Start:
    """What a worker does before its first item, as where it opens an archive or imports a framework."""

    def __init__(self, start_ns: int) -> None:
        self._start_ns = start_ns

    def __call__(self, worker: int) -> None:
        time.sleep(self._start_ns / 1e9)
