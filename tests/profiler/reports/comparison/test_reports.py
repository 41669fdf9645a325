"""What is said and drawn of several runs. The picture is looked at by people; here only that it is one, whatever it is of."""

import json
from dataclasses import replace

import pytest

from profiler.comparison import Measured, Setting, compare
from profiler.reports.comparison import json as as_json
from profiler.reports.comparison import png, text

RUN = Measured("r", 0, 100.0, (95.0, 105.0), 0.5, 0.5, 200.0, 0.1, 0.5, 100_000_000, 0.0, "input_bound", ["simulated device"])


def comparison(runs, settings, repeats=1, complete=True):
    return compare("it", settings, [replace(run, run=f"run-{i:03d}") for i, run in enumerate(runs)], repeats, complete)


TWO = [Setting("threads", "buffer_batches 1", {}, {}), Setting("threads", "buffer_batches 4", {}, {})]
THREE = [*TWO, Setting("", "tf_prefetch", {}, {}, problem="needs tensorflow: pip install it", installed=False)]
FAST = replace(RUN, setting=1, throughput_samples_per_s=300.0, labels=["simulated device", "emulated storage"])
WHOLE = comparison([RUN, FAST, replace(RUN, setting=None, throughput_samples_per_s=400.0)], THREE)
SOME = {
    "whole": WHOLE,
    "nothing": comparison([], TWO, complete=False),
    "unmeasured": comparison([replace(RUN, ci95=None, device_idle_share=None, memory_bytes=None, cpu_cores=None)], TWO),
    "disturbed": comparison([replace(RUN, foreign_cpu_share=0.5), FAST], TWO, repeats=2),
    "one": comparison([RUN, RUN], TWO[:1], repeats=2),
    "long": comparison([RUN], [replace(TWO[0], label="x " * 200, group="y " * 200)] * 40),
    "nothing moves": comparison([replace(RUN, throughput_samples_per_s=None)], TWO),
}


@pytest.mark.parametrize("name", SOME)
def test_the_picture_is_a_png(name):
    assert png.render(SOME[name]).startswith(b"\x89PNG\r\n\x1a\n")


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("width", [80, 120])
def test_the_text_keeps_to_its_width(name, width):
    assert max(map(len, text.render(SOME[name], width=width).splitlines())) <= width


def test_the_text_says_which_to_take_what_it_costs_and_what_was_not_measured():
    said = text.render(WHOLE, width=120)
    assert "Take threads: buffer_batches 4: 300 samples/s, 3x the slowest." in said
    assert "It takes 100 MB of memory and 0.5 cores." in said
    assert "[simulated device]" in said
    assert "buffer_batches 4 [emulated storage]" in said
    assert "Not measured: tf_prefetch: needs tensorflow: pip install it" in said
    assert "Ceiling, with loading removed: 400 samples/s" in said
    assert "95 .. 105" in said
    assert [line[0] for line in said.splitlines() if "buffer_batches" in line and "Take" not in line] == [" ", ">"]


def test_an_unfinished_one_says_so():
    assert "[incomplete: not all runs were made]" in text.render(SOME["nothing"], width=120)


def test_the_json_is_the_summary():
    assert json.loads(as_json.render(WHOLE))["best"] == 1
