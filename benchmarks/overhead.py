"""What recording costs, directly and beside other profilers: small loops under each, in random order, against the bare loop.

python benchmarks/overhead.py             most of an hour; --quick takes some minutes and is only for trying it out
python benchmarks/overhead.py --write     also writes docs/overhead.md
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from profiler import environment, probe, stamps  # noqa: E402  (the checkout is put on the path first)

PAGE = ROOT / "docs" / "overhead.md"
SEED = 0
RESAMPLES = 10_000
BESIDE_PYTHON = Path(sys.executable).with_name("py-spy")
PY_SPY = str(BESIDE_PYTHON) if BESIDE_PYTHON.exists() else "py-spy"
PY_SPY_OPTIONS = "--subprocesses -r 100 -d 600 -f raw -o /dev/null"


class Case(NamedTuple):
    loop: str
    """A name in `_loops.LOOPS`."""
    workers: int
    n_batches: int
    """Takes about 3 s bare, on two cores."""
    what: str


CASES = [
    Case("tiny", 0, 10_000, "32 items of 1 KB from memory"),
    Case("tiny", 2, 3_000, "32 items of 1 KB from memory"),
    Case("waiting", 0, 150, "16 items that wait 1 ms and compute a little"),
    Case("waiting", 2, 250, "16 items that wait 1 ms and compute a little"),
    Case("jpeg", 0, 200, "32 JPEGs of 128 x 128 pixels, decoded"),
    Case("jpeg", 2, 250, "32 JPEGs of 128 x 128 pixels, decoded"),
]
ARMS = {
    "bare again": "the same once more: how far a ratio strays by itself",
    "stallscope": "recorded by us",
    "torch.profiler 5 of 12": "`schedule(wait=5, warmup=2, active=5)`, CPU activities; traces are neither kept nor written",
    "torch.profiler always": "without a schedule, CPU activities; what it computes after the loop is not counted",
    "py-spy": f"`py-spy record {PY_SPY_OPTIONS}`, attached to the running loop; its start is not counted",
}
"""Name in `_loops.ARMS` to what it is. The bare loop goes with them, to be divided by."""


class Refused(Exception):
    """An arm cannot be measured here. The message says why."""


class Measured(NamedTuple):
    """Of one case, an entry a round; None: this arm was refused in this round."""

    seconds: dict[str, list[float | None]]
    refused: dict[str, str]

    def ratios(self, arm: str) -> list[float]:
        """Throughput, divided by the bare loop's of the same round."""
        pairs = zip(self.seconds["bare"], self.seconds[arm], strict=True)
        return [bare / seconds for bare, seconds in pairs if bare and seconds]


def seconds(case: Case, arm: str, n_batches: int, warm_up_s: float) -> float:
    """Of one run in a process of its own. Raises Refused."""
    arguments = [case.loop, str(case.workers), arm, str(n_batches), str(warm_up_s)]
    command = [sys.executable, str(Path(__file__).with_name("_loops.py")), *arguments]
    pipe = subprocess.PIPE
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=errors, text=True) as loop,
    ):
        try:
            assert loop.stdin
            assert loop.stdout
            loop.stdout.readline()
            with spied_on(loop.pid, arm == "py-spy"):
                said = loop.communicate("go on\n")[0]
        except BaseException:
            loop.kill()
            raise
        errors.seek(0)
        if loop.returncode:
            raise SystemExit(f"{' '.join(command)} failed:\n{errors.read()}")
        return float(said)


@contextmanager
def spied_on(pid: int, wanted: bool) -> Iterator[None]:
    """py-spy samples the process from here to the process's end. Raises Refused where it may not, or ends before."""
    if not wanted:
        yield
        return
    command = [PY_SPY, "record", *PY_SPY_OPTIONS.split(), "--pid", str(pid)]
    try:
        spy = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except OSError as error:
        raise Refused(str(error.strerror)) from None
    with spy:
        assert spy.stdout
        said = []
        for line in spy.stdout:
            said.append(line.strip())
            if "Sampling process" in line:
                break
        else:
            raise Refused(next(filter(None, said), "it ended without a word").removeprefix("Error: "))
        try:
            yield
            rest = spy.communicate(timeout=60)[0]
        except subprocess.TimeoutExpired:
            raise Refused("it went on for a minute after the loop's end") from None
        finally:
            spy.kill()
        if "process exited" not in rest:
            raise Refused(f"it ended before the loop: {rest.strip()}")


def measure(cases: Sequence[Case], repeats: int, part: float, warm_up_s: float) -> dict[Case, Measured]:
    """All arms of all cases, `repeats` times. What is compared runs within a minute or so: machines change their speed."""
    order = random.Random(SEED)
    arms = ["bare", *ARMS]
    table = {case: Measured({arm: [] for arm in arms}, {}) for case in cases}
    started = time.monotonic()
    for number in range(repeats):
        for case in order.sample(cases, len(cases)):
            for arm in order.sample(arms, len(arms)):
                try:
                    table[case].seconds[arm].append(seconds(case, arm, max(1, round(part * case.n_batches)), warm_up_s))
                except Refused as error:
                    table[case].seconds[arm].append(None)
                    table[case].refused[arm] = str(error)
        print(f"round {number + 1} of {repeats}: {(time.monotonic() - started) / 60:.1f} min", file=sys.stderr)
    return table


def median_ci95(values: Sequence[float]) -> tuple[float, float, float]:
    """Median, and its 95 % interval by the bootstrap. The same values always give the same interval."""
    draws = np.random.default_rng(SEED).choice(values, size=(RESAMPLES, len(values)))
    low, high = np.percentile(np.median(draws, axis=1), (2.5, 97.5))
    return float(np.median(values)), float(low), float(high)


def cell(measured: Measured, arm: str) -> str:
    if ratios := measured.ratios(arm):
        return "{:.3f} ({:.3f} to {:.3f})".format(*median_ci95(ratios))
    return f"not measured: {measured.refused[arm]}"


def bare_ms(case: Case, measured: Measured, part: float) -> float:
    """A batch of the bare loop, median over the rounds."""
    return float(np.median([each for each in measured.seconds["bare"] if each])) * 1e3 / round(part * case.n_batches)


def usable_cores() -> float:
    affinity = len(environment.affinity_cores() or ()) or os.cpu_count()
    return environment.usable_cores(affinity, environment.quota_cores()) or 1.0


def table_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Markdown, aligned for reading as it is. The first row is the head."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |" for row in rows]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]


def report(
    table: Mapping[Case, Measured], direct: Sequence[tuple[str, float]], foreign: float | None, repeats: int, part: float
) -> str:
    """foreign: what other processes took of the cores, 0..1; None: not measured."""
    loops = [
        [f"{case.loop}, W={case.workers}", f"{bare_ms(case, measured, part):.2f} ms", *(cell(measured, arm) for arm in ARMS)]
        for case, measured in table.items()
    ]
    python, torch, py_spy = platform.python_version(), version("torch"), version("py-spy")
    taken = "an unknown share" if foreign is None else f"{100 * foreign:.1f} %"
    return "\n".join(
        [
            "# What recording costs",
            "",
            "Generated by `python benchmarks/overhead.py --write`; made again, it replaces this page.",
            f"Measured with {usable_cores():g} usable cores, Python {python}, torch {torch}, py-spy {py_spy}.",
            "",
            "## Directly",
            "",
            *table_lines([("what", "cost"), *((what, f"{cost:.2f} us") for what, cost in direct)]),
            "",
            "## Beside other profilers",
            "",
            "Throughput divided by that of the bare loop of the same round: 1 costs nothing, 0.9 is a tenth slower. Median of",
            f"{repeats} rounds, and its 95 % interval by the bootstrap. Each run is a fresh process, in random order; its",
            "start and a warm-up are not counted. Where *bare again* strays from 1, so does everything beside it.",
            f"Other processes took {taken} of the cores meanwhile.",
            "",
            *table_lines([("loop", "bare, a batch", *ARMS), *loops]),
            "",
            "W is `num_workers` of a plain DataLoader; the step takes a mean of one item; torch has one thread. A batch is:",
            "",
            *dict.fromkeys(f"* {case.loop}: {case.what}" for case in table),
            "",
            "The columns:",
            "",
            *(f"* {arm}: {what}" for arm, what in ARMS.items()),
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeats", type=int, help="rounds; 9 unless told, 2 with --quick")
    parser.add_argument("--quick", action="store_true", help="a fifth of the batches: shows that it works, proves nothing")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    repeats = (2 if options.quick else 9) if options.repeats is None else options.repeats
    if repeats < 1:
        parser.error("--repeats: must be at least 1")
    if options.write and options.quick:
        parser.error("--write: a quick run proves nothing, leave out --quick")
    part, warm_up_s = (0.2, 0.3) if options.quick else (1.0, 1.0)
    direct = [
        ("a step on the training thread, rows packed (100,000 empty steps, best of 5)", stamps.us_per_step(100_000, 5)),
        ("a batch where it is made, written to its file (20,000 batches, best of 5)", probe.us_per_batch(20_000, 5)),
    ]
    before = environment.read_cpu(time.perf_counter_ns)
    table = measure(CASES, repeats, part, warm_up_s)
    after = environment.read_cpu(time.perf_counter_ns)
    text = report(table, direct, environment.foreign_cpu_share(before, after, usable_cores()), repeats, part)
    print(text)
    if options.write:
        PAGE.write_text(text)


if __name__ == "__main__":
    main()
