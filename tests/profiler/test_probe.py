import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from profiler import probe as probe_module
from profiler.events import Item, Made
from profiler.probe import Probe, records
from profiler.run import columns

MS = 1_000_000


def make(probe, items=lambda: None, collate=lambda: None, n=3):
    probe.begin()
    items()
    probe.items(n, 1, 100)
    collate()
    probe.end()


def made(folder):
    return columns(Made, np.concatenate(list(records(folder))))


def spin(ms):
    until = time.thread_time_ns() + ms * MS
    while time.thread_time_ns() < until:
        pass


def test_blocked_and_computing_time_separate_without_a_mark_between_them(tmp_path):
    def items():
        time.sleep(0.08)
        spin(40)

    make(Probe(tmp_path), items=items, collate=lambda: spin(10))
    table = made(tmp_path)
    wall, cpu, runq = (int(table[key][0]) for key in ("items_ns", "items_cpu_ns", "items_runq_ns"))
    wall -= int(table["begin_ns"][0])
    assert cpu == pytest.approx(40 * MS, rel=0.1)
    assert table["collate_cpu_ns"][0] == pytest.approx(10 * MS, rel=0.2)
    if runq < 0:
        pytest.skip("this kernel keeps no schedstat: run-queue delay cannot be told from blocked time")
    assert 76 * MS <= wall - cpu - runq <= 120 * MS  # a sleep may end late


def test_counts_are_kept(tmp_path):
    make(Probe(tmp_path), n=5)
    table = made(tmp_path)
    assert (table["n_items"][0], table["n_skipped"][0], table["bytes_asked"][0]) == (5, 1, 100)
    assert (table["pid"][0], table["thread_id"][0]) == (os.getpid(), threading.get_native_id())


def test_each_thread_keeps_its_own_record(tmp_path):
    probe = Probe(tmp_path)
    threads = [threading.Thread(target=make, args=(probe,)) for _ in range(4)]
    for thread in threads:
        thread.start()
        thread.join()
    assert len(made(tmp_path)["pid"]) == 4


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_it_follows_into_worker_processes(tmp_path, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system starts no processes by {method}")
    probe = Probe(tmp_path)
    make(probe)  # a forked worker inherits this thread's state, and must not write into its file
    worker = multiprocessing.get_context(method).Process(target=make, args=(probe,))
    worker.start()
    worker.join()
    assert sorted(made(tmp_path)["pid"].tolist()) == sorted([os.getpid(), worker.pid])


def test_a_pickled_probe_writes_to_the_same_folder(tmp_path):
    make(pickle.loads(pickle.dumps(Probe(tmp_path))))
    assert len(made(tmp_path)["pid"]) == 1


def test_what_was_recorded_survives_a_killed_worker_and_a_record_cut_short(tmp_path):
    code = (
        "import os, sys; from pathlib import Path; from profiler.probe import Probe; p = Probe(Path(sys.argv[1]))\n"
        "for _ in range(3): p.begin(); p.items(1, 0, 1); p.end()\n"
        "os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == -9
    assert len(made(tmp_path)["pid"]) == 3
    file = next(tmp_path.iterdir())
    file.write_bytes(file.read_bytes()[:-1])
    assert len(made(tmp_path)["pid"]) == 2


def test_a_record_that_cannot_be_written_is_left_out_and_not_raised(tmp_path, monkeypatch):
    probe = Probe(tmp_path)
    make(probe)
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        make(probe)
    make(probe)
    assert len(made(tmp_path)["pid"]) == 2


def test_a_file_that_cannot_be_made_is_not_raised(tmp_path):
    probe = Probe(tmp_path / "missing")
    make(probe)
    probe.here().close()
    assert list(tmp_path.iterdir()) == []


def slow_items(maker, stamps, indices, n_items=2):
    """A batch after one whose samples took long enough for the next ones to be stamped."""
    maker.begin()
    time.sleep(0.012)
    maker.items(1)
    maker.end()
    maker.begin()
    maker.indices = indices
    for _ in range(stamps):
        maker.item()
    maker.items(n_items)
    maker.end()


@pytest.mark.parametrize(("stamps", "found"), [(2, [7, 9]), (3, [7, 9]), (4, []), (1, [])])
def test_samples_are_known_by_the_numbers_that_were_asked_for_or_not_at_all(tmp_path, stamps, found):
    maker = Probe(tmp_path).here()
    slow_items(maker, 1, [])
    slow_items(maker, stamps, [7, 9])
    rows = [row for table in probe_module.items(tmp_path) for row in table.tolist()]
    assert [row[3] for row in rows] == found


def test_of_many_samples_the_first_are_kept_and_then_the_slowest(tmp_path, monkeypatch):
    monkeypatch.setattr(probe_module, "ITEMS_KEPT", 4)
    monkeypatch.setattr(probe_module, "SLOWEST_ITEMS", 2)
    kept = probe_module.Items(tmp_path / "items-1-1.bin")
    for number, took in enumerate([5, 6, 5, 5, 4, 9, 3, 8, 7]):
        kept.keep((1, 1, 0), [(number, (0, 0, 0))], (took, 0, 0))
    rows = columns(Item, np.concatenate(list(probe_module.items(tmp_path))))
    assert rows["sample"].tolist() == [0, 1, 2, 3, 5, 7]
    assert rows["in_row"].tolist() == [1, 1, 1, 1, 0, 0]


def test_its_direct_cost_can_be_measured_anywhere():
    assert 0 < probe_module.us_per_batch(batches=50, repeats=2) < 1000


def test_threads_that_have_ended_leave_no_open_files(tmp_path):
    if not os.path.exists("/proc/self/fd"):
        pytest.skip("needs /proc")
    probe = probe_module.Probe(tmp_path)

    def make():
        probe.begin()
        probe.items(1, 0, 0)
        probe.end()

    for _ in range(30):
        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        while os.path.exists(f"/proc/self/task/{thread.native_id}"):  # Python says so a moment before the kernel does
            time.sleep(0.001)
    make()
    assert sum(key[0] == tmp_path for key in probe_module._makers) <= 2
    assert sum(len(table) for table in probe_module.records(tmp_path)) == 31
