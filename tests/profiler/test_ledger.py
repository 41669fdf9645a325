import pytest

from profiler.events import Kind, Made, Row, Started
from profiler.ledger import startup
from profiler.run import Run, columns
from profiler.timeline import timeline
from tests.fakes import MS, header


def run(started=(), born=True):
    """Two epochs: iter() 10 ms, the first batch after 40 ms, one step, 5 ms to shut down."""
    rows, made = [], []
    for epoch, at in enumerate((0, 100)):
        times = ((Kind.ITER, 0, 10), (Kind.WAIT, 10, 40), (Kind.END, 60, 65))
        rows += [Row(kind, epoch, epoch, (at + a) * MS, (at + b) * MS, 8 * (kind == Kind.WAIT)) for kind, a, b in times]
        made.append(Made(7, 7, 8, 0, (at + 30) * MS, (at + 38) * MS, (at + 39) * MS, 0, 0, 0, 0, 0, 0))
    return Run(header(), columns(Row, rows), columns(Made, made), started=columns(Started, started))


def test_each_epoch_has_its_own_ledger():
    line = timeline(run([Started(7, 0, 2 * MS, -1, 20 * MS, 24 * MS), Started(8, 1, 3 * MS, -1, 22 * MS, 29 * MS)]))
    first, second = (startup(line, epoch) for epoch in line.epochs)
    assert first == {
        "iter_ms": 10.0,
        "workers_started": 2,
        "process_ms": pytest.approx(19.0),
        "init_ms": 7.0,
        "ready_at_ms": 29.0,
        "first_item_at_ms": 30.0,
        "first_batch_at_ms": 40.0,
        "shutdown_ms": 5.0,
    }
    assert (second["workers_started"], second["process_ms"], second["first_batch_at_ms"]) == (0, None, 40.0)


def test_a_start_that_the_kernel_does_not_tell_is_none():
    line = timeline(run([Started(7, 0, -1, -1, 20 * MS, 24 * MS)]))
    assert startup(line, line.epochs[0])["process_ms"] is None
