"""What the rules on input stalls share: which stage carries the stall, and what the loader runs on."""

from __future__ import annotations

import math
from typing import Literal

from ..result import NEIGHBOURS_SHARE, Result
from ..units import duration, share

MAIN = 0.4
"""A stage is the main one if it carries this part of the stall, and more than any other that is explained."""
HIGH = 0.2
"""A stall of a fifth of the time is worth dropping other work for; published tools draw the line there too."""


PARALLELISM = {"torch_workers": "num_workers", "threads": "num_threads", "tf_prefetch": "num_parallel_calls"}
"""What each loader calls the number of those that make its batches."""


def part_of_stall(result: Result, *stages: str) -> float | None:
    """What part of the whole input stall these stages carry, 0..1; None if it was not split, or there is none."""
    parts = [result.input_stall_by_stage.get(stage) for stage in stages]
    if not result.input_stall_share or parts[0] is None:
        return None
    return sum(part or 0.0 for part in parts) / result.input_stall_share


def is_main(result: Result, *stages: str) -> bool:
    """Whether these stages together are what an input-bound run waits for."""
    part = part_of_stall(result, *stages)
    if result.verdict != "input_bound" or part is None:
        return False
    others = [stage for stage in result.input_stall_by_stage if stage not in (*stages, "unexplained")]
    return part >= MAIN and part >= max(part_of_stall(result, other) or 0.0 for other in others)


def serves_one_at_a_time(result: Result) -> bool:
    """Whether what samples come from is known to, or was seen to: those that were blocked at once waited for each other."""
    if has_one_head(result):
        return True
    seen = (result.blocked_samples or {}).get("one_at_a_time")
    return seen is True


def has_one_head(result: Result) -> bool:
    """Whether the storage is a disk that rotates, real or emulated. Virtual disks call themselves rotational."""
    if (result.storage.cached_share or 0.0) > 0.5:  # most did not come from it
        return False
    disk, device = result.source.get("disk") or {}, result.source.get("device") or {}
    rotates = disk.get("rotational_flag") is True and disk.get("virtual") is False
    return rotates or device.get("requests_in_flight") == 1


def wall_share(result: Result, *stages: str) -> float:
    """The part of wall_s in which the device idled for these stages."""
    return sum(result.input_stall_by_stage.get(stage) or 0.0 for stage in stages)


def severity(stall_share: float) -> Literal["moderate", "high"]:
    return "high" if stall_share >= HIGH else "moderate"


def n_workers(result: Result) -> int:
    return int(result.loader.get("n_workers", 0))


def usable_cores(result: Result) -> float | None:
    cores = result.environment.get("usable_cores")
    return None if cores is None else float(cores)


def workers_needed(result: Result) -> int | None:
    """How many makers of batches the demand needs, if each keeps the pace that it had; None: not measured.

    An estimate from two measured rates: it knows nothing of cores, locks or disks that the makers share.
    """
    if not result.demand_samples_per_s or not result.capacity_samples_per_s:
        return None
    per_maker = result.capacity_samples_per_s / max(1, n_workers(result))
    return math.ceil(result.demand_samples_per_s / per_maker - 1e-9)


def more_workers(result: Result, proposed: int) -> str:
    """The setting, now and proposed; for a loader that has no workers, the loader to take instead."""
    kind = str((result.scenario or {}).get("loader", {}).get("kind"))
    if kind == "naive":
        return f"--set loader=torch_workers --set loader.num_workers={proposed}"
    text = f"{PARALLELISM.get(kind, 'num_workers')}: {n_workers(result)} -> {proposed}"
    cores = usable_cores(result)
    if kind == "tf_prefetch" and (cores is None or proposed > cores):  # its pool has a thread a core
        text += f", with private_threadpool_size: {proposed}"
    return text


def stall_in_words(result: Result) -> str:
    """The device's stall and its interval."""
    stall = result.steady_input_stall
    assert stall is not None
    low, high = stall.ci95
    return f"the device idles {share(stall.share)} of the steady time for want of a batch (95 %: {share(low)} to {share(high)})"


def neighbours_in_words(result: Result) -> str:
    """A clause on what others took of the cores, where that is enough to move the result."""
    foreign = result.foreign_cpu_share
    return (
        f". Other processes took {share(foreign)} of the usable cores meanwhile"
        if foreign and foreign >= NEIGHBOURS_SHARE
        else ""
    )


def per_item(result: Result, state: str) -> float | None:
    """Nanoseconds a sample that makers spent in this state (`cpu`, `blocked`), measured where batches were made."""
    workers = result.workers or ()
    items = sum(worker["items"] for worker in workers)
    if not items or any(worker["shares"][state] is None for worker in workers):
        return None
    return float(sum(worker["active_s"] * worker["shares"][state] for worker in workers) / items * 1e9)


def per_item_in_words(result: Result) -> str:
    """What a sample costs its maker."""
    cpu, blocked = per_item(result, "cpu"), per_item(result, "blocked")
    if cpu is None or blocked is None:
        return "the cost of a sample was not measured"
    return f"a sample costs {duration(blocked)} blocked and {duration(cpu)} of CPU"


def evidence(result: Result) -> dict[str, object]:
    """The figures behind the sentences of this file."""
    stall = result.steady_input_stall
    return {
        "steady_input_stall": stall and stall.share,
        "ci95": stall and stall.ci95,
        "input_stall_by_stage": dict(result.input_stall_by_stage),
        "blocked_ns_per_sample": per_item(result, "blocked"),
        "cpu_ns_per_sample": per_item(result, "cpu"),
        "n_workers": n_workers(result),
        "usable_cores": usable_cores(result),
        "workers_needed": workers_needed(result),
        "demand_samples_per_s": result.demand_samples_per_s,
        "capacity_samples_per_s": result.capacity_samples_per_s,
        "headroom_max_speedup": result.headroom_max_speedup,
        "foreign_cpu_share": result.foreign_cpu_share,
    }
