"""Result -> Diagnosis: asks every rule, puts what costs most first, and never leaves a reader without an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .contracts import Rule
from .result import Diagnosis, Finding, Result
from .units import duration, share


def diagnose(result: Result, rules: Sequence[Rule]) -> Diagnosis:
    """What the rules found, the costliest first; if none knows the cause, what can be said without them."""
    found = [finding for rule in rules if (finding := rule.judge(result)) is not None]
    found.sort(key=lambda finding: -finding.wall_share)
    return Diagnosis(found or [last_resort(result)])


def last_resort(result: Result) -> Finding:
    """No rule recognised a cause. The kind is then the verdict itself."""
    stall, wait = result.steady_input_stall, result.input_wait_share
    if wait is None and not result.scenario and result.verdict == "not_measured":
        return _no_loader(result)
    if wait is not None and result.device.get("trains_elsewhere") and result.device.get("method") is None:
        return _handed_on(wait)
    if stall is None:
        return Finding(
            kind="not_measured",
            severity="info",
            verdict="Not measured when the device was busy: whether it waits for data is not known.",
            because="No batch was asked for." if wait is None else f"The host waited for batches {share(wait)} of the time.",
            try_next="Run on a device whose busy time is measured: --device cpu, cuda or simulated.",
            evidence={"input_wait_share": wait},
        )
    low, high = stall.ci95
    evidence = {"steady_input_stall": stall.share, "ci95": stall.ci95, "wait_ms_mean": result.wait_ms and result.wait_ms.mean}
    because = (
        f"The device idles {share(stall.share)} of the steady time for want of a batch (95 %: {share(low)} to {share(high)})"
    )
    if result.verdict == "borderline":
        return Finding(
            kind="borderline",
            severity="info",
            verdict="Borderline: the device may wait for data a little too long; this run cannot tell.",
            because=f"{because}; the threshold of 5 % lies inside that interval.",
            try_next="Run longer (--steps or --duration), or --repeats 5, with nothing else running.",
            evidence=evidence,
            wall_share=stall.share,
        )
    if any(part for stage, part in result.input_stall_by_stage.items() if stage != "unexplained"):
        return _spread_out(result, because, evidence)
    mean = f"; mean wait {duration(result.wait_ms.mean * 1e6)}" if result.wait_ms else ""
    return Finding(
        kind="input_bound",
        severity="high" if stall.share >= 0.2 else "moderate",
        verdict="Input-bound: the device idles for want of a batch; the cause is not split yet.",
        because=f"{because}{mean}.",
        try_next="Change one thing and compare: more workers or parallel calls, or the source from memory (ram).",
        evidence=evidence,
        wall_share=stall.share,
    )


def _no_loader(result: Result) -> Finding:
    """A script that iterated nothing that is recorded."""
    return Finding(
        kind="not_measured",
        severity="info",
        verdict="Nothing to judge: the script iterated no data loader.",
        because="Looked for torch.utils.data.DataLoader, what inherits from it and what wraps it, in the script's own process.",
        try_next="Does it make its batches itself, or in a process that it starts? Then wrap them: "
        "for batch in stallscope.watch(batches).",
        evidence={"steps": result.steps},
    )


def _handed_on(wait: float) -> Finding:
    """A loader that one thread iterates, and another one trains."""
    return Finding(
        kind="not_measured",
        severity="info",
        verdict="Not measured: the thread that takes these batches trains nothing, it hands them on to one that does.",
        because=f"Backward passes run on another thread. This one waited for batches {share(wait)} of the time; how long the "
        "other waits for this one was not seen.",
        try_next="Wrap what the training loop iterates, a queue perhaps: for batch in stallscope.watch(batches).",
        evidence={"input_wait_share": wait},
    )


def _spread_out(result: Result, because: str, evidence: dict[str, Any]) -> Finding:
    """An input-bound run whose stages are known, and none of them carries it."""
    stages = {stage: part for stage, part in result.input_stall_by_stage.items() if part and stage != "unexplained"}
    largest = sorted(stages.items(), key=lambda each: -each[1])[:3]
    split = ", ".join(f"{stage.replace('_', ' ')} {share(part)}" for stage, part in largest)
    stalled = result.input_stall_share or 0.0
    return Finding(
        kind="input_bound",
        severity="high" if stalled >= 0.2 else "moderate",
        verdict="Input-bound: the device idles for want of a batch, and no single stage carries it.",
        because=f"{because}; of the wall time: {split}.",
        try_next="Start with the largest stage, change one thing, and compare.",
        evidence=evidence | {"input_stall_by_stage": dict(result.input_stall_by_stage)},
        wall_share=stalled,
    )
