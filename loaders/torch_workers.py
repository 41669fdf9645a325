"""torch DataLoader: worker processes read, decode and collate ahead of the model."""

from __future__ import annotations

import multiprocessing
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from ._batch import Batch, OnError, Probe, Sample, Source, make_samples

if TYPE_CHECKING:
    from torch.utils.data import DataLoader


def build(
    source: Source,
    probe: Probe,
    on_error: OnError,
    *,
    num_workers: int = 0,
    prefetch_factor: int | None = None,
    pin_memory: bool = False,
    persistent_workers: bool = False,
    multiprocessing_context: Literal["fork", "spawn", "forkserver"] | None = None,
    in_order: bool = True,
    timeout_ns: int = 0,
) -> TorchWorkers:
    """DataLoader's own options under their own names; what they refuse is refused in its words. num_workers: 0 makes batches
    in the training process: what concerns workers then has no effect, so that a comparison can go down to 0.
    """
    if prefetch_factor == 0:  # DataLoader notices only when workers are to start
        raise ValueError("prefetch_factor=0: must be at least 1 batch a worker; leave it out for DataLoader's own 2")
    if num_workers and _forks(multiprocessing_context) and sys.modules.get("tensorflow"):
        raise ValueError(
            f"num_workers={num_workers}: would fork a process in which tensorflow is loaded, whose threads do not survive it: "
            "use multiprocessing_context: spawn, num_workers: 0, or a model without tensorflow"
        )
    from torch.utils.data import DataLoader, default_collate

    batches = _Batches()
    of_workers: dict[str, Any] = {
        "prefetch_factor": prefetch_factor,
        "persistent_workers": persistent_workers,
        "multiprocessing_context": multiprocessing_context,
        "timeout": timeout_ns / 1e9,
    }
    with warnings.catch_warnings():
        # It warns of more workers than cores, which is right only for workers that compute: what they do will be measured.
        warnings.filterwarnings("ignore", message="This DataLoader will create")
        loader = DataLoader(
            _Samples(source, probe, on_error),
            batch_sampler=batches,
            collate_fn=_Collate(probe, default_collate),
            num_workers=num_workers,
            pin_memory=pin_memory,
            in_order=in_order,
            **(of_workers if num_workers else {}),
        )
    return TorchWorkers(loader, batches)


def _forks(context: str | None) -> bool:
    """Whether workers start as copies of this process."""
    return (context or multiprocessing.get_start_method()) == "fork"


class TorchWorkers:
    def __init__(self, loader: DataLoader[Batch], batches: _Batches) -> None:
        self._loader: DataLoader[Batch] | None = loader
        self._batches = batches
        self.n_workers = loader.num_workers
        self.prefetch_batches = loader.num_workers * (loader.prefetch_factor or 0)

    def epoch(self, batches: Sequence[Sequence[int]]) -> DataLoader[Batch]:
        """The DataLoader itself: its iter() is where workers start, and must be seen to happen."""
        assert self._loader is not None, "closed"
        self._batches.of_epoch = batches
        return self._loader

    def close(self) -> None:
        self._loader = None  # persistent workers end with it


class _Batches:
    """A batch sampler that is told its batches: one DataLoader, and so one set of persistent workers, serves every epoch."""

    of_epoch: Sequence[Sequence[int]] = ()

    def __iter__(self) -> Iterator[Sequence[int]]:
        return iter(self.of_epoch)

    def __len__(self) -> int:
        return len(self.of_epoch)


class _Samples:
    """A map-style dataset. `__getitems__` is DataLoader's own hook for a batch at once."""

    def __init__(self, source: Source, probe: Probe, on_error: OnError) -> None:
        self._source, self._probe, self._on_error = source, probe, on_error

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, index: int) -> Sample:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Sample]:
        return make_samples(self._source, indices, self._probe, self._on_error)


class _Collate:
    """DataLoader's own collating, then the mark that the batch is made."""

    def __init__(self, probe: Probe, collate: Callable[[list[Sample]], list[Any]]) -> None:
        self._probe, self._collate = probe, collate

    def __call__(self, samples: list[Sample]) -> Batch:
        columns = self._collate(samples)
        batch = Batch(*columns)
        self._probe.end()
        return batch
