import subprocess
import sys

import pytest

from profiler import stacks
from profiler.hot_lines import Stack, forward_share, hot_lines
from profiler.runfile import STACKS, read_stacks
from profiler.stacks import Stacks, folded, place

TORCH = "/venv/lib/python3.11/site-packages/torch"
MAIN = "main (/home/me/train.py:40)"
NEXT = f"__next__ ({TORCH}/utils/data/dataloader.py:700)"
FETCH = f"fetch ({TORCH}/utils/data/_utils/fetch.py:54)"
WORKER = f"_worker_loop ({TORCH}/utils/data/_utils/worker.py:300)"
CALL = f"_call_impl ({TORCH}/nn/modules/module.py:1700)"
ITEM = "__getitem__ (/home/me/data.py:12)"
FETCH_EACH = f"_MapDatasetFetcher.fetch.<locals>.<listcomp> ({TORCH}/utils/data/_utils/fetch.py:54)"


def qualified(owner, frame):
    """As py-spy writes it where Python knows of which class a function is."""
    return owner + frame


@pytest.mark.parametrize(
    ("frames", "placed"),
    [
        ([MAIN, NEXT, "poll (/usr/lib/python3.11/selectors.py:1)"], ("loop", "wait")),
        ([MAIN, NEXT, FETCH, f"<listcomp> ({TORCH}/utils/data/_utils/fetch.py:52)", ITEM], ("loop", "item")),
        ([MAIN, NEXT, FETCH, ITEM], ("loop", "item")),
        ([MAIN, NEXT, FETCH, f"default_collate ({TORCH}/utils/data/_utils/collate.py:9)"], ("loop", "collate")),
        ([MAIN, NEXT, FETCH, "my_collate (/home/me/data.py:30)"], ("loop", "collate")),
        (["<module> (<string>:1)", WORKER, FETCH, ITEM], ("worker", "item")),
        (["<module> (<string>:1)", WORKER, "get (/usr/lib/python3.11/queue.py:1)"], ("worker", "idle")),
        ([MAIN, CALL, "forward (/home/me/net.py:5)"], ("loop", "forward")),
        ([MAIN, f"backward ({TORCH}/_tensor.py:2)", f"backward ({TORCH}/autograd/__init__.py:3)"], ("loop", "backward")),
        ([MAIN, f"step ({TORCH}/optim/sgd.py:80)"], ("loop", "optimizer")),
        ([MAIN, "log (/home/me/train.py:80)"], ("loop", "own_code")),
        (["Thread._bootstrap (/usr/lib/python3.11/threading.py:1)"], None),
        ([f"main ({stacks.__file__}:1)"], None),
        ([MAIN, NEXT, qualified("_MapDatasetFetcher.", FETCH), ITEM], ("loop", "item")),
        ([MAIN, NEXT, qualified("_MapDatasetFetcher.", FETCH), FETCH_EACH, qualified("Faces.", ITEM)], ("loop", "item")),
        ([MAIN, qualified("_BaseDataLoaderIter.", NEXT)], ("loop", "wait")),
        (["<module> (<string>:1)", WORKER, FETCH, f"Marked.collate_fn ({stacks.__file__}:1)"], ("worker", "item")),
        ([MAIN, qualified("Module.", CALL), "Net.forward (/home/me/net.py:5)"], ("loop", "forward")),
        ([MAIN, f"SGD.step ({TORCH}/optim/sgd.py:80)"], ("loop", "optimizer")),
        ([MAIN, f"SGD.__init__ ({TORCH}/optim/sgd.py:8)"], ("loop", "own_code")),
    ],
)
def test_a_stack_has_a_role_and_a_stage(frames, placed, monkeypatch):
    monkeypatch.setattr("profiler.attach._STDLIB", "/usr/lib/python3.11/")
    assert place(frames) == placed


def test_what_is_folded_is_read_again(tmp_path):
    process = 'process 7:"python train.py";thread (0x1): MainThread'
    raw = f"{process};{MAIN};log (/home/me/train.py:80) 12\n{MAIN};{NEXT} 3\nnonsense\n"
    (tmp_path / STACKS).write_text("".join(f"{stack} {n}\n" for stack, n in folded(raw)) + "damaged;line 7\n")
    assert read_stacks(tmp_path / STACKS) == [
        Stack("loop", "own_code", (MAIN, "log (/home/me/train.py:80)"), 1, 12, 0),
        Stack("loop", "wait", (MAIN, NEXT), 0, 3),
    ]
    assert read_stacks(tmp_path / "nothing") == []


def test_where_nothing_is_the_users_a_library_is_named_and_not_we():
    ((stack, _),) = folded(f"<module> (<string>:1);{WORKER};{FETCH};Marked.collate_fn ({stacks.__file__}:1) 5")
    assert stack.split(";")[2] == "2"


def test_the_line_is_never_one_of_ours():
    ours = f"_backward.<locals>.backward ({stacks.__file__}:38)"
    ((stack, _),) = folded(f"{ours};{MAIN};backward ({TORCH}/_tensor.py:2);{ours} 5")
    assert stack.split(";")[2] == "1"


def test_the_line_is_the_users_own_even_if_it_waits_in_a_library():
    pil = "load (/venv/lib/python3.11/site-packages/PIL/ImageFile.py:300)"
    ((stack, _),) = folded(f"{MAIN};{NEXT};{FETCH};{ITEM};{pil} 5")
    assert stack.split(";")[2] == "3"


def test_a_command_line_with_semicolons_is_no_frame():
    command = 'process 7:"python -c from a import b; main(7)"'
    tracker = "main (/usr/lib/python3.11/site-packages/tracker.py:7)"
    assert list(folded(f'{command};thread (0x1): "MainThread";<module> (<string>:1);{tracker} 5')) == []
    ((stack, _),) = folded(f"{command};<module> (<string>:1);{MAIN} 5")
    assert stack == f"loop;own_code;1;<module> (<string>:1);{MAIN}"


def test_of_each_stage_the_costliest_line_is_told():
    seen = [
        Stack("loop", "own_code", (MAIN, "log (/home/me/train.py:80)"), 1, 30),
        Stack("loop", "own_code", (MAIN, "log (/home/me/train.py:81)"), 1, 10),
        Stack("loop", "wait", (MAIN, NEXT), 0, 60),
        Stack("worker", "item", (WORKER, FETCH, ITEM), 2, 5),
    ]
    first, second, third = hot_lines(seen)
    assert first == {
        "role": "worker",
        "stage": "item",
        "share": 1.0,
        "function": "__getitem__",
        "file": "/home/me/data.py",
        "line": 12,
        "line_share": 1.0,
        "caller": None,
    }
    assert (third["line"], third["line_share"]) == (81, 0.25)
    assert (second["stage"], second["line"], second["share"], second["line_share"]) == ("own_code", 80, 0.4, 0.75)


def test_a_line_of_a_helper_is_told_with_who_called_it():
    helper, loop = "spin (/home/me/common.py:6)", "collate (/home/me/data.py:30)"
    seen = [Stack("loop", "own_code", (MAIN, loop, helper), 2, 3, 1), Stack("loop", "own_code", (MAIN, helper), 1, 5, 0)]
    assert [(line["caller"]["function"], line["line"], line["line_share"]) for line in hot_lines(seen)] == [
        ("main", 6, 0.625),
        ("collate", 6, 0.375),
    ]


def test_a_line_that_is_hardly_met_is_left_out():
    rare = Stack("loop", "own_code", (MAIN, "log (/home/me/train.py:81)"), 1, 9)
    assert [line["line"] for line in hot_lines([Stack("loop", "own_code", (MAIN,), 0, 91), rare])] == [40]


def test_the_forward_pass_is_its_share_of_the_steps():
    seen = [
        Stack("loop", "forward", (MAIN,), 0, 1),
        Stack("loop", "own_code", (MAIN,), 0, 3),
        Stack("loop", "wait", (MAIN,), 0, 9),
    ]
    assert forward_share(seen) == 0.25
    assert forward_share(seen[2:]) is None


class TestLooking:
    @pytest.fixture
    def sleeping(self, tmp_path):
        program = "import time\ndef rest():\n    time.sleep(30)\nrest()\n"
        (tmp_path / "it.py").write_text(program)
        (tmp_path / "making").mkdir()
        process = subprocess.Popen([sys.executable, str(tmp_path / "it.py")])
        yield process
        process.kill()
        process.wait()

    def test_finds_the_line_or_says_what_is_missing(self, sleeping, tmp_path, monkeypatch):
        monkeypatch.setattr(stacks, "FIRST_S", 0.0)
        looking = Stacks(sleeping.pid, tmp_path)
        looking.look(has_begun=False)
        assert looking._spy is None
        looking.look(has_begun=True)
        looking.end()
        found = read_stacks(tmp_path / STACKS)
        if looking.problem is not None:
            assert "py-spy" in looking.problem
            pytest.skip(looking.problem)
        assert f"rest ({tmp_path}/it.py:3)" in {stack.frames[stack.users] for stack in found}

    def test_without_py_spy_says_so(self, tmp_path, monkeypatch):
        monkeypatch.setattr(stacks.shutil, "which", lambda *_, **__: None)
        monkeypatch.setattr(stacks, "FIRST_S", 0.0)
        looking = Stacks(1, tmp_path)
        looking.look(has_begun=True)
        assert looking.problem == "py-spy is not installed: pip install py-spy"

    def test_a_refusal_names_the_permission(self):
        assert "SYS_PTRACE" in stacks._why("Error: Permission Denied: Try running again with elevated permissions")
        assert stacks._why("Error: No such process") == "py-spy failed: Error: No such process"
