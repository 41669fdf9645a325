import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from profiler import environment
from profiler.environment import CpuReading, busy_core_s, foreign_cpu_share, memory_limit_bytes, quota_cores, usable_cores
from tests.fakes import Machine

ROOT = Path(__file__).parents[2]


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.fixture
def v2(machine):
    machine.own("0::/slice/job")
    machine.mounts(("cg", "/", "cgroup2", "nsdelegate"))
    (machine.root / "cg/slice/job").mkdir(parents=True)
    return machine


@pytest.fixture
def v1(machine):
    machine.own("4:memory:/slice/job", "2:cpu,cpuacct:/slice/job", "1:name=systemd:/", "0::/")
    machine.mounts(
        ("cg/cpu,cpuacct", "/", "cgroup", "cpu,cpuacct"),
        ("cg/memory", "/", "cgroup", "memory"),
        ("cg/unified", "/", "cgroup2", ""),
    )
    return machine


def test_v2_quota_of_the_own_group(v2):
    v2.write("cg/slice/job/cpu.max", "150000 100000")
    assert quota_cores(v2.proc) == 1.5


def test_v2_tightest_level_holds(v2):
    v2.write("cg/slice/job/cpu.max", "400000 100000")
    v2.write("cg/slice/cpu.max", "25000 50000")
    v2.write("cg/cpu.max", "max 100000")
    assert quota_cores(v2.proc) == 0.5


def test_v2_no_quota(v2):
    v2.write("cg/slice/job/cpu.max", "max 100000")
    assert quota_cores(v2.proc) is None


def test_v2_memory_limit(v2):
    v2.write("cg/slice/job/memory.max", "max")
    v2.write("cg/slice/memory.max", "1073741824")
    assert memory_limit_bytes(v2.proc) == 1 << 30


def test_v1_tightest_level_holds(v1):
    v1.write("cg/cpu,cpuacct/slice/job/cpu.cfs_quota_us", "300000")
    v1.write("cg/cpu,cpuacct/slice/job/cpu.cfs_period_us", "100000")
    v1.write("cg/cpu,cpuacct/slice/cpu.cfs_quota_us", "200000")
    v1.write("cg/cpu,cpuacct/slice/cpu.cfs_period_us", "100000")
    v1.write("cg/cpu,cpuacct/cpu.cfs_quota_us", "-1")
    v1.write("cg/cpu,cpuacct/cpu.cfs_period_us", "100000")
    assert quota_cores(v1.proc) == 2.0


def test_v1_no_limits(v1):
    v1.write("cg/cpu,cpuacct/slice/job/cpu.cfs_quota_us", "-1")
    v1.write("cg/cpu,cpuacct/slice/job/cpu.cfs_period_us", "100000")
    v1.write("cg/memory/slice/job/memory.limit_in_bytes", "9223372036854771712")
    assert quota_cores(v1.proc) is None
    assert memory_limit_bytes(v1.proc) is None


def test_v1_memory_limit(v1):
    v1.write("cg/memory/slice/job/memory.limit_in_bytes", "2147483648")
    v1.write("cg/memory/memory.limit_in_bytes", "9223372036854771712")
    assert memory_limit_bytes(v1.proc) == 2 << 30


@pytest.mark.parametrize(
    "seen", ["/docker/ab12", "/", "/../other"], ids=["as the host names it", "namespace", "outside of the mount"]
)
def test_a_container_sees_its_own_group_as_the_mount(machine, seen):
    machine.own(f"0::{seen}")
    machine.mounts(("cg", "/" if seen == "/" else "/docker/ab12", "cgroup2", "rw"))
    machine.write("cg/cpu.max", "50000 100000")
    assert quota_cores(machine.proc) == 0.5


def test_a_neighbours_quota_is_not_ours(v2):
    v2.write("cg/slice/other/cpu.max", "1000 100000")
    assert quota_cores(v2.proc) is None


@pytest.mark.parametrize("text", ["", "garbage", "0 100000", "100000 0", "1 2 3"])
def test_an_unreadable_quota_is_none(v2, text):
    v2.write("cg/slice/job/cpu.max", text)
    assert quota_cores(v2.proc) is None


def test_without_proc_nothing_is_known(tmp_path):
    nowhere = tmp_path / "none"
    assert quota_cores(nowhere) is None
    assert memory_limit_bytes(nowhere) is None
    assert environment.read_cpu(time.perf_counter_ns, nowhere) is None
    about = environment.describe(proc=nowhere, shm=nowhere, cwd=tmp_path)
    assert (about["schedstat_available"], about["shm_total_bytes"], about["git"]) == (False, None, None)


@pytest.mark.parametrize(
    ("affinity", "quota", "expected"), [(8, None, 8.0), (8, 1.5, 1.5), (1, 1.5, 1.0), (None, 2.0, 2.0), (None, None, None)]
)
def test_usable_cores_is_the_tighter_of_affinity_and_quota(affinity, quota, expected):
    assert usable_cores(affinity, quota) == expected


def test_describe_is_json_and_imports_no_framework():
    code = (
        "import json, sys; from profiler.environment import describe; print(json.dumps(describe(), allow_nan=False));"
        "sys.exit(', '.join({'torch', 'tensorflow', 'numpy', 'PIL', 'pyarrow'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    about = json.loads(done.stdout)
    assert about["memory_total_bytes"] > 0
    assert set(about["versions"]) == set(environment.DISTRIBUTIONS)


# user nice system idle iowait irq softirq steal guest guest_nice
STAT = """cpu  60 0 0 0 0 0 0 0 0 0
cpu0 10 20 30 1000 500 4 6 700 9 9
cpu2 50 0 50 1000 0 0 0 0 0 0
intr 1 2 3"""


def test_busy_leaves_out_idle_iowait_steal_and_guests():
    assert busy_core_s(STAT, frozenset({0}), ticks_per_s=100) == 0.70


def test_busy_of_only_the_cores_that_may_be_used():
    assert busy_core_s(STAT, frozenset({2}), ticks_per_s=100) == 1.0
    assert busy_core_s(STAT, frozenset({0, 2}), ticks_per_s=100) == 1.70


def test_a_core_without_a_line_makes_busy_unknown():
    assert busy_core_s(STAT, frozenset({0, 1}), ticks_per_s=100) is None


def reading(at_s, busy_s, own_s):
    return CpuReading(at_ns=int(at_s * 1e9), busy_s=busy_s, own_s=own_s)


def test_foreign_is_what_we_did_not_use():
    assert foreign_cpu_share(reading(0, 5, 1), reading(10, 20, 6), 2.0) == 0.5


def test_foreign_is_clamped():
    assert foreign_cpu_share(reading(0, 0, 0), reading(1, 1.00, 1.01), 2.0) == 0.0
    assert foreign_cpu_share(reading(0, 0, 0), reading(1, 2.01, 0.00), 2.0) == 1.0


def test_foreign_is_unknown_without_readings_cores_or_time():
    assert foreign_cpu_share(None, reading(1, 0, 0), 2.0) is None
    assert foreign_cpu_share(reading(0, 0, 0), None, 2.0) is None
    assert foreign_cpu_share(reading(0, 0, 0), reading(1, 0, 0), None) is None
    assert foreign_cpu_share(reading(1, 0, 0), reading(1, 0, 0), 2.0) is None


needs_stat = pytest.mark.skipif(not Path("/proc/stat").exists(), reason="needs /proc/stat (Linux)")
SPIN = "import time\nwhile time.process_time() < 0.3: pass"


@needs_stat
def test_own_time_includes_children_that_live_and_that_ended():
    before = environment.read_cpu(time.perf_counter_ns)
    subprocess.run([sys.executable, "-c", SPIN], check=True)
    ended = environment.read_cpu(time.perf_counter_ns)
    with subprocess.Popen([sys.executable, "-c", f"{SPIN}\nprint(flush=True)\ninput()"], stdin=-1, stdout=-1) as child:
        child.stdout.readline()
        living = environment.read_cpu(time.perf_counter_ns)
        child.communicate(b"\n")
    assert ended.own_s - before.own_s >= 0.28
    assert living.own_s - ended.own_s >= 0.28


def git(cwd, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True)


def test_git_state(tmp_path):
    assert environment.git_state(tmp_path) is None
    git(tmp_path, "init")
    assert environment.git_state(tmp_path) is None
    (tmp_path / "train.py").write_text("1")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    clean = environment.git_state(tmp_path)
    assert len(clean["revision"]) == 40
    assert clean["dirty"] is False
    (tmp_path / "train.py").write_text("2")
    assert environment.git_state(tmp_path) == {"revision": clean["revision"], "dirty": True}


def test_git_state_without_git(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert environment.git_state(tmp_path) is None
