"""The cases of `make cases` are complete and say what they are, and their check tells wrong figures from other names.

Nothing is run here: that takes half an hour.
"""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).parent / "cases"

sys.path.insert(0, str(CASES))  # they are scripts that lie side by side, as a user's do
try:
    import catalogue
    import check
finally:
    sys.path.remove(str(CASES))

KNOWN = catalogue.cases()
EXPECTED = json.loads((CASES / "expected.json").read_text())


def listed():
    """`--list`, and every module that it imported."""
    command = [sys.executable, "-X", "importtime", str(CASES / "run.py"), "--list"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    modules = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    return [json.loads(line) for line in done.stdout.splitlines()], modules


def test_the_list_names_every_case_twice_and_imports_no_framework():
    rows, modules = listed()
    assert [(row["case"], row["variant"]) for row in rows] == [(case, v) for case in KNOWN for v in catalogue.VARIANTS]
    assert not modules & {"torch", "tensorflow", "numpy"}


def test_every_theme_has_cases_and_every_file_that_takes_bad_is_a_theme():
    assert {case.theme for case in KNOWN.values()} == set(catalogue.THEMES)
    others = {path.stem for path in CASES.glob("*.py")} - set(catalogue.THEMES)
    assert not [name for name in others if "(bad)" in (CASES / f"{name}.py").read_text()]


@pytest.mark.parametrize("case", KNOWN.values(), ids=lambda case: case.name)
def test_a_case_tells_its_story_and_what_is_mended_in_its_twin(case):
    assert case.story.endswith(".")
    assert " good: " in case.about


@pytest.mark.parametrize("case", KNOWN.values(), ids=lambda case: case.name)
def test_a_case_and_its_twin_differ(case):
    [function] = [node for node in ast.parse((CASES / f"{case.theme}.py").read_text()).body if _name(node) == case.name]
    assert [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == "bad"]


def _name(node):
    return getattr(node, "name", None)


def test_every_case_is_expected_and_every_expectation_is_a_case():
    assert set(check.expectations()) == {(case, variant) for case in KNOWN for variant in catalogue.VARIANTS}


@pytest.mark.parametrize("expected", check.expectations().values(), ids=map("-".join, check.expectations()))
def test_expectations_are_of_the_closed_list_and_do_not_contradict_themselves(expected):
    assert expected.expect
    assert {*expected.expect, *expected.forbid} <= set(EXPECTED["kinds"])
    assert not set(expected.expect) & set(expected.forbid)


def test_every_group_of_kinds_is_used():
    used = {kind for variants in EXPECTED["cases"].values() for entry in variants.values() for kind in entry["forbid"]}
    assert {f"@{name}" for name in EXPECTED["groups"]} == {kind for kind in used if kind.startswith("@")}


PLAIN, BETWEEN = KNOWN["late_sample"], KNOWN["collate_in_the_loop"]
WANTED = check.Expected(expect=("head_of_line",), forbid=("drift",))


def traced(case=PLAIN, *, own=None, **result):
    """A run whose figures are the script's own, but for what is given."""
    line = {"case": case.name, "variant": "bad", "steps": 100, "stall_share": 0.4, **(own or {})}
    found = {
        "steps": 100,
        "input_wait_share": 0.4,
        "wall_by_part": {"wait": 0.4, "step": 0.6, "outside_loop": 0.0},
        "input_wait_by_stage": {"fetch": 0.3, "handoff": 0.1, "decode": None},
        "findings": [{"kind": "head_of_line"}],
        **result,
    }
    return check.Traced(0, json.dumps(line), found)


def judged(run, case=PLAIN):
    return check.judge(case, "bad", run, WANTED)


def test_equal_figures_and_an_expected_kind_are_right():
    row = judged(traced())
    assert (row.wrong, row.named, row.steps, row.stall) == ((), True, "100 / 100", "40.0% / 40.0%")
    assert row.stages == "fetch 75%, handoff 25%"


def test_a_share_of_waiting_three_points_off_is_right_and_four_are_wrong():
    assert not judged(traced(input_wait_share=0.43)).wrong
    assert judged(traced(input_wait_share=0.44)).wrong == ("waits 44.0%, by the script's clock 40.0%",)
    assert judged(traced(input_wait_share=None)).wrong == ("the wait was not measured",)


def test_a_lost_step_is_wrong():
    assert judged(traced(steps=99)).wrong == ("99 steps, and the script made 100",)


def test_another_name_is_shown_and_is_not_wrong():
    row = judged(traced(findings=[{"kind": "handoff"}, {"kind": "collate"}, {"kind": "head_of_line"}, {"kind": "drift"}]))
    assert (row.wrong, row.named, row.found, row.forbidden) == ((), False, ("handoff", "collate"), ("drift",))


def test_an_expected_kind_does_not_make_up_for_a_forbidden_one():
    assert not judged(traced(findings=[{"kind": "head_of_line"}, {"kind": "drift"}])).named


def test_time_between_loader_and_loop_is_the_steps_and_not_lost():
    def row(wait, step):
        return judged(traced(BETWEEN, input_wait_share=wait, wall_by_part={"step": step}), BETWEEN)

    assert not row(0.1, 0.9).wrong
    assert row(0.1, 0.6).wrong
    assert row(0.5, 0.5).wrong


def test_a_last_line_of_somebody_else_is_wrong():
    for line in ("", "report: runs/a", "[]", '{"case": "tiny_rows", "variant": "bad"}'):
        assert judged(check.Traced(0, line, {})).wrong[0].startswith("the last line is not the script's")


def test_a_missing_result_is_wrong():
    assert judged(traced()._replace(result=None)).wrong == ("no result.json",)


def test_a_framework_that_is_not_followed_is_not_measured_and_not_wrong():
    case = PLAIN._replace(theme="tensorflow_")
    row = judged(traced(case, steps=0), case)
    assert "tf.data" in row.skipped
    assert not row.wrong
    assert judged(traced(case), case).steps


def test_a_skipped_case_is_not_wrong():
    row = check.unfinished(PLAIN, "bad", check.Traced(77, "skipped: needs the package h5py", None))
    assert (row.skipped, row.wrong) == ("needs the package h5py", ())


@pytest.mark.parametrize(("alone", "skipped"), [(3, True), (0, False)])
def test_another_exit_status_is_wrong_unless_the_script_ends_so_by_itself(alone, skipped, monkeypatch):
    monkeypatch.setattr(check, "run_case", lambda *_: (alone, ""))
    row = check.unfinished(PLAIN, "bad", check.Traced(3, "", None))
    assert (bool(row.skipped), bool(row.wrong)) == (skipped, not skipped)


def test_a_folder_that_exists_is_refused_before_anything_is_measured(tmp_path, capsys):
    with pytest.raises(SystemExit):
        check.main(["--keep", str(tmp_path)])
    assert "never overwrites" in capsys.readouterr().err


def test_the_table_shows_every_run(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(check, "check", lambda case, variant, *_: judged(traced(steps=99)))
    assert check.main(["--only", PLAIN.name, "--keep", str(tmp_path / "runs")]) == 1
    shown = capsys.readouterr().out
    assert shown.count("99 steps, and the script made 100") >= len(catalogue.VARIANTS)
    assert "measured right: 0 of 2; cause named: 2; not run: 0" in shown


def test_an_unknown_case_is_answered_with_the_way_to_the_list():
    done = subprocess.run(
        [sys.executable, str(CASES / "run.py"), "nothing", "bad"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "--list" in done.stderr
