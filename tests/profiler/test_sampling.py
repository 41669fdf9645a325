"""A long run keeps whole blocks, evenly spread: its shares are the whole run's, its totals exact, its longest waits known."""

import itertools

import numpy as np
import pytest

from profiler.events import Kind, Made, Row
from profiler.measure import measure
from profiler.run import Outcome
from profiler.runfile import RunWriter, read_run
from profiler.sampling import WORST_STEPS
from tests.fakes import MS, FakeLoop, header, run_of

BLOCK = 50


def whole_run(**loop):
    return FakeLoop(**{"load_ns": 8 * MS, "steps": 5000} | loop).run(source={"medium": "disk", "emulated": False})


def rows_of(run, table, kind):
    return np.column_stack([table[name] for name in kind._fields])


def blocks(run):
    """The spans as the Watch hands them on: so many steps a time, the device's a little later than the host's."""
    rows = rows_of(run, run.spans, Row)
    device = np.isin(rows[:, 0], (Kind.BUSY, Kind.COPY))
    host = rows[~device]
    device = rows[device]
    borders = [0, *np.flatnonzero(host[:, 0] == Kind.WAIT)[BLOCK::BLOCK].tolist(), len(host)]
    told = 0
    for start, end in itertools.pairwise(borders):
        until = host[end][3] if end < len(host) else np.iinfo(np.int64).max
        known = told + int((device[told:, 3] < until - 3 * MS).sum())
        yield np.concatenate((host[start:end], device[told:known]))
        told = known


def sampled(run, folder, most_blocks=8, made=True, until=None):
    """The same run through a writer that keeps so few blocks."""
    writer = RunWriter(folder, most_blocks)
    writer.begin(header(outcome=None, source=run.header.source))
    if made:
        (writer.making / "made-1-1-000000.bin").write_bytes(rows_of(run, run.made, Made).astype(np.int64).tobytes())
    for number, rows in enumerate(blocks(run)):
        if number == until:
            return writer
        writer.write(rows.tolist())
    totals = {"steps": len(run.of(Kind.WAIT)["step"]), "samples": int(run.of(Kind.WAIT)["n_samples"].sum())}
    writer.end(Outcome(complete=True, epochs=len(run.of(Kind.ITER)["step"]), **totals))
    return writer


@pytest.mark.parametrize("loop", [{}, {"load_ns": 3 * MS}, {"bytes_per_s": 10**6}, {"sync_every_step": True}, {"host_ns": MS}])
def test_a_steady_loop_has_the_shares_of_the_whole(tmp_path, loop):
    run = whole_run(**loop)
    sampled(run, tmp_path / "run")
    full, part = measure(run), measure(read_run(tmp_path / "run"))
    assert part.sampled
    assert 0.03 < part.sampled_share < 0.2
    assert part.device_idle_share == pytest.approx(full.device_idle_share, abs=0.003)
    assert part.input_stall_share == pytest.approx(full.input_stall_share, abs=0.003)
    for name, share in full.idle_by_cause.items():
        assert part.idle_by_cause[name] == pytest.approx(share, abs=0.003)
    for name, share in full.input_stall_by_stage.items():
        assert part.input_stall_by_stage[name] == pytest.approx(share, abs=0.003)
    assert sum(share or 0 for share in part.idle_by_cause.values()) == pytest.approx(part.device_idle_share)
    assert part.throughput_samples_per_s.steady == pytest.approx(full.throughput_samples_per_s.steady, rel=0.003)
    assert part.verdict == full.verdict


def test_totals_are_those_of_the_whole_run(tmp_path):
    run = whole_run(steps=700, epochs=7, harness_ns=30 * MS, iter_ns=2 * MS)
    sampled(run, tmp_path / "run")
    full, part = measure(run), measure(read_run(tmp_path / "run"))
    assert (part.steps, part.samples, part.epochs) == (full.steps, full.samples, full.epochs) == (4900, 39200, 7)
    assert part.wall_s == pytest.approx(full.wall_s, abs=0.006)  # the device's last step
    assert part.harness_s == pytest.approx(full.harness_s, rel=1e-6)
    assert part.throughput_samples_per_s.epoch == pytest.approx(full.throughput_samples_per_s.epoch, rel=1e-3)
    assert part.storage.bytes_asked == pytest.approx(full.storage.bytes_asked, rel=0.02)


def test_a_short_run_is_kept_as_it_is(tmp_path):
    run = whole_run(steps=8 * BLOCK)
    sampled(run, tmp_path / "run")
    again = read_run(tmp_path / "run")
    assert sorted(map(tuple, rows_of(again, again.spans, Row).tolist())) == sorted(
        map(tuple, rows_of(run, run.spans, Row).tolist())
    )
    assert np.array_equal(rows_of(again, again.made, Made), rows_of(run, run.made, Made))
    assert not measure(again).sampled


@pytest.mark.parametrize("steps", [450, 1000, 5000, 20_000])
def test_however_long_a_run_is_its_files_are_not(tmp_path, steps):
    writer = sampled(whole_run(steps=steps), tmp_path / "run")
    again = read_run(tmp_path / "run")
    assert 3 * BLOCK <= len(again.of(Kind.WAIT)["step"]) <= 9 * BLOCK
    assert len(again.made["pid"]) <= 10 * BLOCK
    assert len(writer._sampling._time) <= 8


def test_the_longest_waits_are_known_wherever_they_fell(tmp_path):
    run = whole_run()
    waits = np.flatnonzero(run.spans["kind"] == Kind.WAIT)
    for place, extra in ((1234, 50), (77, 40), (4321, 45)):
        run.spans["start_ns"][waits[place]] -= extra * MS
    sampled(run, tmp_path / "run")
    worst = measure(read_run(tmp_path / "run")).worst_steps
    assert len(worst) == WORST_STEPS
    assert [each["step"] for each in worst[:3]] == [1234, 4321, 77]
    assert worst[0]["wait_ms"] == pytest.approx(58)


@pytest.mark.parametrize("until", [3, 9, 17, 30, 60, 99])
def test_what_a_kill_leaves_is_read_as_far_as_it_goes(tmp_path, until):
    run = whole_run()
    sampled(run, tmp_path / "run", until=until)
    again = read_run(tmp_path / "run")
    result = measure(again)
    assert not result.complete
    assert result.device_idle_share == pytest.approx(0.375, abs=0.02)
    assert sum(result.wall_by_part.values()) == pytest.approx(1)
    assert result.samples == 8 * result.steps


def test_records_of_kept_blocks_are_whole(tmp_path):
    run = whole_run(steps=2000)
    sampled(run, tmp_path / "run")
    again = read_run(tmp_path / "run")
    steps = set(again.of(Kind.WAIT)["step"].tolist())
    begins = np.sort(run.made["begin_ns"])
    made = {int(np.searchsorted(begins, begin)) for begin in again.made["begin_ns"].tolist()}
    assert steps <= made
    assert len(made - steps) <= 2 * 9


def test_makers_files_are_collected_while_the_run_goes_on(tmp_path):
    run = whole_run(steps=1000)
    writer = RunWriter(tmp_path / "run", 4)
    writer.begin(header(outcome=None))
    table = rows_of(run, run.made, Made).astype(np.int64)
    for number, rows in enumerate(blocks(run)):
        part = table[number * BLOCK : (number + 1) * BLOCK]
        (writer.making / f"made-1-1-{number:06d}.bin").write_bytes(part.tobytes())
        writer.write(rows.tolist())
        if number > 8:
            assert len(list(writer.making.iterdir())) == 1, "the one that is written to"
    writer.end(Outcome(complete=True, steps=1000, samples=8000, epochs=1))
    result = measure(read_run(tmp_path / "run"))
    assert result.complete
    assert result.profiler_cost.dropped == 0
    assert result.input_stall_by_stage["decode"] == pytest.approx(result.input_stall_share / 2, rel=0.02)


def test_nothing_is_sampled_of_nothing():
    assert measure(run_of([])).sampled is False
