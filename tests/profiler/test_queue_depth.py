import numpy as np
import pytest

from profiler.events import Kind
from profiler.queue_depth import Depth, queue_depth
from profiler.timeline import timeline
from tests.fakes import run_of


def line_of(finished, taken, *others, ends_at=100):
    """Batches made by one maker, each finished then, and waits of 1 that ended then."""
    taken = [(i, *entry) if isinstance(entry, tuple) else (i, 0, entry) for i, entry in enumerate(taken)]
    waits = [(Kind.WAIT, epoch, i, at - 1, at, 8) for i, epoch, at in taken]
    last = taken[-1][1]
    spans = [(Kind.ITER, 0, 0, 0, 0, 0), *waits, *others, (Kind.END, last, len(taken), ends_at, ends_at, 0)]
    made = [(1, 1, 8, 0, at - 2, at - 1, at, 0, 0, 0, 0, 0, 0) for at in finished]
    return timeline(run_of(sorted(spans, key=lambda span: span[3]), made))


def drawn(depth):
    return list(zip(depth.at.tolist(), depth.ready.tolist(), strict=True))


def test_counts_what_is_finished_and_not_yet_taken():
    depth = queue_depth(line_of(finished=[10, 12, 30], taken=[11, 20, 40]), most=4)
    assert drawn(depth) == [(0, 0), (10, 1), (11, 0), (12, 1), (20, 0), (30, 1), (40, 0)]


def test_a_batch_that_is_taken_at_once_was_finished_before():
    assert drawn(queue_depth(line_of(finished=[10], taken=[10]), most=4)) == [(0, 0), (10, 1), (10, 0)]


def test_each_epoch_begins_with_none():
    restart = [(Kind.END, 0, 2, 29, 30, 0), (Kind.ITER, 1, 2, 30, 31, 0)]
    depth = queue_depth(line_of([10, 12, 14, 40], [11, 20, (1, 41)], *restart), most=4)
    assert drawn(depth) == [(0, 0), (10, 1), (11, 0), (12, 1), (14, 2), (20, 1), (30, 0), (40, 1), (41, 0)]


def test_a_batch_whose_making_is_not_on_record_does_not_count():
    depth = queue_depth(line_of(finished=[10, 30], taken=[11, 20, 31]), most=4)
    assert drawn(depth) == [(0, 0), (10, 1), (11, 0), (20, 0), (30, 1), (31, 0)]


@pytest.mark.parametrize(
    ("finished", "taken", "after"),
    [
        ([10, 11, 60], [15, 61], [1, 2, 1]),  # as many as before
        ([10, 60], [15, 58, 59, 61], [2, 1, 0, 1, 0]),  # more, since they were taken
        ([8, 9, 10, 57, 58], [15, 59], [0, 1, 2, 1]),  # fewer, since more is not possible
    ],
)
def test_after_steps_that_were_not_kept_it_goes_on_as_far_as_that_is_possible(finished, taken, after):
    gap = (Kind.GAP, 0, 1, 20, 50, 8)
    depth = queue_depth(line_of(finished, taken, gap), most=2)
    assert depth.ready[depth.at >= 20].tolist() == after


def test_means_and_shares_of_a_step_function():
    depth = Depth(np.array([0, 10, 30]), np.array([0, 4, 1]))
    assert depth.means(np.array([0.0, 20.0, 40.0, 60.0])).tolist() == [2.0, 2.5, 1.0]
    assert depth.share(4, 40) == 0.5
    assert depth.share(1, 40) == 0.25
    assert depth.share(3, 40) == 0.0
