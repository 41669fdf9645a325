"""A comparison that is broken off, disturbed or half impossible: what was measured is kept, and gone on with."""

import contextlib
import json
import os
import signal
import time
from pathlib import Path

import psutil
import pytest

from tests.faults.conftest import FILES_OF_A_RUN, Stallscope

VARY = """\
source: {kind: synthetic, samples: 4000, shape: [4, 4, 3], read: 0 ms, decode: 0 ms}
loader: naive
model: {kind: simulated, step: 1 ms}
batch_size: 8
steps: 200
vary: {source.read: [0 ms, 0.3 ms, 0.6 ms]}
"""


@pytest.fixture
def vary(stallscope):
    stallscope.write(VARY)
    return stallscope


def summary(vary):
    return json.loads((vary.folder / "a/summary.json").read_text())


def measuring(started):
    """The process that measures one of the runs; python starts another one beside it, which tracks its semaphores."""
    with contextlib.suppress(psutil.Error):
        return next((c for c in psutil.Process(started.pid).children() if "spawn_main" in " ".join(c.cmdline())), None)


def finished(vary):
    """The runs that are whole by now."""
    headers = {path.parent: json.loads(path.read_text()) for path in Path(vary.folder).glob("a/*/run.json")}
    return [folder for folder, header in headers.items() if header["outcome"] and header["outcome"]["complete"]]


@pytest.fixture(scope="module")
def compared(tmp_path_factory, cache):
    """A folder with one comparison, a, that ended well; what it printed is `.ended`. To be read."""
    made = Stallscope(tmp_path_factory.mktemp("compared"), cache)
    made.write(VARY)
    made.ended = made("run", "it.yaml", "--out", "a", "--json")
    return made


def test_every_setting_is_a_run_of_its_own_beside_summary_and_picture(compared):
    said = compared.ended.json
    assert said == summary(compared)
    assert compared.ended.err == ""
    runs = sorted(each["run"] for each in said["runs"])  # more than one a setting if something else kept the cores busy
    assert runs[:4] == ["ceiling-000", "run-000", "run-001", "run-002"]
    assert compared.left("a") == sorted([*runs, "compare.png", "summary.json"])
    assert compared.left("a/run-000") == FILES_OF_A_RUN
    assert said["complete"]
    assert [setting["label"] for setting in said["settings"]] == ["read 0 ms", "read 0.3 ms", "read 0.6 ms"]
    rates = [setting["throughput_samples_per_s"]["median"] for setting in said["settings"]]
    assert said["ceiling_samples_per_s"] > rates[1] > rates[2]


def test_a_comparison_is_drawn_again(compared):
    assert "read 0.6 ms" in compared("report", "a").out
    assert compared("report", "a", "--format", "json").json == summary(compared)
    assert compared("report", "a", "--format", "png", "--out", "b.png").status == 0
    assert (compared.folder / "b.png").read_bytes() == (compared.folder / "a/compare.png").read_bytes()
    assert "no kind 'csv'" in compared("report", "a", "--format", "csv").refusal


def test_a_finished_one_is_not_overwritten(compared):
    assert "finished comparison" in compared("run", "it.yaml", "--out", "a").refusal


def test_after_kill_9_the_same_command_goes_on_and_repeats_nothing(vary):
    command = ("run", "it.yaml", "--out", "a", "--set", "steps=600")
    started = vary.start(*command)
    started.until(lambda: len(finished(vary)) >= 2)
    child = started.until(lambda: measuring(started))
    started.process.kill()
    started.end()
    assert not psutil.wait_procs([child], timeout=20)[1], "the run that nobody waits for went on"
    before = {folder.name: (folder / "run.json").read_bytes() for folder in finished(vary)}
    assert not summary(vary)["complete"]
    ended = vary(*command)
    assert ended.status == 0, ended.err
    assert f"{len(before)} runs are there already" in ended.err
    assert {name: (vary.folder / "a" / name / "run.json").read_bytes() for name in before} == before
    assert summary(vary)["complete"]
    assert [run["run"] for run in summary(vary)["runs"]][: len(before)] == sorted(before)
    settings = [run["setting"] for run in summary(vary)["runs"] if not run["foreign_cpu_share"] > 0.1]
    assert len(settings) == len(set(settings)), "an undisturbed run was made twice"


def test_other_settings_do_not_go_on_with_it(vary):
    started = vary.start("run", "it.yaml", "--out", "a", "--set", "steps=600")
    started.until(lambda: finished(vary))
    started.process.kill()
    started.end()
    assert "unfinished comparison of other settings" in vary("run", "it.yaml", "--out", "a").refusal


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_is_measured(vary, number):
    started = vary.start("run", "it.yaml", "--out", "a", "--set", "steps=2000")
    started.until(lambda: (vary.folder / "a/summary.json").exists() and summary(vary)["runs"])
    started.until(lambda: measuring(started))
    time.sleep(0.3)
    os.killpg(started.pid, number) if number == signal.SIGINT else os.kill(started.pid, number)
    said = started.end().check_words(130)
    assert "measured and kept in a. The same command" in said
    assert not summary(vary)["complete"]
    assert len(summary(vary)["runs"]) >= 1


def test_what_one_setting_cannot_take_is_refused_before_anything_is_measured(vary):
    vary.write(VARY.replace("source.read: [0 ms, 0.3 ms, 0.6 ms]", "model.queue_depth: [1, 0]"))
    assert vary("run", "it.yaml", "--out", "a", "--quiet").refusal.startswith(
        "queue_depth 0: it.yaml:6: model.simulated: queue_depth=0"
    )
    assert not (vary.folder / "a").exists()


def test_a_run_whose_process_is_killed_leaves_the_others(vary):
    started = vary.start("run", "it.yaml", "--out", "a", "--set", "steps=1000")
    started.until((vary.folder / "a/run-000/run.json").exists)
    measuring(started).kill()
    ended = started.end()
    assert ended.status == 2
    assert "not all was measured" in ended.err
    assert "its process died" in ended.err
    measured = [setting["throughput_samples_per_s"] is not None for setting in summary(vary)["settings"]]
    assert sorted(measured) == [False, True, True]


def test_a_variation_of_a_single_value_is_one_run(vary):
    vary.write(VARY.replace("[0 ms, 0.3 ms, 0.6 ms]", "[0 ms]"))
    assert vary("run", "it.yaml", "--out", "a", "--json").json["steps"] == 200
