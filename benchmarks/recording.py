"""What recording costs directly: empty steps with and without a Watch, batches with a Probe, and the time of --help.

python benchmarks/recording.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import timeit
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from profiler import probe, stamps  # noqa: E402  (the checkout is put on the path first)
from profiler.instrument import torch_dataloader  # noqa: E402

HELP_RUNS = 11
CALLS = 100_000


def help_seconds() -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "profiler", "--help"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def main() -> None:
    rows = [
        (
            "a system call, to compare machines by (os.getppid, best of 5)",
            min(timeit.repeat(os.getppid, number=CALLS)) / CALLS * 1e6,
            "us",
        ),
        ("a step on the training thread, rows packed (100,000 empty steps, best of 5)", stamps.us_per_step(100_000, 5), "us"),
        ("a step of a traced program (100,000 empty steps, best of 5)", torch_dataloader.us_per_step(20_000, 5), "us"),
        (
            "the hooks of a DataLoader there, a batch (100,000 batches, best of 5)",
            torch_dataloader.us_per_batch(100_000, 5),
            "us",
        ),
        ("a batch in a worker, written to its file (100,000 batches, best of 5)", probe.us_per_batch(100_000, 5, True), "us"),
        ("the same in a thread that does other things as well", probe.us_per_batch(100_000, 5), "us"),
        (f"--help (median of {HELP_RUNS})", median(help_seconds() for _ in range(HELP_RUNS)) * 1e3, "ms"),
    ]
    for what, cost, unit in rows:
        print(f"{what:<80}{cost:>8.2f} {unit}")


if __name__ == "__main__":
    main()
