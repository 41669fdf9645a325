"""The waist: what was measured, and nothing that was computed from it. Recording ends here; every report begins here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .events import Count, Item, Kind, Made, Row, Started
from .hot_lines import Stack

SCHEMA = 1


@dataclass(frozen=True)
class Outcome:
    """What is only known when the loop has ended."""

    complete: bool
    """The loop ended by itself and everything recorded was written."""
    stopped_by: str | None = None
    """What ended it otherwise, in words: the signal or the error."""
    loss: tuple[float | None, float | None] | None = None
    """Mean training loss over the first and over the last (at most ten) steps; an entry is null if it is not a number."""
    distinct_samples: int | None = None
    """Different samples delivered in the epoch that delivered most."""
    cpu_cores: float | None = None
    """CPU that this process's tree used between first iter() and end, in cores: 1.5 is one and a half of them all the time."""
    foreign_cpu_share: float | None = None
    """CPU that processes outside this one's tree took of the usable cores, 0..1, between first iter() and end."""
    us_per_step_main: float | None = None
    """Direct cost of recording one empty step, calibrated on this machine right after the run."""
    us_per_batch_maker: float | None = None
    """Direct cost of recording the making of one batch, in the thread or process that makes it; calibrated likewise."""
    steps: int | None = None
    """Delivered, those that were not kept included; None: an older run."""
    samples: int | None = None
    epochs: int | None = None
    """Begun."""
    stacks_problem: str | None = None
    """Why the program's stacks could not be looked at."""
    loops: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Of a script's loops by number: steps, samples, epochs, as above."""
    worst_steps: Sequence[Sequence[int]] = ()
    """The longest waits of the whole run, as rows of the spans: kept also where their surroundings were not."""
    faults: Mapping[str, int] = field(default_factory=dict)
    """What went wrong in the background, by name: how often. Nothing of it was raised."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """How many rows each events file holds: fewer mean that it was cut short."""


@dataclass(frozen=True)
class Header:
    """Everything about a run but its events. Only JSON values, so that it can be read on any machine, a year later."""

    name: str
    command: Sequence[str]
    """The command line that made the run."""
    scenario: Mapping[str, Any]
    """Effective settings, every default filled in, durations and sizes in the units of their suffix."""
    environment: Mapping[str, Any]
    identity: Mapping[str, Any]
    """global_rank, local_rank, world_size, host."""
    device: Mapping[str, Any]
    """kind, name, simulated, method: what computes, and how its busy time is known."""
    source: Mapping[str, Any]
    """What the source says of itself: medium, emulated, cold, the disk beneath with its measured speed."""
    loader: Mapping[str, Any]
    """n_workers (0: the consumer makes the batches) and prefetch_batches (batches that may be ahead of the consumer)."""
    clock: Mapping[str, int]
    """One instant on both clocks, `perf_counter_ns` and `time_ns`: turns recorded times into dates."""
    process_start_ns: int | None
    """When the trainer process started, on the clock of the events."""
    resident_shares: Sequence[float | None] = field(default_factory=list)
    """Per epoch: the share of the source's bytes in the page cache right before its first batch. null: cannot be told."""
    resident_shares_after: Sequence[float | None] = field(default_factory=list)
    """The same right after its last batch."""
    loops: Sequence[Mapping[str, Any]] = field(default_factory=list)
    """Of a traced script, each loader that it iterated: `loop` as in `events.Row`, where in the script, and its settings."""
    asked_loop: str | None = None
    """The name of the loop that reports are about; null: the busiest one."""
    outcome: Outcome | None = None
    """null while the run goes on, or if it was killed."""


Event = type[Row] | type[Made] | type[Item] | type[Started] | type[Count]
Table = NDArray[np.int64]
"""Shape (n, number of fields)."""


def table(kind: Event, rows: Sequence[Sequence[int]] | Table) -> Table:
    """Rows of one length as int64; fields that they lack, since they are older than these, were not measured: -1."""
    given = np.asarray(rows, dtype=np.int64)
    given = given.reshape(-1, given.shape[1] if given.ndim == 2 else len(kind._fields))
    if given.shape[1] == len(kind._fields):
        return given
    whole = np.full((len(given), len(kind._fields)), -1, dtype=np.int64)
    whole[:, : given.shape[1]] = given
    return whole


def columns(kind: Event, rows: Sequence[Sequence[int]] | Table = ()) -> dict[str, NDArray[np.int64]]:
    """Rows as one int64 array a field."""
    whole = table(kind, rows)
    return {name: whole[:, i] for i, name in enumerate(kind._fields)}


@dataclass(frozen=True)
class Run:
    """One process's measured run. Times are in ns. Columns are those of `events.Row` (spans), `Made`, `Item`, `Started` and
    `Count`."""

    header: Header
    spans: Mapping[str, NDArray[np.int64]] = field(default_factory=lambda: columns(Row))
    made: Mapping[str, NDArray[np.int64]] = field(default_factory=lambda: columns(Made))
    items: Mapping[str, NDArray[np.int64]] = field(default_factory=lambda: columns(Item))
    started: Mapping[str, NDArray[np.int64]] = field(default_factory=lambda: columns(Started))
    counts: Mapping[str, NDArray[np.int64]] = field(default_factory=lambda: columns(Count))
    stacks: Sequence[Stack] = ()
    """What the program was at when it was looked at; empty: it was not."""
    truncated: bool = False
    """The files end in the middle of a record: what stood before was kept."""

    @property
    def complete(self) -> bool:
        return self.header.outcome is not None and self.header.outcome.complete and not self.truncated

    def of(self, kind: Kind) -> dict[str, NDArray[np.int64]]:
        """The spans of one kind, in the order in which they were recorded."""
        chosen = self.spans["kind"] == kind
        return {name: column[chosen] for name, column in self.spans.items()}
