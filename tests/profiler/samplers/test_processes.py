import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from profiler.samplers import _processes
from tests.profiler.samplers.conftest import HELPER, WORKER

PID = os.getpid()


def test_the_tree_is_children_and_theirs_parents_first(machine):
    assert _processes.tree(PID, machine.proc) == [PID, WORKER, HELPER]


def test_children_that_any_thread_started_are_in_the_tree(machine):
    machine.process(4_500_002)
    machine.write(f"proc/{PID}/task/4500009/children", "4500002")
    assert set(_processes.tree(PID, machine.proc)) == {PID, WORKER, HELPER, 4_500_002}


def test_a_process_that_vanishes_is_left_out(machine):
    (machine.proc / str(WORKER) / "stat").unlink()
    assert [pid for pid, _ in _processes.stats(PID, machine.proc)] == [PID, HELPER]


def test_nothing_is_known_of_a_tree_that_has_ended(machine):
    shutil.rmtree(machine.proc / str(PID))
    assert _processes.tree(PID, machine.proc) == []


@pytest.mark.parametrize("line", [None, "", "12 (python) S 1 2", "garbage"])
def test_a_line_that_is_cut_short_is_no_stat(line):
    assert _processes.stat(line) is None


def test_a_name_with_parentheses_is_skipped(machine):
    stat = _processes.stat((machine.proc / str(PID) / "stat").read_text())
    assert stat == _processes.Stat(ended=False, cpu_ticks=127, major_faults=7, threads=12, rss_pages=1000)


def test_numbers_by_name():
    assert _processes.numbers("Rss:  12 kB\nName: python\nPss: 3 kB\n\nodd") == {"Rss": 12, "Pss": 3}


def test_a_kernel_that_lists_no_children_is_asked_in_another_way(machine):
    """What psutil finds are real processes."""
    (machine.proc / str(PID) / "task" / str(PID) / "children").unlink()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1) as child:
        assert {PID, child.pid} <= set(_processes.tree(PID, machine.proc))
        child.communicate(b"\n")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc (Linux)")
def test_the_real_tree_has_a_real_child():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1) as child:
        known = dict(_processes.stats(PID, Path("/proc")))
        child.communicate(b"\n")
    assert known[PID].threads >= 1
    assert known[child.pid].rss_pages > 0
