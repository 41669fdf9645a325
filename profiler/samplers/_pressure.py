"""Pressure stall information (PSI): how long threads stood still because cores, memory or I/O were short."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..environment import cgroup_levels
from ..events import Counter, Reading
from ._processes import text


class Pressure:
    """One resource's pressure: that of the process's own cgroup (v2) where the kernel keeps it, else the whole machine's."""

    def __init__(self, resource: str, counter: Counter, pid: int, proc: Path) -> None:
        self._counter = counter
        own = (level / f"{resource}.pressure" for level in list(cgroup_levels(proc, "cgroup2", pid))[:1])
        places = [*((path, pid) for path in own), (proc / "pressure" / resource, 0)]
        self._place = next((place for place in places if _some_us(text(place[0])) is not None), None)

    def read(self) -> Iterator[Reading]:
        path, pid = self._place or (None, 0)
        some_us = None if path is None else _some_us(text(path))
        if some_us is not None:
            yield Reading(self._counter, pid, some_us)


def _some_us(lines: str | None) -> int | None:
    """From `some avg10=0.00 avg60=0.12 avg300=0.12 total=1346877828`: at least one thread stood still, in microseconds."""
    some = next((line for line in (lines or "").splitlines() if line.startswith("some ")), "")
    total = some.rpartition("total=")[2]
    return int(total) if total.isdigit() else None
