"""What it takes to begin an epoch: from iter() over the start of workers to the first batch, and to shut them down again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .timeline import NEVER, Epoch, Steps, Timeline

MS = 1e6


def startup(line: Timeline, epoch: Epoch) -> dict[str, Any]:
    """Milliseconds; None: not measured, or did not happen. What ends in `_at_ms` is counted from the call of iter().

    process_ms: from the kernel's start of a worker process to `worker_init_fn`, the slowest worker's: its imports and the
    unpickling of what it was sent. init_ms: that of `worker_init_fn`. shutdown_ms: the next() that ended the epoch.
    """
    started = line.started
    mine = (started["init_ns"] >= epoch.start_ns) & (started["init_ns"] < epoch.end_ns)
    born, init, ready = (started[name][mine] for name in ("process_start_ns", "init_ns", "ready_ns"))
    first, begun = _first(line.steps, epoch), np.sort(line.made["begin_ns"])
    at = int(np.searchsorted(begun, epoch.start_ns))
    asked_last = line.waits.asked[np.searchsorted(line.waits.got, epoch.end_ns, side="right") - 1] if len(line.waits.got) else 0
    raised = epoch.end_ns - int(asked_last) if epoch.raised else None
    return {
        "iter_ms": (epoch.iterated_ns - epoch.start_ns) / MS,
        "workers_started": int(mine.sum()),
        "process_ms": _max_ms((init - born)[born > NEVER]),
        "init_ms": _max_ms(ready - init),
        "ready_at_ms": _max_ms(ready - epoch.start_ns),
        "first_item_at_ms": (int(begun[at]) - epoch.start_ns) / MS if at < len(begun) and begun[at] < epoch.end_ns else None,
        "first_batch_at_ms": None if first is None else (first - epoch.start_ns) / MS,
        "shutdown_ms": None if raised is None else raised / MS,
    }


def _first(steps: Steps, epoch: Epoch) -> int | None:
    i = steps.first_of(epoch.number)
    return None if i is None else int(steps.got[i])


def _max_ms(ns: NDArray[np.int64]) -> float | None:
    return float(ns.max()) / MS if len(ns) else None
