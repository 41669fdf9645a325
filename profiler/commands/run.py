"""`run`: measures a scenario."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UserError
from ..interrupts import Terminated

if TYPE_CHECKING:
    from ..conclude import Concluded
    from ..contracts import Source
    from ..scenario import Scenario


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

    Writes a run directory (run.json, events, result.json, stalls.png) and prints the report. Exit status 0: measured;
    2: something to mend, as the message says; 130: interrupted, with what was measured kept.
    """
    from ..scenario import find, load

    asked = load(find(scenario), settings or [], device=device, steps=steps, duration=duration, repeats=repeats)
    if out is not None and os.path.lexists(out):
        raise UserError(f"{out} exists, and a run never overwrites another: choose another --out, or remove it")
    signal.signal(signal.SIGTERM, _terminate)
    program = context.find_root().info_name or "stallscope"
    source = _prepared(asked, device, silent=quiet or json)
    folder = out or _fresh(Path("runs"), asked.name)
    folders = [folder] if asked.repeats == 1 else [folder / f"run-{i:03d}" for i in range(asked.repeats)]
    concluded = []
    for each in folders:
        ended_by = _measured(asked, source, each, device, silent=quiet or json)
        concluded.append(_concluded(each, ended_by, program))
        if ended_by is not None:
            _show([each], concluded[-1:], None, program, json=json, quiet=quiet)
            return _ended_early(ended_by, each, concluded[-1].result.steps, program)
    summary = _summarised(folder, folders, concluded, program)
    _show(folders, concluded, summary, program, json=json, quiet=quiet)
    return 0


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise Terminated("SIGTERM")


def _fresh(parent: Path, name: str) -> Path:
    """A new directory, named after the scenario and the time; made at once, since another run may begin in the same second."""
    from .. import faults

    base = f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    for each in (base, *(f"{base}-{i}" for i in range(2, 1000))):
        try:
            (parent / each).mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise UserError(faults.in_words(error)) from error
        return parent / each
    raise UserError(f"{parent} holds a thousand runs of this second: name another --out")


def _prepared(asked: Scenario, device: str, silent: bool) -> Source:
    """The source with its samples ready; whatever is in the way is the user's to mend."""
    from .. import faults, live
    from ..execute import prepare
    from ..places import cache_dir

    try:
        with live.preparing("writing sample files", silent) as progress:
            return prepare(asked, cache_dir(os.environ), device, progress)
    except OSError as error:
        raise UserError(f"source '{asked.source.kind}': {faults.in_words(error)}") from error


def _measured(asked: Scenario, source: Source, folder: Path, device: str, silent: bool) -> BaseException | None:
    from .. import faults, live
    from ..execute import execute

    try:
        return execute(asked, source, folder, sys.argv, device, live.progress(silent))
    except OSError as error:
        raise UserError(faults.in_words(error)) from error


def _concluded(folder: Path, ended_by: BaseException | None, program: str) -> Concluded:
    """Reads the run back, as `report` will, and writes what was concluded beside it."""
    from .. import faults
    from ..conclude import conclude, draw
    from ..runfile import read_run, write_whole

    try:
        concluded = conclude(read_run(folder))
    except UserError as error:  # not even the header could be written, and why is what ended the run
        raise UserError((ended_by and faults.in_words(ended_by)) or str(error)) from ended_by
    try:
        write_whole(folder / "result.json", draw(concluded, "json"))
        write_whole(folder / "stalls.png", draw(concluded, "png"))
    except OSError as error:
        if ended_by is None:  # else that is said, and how to draw what is not written here
            raise UserError(
                f"{faults.in_words(error)}. The recorded run is whole: `{program} report {folder}` draws it"
            ) from error
    return concluded


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


def _summarised(folder: Path, folders: list[Path], concluded: list[Concluded], program: str) -> str | None:
    """The summary of several runs, written beside them; None for one run."""
    from .. import faults
    from ..repeats import summary
    from ..runfile import to_text, write_whole

    if len(folders) == 1:
        return None
    content = to_text(summary(folder.name, [each.name for each in folders], [each.result for each in concluded]))
    try:
        write_whole(folder / "summary.json", content)
    except OSError as error:
        raise UserError(f"{faults.in_words(error)}. All runs are whole: `{program} report {folders[0]}` draws one") from error
    return content


def _show(folders: list[Path], concluded: list[Concluded], summary: str | None, program: str, json: bool, quiet: bool) -> None:
    """The report of the run with the median throughput; of several, their table as well."""
    from .. import registry
    from ..conclude import draw
    from ..repeats import middle, table

    text = registry.load("report", "text")
    results = [each.result for each in concluded]
    shown = middle(results)
    each = concluded[shown]
    if json:
        print(summary or draw(each, "json"), end="")
    elif not quiet:
        print(text.render(each.run, each.result, each.diagnosis, colour=sys.stdout.isatty()))
        if summary is not None:
            print(table([folder.name for folder in folders], results))
        print(text.footer(str(folders[shown]), program))
