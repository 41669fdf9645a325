"""Hooks into the loaders of frameworks, so that any loop over them is recorded: one file a framework."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TypeVar

from ..probe import Probe
from ..stamps import Watch

BatchT = TypeVar("BatchT")


def watched(epoch: Iterable[BatchT], probe: Probe, stamps: Watch) -> Iterable[BatchT]:
    """The same epoch, its batches, their order and its errors unchanged; what can be hooked is recorded as it is iterated."""
    torch_data = sys.modules.get("torch.utils.data")
    if torch_data is not None and isinstance(epoch, torch_data.DataLoader):
        from .torch_dataloader import Watched

        return Watched(epoch, probe, stamps)
    return epoch


def us_per_batch(n_workers: int) -> float:
    """What hooks add to a step on the training thread, in microseconds; calibrated on this machine. Of what was hooked last."""
    if f"{__name__}.torch_dataloader" in sys.modules:
        from . import torch_dataloader

        return torch_dataloader.us_per_batch() if n_workers else 0.0
    return 0.0
