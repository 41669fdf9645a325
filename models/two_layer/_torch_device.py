"""When a torch device was busy: the host's clock on a CPU, events on CUDA streams. Nothing but `sync` waits for the device."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from ._host_device import HostDevice, Span


def choose(device: str) -> CpuDevice | CudaDevice:
    """auto: cuda, else mps, else cpu. Raises ValueError for a device that is not there."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if device == "auto":
        device = next(kind for kind, available in there.items() if available)
    if not there.get(device):
        available = ", ".join(kind for kind, yes in there.items() if yes)
        raise ValueError(f"device: this torch sees no {device} here. Available: {available}, and --device simulated")
    devices: dict[str, type[CpuDevice] | type[CudaDevice]] = {"cuda": CudaDevice, "mps": MpsDevice, "cpu": CpuDevice}
    return devices[device]()


class CpuDevice(HostDevice):
    def __init__(self) -> None:
        super().__init__(f"cpu ({torch.get_num_threads()} threads)")
        self.torch_device = torch.device("cpu")

    def put(self, array: Any) -> torch.Tensor:
        return torch.as_tensor(array)


class MpsDevice(CpuDevice):
    """Apple's GPU. Its busy time is not measured: launches return early, and waiting for each would change the run."""

    def __init__(self) -> None:
        super().__init__()
        self.torch_device = torch.device("mps")
        self.facts = {"kind": "mps", "name": "mps", "simulated": False, "method": None}
        self.busy_ns = None

    def put(self, array: Any) -> torch.Tensor:
        return torch.as_tensor(array).to(self.torch_device)

    @contextmanager
    def computing(self) -> Iterator[None]:
        yield

    def sync(self) -> None:
        torch.mps.synchronize()


class CudaDevice:
    """Batches are copied on a stream of their own; four events a step tell when copy and compute began and ended.

    Events cost a few microseconds and wait for nothing; they are read when they have happened. Gaps inside a step count as
    busy: this is an upper bound of busy time. Event times are counted from an anchor, an event whose host time is known
    within `alignment_error_ns` (the shortest of several record-and-wait round trips, made before the loop). The device's clock
    then drifts from the host's, oscillators by 10 to 100 ppm, which is 36 to 360 ms an hour: see `_put_right`.
    """

    def __init__(self) -> None:
        self.torch_device = torch.device("cuda", torch.cuda.current_device())
        self._copies = torch.cuda.Stream()
        self._computes_on = torch.cuda.current_stream()
        self._steps = 0
        self._pending: deque[tuple[str, int, int, torch.cuda.Event, torch.cuda.Event]] = deque()
        self._anchor, self._anchor_ns, error_ns = _align()
        self.busy_ns: int | None = None
        name = torch.cuda.get_device_name(self.torch_device)
        self.facts = {"kind": "cuda", "name": name, "simulated": False, "method": "events", "alignment_error_ns": error_ns}

    @contextmanager
    def copying(self) -> Iterator[None]:
        started, ended = _event(), _event()
        self._computes_on = torch.cuda.current_stream()
        asked_ns = time.perf_counter_ns()
        with torch.cuda.stream(self._copies):
            started.record()
            yield
            ended.record()
        self._computes_on.wait_event(ended)
        self._pending.append(("copy", self._steps, asked_ns, started, ended))

    def put(self, array: Any) -> torch.Tensor:
        """Overlaps the host only if the batch lies in pinned memory: else the call returns when the copy is done."""
        tensor = torch.as_tensor(array).to(self.torch_device, non_blocking=True)
        tensor.record_stream(self._computes_on)  # its memory is that of the copy stream: not free before the step has used it
        return tensor

    @contextmanager
    def computing(self) -> Iterator[None]:
        started, ended = _event(), _event()
        asked_ns = time.perf_counter_ns()
        started.record()
        yield
        ended.record()
        self._pending.append(("busy", self._steps, asked_ns, started, ended))
        self._steps += 1

    def sync(self) -> None:
        torch.cuda.synchronize(self.torch_device)

    def drain(self) -> Sequence[Span]:
        """Spans whose end has happened. The last is the next anchor: CUDA gives float32 milliseconds, exact only nearby."""
        spans: list[Span] = []
        while self._pending and self._pending[0][-1].query():
            what, step, asked_ns, started, ended = self._pending.popleft()
            span_ns = self._host_ns(started), self._host_ns(ended)
            start_ns, end_ns = _put_right(*span_ns, asked_ns, seen_ns=time.perf_counter_ns())
            spans.append((what, step, start_ns, end_ns))
            self._anchor, self._anchor_ns = ended, end_ns
        return spans

    def _host_ns(self, event: torch.cuda.Event) -> int:
        return int(self._anchor_ns + round(self._anchor.elapsed_time(event) * 1e6))


def _put_right(start_ns: int, end_ns: int, asked_ns: int, seen_ns: int) -> tuple[int, int]:
    """The span, moved so that it began after it was asked for and ended before that was seen: clocks drift, causes do not.

    The first bound is tight where the device is starved and begins at once; the second to what passes between two steps.
    """
    moved_ns = max(0, asked_ns - start_ns) or min(0, seen_ns - end_ns)
    return start_ns + moved_ns, end_ns + moved_ns


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)


def _align(trips: int = 20) -> tuple[torch.cuda.Event, int, int]:
    """An event, the host time at which it happened, and how wrong that can be: half the shortest round trip."""
    best: tuple[int, torch.cuda.Event, int] | None = None
    for _ in range(trips):
        torch.cuda.synchronize()
        event = _event()
        asked = time.perf_counter_ns()
        event.record()
        event.synchronize()
        trip = time.perf_counter_ns() - asked
        if best is None or trip < best[0]:
            best = trip, event, asked + trip // 2
    assert best is not None
    return best[1], best[2], best[0] // 2
