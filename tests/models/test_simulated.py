"""A device that is arithmetic: every number is exact."""

import pytest

from models import simulated
from models.simulated import PRESETS, Simulated
from tests.fakes import MS, FakeBatch, FakeClock


def device(clock, step_ms=5, **options):
    return Simulated("fake", lambda n: step_ms * MS, clock=clock, wait_until=clock.wait_until, **options)


def busy(simulated_device):
    return [(start // MS, end // MS) for what, _, start, end in simulated_device.drain() if what == "busy"]


def test_the_host_goes_on_at_once_and_steps_run_one_after_another():
    clock = FakeClock()
    it = device(clock, queue_depth=4)
    for _ in range(3):
        it.step(FakeBatch(1))
    assert clock() == 0
    assert busy(it) == [(0, 5), (5, 10), (10, 15)]
    assert it.busy_ns() == 0
    clock.advance(7 * MS)
    assert it.busy_ns() == 7 * MS
    clock.advance(20 * MS)
    assert it.busy_ns() == 15 * MS


def test_a_full_queue_blocks_the_host_until_a_step_ends():
    clock = FakeClock()
    it = device(clock, queue_depth=2)
    for _ in range(3):
        it.step(FakeBatch(1))
    assert clock() == 5 * MS
    assert busy(it) == [(0, 5), (5, 10), (10, 15)]


def test_a_late_wake_up_does_not_idle_the_device():
    clock = FakeClock()
    late = Simulated("fake", lambda n: 5 * MS, 1, clock=clock, wait_until=lambda t: clock.wait_until(t + 100_000))
    for _ in range(3):
        late.step(FakeBatch(1))
    assert [start for _, _, start, _ in late.drain()] == [0, 5 * MS, 10 * MS]


def test_a_late_batch_idles_the_device():
    clock = FakeClock()
    it = device(clock)
    it.step(FakeBatch(1))
    clock.advance(8 * MS)
    it.step(FakeBatch(1))
    assert busy(it) == [(0, 5), (8, 13)]


def test_sync_waits_for_the_last_step():
    clock = FakeClock()
    it = device(clock)
    it.step(FakeBatch(1))
    it.step(FakeBatch(1))
    it.sync()
    assert clock() == 10 * MS


def test_copies_come_before_their_step_and_overlap_the_one_before():
    clock = FakeClock()
    it = device(clock, bytes_per_s=4000)  # a batch of one is 4 + 8 bytes: 3 ms
    it.step(FakeBatch(1))
    it.step(FakeBatch(1))
    spans = [(what, start // MS, end // MS) for what, _, start, end in it.drain()]
    assert spans == [("copy", 0, 3), ("busy", 3, 8), ("copy", 3, 6), ("busy", 8, 13)]


def build(device="auto", **options):
    return simulated.build((2, 2, 3), 10, device, 0, **options)


def test_a_preset_is_a_published_time_a_sample():
    it = build(preset="mlperf_resnet50_a100")
    it.step(FakeBatch(400))
    _, _, start, end = it.drain()[0]
    assert end - start == 435 * MS
    assert "MLPerf" in it.device["name"]
    assert all("MLPerf" in preset.source for preset in PRESETS.values())


def test_it_is_always_labelled():
    assert build().device == {"kind": "simulated", "name": "step 5 ms", "simulated": True, "method": "clock"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "cuda"}, "device: the simulated model runs on no cuda"),
        ({"preset": "a100"}, r"preset: no preset 'a100'. It can be: mlperf_resnet50_a100, "),
        ({"preset": "mlperf_unet3d_h100", "step_ns": 1}, "step: give a step or a preset, not both"),
        ({"queue_depth": 0}, "queue_depth=0: must be at least 1"),
        ({"copy_bandwidth_bytes_per_s": 0}, "copy_bandwidth: must be above 0"),
    ],
)
def test_values_that_it_cannot_take_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        build(**options)
