import os
from pathlib import Path

import pytest

from profiler.events import Counter, Reading
from profiler.samplers import memory
from tests.fakes import MS, FakeClock
from tests.profiler.samplers.conftest import HELPER, WORKER

PID = os.getpid()
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
ROLLUP = """55d0-7ffc ---p 00000000 00:00 0    [rollup]
Rss:                2000 kB
Pss:                 900 kB
Shared_Clean:        100 kB
Private_Clean:        50 kB
Private_Dirty:       500 kB
Private_Hugetlb:       0 kB"""


def of(readings, *counters):
    return [reading for reading in readings if reading.counter in counters]


def test_resident_memory_and_major_faults_of_each_process(machine):
    readings = list(memory.Memory(PID, machine.proc).read())
    assert [reading[1:] for reading in of(readings, Counter.RSS_BYTES)] == [
        (PID, 1000 * PAGE_BYTES),
        (WORKER, 500 * PAGE_BYTES),
        (HELPER, 50 * PAGE_BYTES),
    ]
    assert [reading[1:] for reading in of(readings, Counter.MAJOR_FAULTS)] == [(PID, 7), (WORKER, 0), (HELPER, 0)]


def test_a_zombie_has_no_memory(machine):
    machine.process(WORKER, [HELPER], state="Z")
    assert {reading.pid for reading in of(memory.Memory(PID, machine.proc).read(), Counter.RSS_BYTES)} == {PID, HELPER}


def test_uss_and_pss_of_those_that_may_be_read(machine):
    machine.write(f"proc/{WORKER}/smaps_rollup", ROLLUP)
    assert of(memory.Memory(PID, machine.proc).read(), Counter.USS_BYTES, Counter.PSS_BYTES) == [
        Reading(Counter.USS_BYTES, WORKER, 550 * 1024),
        Reading(Counter.PSS_BYTES, WORKER, 900 * 1024),
    ]


def test_open_descriptors_of_those_that_may_be_read(machine):
    for number in range(3):
        machine.write(f"proc/{WORKER}/fd/{number}", "")
    assert of(memory.Memory(PID, machine.proc).read(), Counter.DESCRIPTORS) == [Reading(Counter.DESCRIPTORS, WORKER, 3)]


def instants(machine, cost_ns, period_ns, n):
    """At which of `n` readings USS and PSS are read, if that takes `cost_ns`."""
    machine.write(f"proc/{WORKER}/smaps_rollup", ROLLUP)
    clock, cpu_clock = FakeClock(), FakeClock()

    def used():
        cpu_clock.advance(cost_ns)
        return cpu_clock.now_ns

    sampler = memory.Memory(PID, machine.proc, clock=clock, cpu_clock=used)
    found = []
    for i in range(n):
        found += [i] if of(sampler.read(), Counter.PSS_BYTES) else []
        clock.advance(period_ns)
    return found


def test_uss_and_pss_are_read_every_two_seconds_at_most(machine):
    assert instants(machine, cost_ns=1 * MS, period_ns=500 * MS, n=10) == [0, 4, 8]


def test_uss_and_pss_take_a_hundredth_of_the_time_at_most(machine):
    assert instants(machine, cost_ns=50 * MS, period_ns=500 * MS, n=21) == [0, 10, 20]


def test_shared_memory_that_is_used(tmp_path, machine, monkeypatch):
    monkeypatch.setattr(os, "statvfs", lambda path: os.statvfs_result((4096, 4096, 100, 40, 39, 0, 0, 0, 0, 255)))
    readings = memory.Memory(PID, machine.proc, shm=tmp_path).read()
    assert of(readings, Counter.SHM_BYTES) == [Reading(Counter.SHM_BYTES, 0, 60 * 4096)]


def test_without_proc_and_shm_there_are_no_rows(tmp_path):
    assert list(memory.Memory(PID, tmp_path / "none", tmp_path / "none").read()) == []


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs /proc/<pid>/smaps_rollup (Linux 4.14)")
def test_a_real_process_has_all_of_it():
    value = {reading.counter: reading.value for reading in memory.build(PID).read() if reading.pid == PID}
    assert 0 < value[Counter.USS_BYTES] <= value[Counter.PSS_BYTES]
    assert {Counter.RSS_BYTES, Counter.DESCRIPTORS, Counter.MAJOR_FAULTS} <= value.keys()
