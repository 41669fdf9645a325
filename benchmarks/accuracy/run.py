"""Injects causes into a user's DataLoader and into threads, and asks whether the profiler finds them.

make accuracy                                         all cells, and docs/accuracy.md: about half an hour
python benchmarks/accuracy/run.py --quick             the eight that matter most
python benchmarks/accuracy/run.py --only collate --workers 2 --context fork

Exit status 1 if a cell is wrong; where others disturbed it, it is repeated, and in the end passed over.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.accuracy import grid, page  # noqa: E402  (the checkout is put on the path first)
from benchmarks.accuracy.grid import Cell  # noqa: E402
from benchmarks.accuracy.judge import UNEXPLAINED_MEDIAN, Judged, failed, judged, unexplained_median  # noqa: E402
from profiler.environment import affinity_cores  # noqa: E402
from profiler.measure import measure  # noqa: E402
from profiler.result import Diagnosis, to_json  # noqa: E402
from profiler.runfile import read_run  # noqa: E402

MOST_REPEATS = 2
"""Of a cell that others disturbed."""
TIMEOUT_S = 120
HOG = "while True: pass"


def usable_cores() -> int:
    return len(affinity_cores() or ()) or os.cpu_count() or 1


def measured(cell: Cell, folder: Path, cores: int) -> Judged:
    """One run of a cell, judged. What was measured stays in the folder."""
    folder.mkdir(parents=True)
    (folder / "cell.yaml").write_text(yaml.safe_dump(grid.scenario(cell, cores), sort_keys=False))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "STALLSCOPE_CACHE": str(folder / "cache")}
    command = [sys.executable, "-m", "profiler", "run", "cell.yaml", "--out", "run", "--quiet"]
    before = stolen_s(), time.monotonic()
    with _hogs(grid.hogs(cores) if cell.cause == "hogs" else 0):
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    if done.returncode != 0:
        return failed(cell, cores, f"exit status {done.returncode}: {(done.stderr or done.stdout).strip()}")
    after = stolen_s(), time.monotonic()
    stolen = (after[0] - before[0]) / (after[1] - before[1]) / cores
    (folder / "stolen.json").write_text(json.dumps(stolen))
    return kept(cell, folder, cores)


def kept(cell: Cell, folder: Path, cores: int) -> Judged:
    """Judged anew from what was measured, as the profiler reads it today."""
    result = to_json(measure(read_run(folder / "run")), Diagnosis([]))
    return judged(cell, result, cores, json.loads((folder / "stolen.json").read_text()))


def stolen_s(stat: Path = Path("/proc/stat")) -> float:
    """Seconds since boot in which the hypervisor gave our cores to others."""
    lines = [line.split() for line in stat.read_text().splitlines()] if stat.exists() else []
    ours = affinity_cores()
    cores = [
        line for line in lines if line[0][3:].isdigit() and line[0][:3] == "cpu" and (not ours or int(line[0][3:]) in ours)
    ]
    return sum(int(line[8]) for line in cores) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _hogs(number: int) -> Iterator[None]:
    """Processes that want a core each, as another job on the machine does."""
    hogs = [subprocess.Popen([sys.executable, "-c", HOG]) for _ in range(number)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


def undisturbed(cell: Cell, folder: Path, cores: int) -> Judged:
    """A run of a cell, made again up to twice while others disturb it; one that is in the folder already is taken as it is."""
    if (folder / "stolen.json").exists():
        return kept(cell, folder, cores)
    for _ in range(1 + MOST_REPEATS):
        shutil.rmtree(folder, ignore_errors=True)
        try:
            row = measured(cell, folder, cores)
        except subprocess.TimeoutExpired:
            row = failed(cell, cores, f"not over after {TIMEOUT_S} s")
        if row.verdict != "disturbed":
            break
    return row


def all_measured(cells: Sequence[Cell], repeats: int, cores: int, folder: Path) -> list[Judged]:
    """In random order, so that what changes on the machine meanwhile hits no cause alone. Sorted as the cells are."""
    turns = [(cell, number) for cell in cells for number in range(repeats)]
    random.Random(0).shuffle(turns)
    rows = defaultdict(list)
    for number, (cell, repeat) in enumerate(turns, 1):
        row = undisturbed(cell, folder / f"{cell.name} {repeat}".replace(":", " to "), cores)
        rows[cell].append(row)
        print(f"{number:>4}/{len(turns)}  {row.verdict:<9} {cell.name}  {'; '.join(row.problems)}", flush=True)
    return [row for cell in cells for row in rows[cell]]


def is_wrong(rows: Sequence[Judged]) -> bool:
    half = unexplained_median(rows)
    return any(row.verdict == "WRONG" for row in rows) or (half is not None and half > UNEXPLAINED_MEDIAN)


def chosen(asked: argparse.Namespace) -> list[Cell]:
    return [
        cell
        for cell in (grid.QUICK if asked.quick else grid.ALL)
        if (not asked.only or cell.cause in asked.only)
        and (not asked.workers or cell.workers in asked.workers)
        and (not asked.context or cell.context in asked.context)
        and (not asked.loader or cell.loader in asked.loader)
    ]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Injected causes against found stages.")
    parser.add_argument("--only", action="append", choices=list(grid.CAUSES), help="a cause; may be given again")
    parser.add_argument("--workers", action="append", type=int, choices=grid.WORKERS)
    parser.add_argument("--context", action="append", choices=grid.CONTEXTS)
    parser.add_argument("--loader", action="append", choices=["DataLoader", "naive", "threads"])
    parser.add_argument("--quick", action="store_true", help="the eight cells that matter most")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument(
        "--keep", type=Path, help="where to keep what was measured; cells that lie there are judged as they are"
    )
    parser.add_argument("--page", type=Path, help="where to write the page; all cells write docs/accuracy.md by themselves")
    return parser.parse_args()


def main() -> int:
    asked = arguments()
    cells, cores, started = chosen(asked), usable_cores(), time.monotonic()
    if not cells:
        print("no cell is all of that; left out, with reasons:\n" + page.left_out(), file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        rows = all_measured(cells, asked.repeats, cores, asked.keep or Path(folder))
    print("\n" + page.table(rows) + "\n\n" + page.summary(rows))
    print(f"{time.monotonic() - started:.0f} s")
    where = asked.page or (ROOT / "docs/accuracy.md" if len(cells) == len(grid.ALL) else None)
    if where:
        where.write_text(page.whole(rows, cores, asked.repeats))
        print(f"written: {where}")
    return 1 if is_wrong(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
