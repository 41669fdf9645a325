import numpy as np
import pytest

from profiler import ring
from profiler.events import Kind, Row
from profiler.keeper import Keeper, _blocks, header
from profiler.ring import RingReader, RingWriter
from profiler.run import table
from profiler.runfile import RunWriter, read_run
from profiler.stamps import STEPS_PER_FLUSH, Watch


@pytest.fixture
def kept(tmp_path):
    """A keeper, and a watch whose rows it takes."""
    file = ring.create()
    keeper = Keeper(RunWriter(tmp_path / "a"), tmp_path / "a", RingReader(file))
    keeper.begin(header("train", ["trace", "train.py"], 1))
    return keeper, Watch(rows=RingWriter(file), loop=0)


def run_through(watch, steps):
    for _ in watch.batches([range(8)] * steps, len):
        pass


def rows_of(*kinds):
    return table(Row, [Row(kind, 0, i, i, i + 1, 8) for i, kind in enumerate(kinds)])


def test_blocks_are_cut_between_steps():
    one = [Kind.WAIT, Kind.BACKWARD, Kind.OPTIMIZER]
    rows = rows_of(Kind.ITER, *one * (2 * STEPS_PER_FLUSH + 1))
    blocks = _blocks(rows)
    assert np.concatenate(blocks).tolist() == rows.tolist()
    assert [int((block[:, 0] == Kind.WAIT).sum()) for block in blocks] == [STEPS_PER_FLUSH, STEPS_PER_FLUSH, 1]
    assert [block[0, 0] for block in blocks] == [Kind.ITER, Kind.WAIT, Kind.WAIT]


def test_an_epoch_begins_with_its_iter():
    rows = rows_of(*[Kind.ITER, Kind.WAIT, Kind.END] * (STEPS_PER_FLUSH + 1))
    first, second = _blocks(rows)
    assert [int(kind) for kind in second[:, 0]] == [Kind.END, Kind.ITER, Kind.WAIT, Kind.END]
    assert int((first[:, 0] == Kind.WAIT).sum()) == STEPS_PER_FLUSH


def test_no_rows_are_no_block():
    assert [len(block) for block in _blocks(rows_of())] == [0]


def test_what_is_no_block_yet_is_read_all_the_same(kept, tmp_path):
    keeper, watch = kept
    run_through(watch, 30)
    keeper.take()
    keeper.take()
    assert len(read_run(tmp_path / "a").of(Kind.WAIT)["kind"]) == 30
    run_through(watch, STEPS_PER_FLUSH)
    keeper.take()
    keeper.take()
    steps = read_run(tmp_path / "a").of(Kind.WAIT)["step"]
    assert steps.tolist() == list(range(30 + STEPS_PER_FLUSH))


def test_in_the_end_all_is_in_its_file_and_counted(kept, tmp_path):
    keeper, watch = kept
    run_through(watch, 30)
    run_through(watch, 2500)
    keeper.end(None, {})
    run = read_run(tmp_path / "a")
    assert run.complete
    assert len(run.of(Kind.WAIT)["kind"]) == 2530
    assert run.header.outcome.loops == {"0": {"steps": 2530, "samples": 8 * 2530, "epochs": 2}}


def test_a_disk_that_refuses_ends_the_recording_and_nothing_else(kept, monkeypatch):
    keeper, watch = kept

    def refuse(rows):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(keeper.writer, "write", refuse)
    for _ in range(3):
        run_through(watch, 1500)
        keeper.take()
    keeper.end(None, {})
    assert keeper.trouble.errno == 28
