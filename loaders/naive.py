"""Reads, decodes and collates in the training thread: the model waits for every batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ._batch import Batch, OnError, Probe, Source, collated, make_samples


def build(source: Source, probe: Probe, on_error: OnError) -> Naive:
    """The loop that everybody writes first. It has no options: nothing happens ahead of time."""
    return Naive(source, probe, on_error)


class Naive:
    n_workers = 0
    prefetch_batches = 0

    def __init__(self, source: Source, probe: Probe, on_error: OnError) -> None:
        self._source, self._probe, self._on_error = source, probe, on_error

    def epoch(self, batches: Sequence[Sequence[int]]) -> Iterator[Batch]:
        for indices in batches:
            batch = collated(make_samples(self._source, indices, self._probe, self._on_error))
            self._probe.end()
            yield batch

    def close(self) -> None:
        """Nothing to end."""
