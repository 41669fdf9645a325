"""A disk that serves one read at a time gets its own advice, and no more workers."""

import dataclasses

import pytest

from profiler.measure import measure
from profiler.rules import disk_seeks, storage_latency, too_little_parallelism
from tests.fakes import MS, FakeLoop

HDD = {"medium": "emulated", "emulated": True, "device": {"requests_in_flight": 1}}


def judged(source, **loop):
    run = FakeLoop(**{"load_ns": 20 * MS, "step_ns": MS, "blocked_share": 0.9, "from_device": True} | loop).run(source=source)
    return [rule.judge(measure(run)) for rule in (disk_seeks, storage_latency, too_little_parallelism)]


@pytest.mark.parametrize(
    "source",
    [HDD, {"medium": "disk", "emulated": False, "disk": {"rotational_flag": True, "virtual": False}}],
    ids=["emulated", "real"],
)
def test_one_head_is_told_and_more_readers_are_not_proposed(source):
    seeks, latency, parallel = judged(source)
    assert seeks.kind == "disk_seeks"
    assert ("(emulated)" in seeks.verdict) == source["emulated"]
    assert "400 reads/s, 2.5 ms each" in seeks.because
    assert (latency, parallel) == (None, None)


@pytest.mark.parametrize(
    "source",
    [{**HDD, "device": {"requests_in_flight": 32}}, {"medium": "disk", "disk": {"rotational_flag": True, "virtual": True}}],
    ids=["many in flight", "a virtual disk"],
)
def test_other_storage_is_another_matter(source):
    seeks, _, parallel = judged(source)
    assert seeks is None
    assert parallel is not None


def test_it_says_nothing_where_decoding_is_the_cost():
    seeks, _, parallel = judged(HDD, blocked_share=0.1)
    assert seeks is None
    assert parallel is not None


def test_a_disk_that_was_not_read_is_not_blamed():
    seeks, _, _ = judged({"medium": "disk", "disk": {"rotational_flag": True, "virtual": False}}, from_device=False)
    assert seeks is None


IN_LINE = {"n": 100, "blocked_ms_mean": 5.0, "in_flight_mean": 1.9, "one_at_a_time": True, "slope": 0.97, "meetings": 80}


def test_samples_that_were_seen_to_wait_in_line_do_so_whatever_their_source_calls_itself():
    run = FakeLoop(load_ns=20 * MS, step_ns=MS, blocked_share=0.9).run()
    result = dataclasses.replace(measure(run), blocked_samples=IN_LINE)
    assert "Samples wait in line" in disk_seeks.judge(result).verdict
    assert "each by 97.0 % of the time" in disk_seeks.judge(result).because
    assert (storage_latency.judge(result), too_little_parallelism.judge(result)) == (None, None)
