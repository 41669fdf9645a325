from types import SimpleNamespace

from profiler import live
from profiler.stamps import Watch
from tests.fakes import MS, FakeClock


def test_the_line_says_step_rate_and_idle_so_far():
    clock = FakeClock()
    watch = Watch(lambda rows: None, clock=clock)
    assert live.line(watch, SimpleNamespace(busy_ns=lambda: 0)) == "starting"
    for _ in watch.batches(["abcd"] * 10, len):
        clock.advance(10 * MS)
    line = live.line(watch, SimpleNamespace(busy_ns=lambda: 75 * MS))
    assert line == "step 10   400 samples/s   idle 25.0 %"


def test_where_busy_time_comes_later_it_says_how_long_the_host_waited():
    clock = FakeClock()
    watch = Watch(lambda rows: None, clock=clock)
    for _ in watch.batches(["a"], len):
        clock.advance(1 * MS)
    assert "waiting for data 0.0 %" in live.line(watch, SimpleNamespace(busy_ns=lambda: None))
