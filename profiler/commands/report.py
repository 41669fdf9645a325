"""`report`: draws a run, or a comparison, again."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from ..errors import UserError


def main(
    run: Annotated[Path, typer.Argument(help="A run directory, or one of several runs.")],
    format: Annotated[str, typer.Option("--format", "-f", help="text, json, png or lanes.")] = "text",
    out: Annotated[Path | None, typer.Option(help="A file to write to. [default: stdout]")] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Of a run that goes on: draws it anew every two seconds, until it has ended.")
    ] = False,
) -> None:
    """Draws a recorded run again, from its files alone: on any machine, with the rules of this version."""
    if watch:
        if format != "text" or out is not None:
            raise UserError("report: --watch draws text on the terminal: leave out --format and --out")
        _watch(run)
        return
    from .. import faults
    from ..conclude import conclude, draw, draw_comparison
    from ..runfile import SUMMARY, read_comparison, read_run, write_whole

    if out is not None and (not out.name or os.path.lexists(out)):
        raise UserError(f"--out {out}: exists, or has no name: name a new file to write to")
    several = (run / SUMMARY).is_file()
    drawn = draw_comparison(read_comparison(run), format) if several else draw(conclude(read_run(run)), format)
    data = drawn.encode() if isinstance(drawn, str) else drawn
    if not isinstance(data, bytes):
        raise UserError(f"report '{format}': its render returned {type(data).__name__}, not text or bytes")
    if out is None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        write_whole(out, data)
    except OSError as error:
        raise UserError(faults.in_words(error)) from error


PERIOD_S, PATIENCE_S = 2.0, 60.0


def _watch(folder: Path) -> None:
    """Again and again, until the run has ended, or nothing was written for so long that it must have been killed."""
    from ..conclude import conclude, draw
    from ..runfile import read_run

    while True:
        run = read_run(folder)
        text = draw(conclude(run), "text")
        if sys.stdout.isatty():
            print("\x1b[2J\x1b[H", end="")
        print(text, flush=True)
        if run.header.outcome is not None:
            return
        if time.time() - _last_written(folder) > PATIENCE_S:
            raise UserError(f"{folder}: nothing was written for a minute: the run was killed, or its program stands still")
        time.sleep(PERIOD_S)


def _last_written(folder: Path) -> float:
    return max((path.stat().st_mtime for path in folder.rglob("*") if path.is_file()), default=0.0)
