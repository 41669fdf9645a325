"""The cells: which causes are injected into which loaders, what the profiler must find there, and the scenario of each."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

BATCH = 8
LOOP_S = 3.0
MIN_STEPS, MOST_STEPS = 60, 800
NONE_STEP_MS = 8.0
WORKERS = (0, 1, 2, 4)
CONTEXTS = ("fork", "spawn")
RATIOS = ((8.0, 2.0), (4.0, 2.0), (2.0, 2.0), (2.0, 4.0), (1.0, 4.0))
"""mixed: milliseconds that a sample waits and computes. What it costs besides, 0.1 to 0.2 ms with caches that are cold after
waiting, counts as computing: the injected cost must be large beside it."""


@dataclass(frozen=True)
class Injected:
    """A cause, and what it must look like."""

    expected: tuple[str, ...]
    """The stage that must be the largest of the wait; any of several. Empty: nothing waits, and the run is healthy."""
    io_ms: float = 0.0
    """Of a sample, with one maker; with `sampler` of a batch."""
    cpu_ms: float = 0.0
    """Of a sample, with one maker; with `collate` of a batch."""
    shared: bool = False
    """More makers share it out: each sample costs so many times more that batches come as far apart. A batch of tensors costs
    its consumer 2 ms besides, whatever is injected, which must stay small."""
    step_share: float = 0.5
    """The device's step as a part of the time that the loader needs for a batch: the rest is waited for."""
    unlike: Mapping[int, str] | None = None
    """Numbers of workers at which it has no meaning, and why."""
    batch_ms: float | None = None
    """What a batch takes, where it does not follow from io and cpu."""
    shape: tuple[int, ...] = (4,)
    in_threads: bool = True
    """Can be injected into a source, for the loaders naive and threads."""


ALONE = "a single reader never waits for the lock: it is `wait`"
NO_WORKER = "there is no worker"
CAUSES: Mapping[str, Injected] = {
    "none": Injected(expected=()),
    "wait": Injected(("fetch",), io_ms=2.0, shared=True),
    "one_head": Injected(("fetch",), io_ms=1.0, unlike={0: ALONE, 1: ALONE}),
    "decode_python": Injected(("decode",), cpu_ms=1.5, shared=True),
    "decode_unlocked": Injected(("decode",), cpu_ms=1.5, shared=True),
    "slow_sample": Injected(("fetch",), io_ms=1.0, shared=True, step_share=0.8),
    "mixed": Injected(("fetch", "decode")),
    "hogs": Injected(("core_shortage",), cpu_ms=1.0),
    "collate": Injected(("collate",), cpu_ms=10.0, shared=True, in_threads=False),
    "tensor_copy": Injected(
        ("collate", "handoff"), unlike={0: NO_WORKER}, batch_ms=30.0, step_share=0.1, shape=(3, 1024, 1024), in_threads=False
    ),
    "numpy_pipe": Injected(
        ("handoff",), unlike={0: NO_WORKER}, batch_ms=14.0, step_share=0.1, shape=(1024, 1024), in_threads=False
    ),
    "slow_start": Injected(("startup",), unlike={0: NO_WORKER}, batch_ms=5.0, step_share=1.0, in_threads=False),
    "sampler": Injected(("sampler",), io_ms=10.0, in_threads=False),
}
START_MS = 1000.0
SLOW_START_EPOCHS, SLOW_START_STEPS = 3, 30


@dataclass(frozen=True)
class Cell:
    cause: str
    loader: str
    """DataLoader (a user's own), or the shipped naive and threads."""
    workers: int
    context: str = ""
    """How worker processes start; empty where there are none."""
    ratio: tuple[float, float] | None = None
    """Of `mixed`."""

    @property
    def name(self) -> str:
        ratio = f" {self.ratio[0]:g}:{self.ratio[1]:g}" if self.ratio else ""
        return " ".join(filter(None, (f"{self.cause}{ratio}", self.loader, str(self.workers), self.context)))

    @property
    def injected(self) -> Injected:
        known = CAUSES[self.cause]
        return replace(known, io_ms=self.ratio[0], cpu_ms=self.ratio[1]) if self.ratio else known

    @property
    def makers(self) -> int:
        return max(1, self.workers)

    @property
    def batch(self) -> int:
        """Samples."""
        return BATCH

    def costs_ms(self, cores: int) -> tuple[float, float]:
        """io and cpu as they are injected."""
        io, cpu = self.injected.io_ms, self.injected.cpu_ms
        return (io * self.makers, cpu * self._at_once(cores)) if self.injected.shared else (io, cpu)

    def _at_once(self, cores: int) -> int:
        """How many makers can compute at the same time."""
        return 1 if self._takes_turns else min(self.makers, cores)

    def expected(self, cores: int) -> tuple[str, ...]:
        """More makers that compute than cores: that they stand in the queue is as true."""
        expected = self.injected.expected
        if self.ratio:
            io, cpu = self.ratio
            expected = ("fetch",) * (io >= cpu) + ("decode",) * (cpu >= io)
        copies = self.cause == "tensor_copy"  # then the consumer computes as well: it maps and frees what was copied
        if (
            (self.injected.cpu_ms or copies)
            and self.workers + copies > cores
            and not self._takes_turns
            and "core_shortage" not in expected
        ):
            expected += ("core_shortage",)
        return expected

    @property
    def _takes_turns(self) -> bool:
        """Whether its makers share an interpreter and compute in it: one at a time."""
        return self.cause == "decode_python" and self.loader == "threads"

    @property
    def work_share(self) -> float | None:
        """fetch / (fetch + decode) of the work, where it is injected in a known ratio."""
        return self.ratio[0] / sum(self.ratio) if self.ratio else None

    def batch_ms(self, cores: int) -> float:
        """How far apart batches come, on quiet cores; of `hogs` among the busy ones."""
        injected = self.injected
        if injected.batch_ms is not None:
            return injected.batch_ms
        per_batch = 1 if self.cause in ("collate", "sampler") else self.batch
        io, cpu = (cost * per_batch for cost in self.costs_ms(cores))
        if self.cause == "slow_sample":
            io *= (49 + 30) / 50
        if self.cause == "hogs":
            return cpu / self.makers * (self.makers + hogs(cores)) / cores
        beside = 1 if self.cause in ("one_head", "sampler") else self.makers
        return max((io + cpu) / beside, cpu / self._at_once(cores))


def hogs(cores: int) -> int:
    """Busy processes beside the cell `hogs`: each core is wanted three times or more."""
    return 2 * cores


def scenario(cell: Cell, cores: int) -> dict[str, Any]:
    """What `profiler run` measures for some seconds. The device takes less time for a batch than the loader, but for `none`."""
    injected = cell.injected
    batch_ms = cell.batch_ms(cores) if injected.expected else NONE_STEP_MS
    step_ms = batch_ms * (injected.step_share if injected.expected else 1.0)
    steps = min(MOST_STEPS, max(MIN_STEPS, math.ceil(1e3 * LOOP_S / max(batch_ms, step_ms))))
    epochs = 1
    if cell.cause == "slow_start":
        steps, epochs = SLOW_START_STEPS, SLOW_START_EPOCHS
    samples = cell.batch * steps
    costs = {option: f"{cost:g} ms" for option, cost in zip(("io", "cpu"), cell.costs_ms(cores), strict=True)}
    cause = "decode_unlocked" if cell.cause == "hogs" else cell.cause
    if cell.loader == "DataLoader":
        source = {
            "kind": "synthetic",
            "samples": samples,
            "shape": list(injected.shape),
            "read": "0 ms",
            "decode": "0 ms",
        }
        start = {"start": f"{START_MS:g} ms"} if cell.cause == "slow_start" else {}
        context = {"context": cell.context} if cell.context else {}
        loader = {"kind": "benchmarks.accuracy.cells", "cause": cause, "num_workers": cell.workers, **context, **costs, **start}
    else:
        source = {"kind": "benchmarks.accuracy.cells_source", "cause": cause, "samples": samples, **costs}
        loader = {"kind": cell.loader} | ({"num_threads": cell.workers} if cell.loader == "threads" else {})
    model = {"kind": "simulated", "step": f"{step_ms:g} ms"}
    return {"source": source, "loader": loader, "model": model, "batch_size": cell.batch, "epochs": epochs}


def _everywhere() -> list[Cell]:
    cells = []
    for cause in CAUSES:
        ratios = RATIOS if cause == "mixed" else (None,)
        for workers, ratio in itertools.product(WORKERS, ratios):
            cells += [Cell(cause, "DataLoader", workers, context, ratio) for context in (CONTEXTS if workers else ("",))]
            if CAUSES[cause].in_threads:
                cells.append(Cell(cause, "threads" if workers else "naive", workers, "", ratio))
    return cells


def without_meaning(cell: Cell) -> str | None:
    """Why a cell is left out."""
    if cell.cause == "mixed" and cell.context == "spawn" and cell.workers != 2:
        return "the ratio of a sample does not depend on how workers start: 2 of them are asked"
    return (cell.injected.unlike or {}).get(cell.workers)


ALL = tuple(cell for cell in _everywhere() if without_meaning(cell) is None)
LEFT_OUT = tuple(cell for cell in _everywhere() if without_meaning(cell) is not None)
QUICK = (
    Cell("none", "DataLoader", 2, "fork"),
    Cell("wait", "DataLoader", 2, "fork"),
    Cell("decode_python", "DataLoader", 1, "spawn"),
    Cell("collate", "DataLoader", 2, "fork"),
    Cell("numpy_pipe", "DataLoader", 2, "fork"),
    Cell("slow_start", "DataLoader", 2, "fork"),
    Cell("sampler", "DataLoader", 1, "fork"),
    Cell("mixed", "DataLoader", 2, "fork", (2.0, 2.0)),
)
