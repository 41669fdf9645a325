import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from profiler import clocks
from profiler.clocks import ThreadClock, process_start_ns

ROOT = Path(__file__).parents[2]
MS = 1_000_000
needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")


def test_a_thread_that_sleeps_computes_nothing():
    clock = ThreadClock()
    cpu, runq = clock.read()
    time.sleep(0.05)
    cpu_later, runq_later = clock.read()
    assert cpu_later - cpu < 25 * MS
    assert runq_later >= runq
    clock.close()


def test_without_the_kernels_books_the_queue_is_not_measured(monkeypatch):
    monkeypatch.setattr(clocks, "open_kept", lambda path: None)
    clock = ThreadClock()
    assert clock.read()[0] >= 0
    assert clock.read()[1] == -1
    clock.close()


@needs_proc
def test_process_start_is_before_now_and_after_the_parents():
    asked_ns = time.perf_counter_ns()
    code = "from profiler.clocks import process_start_ns; print(process_start_ns())"
    started_ns = int(subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True).stdout)
    assert asked_ns - 20_000_000 <= started_ns <= time.perf_counter_ns()


@needs_proc
def test_process_start_survives_a_name_with_parentheses(tmp_path):
    ticks = os.sysconf("SC_CLK_TCK")
    now_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    fields = ["S", *["1"] * 18, str((now_ns // 10**9 - 1) * ticks), "0"]
    (tmp_path / "self").mkdir()
    (tmp_path / "self/stat").write_text(f"12 (a) b (c) {' '.join(fields)}\n")
    age_ns = 10**15 - process_start_ns(lambda: 10**15, tmp_path)
    assert 1.0e9 <= age_ns <= 3.0e9


def test_without_proc_the_start_is_unknown(tmp_path):
    assert process_start_ns(proc=tmp_path / "none") is None
