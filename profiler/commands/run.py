"""`run`: measures a scenario, or all that it varies."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UserError
from ..interrupts import terminate

if TYPE_CHECKING:
    from ..comparison import Comparison
    from ..conclude import Concluded
    from ..scenario import Scenario, Variant


def main(
    context: typer.Context,
    scenario: Annotated[str, typer.Argument(help="A YAML file, or the name of a shipped scenario (see `list`).")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Replaces a setting, e.g. loader.num_workers=4.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cuda, cpu, mps, or simulated (swaps the model).")] = "auto",
    steps: Annotated[int | None, typer.Option(help="Ends after so many steps.")] = None,
    duration: Annotated[str | None, typer.Option(help="Ends after this time, e.g. 20s.")] = None,
    repeats: Annotated[int | None, typer.Option(help="Measures it so many times.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run directory; must not exist. [default: runs/NAME-TIME]")] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Prints result.json alone on stdout (of repeats: summary.json).")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Prints nothing but errors.")] = False,
) -> int:
    """Measures a scenario: what idles, why, and what to do.

    Writes a run directory (run.json, events, result.json, stalls.png, lanes.png) and prints the report. Exit status 0:
    measured; 2: something to mend, as the message says; 130: interrupted, with what was measured kept.
    """
    from ..scenario import find, unfold

    variants = unfold(find(scenario), settings or [], device=device, steps=steps, duration=duration, repeats=repeats)
    signal.signal(signal.SIGTERM, terminate)
    asked = Asked(device, out, json=json, quiet=quiet, program=context.find_root().info_name or "stallscope")
    if len(variants) > 1 or variants[0].scenario.repeats > 1:
        return _several(variants, asked)
    return _one(variants[0].scenario, asked)


@dataclass(frozen=True)
class Asked:
    """The rest of the command line."""

    device: str
    out: Path | None
    json: bool
    quiet: bool
    program: str

    @property
    def silent(self) -> bool:
        return self.quiet or self.json

    def say(self, text: str) -> None:
        if not self.silent:
            print(text, file=sys.stderr)

    def refuse_overwriting(self) -> None:
        if self.out is not None and os.path.lexists(self.out):
            raise UserError(f"{self.out} exists, and a run never overwrites another: choose another --out, or remove it")

    def folder(self, name: str) -> Path:
        """Where the run goes. A directory of our own naming is made at once."""
        from ..places import fresh

        return self.out or fresh(Path("runs"), name)


# One run, in this process


def _one(scenario: Scenario, asked: Asked) -> int:
    from .. import faults, live
    from ..execute import execute, prepare
    from ..places import cache_dir

    asked.refuse_overwriting()
    with faults.told(f"source '{scenario.source.kind}': "), live.preparing("writing sample files", asked.silent) as progress:
        source = prepare(scenario, cache_dir(os.environ), asked.device, progress)
    folder = asked.folder(scenario.name)
    with faults.told():
        ended_by = execute(scenario, source, folder, sys.argv, asked.device, live.progress(asked.silent))
    concluded = _concluded(folder, ended_by, asked.program)
    _show(concluded, folder, asked)
    return 0 if ended_by is None else _ended_early(ended_by, folder, concluded.result.steps, asked.program)


def _concluded(folder: Path, ended_by: BaseException | None, program: str) -> Concluded:
    """Reads the run back, as `report` will, and writes what was concluded beside it."""
    from .. import faults
    from ..conclude import conclude, keep
    from ..runfile import read_run

    try:
        with faults.told(advice=f". The recorded run is whole: `{program} report {folder}` draws it"):
            return keep(folder)
    except UserError as error:
        if ended_by is None:
            raise
        if isinstance(error.__cause__, OSError):  # what ended the run is said, and how to draw what is not written here
            return conclude(read_run(folder))
        raise UserError(faults.in_words(ended_by) or str(error)) from ended_by  # not even the header could be written


def _ended_early(error: BaseException, folder: Path, steps: int, program: str) -> int:
    """Says what was kept. Something to mend: says what. Our bug: its traceback, unchanged."""
    from .. import faults

    kept = f"{steps} steps were measured and are kept: {program} report {folder}"
    if isinstance(error, KeyboardInterrupt):
        print(f"interrupted. {kept}", file=sys.stderr)
        return 130
    words = faults.in_words(error)
    if words is None:
        print(kept, file=sys.stderr)
        raise error
    raise UserError(f"{words}\n{kept}") from error


def _show(concluded: Concluded, folder: Path, asked: Asked) -> None:
    from .. import registry
    from ..conclude import draw

    text = registry.load("report", "text")
    if asked.json:
        print(draw(concluded, "json"), end="")
    elif not asked.quiet:
        print(text.render(concluded.run, concluded.result, concluded.diagnosis, colour=sys.stdout.isatty()))
        print(text.footer(str(folder), asked.program))


# Several runs, each in a process of its own


def _several(variants: Sequence[Variant], asked: Asked) -> int:
    """Runs of several settings, or several of one. An unfinished comparison that lies in --out is gone on with."""
    from .. import faults, live
    from ..runfile import SUMMARY
    from ..sweep import Sweep, sweep

    goes_on = asked.out is not None and (asked.out / SUMMARY).is_file()
    if not goes_on:
        asked.refuse_overwriting()
    folder = asked.folder(variants[0].scenario.name)
    made = Sweep(variants[0].scenario.name, variants, folder, sys.argv, asked.device)
    if goes_on:
        made.take_up()
        asked.say(f"{len(made.runs)} runs are there already")
    else:
        where = "" if asked.out else f" --out {shlex.quote(str(folder))}"
        asked.say(f"Broken off, it goes on with: {asked.program} {shlex.join(sys.argv[1:])}{where}")
    try:
        with live.Board(asked.silent) as board:
            comparison = sweep(made, board, asked.silent)
    except KeyboardInterrupt:
        runs = "1 run is" if len(made.runs) == 1 else f"{len(made.runs)} runs are"
        print(f"interrupted. {runs} measured and kept in {folder}{_goes_on(folder)}", file=sys.stderr)
        return 130
    except OSError as error:
        raise UserError(f"{faults.in_words(error)}{_goes_on(folder)}") from error
    finally:
        with suppress(OSError):  # refused before anything was measured: an empty folder tells nothing
            folder.rmdir()
    return _compared(comparison, folder, asked)


def _goes_on(folder: Path) -> str:
    """The advice, where there is something to go on with."""
    from ..runfile import SUMMARY

    return ". The same command with --out set to that folder goes on with it" if (folder / SUMMARY).is_file() else ""


def _compared(comparison: Comparison, folder: Path, asked: Asked) -> int:
    from .. import faults, registry
    from ..conclude import draw_comparison
    from ..runfile import write_whole

    with faults.told(advice=f". All runs are whole: `{asked.program} report {folder}` draws them"):
        if len(comparison.settings) > 1:
            write_whole(folder / "compare.png", draw_comparison(comparison, "png"))
    if asked.json:
        print(draw_comparison(comparison, "json"), end="")
    elif not asked.quiet:
        print(draw_comparison(comparison, "text"))
        print(registry.load("report", "text").footer(str(folder), asked.program))
    failed = [f"{setting.name}: {setting.problem}" for setting in comparison.settings if setting.problem and setting.installed]
    if failed:
        raise UserError("not all was measured. " + "; ".join(failed))
    return 0
