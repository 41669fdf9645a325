import os

import pytest

from tests.fakes import Machine

WORKER, HELPER = 4_500_000, 4_500_001
"""More than a kernel's largest process number, so that no real process is meant."""


@pytest.fixture
def machine(tmp_path):
    """A tree of three on a kernel without PSI: this process, its worker, and the worker's helper."""
    machine = Machine(tmp_path)
    machine.process(os.getpid(), [WORKER], utime=100, stime=20, cutime=3, cstime=4, majflt=7, num_threads=12, rss=1000)
    machine.process(WORKER, [HELPER], utime=50, num_threads=3, rss=500)
    machine.process(HELPER, stime=10, num_threads=1, rss=50)
    return machine


@pytest.fixture
def v2(machine):
    machine.write(f"proc/{os.getpid()}/cgroup", "0::/slice/job")
    machine.mounts(("cg", "/", "cgroup2", "nsdelegate"))
    return machine
