"""Time that only moves when it is told to, and runs made with it: for tests that assert exact numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from models.simulated import Simulated
from profiler.events import Made, Row
from profiler.run import Header, Outcome, Run, columns
from profiler.stamps import Watch

MS = 1_000_000


class FakeClock:
    """Reads in nanoseconds; `sleep` and `wait_until` move it, and nothing else does."""

    def __init__(self, now_ns: int = 0) -> None:
        self.now_ns = now_ns

    def __call__(self) -> int:
        return self.now_ns

    def advance(self, ns: int) -> None:
        self.now_ns += ns

    def sleep(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)

    def wait_until(self, deadline_ns: int) -> None:
        self.now_ns = max(self.now_ns, deadline_ns)


class Machine:
    """A /proc and cgroup mounts made of plain files."""

    def __init__(self, root: Path) -> None:
        self.root, self.proc = root, root / "proc"
        self.write("proc/self/cgroup", "")
        self.write("proc/self/mountinfo", "")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")

    def own(self, *lines: str) -> None:
        self.write("proc/self/cgroup", "\n".join(lines))

    def mounts(self, *mounts: tuple[str, str, str, str]) -> None:
        lines = (
            f"{30 + i} 1 0:{i} {root} {self.root / where} rw,relatime shared:9 - {fs_type} cgroup rw,{options}"
            for i, (where, root, fs_type, options) in enumerate(mounts)
        )
        self.write("proc/self/mountinfo", "\n".join(lines))

    def process(self, pid: int, children: Sequence[int] = (), state: str = "S", **stat: int) -> None:
        """A process with one thread. stat: fields of /proc/<pid>/stat by the names of proc(5), 0 if not given."""
        names = ["majflt", "cmajflt", "utime", "stime", "cutime", "cstime", "priority", "nice", "num_threads"]
        names += ["itrealvalue", "starttime", "vsize", "rss"]
        fields = [state, *["1"] * 8, *(str(stat.get(name, 0)) for name in names)]
        self.write(f"proc/{pid}/stat", f"{pid} (a) b (c) {' '.join(fields)} 18446744073709551615 1")
        self.write(f"proc/{pid}/task/{pid}/children", " ".join(map(str, children)))


class FakeBatch:
    def __init__(self, n: int) -> None:
        self.index = np.arange(n)
        self.x = np.zeros((n, 4), dtype=np.uint8)
        self.y = np.zeros(n, dtype=np.int64)


def header(**changes: Any) -> Header:
    """A header of a small simulated run; entries as given replace the defaults."""
    entries: dict[str, Any] = {
        "name": "fake",
        "command": ["stallscope", "run", "fake"],
        "scenario": {"loader": {"kind": "naive"}, "source": {"kind": "synthetic"}, "batch_size": 8, "sync_every_step": False},
        "environment": {"usable_cores": 2.0, "schedstat_available": True},
        "identity": {"global_rank": 0, "local_rank": 0, "world_size": 1, "host": "here"},
        "device": {"kind": "simulated", "name": "step 5 ms", "simulated": True, "method": "clock"},
        "source": {"medium": "synthetic", "emulated": False, "cold": None, "label": "synthetic samples"},
        "loader": {"n_workers": 0, "prefetch_batches": 0},
        "clock": {"perf_counter_ns": 0, "time_ns": 0},
        "process_start_ns": None,
        "outcome": Outcome(complete=True),
    }
    return Header(**(entries | changes))


def run_of(spans: Sequence[Sequence[int]], made: Sequence[Sequence[int]] = (), **changes: Any) -> Run:
    """A run of these rows. Fields of the header by name."""
    return Run(header(**changes), columns(Row, spans), columns(Made, made))


@dataclass
class FakeLoop:
    """A loop on the simulated accelerator, on a clock of its own: every load takes `load_ns`, blocked and then computing."""

    load_ns: int = 4 * MS
    step_ns: int = 5 * MS
    steps: int = 100
    epochs: int = 1
    queue_depth: int = 4
    bytes_per_s: int | None = None
    sync_every_step: bool = False
    blocked_share: float = 0.5
    batch_size: int = 8
    iter_ns: int = 0
    host_ns: int = 0
    """The loop's own work in each step, before the launch."""
    between_ns: int = 0
    """Time outside the loop after each epoch but the last."""
    harness_ns: int = 0
    from_device: bool = False
    """Whether the bytes that are asked for come from a device."""
    clock: FakeClock = field(default_factory=FakeClock)

    def run(self, **changes: Any) -> Run:
        spans: list[tuple[int, ...]] = []
        made: list[tuple[int, ...]] = []
        device = Simulated(
            "fake",
            lambda n: self.step_ns,
            self.queue_depth,
            self.bytes_per_s,
            clock=self.clock,
            wait_until=self.clock.wait_until,
        )
        watch = Watch(spans.extend, device.drain, clock=self.clock)
        for epoch in range(self.epochs):
            with watch.aside():
                self.clock.advance(self.harness_ns)
            for batch in watch.batches(_Loads(self, made), lambda batch: len(batch.index)):
                self.clock.advance(self.host_ns)
                device.step(batch)
                if self.sync_every_step:
                    watch.sync(device.sync)
            if epoch + 1 < self.epochs:
                self.clock.advance(self.between_ns)
        watch.flush()
        return run_of(spans, made, **changes)


class _Loads:
    def __init__(self, loop: FakeLoop, made: list[tuple[int, ...]]) -> None:
        self._loop, self._made = loop, made

    def __iter__(self) -> Iterator[FakeBatch]:
        self._loop.clock.advance(self._loop.iter_ns)
        return self._batches()

    def _batches(self) -> Iterator[FakeBatch]:
        loop, clock = self._loop, self._loop.clock
        for _ in range(loop.steps):
            begin = clock()
            clock.advance(loop.load_ns)
            cpu = round(loop.load_ns * (1 - loop.blocked_share))
            n = loop.batch_size
            self._made.append((1, 1, n, 0, begin, clock(), clock(), cpu, 0, 0, 0, 1000 * n, 1000 * n * loop.from_device))
            yield FakeBatch(n)
