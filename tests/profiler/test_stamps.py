import contextlib

import pytest

from profiler import stamps as stamps_module
from profiler.events import Kind, Row
from profiler.stamps import Watch
from tests.fakes import MS, FakeClock


def recorded(loader, clock, body=lambda batch: None, **watch_options):
    rows = []
    watch = Watch(rows.extend, clock=clock, **watch_options)
    for batch in watch.batches(loader, len):
        body(batch)
    watch.flush()
    return rows


class Loads:
    """iter() takes 7 ms, each next() 2 ms, the raising one 1 ms."""

    def __init__(self, clock, batches, error=StopIteration):
        self.clock, self.left, self.error = clock, list(batches), error

    def __iter__(self):
        self.clock.advance(7 * MS)
        return self

    def __next__(self):
        if not self.left:
            self.clock.advance(1 * MS)
            raise self.error
        self.clock.advance(2 * MS)
        return self.left.pop(0)


def test_iter_next_and_the_raising_next_are_stamped():
    clock = FakeClock()
    rows = recorded(Loads(clock, ["ab", "c"]), clock, body=lambda batch: clock.advance(3 * MS))
    assert rows == [
        Row(Kind.ITER, 0, 0, 0, 7 * MS, 0),
        Row(Kind.WAIT, 0, 0, 7 * MS, 9 * MS, 2),
        Row(Kind.WAIT, 0, 1, 12 * MS, 14 * MS, 1),
        Row(Kind.END, 0, 2, 17 * MS, 18 * MS, 0),
    ]


def test_batches_are_the_loaders_own_objects_in_its_order():
    batches = [[1], [2, 3], [4]]
    watch = Watch(lambda rows: None)
    assert [id(batch) for batch in watch.batches(batches, len)] == [id(batch) for batch in batches]


def test_a_loaders_error_passes_through_and_its_wait_is_kept():
    clock = FakeClock()
    rows = []
    watch = Watch(rows.extend, clock=clock)
    with pytest.raises(ZeroDivisionError):
        list(watch.batches(Loads(clock, ["a"], error=ZeroDivisionError), len))
    watch.flush()
    assert rows[-1] == Row(Kind.END, 0, 1, 9 * MS, 10 * MS, 0)


def test_a_break_leaves_no_end():
    rows = []
    watch = Watch(rows.extend)
    for _ in watch.batches(["a", "b"], len):
        break
    watch.flush()
    assert [row[0] for row in rows] == [Kind.ITER, Kind.WAIT]


def test_rows_are_handed_on_by_the_thousand_with_what_the_device_finished():
    written = []
    watch = Watch(written.append, drain=lambda: [("busy", 5, 1, 2), ("copy", 6, 3, 4)])
    for _ in watch.batches(["a"] * 1000, len):
        pass
    assert len(written) == 1
    assert written[0][-2:] == [Row(Kind.BUSY, 0, 5, 1, 2, 0), Row(Kind.COPY, 0, 6, 3, 4, 0)]
    watch.flush()
    assert sum(row[0] == Kind.WAIT for rows in written for row in rows) == 1000


def test_waiting_for_the_device_is_its_own_span_and_belongs_to_its_step():
    clock = FakeClock()
    rows = []
    watch = Watch(rows.extend, clock=clock)
    for _ in watch.batches(["a", "b"], len):
        watch.sync(lambda: clock.advance(4 * MS))
    watch.flush()
    assert [row[2:5] for row in rows if row[0] == Kind.SYNC] == [(0, 0, 4 * MS), (1, 4 * MS, 8 * MS)]


def test_own_work_is_recorded_even_if_it_fails():
    clock = FakeClock()
    rows = []
    watch = Watch(rows.extend, clock=clock)
    with contextlib.suppress(ZeroDivisionError), watch.aside():
        clock.advance(5 * MS)
        raise ZeroDivisionError
    watch.flush()
    assert rows == [Row(Kind.HARNESS, 0, 0, 0, 5 * MS, 0)]


class FakeThread:
    """Each wait computes 1 ms and stands 2 ms in the queue, and so does each step."""

    def __init__(self):
        self.readings = 0

    def read(self):
        self.readings += 1
        return self.readings * MS, 2 * self.readings * MS


def test_what_the_training_thread_did_in_a_wait_is_kept():
    rows = recorded(["a", "b"], FakeClock(), thread=FakeThread())
    spent = {Kind.ITER: (-1, -1), Kind.WAIT: (1 * MS, 2 * MS), Kind.END: (1 * MS, 2 * MS)}
    assert [tuple(row[6:8]) for row in rows] == [spent[row[0]] for row in rows]


def test_a_kernel_without_its_books_leaves_the_queue_unknown():
    thread = FakeThread()
    thread.read = lambda: (0, -1)
    assert recorded(["a"], FakeClock(), thread=thread)[1][6:8] == (0, -1)


def test_more_can_be_noted_of_the_epoch_at_hand():
    rows = []
    watch = Watch(rows.extend)
    for _ in watch.batches(["a"], len):
        watch.note(Kind.RECEIVE, 7, 1, 2)
    watch.flush()
    assert Row(Kind.RECEIVE, 0, 7, 1, 2, 0) in rows


def test_the_direct_cost_of_a_step_can_be_measured_anywhere():
    assert 0 < stamps_module.us_per_step(steps=200, repeats=2) < 1000
