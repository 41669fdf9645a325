"""`clean`: removes sample files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ..errors import UserError


def main(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Folders of sample files (a source's path). [default: the cache]")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Does not ask.")] = False,
) -> None:
    """Removes the sample files that sources wrote: those in the cache, or those in the folders named. Runs are left alone."""
    from .. import registry
    from ..places import cache_dir
    from ..units import count, size

    files = registry.load("source", "ssd")
    place = cache_dir(os.environ)
    places = {folder.resolve().parent for folder in folders} if folders else {place}
    held = [held for each in sorted(places) for held in files.sample_folders(each)]
    wanted = {folder.resolve() for folder in folders or ()}
    if unknown := wanted - {each.folder.resolve() for each in held}:
        raise UserError(f"{min(unknown)}: holds no sample files of ours, so nothing is removed")
    chosen = [each for each in held if not wanted or each.folder.resolve() in wanted]
    if not chosen:
        print(f"no sample files in {place}")
        return
    for each in chosen:
        print(f"{each.folder}: {count(each.files)} files, {size(each.bytes)}")
    if not yes and not typer.confirm("Remove them?"):
        return
    for each in chosen:
        try:
            print(f"{each.folder}: {size(files.clean(each.folder))} freed")
        except (OSError, ValueError) as error:
            raise UserError(f"{each.folder} cannot be cleaned: {error}") from error
