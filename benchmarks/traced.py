"""What `trace` costs: steps of 1 ms and of 10 ms with and without it, interleaved; and a million steps in flat memory.

make traced          some minutes on a quiet machine
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import psutil

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.overhead import median_ci95  # noqa: E402  (the checkout is put on the path first)
from profiler.instrument import torch_dataloader  # noqa: E402

PROGRAM = """\
import sys, time
import torch
from torch.utils.data import DataLoader, Dataset

class Items(Dataset):
    def __len__(self):
        return 10**9
    def __getitem__(self, i):
        return i

def spin(ns):
    end = time.perf_counter_ns() + ns
    while time.perf_counter_ns() < end:
        pass

workers, step_ns, steps = map(int, sys.argv[1:])
batches = iter(DataLoader(Items(), batch_size=None if step_ns == 0 else 8, num_workers=workers))
for _ in range(20):
    next(batches)
weight = torch.zeros(64, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
started = time.perf_counter()
for step in range(steps):
    batch = next(batches)
    if step_ns:
        (weight * 2).sum().backward()
        optimizer.step()
        spin(step_ns)
print(time.perf_counter() - started)
"""
CASES = [(0, 1_000_000, 1500), (1, 1_000_000, 1500), (0, 10_000_000, 200), (1, 10_000_000, 200)]
"""Workers, ns a step beside its small backward pass, steps."""


def seconds(folder: Path, case: Sequence[int], *, traced: bool) -> float:
    """Of the loop alone, by the program's own clock."""
    run = folder / f"run-{time.monotonic_ns()}"
    before = ["-m", "profiler", "trace", "--quiet", "--out", str(run)] if traced else []
    command = [sys.executable, *before, str(folder / "it.py"), *map(str, case)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def ratios(folder: Path, repeats: int) -> None:
    print(f"{'workers':>8}{'step':>8}   speed with trace / without: median of {repeats} pairs, 95 % interval")
    pairs: dict[Sequence[int], list[float]] = {case: [] for case in CASES}
    order = np.random.default_rng(0)
    for _ in range(repeats):
        for case in order.permutation(np.array(CASES)).tolist():
            first = bool(order.integers(2))
            took = {traced: seconds(folder, case, traced=traced) for traced in (first, not first)}
            pairs[tuple(case)].append(took[False] / took[True])
    for case, found in pairs.items():
        middle, low, high = median_ci95(found)
        print(f"{case[0]:>8}{case[1] / 1e6:>6.0f}ms   {middle:.3f} ({low:.3f} to {high:.3f})")


def long_run(folder: Path, steps: int) -> None:
    """Memory of both processes, and `report --watch` on the run that goes on."""
    command = [sys.executable, "-m", "profiler", "trace", "--quiet", "--out", "long", "it.py", "0", "0", str(steps)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    started, readings, watched_s = time.monotonic(), [], 0.0
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL) as process:
        parent = psutil.Process(process.pid)
        while process.poll() is None:
            try:
                sizes = [each.memory_info().rss / 1e6 for each in (parent, *parent.children())][:2]
            except psutil.Error:
                break
            if len(sizes) == 2:
                readings.append((time.monotonic() - started, *sizes))
            if not watched_s and time.monotonic() - started > 20:
                watched_s = first_report_s(folder, environment)
            time.sleep(0.5)
    print(f"\n{steps:,} empty steps: {time.monotonic() - started:.0f} s with the report")
    print(f"  {'after':>8}{'program':>12}{'trace':>12}")
    for at in np.linspace(0.1, 1, 6) * readings[-1][0]:
        after, trace, program = min(readings, key=lambda reading: abs(reading[0] - at))
        print(f"  {after:>6.0f} s{program:>9.0f} MB{trace:>9.0f} MB")
    size = sum(path.stat().st_size for path in (folder / "long").rglob("*"))
    print(f"  run directory {size / 1e6:.1f} MB; report --watch of the live run: first answer after {watched_s:.1f} s")


def first_report_s(folder: Path, environment: dict[str, str]) -> float:
    started = time.monotonic()
    command = [sys.executable, "-m", "profiler", "report", "long", "--watch"]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        took = time.monotonic() - started
        process.kill()
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--steps", type=int, default=1_000_000)
    asked = parser.parse_args()
    print(f"a step of a traced program, direct (100,000 empty steps, best of 5): {torch_dataloader.us_per_step(20_000):.1f} us")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "it.py").write_text(PROGRAM)
        ratios(Path(folder), asked.repeats)
        long_run(Path(folder), asked.steps)


if __name__ == "__main__":
    main()
