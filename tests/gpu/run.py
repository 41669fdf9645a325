"""`make gpu`: every check that needs a GPU, in a table. Installs nothing; what cannot run is named with the reason.

Exit status 1 if a check failed; 0 otherwise, also where there is no GPU.
"""

from __future__ import annotations

import faulthandler
import platform
import sys
import time
import traceback
from pathlib import Path
from typing import NamedTuple
from unittest import SkipTest

BUDGET_S = 180
"""What has not begun by then is named and left: the longest check takes about half a minute."""
MOST_S = 238
"""A device that hangs holds whoever waits for it: then the traceback and exit status 1, before four minutes are over."""

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
    except SkipTest as error:
        return Row(check.name, "not run", str(error))
    except AssertionError as error:
        return Row(check.name, "FAILED", str(error))
    except Exception as error:
        traceback.print_exc()
        return Row(check.name, "FAILED", f"{type(error).__name__}: {error}")


def machine() -> str:
    """The Python that was taken, and what it sees: another may have been meant."""
    python = f"Python {platform.python_version()}, {sys.executable}"
    try:
        import torch
    except Exception as error:
        return f"{python}: {error}"
    found = torch.cuda.get_device_name() if torch.cuda.is_available() else "no CUDA device"
    return f"{python}: torch {torch.__version__}, {found}"


def main(checks: tuple[Check, ...] = CHECKS, budget_s: float = BUDGET_S) -> int:
    started = time.monotonic()
    rows = []
    print(machine())
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
    faulthandler.dump_traceback_later(MOST_S, exit=True)
    sys.exit(main())
