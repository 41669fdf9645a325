"""What a part must be. Structural: a part needs no import of ours, only these attributes and these promises.

A part is a module with a docstring, whose first line `list` prints, and one function `build`. The parameters before the
`*` are handed in by the profiler; the keyword-only ones, with their types and defaults, are the part's options:

    source:  build(cache_dir, *, ...)                                   -> Source
    loader:  build(source, probe, on_error, *, ...)                     -> Loader
    model:   build(sample_shape, n_classes, device, seed, *, ...)       -> Model

An option whose name ends in `_ns`, `_bytes` or `_bytes_per_s` is written in a scenario without that suffix and with a unit
(`seek: 8 ms`). `build` raises ValueError for a value or a combination that it cannot take, naming the option.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .events import Reading
from .result import Diagnosis, Finding, Result
from .run import Run


class Batch(Protocol):
    """What a loader yields. The fields are numpy arrays or tensors of the loader's framework, first axis = sample."""

    @property
    def index(self) -> Any:
        """int64, shape (n,): which samples these are."""

    @property
    def x(self) -> Any:
        """Samples, shape (n, *sample_shape), dtype uint8."""

    @property
    def y(self) -> Any:
        """Labels, int64, shape (n,)."""


class Source(Protocol):
    """A place samples come from. Picklable, thread-safe, deterministic: `decode(read(i))` is the same in every process.

    A source may also have `jpeg_paths: list[str]`: sample i is the JPEG file jpeg_paths[i], which anyone may read and decode in
    place of `read` and `decode`, with the same result but for the resampling. Where reading must go through the source, as with
    an emulated device, there is no such attribute: ask with getattr(source, "jpeg_paths", None).

    Likewise `resident_share() -> float | None`: what `start_epoch` returns, at any time and without changing anything.
    """

    sample_shape: tuple[int, ...]
    n_classes: int

    def __len__(self) -> int: ...

    def read(self, index: int) -> bytes:
        """The encoded sample, from where it lies. May wait. Raises OSError."""

    def decode(self, encoded: bytes) -> NDArray[np.uint8]:
        """The sample, shape `sample_shape`. Computes. Raises OSError or ValueError for bytes that are no sample."""

    def label(self, index: int) -> int:
        """The class, 0..n_classes-1."""

    def name(self, index: int) -> str:
        """What a message calls this sample: its file, or its number."""

    def prepare(self, progress: Callable[[int, int], None]) -> None:
        """Makes the samples ready, before anything is measured. May take long: calls progress(done, total). Raises OSError."""

    def start_epoch(self) -> float | None:
        """Right before an epoch, outside the window. Restores the promised state (evicts, if cold) and returns the share of
        the source's bytes that lies in the page cache now, 0..1; None: cannot be told, or there is no page cache beneath."""

    def describe(self) -> Mapping[str, Any]:
        """At least `medium` (memory, disk, synthetic, emulated), `emulated` (bool), `cold` (bool or None) and `label`, a
        short noun phrase; a disk adds `disk`: what it is and what was measured of it. JSON values only."""


class Probe(Protocol):
    """Handed to a loader, which calls it in whatever thread or process makes a batch. Picklable; costs a few microseconds."""

    def begin(self) -> None:
        """The first item is about to be read."""

    def item(self, index: int) -> None:
        """This sample comes next. May be left out; then no sample is known by its number."""

    def items(self, n_items: int, n_skipped: int, bytes_asked: int) -> None:
        """All items are read and decoded; collating begins."""

    def end(self) -> None:
        """The batch is made."""


class Loader(Protocol):
    """A way of feeding a model. All loaders yield the same batches in the same order."""

    n_workers: int
    """Threads or processes that make batches beside the consumer. 0: the consumer makes them itself, inside next()."""
    prefetch_batches: int
    """How many batches may be made or in the making ahead of the consumer."""

    def epoch(self, batches: Sequence[Sequence[int]]) -> Iterable[Batch]:
        """One pass over these index batches. A fresh iterable each time."""

    def close(self) -> None:
        """Ends threads and processes. May be called twice."""


class Model(Protocol):
    """A consumer of batches, and the witness of when its device was busy."""

    device: Mapping[str, Any]
    """kind (cuda, cpu, mps, simulated), name, simulated (bool), method (events, clock, model_step, or None: not measured)."""

    def step(self, batch: Batch) -> None:
        """One training step. On an asynchronous device returns when the work is launched."""

    def sync(self) -> None:
        """Waits until the device has done all that was launched."""

    def drain(self) -> Sequence[tuple[str, int, int, int]]:
        """Device spans known since the last call: ("busy" | "copy", step, start_ns, end_ns). Waits for nothing. Hardware knows
        a span when it is over, arithmetic before."""

    def busy_ns(self) -> int | None:
        """Device time used so far, for the progress line; None: not known before the end."""

    def losses(self) -> tuple[float, float] | None:
        """Mean loss over the first and the last (at most ten) steps; None where nothing is learnt. May wait for the device."""


class Rule(Protocol):
    """profiler/rules/<name>.py: `judge` recognises one kind of finding. Abstains (None) when an input was not measured."""

    def judge(self, result: Result) -> Finding | None: ...


class Sampler(Protocol):
    """profiler/samplers/<name>.py: `build(pid)` makes one that reads what the system counts of a process and its children."""

    def read(self) -> Iterable[Reading]:
        """What can be told now; what cannot has no row. Called on a background thread, which counts what it raises. Takes no
        lock and prints nothing: the training thread may fork meanwhile."""


class Report(Protocol):
    """profiler/reports/<format>.py: `render` draws what was concluded, and decides nothing."""

    def render(self, run: Run, result: Result, diagnosis: Diagnosis) -> str | bytes: ...
