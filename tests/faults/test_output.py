"""What goes to standard output, and what happens when nobody reads it."""

import json
import os
import subprocess

import pytest


@pytest.fixture
def unread(stallscope):
    """Runs a command whose standard output is closed already, as `| head` leaves it once it has seen enough."""

    def unread(folder, *arguments):
        reading, writing = os.pipe()
        os.close(reading)
        command = [*stallscope.command, *arguments]
        with os.fdopen(writing) as stdout:
            return subprocess.run(
                command, cwd=folder, env=stallscope.environment(), stdout=stdout, stderr=subprocess.PIPE, text=True, check=False
            )

    return unread


@pytest.mark.parametrize("arguments", ["report a", "list", "clean", "--help"])
def test_a_reader_that_has_seen_enough_is_no_fault(measured, unread, arguments):
    ended = unread(measured.folder, *arguments.split())
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_run_that_nobody_reads_is_measured_all_the_same(stallscope, unread):
    ended = unread(stallscope.folder, "run", "it.yaml", "--out", "a")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "stalls.png" in stallscope.left("a")


def test_json_is_alone_on_stdout(measured):
    assert measured.ended.json["complete"]
    assert measured.ended.out == (measured.folder / "a/result.json").read_text()
    assert measured.ended.err == ""


def test_quiet_says_nothing(stallscope):
    ended = stallscope("run", "it.yaml", "--quiet")
    assert ended == (0, "", "")
    (run,) = stallscope.left("runs")
    assert run.startswith("it-")
    assert stallscope.read(f"runs/{run}").complete


def test_repeats_lie_beside_their_summary_which_is_what_json_prints(stallscope):
    ended = stallscope("run", "it.yaml", "--out", "a", "--repeats", "2", "--json")
    summary = ended.json
    runs = [each["run"] for each in summary["runs"]]
    assert runs[:2] == ["run-000", "run-001"]  # more were made if something else kept the cores busy meanwhile
    assert stallscope.left("a") == [*runs, "summary.json"]
    assert json.loads((stallscope.folder / "a/summary.json").read_text()) == summary
    assert {stallscope.read(f"a/{each}").steps for each in runs} == {40}


def test_progress_goes_to_the_terminal_and_not_to_stdout(stallscope):
    """Standard error is a terminal here, standard output is not."""
    pty = pytest.importorskip("pty", reason="needs pseudo-terminals: Linux or macOS")
    ours, theirs = pty.openpty()
    command = [*stallscope.command, "run", "it.yaml", "--out", "a", "--duration", "800ms"]
    environment = stallscope.environment(TERM="xterm-256color")
    with subprocess.Popen(command, cwd=stallscope.folder, env=environment, stdout=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        shown = b"".join(_until_closed(ours))
        out = process.stdout.read()
    assert process.returncode == 0
    assert b"samples/s" in shown
    assert b"\x1b" in shown
    assert b"\x1b" not in out
    assert out.endswith(b"Draw this again: python -m profiler report a\n")


def _until_closed(file):
    while True:
        try:
            data = os.read(file, 4096)
        except OSError:  # Linux answers so when the other end is closed
            return
        if not data:
            return
        yield data


def test_a_terminal_of_few_letters_gets_a_report_all_the_same(stallscope):
    ended = stallscope("run", "it.yaml", "--out", "a", PYTHONIOENCODING="ascii")
    assert ended.check_words(0) == ""
    assert "Where the wall time went" in ended.out


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-"])
def test_a_closed_stream_ends_no_run(stallscope, closed):
    command = f"{' '.join(stallscope.command)} run it.yaml --out a {closed}"
    ran = subprocess.run(command, shell=True, cwd=stallscope.folder, env=stallscope.environment(), check=False)
    assert ran.returncode == 0
    assert stallscope.read().complete


def test_a_backend_that_is_not_installed_is_no_fault(stallscope):
    """Jupyter sets one for whatever runs in its cells."""
    assert stallscope("run", "it.yaml", "--out", "a", MPLBACKEND="module://nowhere").check_words(0) == ""


def test_runs_that_begin_in_the_same_second_do_not_get_in_each_others_way(stallscope):
    ended = [started.end() for started in [stallscope.start("run", "it.yaml", "-q") for _ in range(3)]]
    assert [each.status for each in ended] == [0, 0, 0], ended
    assert len(stallscope.left("runs")) == 3


@pytest.mark.parametrize("out", ["", ".", "a/run.json", "/dev/null"])
def test_a_report_replaces_nothing(measured, out):
    assert "name a new file to write to" in measured("report", "a", "--out", out).refusal
    assert measured.read().complete
