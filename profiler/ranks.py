"""Which of the processes of a distributed run this one is. The only place that reads a launcher's variables."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Any

# (global rank, local rank, world size) as each launcher names them, the innermost first: torchrun may run below mpirun,
# and mpirun inside a Slurm job, whose own variables then speak of the launcher and not of us.
LAUNCHERS = (
    ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
)


def identity(environ: Mapping[str, str]) -> dict[str, Any]:
    """global_rank, local_rank, world_size and host: 0, 0, 1 when alone. local_rank is None where the launcher does not say."""
    host = platform.node() or None
    for names in LAUNCHERS:
        global_rank, local_rank, world_size = (_count(environ.get(name)) for name in names)
        if global_rank is not None and world_size is not None and global_rank < world_size:
            return {"global_rank": global_rank, "local_rank": local_rank, "world_size": world_size, "host": host}
    return {"global_rank": 0, "local_rank": 0, "world_size": 1, "host": host}


def _count(text: str | None) -> int | None:
    """None for what is no count: a user's own RANK=high must not end his training."""
    return int(text) if text is not None and text.isascii() and text.isdigit() else None
