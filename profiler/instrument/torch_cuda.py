"""When a CUDA device was busy with a program's steps: two events a step on its current stream. Nothing here waits for it.

A step's span reaches from the moment at which its batch was had, and the work before it was done, to the end of all that was
launched until the next batch is asked for. Gaps within count as busy: it is an upper bound.
"""

from __future__ import annotations

import functools
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from ..attach import Loop, Recorder, replace
from ..events import Kind


def begin(recorder: Recorder) -> CudaSteps | None:
    """None as long as the program has no CUDA device in use."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    recorder.announce({"device": {"kind": "cuda", "name": torch.cuda.get_device_name(), "method": "events"}})
    recorder.undone.append(replace(torch.cuda, "synchronize", functools.partial(_synchronize, recorder)))
    return CudaSteps(torch.cuda)


def _synchronize(recorder: Recorder, own: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(own)
    def synchronize(*arguments: Any, **named: Any) -> None:
        started = time.perf_counter_ns()
        own(*arguments, **named)
        recorder.span(Kind.SYNC, started)

    return synchronize


class CudaSteps:
    """Event times are counted from an anchor, the latest event whose place on the host's clock is known. The first one happens
    as it is recorded, or a little later: the device has nothing to do when the first batch comes."""

    def __init__(self, cuda: Any) -> None:
        self._cuda = cuda
        self._open: tuple[Loop, int, int, Any] | None = None
        self._pending: deque[tuple[Loop, int, int, Any, Any]] = deque()
        self._anchor: tuple[Any, int] | None = None

    def began(self, loop: Loop) -> None:
        """A batch was had."""
        self.ended()
        asked_ns = time.perf_counter_ns()
        event = self._event()
        if event is not None:
            self._anchor = self._anchor or (event, asked_ns)
            self._open = loop, loop.stamps.steps - 1, asked_ns, event

    def ended(self) -> None:
        """The next one is asked for."""
        if self._open is not None:
            event = self._event()
            if event is not None:
                self._pending.append((*self._open, event))
            self._open = None
            self._drain()

    def _event(self) -> Any:
        if self._cuda.is_current_stream_capturing():
            return None
        event = self._cuda.Event(enable_timing=True)
        event.record()
        return event

    def _drain(self) -> None:
        """Steps that have ended. The last is the next anchor: CUDA gives float32 milliseconds, exact only nearby."""
        while self._pending and self._pending[0][-1].query():
            loop, step, asked_ns, started, ended = self._pending.popleft()
            begun_ns, done_ns = self._host_ns(started), self._host_ns(ended)
            # Clocks drift, causes do not: it began after it was asked for, and had ended when that was seen.
            moved_ns = max(0, asked_ns - begun_ns) or min(0, time.perf_counter_ns() - done_ns)
            loop.stamps.note(Kind.BUSY, step, begun_ns + moved_ns, done_ns + moved_ns)
            self._anchor = ended, done_ns + moved_ns

    def _host_ns(self, event: Any) -> int:
        assert self._anchor is not None
        anchor, at_ns = self._anchor
        return int(at_ns + round(anchor.elapsed_time(event) * 1e6))
