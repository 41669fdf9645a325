"""Samples of declared cost."""

from __future__ import annotations

import json
import multiprocessing
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loaders.sources import synthetic

NOWHERE = Path("/nowhere")


class LateClock:
    """A clock on which only sleeping takes time, and each sleep ends late."""

    def __init__(self, *late_ns: int) -> None:
        self.now_ns = 0
        self.slept_ns: list[int] = []
        self._late_ns = list(late_ns)

    def __call__(self) -> int:
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        self.slept_ns.append(round(seconds * 1e9))
        self.now_ns += self.slept_ns[-1] + self._late_ns.pop(0)


def test_a_wait_is_shorter_by_what_the_last_was_too_long() -> None:
    clock = LateClock(80_000, 60_000, 0)
    wait = synthetic.Wait(clock, clock.sleep)
    for _ in range(3):
        wait(300_000)
    assert clock.slept_ns == [300_000, 220_000, 240_000]
    assert clock.now_ns == 900_000


def test_a_debt_larger_than_a_wait_takes_the_whole_wait() -> None:
    clock = LateClock(70_000, 0)
    wait = synthetic.Wait(clock, clock.sleep)
    for _ in range(4):
        wait(30_000)
    assert clock.slept_ns == [30_000, 20_000]
    assert clock.now_ns == 4 * 30_000


def test_a_long_delay_is_not_made_up_for() -> None:
    clock = LateClock(50_000_000, 0, 0)
    wait = synthetic.Wait(clock, clock.sleep)
    for _ in range(3):
        wait(1_000_000)
    assert clock.slept_ns == [1_000_000, 800_000, 1_000_000]


@given(st.lists(st.tuples(st.integers(0, 1_000_000), st.integers(0, 150_000)), min_size=1))
def test_the_total_is_late_by_no_more_than_the_last_sleep(waits: list[tuple[int, int]]) -> None:
    clock = LateClock(*(late_ns for _, late_ns in waits))
    wait = synthetic.Wait(clock, clock.sleep)
    for wait_ns, _ in waits:
        wait(wait_ns)
    assert 0 <= clock.now_ns - sum(wait_ns for wait_ns, _ in waits) <= 150_000


def test_each_thread_owes_for_itself() -> None:
    clock = LateClock(80_000, 0)
    wait = synthetic.Wait(clock, clock.sleep)
    wait(300_000)
    other = threading.Thread(target=wait, args=(300_000,))
    other.start()
    other.join()
    assert clock.slept_ns == [300_000, 300_000]


def test_computing_uses_cpu_time() -> None:
    start_ns = time.thread_time_ns()
    synthetic.compute(5_000_000)
    assert 5_000_000 <= time.thread_time_ns() - start_ns < 6_000_000


@pytest.mark.parametrize("spread", ["fixed", "lognormal", "heavy_tail"])
def test_the_mean_cost_is_as_declared(spread: synthetic.Spread) -> None:
    costs = synthetic.sample_costs_ns(1_000_000, spread, 2000, seed=1)
    assert np.mean(costs) == pytest.approx(1_000_000, abs=1)
    assert costs == synthetic.sample_costs_ns(1_000_000, spread, 2000, seed=1)


def test_five_percent_of_a_heavy_tail_cost_twenty_times_the_others() -> None:
    costs = synthetic.sample_costs_ns(1_950_000, "heavy_tail", 2000, seed=1)
    assert sorted(set(costs)) == [1_000_000, 20_000_000]
    assert costs.count(20_000_000) == 100


def test_lognormal_has_the_documented_sigma() -> None:
    costs = synthetic.sample_costs_ns(1_000_000, "lognormal", 20_000, seed=1)
    assert np.std(np.log(costs)) == pytest.approx(0.5, rel=0.02)


def test_the_cost_of_a_sample_is_spent_where_it_belongs() -> None:
    read: list[int] = []
    decoded: list[int] = []
    source = synthetic.Synthetic((4,), [1, 2, 0], [3, 0, 4], read.append, decoded.append, "")
    for index in range(3):
        source.decode(source.read(index))
    assert (read, decoded) == ([1, 2], [3, 4])


def test_reading_waits_and_decoding_does_as_told() -> None:
    for mode, spend in (("compute", synthetic.compute), ("wait", None)):
        source = synthetic.build(NOWHERE, decode_mode=mode)  # type: ignore[arg-type]
        assert isinstance(source._spend_read, synthetic.Wait)
        assert source._spend_decode is (spend or source._spend_read)


def checksum(source: synthetic.Synthetic, answers: Any) -> None:
    answers.put([int(source.decode(source.read(index)).sum()) for index in range(30)])


def test_another_process_makes_the_same_samples() -> None:
    source = synthetic.build(NOWHERE, samples=30, read_ns=1000, decode_ns=1000)
    context = multiprocessing.get_context("spawn")
    answers = context.SimpleQueue()
    process = context.Process(target=checksum, args=(source, answers))
    process.start()
    process.join()
    assert answers.get() == [int(source.decode(source.read(index)).sum()) for index in range(30)]


@pytest.mark.parametrize("shape", [(64, 64, 3), (5,), (2, 2)])
def test_samples_differ_and_those_of_a_class_are_alike(shape: tuple[int, ...]) -> None:
    source = synthetic.build(NOWHERE, samples=200, shape=shape, read_ns=0, decode_ns=0)
    samples = [source.decode(source.read(index)) for index in range(200)]
    assert {(sample.shape, sample.dtype, sample.flags.writeable) for sample in samples} == {(shape, np.dtype(np.uint8), True)}
    assert len({sample.tobytes() for sample in samples}) == 200
    assert all((a.flat[8:] == b.flat[8:]).all() for a, b in zip(samples, samples[10:], strict=False))
    assert [source.label(index) for index in range(12)] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]


def test_threads_share_a_source() -> None:
    source = synthetic.build(NOWHERE, samples=64, read_ns=100_000, decode_ns=0, spread="heavy_tail")
    copy = pickle.loads(pickle.dumps(source))
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda index: copy.decode(copy.read(index)), range(64)))
    np.testing.assert_array_equal(np.stack(together), np.stack([source.decode(source.read(i)) for i in range(64)]))


def test_bytes_that_are_no_sample_are_refused() -> None:
    source = synthetic.build(NOWHERE, samples=10, read_ns=0, decode_ns=0)
    for encoded in (b"", b"short", bytes(9), (10).to_bytes(8, "little")):
        with pytest.raises(ValueError, match="not a synthetic sample"):
            source.decode(encoded)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 0}, "samples=0: must be 1 to 10,000,000"),
        ({"shape": (64, 0)}, r"shape=\[64, 0\]: must be"),
        ({"shape": ()}, r"shape=\[\]: must be"),
        ({"read_ns": -1}, "read=-1 ns: must not be negative"),
        ({"decode_ns": -1}, "decode=-1 ns: must not be negative"),
        ({"spread": "wide"}, "spread=wide: must be fixed, lognormal or heavy_tail"),
        ({"decode_mode": "sleep"}, "decode_mode=sleep: must be compute or wait"),
        ({"samples": 10**9}, "samples=1000000000: must be 1 to"),
        ({"shape": (100_000, 100_000, 3)}, r"shape=\[100000, 100000, 3\]: a sample of 30,000,000,000 bytes"),
    ],
)
def test_a_bad_option_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        synthetic.build(NOWHERE, **options)


def test_a_source_says_what_it_costs() -> None:
    source = synthetic.build(NOWHERE, decode_ns=250_000, decode_mode="wait", spread="lognormal")
    assert source.describe()["label"] == "synthetic samples: read 1 ms (waits), decode 0.25 ms (waits), lognormal"
    assert source.start_epoch() is None
    assert source.name(7) == "sample 7"
    json.dumps(source.describe())
