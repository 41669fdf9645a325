import dataclasses
import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from profiler.errors import UserError
from profiler.events import Made, Row
from profiler.measure import measure
from profiler.probe import RECORD
from profiler.run import SCHEMA, Outcome
from profiler.runfile import HEADER, MADE, MAKING, SPANS, RunWriter, read_run, write_whole
from tests.fakes import FakeLoop, header

RUNS = Path(__file__).parents[1] / "runs"


def rows_of(run, kind, table):
    return list(zip(*(table[name].tolist() for name in kind._fields), strict=True))


def write(folder, run, ended=True):
    """Writes a run as execute does, worker files and all."""
    writer = RunWriter(folder)
    writer.begin(dataclasses.replace(run.header, outcome=None))
    spans = rows_of(run, Row, run.spans)
    for i in range(0, len(spans), 50):
        writer.write(spans[i : i + 50])
    records = [RECORD.pack(*row) for row in rows_of(run, Made, run.made)]
    (writer.making / "made-1-1.bin").write_bytes(b"".join(records))
    if ended:
        writer.end(Outcome(complete=True))
    else:
        writer.abandon()
    return folder


@pytest.fixture
def run():
    return FakeLoop(load_ns=8_000_000, steps=60, epochs=2).run()


def test_a_run_comes_back_as_it_was_written(tmp_path, run):
    back = read_run(write(tmp_path / "a", run))
    assert back.complete
    for name, column in run.spans.items():
        assert np.array_equal(back.spans[name], column)
    for name, column in run.made.items():
        assert np.array_equal(back.made[name], column)
    assert dataclasses.replace(back.header, outcome=None) == dataclasses.replace(run.header, outcome=None)
    assert not (tmp_path / "a" / MAKING).exists()


def test_a_killed_run_keeps_what_was_written_and_is_not_complete(tmp_path, run):
    back = read_run(write(tmp_path / "a", run, ended=False))
    assert not back.complete
    assert back.header.outcome is None
    assert len(back.spans["kind"]) == len(run.spans["kind"])
    assert len(back.made["pid"]) == len(run.made["pid"])
    assert measure(back).steps == 120


def test_a_run_never_overwrites(tmp_path, run):
    write(tmp_path / "a", run)
    before = (tmp_path / "a" / HEADER).read_bytes()
    with pytest.raises(UserError, match=r"a exists, and a run never overwrites another: choose another --out"):
        RunWriter(tmp_path / "a")
    assert (tmp_path / "a" / HEADER).read_bytes() == before


@pytest.mark.parametrize("name", [HEADER, SPANS, MADE])
def test_cut_at_any_byte_it_is_read_as_far_as_it_goes_or_refused_in_words(tmp_path, run, name):
    folder = write(tmp_path / "a", run)
    whole = (folder / name).read_bytes()
    lengths = range(len(whole)) if len(whole) < 600 else sorted(random.Random(0).sample(range(len(whole)), 150))
    for length in [*lengths, len(whole) - 1]:
        (folder / name).write_bytes(whole[:length])
        if name == HEADER and length < len(whole) - 1:  # the last byte is a newline, which nobody misses
            with pytest.raises(UserError, match=r"run\.json is cut short or damaged"):
                read_run(folder)
        else:
            assert measure(read_run(folder)).complete is (name == HEADER), length


def test_a_worker_file_cut_in_a_record_loses_that_record(tmp_path, run):
    folder = write(tmp_path / "a", run, ended=False)
    file = folder / MAKING / "made-1-1.bin"
    file.write_bytes(file.read_bytes()[:-7])
    assert len(read_run(folder).made["pid"]) == len(run.made["pid"]) - 1


def test_records_that_are_packed_and_still_loose_count_once(tmp_path, run):
    """A disk that was full, or a kill, between packing them and removing the makers' files."""
    shutil.copytree(write(tmp_path / "cut", run, ended=False) / MAKING, tmp_path / "loose")
    folder = write(tmp_path / "a", run)
    shutil.copytree(tmp_path / "loose", folder / MAKING)
    for name, column in run.made.items():
        assert np.array_equal(read_run(folder).made[name], column)


def test_a_missing_events_file_makes_it_incomplete(tmp_path, run):
    folder = write(tmp_path / "a", run)
    (folder / SPANS).unlink()
    assert not read_run(folder).complete


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"schema": SCHEMA + 1}, rf"was written by format {SCHEMA + 1}; this version reads up to {SCHEMA}. Install a newer"),
        ({}, "run.json is cut short or damaged"),
        ([], "run.json is cut short or damaged"),
        ({"schema": 0}, "run.json is cut short or damaged"),
        ({"schema": 1}, "run.json is damaged: scenario: field required"),
        ({"schema": 1, "outcome": {"complete": True}, "name": "x"}, "run.json is damaged"),
    ],
)
def test_a_header_that_cannot_be_read_is_refused_in_words(tmp_path, content, message):
    (tmp_path / HEADER).write_text(json.dumps(content))
    with pytest.raises(UserError, match=message):
        read_run(tmp_path)


WRONG = {
    "scenario": [[], "x", {"loader": []}],
    "environment": ["x", {"usable_cores": "2"}],
    "device": [{}, None, {"kind": "x", "name": "x", "method": None}],
    "source": [None, {"disk": 3}],
    "loader": [{}, {"n_workers": -1, "prefetch_batches": 0}, {"n_workers": 1e99, "prefetch_batches": 0}],
    "process_start_ns": ["x", {}],
    "resident_shares": [None, 3, "x", ["x"]],
    "command": [5],
    "outcome": [[], {}, {"complete": "yes"}, *({"complete": True} | bad for bad in ({"loss": ["a", "b"]}, {"rows": 3}))],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in WRONG.items() for value in values])
def test_an_entry_of_a_wrong_type_is_named(tmp_path, run, key, value):
    folder = write(tmp_path / "a", run)
    content = json.loads((folder / HEADER).read_text()) | {key: value}
    (folder / HEADER).write_text(json.dumps(content))
    with pytest.raises(UserError, match=rf"run\.json is damaged: {key}"):
        read_run(folder)


def test_events_of_another_run_are_noticed(tmp_path, run):
    folder, other = write(tmp_path / "a", run), write(tmp_path / "b", FakeLoop(steps=90, epochs=2).run())
    (folder / SPANS).write_bytes((other / SPANS).read_bytes())
    assert not read_run(folder).complete


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UserError, match=r"no run\.json here, so this is no run directory"):
            read_run(folder)


def test_entries_of_a_later_version_of_the_schema_are_left_out(tmp_path, run):
    folder = write(tmp_path / "a", run)
    content = json.loads((folder / HEADER).read_text()) | {"added_later": 1}
    (folder / HEADER).write_text(json.dumps(content))
    assert read_run(folder).complete


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    write_whole(tmp_path / "x", "old")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        write_whole(tmp_path / "x", "new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("x", "old")]


def test_headers_hold_only_what_json_can_say(tmp_path):
    writer = RunWriter(tmp_path / "a")
    with pytest.raises(ValueError, match="JSON"):
        writer.begin(header(environment={"cores": float("nan")}))


@pytest.mark.parametrize("schema", range(1, SCHEMA + 1))
def test_a_recorded_run_of_every_schema_is_still_read(schema):
    """40 loads of 8 ms for steps of 5 ms, in 2 epochs, recorded by the version that wrote this schema."""
    result = measure(read_run(RUNS / f"schema-{schema}"))
    assert result.complete
    assert (result.steps, result.verdict, result.wall_s) == (80, "input_bound", 0.645)
    assert result.input_stall_share == pytest.approx(1 - 80 * 5 / 645)
    assert result.input_stall_by_stage["decode"] == pytest.approx(result.input_stall_share / 2)
