import dataclasses

from profiler.measure import measure
from profiler.rules import worker_startup
from tests.fakes import MS, FakeLoop

WORKERS = {"n_workers": 2, "prefetch_batches": 4}


def judged(iter_ns, epochs=3, loader=WORKERS):
    return worker_startup.judge(measure(FakeLoop(epochs=epochs, steps=20, iter_ns=iter_ns).run(loader=loader)))


def test_a_start_that_takes_long_is_told_however_short_the_run():
    finding = judged(100 * MS)
    assert finding.kind == "worker_startup"
    assert "Start-up and shutting down take" in finding.because


def test_a_short_one_is_not():
    assert judged(1 * MS) is None


def test_without_workers_there_is_nothing_to_start():
    assert judged(100 * MS, loader={"n_workers": 0, "prefetch_batches": 0}) is None


def test_workers_that_are_started_in_each_epoch_are_to_be_kept():
    result = measure(FakeLoop(epochs=3, steps=20, iter_ns=100 * MS).run(loader=WORKERS))
    ledger = {"workers_started": 2, "process_ms": 50.0, "init_ms": 20.0, "ready_at_ms": 75.0}
    told = [{**epoch, "startup": {**epoch["startup"], **ledger}} for epoch in result.epochs_detail]
    finding = worker_startup.judge(dataclasses.replace(result, epochs_detail=told))
    assert "in each of 3 epochs" in finding.verdict
    assert "a worker is ready 75.0 ms after iter() (process and imports 50.0 ms, worker_init_fn 20.0 ms)" in finding.because
    assert "persistent_workers: true" in finding.try_next
