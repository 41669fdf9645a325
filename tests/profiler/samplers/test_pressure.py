import os

import pytest

from profiler.events import Counter, Reading
from profiler.samplers._pressure import Pressure

PID = os.getpid()
LINES = "some avg10=0.00 avg60=0.12 avg300=0.12 total={}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9"


def read(machine):
    return list(Pressure("io", Counter.IO_PRESSURE_US, PID, machine.proc).read())


def test_the_machines_pressure(machine):
    machine.write("proc/pressure/io", LINES.format(1346877828))
    assert read(machine) == [Reading(Counter.IO_PRESSURE_US, 0, 1346877828)]


def test_the_cgroups_own_pressure_comes_first(v2):
    v2.write("proc/pressure/io", LINES.format(1000))
    v2.write("cg/io.pressure", LINES.format(500))
    v2.write("cg/slice/job/io.pressure", LINES.format(30))
    assert read(v2) == [Reading(Counter.IO_PRESSURE_US, PID, 30)]


def test_a_group_that_encloses_the_own_one_is_not_asked(v2):
    v2.write("proc/pressure/io", LINES.format(1000))
    v2.write("cg/slice/io.pressure", LINES.format(500))
    assert read(v2) == [Reading(Counter.IO_PRESSURE_US, 0, 1000)]


@pytest.mark.parametrize("text", ["", "garbage", "full avg10=0.00 total=9", "some avg10=0.00 total="])
def test_a_kernel_that_does_not_tell_pressure_makes_no_row(machine, text):
    machine.write("proc/pressure/io", text)
    assert read(machine) == []


def test_without_pressure_files_there_is_no_row(machine):
    assert read(machine) == []
