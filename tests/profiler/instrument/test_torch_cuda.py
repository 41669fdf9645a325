"""On a device that is arithmetic: what CUDA itself says is asked in tests/gpu."""

import pytest

from profiler.attach import Loop, Recorder
from profiler.events import Kind, Row
from profiler.instrument import torch_cuda
from profiler.instrument.torch_cuda import CudaSteps
from profiler.stamps import Watch

MS = 1_000_000


class FakeCuda:
    """A stream: an event happens when what was launched before it is done."""

    def __init__(self):
        self.now_ns = 0
        self.free_ns = 0
        self.capturing = False

    def launch(self, ns):
        self.free_ns = max(self.now_ns, self.free_ns) + ns

    def is_current_stream_capturing(self):
        return self.capturing

    def Event(self, enable_timing):
        return FakeEvent(self)


class FakeEvent:
    def __init__(self, cuda):
        self._cuda = cuda

    def record(self):
        self.at_ns = max(self._cuda.now_ns, self._cuda.free_ns)

    def query(self):
        return self.at_ns <= self._cuda.now_ns

    def elapsed_time(self, other):
        return (other.at_ns - self.at_ns) / 1e6


@pytest.fixture
def cuda(monkeypatch):
    fake = FakeCuda()
    monkeypatch.setattr(torch_cuda.time, "perf_counter_ns", lambda: fake.now_ns)
    return fake


def loop(rows):
    return Loop(0, Watch(rows=rows, loop=0), None)


def busy(rows):
    return [(row.start_ns / MS, row.end_ns / MS) for row in map(Row._make, rows) if row.kind == Kind.BUSY]


def run(cuda, steps, load_ms, launch_ms, step_ms):
    """Batches take load_ms to come, the launches of a step launch_ms, its work on the device step_ms."""
    rows = []
    mine, witness = loop(rows), CudaSteps(cuda)
    for _ in range(steps):
        witness.ended()
        cuda.now_ns += load_ms * MS
        witness.began(mine)
        cuda.launch(step_ms * MS)
        cuda.now_ns += launch_ms * MS
    cuda.now_ns = max(cuda.now_ns, cuda.free_ns)
    witness.ended()
    return busy(rows)


def test_a_starved_device_is_busy_for_its_steps_alone(cuda):
    assert run(cuda, 3, load_ms=10, launch_ms=1, step_ms=4) == [(10, 14), (21, 25), (32, 36)]


def test_steps_that_queue_up_follow_each_other(cuda):
    assert run(cuda, 4, load_ms=1, launch_ms=1, step_ms=10) == [(1, 11), (11, 21), (21, 31), (31, 41)]


def test_a_clock_that_drifts_never_shows_a_step_before_it_was_asked_for(cuda):
    rows = []
    mine, witness = loop(rows), CudaSteps(cuda)
    for _ in range(2):
        witness.ended()
        cuda.now_ns += 10 * MS
        witness.began(mine)
        cuda.launch(4 * MS)
        cuda.now_ns += 5 * MS
        event, at_ns = witness._anchor
        witness._anchor = event, at_ns - 3 * MS  # the device's clock lags
    witness.ended()
    assert busy(rows) == [(10, 15), (25, 30)]


def test_inside_a_graph_that_is_captured_nothing_is_recorded(cuda):
    cuda.capturing = True
    assert run(cuda, 3, load_ms=1, launch_ms=1, step_ms=1) == []


def test_a_loop_inside_a_step_takes_over_and_its_work_is_the_devices_too(cuda):
    rows = []
    outer, inner, witness = loop(rows), loop(rows), CudaSteps(cuda)
    witness.began(outer)
    cuda.launch(4 * MS)
    cuda.now_ns += 10 * MS
    witness.began(inner)
    cuda.launch(2 * MS)
    cuda.now_ns += 10 * MS
    witness.ended()
    assert busy(rows) == [(0, 10), (10, 20)]


def test_a_program_that_uses_no_device_has_none():
    assert torch_cuda.begin(Recorder([], None, print)) is None
