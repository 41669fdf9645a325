"""The loop and its bookkeeping, with parts that are made of arithmetic."""

from contextlib import nullcontext

import numpy as np
import pytest

from profiler.errors import UserError
from profiler.execute import Delivered, execute, index_batches, prepare
from profiler.measure import measure
from profiler.runfile import read_run
from profiler.scenario import load
from profiler.stamps import Watch

SCENARIO = """
source: {kind: synthetic, samples: 50, shape: [4, 4, 3], read: 0 ms, decode: 0 ms}
loader: naive
model: {kind: simulated, step: 10 us}
batch_size: 8
"""


@pytest.fixture
def run(tmp_path):
    """Runs a scenario text and returns the run and what ended it."""

    def run(length, *settings, name="a"):
        (tmp_path / "it.yaml").write_text(SCENARIO + length)
        scenario = load(tmp_path / "it.yaml", settings)
        source = prepare(scenario, tmp_path, "auto", lambda done, total: None)
        ended_by = execute(scenario, source, tmp_path / name, ["x"], "auto", lambda watch, model: nullcontext())
        return read_run(tmp_path / name), ended_by

    return run


def test_epochs_deliver_all_samples_once_each(run):
    got, ended_by = run("epochs: 3")
    result = measure(got)
    assert ended_by is None
    assert result.complete
    assert (result.epochs, result.steps, result.samples, result.distinct_samples) == (3, 21, 150, 50)


def test_steps_end_in_the_middle_of_an_epoch(run):
    result = measure(run("steps: 10")[0])
    assert (result.epochs, result.steps, result.samples) == (2, 10, 50 + 3 * 8)
    assert result.complete


def test_a_duration_ends_by_the_clock(run):
    result = measure(run("duration: 50 ms")[0])
    assert result.wall_s == pytest.approx(0.05, rel=0.5)


def test_what_ends_a_run_early_is_returned_and_the_run_is_kept(run, monkeypatch):
    def broken(self, wait_for_device):
        raise KeyboardInterrupt

    monkeypatch.setattr(Watch, "sync", broken)
    got, ended_by = run("epochs: 3", "sync_every_step=true")
    result = measure(got)
    assert isinstance(ended_by, KeyboardInterrupt)
    assert (result.complete, result.steps, result.stopped_by) == (False, 1, "KeyboardInterrupt")


def test_the_effective_settings_are_kept_with_every_default(run):
    header = run("epochs: 1")[0].header
    assert header.scenario["source"] == {
        "kind": "synthetic",
        "samples": 50,
        "shape": [4, 4, 3],
        "read_ns": 0,
        "decode_ns": 0,
        "spread": "fixed",
        "decode_mode": "compute",
    }
    assert header.scenario["seed"] == 0


def test_the_cost_of_recording_is_measured_and_kept(run):
    cost = measure(run("epochs: 2")[0]).profiler_cost
    assert cost.us_per_step_main > 0
    assert cost.us_per_batch_worker > 0
    assert 0 < cost.share < 1
    assert cost.records == len(["iter", "end"]) * 2 + 14 * len(["wait", "busy", "made"]) + len(["before", "after"]) * 2


def test_what_a_part_refuses_is_refused_before_samples_are_written(tmp_path):
    (tmp_path / "it.yaml").write_text(SCENARIO + "epochs: 1")
    scenario = load(tmp_path / "it.yaml", [f"source={{kind: ssd, samples: 8, path: {tmp_path}/data}}", "model.queue_depth=0"])
    with pytest.raises(UserError, match=r"model.simulated: queue_depth=0: must be at least 1"):
        prepare(scenario, tmp_path, "auto", lambda done, total: None)
    assert not (tmp_path / "data").exists()


class TestIndexBatches:
    def test_hold_every_sample_once(self):
        batches = index_batches(50, 8, seed=0, epoch=0)
        assert sorted(i for batch in batches for i in batch) == list(range(50))
        assert [len(batch) for batch in batches] == [8] * 6 + [2]

    def test_depend_on_seed_and_epoch_alone(self):
        assert index_batches(50, 8, 0, 1) == index_batches(50, 8, 0, 1)
        assert index_batches(50, 8, 0, 1) != index_batches(50, 8, 0, 2)
        assert index_batches(50, 8, 0, 1) != index_batches(50, 8, 1, 1)


def test_distinct_samples_are_those_of_the_best_epoch():
    delivered = Delivered(10)
    for epoch in ([[0, 1], [1, 2]], [[3, 4], [5, 6]], [[7]]):
        delivered.next_epoch()
        for index in epoch:
            delivered.add(np.array(index))
    assert delivered.distinct == 4
