"""The processes of a tree, and what /proc says of each. One that ends meanwhile, or is not ours to read, tells nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

TEXT_BYTES = 1 << 16


class Stat(NamedTuple):
    """Of /proc/<pid>/stat, what samplers need."""

    ended: bool
    """A zombie: it has its CPU time left, and nothing else."""
    cpu_ticks: int
    """User and system, of its children that have ended too."""
    major_faults: int
    threads: int
    rss_pages: int


def text(path: Path | str, most_bytes: int = TEXT_BYTES) -> str | None:
    """What a file of the kernel says now, at most so much of it. None: there is none, or it is not for us. About 10 us."""
    with suppress(OSError):
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(file, most_bytes).decode(errors="replace")
        finally:
            os.close(file)
    return None


def tree(pid: int, proc: Path) -> list[int]:
    """The process and its children, and theirs, parents first. Empty: it has ended, or there is no /proc.

    Asking each thread for the children that it started costs about 10 us a thread, and not all of /proc as psutil does.
    """
    if not os.path.exists(f"{proc}/{pid}"):
        return []
    if not os.path.exists(f"{proc}/{pid}/task/{pid}/children"):  # a kernel without CONFIG_PROC_CHILDREN
        return [pid, *_descendants(pid)]
    found = [pid]
    for each in found:
        found += (child for child in _children(each, proc) if child not in found)
    return found


def stats(pid: int, proc: Path) -> Iterator[tuple[int, Stat]]:
    """Of each process of the tree its number and what it has used."""
    for each in tree(pid, proc):
        known = stat(text(f"{proc}/{each}/stat"))
        if known is not None:
            yield each, known


def stat(line: str | None) -> Stat | None:
    """From the text of /proc/<pid>/stat; None if it is none."""
    fields = (line or "").rpartition(")")[2].split()  # the name before it may hold spaces and parentheses
    if len(fields) < 22:
        return None
    return Stat(
        ended=fields[0] in "ZXx",
        cpu_ticks=sum(int(ticks) for ticks in fields[11:15]),
        major_faults=int(fields[9]),
        threads=int(fields[17]),
        rss_pages=int(fields[21]),
    )


def numbers(lines: str | None, separator: str = ":") -> dict[str, int]:
    """`name: 12 kB` on each line, as numbers by name."""
    pairs = (line.partition(separator) for line in (lines or "").splitlines())
    words = ((name, rest.split()) for name, _, rest in pairs)
    return {name: int(value[0]) for name, value in words if value and value[0].isdigit()}


def _children(pid: int, proc: Path) -> Iterator[int]:
    with suppress(OSError):
        for thread in os.listdir(f"{proc}/{pid}/task"):
            yield from (int(child) for child in (text(f"{proc}/{pid}/task/{thread}/children") or "").split())


def _descendants(pid: int) -> list[int]:
    with suppress(psutil.Error):
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    return []
