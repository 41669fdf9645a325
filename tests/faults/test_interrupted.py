"""Runs that are ended from outside, in the middle of an epoch: what was measured is kept, and said to be incomplete."""

import os
import re
import signal

import psutil
import pytest

from profiler.probe import RECORD
from profiler.runfile import read_run
from tests.faults.conftest import FILES_OF_A_RUN

FOREVER = ("run", "it.yaml", "--out", "a", "--duration", "10min", "--json")
WORKERS = "loader={kind: torch_workers, num_workers: 2}"


@pytest.fixture
def start(stallscope):
    """Starts a run that would go on and on; returns once it has made so many batches, with its worker processes."""

    def start(batches, *, workers=False):
        if workers:
            pytest.importorskip("torch", reason="needs torch: pip install 'stallscope[torch]'")
        started = stallscope.start(*FOREVER, *(["--set", WORKERS] if workers else []))
        started.until(lambda: made(stallscope) >= batches)
        return started, psutil.Process(started.pid).children(recursive=True)

    return start


def made(stallscope):
    """Batches made so far."""
    return sum(file.stat().st_size for file in stallscope.folder.glob("a/making/*")) // RECORD.size


def check_workers(stallscope, children):
    """What the last ones made, and how they came to be, is there."""
    run = read_run(stallscope.folder / "a")
    for recorded in (run.made, run.started):
        assert {child.pid for child in children} <= set(recorded["pid"].tolist())


def to_process(pid, number):
    os.kill(pid, number)


def to_group(pid, number):
    """As a terminal does: workers get it too."""
    os.killpg(pid, number)


@pytest.mark.parametrize(
    ("number", "send", "workers"),
    [
        (signal.SIGINT, to_process, False),
        (signal.SIGINT, to_group, True),
        (signal.SIGTERM, to_process, True),
    ],
)
def test_a_signal_keeps_what_was_measured(stallscope, start, number, send, workers):
    started, children = start(100, workers=workers)
    assert len(children) == (2 if workers else 0)
    send(started.pid, number)
    ended = started.end()
    words = ended.check_words(130)
    result = stallscope.read()
    assert words == f"interrupted. {result.steps} steps were measured and are kept: python -m profiler report a\n"
    assert result.steps > 50
    assert not result.complete
    assert ended.out == (stallscope.folder / "a/result.json").read_text()
    assert '"complete": false' in ended.out
    assert stallscope("report", "a").check_words(0) == ""
    assert stallscope.left("a") == FILES_OF_A_RUN
    assert psutil.wait_procs(children, timeout=5)[1] == []


@pytest.mark.parametrize("workers", [False, True])
def test_a_killed_trainer_leaves_all_but_the_last_thousand_spans(stallscope, start, workers):
    started, children = start(1300 if workers else 2500, workers=workers)
    started.process.kill()
    assert started.end().status == -signal.SIGKILL
    assert psutil.wait_procs(children, timeout=20)[1] == []
    result = stallscope.read()
    assert not result.complete
    ahead = 1000 + 4 * len(children)
    assert made(stallscope) - ahead <= result.steps <= made(stallscope)
    check_workers(stallscope, children)
    report = stallscope("report", "a")
    assert report.check_words(0) == ""
    assert "incomplete" in report.out


def test_a_killed_worker_ends_the_run_in_the_loaders_own_words(stallscope, start):
    started, children = start(100, workers=True)
    children[0].kill()
    first, *kept = started.end().check_words(2).splitlines()
    # Its signal handler, its queue and a connection may all notice, and the first to do so has the word.
    own = rf"DataLoader worker \(pid(\(s\))? {children[0].pid}\) (is killed by|exited unexp)"
    assert re.match(rf"error: a loader worker died: ({own}|ConnectionResetError|EOFError)", first)
    assert first.endswith(". Out of memory, or killed by hand? The kernel's log (dmesg) may say")
    result = stallscope.read()
    assert kept == [f"{result.steps} steps were measured and are kept: python -m profiler report a"]
    assert result.steps > 50
    assert not result.complete
    assert psutil.wait_procs(children, timeout=5)[1] == []
    check_workers(stallscope, children)
    report = stallscope("report", "a")
    assert report.check_words(0) == ""
    assert "incomplete" in report.out
