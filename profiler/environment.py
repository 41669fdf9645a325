"""What the machine is and how busy others keep it: read, never judged. What cannot be told is None."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath
from typing import Any

import psutil

from .clocks import PROC

SHM = Path("/dev/shm")
DISTRIBUTIONS = ("stallscope", "torch", "tensorflow", "numpy", "Pillow", "pyarrow")
GIT_TIMEOUT_S = 2.0
NO_LIMIT_BYTES = 1 << 60
"""cgroup v1 writes "no limit" as the largest number of whole pages."""


def describe(proc: Path = PROC, shm: Path = SHM, cwd: Path | None = None) -> dict[str, Any]:
    """The machine and the software, as JSON values; a few milliseconds, and as long as git takes."""
    affinity, quota = affinity_cores(), quota_cores(proc)
    return {
        "usable_cores": usable_cores(None if affinity is None else len(affinity), quota),
        "affinity_cores": None if affinity is None else len(affinity),
        "quota_cores": quota,
        "cpu": cpu_model(proc),
        **_memory(),
        "memory_limit_bytes": memory_limit_bytes(proc),
        **_shm(shm),
        **_disk(cwd or Path.cwd()),
        "os": _os_name(),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in DISTRIBUTIONS},
        "git": git_state(cwd or Path.cwd()),
        "schedstat_available": _read(proc / "thread-self/schedstat") is not None,
    }


# Cores and limits


def affinity_cores(pid: int = 0) -> frozenset[int] | None:
    """The numbers of the cores that a process may run on; 0: this one. Raises OSError once it has ended."""
    return frozenset(os.sched_getaffinity(pid)) if hasattr(os, "sched_getaffinity") else None


def usable_cores(affinity: int | None, quota: float | None) -> float | None:
    """Cores' worth of time that this process can get: a quota of 1.5 on 8 cores is 1.5."""
    known = [float(cores) for cores in (affinity, quota) if cores is not None]
    return min(known, default=None)


def quota_cores(proc: Path = PROC) -> float | None:
    """The tightest CPU quota of the process's cgroups; None: no quota. A quota shows in a run as run-queue delay."""
    v2 = (_quota(_read(level / "cpu.max")) for level in cgroup_levels(proc, "cgroup2"))
    v1 = (
        _quota(f"{_read(level / 'cpu.cfs_quota_us')} {_read(level / 'cpu.cfs_period_us')}")
        for level in cgroup_levels(proc, "cpu")
    )
    return min((cores for cores in (*v2, *v1) if cores is not None), default=None)


def memory_limit_bytes(proc: Path = PROC) -> int | None:
    """The tightest memory limit of the process's cgroups; None: no limit. The page cache counts towards it."""
    v2 = (_limit(_read(level / "memory.max")) for level in cgroup_levels(proc, "cgroup2"))
    v1 = (_limit(_read(level / "memory.limit_in_bytes")) for level in cgroup_levels(proc, "memory"))
    return min((limit for limit in (*v2, *v1) if limit is not None), default=None)


def _quota(text: str | None) -> float | None:
    """`"150000 100000"`, quota and period in microseconds, is 1.5; "max" (v2) and -1 (v1) are no quota."""
    try:
        quota_us, period_us = (int(word) for word in (text or "").split())
    except ValueError:
        return None
    return quota_us / period_us if quota_us > 0 and period_us > 0 else None


def _limit(text: str | None) -> int | None:
    limit = int(text) if text is not None and text.isdigit() else NO_LIMIT_BYTES
    return limit if limit < NO_LIMIT_BYTES else None


def cgroup_levels(proc: Path, controller: str, pid: int | None = None) -> Iterator[Path]:
    """The process's cgroup directory of a controller (`cgroup2` is v2's only hierarchy), then its parents up to the mount."""
    own = _cgroup_paths(proc, "self" if pid is None else str(pid))
    for line in (_read(proc / "self/mountinfo") or "").splitlines():
        before, _, after = line.partition(" - ")
        _, _, _, root, mount_point, *_ = [*before.split(), *[""] * 5]
        fs_type, _, options = [*after.split(), *[""] * 3][:3]
        serves = {"cgroup2"} if fs_type == "cgroup2" else set(options.split(",")) if fs_type == "cgroup" else set()
        if controller in serves and controller in own:
            yield from _up_to(Path(mount_point), _below(own[controller], root))


def _cgroup_paths(proc: Path, process: str) -> dict[str, PurePosixPath]:
    """Of each controller: the process's cgroup, as a path in that hierarchy. Lines read `4:cpu,cpuacct:/docker/ab12`."""
    paths = {}
    for line in (_read(proc / process / "cgroup") or "").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        paths.update(dict.fromkeys(controllers.split(",") if controllers else ["cgroup2"], PurePosixPath(path)))
    return paths


def _below(path: PurePosixPath, root: str) -> PurePosixPath:
    """Where the cgroup is in a mount that shows what lies below `root`; else the mount is the container's own."""
    try:
        below = path.relative_to(root)
    except ValueError:
        return PurePosixPath()
    return PurePosixPath() if ".." in below.parts else below


def _up_to(mount: Path, below: PurePosixPath) -> Iterator[Path]:
    return (mount / level for level in (below, *below.parents))


# What others take of the CPU


@dataclass(frozen=True)
class CpuReading:
    """CPU time used so far, at one instant: only the difference of two readings says anything."""

    at_ns: int
    """When it was read, on the clock that the caller gave."""
    busy_s: float
    """Busy time of the cores that this process may run on, whoever used them. Counted in ticks of 10 ms a core."""
    own_s: float
    """Of this process and its children, living and ended. A child that detached itself is missing, and counts as foreign."""


def read_cpu(clock: Callable[[], int], proc: Path = PROC) -> CpuReading | None:
    """None where the system does not tell busy time by core. About 1 ms: looking for children reads all of /proc."""
    cores, stat = affinity_cores(), _read(proc / "stat")
    busy_s = None if cores is None or stat is None else busy_core_s(stat, cores, os.sysconf("SC_CLK_TCK"))
    if busy_s is None:
        return None
    return CpuReading(at_ns=clock(), busy_s=busy_s, own_s=_own_tree_s())


def busy_core_s(stat: str, cores: frozenset[int], ticks_per_s: int) -> float | None:
    """Busy seconds of these cores since boot, from the text of /proc/stat; None if one is not listed.

    By number and not by position: a core that is switched off has no line. Busy is user, nice, system, irq and softirq;
    stolen time is neither ours nor another process's, and guests are already in user.
    """
    ticks = {}
    for line in stat.splitlines():
        name, *counts = line.split() or [""]
        if name.startswith("cpu") and name[3:].isdigit():
            user, nice, system, _idle, _iowait, irq, softirq = (int(count) for count in counts[:7])
            ticks[int(name[3:])] = user + nice + system + irq + softirq
    return sum(ticks[core] for core in cores) / ticks_per_s if cores <= ticks.keys() else None


def foreign_cpu_share(before: CpuReading | None, after: CpuReading | None, cores: float | None) -> float | None:
    """What processes outside this one's tree took of the usable cores meanwhile, 0..1 (clamped: ticks are coarse)."""
    if before is None or after is None or not cores or after.at_ns <= before.at_ns:
        return None
    foreign_s = (after.busy_s - before.busy_s) - (after.own_s - before.own_s)
    return min(1.0, max(0.0, foreign_s / (cores * (after.at_ns - before.at_ns) / 1e9)))


def cpu_cores(before: CpuReading | None, after: CpuReading | None) -> float | None:
    """CPU that this process's tree used between two readings, in cores."""
    if before is None or after is None or after.at_ns <= before.at_ns:
        return None
    return (after.own_s - before.own_s) / ((after.at_ns - before.at_ns) / 1e9)


def tree_memory_bytes(pid: int) -> int | None:
    """Memory of a process and its children now, each shared page counted once (PSS). None where the system tells no PSS.

    The kernel walks their page tables for it: a few milliseconds a process, so not more often than once a second.
    """
    with suppress(psutil.Error):
        root = psutil.Process(pid)
        sizes = [_memory_bytes(process) for process in (root, *root.children(recursive=True))]
        return None if None in sizes else sum(size or 0 for size in sizes)
    return None


def _memory_bytes(process: psutil.Process) -> int | None:
    with suppress(psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
        return getattr(process.memory_full_info(), "pss", None)
    return 0  # it has just ended


def _own_tree_s() -> float:
    own = os.times()
    total_s = own.user + own.system + own.children_user + own.children_system
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it ended meanwhile: its parent has its time now
            total_s += sum(child.cpu_times()[:4])
    return total_s


# Software and the rest


def git_state(cwd: Path) -> dict[str, Any] | None:
    """Revision of the checkout that holds `cwd`, and whether tracked files differ from it; None: no checkout, or no git."""
    revision = _git(cwd, "rev-parse", "--verify", "HEAD")
    if not revision:
        return None
    changes = _git(cwd, "status", "--porcelain", "--untracked-files=no")
    return {"revision": revision, "dirty": None if changes is None else bool(changes)}


def _git(cwd: Path, *arguments: str) -> str | None:
    # Only reads: takes no lock, and runs no program that the checkout's own configuration names as its file-system monitor.
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", *arguments]
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=GIT_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _version(distribution: str) -> str | None:
    """From the metadata: asking a framework itself would import it."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _memory() -> Mapping[str, int]:
    memory = psutil.virtual_memory()
    return {"memory_total_bytes": memory.total, "memory_available_bytes": memory.available}


def _disk(folder: Path) -> Mapping[str, int | None]:
    """Of the disk that runs are written to, if they are written below here."""
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        return {"disk_total_bytes": None, "disk_free_bytes": None}
    return {"disk_total_bytes": usage.total, "disk_free_bytes": usage.free}


def _shm(shm: Path) -> Mapping[str, int | None]:
    """Worker processes hand tensors over in shared memory: 64 MiB, as containers have it, is soon full."""
    try:
        disk = os.statvfs(shm)
    except OSError:
        return {"shm_total_bytes": None, "shm_free_bytes": None}
    return {"shm_total_bytes": disk.f_frsize * disk.f_blocks, "shm_free_bytes": disk.f_frsize * disk.f_bavail}


def cpu_model(proc: Path = PROC) -> str | None:
    fields = (line.partition(":") for line in (_read(proc / "cpuinfo") or "").splitlines())
    return next((value.strip() for name, _, value in fields if name.strip() == "model name"), platform.processor() or None)


def _os_name() -> str | None:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system() or None


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
