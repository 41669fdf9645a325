"""The traced program's end of `trace`: waits for frameworks to be imported, and follows their loaders."""

from __future__ import annotations

import importlib.abc
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from . import attach
from .attach import LOOPS, Limits, Recorder, append_line, undo_all
from .ring import RingWriter


def begin(asked: Mapping[str, Any]) -> None:
    """In a traced program. asked: the shared memory's descriptor, and the folder that records go to."""
    folder = Path(asked["folder"])
    limits = Limits(asked["limits"]["steps"], asked["limits"]["for_ns"])
    recorder = Recorder(RingWriter(asked["ring"]), folder, append_line(folder / LOOPS), limits)
    attach.active = recorder
    attach.allow_looking(os.getppid())
    follow(recorder)


def follow(recorder: Recorder) -> Callable[[], None]:
    """Records whatever this process loads, as soon as it has imported what it loads with. Returns what undoes it."""
    undone: list[Callable[[], None]] = []
    for name, into in FOLLOWED.items():
        undone.append(_when_imported(name, lambda into=into: undone.append(into(recorder)), recorder))  # type: ignore[misc]
    return lambda: undo_all(reversed([*undone, *recorder.undone]))


def _torch_dataloader(recorder: Recorder) -> Callable[[], None]:
    from .instrument import torch_dataloader

    return torch_dataloader.follow(recorder)


def _torch_training(recorder: Recorder) -> Callable[[], None]:
    from .instrument import torch_training

    return torch_training.follow(recorder)


FOLLOWED: Mapping[str, Callable[[Recorder], Callable[[], None]]] = {
    "torch.utils.data.dataloader": _torch_dataloader,
    "torch.optim.optimizer": _torch_training,
}
"""Module -> what to do as soon as it has been imported."""


def _when_imported(name: str, then: Callable[[], None], recorder: Recorder) -> Callable[[], None]:
    """Returns what calls it off."""
    if name in sys.modules:
        with recorder.careful(name):
            then()
        return lambda: None
    awaiting = _Awaiting(name, then, recorder)
    sys.meta_path.insert(0, awaiting)
    return awaiting.call_off


class _Awaiting(importlib.abc.MetaPathFinder):
    """Finds nothing itself. Once: when the module is found by somebody else, its loader is made to tell when it has run."""

    def __init__(self, name: str, then: Callable[[], None], recorder: Recorder) -> None:
        self._name, self._then, self._recorder = name, then, recorder

    def call_off(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        self.call_off()
        spec = importlib.util.find_spec(fullname)
        with self._recorder.careful(self._name):
            if spec is not None and spec.loader is not None:
                own, loader = spec.loader.exec_module, spec.loader

                def exec_module(module: ModuleType) -> None:
                    del loader.__dict__["exec_module"]
                    own(module)
                    with self._recorder.careful(self._name):
                        self._then()

                loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
