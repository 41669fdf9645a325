import os
import signal
import time

import pytest

from profiler import interrupts
from profiler.interrupts import Interrupts, Terminated


@pytest.fixture(autouse=True)
def handlers():
    """pytest's own handlers, whatever happens."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
    before = [signal.getsignal(number) for number in numbers]
    deaths = signal.getsignal(signal.SIGCHLD)
    yield
    signal.signal(signal.SIGCHLD, deaths)
    assert [signal.getsignal(number) for number in numbers] == before


@pytest.mark.parametrize(("number", "kind"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)])
def test_a_signal_waits_until_it_is_asked_for(number, kind):
    with Interrupts() as interrupted:
        interrupted()
        os.kill(os.getpid(), number)
        with pytest.raises(kind):
            interrupted()


def test_a_second_signal_is_obeyed_at_once():
    with Interrupts() as interrupted:
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert interrupted.pending is not None


def test_a_step_that_does_not_end_is_broken_off(monkeypatch):
    monkeypatch.setattr(interrupts, "AT_ONCE_S", 0.01)
    with Interrupts():
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Terminated):
            time.sleep(60)


def test_a_workers_death_is_not_told_while_the_run_is_being_kept():
    told = []
    before = signal.signal(signal.SIGCHLD, lambda number, frame: told.append(number))
    try:
        with Interrupts() as interrupted:
            pass
        os.kill(os.getpid(), signal.SIGCHLD)
        assert told == []
        interrupted.over()
        os.kill(os.getpid(), signal.SIGCHLD)
        assert told == [signal.SIGCHLD]
    finally:
        signal.signal(signal.SIGCHLD, before)
