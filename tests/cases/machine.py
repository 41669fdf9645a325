"""What a case takes from the machine, and gives back: folders, control groups, private mounts, processes of others.

A machine that does not grant it raises Unavailable, and run.py ends with the status that stands for a skipped case.
"""

import atexit
import ctypes
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

CLONE_NEWNS = 0x00020000
QUOTA_PERIOD_US = 100_000
BLAS_SETTERS = ("scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads", "openblas_set_num_threads")
SPINNER = "timeout {seconds} sh -c 'while :; do :; done' > /dev/null 2>&1 & echo $!"


class Unavailable(Exception):
    """The machine lacks what a case needs."""


def scratch_folder(parent=None):
    """A folder for this run only."""
    folder = tempfile.mkdtemp(prefix="stallscope-case-", dir=parent)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def limit_descriptors(count):
    """Lets this process, and those that it starts, have so many files open."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, most))


def private_shared_memory(mib):
    """Puts a /dev/shm of so many MiB before the machine's, which only this process and its children see."""
    if ctypes.CDLL(None).unshare(CLONE_NEWNS) != 0:
        raise Unavailable("root, to mount a /dev/shm of its own")
    for arguments in (["--make-rprivate", "/"], ["-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", "/dev/shm"]):
        if subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode != 0:
            raise Unavailable("a kernel that lets root mount a /dev/shm of its own")


def limit_cpu(cores):
    """Moves this process into a control group with a quota, which is what `docker run --cpus` does."""
    group, limit, text = _cpu_group(cores)
    parent = group.parent
    group.mkdir()
    atexit.register(_leave, group, parent)
    (group / limit).write_text(text)
    (group / "cgroup.procs").write_text(str(os.getpid()))


def _cpu_group(cores):
    """The folder of a new group, and the file and the words that limit it: they differ between cgroup 1 and 2."""
    root, quota_us = Path("/sys/fs/cgroup"), round(cores * QUOTA_PERIOD_US)
    name = f"stallscope-case-{os.getpid()}"
    if os.access(root / "cpu" / "cpu.cfs_quota_us", os.W_OK):
        return root / "cpu" / name, "cpu.cfs_quota_us", str(quota_us)
    granted = root / "cgroup.subtree_control"
    if os.access(granted, os.W_OK) and "cpu" in granted.read_text().split():
        return root / name, "cpu.max", f"{quota_us} {QUOTA_PERIOD_US}"
    raise Unavailable("root and a cpu control group that may be written, or run it by hand under docker run --cpus=0.4")


def _leave(group, parent):
    """A group can go when nobody is in it; this process is about to end, so it may as well do so in the parent."""
    (parent / "cgroup.procs").write_text(str(os.getpid()))
    try:
        group.rmdir()
    except OSError as error:
        print(f"{group} stays: {error}", file=sys.stderr)


def set_blas_threads(count):
    """Lets numpy's linear algebra use so many threads in this process, by the function that its OpenBLAS has for it."""
    loaded = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "openblas" in line}
    for library in map(ctypes.CDLL, sorted(loaded)):
        for name in BLAS_SETTERS:
            if setter := getattr(library, name, None):
                setter(count)
                return
    raise Unavailable("a numpy that computes with OpenBLAS")


def start_stranger(seconds):
    """Starts a process that computes and is nobody's here: its session is its own, and its parent has ended."""
    started = subprocess.run(
        ["sh", "-c", SPINNER.format(seconds=seconds)], start_new_session=True, stdout=subprocess.PIPE, text=True, check=True
    )
    atexit.register(_stop, int(started.stdout))


def _stop(pid):
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
