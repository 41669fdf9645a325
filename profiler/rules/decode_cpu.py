"""Transform or decode on CPU is what the device waits for."""

from __future__ import annotations

from ..result import Finding, Result
from ..units import count, duration, share
from . import _stall


def judge(result: Result) -> Finding | None:
    """Time in the queue for a core counts with the computing that needed it."""
    if not _stall.is_main(result, "decode", "core_shortage"):
        return None
    cpu, part = _stall.per_item(result, "cpu"), _stall.part_of_stall(result, "decode", "core_shortage")
    if cpu is None or part is None:
        return None
    return Finding(
        kind="decode_cpu",
        severity=_stall.severity(_stall.wall_share(result, "decode", "core_shortage")),
        verdict="Decoding on the CPU is what the device waits for.",
        because=f"{_stall.stall_in_words(result).capitalize()}; {share(part)} of that stall is decoding and waiting for a core "
        f"to decode on: {duration(cpu)} of CPU a sample{_shared_with_model(result)}{_stall.neighbours_in_words(result)}.",
        try_next=_next(result),
        evidence=_stall.evidence(result) | {"decode_part_of_stall": part},
        wall_share=_stall.wall_share(result, "decode", "core_shortage"),
    )


def _shared_with_model(result: Result) -> str:
    return ". The model's own step needs the same cores" if result.device.get("kind") == "cpu" else ""


def _next(result: Result) -> str:
    cheaper = (
        "decode less (smaller images, a reduced-size JPEG decode), or keep samples decoded (source ram with hold: decoded)"
    )
    workers, cores = _stall.n_workers(result), _stall.usable_cores(result)
    if cores is None or workers < cores:
        return f"Spread it over more cores first (see too little parallelism); then {cheaper}."
    return f"More workers cannot help: {workers} already share {count(cores)} cores. Make a sample cheaper: {cheaper}."
