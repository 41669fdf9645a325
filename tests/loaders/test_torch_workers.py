import sys

import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'stallscope[torch]'")

from loaders import torch_workers
from loaders.sources import synthetic


class NoProbe:
    def begin(self): ...
    def item(self, index): ...
    def items(self, n_items, n_skipped, bytes_asked): ...
    def end(self): ...


@pytest.fixture(autouse=True)
def no_tensorflow(monkeypatch):
    """Another test may have loaded it into this process, and beside it nothing is forked."""
    monkeypatch.setitem(sys.modules, "tensorflow", None)


def build(tmp_path, **options):
    source = synthetic.build(tmp_path, samples=20, shape=(2, 2, 3), read_ns=0, decode_ns=0)
    return torch_workers.build(source, NoProbe(), "fail", **options)


def test_how_far_it_runs_ahead_is_dataloaders_own_default(tmp_path):
    ahead = build(tmp_path, num_workers=3)
    assert (ahead.n_workers, ahead.prefetch_batches) == (3, 6)


def test_with_no_workers_what_concerns_workers_has_no_effect(tmp_path):
    options = {"prefetch_factor": 4, "persistent_workers": True, "multiprocessing_context": "spawn", "timeout_ns": 10**9}
    alone = build(tmp_path, num_workers=0, **options)
    assert (alone.n_workers, alone.prefetch_batches) == (0, 0)
    assert [batch.index.tolist() for batch in alone.epoch([[1, 2], [3]])] == [[1, 2], [3]]


def test_persistent_workers_serve_every_epoch(tmp_path):
    loader = build(tmp_path, num_workers=1, persistent_workers=True)
    first = iter(loader.epoch([[0], [1]]))
    pids = [worker.pid for worker in first._workers]
    assert [batch.index.tolist() for batch in first] == [[0], [1]]
    second = iter(loader.epoch([[5]]))
    assert [worker.pid for worker in second._workers] == pids
    assert [batch.index.tolist() for batch in second] == [[5]]
    loader.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_workers": -1}, "num_workers"),
        ({"num_workers": 2, "timeout_ns": -1}, "timeout"),
        ({"num_workers": 2, "prefetch_factor": 0}, "prefetch_factor=0: must be"),
    ],
)
def test_what_dataloader_refuses_is_refused(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        build(tmp_path, **options)


class TestBesideTensorflow:
    @pytest.fixture(autouse=True)
    def loaded(self, no_tensorflow, monkeypatch):
        monkeypatch.setitem(sys.modules, "tensorflow", sys)

    @pytest.mark.parametrize("context", ["fork", None])
    def test_workers_are_not_forked(self, tmp_path, context):
        if context is None and torch_workers.multiprocessing.get_start_method() != "fork":
            pytest.skip("this Python forks only where it is asked to")
        with pytest.raises(ValueError, match=r"num_workers=2: would fork .* use multiprocessing_context: spawn"):
            build(tmp_path, num_workers=2, multiprocessing_context=context)

    def test_but_spawned_or_none(self, tmp_path):
        assert build(tmp_path, num_workers=2, multiprocessing_context="spawn").n_workers == 2
        assert build(tmp_path, num_workers=0).n_workers == 0
