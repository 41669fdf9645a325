"""Traces every case and compares: the tracer's figures with the script's own clock, its findings with the true cause.

make cases                                              all, in random order: about half an hour on a quiet machine
python tests/cases/check.py --only late_sample --keep /tmp/late

Exit status 1 only where the tracer measured wrongly. That it names another cause than expected is shown, and fails nothing.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from catalogue import VARIANTS, Case, cases

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SEED = 7
TIMEOUT_S = 180
SKIPPED = 77
STALL_POINTS = 0.03
"""So far the found share of waiting may be from the script's own."""
FIRST = 2
"""The cause must be among so many findings: nobody reads on after them."""
STAGE_SHARE = 0.2
"""Of the wait: a smaller stage is not shown."""


class Traced(NamedTuple):
    """One run of one case under the tracer."""

    status: int | None
    """None: it did not end in time and was killed."""
    last_line: str
    """Of its stdout, which is the script's."""
    result: dict[str, Any] | None
    """result.json; None: there is none."""


class Expected(NamedTuple):
    """What a finding's kind should be."""

    expect: tuple[str, ...]
    """Any of these, among the first two findings."""
    forbid: tuple[str, ...]
    """None of these, anywhere."""


class Row(NamedTuple):
    """A line of the table."""

    case: str
    variant: str
    skipped: str = ""
    """Why nothing was measured: the machine lacks something, or the case fails without the tracer too."""
    wrong: tuple[str, ...] = ()
    """What the tracer measured wrongly."""
    steps: str = ""
    stall: str = ""
    stages: str = ""
    others: str = ""
    expect: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()

    @property
    def named(self) -> bool:
        return bool(set(self.expect) & set(self.found)) and not self.forbidden


def expectations() -> dict[tuple[str, str], Expected]:
    """expected.json, in which @name stands for a group of kinds."""
    content = json.loads((HERE / "expected.json").read_text())
    return {
        (case, variant): Expected(tuple(entry["expect"]), tuple(_ungrouped(entry["forbid"], content["groups"])))
        for case, variants in content["cases"].items()
        for variant, entry in variants.items()
    }


def _ungrouped(kinds, groups):
    return dict.fromkeys(kind for each in kinds for kind in (groups[each[1:]] if each.startswith("@") else [each]))


def run_case(prefix: list[str], case: str, variant: str) -> tuple[int | None, str]:
    """Runs it behind the prefix, and returns its exit status and the last line of its stdout."""
    command = [*prefix, str(HERE / "run.py"), case, variant]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    )
    try:
        output, _ = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, ""
    return process.returncode, (output.strip().splitlines() or [""])[-1]


def trace(case: str, variant: str, folder: Path) -> Traced:
    prefix = [sys.executable, "-m", "profiler", "trace", "--quiet", "--out", str(folder)]
    status, last_line = run_case(prefix, case, variant)
    file = folder / "result.json"
    return Traced(status, last_line, json.loads(file.read_text()) if file.exists() else None)


def own_figures(line: str, case: str, variant: str) -> dict[str, Any] | None:
    """What the script said of itself; None: the line is not its."""
    try:
        said = json.loads(line)
    except ValueError:
        return None
    return said if isinstance(said, dict) and (said.get("case"), said.get("variant")) == (case, variant) else None


def judge(case: Case, variant: str, traced: Traced, expected: Expected) -> Row:
    """Compares. A run that ended otherwise than with its figures is judged by `unfinished`."""
    own, result = own_figures(traced.last_line, case.name, variant), traced.result
    if own is None:
        return Row(case.name, variant, wrong=(f"the last line is not the script's: {traced.last_line[:60]!r}",))
    if result is None:
        return Row(case.name, variant, wrong=("no result.json",))
    if case.framework == "tensorflow" and result["steps"] == 0:
        return Row(case.name, variant, skipped="trace follows PyTorch's loaders, and no tf.data yet")
    kinds = [finding["kind"] for finding in result["findings"]]
    others = result.get("foreign_cpu_share")
    return Row(
        case.name,
        variant,
        wrong=tuple(_wrong_figures(case, own, result)),
        steps=f"{result['steps']} / {own['steps']}",
        stall=f"{_percent(result['input_wait_share'])} / {_percent(own['stall_share'])}",
        stages=_stages(result),
        others=_percent(others),
        expect=expected.expect,
        found=tuple(kinds[:FIRST]),
        forbidden=tuple(kind for kind in kinds if kind in expected.forbid),
    )


def _wrong_figures(case, own, result):
    if result["steps"] != own["steps"]:
        yield f"{result['steps']} steps, and the script made {own['steps']}"
    found, share = result["input_wait_share"], own["stall_share"]
    if found is None:
        yield "the wait was not measured"
    elif case.spends_between:
        yield from _wrong_between(found, share, result["wall_by_part"].get("step"))
    elif abs(found - share) > STALL_POINTS:
        yield f"waits {_percent(found)}, by the script's clock {_percent(share)}"


def _wrong_between(found, share, step):
    """What lies between the loader and the loop is the script's wait, and the tracer's step: never lost, never the loader's."""
    if found > share + STALL_POINTS:
        yield f"waits {_percent(found)}, by the script's clock at most {_percent(share)}"
    if step is None or abs(found + step - 1) > STALL_POINTS:
        yield f"wait and step are {_percent(found)} and {_percent(step)} of the wall time, and there is nothing else"


def unfinished(case: Case, variant: str, traced: Traced) -> Row:
    """Exit status 77 is the script's word for a machine that lacks something; any other is compared with a run of its own."""
    if traced.status == SKIPPED and traced.last_line.startswith("skipped: "):
        return Row(case.name, variant, skipped=traced.last_line.removeprefix("skipped: "))
    status, _ = run_case([sys.executable], case.name, variant)
    if status == traced.status:
        return Row(case.name, variant, skipped=f"ends with status {status} without the tracer too")
    return Row(case.name, variant, wrong=(f"exit status {traced.status} under the tracer, {status} without",))


def _percent(share):
    return "-" if share is None else f"{share:.1%}"


def _stages(result):
    """The largest stages of the wait, and their shares of it."""
    waits = {stage: share for stage, share in (result["input_wait_by_stage"] or {}).items() if share}
    whole = sum(waits.values())
    largest = sorted(waits, key=waits.__getitem__, reverse=True)
    return ", ".join(f"{stage} {waits[stage] / whole:.0%}" for stage in largest if waits[stage] >= STAGE_SHARE * whole)


def check(case: Case, variant: str, folder: Path, expected: Expected) -> Row:
    traced = trace(case.name, variant, folder)
    return judge(case, variant, traced, expected) if traced.status == 0 else unfinished(case, variant, traced)


def print_table(rows: list[Row]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table("case", "variant", "steps", "stall", "stages of the wait", "others", "expected", "found", "forbidden")
    table.title = "found / the script's own; others: their share of the cores"
    for row in sorted(rows):
        verdict = f"[red]{'; '.join(row.wrong)}[/]" if row.wrong else row.skipped and f"not run: {row.skipped}"
        found = f"[{'green' if row.named else 'yellow'}]{', '.join(row.found)}[/]"
        figures = (row.steps, row.stall, verdict or row.stages, row.others)
        table.add_row(row.case, row.variant, *figures, ", ".join(row.expect), found, f"[yellow]{', '.join(row.forbidden)}[/]")
    if not console.is_terminal:
        console = Console(width=200)
    console.print(table)


def summary(rows: list[Row]) -> str:
    judged = [row for row in rows if not row.skipped]
    right, named = sum(not row.wrong for row in judged), sum(row.named for row in judged)
    return f"measured right: {right} of {len(judged)}; cause named: {named}; not run: {len(rows) - len(judged)}"


def one_line(row: Row) -> str:
    """For whoever watches."""
    if row.skipped:
        return f"{row.case} {row.variant}: not run: {row.skipped}"
    measured = f"WRONG: {'; '.join(row.wrong)}" if row.wrong else f"waits {row.stall}"
    return f"{row.case} {row.variant}: {measured}; {'named' if row.named else 'not named'}: {', '.join(row.found)}"


def parsed(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="NAME", choices=list(cases()), help="this case; may be repeated")
    parser.add_argument("--variant", choices=VARIANTS, help="[default: both]")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keeps the runs, each in DIR/CASE-VARIANT; must not exist")
    options = parser.parse_args(words)
    if options.keep and options.keep.exists():
        parser.error(f"{options.keep} exists, and a run never overwrites another: choose another --keep, or remove it")
    return options


def main(words: list[str]) -> int:
    options, known, expected = parsed(words), cases(), expectations()
    runs = [(name, variant) for name in options.only or known for variant in VARIANTS if options.variant in (None, variant)]
    random.Random(SEED).shuffle(runs)
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.keep or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        rows = []
        for name, variant in runs:
            rows.append(check(known[name], variant, folder / f"{name}-{variant}", expected[name, variant]))
            print(f"{len(rows)}/{len(runs)} {one_line(rows[-1])}", flush=True)
    print_table(rows)
    print(summary(rows))
    return 1 if any(row.wrong for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
