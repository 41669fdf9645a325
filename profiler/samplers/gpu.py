"""Utilisation and used memory of each NVIDIA GPU, through NVML; nothing where there is none, or no nvidia-ml-py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from ..contracts import Sampler
from ..events import Counter, Reading


def build(pid: int) -> Sampler:
    """All GPUs that the driver shows: NVML counts them for everybody, not for one process."""
    return Gpu(_nvml())


class Gpu:
    """About 0.1 ms a GPU."""

    def __init__(self, nvml: Any) -> None:
        """nvml: the module pynvml, initialised; None: there is none."""
        self._nvml = nvml
        self._handles: dict[int, Any] = {}
        if nvml is not None:
            with suppress(nvml.NVMLError):
                self._handles = {i: nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())}

    def read(self) -> Iterator[Reading]:
        for i, handle in self._handles.items():
            with suppress(self._nvml.NVMLError):  # a GPU that is split (MIG) has no utilisation
                yield Reading(Counter.GPU_UTILIZATION_PERCENT, i, self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
            with suppress(self._nvml.NVMLError):
                yield Reading(Counter.GPU_MEMORY_BYTES, i, self._nvml.nvmlDeviceGetMemoryInfo(handle).used)


def _nvml() -> Any:
    """Initialised here and not on the thread: a fork would inherit the locks that importing and initialising take."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml
