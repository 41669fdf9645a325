"""What every loader yields, and how one batch's samples are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

MOST_THREADS = 1024
"""Each has a stack, and a pool of them is made at once: ten million would take the machine's memory."""
MOST_BATCHES = 100_000
"""That may be ahead of the model."""
OnError = Literal["fail", "skip"]
Sample = tuple[int, NDArray[np.uint8], int]
"""Index, decoded sample, label."""


class Source(Protocol):
    """What a loader needs of a source."""

    def __len__(self) -> int: ...
    def read(self, index: int) -> bytes: ...
    def decode(self, encoded: bytes) -> NDArray[np.uint8]: ...
    def label(self, index: int) -> int: ...
    def name(self, index: int) -> str: ...


class Probe(Protocol):
    """Called where a batch is made, so that its cost can be recorded there."""

    def begin(self) -> None: ...
    def item(self, index: int) -> None: ...
    def items(self, n_items: int, n_skipped: int, bytes_asked: int) -> None: ...
    def end(self) -> None: ...


class Batch(NamedTuple):
    """Fields as in a hand-written loop: which samples, the samples, their labels. First axis = sample."""

    index: Any
    """int64, shape (n,)."""
    x: Any
    """uint8, shape (n, *sample_shape)."""
    y: Any
    """int64, shape (n,)."""


class UnreadableSample(ValueError):
    """A sample that cannot be read or decoded. The message names it and says what can be done."""

    user_can_mend = True


def make_samples(source: Source, indices: Sequence[int], probe: Probe, on_error: OnError) -> list[Sample]:
    """Reads and decodes one batch's samples, in order. A sample that fails is left out and counted, or ends the run."""
    probe.begin()
    samples: list[Sample] = []
    bytes_asked = 0
    for index in indices:
        probe.item(index)
        try:
            encoded = source.read(index)
            bytes_asked += len(encoded)
            samples.append((index, source.decode(encoded), source.label(index)))
        except (OSError, ValueError) as error:
            if on_error == "fail":
                raise UnreadableSample(f"sample {source.name(index)} cannot be used: {error}. {WAY_OUT}") from error
    if not samples:
        raise UnreadableSample(
            f"none of the {len(indices)} samples of a batch can be used; the first is {source.name(indices[0])}"
        )
    probe.items(len(samples), len(indices) - len(samples), bytes_asked)
    return samples


def collated(samples: Sequence[Sample]) -> Batch:
    """One batch of numpy arrays."""
    index, x, y = zip(*samples, strict=True)
    return Batch(np.array(index), np.stack(x), np.array(y))


WAY_OUT = "Mend or remove it, or write `on_error: skip` to leave such samples out and count them"
