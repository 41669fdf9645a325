"""Background threads make batches ahead of the model, into a bounded buffer."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from ._batch import MOST_BATCHES, MOST_THREADS, Batch, OnError, Probe, Source, collated, make_samples


def build(source: Source, probe: Probe, on_error: OnError, *, num_threads: int = 2, buffer_batches: int = 4) -> Threads:
    """num_threads make whole batches, each its own. buffer_batches: made or in the making ahead of the model; fewer than
    num_threads leave threads idle. Threads share the interpreter: what computes in Python takes turns, what waits does not.
    """
    for option, value, most in (("num_threads", num_threads, MOST_THREADS), ("buffer_batches", buffer_batches, MOST_BATCHES)):
        if not 1 <= value <= most:
            raise ValueError(f"{option}={value}: must be 1 to {most:,}; the loader without threads and buffer is naive")
    return Threads(source, probe, on_error, num_threads, buffer_batches)


class Threads:
    """The threads start with the first batch and serve every epoch."""

    def __init__(self, source: Source, probe: Probe, on_error: OnError, num_threads: int, buffer_batches: int) -> None:
        self._source, self._probe, self._on_error = source, probe, on_error
        self.n_workers, self.prefetch_batches = num_threads, buffer_batches
        self._pool = ThreadPoolExecutor(num_threads, thread_name_prefix="stallscope-loader")

    def epoch(self, batches: Sequence[Sequence[int]]) -> Iterator[Batch]:
        """In order: a batch that is ready waits for the one before it. An error is raised where its batch would have come."""
        ahead: deque[Future[Batch]] = deque()
        coming = iter(batches)
        try:
            ahead.extend(self._begun(coming, self.prefetch_batches))
            while ahead:
                batch = ahead.popleft().result()
                ahead.extend(self._begun(coming, 1))
                yield batch
        finally:
            for future in ahead:
                future.cancel()

    def close(self) -> None:
        """Does not wait for a read that hangs."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _begun(self, coming: Iterator[Sequence[int]], most: int) -> list[Future[Batch]]:
        """The next batches, so many at most, given to the threads."""
        return [self._pool.submit(self._make, indices) for indices in itertools.islice(coming, most)]

    def _make(self, indices: Sequence[int]) -> Batch:
        batch = collated(make_samples(self._source, indices, self._probe, self._on_error))
        self._probe.end()
        return batch
