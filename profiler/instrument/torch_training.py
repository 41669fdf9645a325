"""torch's backward passes and optimizers: when the training thread is in them. Through public functions and hooks alone."""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from ..attach import Recorder, replace, undo_all
from ..events import Kind


def follow(recorder: Recorder) -> Callable[[], None]:
    """From now on. Returns what undoes it."""
    torch: Any = sys.modules["torch"]
    undone = [replace(torch.autograd, "backward", functools.partial(_backward, recorder))]
    with recorder.careful("optimizer"):
        from torch.optim import optimizer

        step = _Step(recorder)
        handles = [
            optimizer.register_optimizer_step_pre_hook(step.begin),
            optimizer.register_optimizer_step_post_hook(step.end),
        ]
        undone += [handle.remove for handle in handles]
    return lambda: undo_all(undone)


def _backward(recorder: Recorder, own: Callable[..., None]) -> Callable[..., None]:
    """`Tensor.backward` calls it too."""

    @functools.wraps(own)
    def backward(*arguments: Any, **named: Any) -> None:
        started = time.perf_counter_ns()
        own(*arguments, **named)
        recorder.span(Kind.BACKWARD, started)

    return backward


class _Step:
    """An optimizer's step, on whatever thread."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder, self._local = recorder, threading.local()

    def begin(self, *_: Any) -> None:
        self._local.started = time.perf_counter_ns()

    def end(self, *_: Any) -> None:
        self._recorder.span(Kind.OPTIMIZER, self._local.started)
