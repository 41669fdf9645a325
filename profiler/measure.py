"""Run -> Result: what every number is. Pure arithmetic on recorded times; no clock, no file, no framework."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import stats
from .attribution import Stages, lock_wait_ns, stages, work_ns
from .counters import summary
from .events import STEP_PARTS, Kind, Row
from .handoff import latencies_ns
from .hot_lines import forward_share, hot_lines
from .intervals import Intervals, intersect, subtract, total
from .ledger import startup
from .loops import busiest, name, number, split
from .periods import period
from .requests import requests
from .result import Cost, Result, Storage, Throughput, Verdict
from .run import Run
from .steady import Steady
from .timeline import Epoch, Timeline, timeline


def measure(run: Run) -> Result:
    """Every number of the contract; None: not recorded. Of a script with several loops they are the busiest one's."""
    loops = split(run)
    if not loops:
        return _measure(run)
    chosen = busiest(loops)
    results = {number(loop): _measure(loop) for loop in loops}
    return replace(results[number(chosen)], loops=[_loop(loop, results[number(loop)], loop is chosen) for loop in loops])


def _loop(loop: Run, result: Result, chosen: bool) -> dict[str, Any]:
    """One entry of `loops`."""
    entry = loop.header.loops[0]
    keys = ("steps", "epochs", "samples", "wall_s", "startup_s", "wall_by_part", "input_stall_share", "verdict")
    return {**entry, "name": name(entry), "chosen": chosen, **{key: getattr(result, key) for key in keys}}


def _measure(run: Run) -> Result:
    line = timeline(run)
    header, outcome = run.header, run.header.outcome
    frame: dict[str, Any] = {
        "name": header.name,
        "command": header.command,
        "scenario": header.scenario,
        "complete": run.complete,
        "environment": header.environment,
        "identity": header.identity,
        "device": header.device,
        "source": header.source,
        "loader": header.loader,
        "sync_every_step": header.scenario.get("sync_every_step"),
        "unreadable_samples": _sum(run.made["n_skipped"]) if not len(run.of(Kind.GAP)["kind"]) else None,
        "worst_steps": _worst(run),
    }
    if outcome is not None:
        frame |= {
            "loss": None if outcome.loss is None else {"first": outcome.loss[0], "last": outcome.loss[1]},
            "distinct_samples": outcome.distinct_samples,
            "cpu_cores": outcome.cpu_cores,
            "foreign_cpu_share": outcome.foreign_cpu_share,
            "stopped_by": outcome.stopped_by,
            "stacks_problem": outcome.stacks_problem,
        }
    if line is None:  # it ended before its first iter(), or has none
        verdict: Verdict = "too_short" if header.scenario else "not_measured"
        return Result(**frame, profiler_cost=Cost(records=0, dropped=None), verdict=verdict)
    return _measured(run, line, frame)


def _measured(run: Run, line: Timeline, frame: dict[str, Any]) -> Result:
    wall, n_workers = max(1, line.end_ns), int(run.header.loader["n_workers"])
    kept_share = wall / (wall + line.gap_ns)
    outcome = run.header.outcome if line.gap_ns else None
    whole_s = (line.end_ns + line.gap_ns) / 1e9
    samples = (outcome and outcome.samples) or int(line.steps.n_samples.sum()) + line.gap_samples
    steady = Steady(run, line)
    epochs = _epochs(run, line)
    wait_stages = stages(line.wait, line, n_workers)
    return Result(
        **frame,
        **_device(line, wall, str(run.header.device.get("method")), n_workers),
        sampled=line.gap_ns > 0,
        sampled_share=kept_share if line.gap_ns else None,
        steps=(outcome and outcome.steps) or _counted(run, line, "step"),
        warmup_steps=steady.n_warmup,
        epochs=(outcome and outcome.epochs) or _counted(run, line, "epoch"),
        samples=samples,
        epochs_detail=epochs,
        before_loop_s=_before_loop_s(run),
        wall_s=whole_s,
        startup_s=None if line.startup is None else total(line.startup) / 1e9 / kept_share,
        harness_s=line.harness_ns / 1e9,
        wall_by_part={
            "wait": total(line.wait) / wall,
            "step": total(line.step) / wall,
            "outside_loop": total(line.outside) / wall,
        },
        throughput_samples_per_s=Throughput(samples / max(1e-9, whole_s), steady.samples_per_s, steady.samples_per_s_ci95),
        demand_samples_per_s=steady.demand,
        capacity_samples_per_s=steady.capacity(n_workers),
        headroom_max_speedup=steady.headroom,
        step_time_ms=stats.spread_ms(steady.time_ns),
        wait_ms=stats.spread_ms(steady.wait_ns),
        input_wait_share=total(line.wait) / wall,
        input_wait_by_stage=_shares(wait_stages, wall),
        work_s_by_stage={stage: ns and ns / 1e9 for stage, ns in work_ns(line.made).items()} if len(line.made["pid"]) else None,
        lock_wait_s=lock_wait_ns(line.made) / 1e9 if len(line.made["pid"]) else None,
        handoff_latency_ms=stats.spread_ms(latencies_ns(line.received, line.made)),
        steady_input_stall=steady.stall,
        step_by_part=_step_parts(run, line, wall),
        long_steps=None if line.gap_ns else period(line.steps.ended - line.steps.got, wall),
        hot_lines=hot_lines(run.stacks) if run.stacks else None,
        storage=_storage(run, line, epochs, samples),
        blocked_samples=None if (waited := requests(line.items)) is None else asdict(waited),
        slowest_samples=_slowest(line),
        workers=_workers(line),
        **_readings(run, line),
        profiler_cost=_cost(run, line, wall, n_workers),
        verdict=steady.verdict,
    )


def _counted(run: Run, line: Timeline, what: str) -> int:
    """Steps or epochs: of a killed run that kept only blocks, up to the last one that it kept."""
    if not line.gap_ns:
        return len(line.steps if what == "step" else line.epochs)
    return int(run.of(Kind.WAIT)[what].max()) + 1


def _device(line: Timeline, wall: int, method: str, n_workers: int) -> dict[str, Any]:
    """Busy, idle, and the causes of idle: each idle instant takes the first that holds, so that they sum to it."""
    if line.idle is None:
        return {}
    stalled = intersect(line.idle, line.wait)
    return {
        "device_busy_share": 1 - total(line.idle) / wall,
        "device_idle_share": total(line.idle) / wall,
        "idle_by_cause": _shares(_causes(line, line.idle, method), wall),
        "input_stall_share": total(stalled) / wall,
        "input_stall_by_stage": _shares(stages(stalled, line, n_workers), wall),
    }


def _causes(line: Timeline, idle: Intervals, method: str) -> Stages:
    """What can be told apart depends on how the device is watched: its own clock knows copies; a CPU has none; events inside
    a step see neither copies' gaps nor launches."""
    asked: list[tuple[str, Intervals | None]] = [("outside_loop", line.outside), ("input", line.wait)]
    asked += [("copy", line.copy if method == "clock" else None)]
    asked += [("sync", line.sync if method not in ("model_step", "loop_body") else None)]
    asked += [("host", line.step if method not in ("events", "loop_body") else None)]
    causes: Stages = {}
    for cause, when in asked:
        causes[cause] = None if when is None else float(total(intersect(idle, when)))
        idle = idle if when is None else subtract(idle, when)
    return causes | {"unexplained": float(total(idle))}


def _step_parts(run: Run, line: Timeline, wall: int) -> dict[str, float | None]:
    """What the host does in its steps. A part that was never seen is not known to be none. The forward pass is what stacks show
    of it, and own code what is left of a traced script's steps; they sum to the steps' share of wall."""
    parts: dict[str, float | None] = dict.fromkeys(STEP_PARTS)
    if run.header.device.get("method") != "loop_body":
        return parts | {"sync": total(line.sync) / wall}
    step, backward = total(line.step) / wall, total(line.backward) / wall
    optimizer = total(subtract(line.optimizer, line.backward)) / wall  # some call the backward pass from within
    parts |= {"backward": backward if len(line.backward) else None, "optimizer": optimizer if len(line.optimizer) else None}
    looked_at = forward_share(run.stacks)
    if looked_at is not None:
        forward = min(step - backward - optimizer, looked_at * step)
        parts |= {"forward": forward, "own_code": step - backward - optimizer - forward}
    return parts


def _shares(ns: Mapping[str, float | None], wall_ns: int) -> Stages:
    return {name: None if value is None else value / wall_ns for name, value in ns.items()}


def _before_loop_s(run: Run) -> float | None:
    started, first_iter = run.header.process_start_ns, int(run.of(Kind.ITER)["start_ns"][0])
    return None if started is None else (first_iter - started) / 1e9


MOST_EPOCHS = 1000
"""Told one by one: of more the first ones and the last."""


def _epochs(run: Run, line: Timeline) -> list[dict[str, Any]]:
    """Those that were recorded whole."""
    order = np.argsort(line.made["begin_ns"], kind="stable")
    begins = line.made["begin_ns"][order]
    whole = [epoch for epoch in line.epochs if not _cut(line, epoch)]
    return [
        _epoch(run, line, epoch, order[slice(*np.searchsorted(begins, (epoch.start_ns, epoch.end_ns)))])
        for epoch in (whole if len(whole) <= MOST_EPOCHS else [*whole[: MOST_EPOCHS - 1], whole[-1]])
    ]


def _cut(line: Timeline, epoch: Epoch) -> bool:
    """Whether steps of it were not kept."""
    first, last = np.searchsorted(line.gaps, (epoch.start_ns, epoch.end_ns + 1))
    return bool(last > first)


def _epoch(run: Run, line: Timeline, epoch: Epoch, mine: NDArray[np.int64]) -> dict[str, Any]:
    """mine: which of the makers' records are of this epoch."""
    first = line.steps.first_of(epoch.number)
    shares = (run.header.resident_shares, run.header.resident_shares_after)
    resident, after = (of_each[epoch.number] if epoch.number < len(of_each) else None for of_each in shares)
    asked, fetched = _sum(line.made["bytes_asked"][mine]), _sum(line.made["bytes_from_device"][mine])
    emulated = run.header.source.get("emulated")
    return {
        "epoch": epoch.number,
        "wall_s": (epoch.end_ns - epoch.start_ns) / 1e9,
        "first_wait_ms": None if first is None else float(line.steps.got[first] - line.steps.asked[first]) / 1e6,
        "bytes_asked": asked,
        "bytes_from_device": _from_emulated(asked, resident) if emulated else fetched,
        "resident_share_before": resident,
        "resident_share_after": after,
        "startup": startup(line, epoch),
    }


_COUNTS = ("bytes_asked", "bytes_from_device", "n_items")


def _worst(run: Run) -> list[dict[str, Any]]:
    """The longest waits, whether their surroundings were kept or not."""
    rows = (Row(*row) for row in (run.header.outcome.worst_steps if run.header.outcome else ()))
    return [{"step": row.step, "epoch": row.epoch, "wait_ms": (row.end_ns - row.start_ns) / 1e6} for row in rows]


def _from_emulated(asked: int | None, resident: float | None) -> int | None:
    """An emulated device is none that the kernel counts: it served what was not resident, and each sample is read once."""
    return None if asked is None or resident is None else round(asked * (1 - resident))


def _served(epochs: Sequence[Mapping[str, Any]], asked: int | None) -> int | None:
    """Of an emulated device, in the whole run: of one that was sampled only some epochs are known, and stand for the others."""
    of_each = [(epoch["bytes_from_device"], epoch["bytes_asked"]) for epoch in epochs]
    if not asked or not of_each or any(None in pair for pair in of_each):
        return None
    served, known = (sum(column) for column in zip(*of_each, strict=True))
    return round(asked * served / known) if known else None


def _sum(counts: NDArray[np.int64]) -> int | None:
    """The sum; None where nothing was recorded or an entry was not measured (-1)."""
    return None if len(counts) == 0 or bool((counts < 0).any()) else int(counts.sum())


def _storage(run: Run, line: Timeline, epochs: Sequence[Mapping[str, Any]], samples: int) -> Storage:
    if run.header.source.get("medium") == "synthetic":  # no storage beneath, so none of its numbers mean anything
        return Storage()
    if line.gap_ns:  # an estimate, from the samples that were kept
        made = {name: line.made[name] * samples // max(1, int(line.made["n_items"].sum())) for name in _COUNTS}
    else:
        made = {name: run.made[name] for name in _COUNTS}
    asked, fetched = _sum(made["bytes_asked"]), _sum(made["bytes_from_device"])
    if run.header.source.get("emulated"):
        fetched = _served(epochs, asked)
    cached = None if not asked or fetched is None else min(1.0, max(0.0, 1 - fetched / asked))
    return Storage(asked, fetched, cached, _sum(made["n_items"]), bool(run.header.source.get("emulated")))


MOST_SLOW_SAMPLES = 20


def _slowest(line: Timeline) -> list[dict[str, Any]] | None:
    """Of those that were recorded one by one. The first sample of a maker is left out: it warms up."""
    items = line.items
    if len(items["pid"]) == 0:
        return None
    took = items["end_ns"] - items["start_ns"]
    out = []
    for i in np.argsort(-took, kind="stable")[:MOST_SLOW_SAMPLES].tolist():
        runq = max(0, int(items["runq_ns"][i]))
        blocked = int(took[i] - items["cpu_ns"][i]) - runq
        ms = {"ms": took[i], "blocked_ms": max(0, blocked), "cpu_ms": items["cpu_ns"][i], "runq_ms": runq}
        out.append(
            {"index": int(items["sample"][i]), "pid": int(items["pid"][i]), **{k: float(v) / 1e6 for k, v in ms.items()}}
        )
    return out


def _readings(run: Run, line: Timeline) -> dict[str, Any]:
    """What the samplers saw in the window. The foreign share of CPU is the outcome's: it is read at the window's very ends."""
    said = summary(line.counts, 0, line.end_ns, run.header.environment.get("usable_cores"))
    names = ("memory", "processes", "throttled_share", "throttled_periods_share", "pressure", "gpu")
    return {**{name: said[name] for name in names}, "disk": said["device"]} if len(line.counts["at_ns"]) else {}


def _workers(line: Timeline) -> list[dict[str, Any]] | None:
    """One entry a thread or process that made batches. Shares are of its own active time and sum to 1."""
    made = line.made
    worker_ids = dict(zip(line.started["pid"].tolist(), line.started["worker_id"].tolist(), strict=True))
    if len(made["pid"]) == 0:
        return None
    out = []
    makers = made["pid"] << 32 | made["thread_id"]
    for maker in np.unique(makers).tolist():
        mine = {name: column[makers == maker] for name, column in made.items()}
        pid, thread_id = divmod(maker, 1 << 32)
        active = max(1, int((mine["end_ns"] - mine["begin_ns"]).sum()))
        collate = int((mine["end_ns"] - mine["items_ns"]).sum())
        cpu, runq = int(mine["items_cpu_ns"].sum()), _sum(mine["items_runq_ns"])
        shares = {"cpu": cpu / active, "runq": None if runq is None else runq / active, "collate": collate / active}
        shares["blocked"] = max(0.0, 1 - sum(share or 0.0 for share in shares.values()))
        counts = {"batches": len(mine["pid"]), "items": int(mine["n_items"].sum()), "active_s": active / 1e9}
        out.append({"pid": pid, "thread_id": thread_id, "worker_id": worker_ids.get(pid), **counts, "shares": shares})
    return out


def _cost(run: Run, line: Timeline, wall: int, n_workers: int) -> Cost:
    n_made, outcome = len(line.made["pid"]), run.header.outcome
    records = len(run.spans["kind"]) + n_made
    dropped = max(0, len(line.steps) - n_made) if n_made else None
    if outcome is None or outcome.us_per_step_main is None:
        return Cost(records, dropped)
    per_step_us = outcome.us_per_step_main + (0.0 if n_workers else outcome.us_per_batch_maker or 0.0)
    share = per_step_us * 1e3 * len(line.steps) / wall
    return Cost(records, dropped, outcome.us_per_step_main, outcome.us_per_batch_maker, share, dict(outcome.faults))
