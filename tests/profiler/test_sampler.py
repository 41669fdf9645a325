import multiprocessing
import os
import threading

import pytest

from profiler import sampler
from profiler.events import Count, Counter, Reading
from profiler.sampler import MOST_ROWS, Samplers
from tests.fakes import MS, FakeClock


class Fake:
    """Tells `rows` readings, and takes `cost_ns` of both clocks for it."""

    def __init__(self, rows=1, cost_ns=0, clocks=()):
        self.rows, self.cost_ns, self.clocks = rows, cost_ns, clocks

    def read(self):
        for clock in self.clocks:
            clock.advance(self.cost_ns)
        return [Reading(Counter.THREADS, 1, 2)] * self.rows


class Broken:
    def read(self):
        yield Reading(Counter.THREADS, 1, 2)
        raise RuntimeError


def samplers(written, clock=None, **fakes):
    clock = clock or FakeClock()
    return Samplers(1, written.append, clock=clock, samplers=fakes, cpu_clock=clock)


def test_rows_have_the_time_at_which_their_sampler_began():
    written, clock = [], FakeClock(100)
    samplers(written, clock, slow=Fake(cost_ns=7, clocks=[clock]), quick=Fake()).read()
    assert written == [[Count(100, Counter.THREADS, 1, 2), Count(107, Counter.THREADS, 1, 2)]]


def test_a_sampler_that_raises_is_counted_and_the_others_go_on():
    written = []
    reading = samplers(written, broken=Broken(), whole=Fake())
    reading.read()
    reading.read()
    assert reading.faults == {"broken": 2}
    assert [len(rows) for rows in written] == [2, 2]


def test_a_write_that_raises_is_counted():
    def full(rows):
        raise OSError

    reading = Samplers(1, full, samplers={"one": Fake()})
    reading.read()
    assert reading.faults == {"write": 1}


def periods(cost_ms):
    """The period after each reading, the readings costing so much."""
    clock = FakeClock()
    fake = Fake(clocks=[clock])
    reading, found = samplers([], clock, one=fake), []
    for cost in cost_ms:
        fake.cost_ns = cost * MS
        reading.read()
        found.append(reading.period_s)
    return found


def test_costly_readings_come_half_as_often_until_they_cost_a_fiftieth():
    assert periods([15] * 6) == [0.5, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert periods([25] * 6) == [0.5, 1.0, 1.0, 2.0, 2.0, 2.0]


def test_cheap_readings_keep_the_period():
    assert periods([9] * 6) == [0.5] * 6


def test_one_costly_reading_now_and_then_keeps_the_period():
    assert periods([50, 1, 50, 1, 50]) == [0.5] * 5


def test_the_period_doubles_with_every_so_many_rows():
    reading, found = samplers([], one=Fake(rows=MOST_ROWS // 2)), []
    for _ in range(7):
        reading.read()
        found.append(reading.period_s)
    assert found == [0.5, 0.5, 1.0, 1.0, 2.0, 2.0, 4.0]


def test_no_period_is_shorter_than_half_a_second():
    assert Samplers(1, [].append, period_s=0.01, samplers={}).period_s == 0.5
    assert Samplers(1, [].append, period_s=3.0, samplers={}).period_s == 3.0


def test_both_ends_are_read_on_a_thread_that_then_ends():
    written, threads = [], set()

    class Noting(Fake):
        def read(self):
            threads.add(threading.current_thread())
            return super().read()

    with Samplers(1, written.append, samplers={"one": Noting()}):
        pass
    assert len(written) == 2
    (thread,) = threads
    assert thread.daemon
    assert not thread.is_alive()


def test_a_thread_that_hangs_is_left_behind_and_writes_nothing_more(monkeypatch):
    monkeypatch.setattr(sampler, "END_TIMEOUT_S", 0.0)
    written, goes_on = [], threading.Event()

    class Hanging:
        def read(self):
            goes_on.wait()
            return [Reading(Counter.THREADS, 1, 2)]

    with Samplers(1, written.append, samplers={"hanging": Hanging()}) as reading:
        pass
    goes_on.set()
    reading._thread.join()
    assert written == []


def leave(reading, end):
    """What a forked child does that unwinds its parent's stack."""
    reading.__exit__(None, None, None)
    end.send(threading.active_count())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # that it has several threads is what is tested
def test_a_forked_child_has_no_such_thread_and_may_leave_the_block():
    context = multiprocessing.get_context("fork")
    written, (here, there) = [], context.Pipe()
    with Samplers(1, written.append, samplers={"one": Fake()}) as reading:
        child = context.Process(target=leave, args=(reading, there))
        child.start()
        assert here.recv() == 1
        child.join()
    assert child.exitcode == 0
    assert len(written) >= 2


def test_the_real_samplers_read_this_process(tmp_path):
    written = []
    with Samplers(os.getpid(), written.append, folder=tmp_path) as reading:
        pass
    assert reading.faults == {}
    assert len(written) == 2
    assert all(type(number) is int or isinstance(number, Counter) for rows in written for row in rows for number in row)
