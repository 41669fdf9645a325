"""Where files of ours lie on the user's machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def cache_dir(environ: Mapping[str, str]) -> Path:
    """The folder of sample files: $STALLSCOPE_CACHE, else stallscope/ in $XDG_CACHE_HOME, else ~/.cache/stallscope."""
    if own := environ.get("STALLSCOPE_CACHE"):
        return Path(own).expanduser()
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache") / "stallscope"
