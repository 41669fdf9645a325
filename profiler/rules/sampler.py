"""Making indices in the main process starves the workers."""

from __future__ import annotations

from ..result import Finding, Result
from ..units import duration, share
from . import _stall


def judge(result: Result) -> Finding | None:
    if not _stall.is_main(result, "sampler"):
        return None
    part, drawing = _stall.part_of_stall(result, "sampler"), result.input_wait_by_stage.get("sampler")
    if part is None or not drawing or not result.steps:
        return None
    each_ns = drawing * result.wall_s / result.steps * 1e9
    return Finding(
        kind="sampler",
        severity=_stall.severity(_stall.wall_share(result, "sampler")),
        verdict="Choosing the samples is what the device waits for: the sampler draws them in the training thread.",
        because=f"{_stall.stall_in_words(result).capitalize()}; {share(part)} of that stall is drawing indices, "
        f"{duration(each_ns)} a batch.",
        try_next="More workers cannot help: they wait for their indices. Draw a whole epoch's indices at once (one "
        "permutation, weights and groups computed before the first batch), or in a thread of their own.",
        evidence=_stall.evidence(result) | {"sampler_part_of_stall": part, "sampler_ns_per_batch": each_ns},
        wall_share=_stall.wall_share(result, "sampler"),
    )
