import os

import pytest

from profiler.events import Counter, Reading
from profiler.samplers import cpu
from tests.profiler.samplers.conftest import HELPER, WORKER

PID = os.getpid()
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def read(machine, *counters):
    return [reading for reading in cpu.Cpu(PID, machine.proc).read() if not counters or reading.counter in counters]


@pytest.fixture(autouse=True)
def affinity(monkeypatch):
    """Core 0 and 1 for all but the helper, which has ended when it is asked for."""

    def asked(pid):
        if pid == HELPER:
            raise ProcessLookupError
        return {0, 1} if pid == PID else {1}

    monkeypatch.setattr(os, "sched_getaffinity", asked)


@pytest.fixture
def stat(machine):
    machine.write("proc/stat", "cpu  1\ncpu0 10 20 30 1000 500 4 6\ncpu1 100 0 0 1000 0 0 0\ncpu2 999 0 0 0 0 0 0\nintr 1")
    return machine


def test_the_trees_cpu_time_and_that_of_everybody_on_its_cores(stat):
    assert read(stat, Counter.TREE_CPU_NS, Counter.BUSY_CPU_NS) == [
        Reading(Counter.BUSY_CPU_NS, 0, 170 * TICK_NS),
        Reading(Counter.TREE_CPU_NS, PID, (127 + 50 + 10) * TICK_NS),
    ]


def test_a_zombies_cpu_time_counts_until_its_parent_has_it(stat):
    stat.process(WORKER, [HELPER], state="Z", utime=50)
    assert Reading(Counter.TREE_CPU_NS, PID, 187 * TICK_NS) in read(stat)
    assert not [reading for reading in read(stat, Counter.THREADS) if reading.pid == WORKER]


def test_without_busy_time_the_trees_is_not_told_either(machine):
    assert read(machine, Counter.TREE_CPU_NS, Counter.BUSY_CPU_NS) == []


def test_threads_of_each_process(machine):
    assert [reading[1:] for reading in read(machine, Counter.THREADS)] == [(PID, 12), (WORKER, 3), (HELPER, 1)]


def test_cores_of_each_process_that_still_runs(machine):
    assert [reading[1:] for reading in read(machine, Counter.AFFINITY_CORES)] == [(PID, 2), (WORKER, 1)]


THROTTLING = (Counter.THROTTLED_NS, Counter.THROTTLED_PERIODS, Counter.QUOTA_PERIODS)


def test_v2_throttling_is_added_up_over_the_levels(v2):
    v2.write("cg/slice/job/cpu.stat", "usage_usec 9\nnr_periods 100\nnr_throttled 7\nthrottled_usec 2500")
    v2.write("cg/slice/cpu.stat", "usage_usec 9\nnr_periods 50\nnr_throttled 1\nthrottled_usec 500")
    v2.write("cg/cpu.stat", "usage_usec 9")
    assert [reading[1:] for reading in read(v2, *THROTTLING)] == [(PID, 3_000_000), (PID, 8), (PID, 150)]


def test_v1_throttling_is_in_nanoseconds(machine):
    machine.write(f"proc/{PID}/cgroup", "2:cpu,cpuacct:/job\n0::/")
    machine.mounts(("cg/cpu", "/", "cgroup", "cpu,cpuacct"), ("cg/unified", "/", "cgroup2", ""))
    machine.write("cg/cpu/job/cpu.stat", "nr_periods 10\nnr_throttled 4\nthrottled_time 123456789")
    machine.write("cg/cpu/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0")
    assert [reading[1:] for reading in read(machine, *THROTTLING)] == [(PID, 123_456_789), (PID, 4), (PID, 10)]


def test_a_level_that_is_gone_makes_no_sum_that_is_too_small(v2):
    v2.write("cg/slice/job/cpu.stat", "nr_periods 100\nnr_throttled 7\nthrottled_usec 2500")
    v2.write("cg/slice/cpu.stat", "nr_periods 50\nnr_throttled 1\nthrottled_usec 500")
    sampler = cpu.Cpu(PID, v2.proc)
    (v2.root / "cg/slice/cpu.stat").unlink()
    assert not [reading for reading in sampler.read() if reading.counter in THROTTLING]


def test_without_a_quota_there_is_no_throttling(machine):
    assert read(machine, *THROTTLING) == []


def test_without_proc_there_are_no_rows(tmp_path):
    assert list(cpu.Cpu(PID, tmp_path / "none").read()) == []
