"""Several runs of one scenario: which is the middle one, and how far apart they lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .result import Result
from .units import count, share


def _rate(result: Result) -> float:
    """Steady throughput; of a run too short for one, that of the whole run."""
    throughput = result.throughput_samples_per_s
    return throughput.steady or throughput.epoch or 0.0


def middle(results: Sequence[Result]) -> int:
    """Which run has the median throughput (of an even number the lower of the middle two)."""
    return sorted(range(len(results)), key=lambda i: _rate(results[i]))[(len(results) - 1) // 2]


def summary(name: str, runs: Sequence[str], results: Sequence[Result]) -> dict[str, Any]:
    """The content of summary.json, schema 1."""
    rates = [_rate(result) for result in results]
    return {
        "schema": 1,
        "name": name,
        "runs": [
            {
                "run": run,
                "throughput_samples_per_s": rate,
                "device_idle_share": result.device_idle_share,
                "input_stall_share": result.input_stall_share,
                "foreign_cpu_share": result.foreign_cpu_share,
                "verdict": result.verdict,
            }
            for run, rate, result in zip(runs, rates, results, strict=True)
        ],
        "throughput_samples_per_s": {"median": rates[middle(results)], "min": min(rates), "max": max(rates)},
    }


def table(runs: Sequence[str], results: Sequence[Result]) -> str:
    """A line a run."""
    lines = [f"{'repeat':<10}{'samples/s':>12}{'idle':>10}{'verdict':>20}"]
    for run, result in zip(runs, results, strict=True):
        idle = "not measured" if result.device_idle_share is None else share(result.device_idle_share)
        lines.append(f"{run:<10}{count(_rate(result)):>12}{idle:>10}{result.verdict:>20}")
    return "\n".join(lines)
