import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from profiler.events import Item, Kind, Made, Row, Started
from profiler.measure import measure
from profiler.reports import lanes
from profiler.result import Diagnosis
from profiler.run import columns
from profiler.timeline import timeline
from tests.fakes import MS, header, run_of
from tests.profiler.reports.test_png import FINDING, RUNS, size_px

Run = type(RUNS["starved"])
WORKERS = {"n_workers": 2, "prefetch_batches": 4}


def of_workers(steps=60, workers=2, **changes):
    """Workers that take 20 ms a batch, 8 of them blocked, for a loop that takes 3 ms a step; all on simulated time."""
    spans, made, now = [(Kind.ITER, 0, 0, 0, 5 * MS, 0), (Kind.SAMPLER, 0, 0, MS, 2 * MS, 0)], [], 5 * MS
    for step in range(steps):
        begin = (5 + 22 * (step // workers)) * MS
        made.append((10 + step % workers, 1, 8, 0, begin, begin + 18 * MS, begin + 20 * MS, 8 * MS, 2 * MS, MS, 0, 0, 0, step))
        spans.append((Kind.RECEIVE, 0, step, begin + 21 * MS, begin + 22 * MS, 0))
        got = max(now, begin + 22 * MS)
        spans += [(Kind.WAIT, 0, step, now, got, 8), (Kind.BUSY, 0, step, got, got + 2 * MS, 0)]
        now = got + 3 * MS
    spans.append((Kind.END, 0, steps, now, now, 0))
    started = [(10 + i, i, 0, -1, MS, 2 * MS) for i in range(workers)]
    head = header(**{"loader": WORKERS | {"n_workers": workers}} | changes)
    return Run(head, columns(Row, spans), columns(Made, made), started=columns(Started, started))


def drawn(run):
    return lanes.render(run, measure(run), Diagnosis([FINDING]))


def shown(run):
    return lanes._shown(timeline(run), measure(run))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", RUNS)
def test_every_run_can_be_drawn(name):
    width, height = size_px(drawn(RUNS[name]))
    assert width == 1200
    assert 700 < height < 1200


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("workers", [1, 2, 20])
def test_a_run_of_workers_can_be_drawn(workers):
    assert size_px(drawn(of_workers(workers=workers)))[0] == 1200


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("verdict", ["a $broken_{formula", "long " * 200, "two\nlines"])
def test_any_verdict_can_be_a_title(verdict):
    run = RUNS["one step"]
    assert size_px(lanes.render(run, measure(run), Diagnosis([replace(FINDING, verdict=verdict)])))[0] == 1200


@pytest.mark.filterwarnings("error")
def test_samples_that_were_timed_one_by_one_are_drawn():
    items = [(10, 1, 0, sample, 0, (sample + 2) * MS, MS, 0, 1) for sample in range(-1, 12)]
    assert size_px(drawn(replace(of_workers(), items=columns(Item, items))))[0] == 1200


def test_there_is_a_lane_for_the_loop_the_device_and_each_worker():
    assert [lane.name for lane in shown(of_workers()).lanes] == ["the loop", "device", "worker 0", "worker 1"]
    unwatched = {"kind": "mps", "name": "M1", "simulated": False, "method": None}
    assert [lane.name for lane in shown(of_workers(device=unwatched)).lanes] == ["the loop", "worker 0", "worker 1"]
    assert [lane.name for lane in shown(RUNS["starved"]).lanes] == ["the loop", "device", "making"]
    assert [lane.name for lane in shown(RUNS["nothing made"]).lanes] == ["the loop", "device"]


def test_threads_have_a_lane_each():
    run = of_workers()
    made = run.made | {"thread_id": run.made["pid"], "pid": np.ones_like(run.made["pid"])}
    assert [lane.name for lane in shown(replace(run, made=made, started=columns(Started))).lanes][2:] == [
        "thread 0",
        "thread 1",
    ]


def test_makers_that_there_is_no_room_for_are_counted():
    seen = shown(of_workers(steps=80, workers=20))
    assert (len(seen.lanes), seen.left_out) == (10, 12)
    assert seen.lanes[-1].name == "worker 7"


def test_the_lanes_show_forty_steps_after_the_warm_up():
    run = of_workers()
    steps = shown(run).steps
    assert steps.stop - steps.start == 40
    assert steps.start >= measure(run).warmup_steps


def test_bars_of_wait_and_stall_add_up_in_ms_a_step():
    result = measure(of_workers())
    (_, wait), (_, stall) = lanes.split(result)
    ms = result.wall_s * 1e3 / result.steps
    assert sum(part.ms for part in wait) == pytest.approx(result.input_wait_share * ms, rel=0.01)
    assert sum(part.ms for part in stall) == pytest.approx(result.input_stall_share * ms, rel=0.01)
    assert sum(part.share for part in stall) == pytest.approx(result.input_stall_share, rel=0.01)


def test_without_a_watched_device_there_is_no_bar_of_its_stall():
    assert [name for name, _ in lanes.split(measure(RUNS["unwatched"]))] == ["loop's wait"]


def test_the_longest_waits_come_first():
    run = run_of([(Kind.ITER, 0, 0, 0, 0, 0), *((Kind.WAIT, 0, i, 20 * i * MS, (20 * i + i) * MS, 8) for i in range(12))])
    waits = lanes.hardest_steps(run, measure(run))
    assert [wait["step"] for wait in waits] == [11, 10, 9, 8, 7, 6, 5, 4]
    assert waits[0] == {"step": 11, "epoch": 0, "wait_ms": 11.0}
    kept = replace(measure(run), worst_steps=[{"step": 3, "epoch": 0, "wait_ms": 2.0}, {"step": 9, "epoch": 0, "wait_ms": 7.0}])
    assert [wait["step"] for wait in lanes.hardest_steps(run, kept)] == [9, 3]


def test_many_records_are_drawn_in_seconds():
    run = of_workers(steps=100_000)
    result = measure(run)
    started = time.process_time()
    lanes.render(run, result, Diagnosis([FINDING]))
    assert time.process_time() - started < 10


def test_nothing_of_matplotlibs_global_state_is_touched():
    code = "import sys, profiler.reports.lanes; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
