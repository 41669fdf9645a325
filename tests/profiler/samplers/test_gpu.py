import sys
from types import ModuleType, SimpleNamespace

import pytest

from profiler.events import Counter, Reading
from profiler.samplers import gpu


class Nvml(ModuleType):
    """A driver with two GPUs, the first of which is split and tells no utilisation."""

    class NVMLError(Exception):
        pass

    nvmlInit = staticmethod(lambda: None)
    nvmlDeviceGetCount = staticmethod(lambda: 2)
    nvmlDeviceGetHandleByIndex = staticmethod(lambda i: f"handle {i}")
    nvmlDeviceGetMemoryInfo = staticmethod(lambda handle: SimpleNamespace(used=5 << 30))

    @classmethod
    def nvmlDeviceGetUtilizationRates(cls, handle):
        if handle == "handle 0":
            raise cls.NVMLError
        return SimpleNamespace(gpu=93)


@pytest.fixture
def nvml(monkeypatch):
    module = Nvml("pynvml")
    monkeypatch.setitem(sys.modules, "pynvml", module)
    return module


def fails(*_):
    raise Nvml.NVMLError


def test_utilisation_and_memory_of_each_gpu_that_tells_them(nvml):
    assert list(gpu.build(1).read()) == [
        Reading(Counter.GPU_MEMORY_BYTES, 0, 5 << 30),
        Reading(Counter.GPU_UTILIZATION_PERCENT, 1, 93),
        Reading(Counter.GPU_MEMORY_BYTES, 1, 5 << 30),
    ]


@pytest.mark.parametrize("call", ["nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex"])
def test_without_a_gpu_there_are_no_rows(nvml, monkeypatch, call):
    monkeypatch.setattr(nvml, call, fails)
    assert list(gpu.build(1).read()) == []


def test_without_the_package_there_are_no_rows(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert list(gpu.build(1).read()) == []
