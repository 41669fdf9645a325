"""What needs a CUDA device: the events' times against the host's clock and against kernels of known length."""

import time

import numpy as np
import pytest

from loaders._batch import Batch
from models import two_layer

torch = pytest.importorskip("torch", reason="needs torch: pip install 'stallscope[torch]'")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def batch(n=256):
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.integers(0, 256, (n, 64, 64, 3), dtype=np.uint8))
    return Batch(torch.arange(n), x, torch.from_numpy(rng.integers(0, 10, n)))


def trained(steps=50):
    model = two_layer.build((64, 64, 3), 10, "cuda", 0)
    began = time.perf_counter_ns()
    for _ in range(steps):
        model.step(batch())
    model.sync()
    return model, began, time.perf_counter_ns()


def test_every_step_has_a_copy_and_a_busy_span_inside_the_hosts_window():
    model, began, ended = trained()
    spans = model.drain()
    error = model.device["alignment_error_ns"] + 20_000
    assert sorted({(what, step) for what, step, _, _ in spans}) == sorted((w, s) for w in ("busy", "copy") for s in range(50))
    for _, _, start, end in spans:
        assert began - error <= start <= end <= ended + error


def test_a_copy_ends_before_its_step_computes():
    model, _, _ = trained()
    spans = {(what, step): (start, end) for what, step, start, end in model.drain()}
    for step in range(50):
        assert spans["copy", step][1] <= spans["busy", step][0] + 10_000


def test_the_device_learns():
    model, _, _ = trained(200)
    first, last = model.losses()
    assert last < first


def test_a_sleep_of_known_length_is_seen_as_long():
    from models.two_layer._torch_device import CudaDevice

    device = CudaDevice()
    with device.copying():
        pass
    with device.computing():
        torch.cuda._sleep(200_000_000)  # cycles: 0.1 to 0.2 s on any clock that such a device has
    device.sync()
    busy = [end - start for what, _, start, end in device.drain() if what == "busy"]
    assert 50_000_000 < busy[0] < 500_000_000
