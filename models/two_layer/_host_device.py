"""The CPU as the device: the model's step on the host is its busy time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

Span = tuple[str, int, int, int]


class HostDevice:
    """It competes with the loader for cores. Nothing is copied, and nothing runs behind the host's back."""

    def __init__(self, name: str) -> None:
        self.facts: Mapping[str, Any] = {"kind": "cpu", "name": name, "simulated": False, "method": "model_step"}
        self.busy_ns: int | None = 0
        self._started = self._steps = 0
        self._spans: list[Span] = []

    @contextmanager
    def copying(self) -> Iterator[None]:
        self._started = time.perf_counter_ns()
        yield

    @contextmanager
    def computing(self) -> Iterator[None]:
        yield
        ended = time.perf_counter_ns()
        self._spans.append(("busy", self._steps, self._started, ended))
        self.busy_ns = (self.busy_ns or 0) + ended - self._started
        self._steps += 1

    def sync(self) -> None:
        """There is nothing to wait for."""

    def drain(self) -> Sequence[Span]:
        spans, self._spans = self._spans, []
        return spans
