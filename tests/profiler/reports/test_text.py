from dataclasses import replace

import pytest

from profiler.events import STAGES
from profiler.measure import measure
from profiler.reports import text
from profiler.result import Diagnosis, Finding
from profiler.run import Outcome
from tests.fakes import MS, FakeLoop, run_of

CPU = {"kind": "cpu", "name": "cpu", "simulated": False, "method": "model_step"}
UNWATCHED = {"kind": "mps", "name": "M1", "simulated": False, "method": None}
FILES = {"medium": "disk", "label": "files", "emulated": False}
OUTCOME = Outcome(complete=True, loss=(2.0, 0.5), foreign_cpu_share=0.02, us_per_step_main=3.0, us_per_batch_maker=12.0)
FINDING = Finding(
    kind="decode_cpu",
    severity="high",
    verdict="Input-bound: decoding is the limit.",
    because="decode takes 22.0 %",
    try_next="use two workers",
    evidence={},
    predicted_gain={"speedup": 1.6, "ci95": (1.5, 1.7)},
)
DIAGNOSIS = Diagnosis([FINDING])

RUNS = {
    "starved": FakeLoop(load_ns=8 * MS).run(),
    "fed": FakeLoop(load_ns=4 * MS).run(),
    "synchronised": FakeLoop(sync_every_step=True, host_ns=MS).run(),
    "copying": FakeLoop(bytes_per_s=200_000, queue_depth=1).run(),
    "epochs": FakeLoop(steps=20, epochs=3, iter_ns=80 * MS, between_ns=50 * MS, harness_ns=70 * MS).run(outcome=OUTCOME),
    "cpu": FakeLoop().run(device=CPU),
    "unwatched": FakeLoop(iter_ns=20 * MS).run(device=UNWATCHED),
    "interrupted": replace(FakeLoop(steps=3).run(outcome=None), truncated=True),
    "one step": FakeLoop(steps=1).run(),
    "no step": run_of([(1, 0, 0, 0, 5 * MS, 0), (3, 0, 0, 5 * MS, 9 * MS, 0)]),
    "nothing": run_of([], outcome=None),
    "no time": FakeLoop(load_ns=0, step_ns=0, steps=2).run(),
}


def render(run, diagnosis=DIAGNOSIS, **options):
    return text.render(run, measure(run), diagnosis, **({"width": 100} | options))


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("width", [80, 120])
def test_every_run_can_be_told_within_the_width(name, width):
    lines = render(RUNS[name], width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert not any(line != line.rstrip() for line in lines)


@pytest.mark.parametrize("name", sorted(set(RUNS) - {"nothing", "no time"}))
def test_the_rows_of_the_wall_time_sum_to_it(name):
    rows = text.wall_rows(measure(RUNS[name]))
    assert text.total(rows) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("name", ["starved", "epochs", "cpu", "unwatched"])
def test_the_stages_sum_to_the_row_above_them(name):
    rows = text.wall_rows(measure(RUNS[name]))
    first = next(i for i, row in enumerate(rows) if row.within)
    stages = [row for row in rows if row.within]
    assert len(stages) == len(STAGES)
    assert sum(row.share or 0 for row in stages) == pytest.approx(rows[first - 1].share)


def test_exact_shares_of_a_synchronised_loop():
    """Load 4 ms, then a step of 5 ms that is waited for."""
    shares = {row.name: row.share for row in text.wall_rows(measure(FakeLoop(sync_every_step=True).run()))}
    assert shares["device busy"] == pytest.approx(5 / 9)
    assert shares["idle: input"] == pytest.approx(4 / 9)
    assert (shares["fetch"], shares["decode"]) == pytest.approx((2 / 9, 2 / 9))


def test_an_unwatched_device_leaves_the_table_to_the_host():
    rows = text.wall_rows(measure(RUNS["unwatched"]))
    assert [row.name for row in rows if not row.within] == ["waiting for a batch", "in the step", "outside the loop"]
    assert "Device idle   not measured" in render(RUNS["unwatched"])


def test_what_is_null_is_not_measured_and_what_is_zero_is_zero():
    lines = {line.split("  ")[0]: line for line in render(RUNS["cpu"]).splitlines()}
    assert "not measured" in lines["idle: copy"]
    assert "0.0 %" in lines["idle: host"]


def test_nulls_are_listed_in_words():
    assert "causes of idling (copy, sync)" in text.unmeasured(measure(RUNS["cpu"]))
    assert "loss" in text.unmeasured(measure(RUNS["starved"]))
    assert "loss" not in text.unmeasured(measure(RUNS["epochs"]))


@pytest.mark.parametrize(
    ("changes", "label"),
    [
        ({}, "[simulated device]"),
        ({"source": {"label": "a disk", "emulated": True}}, "[emulated storage]"),
        ({"outcome": Outcome(complete=False, stopped_by="SIGTERM")}, "[incomplete run: stopped by SIGTERM]"),
        ({"outcome": None}, "[incomplete run: it was killed, or has not ended yet]"),
    ],
)
def test_labels_stand_below_the_title(changes, label):
    title = render(FakeLoop(steps=40).run(**changes)).split("\n\n")[0]
    assert label in title


def test_a_plain_run_has_no_label():
    assert "[" not in render(FakeLoop().run(device=CPU)).split("\n\n")[0]


def test_a_finding_says_verdict_because_try_next_and_gain():
    lines = render(RUNS["starved"]).splitlines()
    at = next(i for i, line in enumerate(lines) if FINDING.verdict in line)
    assert [line.strip("┃ ").split("  ")[0] for line in lines[at + 1 : at + 4]] == ["because", "try next", "gain"]
    assert "predicted 1.6x (95 % interval 1.5x to 1.7x)" in lines[at + 3]


def test_without_a_prediction_nothing_is_said_of_a_gain():
    assert "predicted" not in render(RUNS["starved"], Diagnosis([replace(FINDING, predicted_gain=None)]))


def test_at_most_five_findings_and_how_many_are_left_out():
    shown = render(RUNS["starved"], Diagnosis([replace(FINDING, verdict=f"verdict {n}.") for n in range(7)]))
    assert "verdict 4." in shown
    assert "verdict 5." not in shown
    assert "2 more" in shown


def test_a_text_is_not_taken_for_markup():
    assert "[bold]x[/nonsense] :smile:" in render(
        RUNS["starved"], Diagnosis([replace(FINDING, verdict="[bold]x[/nonsense] :smile:")])
    )


def test_colour_only_when_it_is_asked_for(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" not in render(RUNS["starved"])
    assert "\x1b[" in render(RUNS["starved"], colour=True)


def test_the_width_of_the_terminal_is_bounded(monkeypatch):
    monkeypatch.setenv("COLUMNS", "500")
    assert max(map(len, render(RUNS["starved"], width=None).splitlines())) == 120


def test_cold_and_cached_epochs_are_told_apart():
    run = FakeLoop(steps=20, epochs=2).run(resident_shares=(0.0, 1.0), source=FILES)
    first = [*[8192] * 20, *[0] * 20]
    run = replace(run, made=run.made | {"bytes_from_device": run.made["bytes_from_device"] + first})
    one, two = (line.split() for line in render(run).splitlines() if line.strip().startswith(("1 ", "2 ")))
    assert one[5:8] == ["0.0", "%", "(cold)"]
    assert one[-2:] == ["the", "device"]
    assert two[5:7] == ["100.0", "%"]
    assert two[-1] == "memory"


def test_of_many_epochs_the_first_and_the_last_are_shown():
    lines = render(FakeLoop(steps=2, epochs=40).run()).partition("first wait")[2].splitlines()[1:]
    assert [line.split()[0] for line in lines[:7]] == ["1", "2", "3", "4", "5", "...", "40"]
    assert "34 more" in lines[5]


def test_samples_that_are_made_up_have_no_storage():
    shown = render(RUNS["starved"])
    assert "Storage       none" in shown
    assert "from device" not in shown
    assert "storage" in text.unmeasured(measure(RUNS["starved"]))


def test_the_disk_and_its_measured_speed():
    disk = {"file_system": "ext4", "device": "vda", "virtual": True, "sequential_bytes_per_s": 945_000_000}
    shown = render(FakeLoop().run(source={"label": "files", "disk": disk}), width=120)
    assert "ext4 /dev/vda (virtual)" in shown
    assert "one reader 945 MB/s, a random read not measured" in shown


def test_a_loop_that_waits_for_the_device_is_told_so():
    scenario = {"loader": {"kind": "naive"}, "sync_every_step": True}
    assert "waits for the device in each step" in render(FakeLoop(sync_every_step=True).run(scenario=scenario))
    assert "waits for the device in each step" not in render(RUNS["starved"])


@pytest.mark.parametrize(("foreign", "said"), [(0.34, True), (0.02, False)])
def test_busy_neighbours_are_said_aloud(foreign, said):
    shown = render(FakeLoop().run(outcome=replace(OUTCOME, foreign_cpu_share=foreign)))
    assert ("the results move with it" in shown) == said


def test_the_loss_and_how_it_moved():
    assert "2 -> 0.5 (fell by 75.0 %)" in render(RUNS["epochs"])


def test_the_footer_can_be_pasted_into_a_shell():
    assert text.footer("runs/a b", "python -m profiler") == "Draw this again: python -m profiler report 'runs/a b'"
