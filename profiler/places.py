"""Where files of ours lie on the user's machine."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from . import faults
from .errors import UserError


def cache_dir(environ: Mapping[str, str]) -> Path:
    """The folder of sample files: $STALLSCOPE_CACHE, else stallscope/ in $XDG_CACHE_HOME, else ~/.cache/stallscope."""
    if own := environ.get("STALLSCOPE_CACHE"):
        return Path(own).expanduser()
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache") / "stallscope"


def fresh(parent: Path, name: str) -> Path:
    """A new directory, named after what is run and the time; made at once, since another run may begin in the same second."""
    base = f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    for each in (base, *(f"{base}-{i}" for i in range(2, 1000))):
        with faults.told(), suppress(FileExistsError):
            (parent / each).mkdir(parents=True)
            return parent / each
    raise UserError(f"{parent} holds a thousand runs of this second: name another --out")
