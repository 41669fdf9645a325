"""Recording from inside a program: `with stallscope.record("runs/mine") as rec:`, or one line, `stallscope.watch(loader)`.

Every DataLoader that is iterated meanwhile is recorded as `trace` does it, with the same hooks, which are taken out at the end.
Inside the program's loop nothing is raised, printed or waited for.
"""

from __future__ import annotations

import atexit
import base64
import html
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from . import attach
from .attach import LOOPS, Recorder, append_line
from .errors import UserError
from .events import Kind

if TYPE_CHECKING:
    from .conclude import Concluded
    from .result import Finding, Result

BatchT = TypeVar("BatchT")


class Batches(Generic[BatchT]):
    """Any iterable of batches, recorded each time it is iterated. Everything else of it is as it was."""

    def __init__(self, batches: Iterable[BatchT], recorder: Recorder) -> None:
        self._batches, self._recorder = batches, recorder

    def __iter__(self) -> Iterator[BatchT]:
        return self._recorder.batches(self._batches)

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._batches, name)


class Recording:
    """One run, from entering the context to leaving it; what was found is there afterwards.

    Raises UserError on entering if its directory is there already, and never again.
    """

    def __init__(self, out: str | Path | None = None, name: str | None = None) -> None:
        self.name = name or _script_name()
        self._out = None if out is None else Path(out)
        self.folder: Path | None = None
        """The run directory."""
        self.trouble: Exception | None = None
        """What kept it from being recorded or concluded."""
        self._recorder: Recorder | None = None
        self._computes = False
        self._ends: list[Callable[[str | None], None]] = []
        self._concluded: Concluded | None = None

    def __enter__(self) -> Recording:
        if attach.active is not None:  # it is traced, or recorded, already: this is a part of that
            self._recorder = attach.active
            return self
        from .places import fresh

        self.folder = self._out or fresh(Path("runs"), self.name)
        self._recorder, self._ends = _begin(self.folder, self.name)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        stopped_by = None if kind is None else kind.__name__
        for end in self._ends:
            with self._careful():
                end(stopped_by)
        if self.folder is not None and self._ends:
            with self._careful():
                from .conclude import keep

                self._concluded = keep(self.folder)
        self._ends = []

    @contextmanager
    def _careful(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.trouble = error

    def batches(self, batches: Iterable[BatchT]) -> Iterable[BatchT]:
        """The same batches, recorded. A DataLoader needs this not: it is recorded wherever it is iterated."""
        if self._recorder is None or _is_followed(batches):
            return batches
        return Batches(batches, self._recorder)

    @contextmanager
    def compute(self) -> Iterator[None]:
        """What is in it stands for the device's work in this step."""
        started = time.perf_counter_ns()
        try:
            yield
        finally:
            if self._recorder is not None:
                self._say_what_the_device_is(self._recorder)
                self._recorder.span(Kind.BUSY, started)

    def _say_what_the_device_is(self, recorder: Recorder) -> None:
        if not self._computes:
            self._computes = True
            recorder.announce({"device": {"method": "model_step"}})

    # What was found

    @property
    def result(self) -> Result:
        """All numbers. Raises UserError before the end of the recording, or where it failed."""
        return self._found().result

    @property
    def findings(self) -> list[Finding]:
        return list(self._found().diagnosis.findings)

    def _found(self) -> Concluded:
        if self._concluded is None:
            why = f": {type(self.trouble).__name__}: {self.trouble}" if self.trouble else ": it has not ended"
            raise UserError(f"this recording has no result{why}") from self.trouble
        return self._concluded

    def to_dict(self) -> dict[str, Any]:
        """The content of result.json."""
        from .result import to_json

        found = self._found()
        return to_json(found.result, found.diagnosis)

    def to_dataframe(self) -> Any:
        """One row a step: epoch, step, wait_ms, step_ms, n_samples. Needs pandas."""
        import pandas  # type: ignore[import-untyped]

        from .timeline import timeline

        line = timeline(self._found().run)
        if line is None:
            return pandas.DataFrame()
        steps = line.steps
        times = {"wait_ms": (steps.got - steps.asked) / 1e6, "step_ms": (steps.ended - steps.asked) / 1e6}
        return pandas.DataFrame({"epoch": steps.epoch, **times, "n_samples": steps.n_samples})

    def __str__(self) -> str:
        from .conclude import draw

        return str(draw(self._found(), "text"))

    def _repr_html_(self) -> str:
        """In a notebook: the report, and the picture."""
        from .conclude import draw

        picture = base64.b64encode(draw(self._found(), "png")).decode()  # type: ignore[arg-type]
        return f'<pre>{html.escape(str(self))}</pre><img src="data:image/png;base64,{picture}" style="max-width:100%">'


def _begin(folder: Path, name: str) -> tuple[Recorder, list[Callable[[str | None], None]]]:
    """Hooks, and a thread that keeps what they tell. Returns what ends it, step by step, told of which exception."""
    from .following import follow
    from .keeper import Keeper, header
    from .ring import RingReader, RingWriter, create
    from .runfile import MAKING, RunWriter
    from .sampler import Samplers

    file = create()
    keeper = Keeper(RunWriter(folder), folder, RingReader(file))
    recorder = Recorder(RingWriter(file), folder / MAKING, append_line(folder / MAKING / LOOPS))
    os.close(file)
    keeper.begin(header(name, sys.argv, os.getpid()))
    attach.active = recorder
    unfollow = follow(recorder)
    samplers = Samplers(os.getpid(), keeper.write_counts)
    samplers.__enter__()
    ended = threading.Event()

    def keep() -> None:
        while not ended.wait(keeper.patience_s):
            keeper.take()

    thread = threading.Thread(target=keep, name="stallscope-keeper", daemon=True)
    thread.start()

    def stop(stopped_by: str | None) -> None:
        recorder.stop()
        attach.active = None
        ended.set()
        thread.join()
        samplers.__exit__()
        keeper.end(stopped_by, {**samplers.faults, **recorder.faults})

    return recorder, [lambda _: unfollow(), stop]


def record(out: str | Path | None = None, name: str | None = None) -> Recording:
    """Records all that is loaded while its context is entered. out: the run directory; else runs/NAME-TIME."""
    return Recording(out, name)


def watch(batches: Iterable[BatchT]) -> Iterable[BatchT]:
    """The same batches, recorded from now to the end of the program, which then says where the report is."""
    if attach.active is None:
        recording = Recording()
        with suppress(UserError, OSError):
            recording.__enter__()
            atexit.register(_tell, recording, os.getpid())
    recorder = attach.active
    return batches if recorder is None or _is_followed(batches) else Batches(batches, recorder)


def _tell(recording: Recording, pid: int) -> None:
    """At the program's end. A forked child has none of it."""
    if os.getpid() == pid:
        recording.__exit__(None, None, None)
        with suppress(UserError):
            print(f"{recording}\n\nDraw this again: stallscope report {recording.folder}", file=sys.stderr)


def _is_followed(batches: Any) -> bool:
    """Whether its own iterators are recorded."""
    data = sys.modules.get("torch.utils.data")
    return data is not None and isinstance(batches, data.DataLoader)


def _script_name() -> str:
    return Path(sys.argv[0] if sys.argv else "").stem.lstrip("-") or "python"
