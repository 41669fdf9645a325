"""The arithmetic: the window, its parts, the ordered causes of idle and their sums, exact on a clock that moves when told."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.events import CAUSES, STAGES, Kind
from profiler.measure import measure
from profiler.result import Diagnosis, to_json
from profiler.run import Outcome
from profiler.steady import MIN_STEADY_STEPS
from tests.fakes import MS, FakeLoop, header, run_of

ITER, WAIT, END, HARNESS, SYNC, BUSY, COPY, GAP, SAMPLER, RECEIVE, *_ = Kind


def added(shares) -> float:
    return sum(share or 0.0 for share in shares.values())


def small(*more):
    """Two steps of one epoch: wait 0-2, step 2-5, wait 5-6, step 6-10, the raising next() 10-11. Times in ms."""
    rows = [(ITER, 0, 0, 0, 0, 0), (WAIT, 0, 0, 0, 2, 8), (WAIT, 0, 1, 5, 6, 8), (END, 0, 2, 10, 11, 0), *more]
    return run_of([(kind, epoch, step, start * MS, end * MS, n) for kind, epoch, step, start, end, n in rows])


def test_the_host_is_at_every_instant_in_one_part():
    result = measure(small())
    assert result.wall_s == 0.011
    assert result.wall_by_part == {"wait": pytest.approx(4 / 11), "step": pytest.approx(7 / 11), "outside_loop": 0.0}


def test_each_idle_instant_takes_the_first_cause_that_holds():
    # busy 3-5 and 8-10. Idle 0-2 input, 2-3 copy until 2.5 then host, 5-6 input, 6-8 sync until 7 then host, 10-11 input
    run = small((BUSY, 0, 0, 3, 5, 0), (BUSY, 0, 1, 8, 10, 0), (COPY, 0, 0, 1, 2.5, 0), (SYNC, 0, 0, 6, 7, 0))
    result = measure(run)
    elevenths = {"outside_loop": 0, "input": 4, "copy": 0.5, "sync": 1, "host": 1.5, "unexplained": 0}
    assert {cause: share * 11 for cause, share in result.idle_by_cause.items()} == pytest.approx(elevenths)
    assert result.device_busy_share == pytest.approx(4 / 11)
    assert result.input_stall_share == pytest.approx(4 / 11)


def test_a_device_that_works_while_the_host_waits_is_not_stalled():
    result = measure(small((BUSY, 0, 0, 0, 5, 0), (BUSY, 0, 1, 5, 10, 0)))
    assert result.input_wait_share == pytest.approx(4 / 11)
    assert result.input_stall_share == pytest.approx(1 / 11)


def test_after_a_break_the_last_step_has_the_median_length():
    rows = [(ITER, 0, 0, 0, 0, 0)]
    rows += [(WAIT, 0, i, 10 * i, 10 * i + 4, 8) for i in range(4)]  # steps of 6; the fourth has no successor
    run = run_of([(kind, epoch, step, start * MS, end * MS, n) for kind, epoch, step, start, end, n in rows])
    result = measure(run)
    assert result.wall_s == 0.040
    assert result.wall_by_part["wait"] == pytest.approx(0.4)


def test_the_window_lasts_until_the_device_is_through():
    result = measure(small((BUSY, 0, 1, 6, 20, 0)))
    assert result.wall_s == 0.020
    assert added(result.wall_by_part) == pytest.approx(1)
    assert result.idle_by_cause["input"] == pytest.approx(3 / 20)  # 0-2 and 5-6; at 10-11 the device works


def test_the_profilers_own_work_is_cut_out():
    loop = {"epochs": 3, "steps": 20, "between_ns": 50 * MS}
    bare, with_harness = measure(FakeLoop(**loop).run()), measure(FakeLoop(**loop, harness_ns=200 * MS).run())
    assert with_harness.harness_s == 0.4  # the first of the three lies before the first iter()
    assert with_harness.wall_s == bare.wall_s
    assert with_harness.wall_by_part == bare.wall_by_part
    assert with_harness.wall_by_part["outside_loop"] == pytest.approx(0.1 / bare.wall_s)


def test_iter_is_waiting_and_start_up():
    result = measure(FakeLoop(epochs=2, steps=40, iter_ns=30 * MS).run())
    assert result.startup_s == pytest.approx(0.06)
    assert result.input_wait_by_stage["startup"] == pytest.approx(0.06 / result.wall_s)
    assert result.throughput_samples_per_s.steady > result.throughput_samples_per_s.epoch


def test_waiting_splits_into_what_the_makers_did():
    result = measure(FakeLoop(load_ns=10 * MS, step_ns=5 * MS, blocked_share=0.3, sync_every_step=True).run())
    wait = result.input_wait_share
    assert result.input_wait_by_stage["fetch"] == pytest.approx(0.3 * wait)
    assert result.input_wait_by_stage["decode"] == pytest.approx(0.7 * wait)
    assert result.input_wait_by_stage["handoff"] == 0.0
    assert result.input_wait_by_stage["sampler"] == 0.0


@pytest.mark.parametrize("n_workers", [1, 2])
def test_two_makers_share_out_the_wait(n_workers):
    rows = [(ITER, 0, 0, 0, 0, 0), (WAIT, 0, 0, 0, 10 * MS, 8), (END, 0, 1, 10 * MS, 10 * MS, 0)]
    # maker 1 blocks the whole wait; maker 2 computes half of it and collates the other half, a quarter of that in the queue
    made = [
        (1, 1, 8, 0, 0, 10 * MS, 10 * MS, 0, 0, 0, 0, 0, 0),
        (2, 2, 8, 0, 0, 5 * MS, 10 * MS, 5 * MS, 0, 3 * MS, 1_250_000, 0, 0),
    ][:n_workers]
    result = measure(run_of(rows, made, loader={"n_workers": n_workers, "prefetch_batches": 2}))
    split = {"fetch": 1.0} if n_workers == 1 else {"fetch": 0.5, "decode": 0.25, "collate": 0.1875, "core_shortage": 0.0625}
    found = {stage: share for stage, share in result.input_wait_by_stage.items() if share}
    assert found == pytest.approx(split)
    assert result.input_wait_by_stage["handoff"] == 0.0


def test_without_the_kernels_books_core_shortage_is_not_measured():
    made = [(1, 1, 8, 0, 0, 10 * MS, 10 * MS, 0, -1, 0, -1, 0, -1)]
    result = measure(run_of([(ITER, 0, 0, 0, 0, 0), (WAIT, 0, 0, 0, 10 * MS, 8), (END, 0, 1, 10 * MS, 10 * MS, 0)], made))
    assert result.input_wait_by_stage["core_shortage"] is None
    assert result.input_wait_by_stage["fetch"] == pytest.approx(1.0)
    assert result.storage.bytes_from_device is None
    assert result.storage.cached_share is None


def test_without_records_from_the_makers_nothing_is_split():
    run = FakeLoop().run()
    result = measure(dataclasses.replace(run, made=run_of([]).made))
    assert {stage for stage, share in result.input_wait_by_stage.items() if share is not None} == {"unexplained"}
    assert result.startup_s is None
    assert added(result.input_wait_by_stage) == pytest.approx(result.input_wait_share)


def test_batches_without_a_record_of_their_making_are_counted():
    run = FakeLoop(steps=50).run()
    cut = {name: column[:47] for name, column in run.made.items()}
    assert measure(run).profiler_cost.dropped == 0
    assert measure(dataclasses.replace(run, made=cut)).profiler_cost.dropped == 3
    assert measure(dataclasses.replace(run, made=run_of([]).made)).profiler_cost.dropped is None


def test_a_run_that_was_broken_off_ends_with_its_host():
    run = small((BUSY, 0, 1, 6, 3_600_000, 0))
    broken = dataclasses.replace(run, header=header(outcome=Outcome(complete=False)))
    assert measure(broken).wall_s == 0.011
    assert measure(broken).device_busy_share == pytest.approx(5 / 11)


def test_an_unwatched_device_is_null_and_never_zero():
    result = measure(FakeLoop().run(device={"kind": "mps", "name": "mps", "simulated": False, "method": None}))
    assert result.device_busy_share is None
    assert result.input_stall_share is None
    assert set(result.idle_by_cause.values()) == {None}
    assert result.verdict == "not_measured"


@pytest.mark.parametrize(
    ("method", "nulls"), [("clock", set()), ("model_step", {"copy", "sync"}), ("events", {"copy", "host"})]
)
def test_what_a_device_cannot_tell_apart_is_null(method, nulls):
    result = measure(FakeLoop().run(device={"kind": "x", "name": "x", "simulated": False, "method": method}))
    assert {cause for cause, share in result.idle_by_cause.items() if share is None} == nulls
    assert added(result.idle_by_cause) == pytest.approx(result.device_idle_share)


class TestVerdict:
    def test_late_batches_are_input_bound(self):
        result = measure(FakeLoop(load_ns=8 * MS, step_ns=5 * MS).run())
        assert result.verdict == "input_bound"
        assert result.steady_input_stall.share == pytest.approx(3 / 8)
        assert result.headroom_max_speedup == pytest.approx(8 / 5)
        assert result.demand_samples_per_s == pytest.approx(1600)
        assert result.capacity_samples_per_s == pytest.approx(1000)

    def test_waiting_in_the_shadow_of_the_device_is_not(self):
        result = measure(FakeLoop(load_ns=4 * MS, step_ns=5 * MS, queue_depth=4, steps=500).run())
        assert result.verdict == "not_input_bound"
        assert result.input_wait_share == pytest.approx(0.8, abs=0.01)
        assert result.input_stall_share == pytest.approx(0, abs=0.01)
        assert result.headroom_max_speedup == pytest.approx(1.0)

    def test_a_loop_that_synchronises_loses_the_shadow(self):
        result = measure(FakeLoop(load_ns=4 * MS, step_ns=5 * MS, sync_every_step=True).run())
        assert result.verdict == "input_bound"
        assert result.device_idle_share == pytest.approx(4 / 9)

    def test_few_steps_are_too_short(self):
        steps = 10 + MIN_STEADY_STEPS - 1
        short, enough = (
            measure(FakeLoop(load_ns=8 * MS, steps=steps).run()),
            measure(FakeLoop(load_ns=8 * MS, steps=steps + 1).run()),
        )
        assert (short.verdict, enough.verdict) == ("too_short", "input_bound")
        assert short.steady_input_stall is None

    def test_an_interval_that_holds_the_threshold_is_borderline(self):
        rows, now = [(ITER, 0, 0, 0, 0, 0)], 0
        for i in range(200):  # one step in twenty waits as long as a step: 4.8 % in all, unevenly
            wait = 10 * MS if i % 20 == 0 else 0
            rows += [(WAIT, 0, i, now, now + wait, 8), (BUSY, 0, i, now + wait, now + wait + 10 * MS, 0)]
            now += wait + 10 * MS
        assert measure(run_of([*rows, (END, 0, 200, now, now, 0)])).verdict == "borderline"


loops = st.builds(
    FakeLoop,
    load_ns=st.integers(0, 9 * MS),
    step_ns=st.integers(1, 9 * MS),
    steps=st.integers(1, 60),
    epochs=st.integers(1, 3),
    queue_depth=st.integers(1, 5),
    bytes_per_s=st.none() | st.integers(1000, 100_000),
    sync_every_step=st.booleans(),
    blocked_share=st.floats(0, 1),
    iter_ns=st.integers(0, 20 * MS),
    host_ns=st.integers(0, 3 * MS),
    between_ns=st.integers(0, 30 * MS),
    harness_ns=st.integers(0, 30 * MS),
)


@settings(max_examples=60, deadline=None)
@given(loops, st.sampled_from(["clock", "events", "model_step", None]))
def test_shares_of_a_whole_add_up_to_it(loop, method):
    result = measure(loop.run(device={"kind": "x", "name": "x", "simulated": False, "method": method}))
    assert added(result.wall_by_part) == pytest.approx(1, abs=1e-9)
    assert added(result.input_wait_by_stage) == pytest.approx(result.input_wait_share, abs=1e-9)
    assert tuple(result.input_wait_by_stage) == tuple(result.input_stall_by_stage) == STAGES
    assert tuple(result.idle_by_cause) == CAUSES
    if method is None:
        return
    assert result.device_busy_share + result.device_idle_share == pytest.approx(1, abs=1e-9)
    assert added(result.idle_by_cause) == pytest.approx(result.device_idle_share, abs=1e-9)
    assert added(result.input_stall_by_stage) == pytest.approx(result.input_stall_share, abs=1e-9)
    assert result.input_stall_share <= result.input_wait_share + 1e-9
    assert result.steps == loop.steps * loop.epochs


def test_every_key_of_the_contract_is_there_even_for_a_run_that_never_began():
    keys = set(to_json(measure(FakeLoop().run()), Diagnosis([])))
    nothing = measure(run_of([], outcome=None))
    assert set(to_json(nothing, Diagnosis([]))) == keys == CONTRACT | ADDED
    assert nothing.complete is False
    assert nothing.steps == 0


CONTRACT = {
    "schema",
    "name",
    "command",
    "scenario",
    "complete",
    "sampled",
    "environment",
    "identity",
    "device",
    "sync_every_step",
    "steps",
    "warmup_steps",
    "epochs",
    "epochs_detail",
    "samples",
    "distinct_samples",
    "loss",
    "before_loop_s",
    "wall_s",
    "startup_s",
    "harness_s",
    "wall_by_part",
    "throughput_samples_per_s",
    "demand_samples_per_s",
    "capacity_samples_per_s",
    "headroom_max_speedup",
    "step_time_ms",
    "wait_ms",
    "device_busy_share",
    "device_idle_share",
    "idle_by_cause",
    "input_wait_share",
    "input_wait_by_stage",
    "input_stall_share",
    "input_stall_by_stage",
    "step_by_part",
    "handoff_latency_ms",
    "au",
    "storage",
    "workers",
    "memory",
    "foreign_cpu_share",
    "throttled_share",
    "loops",
    "profiler_cost",
    "verdict",
    "findings",
}
ADDED = {
    "long_steps",
    "hot_lines",
    "stacks_problem",
    "work_s_by_stage",
    "lock_wait_s",
    "blocked_samples",
    "slowest_samples",
    "processes",
    "pressure",
    "disk",
    "gpu",
    "throttled_periods_share",
    "cpu_cores",
    "sampled_share",
    "worst_steps",
    "steady_input_stall",
    "unreadable_samples",
    "source",
    "loader",
    "stopped_by",
}
