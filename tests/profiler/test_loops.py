from dataclasses import replace

import numpy as np
import pytest

from profiler.diagnosis import diagnose
from profiler.events import Kind, Row
from profiler.loops import busiest, chosen, inside, name, split
from profiler.measure import measure
from profiler.run import Outcome
from tests.fakes import run_of

MS = 1_000_000


def entry(loop, line=10):
    settings = {"kind": "DataLoader", "dataset": None, "dataset_samples": None, "batch_size": 8}
    return {
        "loop": loop,
        "file": "/home/me/train.py",
        "line": line,
        "n_workers": loop,
        "prefetch_batches": 2 * loop,
        **settings,
    }


def steps(loop, begin_ms, n, wait_ms, step_ms, learns=False):
    """An epoch of n steps."""
    at, rows = begin_ms * MS, [Row(Kind.ITER, 0, 0, begin_ms * MS, begin_ms * MS, 0, loop=loop)]
    for step in range(n):
        rows.append(Row(Kind.WAIT, 0, step, at, at + wait_ms * MS, 8, loop=loop))
        at += wait_ms * MS
        if learns:
            rows.append(Row(Kind.BACKWARD, 0, step, at, at + step_ms * MS // 2, 0, loop=loop))
            rows.append(Row(Kind.OPTIMIZER, 0, step, at + step_ms * MS // 2, at + step_ms * MS * 3 // 4, 0, loop=loop))
        at += step_ms * MS
    return [*rows, Row(Kind.END, 0, n, at, at, 0, loop=loop)]


@pytest.fixture
def run():
    """50 steps of training, 1 ms of wait and 4 ms of step each; then 100 of validation, 2 and 1 ms."""
    rows = steps(0, 0, 50, 1, 4, learns=True) + steps(1, 300, 100, 2, 1)
    made = run_of(rows, outcome=Outcome(complete=True))
    device = {"kind": "cpu", "name": "CPU", "simulated": False, "method": "loop_body"}
    return replace(made, header=replace(made.header, scenario={}, device=device, loops=[entry(0), entry(1, 20)]))


def test_each_loop_is_a_run(run):
    first, second = split(run)
    assert (len(first.of(Kind.WAIT)["kind"]), len(second.of(Kind.WAIT)["kind"])) == (50, 100)
    assert second.header.loader["n_workers"] == 1


def test_a_scenario_has_one_and_it_is_itself(run):
    scenario = replace(run, header=replace(run.header, loops=[]))
    assert split(scenario) == []
    assert chosen(scenario) is scenario


def test_the_busiest_is_the_one_that_learns(run):
    assert busiest(split(run)).header.loops[0]["loop"] == 0


def test_where_none_learns_it_is_the_one_with_most_steps(run):
    spans = {key: column[~np.isin(run.spans["kind"], (Kind.BACKWARD, Kind.OPTIMIZER))] for key, column in run.spans.items()}
    assert busiest(split(replace(run, spans=spans))).header.loops[0]["loop"] == 1


def test_the_numbers_are_its_own(run):
    result = measure(run)
    assert (result.steps, result.wall_s, result.verdict) == (50, 0.25, "input_bound")
    assert result.wall_by_part == {"wait": 0.2, "step": 0.8, "outside_loop": 0.0}
    assert result.device_busy_share == pytest.approx(0.8)
    assert result.idle_by_cause == {
        "outside_loop": 0.0,
        "input": pytest.approx(0.2),
        "copy": None,
        "sync": None,
        "host": None,
        "unexplained": 0.0,
    }
    assert result.step_by_part["backward"] == pytest.approx(0.4)
    assert result.step_by_part["optimizer"] == pytest.approx(0.2)
    assert result.step_by_part["sync"] is None


def test_all_loops_are_listed(run):
    listed = measure(run).loops
    assert [(loop["name"], loop["chosen"], loop["steps"]) for loop in listed] == [
        ("train.py:10", True, 50),
        ("train.py:20", False, 100),
    ]
    assert listed[1]["wall_by_part"]["wait"] == pytest.approx(2 / 3)


def test_waiting_for_the_other_of_two_zipped_loaders_is_waiting(run):
    """1 ms for the first, 3 ms for the second, 4 ms of work."""
    rows = [Row(Kind.ITER, 0, 0, 0, 0, 0, loop=loop) for loop in (0, 1)]
    for step in range(50):
        at = 8 * step * MS
        rows.append(Row(Kind.WAIT, 0, step, at, at + MS, 8, loop=0))
        rows.append(Row(Kind.WAIT, 0, step, at + MS, at + 4 * MS, 8, loop=1))
    rows += [Row(Kind.END, 0, 50, 400 * MS, 400 * MS, 0, loop=loop) for loop in (0, 1)]
    result = measure(replace(run, spans=run_of(rows).spans))
    assert [loop["wall_by_part"]["wait"] for loop in result.loops] == [pytest.approx(0.5)] * 2
    assert result.input_wait_share == pytest.approx(0.5)
    assert sum(part or 0 for part in result.input_wait_by_stage.values()) == pytest.approx(0.5)


def test_waits_of_another_thread_are_not_this_ones(run):
    """They overlap its own."""
    rows = [Row(Kind.ITER, 0, 0, 0, 0, 0, loop=loop) for loop in (0, 1)]
    for step in range(50):
        rows.append(Row(Kind.WAIT, 0, step, 8 * step * MS, (8 * step + 4) * MS, 8, loop=0))
        rows.append(Row(Kind.WAIT, 0, step, (8 * step + 3) * MS, (8 * step + 8) * MS, 8, loop=1))
    rows += [Row(Kind.END, 0, 50, 400 * MS, 400 * MS, 0, loop=loop) for loop in (0, 1)]
    result = measure(replace(run, spans=run_of(rows).spans))
    assert result.loops[0]["wall_by_part"]["wait"] == pytest.approx(0.5)


def test_a_name_is_short_on_every_system():
    assert name({"file": r"C:\me\train.py", "line": 3}) == "train.py:3"


def test_a_script_that_iterates_nothing_is_not_judged(run):
    empty = replace(run, spans={key: column[:0] for key, column in run.spans.items()})
    assert measure(empty).verdict == "not_measured"


def test_what_lies_between_its_epochs_is_no_time_of_a_loop():
    validating = {"wall_s": 2.8, "wall_by_part": {"wait": 0.075, "step": 0.075, "outside_loop": 0.85}}
    assert inside(validating) == pytest.approx((0.42, 0.5))
    assert inside(validating | {"wall_by_part": {"wait": None, "step": None, "outside_loop": None}}) is None


def test_a_loop_that_hands_its_batches_to_a_thread_that_trains_says_nothing_of_the_device(run):
    trained = run.header.device | {"trains_elsewhere": True}
    result = measure(replace(run, header=replace(run.header, device=trained, asked_loop="train.py:20")))
    assert (result.device_idle_share, result.input_stall_share, result.verdict) == (None, None, "not_measured")
    assert result.input_wait_share == pytest.approx(2 / 3)
    assert "hands them on" in diagnose(result, []).findings[0].verdict


def test_the_loop_that_trains_stands_for_the_device_whatever_others_do(run):
    trained = run.header.device | {"trains_elsewhere": True}
    assert measure(replace(run, header=replace(run.header, device=trained))).input_stall_share == pytest.approx(0.2)
