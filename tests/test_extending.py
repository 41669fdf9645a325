"""docs/extending.md works as it is written: its files are written, its commands run, its test passes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/extending.md").read_text()
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAME = re.compile(r"# (\S+)\n")


def blocks(language):
    return [text for found, text in FENCE.findall(PAGE) if found == language]


def run(folder, *command):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder / "site")])}
    done = subprocess.run([sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with all files of the page, in which its commands have been run; what they printed is beside them."""
    folder = tmp_path_factory.mktemp("extending")
    for text in [*blocks("python"), *blocks("yaml")]:
        path = folder / NAME.match(text)[1]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    commands = [line for text in blocks("") for line in text.splitlines()]
    assert len(commands) == 2
    for number, command in enumerate(commands):
        program, *arguments = command.split()
        assert program == "python"
        (folder / f"said-{number}.txt").write_text(run(folder, *arguments))
    return folder


def test_the_parts_are_measured(folder):
    result = json.loads((folder / "mine/result.json").read_text())
    assert result["complete"]
    assert result["steps"] == 40
    assert result["distinct_samples"] == 64
    assert result["input_stall_by_stage"]["fetch"] > 0.5 * result["input_stall_share"]
    assert "64 samples of a shard server" in (folder / "said-0.txt").read_text()


def test_the_report_is_drawn(folder):
    name, rate, idle, _kind = (folder / "said-1.txt").read_text().strip().split(",")
    assert name == "mine"
    assert 0 < float(rate) < 8 / 0.016 * 1.05
    assert 0 < float(idle) < 1


def test_the_smallest_loader_runs(folder):
    said = run(folder, "-m", "profiler", "run", "mine.yaml", "--set", "loader=mylab.stream", "--out", "stream", "--json")
    assert json.loads(said)["steps"] == 40


def test_workers_and_comparisons_meet_the_parts_too(folder):
    pytest.importorskip("torch", reason="needs torch: pip install 'stallscope[torch]'")
    vary = "vary={loader.multiprocessing_context: [fork, spawn]}"
    changes = ("--set", "loader={kind: torch_workers, num_workers: 1}", "--set", vary, "--steps", "16", "--set", "repeats=1")
    said = json.loads(run(folder, "-m", "profiler", "run", "mine.yaml", *changes, "--out", "both", "--json"))
    assert [setting["problem"] for setting in said["settings"]] == [None, None]
    assert all(setting["throughput_samples_per_s"] for setting in said["settings"])


def test_the_test_of_the_page_passes(folder):
    assert "2 passed" in run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mylab.py")


def test_registered_parts_have_short_names_and_their_rule_is_asked(folder):
    [toml] = blocks("toml")
    entries = re.findall(r'^"(\S+)" = "(\S+)"$', toml, re.MULTILINE)
    assert len(entries) == 2
    info = folder / "site/mylab-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mylab\nVersion: 1.0\n")
    lines = [
        *(f"{name} = {module}" for name, module in entries),
        "source.ssd = mylab.shards",
        "sauce.x = y",
        "source.gone = not.there",
    ]
    (info / "entry_points.txt").write_text("[stallscope.parts]\n" + "\n".join(lines) + "\n")
    said = run(folder, "-m", "profiler", "list")
    assert "Samples of a made-up shard server" in said
    assert "source.ssd" in said
    assert "sauce.x" in said
    changes = ("--set", "source={kind: shards, samples: 64, latency: 1 ms}", "--set", "model.pace=1 ms")
    result = json.loads(run(folder, "-m", "profiler", "run", "mine.yaml", *changes, "--out", "short", "--json"))
    assert "small_batches" in [finding["kind"] for finding in result["findings"]]
