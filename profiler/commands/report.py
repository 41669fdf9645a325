"""`report`: draws a run, or a comparison, again."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from ..errors import UserError


def main(
    run: Annotated[Path, typer.Argument(help="A run directory, or one of several runs.")],
    format: Annotated[str, typer.Option("--format", "-f", help="text, json, png or lanes.")] = "text",
    out: Annotated[Path | None, typer.Option(help="A file to write to. [default: stdout]")] = None,
) -> None:
    """Draws a recorded run again, from its files alone: on any machine, with the rules of this version."""
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
