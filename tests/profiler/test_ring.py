import os
import threading

import numpy as np
import pytest

from profiler import ring
from profiler.events import Kind, Row
from profiler.ring import RingReader, RingWriter


@pytest.fixture
def ends():
    file = ring.create()
    yield RingWriter(file), RingReader(file)
    os.close(file)


def row(step):
    return Row(Kind.WAIT, 0, step, step, step + 1, 8)


def steps(rows):
    return rows[:, Row._fields.index("step")].tolist()


def test_rows_come_out_as_they_went_in(ends):
    writer, reader = ends
    writer.append(row(5))
    assert reader.take(last=True).tolist() == [list(row(5))]
    assert reader.take(last=True).tolist() == []


def test_each_is_taken_once_and_in_order(ends):
    writer, reader = ends
    taken = []
    for step in range(1000):
        writer.append(row(step))
        if step % 7 == 0:
            taken += steps(reader.take())
    assert taken + steps(reader.take(last=True)) == list(range(1000))


def test_the_newest_row_which_may_be_half_written_is_left_for_the_next_time(ends):
    writer, reader = ends
    writer.append(row(0))
    writer.append(row(1))
    assert steps(reader.take()) == [0]
    assert steps(reader.take()) == [1]


def test_rows_go_round_as_often_as_they_like(ends):
    writer, reader = ends
    taken = []
    for step in range(3 * ring.SLOTS):
        writer.append(row(step))
        if step % 10_000 == 0:
            taken += steps(reader.take())
    assert taken + steps(reader.take(last=True)) == list(range(3 * ring.SLOTS))
    assert reader.lost == 0


def test_those_that_find_no_room_are_lost_and_counted_and_the_next_ones_are_not(ends):
    writer, reader = ends
    for step in range(ring.SLOTS + 100):
        writer.append(row(step))
    assert steps(reader.take(last=True)) == list(range(ring.SLOTS))
    assert reader.lost == 100
    writer.append(row(-1))
    assert steps(reader.take(last=True)) == [-1]
    assert reader.lost == 100


def test_threads_may_append_side_by_side(ends):
    writer, reader = ends

    def append(first):
        for step in range(first, first + 2000):
            writer.append(row(step))

    threads = [threading.Thread(target=append, args=(first,)) for first in (0, 2000, 4000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(steps(reader.take(last=True))) == list(range(6000))


def test_what_a_process_wrote_before_it_was_killed_is_there(ends):
    writer, reader = ends
    if not (pid := os.fork()):
        for step in range(50):
            writer.append(row(step))
        os.kill(os.getpid(), 9)
    os.waitpid(pid, 0)
    rows = reader.take(last=True)
    assert steps(rows) == list(range(50))
    assert rows.dtype == np.int64
