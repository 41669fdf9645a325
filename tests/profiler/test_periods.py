import numpy as np
import pytest

from profiler.periods import period

MS = 1_000_000


def steps(n, *long, ms=10, long_ms=60):
    """ns; those that are named are long."""
    found = np.full(n, ms * MS)
    found[list(long)] = long_ms * MS
    return found


def test_what_recurs_is_told_with_what_it_takes():
    found = period(steps(100, *range(9, 100, 10)), wall_ns=2_000 * MS)
    assert found == {"every_steps": 10, "longer_ms": 50.0, "share": pytest.approx(0.25)}


def test_a_new_epoch_may_begin_between_two():
    assert period(steps(94, *range(0, 47, 5), *range(47, 94, 5)), 10**9)["every_steps"] == 5


@pytest.mark.parametrize(
    "step_ns",
    [
        np.array([], dtype=np.int64),
        steps(100),
        steps(100, 20, 70),
        steps(100, 3, 20, 24, 70, 95),
        steps(100, *range(0, 100, 10), long_ms=19),
        steps(100, *range(0, 100, 10), ms=0, long_ms=1),
    ],
    ids=["no step", "none is long", "twice only", "at random", "hardly longer", "too short to tell"],
)
def test_without_a_period_there_is_none(step_ns):
    assert period(step_ns, 10**9) is None
