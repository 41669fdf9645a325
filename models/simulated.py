"""A simulated accelerator: arithmetic on a clock. It computes nothing, and says exactly when it would have been busy."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

SPIN_NS = 200_000
"""A sleeping host wakes up to this late. The last stretch is spun instead, as the drivers of real devices do by default."""


class Preset(NamedTuple):
    ns_per_sample: float
    """Device time of one training step / its batch size."""
    source: str


PRESETS = {
    "mlperf_resnet50_a100": Preset(
        435e6 / 400, "MLPerf Storage: computation_time 0.435 s at batch size 400 (DLIO resnet50_a100.yaml)"
    ),
    "mlperf_unet3d_a100": Preset(636e6 / 7, "MLPerf Storage: computation_time 0.636 s at batch size 7 (DLIO unet3d_a100.yaml)"),
    "mlperf_unet3d_h100": Preset(323e6 / 7, "MLPerf Storage: computation_time 0.323 s at batch size 7 (DLIO unet3d_h100.yaml)"),
}


def build(
    sample_shape: tuple[int, ...],
    n_classes: int,
    device: str,
    seed: int,
    *,
    step_ns: int | None = None,
    queue_depth: int = 4,
    copy_bandwidth_bytes_per_s: int | None = None,
    preset: str | None = None,
) -> Simulated:
    """step: device time of one step (default 5 ms). preset: instead, a published device's time a sample. queue_depth: steps
    that may be launched and unfinished before the host blocks. copy_bandwidth: the rate at which batches are copied first.
    """
    if device not in ("auto", "simulated"):
        raise ValueError(f"device: the simulated model runs on no {device}. Use --device simulated, or another model")
    if preset is not None and preset not in PRESETS:
        raise ValueError(f"preset: no preset '{preset}'. It can be: {', '.join(PRESETS)}")
    if preset is not None and step_ns is not None:
        raise ValueError("step: give a step or a preset, not both")
    if queue_depth < 1:
        raise ValueError(f"queue_depth={queue_depth}: must be at least 1, the step that runs")
    if copy_bandwidth_bytes_per_s == 0:
        raise ValueError("copy_bandwidth: must be above 0; leave it out for copies that take no time")
    chosen = None if preset is None else PRESETS[preset]
    fixed_ns = 5_000_000 if step_ns is None else step_ns
    return Simulated(
        name=f"{preset} ({chosen.source})" if chosen else f"step {fixed_ns / 1e6:g} ms",
        step_ns=(lambda n: round(n * chosen.ns_per_sample)) if chosen else (lambda n: fixed_ns),
        queue_depth=queue_depth,
        bytes_per_s=copy_bandwidth_bytes_per_s,
    )


class Simulated:
    """A device with a launch queue: `start = max(launched, copied, end of the previous step)`, `end = start + step`.

    The host goes on at once, and blocks only where a real one would: while the queue is full, and in `sync`. A step that was
    blocked at a full queue counts as launched when its place came free: how late the host woke does not change the device.
    """

    def __init__(
        self,
        name: str,
        step_ns: Callable[[int], int],
        queue_depth: int = 4,
        bytes_per_s: int | None = None,
        clock: Callable[[], int] = time.perf_counter_ns,
        wait_until: Callable[[int], None] | None = None,
    ) -> None:
        self.device: Mapping[str, Any] = {"kind": "simulated", "name": name, "simulated": True, "method": "clock"}
        self._step_ns, self._depth, self._bytes_per_s = step_ns, queue_depth, bytes_per_s
        self._clock, self._wait_until = clock, wait_until or _wait_until
        self._unfinished: deque[int] = deque()
        self._copier_free_ns = self._free_ns = 0
        self._busy_ns = self._steps = 0
        self._spans: list[tuple[str, int, int, int]] = []

    def step(self, batch: Any) -> None:
        """Launches one step; blocks only while `queue_depth` others are unfinished."""
        launched = max(self._clock(), self._wait_for_a_place())
        copied = self._copy(launched, batch)
        start = max(copied, self._free_ns)
        self._free_ns = start + self._step_ns(len(batch.index))
        self._unfinished.append(self._free_ns)
        self._spans.append(("busy", self._steps, start, self._free_ns))
        self._busy_ns += self._free_ns - start
        self._steps += 1

    def sync(self) -> None:
        self._wait_until(self._free_ns)
        self._unfinished.clear()

    def drain(self) -> Sequence[tuple[str, int, int, int]]:
        spans, self._spans = self._spans, []
        return spans

    def busy_ns(self) -> int:
        """Less what is still to come: the queued steps follow each other without a gap."""
        return max(0, self._busy_ns - max(0, self._free_ns - self._clock()))

    def losses(self) -> None:
        """Nothing is learnt here."""

    def _wait_for_a_place(self) -> int:
        """When this step's place in the queue came free: 0 if there was one already."""
        now = self._clock()
        while self._unfinished and self._unfinished[0] <= now:
            self._unfinished.popleft()
        if len(self._unfinished) < self._depth:
            return 0
        free_at = self._unfinished.popleft()
        self._wait_until(free_at)
        return free_at

    def _copy(self, launched: int, batch: Any) -> int:
        if self._bytes_per_s is None:
            return launched
        start = max(launched, self._copier_free_ns)
        n_bytes = math.prod(batch.x.shape) + 8 * len(batch.index)  # uint8 samples, int64 labels; not all tensors have nbytes
        self._copier_free_ns = start + round(n_bytes / self._bytes_per_s * 1e9)
        self._spans.append(("copy", self._steps, start, self._copier_free_ns))
        return self._copier_free_ns


def _wait_until(deadline_ns: int) -> None:
    while (left := deadline_ns - time.perf_counter_ns()) > SPIN_NS:
        time.sleep((left - SPIN_NS) / 1e9)
    while time.perf_counter_ns() < deadline_ns:
        pass
