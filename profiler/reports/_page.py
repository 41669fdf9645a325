"""A page of text for a terminal: sections below each other, as wide as the terminal but within 80..120 characters."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterable

from rich.console import Console, RenderableType


def fitting(width: int | None) -> int:
    """In characters: what is asked for, else the terminal's."""
    return width or min(120, max(80, shutil.get_terminal_size().columns))


def page(sections: Iterable[RenderableType], *, width: int | None = None, colour: bool = False) -> str:
    """Plain text, or text with terminal colours."""
    console = Console(
        file=io.StringIO(),
        width=fitting(width),
        height=100,
        color_system="standard" if colour else None,
        force_terminal=colour,
        force_jupyter=False,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    with console.capture() as captured:
        for section in sections:
            console.print(section)
            console.print()
    return "\n".join(line.rstrip() for line in captured.get().rstrip().splitlines()) + "\n"
