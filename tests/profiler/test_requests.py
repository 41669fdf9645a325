"""A disk with one head and one that serves many, made up: the slope tells them apart."""

import numpy as np
import pytest

from profiler.events import Item
from profiler.requests import requests
from profiler.run import columns

MS = 1_000_000


def samples(served_in_line, makers=3, n=120, seed=0):
    """Each maker asks again 0 to 4 ms after it got its last one; a request takes 2 ms, in line or not."""
    draw = np.random.default_rng(seed)
    free, ready, rows = 0, [maker * MS for maker in range(makers)], []
    for _ in range(n):
        maker = int(np.argmin(ready))
        start = ready[maker]
        begun = max(start, free) if served_in_line else start
        end = free = begun + 2 * MS
        rows.append(Item(maker, maker, 0, len(rows), start, end, 0, 0, 1))
        ready[maker] = end + int(draw.integers(0, 4 * MS))
    return columns(Item, rows)


def test_requests_in_line():
    found = requests(samples(served_in_line=True))
    assert found.slope == pytest.approx(1.0, abs=0.1)
    assert found.one_at_a_time is True


def test_requests_at_once():
    found = requests(samples(served_in_line=False))
    assert found.slope == pytest.approx(0.0, abs=0.1)
    assert found.one_at_a_time is False
    assert found.blocked_ms_mean == pytest.approx(2.0)


def test_too_few_meetings_tell_nothing():
    assert requests(samples(True, n=20)).one_at_a_time is None
    assert requests(samples(True, makers=1)).slope is None


def test_samples_that_compute_make_no_requests():
    rows = [Item(1, 1, 0, i, i * MS, (i + 1) * MS, MS, 0, 1) for i in range(100)]
    assert requests(columns(Item, rows)) is None
    assert requests(columns(Item)) is None


def test_samples_kept_for_being_slow_do_not_count():
    rows = samples(False)
    rows["in_row"] = np.zeros_like(rows["in_row"])
    assert requests(rows) is None
