"""Spans of a CUDA device, with events whose times are made up: no GPU is needed to map them on the host's clock."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'stallscope[torch]'")

from models.two_layer import _torch_device  # noqa: E402 (imports torch)

MS = 1_000_000
OFFSET_NS = 7_000 * MS
"""The device's clock reads this when the host's reads 0."""


class Event:
    """Has happened once the host's clock is past it. The device stamps it with a clock that drifts."""

    def __init__(self, clock):
        self.clock, self.at_ns = clock, None

    def record(self):
        self.at_ns = self.clock.now_ns

    def query(self):
        return self.at_ns <= self.clock.now_ns

    def elapsed_time(self, later):
        return (later.stamp_ns - self.stamp_ns) / MS

    @property
    def stamp_ns(self):
        return OFFSET_NS + self.at_ns * (1 + self.clock.drift_ppm / 1e6)


@pytest.fixture
def clock(monkeypatch):
    """The host's, and what the device's does against it."""
    clock = SimpleNamespace(now_ns=0, drift_ppm=0)
    clock.perf_counter_ns = lambda: clock.now_ns
    streams = SimpleNamespace(wait_event=lambda event: None)
    for name, value in {
        "current_device": lambda: 0,
        "get_device_name": lambda device: "made up",
        "Stream": lambda: streams,
        "current_stream": lambda: streams,
        "stream": lambda stream: nullcontext(),
    }.items():
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(_torch_device, "time", clock)
    monkeypatch.setattr(_torch_device, "_event", lambda: Event(clock))
    anchor = Event(clock)
    anchor.record()
    monkeypatch.setattr(_torch_device, "_align", lambda: (anchor, 0, 0))
    return clock


def launch(device, copy, busy):
    """One step, asked for now, whose copy and compute happen at these times of the host's clock."""
    for context, (start, end) in ((device.copying(), copy), (device.computing(), busy)):
        with context:
            pass
        *_, started, ended = device._pending[-1]
        started.at_ns, ended.at_ns = start, end


def test_spans_are_had_when_they_have_ended_and_not_before(clock):
    device = _torch_device.CudaDevice()
    launch(device, (1 * MS, 2 * MS), (2 * MS, 9 * MS))
    launch(device, (3 * MS, 4 * MS), (9 * MS, 16 * MS))
    assert device.drain() == []
    clock.now_ns = 9 * MS
    first = [("copy", 0, 1 * MS, 2 * MS), ("busy", 0, 2 * MS, 9 * MS), ("copy", 1, 3 * MS, 4 * MS)]
    assert device.drain() == first  # the second copy ran beside the first step: before the anchor, which that had become
    clock.now_ns = 16 * MS
    assert device.drain() == [("busy", 1, 9 * MS, 16 * MS)]
    assert device.drain() == []


def hour(clock, drift_ppm):
    """An hour of steps of 0.2 s, one a second, each begun as it is asked for: their spans, and when they really began."""
    clock.drift_ppm = drift_ppm
    device, spans = _torch_device.CudaDevice(), []
    for step in range(3600):
        clock.now_ns = now = 1000 * MS * (step + 1)
        launch(device, (now, now), (now, now + 200 * MS))
        spans += device.drain()
    return [(1000 * MS * (step + 1), start, end) for what, step, start, end in spans if what == "busy"]


def test_a_step_never_begins_before_it_was_asked_for_however_slow_the_devices_clock(clock):
    """100 ppm are 360 ms in an hour."""
    assert max(abs(start - asked) for asked, start, _ in hour(clock, -100)) < 1 * MS


def test_a_step_never_ends_after_it_was_seen_to_have_however_fast_the_devices_clock(clock):
    """1000 ppm are 3.6 s in an hour. What is known is that it had ended when the next one was launched."""
    assert max(end - asked for asked, _, end in hour(clock, 1000)) <= 1000 * MS
