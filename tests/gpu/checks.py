"""What only a GPU can show. Each check says in its first line what it shows, returns the figures, and raises AssertionError.

SkipTest says that this machine cannot show it after all. `make gpu` runs them as one table, pytest one by one: see run.py and
test_gpu.py. They need torch and numpy; the last ones more.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import SkipTest

ROOT = Path(__file__).parents[2]
MS = 1_000_000
SPIN_MS = 20.0
"""Kernels of this length: long beside every launch, short enough to repeat."""


class Check(NamedTuple):
    """One row of the table."""

    run: Callable[[], str]
    needs: Sequence[str]
    """Packages, beyond a CUDA device."""

    @property
    def name(self) -> str:
        return (self.run.__doc__ or "").partition("\n")[0].rstrip(".")


def missing(check: Check) -> str | None:
    """Why this machine cannot run it; None: it can."""
    absent = [name for name in check.needs if importlib.util.find_spec(name) is None]
    if absent:
        return f"needs {', '.join(absent)}"
    try:
        import torch
    except Exception as error:  # a torch made for libraries that are not here
        return f"needs a torch that can be imported: {type(error).__name__}: {error}"
    return None if torch.cuda.is_available() else "needs a CUDA device: this torch sees none"


# Kernels of a known length


def cycles(ms: float) -> int:
    """So many clock cycles keep the device busy for `ms`: from the time that the host sees a long spin take."""
    import torch

    def took_s(n: int) -> float:
        torch.cuda.synchronize()
        started = time.perf_counter()
        torch.cuda._sleep(n)
        torch.cuda.synchronize()
        return time.perf_counter() - started

    until = time.perf_counter() + 0.5
    while time.perf_counter() < until:  # the kernel is loaded, and an idle device's clock comes up
        took_s(10_000_000)
    small, large = 20_000_000, 220_000_000
    per_s = (large - small) / statistics.median(took_s(large) - took_s(small) for _ in range(5))
    return int(ms / 1e3 * per_s)


def device() -> Any:
    from models.two_layer._torch_device import CudaDevice

    return CudaDevice()


def spin(watched: Any, n: int) -> None:
    """One step that copies nothing and computes for n cycles."""
    import torch

    with watched.copying():
        pass
    with watched.computing():
        torch.cuda._sleep(n)


def spans(watched: Any, what: str) -> list[tuple[int, int]]:
    return [(start, end) for kind, _, start, end in watched.drain() if kind == what]


def known_kernels() -> str:
    """Busy time of kernels of known length, and the gaps between them."""
    watched, n, gap_ms = device(), cycles(SPIN_MS), 10.0
    for _ in range(20):
        spin(watched, n)
        watched.sync()
        time.sleep(gap_ms / 1e3)
    busy = spans(watched, "busy")
    lengths = [(end - start) / MS for start, end in busy]
    gaps = [(after[0] - before[1]) / MS for before, after in itertools.pairwise(busy)]
    found, gap = statistics.median(lengths), statistics.median(gaps)
    said = f"{found:.2f} ms for {SPIN_MS:.0f}; gaps {gap:.2f} ms for {gap_ms:.0f} and a wake-up"
    assert len(busy) == 20, said
    assert abs(found / SPIN_MS - 1) < 0.02, said
    assert gap_ms <= gap < gap_ms + 2, said
    return said


def alignment() -> str:
    """Event times on the host's clock, over 5 s of re-anchoring."""
    from models.two_layer import _torch_device

    watched, n = device(), cycles(2.0)
    anchor, anchor_ns, _ = _torch_device._align()
    bound_ms = watched.facts["alignment_error_ns"] / MS + 0.3
    off_ms = []
    until = time.perf_counter() + 5
    while time.perf_counter() < until:
        spin(watched, n)
        watched.sync()
        seen = time.perf_counter_ns()
        off_ms.append((seen - spans(watched, "busy")[-1][1]) / MS)
        time.sleep(0.01)
    later, later_ns, error_ns = _torch_device._align()
    passed_ns = later_ns - anchor_ns
    drift, unsure = (1e6 * ns / passed_ns for ns in (anchor.elapsed_time(later) * 1e6 - passed_ns, 2 * error_ns))
    first, last = statistics.median(off_ms[:20]), statistics.median(off_ms[-20:])
    said = f"host sees the end {first:.3f} ms after it, {last:.3f} ms 5 s later; bound {bound_ms:.2f} ms"
    said += f"; the device's clock drifts by {drift:.0f} ppm, give or take {unsure:.0f}"
    assert -bound_ms < last - first < bound_ms, said
    assert -bound_ms < first < 1, said
    return said


def copies() -> str:
    """A pinned copy runs beside compute, a pageable one holds the host."""
    import torch

    watched, n = device(), cycles(50.0)
    pinned, pageable = torch.empty(64 << 20, dtype=torch.uint8, pin_memory=True), torch.ones(64 << 20, dtype=torch.uint8)
    rates, hosts_ms, copies_ms, overlaps = {}, {}, {}, {}
    for name, memory in (("warm-up", pinned), ("pageable", pageable), ("pinned", pinned)):
        spin(watched, n)  # keeps the compute stream busy meanwhile
        started = time.perf_counter_ns()
        with watched.copying():
            watched.put(memory)
        hosts_ms[name] = (time.perf_counter_ns() - started) / MS
        with watched.computing():
            torch.cuda._sleep(1000)
        watched.sync()
        drained = watched.drain()
        [*_, copy] = [(start, end) for what, _, start, end in drained if what == "copy"]
        [busy, _] = [(start, end) for what, _, start, end in drained if what == "busy"]
        rates[name] = (64 << 20) / max(1, copy[1] - copy[0])
        copies_ms[name] = (copy[1] - copy[0]) / MS
        overlaps[name] = min(copy[1], busy[1]) - max(copy[0], busy[0])
    said = ", ".join(f"{name} {rates[name]:.1f} GB/s (host {hosts_ms[name]:.2f} ms)" for name in ("pageable", "pinned"))
    assert overlaps["pinned"] > 0, f"the pinned copy did not overlap: {said}"
    assert hosts_ms["pinned"] < copies_ms["pinned"] / 2, f"the host waited for the pinned copy: {said}"
    assert hosts_ms["pageable"] > copies_ms["pageable"] / 2, f"the host did not wait for the pageable copy: {said}"
    return said


def dataloader_pinning() -> str:
    """DataLoader with and without pin_memory, 64 batches of 1 MB."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    rates = {}
    for pin in (False, True, False, True):
        loader = DataLoader(TensorDataset(torch.zeros(2048, 32768, dtype=torch.uint8)), batch_size=32, pin_memory=pin)
        torch.cuda.synchronize()
        started = time.perf_counter()
        for (x,) in loader:
            x.to("cuda", non_blocking=True)
        torch.cuda.synchronize()
        rates.setdefault(pin, []).append(64 / (time.perf_counter() - started))
    return f"{max(rates[False]):.0f} batches/s pageable, {max(rates[True]):.0f} pinned"


def drain_waits_for_nothing() -> str:
    """drain() waits for nothing, and all spans come in the end."""
    watched, n = device(), cycles(1.0)
    for _ in range(200):
        spin(watched, n)
    took_ms, early = [], []
    for _ in range(5):
        started = time.perf_counter_ns()
        early += watched.drain()
        took_ms.append((time.perf_counter_ns() - started) / MS)
    still_busy = bool(watched._pending)
    watched.sync()
    whole = sorted((step, start, end) for what, step, start, end in [*early, *watched.drain()] if what == "busy")
    said = f"{max(took_ms):.3f} ms the slowest of 5, {len(early)} spans while busy, {len(whole)} of 200 in the end"
    assert still_busy, f"nothing was left to wait for: {said}"
    assert max(took_ms) < 20, said  # some 190 ms were queued
    assert [step for step, _, _ in whole] == list(range(200)), said
    error = watched.facts["alignment_error_ns"] + 2000  # by so much a span may have been put right
    assert all(before[2] <= after[1] + error for before, after in itertools.pairwise(whole)), f"spans overlap: {said}"
    return said


def the_network_learns() -> str:
    """two_layer trains: copies come before steps, the loss falls."""
    import numpy as np
    import torch

    from loaders._batch import Batch
    from models import two_layer

    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.integers(0, 256, (256, 64, 64, 3), dtype=np.uint8))
    batch = Batch(torch.arange(256), x, torch.from_numpy(rng.integers(0, 10, 256)))
    model = two_layer.build((64, 64, 3), 10, "cuda", 0)
    began = time.perf_counter_ns()
    for _ in range(200):
        model.step(batch)
    model.sync()
    ended, error = time.perf_counter_ns(), model.device["alignment_error_ns"] + 20_000
    found = {(what, step): (start, end) for what, step, start, end in model.drain()}
    first, last = model.losses()
    said = f"loss {first:.3f} to {last:.3f}, {len(found)} spans of 200 steps"
    assert last < first, said
    assert len(found) == 400, said
    assert all(began - error <= start <= end <= ended + error for start, end in found.values()), f"outside the loop: {said}"
    assert all(found["copy", step][1] <= found["busy", step][0] + 10_000 for step in range(200)), f"copies end late: {said}"
    return said


def recording_cost() -> str:
    """What the four events of a step cost the host."""
    import torch

    watched, n = device(), cycles(0.5)

    def bare() -> None:
        torch.cuda._sleep(n)

    def loop(step: Callable[[], None]) -> tuple[float, float]:
        torch.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(200):
            step()
        launched = time.perf_counter() - started
        torch.cuda.synchronize()
        return launched, time.perf_counter() - started

    pairs = [(loop(bare), loop(lambda: spin(watched, n))) for _ in range(5)]
    cost_us = 1e6 * (min(w[0] for _, w in pairs) - min(b[0] for b, _ in pairs)) / 200
    ratio = statistics.median(b[1] / w[1] for b, w in pairs)
    watched.drain()
    return f"{cost_us:.1f} us a step of launching; throughput {ratio:.3f} of the bare loop (0.5 ms steps)"


def a_scenario() -> str:
    """Scenarios: stalls follow the loader, a synchronise adds some, and sums hold."""
    slow, fast = scenario(NETWORK, "source.read=1 ms"), scenario(NETWORK)
    synced = scenario(NETWORK, "sync_every_step=true")
    stalls = [each["steady_input_stall"]["share"] for each in (slow, fast, synced)]  # steady: a first step loads libraries
    said = "input stall {:.3f} slow, {:.3f} fast, {:.3f} fast and synchronised".format(*stalls)
    for each in (slow, fast, synced):
        assert (each["device"]["kind"], each["device"]["method"]) == ("cuda", "events"), each["device"]
        causes = sum(share or 0 for share in each["idle_by_cause"].values())
        assert abs(causes - each["device_idle_share"]) < 1e-6, said
        assert abs(each["device_busy_share"] + each["device_idle_share"] - 1) < 1e-6, said
    assert stalls[1] < stalls[2] < stalls[0], said
    assert slow["verdict"] == "input_bound", said
    return said


NETWORK = "model={kind: two_layer, hidden: 16384}"
"""200 million weights: a step of milliseconds, behind which a batch that is copied out of memory (0.7 ms) can hide."""


def scenario(*changes: str) -> dict[str, Any]:
    """The result of 100 steps with samples that cost nothing, unless changed."""
    whole = ("source.read=0 ms", "source.decode=0 ms", "source.samples=6400", "source.shape=[64, 64, 3]", "batch_size=64")
    sets = [word for change in (*whole, *changes) for word in ("--set", change)]
    with tempfile.TemporaryDirectory() as folder:
        command = [
            "-m",
            "profiler",
            "run",
            "synthetic",
            "--device",
            "cuda",
            "--json",
            "--out",
            f"{folder}/run",
            "--steps",
            "100",
        ]
        done = python(*command, *sets, STALLSCOPE_CACHE=folder)
    assert done.returncode == 0, done.stderr[-500:]
    result: dict[str, Any] = json.loads(done.stdout)
    return result


TRACED = """\
import sys, time
import torch
from torch.utils.data import DataLoader, Dataset

class Items(Dataset):
    def __len__(self):
        return 100
    def __getitem__(self, i):
        time.sleep(0.02)
        return i

n, device = int(sys.argv[1]), torch.device("cuda")
torch.zeros(1, device=device)
for batch in DataLoader(Items(), batch_size=1):
    torch.cuda._sleep(n)
"""


def a_traced_program() -> str:
    """A traced program that loads 20 ms and computes 10 ms, side by side, idles half of its time, for want of a batch."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "it.py").write_text(TRACED)
        out = str(Path(folder) / "run")
        done = python("-m", "profiler", "trace", "--quiet", "--out", out, str(Path(folder) / "it.py"), str(cycles(10.0)))
        assert done.returncode == 0, done.stderr
        result = json.loads((Path(out) / "result.json").read_text())
    assert (result["device"]["kind"], result["device"]["method"]) == ("cuda", "events"), result["device"]
    idle, stall = result["device_idle_share"], result["input_stall_share"]
    assert abs(idle - 0.5) < 0.1, result["idle_by_cause"]
    assert abs(stall - idle) < 0.05, result["idle_by_cause"]
    return f"idle {100 * idle:.1f} %, for want of a batch {100 * stall:.1f} %"


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """This Python, in a process of its own."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def tensorflow_trains() -> str:
    """TensorFlow trains two_layer on the GPU."""
    seen = python("-c", "import tensorflow as tf; print(len(tf.config.list_physical_devices('GPU')))")
    if seen.returncode:
        raise SkipTest(f"needs a tensorflow that can be imported: {seen.stderr[-200:].strip()}")
    if not int(seen.stdout.split()[-1]):
        raise SkipTest("needs a tensorflow that sees the GPU: this one sees none")
    result = scenario("model={kind: two_layer, implementation: tf_function}")
    first, last = result["loss"]["first"], result["loss"]["last"]
    said = f"loss {first:.3f} to {last:.3f}, {result['throughput_samples_per_s']['steady'] or 0:,.0f} samples/s"
    assert (result["device"]["kind"], result["device_busy_share"]) == ("cuda", None), result["device"]
    assert last < first, said
    return said


def nvml_utilisation() -> str:
    """NVML's utilisation of a device that is busy half of the time."""
    import pynvml
    import torch

    watched, n, readings = device(), cycles(10.0), []
    until = time.perf_counter() + 4
    try:
        while time.perf_counter() < until:
            spin(watched, n)
            watched.sync()
            time.sleep(0.01)
            readings.append(torch.cuda.utilization())
    except pynvml.NVMLError as error:  # of a slice of a GPU (MIG), for one
        raise SkipTest(f"needs a device that NVML can tell about: {error}") from error
    busy = spans(watched, "busy")
    ours = sum(end - start for start, end in busy) / (busy[-1][1] - busy[0][0])
    return f"ours {100 * ours:.0f} % busy, NVML {statistics.median(readings):.0f} %"


TORCH = ("numpy", "torch")
WHOLE = (*TORCH, "pydantic", "pyarrow", "typer", "PIL", "yaml", "psutil", "matplotlib", "rich")
CHECKS = (
    Check(known_kernels, TORCH),
    Check(alignment, TORCH),
    Check(copies, TORCH),
    Check(dataloader_pinning, TORCH),
    Check(drain_waits_for_nothing, TORCH),
    Check(the_network_learns, TORCH),
    Check(recording_cost, TORCH),
    Check(a_scenario, WHOLE),
    Check(a_traced_program, WHOLE),
    Check(tensorflow_trains, (*WHOLE, "tensorflow")),
    Check(nvml_utilisation, (*TORCH, "pynvml")),
)
