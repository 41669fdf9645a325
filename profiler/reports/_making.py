"""Where batches are made, in words: the makers' work, their slowest samples, the way to the consumer, start-up, memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from .. import loops
from ..hot_lines import weight
from ..result import Result
from ..units import count, duration, share, size
from ._words import NOT_MEASURED, STAGES

SHOWN_SAMPLES = 3
MS = 1e6
UNEVEN = 4.0
"""Times the mean: a slowest sample below that is no finding, and its number tells nothing."""


def rows(result: Result) -> list[tuple[str, str]]:
    """A name and its text each; what was not measured has no row, and is told at the end of the report."""
    told = {
        "Work": _work(result),
        "Samples": _samples(result),
        "Hand-off": _handoff(result),
        "Start-up": _startup(result.epochs_detail),
        "Memory": _memory(result.memory),
        "Pressure": _pressure(result),
        "Step": _step(result),
        "Long steps": _long_steps(result),
        "Lines": _lines(result),
        "Loops": _loops(result),
    }
    return [(name, text) for name, text in told.items() if text]


MOST_LINES = 4
LEAST_SHARE = 0.03
"""Of what was seen of a loop or a worker: less is not worth a line."""
LEAST_LONG_SHARE = 0.005
"""Of the wall time, as well."""
PLACES = {"own_code": "own code", "item": "making samples"}


def _step(result: Result) -> str | None:
    """Of a traced script: what its loop does with a batch."""
    parts = {name: part for name, part in result.step_by_part.items() if part is not None}
    if result.scenario or not parts:
        return None
    each = ", ".join(f"{name.replace('_', ' ')} {share(part)}" for name, part in parts.items())
    return f"{each} of the wall time"


def _long_steps(result: Result) -> str | None:
    """Whatever recurs: logging, a checkpoint."""
    found = result.long_steps
    if found is None or found["share"] < LEAST_LONG_SHARE:
        return None
    longer = duration(found["longer_ms"] * 1e6)
    return f"one in {count(found['every_steps'])} takes {longer} longer: {share(found['share'])} of the wall time"


def _lines(result: Result) -> str | None:
    """The lines of a script that cost most, stage by stage."""
    told = [
        f"{PLACES.get(line['stage'], line['stage'])} ({line['role']}, {share(weight(line))} of its time): {_place(line)}"
        + (f", called from {_place(line['caller'])}" if line["caller"] else "")
        for line in sorted(result.hot_lines or (), key=weight, reverse=True)
        if weight(line) >= LEAST_SHARE
    ]
    if told:
        return "; ".join(told[:MOST_LINES])
    return f"not looked at: {result.stacks_problem}" if result.stacks_problem else None


def _place(line: Mapping[str, Any]) -> str:
    return f"{loops.name(line)} in {line['function']}()"


def _loops(result: Result) -> str | None:
    """The others, where a script has several."""
    others = [loop for loop in result.loops if not loop["chosen"]]
    told = [_loop(loop) for loop in others[:MOST_LINES]]
    more = len(others) - len(told)
    return ("; ".join(told) + (f"; {count(more)} more" if more else "")) or None


def _loop(loop: Mapping[str, Any]) -> str:
    inside = loops.inside(loop)
    took = f", {NOT_MEASURED}" if inside is None else f" in {duration(inside[0] * 1e9)}, waiting {share(inside[1])} of it"
    return f"{loop['name']} {count(loop['steps'])} steps{took}"


def _work(result: Result) -> str | None:
    """Of all makers together: what is more than the wait's share of it went on while the device worked."""
    work, items = result.work_s_by_stage, sum(worker["items"] for worker in result.workers or ())
    if not work or not items:
        return None
    per_item = (f"{STAGES[stage].name} {duration(s / items * 1e9)}" for stage, s in work.items() if s is not None)
    workers = int(result.loader.get("n_workers", 0))
    who = f"with {count(workers)} worker{'' if workers == 1 else 's'}" if workers else "in the training thread itself"
    return f"a sample, {who}: {', '.join(per_item)}; {duration(sum(s or 0.0 for s in work.values()) * 1e9)} in all"


def _samples(result: Result) -> str | None:
    """The slowest ones, if they stand out, and whether those that wait do so in line."""
    told = []
    slowest, mean_ms = result.slowest_samples, _mean_ms(result)
    if slowest and mean_ms and slowest[0]["ms"] >= UNEVEN * mean_ms:
        each = (f"{_name(sample)} {duration(sample['ms'] * MS)}" for sample in slowest[:SHOWN_SAMPLES])
        told.append(f"slowest {', '.join(each)}, of {duration(mean_ms * MS)} on average")
    blocked = result.blocked_samples
    if blocked:
        told.append(f"{blocked['in_flight_mean']:.1f} blocked at once, each for {duration(blocked['blocked_ms_mean'] * MS)}")
        line = {True: "they wait in line for each other", False: "they do not wait for each other", None: None}
        told.append(line[blocked["one_at_a_time"]] or "")
    return "; ".join(filter(None, told)) or None


def _name(sample: Mapping[str, Any]) -> str:
    return f"#{sample['index']}" if sample["index"] >= 0 else "one"


def _mean_ms(result: Result) -> float | None:
    """What a sample takes its maker, in milliseconds."""
    work, items = result.work_s_by_stage, sum(worker["items"] for worker in result.workers or ())
    return sum(s or 0.0 for stage, s in work.items() if stage != "collate") / items * 1e3 if work and items else None


def _handoff(result: Result) -> str | None:
    took = result.handoff_latency_ms
    if took is None:
        return None
    return f"from made to had: {duration(took.p50 * MS)} (median), {duration(took.p95 * MS)} (95th percentile) a batch"


def _startup(epochs: Sequence[Mapping[str, Any]]) -> str | None:
    """Of the first epoch, and what later ones cost again."""
    known = [epoch["startup"] for epoch in epochs if epoch["startup"]["first_batch_at_ms"] is not None]
    if not known:
        return None
    first, later = known[0], [each["first_batch_at_ms"] for each in known[1:]]
    text = f"iter() {duration(first['iter_ms'] * MS)}"
    if first["workers_started"]:
        text += f", {count(first['workers_started'])} workers ready after {duration(first['ready_at_ms'] * MS)}"
        text += f" ({_of_which(first)})"
    text += f", first batch after {duration(first['first_batch_at_ms'] * MS)}"
    return text + (f"; in later epochs after {duration(median(later) * MS)}" if later else "")


def _of_which(first: Mapping[str, Any]) -> str:
    process = "" if first["process_ms"] is None else f"process and imports {duration(first['process_ms'] * MS)}, "
    return f"{process}worker_init_fn {duration(first['init_ms'] * MS)}"


def _memory(memory: Mapping[str, Any] | None) -> str | None:
    if not memory or memory["pss_bytes_max"] is None:
        return None
    text = f"at most {size(memory['pss_bytes_max'])} in all processes, shared pages counted once"
    text += "" if memory["shm_bytes_max"] is None else f"; {size(memory['shm_bytes_max'])} of /dev/shm"
    return text + ("" if memory["descriptors_max"] is None else f"; {count(memory['descriptors_max'])} descriptors")


def _pressure(result: Result) -> str | None:
    """Said only where something pressed."""
    pressing = {name: part for name, part in (result.pressure or {}).items() if part and part >= 0.01}
    told = [f"some process waited for {name} {share(part)} of the time" for name, part in pressing.items()]
    if result.throttled_share:
        told.append(f"a CPU quota held the job up {share(result.throttled_share)} of its time")
    return "; ".join(told) or None
