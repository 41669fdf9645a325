"""Recording round a program's own loops: which loaders it iterates, and where its training thread is meanwhile.

What knows a framework is in instrument/; here is what all of them tell. Nothing is raised into the program: what goes wrong in
a hook is counted, and then a step, or a loader, is not recorded.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from .clocks import ThreadClocks
from .events import LEARNING, Kind
from .stamps import Rows, Watch

if TYPE_CHECKING:
    from .probe import Probe

BatchT = TypeVar("BatchT")
LOOPS = "loops.jsonl"
"""Beside the makers' records: a line a loop, as it is met."""
MOST_LOOPS = 64
"""A program that makes more loaders than this makes one a step, and keeps them: further ones join the last."""
OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep


active: Recorder | None = None
"""Who records in this process, if anybody does."""


@dataclass(frozen=True)
class Loop:
    """One loader of the program, in all its epochs."""

    number: int
    stamps: Watch
    probe: Probe


@dataclass(frozen=True)
class Limits:
    """What of a program is recorded."""

    steps: tuple[int, int | None] | None = None
    """Of each loop the first step, and the first one that is none of them any more."""
    for_ns: int | None = None
    """From the first iter() on."""


@dataclass
class _Known:
    loop: Loop
    like: tuple[Any, ...]
    loader: Callable[[], Any]


class Device(Protocol):
    """A witness of when an accelerator is busy. Waits for nothing."""

    def began(self, loop: Loop) -> None:
        """The program has a batch of that loop."""

    def ended(self) -> None:
        """It asks for the next one."""


class Recorder:
    """What a program's hooks tell, on its way to whoever keeps it.

    rows: takes spans. folder: where workers write. announce: takes what is known of a new loop or of the device, JSON values.
    """

    def __init__(
        self, rows: Rows, folder: Path, announce: Callable[[Mapping[str, Any]], None], limits: Limits | None = None
    ) -> None:
        self.rows, self.folder, self.announce = rows, folder, announce
        self._limits = limits or Limits()
        self.limited = self._limits != Limits()
        self._first_ns: int | None = None
        self.threads = ThreadClocks()
        self.on = True
        """Whether anything is recorded. Never in a forked child: its training, if any, is not this one's."""
        self.device: Device | None = None
        """The accelerator that the program uses, once it does."""
        self.undone: list[Callable[[], None]] = []
        """What takes hooks out that were put in on the way."""
        self.faults: dict[str, int] = {}
        self._known: list[_Known] = []
        self._trains_elsewhere = False
        self._local = threading.local()
        self._making = threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.stop)

    def stop(self) -> None:
        self.on = False

    def wants(self, loop: Loop) -> bool:
        """Whether the loop's next step is among those to be recorded."""
        if not self.limited or not self.on:
            return self.on
        now, stamps = time.perf_counter_ns(), loop.stamps
        self._first_ns = now if self._first_ns is None else self._first_ns
        if self._limits.for_ns is not None and now - self._first_ns > self._limits.for_ns:
            self.stop()
            return False
        first, last = self._limits.steps or (0, None)
        return first <= stamps.steps and (last is None or stamps.steps < last)

    @contextmanager
    def careful(self, what: str) -> Iterator[None]:
        """Our own mistakes stay ours."""
        try:
            yield
        except Exception:
            self.faults[what] = self.faults.get(what, 0) + 1

    def loop(self, loader: Any, settings: Mapping[str, Any], like: tuple[Any, ...]) -> Loop | None:
        """Of this loader. One that is made anew, for each epoch perhaps, is the loader that it takes the place of: it is
        iterated on the same line and is like it, and the other one is gone."""
        if not self.on:
            return None
        with self._making:
            place = where(sys._getframe(1))
            known = self._find(loader, (place, *like))
            if known is None:
                known = self._new(loader, settings, place, like)
            return known.loop

    def _find(self, loader: Any, like: tuple[Any, ...]) -> _Known | None:
        for known in self._known:
            if known.loader() is loader:
                return known
        for known in self._known:
            if known.like == like and known.loader() is None:
                known.loader = _weakly(loader)
                return known
        return self._known[-1] if len(self._known) >= MOST_LOOPS else None

    def _new(self, loader: Any, settings: Mapping[str, Any], place: tuple[str, int], like: tuple[Any, ...]) -> _Known:
        from .probe import Probe  # brings numpy, which a program that has no loader need not have

        number = len(self._known)
        stamps = Watch(loop=number, rows=self.rows, thread=self.threads)
        known = _Known(Loop(number, stamps, Probe(self.folder, number)), (place, *like), _weakly(loader))
        self._known.append(known)
        self.announce({"loop": number, "file": place[0], "line": place[1], **settings})
        return known

    def batches(self, batches: Iterable[BatchT]) -> Iterator[BatchT]:
        """One pass over any iterable, recorded. What it raises goes on."""
        kind = f"{type(batches).__module__}.{type(batches).__qualname__}"
        loop = None
        with self.careful("batches"):
            loop = self.loop(batches, {"kind": kind, **_UNKNOWN}, (type(batches),))
        if loop is None:
            yield from batches
            return
        for batch in loop.stamps.batches(batches, size_of):
            self.in_step(loop)
            yield batch

    def in_step(self, loop: Loop) -> None:
        """This thread has a batch of that loop: what it does next is the step's."""
        self._local.loop = loop

    def span(self, kind: Kind, started_ns: int) -> None:
        """Something that this thread did in its step has ended."""
        loop = getattr(self._local, "loop", None)
        if loop is not None and self.on:
            loop.stamps.note(kind, loop.stamps.steps - 1, started_ns, time.perf_counter_ns())
        elif kind in LEARNING and self._known and not self._trains_elsewhere:
            self._trains_elsewhere = True
            self.announce({"device": {"trains_elsewhere": True}})


_UNKNOWN = dict.fromkeys(("dataset", "dataset_samples", "batch_size")) | {"n_workers": 0, "prefetch_batches": 0}


def _weakly(loader: Any) -> Callable[[], Any]:
    """None once it is gone. What cannot be referred to weakly, a list, is taken for gone at once."""
    try:
        return weakref.ref(loader)
    except TypeError:
        return lambda: None


def size_of(batch: Any) -> int:
    """How many samples a batch holds, as far as it shows: the length of its first tensor or array; else 1."""
    for _ in range(8):
        shape = getattr(batch, "shape", None)
        if shape is not None:
            return int(shape[0]) if len(shape) else 1
        if isinstance(batch, Mapping) and batch:
            batch = next(iter(batch.values()))
        elif isinstance(batch, list | tuple) and batch:
            if not isinstance(batch[0], list | tuple | Mapping) and not hasattr(batch[0], "shape"):
                return len(batch)
            batch = batch[0]
        else:
            break
    return 1


def where(frame: FrameType | None) -> tuple[str, int]:
    """The innermost line that is the user's own, neither ours nor of an installed package; if there is none the outermost."""
    found = ("", 0)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((OURS, "<frozen")):
            found = file, frame.f_lineno
            if is_users(file):
                return found
        frame = frame.f_back
    return found


def is_users(file: str) -> bool:
    """Whether a source file belongs neither to the standard library nor to an installed package, nor to us."""
    installed = any(part in file for part in ("site-packages", "dist-packages"))
    return not installed and not file.startswith((_STDLIB, OURS, "<frozen", "<string>"))


_STDLIB = sysconfig.get_paths()["stdlib"] + os.sep


def replace(owner: Any, name: str, by: Callable[[Any], Any]) -> Callable[[], None]:
    """Puts by(what is there) into its place. Returns what undoes it, if nobody has put something else there since."""
    own = owner.__dict__[name]
    ours = by(own)
    setattr(owner, name, ours)

    def undo() -> None:
        if owner.__dict__.get(name) is ours:
            setattr(owner, name, own)

    return undo


def undo_all(undone: Iterable[Callable[[], None]]) -> None:
    for undo in undone:
        undo()


def allow_looking(by: int) -> None:
    """Where Linux lets only a parent look at a process (Yama), that process and what it starts may look at this one too."""
    with suppress(OSError, ValueError, AttributeError):
        if Path("/proc/sys/kernel/yama/ptrace_scope").read_text().strip() == "1":
            import ctypes

            ctypes.CDLL(None).prctl(0x59616D61, by, 0, 0, 0)  # PR_SET_PTRACER


def append_line(path: Path) -> Callable[[Mapping[str, Any]], None]:
    """Announces by appending to a file; a disk that refuses is not the program's trouble."""
    import json

    def announce(said: Mapping[str, Any]) -> None:
        with suppress(OSError), path.open("a") as file:
            file.write(json.dumps(said) + "\n")

    return announce
