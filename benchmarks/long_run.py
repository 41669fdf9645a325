"""A million steps of a source that costs nothing on a device that takes no time: memory, disk and reports stay bounded.

make long            STEPS=1000000
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

MARKS = (0.01, 0.1, 0.25, 0.5, 0.75, 1.0)
SCENARIO = """\
source: {{kind: synthetic, samples: {samples}, shape: [1], read: 0 ms, decode: 0 ms}}
loader: naive
model: {{kind: simulated, step: 0 ms}}
batch_size: 1
steps: {steps}
"""


def folder_bytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except OSError:  # packed or dropped just now
            continue
    return total


def measured(folder: Path, steps: int, samples: int) -> None:
    (folder / "long.yaml").write_text(SCENARIO.format(steps=steps, samples=samples))
    command = [sys.executable, "-m", "profiler", "run", "long.yaml", "--out", "run", "--quiet"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    started, readings, peak = time.monotonic(), [], 0
    with subprocess.Popen(command, cwd=folder, env=environment) as process:
        watched = psutil.Process(process.pid)
        while process.poll() is None:
            peak = max(peak, folder_bytes(folder / "run"))
            try:
                readings.append((time.monotonic() - started, watched.memory_info().rss))
            except psutil.Error:
                break
            time.sleep(0.2)
    assert process.returncode == 0
    whole = readings[-1][0]
    print(
        f"\n{steps:,} steps in epochs of {samples:,}: {whole:.1f} s, {1e6 * whole / steps:.1f} us a step, everything included"
    )
    print(f"  {'of the time':>14}{'memory':>12}")
    for mark in MARKS:
        at = min(readings, key=lambda reading: abs(reading[0] - mark * whole))
        print(f"  {100 * mark:>12.0f} %{at[1] / 1e6:>9.1f} MB")
    print(f"  run directory: at most {peak / 1e6:.1f} MB, in the end {folder_bytes(folder / 'run') / 1e6:.1f} MB")
    for form in ("text", "json", "png"):
        began = time.monotonic()
        drawn = [sys.executable, "-m", "profiler", "report", "run", "--format", form, "--out", f"drawn.{form}"]
        subprocess.run(drawn, cwd=folder, env=environment, check=True)
        print(f"  report --format {form}: {time.monotonic() - began:.1f} s")


def main() -> None:
    steps = int(os.environ.get("STEPS", "1000000"))
    for samples in (min(steps, 1_000_000), 100):
        with tempfile.TemporaryDirectory() as folder:
            measured(Path(folder), steps, samples)


if __name__ == "__main__":
    main()
