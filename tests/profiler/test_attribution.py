"""Waits split into stages, exactly, on times made up by hand; and for any times at all the stages sum to the wait."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.attribution import lock_wait_ns, stages, work_ns
from profiler.events import STAGES, Kind, Made, Row
from profiler.measure import measure
from profiler.run import columns
from profiler.timeline import timeline
from tests.fakes import MS, run_of

WORKERS = {"loader": {"n_workers": 2, "prefetch_batches": 4}}


def batch(pid, begin, items, end, *, cpu=0, runq=0, collate_cpu=0, collate_runq=0, thread=None, **more):
    """A record of a maker. Times in ms; all but `cpu` and `runq` of the time for items is blocked."""
    times = (begin, items, end, cpu, runq, collate_cpu, collate_runq)
    ms = [round(each * MS) for each in times]
    return Made(pid, pid if thread is None else thread, 8, 0, *ms, bytes_asked=0, bytes_from_device=0, **more)


def waits(*pairs, cpu=-1, runq=-1, step=5):
    """One epoch that waits so, from ms to ms; iter() takes no time, and the first item begins at 0."""
    rows = [Row(Kind.ITER, 0, 0, 0, 0, 0)]
    spent = (-1 if cpu < 0 else round(cpu * MS), -1 if runq < 0 else round(runq * MS))
    rows += [Row(Kind.WAIT, 0, i, round(a * MS), round(b * MS), 8, *spent) for i, (a, b) in enumerate(pairs)]
    end = round((pairs[-1][1] + step) * MS)
    return [*rows, Row(Kind.END, 0, len(pairs), end, end, 0)]


def split(rows, made, n_workers=2):
    line = timeline(run_of(rows, made, loader={"n_workers": n_workers, "prefetch_batches": 4}))
    found = stages(line.wait, line, n_workers)
    assert sum(ns or 0 for ns in found.values()) == pytest.approx(sum(b - a for a, b in line.wait.tolist()))
    return {stage: ns / MS for stage, ns in found.items() if ns and ns > 1}


def test_makers_that_have_nothing_to_do_explain_nothing():
    # one worker reads a slow sample all the time; the other one was through after 1 ms of computing
    made = [batch(1, 0, 10, 10), batch(2, 0, 1, 1, cpu=1)]
    assert split(waits((0, 10)), made) == pytest.approx({"fetch": 9.5, "decode": 0.5})


def test_a_finished_batch_that_is_not_there_yet_is_on_its_way():
    assert split(waits((0, 10)), [batch(1, 0, 6, 6)]) == pytest.approx({"fetch": 6, "handoff": 4})


def test_what_the_consumer_computes_while_it_takes_a_batch_is_hand_off_even_if_makers_work_on():
    # made at 6, had at 10: 3 ms of unpickling, 1 ms without a core; another worker decodes all the while
    made = [batch(1, 0, 6, 6), batch(2, 0, 10, 10, cpu=10)]
    found = split(waits((0, 10), cpu=3, runq=1), made)
    assert found == pytest.approx({"fetch": 3, "decode": 3, "handoff": 3, "core_shortage": 1})


def test_waiting_for_a_batch_that_starves_behind_the_makers_own_next_one_is_the_next_ones():
    # made at 2, had at 10, since the worker spins on: nothing is handed over because it computes
    made = [batch(1, 0, 2, 2, cpu=2), batch(1, 2, 12, 12, cpu=10)]
    assert split(waits((0, 10)), made) == pytest.approx({"decode": 10})


def test_the_queue_for_a_core_counts_before_a_batch_too():
    made = [batch(1, 4, 8, 8, cpu=3, runq=1, wake_runq_ns=3 * MS)]
    rows = waits((0, 8))
    rows[0] = Row(Kind.ITER, 0, 0, 0, 0, 0)
    made = [batch(2, 0, 0.5, 1, cpu=0.5), *made]
    found = split(rows, made)
    assert found["core_shortage"] == pytest.approx(3 + 1)
    assert found["decode"] == pytest.approx(0.5 + 3)
    assert found["collate"] == pytest.approx(0.5)


def test_drawing_indices_is_the_samplers_whatever_the_makers_do():
    rows = [*waits((0, 10)), Row(Kind.SAMPLER, 0, 1, 7 * MS, 9 * MS, 0)]
    assert split(rows, [batch(1, 0, 10, 10)]) == pytest.approx({"fetch": 8, "sampler": 2})


def test_shutting_workers_down_counts_with_starting_them():
    rows = waits((0, 10), step=5)
    rows[-1] = Row(Kind.END, 0, 1, 15 * MS, 18 * MS, 0)
    assert split(rows, [batch(1, 0, 10, 10)]) == pytest.approx({"fetch": 10, "startup": 3})


def test_start_up_lasts_until_an_item_is_begun():
    assert split(waits((0, 10)), [batch(1, 6, 10, 10)]) == pytest.approx({"startup": 6, "fetch": 4})


def test_without_workers_nothing_is_handed_over():
    found = split(waits((0, 10), cpu=10), [batch(1, 0, 6, 9, cpu=6)], n_workers=0)
    assert found == pytest.approx({"decode": 6, "collate": 3, "unexplained": 1})


def test_threads_behind_the_interpreter_lock_compute_one_at_a_time():
    made = [batch(1, 0, 10, 10, cpu=5, thread=i, lock_ns=12 * MS) for i in (1, 2)]
    assert split(waits((0, 10)), made) == pytest.approx({"decode": 10})
    assert lock_wait_ns(columns(Made, made)) == 10 * MS


def test_threads_whose_stamps_find_the_lock_free_wait_for_something_else():
    made = [batch(1, 0, 10, 10, cpu=5, thread=i, lock_ns=20_000) for i in (1, 2)]
    assert split(waits((0, 10)), made) == pytest.approx({"decode": 5, "fetch": 5})
    assert lock_wait_ns(columns(Made, made)) == 0


def test_threads_of_a_library_that_a_worker_waits_for_compute():
    assert split(waits((0, 10)), [batch(1, 0, 10, 10, cpu=2, process_cpu_ns=8 * MS)]) == pytest.approx(
        {"decode": 8, "fetch": 2}
    )


def test_work_is_told_whether_anyone_waited_for_it_or_not():
    made = [batch(1, 0, 8, 10, cpu=5, runq=1, collate_runq=0.5), batch(2, 0, 8, 10, cpu=5, runq=1, collate_runq=0.5)]
    assert {stage: ns / MS for stage, ns in work_ns(columns(Made, made)).items()} == pytest.approx(
        {"fetch": 4, "decode": 10, "core_shortage": 3, "collate": 3}
    )


ms = st.integers(0, 30)


@st.composite
def makers(draw):
    made = []
    for pid in range(1, 1 + draw(st.integers(1, 3))):
        at = draw(ms)
        for _ in range(draw(st.integers(0, 5))):
            items = draw(ms)
            collate = draw(ms)
            cpu, runq = draw(ms), draw(st.integers(-1, 30))
            more = {"wake_runq_ns": draw(ms) * MS, "process_cpu_ns": draw(st.integers(-1, 50)) * MS, "lock_ns": draw(ms) * MS}
            thread = draw(st.integers(1, 2))
            made.append(
                batch(pid, at, at + items, at + items + collate, cpu=cpu, runq=runq, collate_runq=runq, thread=thread, **more)
            )
            at += items + collate + draw(ms)
    return made


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(ms, ms), min_size=1, max_size=8),
    makers(),
    st.integers(-1, 20),
    st.integers(-1, 20),
    st.lists(st.tuples(ms, ms), max_size=3),
    st.integers(0, 3),
)
def test_for_any_times_the_stages_sum_to_the_whole(lengths, made, cpu, runq, drawing, n_workers):
    at, pairs = 0, []
    for wait, step in lengths:
        pairs.append((at, at + wait))
        at += wait + step
    rows = waits(*pairs, cpu=cpu, runq=runq)
    rows += [Row(Kind.SAMPLER, 0, 0, start * MS, (start + length) * MS, 0) for start, length in drawing]
    result = measure(run_of(rows, made, loader={"n_workers": n_workers, "prefetch_batches": n_workers}))
    for whole, parts in (
        (result.input_wait_share, result.input_wait_by_stage),
        (result.input_stall_share, result.input_stall_by_stage),
    ):
        assert tuple(parts) == STAGES
        assert all(part is None or part >= 0 for part in parts.values())
        assert sum(part or 0.0 for part in parts.values()) == pytest.approx(whole, abs=1e-6)


def test_a_million_batches_are_shared_out_in_seconds():
    n = 200_000
    begin = np.arange(n, dtype=np.int64) * 10 * MS
    made = np.zeros((n, len(Made._fields)), dtype=np.int64)
    made[:, :2] = (np.arange(n) % 4 + 1)[:, None]
    made[:, 4], made[:, 5], made[:, 6], made[:, 7] = begin, begin + 30 * MS, begin + 32 * MS, 20 * MS
    spans = np.full((n + 1, len(Row._fields)), -1, dtype=np.int64)
    spans[0] = Row(Kind.ITER, 0, 0, 0, 0, 0)
    spans[1:, 0], spans[1:, 1], spans[1:, 2], spans[1:, 5] = Kind.WAIT, 0, np.arange(n), 8
    spans[1:, 3], spans[1:, 4] = begin, begin + 8 * MS
    line = timeline(run_of(spans, made, **WORKERS))
    found = stages(line.wait, line, 2)
    assert sum(ns or 0 for ns in found.values()) == pytest.approx(n * 8 * MS, rel=1e-6)
