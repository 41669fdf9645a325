import struct
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from profiler.measure import measure
from profiler.reports import png
from profiler.result import Diagnosis, Finding
from profiler.run import Outcome
from profiler.timeline import Steps, timeline
from tests.fakes import MS, FakeLoop, run_of

CPU = {"kind": "cpu", "name": "cpu", "simulated": False, "method": "model_step"}
UNWATCHED = {"kind": "mps", "name": "M1", "simulated": False, "method": None}
FINDING = Finding(kind="k", severity="high", verdict="Input-bound.", because="b", try_next="t", evidence={})

RUNS = {
    "starved": FakeLoop(load_ns=8 * MS).run(),
    "synchronised": FakeLoop(sync_every_step=True).run(scenario={"sync_every_step": True}),
    "epochs": FakeLoop(steps=20, epochs=12, iter_ns=80 * MS, between_ns=50 * MS, host_ns=MS).run(),
    "binned": FakeLoop(steps=2000).run(),
    "cpu": FakeLoop().run(device=CPU),
    "unwatched": FakeLoop(iter_ns=20 * MS).run(device=UNWATCHED),
    "interrupted": FakeLoop(steps=3).run(outcome=Outcome(complete=False, stopped_by="SIGTERM " * 60)),
    "one step": FakeLoop(steps=1).run(),
    "no step": run_of([(1, 0, 0, 0, 5 * MS, 0), (3, 0, 0, 5 * MS, 9 * MS, 0)]),
    "nothing": run_of([], outcome=None),
    "no time": FakeLoop(load_ns=0, step_ns=0, steps=2).run(),
    "nothing made": replace(FakeLoop().run(), made=run_of([]).made),
}


def size_px(image: bytes) -> tuple[int, int]:
    """From the header of a PNG."""
    assert image[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", image[16:24])
    return width, height


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", RUNS)
def test_every_run_can_be_drawn(name):
    run = RUNS[name]
    assert size_px(png.render(run, measure(run), Diagnosis([FINDING]))) == (1200, 1000)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("verdict", ["a $broken_{formula", "long " * 200, "two\nlines"])
def test_any_verdict_can_be_a_title(verdict):
    run = RUNS["one step"]
    assert size_px(png.render(run, measure(run), Diagnosis([replace(FINDING, verdict=verdict)]))) == (1200, 1000)


@pytest.mark.parametrize("bytes_from_device", [4096, 0, -1], ids=["cold", "cached", "not measured"])
def test_bytes_from_a_device(bytes_from_device):
    run = RUNS["starved"]
    made = run.made | {"bytes_from_device": np.full_like(run.made["bytes_asked"], bytes_from_device)}
    source = {"medium": "disk", "emulated": False}
    run = replace(run, made=made, header=replace(run.header, source=source))
    assert size_px(png.render(run, measure(run), Diagnosis([FINDING]))) == (1200, 1000)


def test_bars_of_device_and_host_are_full_and_begin_with_input():
    (_, device), (_, stages), (_, host) = png.bars(measure(RUNS["epochs"]))
    assert sum(part.share for part in device) == pytest.approx(1, abs=1e-3)
    assert sum(part.share for part in host) == pytest.approx(1, abs=1e-3)
    assert (device[0].name, host[0].name) == ("idle: input", "waiting for a batch")
    assert sum(part.share for part in stages) == pytest.approx(device[0].share, abs=1e-3)
    assert device[0].colour == host[0].colour


def test_without_a_watched_device_there_is_no_bar_of_it():
    assert [title for title, _ in png.bars(measure(RUNS["unwatched"]))] == ["host", "its wait\nby stage"]


def test_few_steps_are_drawn_one_by_one():
    drawn = png.strip(timeline(FakeLoop(load_ns=8 * MS, steps=50).run()).steps)
    assert drawn.steps_per_bin == 1
    assert drawn.wait_ms.tolist() == [8.0] * 50


def test_many_steps_are_binned_into_means_and_maxima():
    asked = np.arange(3500) * 10 * MS
    long_one = np.where(np.arange(3500) == 7, 9 * MS, 4 * MS)
    steps = Steps(np.zeros(3500, int), asked, asked + long_one, asked + 10 * MS, np.full(3500, 8))
    drawn = png.strip(steps)
    assert (drawn.steps_per_bin, len(drawn.wait_ms)) == (5, 700)
    assert drawn.wait_ms[:3].tolist() == [4.0, 5.0, 4.0]
    assert set(drawn.highest_ms) == {10.0}
    assert (drawn.left_s[1], drawn.right_s[1]) == (0.05, 0.1)


def test_nothing_of_matplotlibs_global_state_is_touched():
    code = "import sys, profiler.reports.png; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
