import os
from pathlib import Path

import pytest

from profiler.events import Counter, Reading
from profiler.samplers import disk
from tests.profiler.samplers.conftest import WORKER

PID = os.getpid()
IO = "rchar: 6976\nwchar: 1\nsyscr: 10\nsyscw: 0\nread_bytes: 4096\nwrite_bytes: 5"


@pytest.fixture
def device(machine):
    """A disk, and on it a partition that holds the machine's folder."""
    number = os.stat(machine.root).st_dev
    machine.write("sys/devices/vda/stat", " 100  3  8000  250  1 1 1 1  2  40 50")
    machine.write("sys/devices/vda/vda1/stat", " 1 1 1 1 1 1 1 1 1 1 1")
    machine.write("sys/devices/vda/vda1/partition", "1")
    link = machine.root / f"sys/dev/block/{os.major(number)}:{os.minor(number)}"
    link.parent.mkdir(parents=True)
    link.symlink_to(machine.root / "sys/devices/vda/vda1")
    return machine


def read(machine):
    return list(disk.Disk(PID, machine.root, machine.proc, machine.root / "sys").read())


def test_reads_of_those_processes_that_tell(machine):
    machine.write(f"proc/{WORKER}/io", IO)
    assert read(machine) == [
        Reading(Counter.READ_BYTES, WORKER, 4096),
        Reading(Counter.RCHAR_BYTES, WORKER, 6976),
        Reading(Counter.SYSCR, WORKER, 10),
    ]


def test_the_whole_disk_beneath_a_partition(device):
    assert read(device) == [
        Reading(Counter.DEVICE_READS, 0, 100),
        Reading(Counter.DEVICE_READ_BYTES, 0, 8000 * 512),
        Reading(Counter.DEVICE_READ_NS, 0, 250_000_000),
        Reading(Counter.DEVICE_IN_FLIGHT, 0, 2),
    ]


def test_a_disk_without_partitions(device):
    (device.root / "sys/devices/vda/vda1/partition").unlink()
    assert Reading(Counter.DEVICE_READS, 0, 1) in read(device)


def test_a_disk_that_is_pulled_tells_nothing(device):
    sampler = disk.Disk(PID, device.root, device.proc, device.root / "sys")
    (device.root / "sys/devices/vda/stat").unlink()
    assert list(sampler.read()) == []


def test_a_folder_on_no_block_device_has_no_device_rows(machine):
    assert disk.device_stat(machine.root, machine.root / "sys") is None
    assert disk.device_stat(machine.root / "none") is None
    assert read(machine) == []


def test_without_a_folder_no_device_is_read(device):
    assert list(disk.Disk(PID, None, device.proc, device.root / "sys").read()) == []


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="needs /proc/<pid>/io (Linux)")
def test_a_real_process_tells_its_reads():
    assert {Counter.READ_BYTES, Counter.RCHAR_BYTES, Counter.SYSCR} <= {reading.counter for reading in disk.build(PID).read()}
