"""Reads the result.json of a scenario run from stdin; fails if it contradicts itself."""

import json
import math
import sys
from typing import Any


def total(parts: dict[str, float | None]) -> float:
    return sum(share or 0.0 for share in parts.values())


def check(result: dict[str, Any]) -> list[str]:
    wholes = {
        "wall_by_part sums to 1": (total(result["wall_by_part"]), 1.0),
        "idle_by_cause sums to device_idle_share": (total(result["idle_by_cause"]), result["device_idle_share"]),
        "input_wait_by_stage sums to input_wait_share": (total(result["input_wait_by_stage"]), result["input_wait_share"]),
        "input_stall_by_stage sums to input_stall_share": (total(result["input_stall_by_stage"]), result["input_stall_share"]),
        "device busy and idle sum to 1": (result["device_busy_share"] + result["device_idle_share"], 1.0),
    }
    wrong = [f"{claim}: {got} is not {due}" for claim, (got, due) in wholes.items() if not math.isclose(got, due, abs_tol=1e-6)]
    if result["schema"] != 1 or result["complete"] is not True:
        wrong.append(f"schema {result['schema']}, complete {result['complete']}")
    if not (result["steps"] > 0 and result["samples"] > 0 and result["wall_s"] > 0):
        wrong.append("nothing was measured")
    return wrong


if __name__ == "__main__":
    problems = check(json.load(sys.stdin))
    print("\n".join(problems) or "the result agrees with itself")
    sys.exit(bool(problems))
