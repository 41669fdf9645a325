"""Which steps of a run to look at one by one: a stretch of them in which as much of the time was waited as in most others."""

from __future__ import annotations

import numpy as np

from .timeline import Timeline

LOOKED_AT = 40
"""Steps: as many as can be told apart across a page."""


def typical(line: Timeline, skipped: int, width: int = LOOKED_AT) -> slice:
    """Places of `width` steps in a row whose share of waiting is nearest to the median of all such stretches; of equals the
    first. skipped: the steps at the beginning that use up what was loaded ahead. Of a run that is shorter, its last steps.

    A stretch over the border of two epochs, or over steps that were not kept, is taken only where there is no other.
    """
    steps = line.steps
    first = np.arange(skipped, len(steps) - width + 1)
    if len(first) == 0:
        return slice(max(0, len(steps) - width), len(steps))
    last = first + width - 1
    missing = np.searchsorted(line.gaps, steps.asked[first], side="right") < np.searchsorted(line.gaps, steps.ended[last])
    whole = (steps.epoch[first] == steps.epoch[last]) & ~missing
    if whole.any():
        first = first[whole]
    waited = np.concatenate(([0], np.cumsum(steps.got - steps.asked)))
    passed = np.concatenate(([0], np.cumsum(steps.ended - steps.asked)))
    share = (waited[first + width] - waited[first]) / np.maximum(1, passed[first + width] - passed[first])
    chosen = int(first[np.argmin(np.abs(share - np.median(share)))])
    return slice(chosen, chosen + width)
