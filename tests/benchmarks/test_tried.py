import zipfile

import pytest

from benchmarks.tried import page
from benchmarks.tried.programs import PROGRAMS
from benchmarks.tried.run import Ran, Tried, content

PROGRAM = PROGRAMS[0]
FOUND = {
    "loops": [
        {"name": "main.py:38", "chosen": True, "steps": 188, "wall_s": 12.0, "wall_by_part": {"wait": 0.117, "step": 0.883}},
        {"name": "main.py:58", "chosen": False, "steps": 2, "wall_s": 1.0, "wall_by_part": {"wait": None, "step": None}},
    ],
    "step_time_ms": {"mean": 62.5},
    "input_wait_by_stage": {"decode": 0.09, "fetch": 0.01, "handoff": None},
    "hot_lines": [{"role": "loop", "stage": "backward", "share": 0.5, "file": "/at/main.py", "line": 43, "line_share": 1.0}],
    "findings": [{"verdict": "Loading and training take turns.", "because": "One after another."}],
}


def tried(traced="loss 0.5", again=None, status=0, **files):
    bare = Ran(0, "loss 0.5", {"final.pt": b"1"}, None)
    repeated = None if again is None else Ran(0, again, {"final.pt": b"1"}, None)
    return Tried(PROGRAM, "abc", bare, Ran(status, traced, {"final.pt": files.get("files", b"1")}, FOUND), repeated)


@pytest.mark.parametrize(
    ("row", "unchanged"),
    [
        (tried(), True),
        (tried("loss 0.6"), False),
        (tried("loss 0.6", again="loss 0.5"), False),
        (tried("loss 0.6", again="loss 0.7"), True),
        (tried(files=b"2"), False),
        (tried(files=b"2", again="loss 0.7"), False),
        (tried(status=1, again="loss 0.7"), False),
    ],
)
def test_only_what_no_run_repeats_may_differ(row, unchanged):
    assert row.unchanged is unchanged
    assert ("**" not in "".join(page._unchanged(row))) is unchanged


def test_what_a_program_says_of_its_speed_is_not_compared():
    one = Ran(0, "Epoch 1 | 12.3 ms/batch | loss 0.51\nTime  0.123 ( 0.130)\t Loss 2.1\n 10%|#\r 99%|##\r 3.2it/s\n", {}, None)
    other = Ran(0, "Epoch 1 | 14.0 ms/batch | loss 0.51\nTime  0.300 ( 0.330)\t Loss 2.1\n 50%|#\r 2.2it/s\n", {}, None)
    assert Tried(PROGRAM, "", one, other, None).same_stdout
    assert not Tried(PROGRAM, "", one, other._replace(stdout=other.stdout.replace("2.1", "2.2")), None).same_stdout


def test_a_checkpoint_is_compared_by_what_is_in_it(tmp_path):
    for name, weights in (("a", b"1"), ("b", b"1"), ("c", b"2")):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(zipfile.ZipInfo(f"{name}/data/0", (1980 + ord(name) % 9, 1, 1, 0, 0, 0)), weights)
    assert content(tmp_path / "a") == content(tmp_path / "b") != content(tmp_path / "c")


def test_the_page_has_a_line_for_each_loop_and_one_for_a_program_without():
    none = tried()._replace(traced=Ran(0, "", {}, FOUND | {"loops": []}))
    text = page.whole([tried(), none], ["torch 2"])
    assert "| mnist | **main.py:38** | 188 | 62.5 ms | 11.7% | decode 90%, fetch 10% | main.py:43 (backward 50%) |" in text
    assert "| mnist | main.py:58 | 2 | - | - | - | - |" in text
    assert "| mnist | none |" in text
