"""How `make accuracy` judges, on made-up results; and that what it injects is what it says."""

import time

import pytest
import yaml

from benchmarks.accuracy import grid, page
from benchmarks.accuracy.costs import ComputeUnlocked, Cost
from benchmarks.accuracy.grid import Cell
from benchmarks.accuracy.judge import failed, judged, unexplained_median
from profiler.events import STAGES
from profiler.scenario import unfold

MS = 1_000_000
WAIT = Cell("wait", "DataLoader", 2, "fork")
MIXED = Cell("mixed", "DataLoader", 2, "fork", (4.0, 2.0))


def result(verdict="input_bound", foreign=0.0, work=(0.0, 0.0), **wait):
    stages = dict.fromkeys(STAGES) | {"unexplained": 0.0} | wait
    whole = sum(share or 0.0 for share in stages.values())
    return {
        "verdict": verdict,
        "wall_s": 3.0,
        "input_wait_share": whole,
        "input_wait_by_stage": stages,
        "input_stall_share": whole,
        "input_stall_by_stage": dict(stages),
        "work_s_by_stage": {"fetch": 2 * work[0], "decode": 2 * work[1], "core_shortage": 0.0, "collate": 0.0},
        "foreign_cpu_share": foreign,
    }


def test_the_expected_stage_is_right_and_another_is_wrong():
    assert judged(WAIT, result(fetch=0.5, decode=0.1), 2).verdict == "ok"
    row = judged(WAIT, result(fetch=0.1, decode=0.5), 2)
    assert (row.verdict, row.problems, row.found) == ("WRONG", ("found decode",), "decode")
    assert row.found_share == pytest.approx(0.5 / 0.6)


def test_start_up_comes_on_top_but_where_it_is_the_cause():
    assert judged(WAIT, result(startup=0.8, fetch=0.1), 2).verdict == "ok"
    assert judged(Cell("slow_start", "DataLoader", 2, "fork"), result(startup=0.8, fetch=0.1), 2).verdict == "ok"


def test_a_cause_that_nobody_waits_for_was_not_injected():
    assert judged(WAIT, result(startup=0.8, fetch=0.04), 2).verdict == "WRONG"


def test_what_is_wrong_while_others_take_the_cores_is_disturbed_but_for_hogs():
    assert judged(WAIT, result(foreign=0.3, decode=0.5), 2).verdict == "disturbed"
    assert judged(WAIT, result(foreign=0.3, fetch=0.5), 2).verdict == "ok"
    assert judged(WAIT, result(decode=0.5), 2, stolen=0.03).verdict == "disturbed"
    assert judged(Cell("hogs", "naive", 0), result(foreign=0.9, decode=0.5), 2).verdict == "WRONG"


def test_a_healthy_cell_may_wait_but_must_not_be_called_input_bound():
    cell = Cell("none", "threads", 2)
    assert judged(cell, result("not_input_bound", handoff=0.4), 2).verdict == "ok"
    assert judged(cell, result("input_bound", handoff=0.4), 2).verdict == "WRONG"


def test_the_ratio_of_the_work_may_be_three_points_off():
    assert judged(MIXED, result(fetch=0.5, work=(0.64, 0.32)), 2).work_share == pytest.approx(2 / 3)
    assert judged(MIXED, result(fetch=0.5, work=(0.64, 0.36)), 2).verdict == "ok"
    assert judged(MIXED, result(fetch=0.5, work=(0.63, 0.37)), 2).verdict == "WRONG"


def test_work_counts_whether_it_was_waited_for_or_not():
    told = result(fetch=0.5) | {"work_s_by_stage": {"fetch": 4.0, "decode": 2.0}}
    assert judged(MIXED, told, 2).verdict == "ok"


def test_too_much_unexplained_or_stages_that_do_not_sum_are_wrong():
    assert judged(WAIT, result(fetch=0.5, unexplained=0.09), 2).problems == ("unexplained is 9.0% of wall",)
    told = result(fetch=0.5)
    told["input_stall_by_stage"]["decode"] = 1e-5
    assert judged(WAIT, told, 2).problems == ("the stages of the stall do not sum to it",)


def test_more_computing_workers_than_cores_may_stand_in_the_queue():
    told = result(core_shortage=0.5, decode=0.4)
    assert judged(Cell("decode_python", "DataLoader", 4, "fork"), told, 2).verdict == "ok"
    assert judged(Cell("decode_python", "DataLoader", 4, "fork"), told, 8).verdict == "WRONG"


def test_every_scenario_is_one_that_can_be_measured(tmp_path):
    pytest.importorskip("torch")

    for number, cell in enumerate(grid.ALL):
        path = tmp_path / f"{number}.yaml"
        path.write_text(yaml.safe_dump(grid.scenario(cell, 2)))
        assert len(unfold(path)) == 1
    assert set(grid.QUICK) <= set(grid.ALL)


def test_the_page_names_every_cell_and_what_was_left_out():
    rows = [judged(cell, result(work=(0.5, 0.5), fetch=0.5), 2) for cell in grid.ALL] + [failed(WAIT, 2, "exit status 1: no")]
    text = page.whole(rows, 2, 1)
    assert text.count("| mixed 4:1 |") == sum(cell.cause == "mixed" and cell.ratio == (4.0, 1.0) for cell in grid.ALL)
    assert "exit status 1: no" in text
    assert grid.ALONE in text
    assert unexplained_median(rows) == 0.0


def test_a_read_waits_and_a_decode_computes_for_as_long_as_it_says():
    cost = Cost("mixed", 2 * MS, 3 * MS)
    wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
    cost.read(1)
    assert time.perf_counter_ns() - wall >= 2 * MS
    assert time.thread_time_ns() - cpu < MS
    cpu = time.thread_time_ns()
    for _ in range(20):
        cost.decode()
    assert time.thread_time_ns() - cpu == pytest.approx(60 * MS, rel=0.05)


def test_one_sample_in_fifty_is_slow():
    slow = Cost("slow_sample", MS, 0)
    started = time.perf_counter_ns()
    slow.read(50)
    assert time.perf_counter_ns() - started >= 30 * MS


def test_what_a_computation_took_too_long_is_taken_off_the_next():
    computes = ComputeUnlocked()
    cpu = time.thread_time_ns()
    for _ in range(50):
        computes(2 * MS)
    assert time.thread_time_ns() - cpu == pytest.approx(100 * MS, rel=0.05)
