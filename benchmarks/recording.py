"""What recording costs directly: empty steps with and without a Watch, batches with a Probe, and the time of --help.

python benchmarks/recording.py
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from profiler import probe, watch  # noqa: E402  (the checkout is put on the path first)

HELP_RUNS = 11


def help_seconds() -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "profiler", "--help"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def main() -> None:
    rows = [
        ("a step on the training thread, rows packed (100,000 empty steps, best of 5)", watch.us_per_step(100_000, 5), "us"),
        ("a batch where it is made, written to its file (20,000 batches, best of 5)", probe.us_per_batch(20_000, 5), "us"),
        (f"--help (median of {HELP_RUNS})", median(help_seconds() for _ in range(HELP_RUNS)) * 1e3, "ms"),
    ]
    for what, cost, unit in rows:
        print(f"{what:<80}{cost:>8.2f} {unit}")


if __name__ == "__main__":
    main()
