"""`make gpu`: every check that needs a GPU, in a table. Installs nothing; what cannot run is named with the reason.

Exit status 1 if a check failed; 0 otherwise, also where there is no GPU.
"""

from __future__ import annotations

import sys
import time
import traceback
from pathlib import Path
from typing import NamedTuple

BUDGET_S = 225
"""Under four minutes: what has not begun by then is named and left."""

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE)]

from checks import CHECKS, Check, missing  # noqa: E402 (the folder of a script is no package)


class Row(NamedTuple):
    name: str
    result: str
    """ok, FAILED or not run."""
    figures: str


def row(check: Check, left_s: float) -> Row:
    """Runs a check, if it can be run."""
    why = missing(check)
    if why:
        return Row(check.name, "not run", why)
    if left_s <= 0:
        return Row(check.name, "not run", f"{BUDGET_S} s are over")
    try:
        return Row(check.name, "ok", check.run())
    except AssertionError as error:
        return Row(check.name, "FAILED", str(error))
    except Exception as error:
        traceback.print_exc()
        return Row(check.name, "FAILED", f"{type(error).__name__}: {error}")


def main(checks: tuple[Check, ...] = CHECKS, budget_s: float = BUDGET_S) -> int:
    started = time.monotonic()
    rows = []
    for check in checks:
        rows.append(row(check, budget_s - (time.monotonic() - started)))
        print(f"{rows[-1].result:8} {rows[-1].name}", flush=True)
    width = max(len(each.name) for each in rows)
    print(f"\n{'check':{width}}  {'result':7}  figures, or why not")
    for each in rows:
        print(f"{each.name:{width}}  {each.result:7}  {each.figures}")
    counts = {result: sum(each.result == result for each in rows) for result in ("ok", "FAILED", "not run")}
    print(f"\n{counts['ok']} ok, {counts['FAILED']} failed, {counts['not run']} not run, {time.monotonic() - started:.0f} s")
    return 1 if counts["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())
