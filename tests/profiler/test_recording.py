"""Recording from inside a program. Each test is a process of its own: what is hooked are torch's classes."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'stallscope[torch]'")

ROOT = Path(__file__).parents[2]
PROGRAM = """\
import sys, time
import profiler as stallscope
import torch
from torch.utils.data import DataLoader, Dataset
from torch.utils.data import dataloader as module

class Items(Dataset):
    def __len__(self):
        return 80
    def __getitem__(self, i):
        return torch.full((3,), float(i))

class Numbers:
    "An iterable that is no loader, with things of its own."
    batch_size = 4
    def __len__(self):
        return 20
    def __iter__(self):
        return iter([torch.zeros(4, 2)] * 20)
    def set_epoch(self, epoch):
        self.epoch = epoch
"""


@pytest.fixture
def program(tmp_path):
    """Runs a program in an empty folder; it has to end well. Returns what it printed, and what it said on stderr."""

    def program(text):
        (tmp_path / "it.py").write_text(PROGRAM + textwrap.dedent(text))
        done = subprocess.run(
            [sys.executable, "it.py"],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT), "PATH": ""},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines(), done.stderr

    return program


def test_a_loader_is_recorded_wherever_it_is_iterated(program):
    out, err = program("""\
        with stallscope.record("a") as rec:
            for epoch in range(2):
                for batch in DataLoader(Items(), batch_size=8):
                    time.sleep(0.001)
        print(rec.trouble, rec.result.steps, rec.result.epochs, rec.result.samples, rec.result.complete)
        print(rec.to_dict()["verdict"] == rec.result.verdict, [f.kind for f in rec.findings] != [])
        print("report" in rec._repr_html_(), str(rec).splitlines()[0].startswith("it: it.py:"))
        """)
    assert out == ["None 20 2 160 True", "True True", "False True"]
    assert err == ""


def test_everything_is_as_it_was_afterwards(program):
    out, _ = program("""\
        def hooked():
            names = [(module._BaseDataLoaderIter, "__next__"), (module._MultiProcessingDataLoaderIter, "_reset")]
            return [owner.__dict__[name] for owner, name in names] + [torch.autograd.backward, len(sys.meta_path)]
        before = hooked()
        with stallscope.record("a") as rec:
            during = hooked()
        print(before == hooked(), [a is b for a, b in zip(before, during)][:3])
        """)
    assert out == ["True [False, False, False]"]


def test_any_iterable_can_be_wrapped_and_keeps_what_it_has(program):
    out, err = program("""\
        with stallscope.record("a") as rec:
            batches = rec.batches(Numbers())
            batches.set_epoch(3)
            print(len(batches), batches.batch_size, batches.epoch)
            for batch in batches:
                with rec.compute():
                    time.sleep(0.001)
        print(rec.result.steps, rec.result.samples, rec.result.loops[0]["kind"])
        """)
    assert out == ["20 4 3", "20 80 __main__.Numbers"]
    assert err == ""


def test_watch_is_one_line_and_reports_when_the_program_ends(program):
    out, err = program("""\
        for epoch in range(2):
            for batch in stallscope.watch(Numbers()):
                pass
        loader = DataLoader(Items(), batch_size=8)
        print(stallscope.watch(loader) is loader)
        for batch in stallscope.watch(loader):
            pass
        """)
    assert out == ["True"]
    assert "Draw this again: stallscope report runs/it-" in err


def test_an_error_in_the_loop_goes_on_and_what_was_recorded_is_there(program):
    out, err = program("""\
        try:
            with stallscope.record("a") as rec:
                for batch in DataLoader(Items(), batch_size=8):
                    raise KeyError("mine")
        except KeyError as error:
            print(repr(error), rec.result.steps, rec.result.complete, rec.result.stopped_by)
        """)
    assert out == ["KeyError('mine') 1 False KeyError"]
    assert err == ""


def test_a_directory_that_is_there_is_refused_before_anything_is_recorded(program):
    out, _ = program("""\
        open("a", "w").close()
        try:
            stallscope.record("a").__enter__()
        except Exception as error:
            print(type(error).__name__, "never overwrites" in str(error))
        """)
    assert out == ["UserError True"]


def test_a_result_before_the_end_is_refused_in_words(program):
    out, _ = program("""\
        with stallscope.record("a") as rec:
            try:
                rec.result
            except Exception as error:
                print(error)
        """)
    assert out == ["this recording has no result: it has not ended"]


def test_in_a_traced_program_it_is_a_part_of_the_trace(tmp_path):
    text = PROGRAM.replace("import profiler as stallscope", "import stallscope") + textwrap.dedent("""\
        with stallscope.record("inner") as rec:
            for batch in rec.batches(Numbers()):
                pass
        for batch in stallscope.watch(DataLoader(Items(), batch_size=8)):
            pass
        """)
    (tmp_path / "it.py").write_text(text)
    command = [sys.executable, "-m", "profiler", "trace", "-q", "--out", "a", "it.py"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "it.py"]
