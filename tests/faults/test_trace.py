"""Programs of all kinds under `trace`: what they print, their exit status and their errors are as without us."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from tests.faults.conftest import Ended

pytest.importorskip("torch", reason="needs torch: pip install 'stallscope[torch]'")

LOADER = """\
import os, sys, threading, time
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

class Items(Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, i):
        return torch.full((3,), float(i))

def loader(**options):
    return DataLoader(Items(), **{"batch_size": 8, **options})
"""


def python(stallscope, *arguments):
    """The same without us."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=stallscope.folder,
        env=stallscope.environment(MPLBACKEND="svg"),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def traced(stallscope):
    """Runs a program as it is, and traced: both have to end alike. Returns the traced one's numbers."""

    def traced(text, *arguments):
        stallscope.write(textwrap.dedent(text), "train.py")
        seen = stallscope("trace", "--quiet", "--out", "a", "train.py", *arguments, MPLBACKEND="svg")
        assert seen == python(stallscope, "train.py", *arguments)
        return stallscope.read("a")

    return traced


@pytest.fixture
def looped(stallscope):
    """Traces a program that says nothing and ends well. Returns its numbers."""

    def looped(text):
        stallscope.write(textwrap.dedent(text), "train.py")
        assert stallscope("trace", "--quiet", "--out", "a", "train.py") == Ended(0, "", "")
        return stallscope.read("a")

    return looped


def steps(result):
    """Of each loop, in the order in which they began."""
    return [loop["steps"] for loop in result.loops]


class TestPrograms:
    def test_find_everything_as_python_gives_it(self, traced):
        traced(
            """\
            import os, sys
            print(sys.argv, sys.path[0], __name__, __file__, __spec__, os.getcwd(), sorted(globals()))
            print(__doc__, __package__, sys.flags, "numpy" in sys.modules, sorted(os.environ.items()))
            """,
            "--out",
            "b",
            "-m",
        )

    @pytest.mark.parametrize(
        "end",
        [
            "sys.exit(3)",
            "sys.exit('a message')",
            "os._exit(5)",
            "raise KeyboardInterrupt",
            "os.kill(os.getpid(), 9)",
            "os.kill(os.getpid(), 15)",
            "1 / 0",
            "import nothing_of_this_name",
        ],
    )
    def test_end_as_they_would(self, traced, end):
        result = traced(f"{LOADER}\nfor batch in loader():\n    pass\nprint('done')\n{end}\n")
        assert steps(result) == [8]
        assert not result.complete

    def test_may_hold_a_mistake(self, traced):
        assert traced("def f(:\n    pass\n").verdict == "not_measured"

    def test_may_be_modules(self, stallscope):
        (stallscope.folder / "package").mkdir()
        stallscope.write("", "package/__init__.py")
        stallscope.write("import sys; print(__name__, __spec__.name, sys.argv, sys.path[0])", "package/train.py")
        command = ["-m", "package.train", "--epochs", "3"]
        plain = python(stallscope, *command)
        assert plain.status == 0
        assert stallscope("trace", "-q", "--out", "a", *command) == plain

    def test_whose_module_fails_say_so(self, stallscope):
        stallscope.write("def f():\n    raise ValueError('boom')\nf()\n", "failing.py")
        plain = python(stallscope, "-m", "failing")
        assert plain.status == 1
        assert stallscope("trace", "-q", "--out", "a", "-m", "failing") == plain

    def test_may_be_folders(self, stallscope):
        (stallscope.folder / "app").mkdir()
        stallscope.write("import sys; print(__name__, sys.argv, sys.path[0])", "app/__main__.py")
        plain = python(stallscope, "app", "1")
        assert plain.status == 0
        assert stallscope("trace", "-q", "--out", "a", "app", "1") == plain

    @pytest.mark.parametrize("name", ["stallscope", "profiler", "torch_dataloader", "run"])
    def test_keep_their_own_module_of_our_name(self, stallscope, traced, name):
        stallscope.write("MINE = 'mine'\n", f"{name}.py")
        result = traced(f"{LOADER}\nimport {name}\nprint({name}.MINE)\nfor batch in loader(num_workers=1):\n    pass\n")
        assert steps(result) == [8]
        assert result.work_s_by_stage is not None

    def test_may_fork_children_of_their_own(self, traced):
        result = traced(
            f"""{LOADER}
if os.fork() == 0:
    for batch in loader():
        pass
    os._exit(0)
os.wait()
for batch in loader():
    pass
"""
        )
        assert steps(result) == [8]

    @pytest.mark.parametrize("method", ["spawn", "forkserver"])
    def test_may_set_a_start_method(self, traced, method):
        result = traced(
            f"""{LOADER}
import torch.multiprocessing
if __name__ == "__main__":
    torch.multiprocessing.set_start_method("{method}")
    for batch in loader(num_workers=1):
        print(batch.sum())
"""
        )
        assert steps(result) == [8]
        assert result.work_s_by_stage is not None

    def test_may_start_processes_that_load(self, traced):
        result = traced(
            f"""{LOADER}
import multiprocessing
def child():
    for batch in loader():
        print(batch.sum())
if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=child)
    process.start()
    process.join()
    print(process.exitcode)
"""
        )
        assert result.verdict == "not_measured"

    def test_without_a_loader_are_told_what_was_looked_for(self, stallscope):
        stallscope.write("print('done')", "train.py")
        ended = stallscope("trace", "--out", "a", "train.py")
        assert (ended.status, ended.out) == (0, "done\n")
        assert "torch.utils.data.DataLoader" in ended.err
        assert "report a" in ended.err

    def test_traced_already_are_traced_as_they_are(self, stallscope):
        stallscope.write(f"{LOADER}\nfor batch in loader():\n    pass\n", "train.py")
        inner = ["-m", "profiler", "trace", "-q", "--out", "inner", "train.py"]
        assert stallscope("trace", "-q", "--out", "outer", *inner).check_words(0) == ""
        assert steps(stallscope.read("inner")) == [8]


class TestLoops:
    def test_in_a_thread(self, looped):
        result = looped(
            f"""{LOADER}
def train():
    for batch in loader():
        pass
thread = threading.Thread(target=train)
thread.start()
thread.join()
"""
        )
        assert steps(result) == [8]

    def test_that_never_end(self, looped):
        result = looped(
            f"""{LOADER}
class Endless(IterableDataset):
    def __iter__(self):
        while True:
            yield torch.zeros(3)
for step, batch in enumerate(DataLoader(Endless(), batch_size=4)):
    if step == 20:
        break
"""
        )
        assert (steps(result), result.samples) == ([21], 84)

    def test_that_break_off_in_mid_epoch(self, looped):
        result = looped(
            f"""{LOADER}
both = loader(num_workers=1, persistent_workers=True)
for epoch in range(3):
    for step, batch in enumerate(both):
        if step == 3:
            break
"""
        )
        assert (steps(result), result.epochs) == ([12], 3)

    def test_that_make_an_iterator_each_step(self, looped):
        result = looped(
            f"""{LOADER}
one = loader(shuffle=True)
for step in range(10):
    batch = next(iter(one))
    time.sleep(0.01)
"""
        )
        assert (steps(result), result.epochs) == ([10], 10)
        assert result.wall_by_part["step"] > 0.5

    def test_that_make_a_loader_each_epoch_are_one(self, looped):
        result = looped(
            f"""{LOADER}
for epoch in range(3):
    for batch in loader():
        pass
"""
        )
        assert (steps(result), result.epochs) == ([24], 3)

    def test_inside_loops(self, looped):
        result = looped(
            f"""{LOADER}
outer, inner = loader(batch_size=32), loader()
for batch in outer:
    for other in inner:
        pass
"""
        )
        assert steps(result) == [2, 16]

    def test_of_two_loaders_zipped(self, looped):
        result = looped(
            f"""{LOADER}
first, second = loader(), loader(num_workers=1)
for a, b in zip(first, second):
    assert (a == b).all()
"""
        )
        assert steps(result) == [8, 8]

    def test_that_train_and_validate_in_turn(self, looped):
        result = looped(
            f"""{LOADER}
weight = torch.zeros(3, requires_grad=True)
train, validate = loader(shuffle=True), loader(batch_size=2)
for epoch in range(2):
    for batch in train:
        (weight * batch).sum().backward()
        time.sleep(0.001)
    with torch.no_grad():
        for batch in validate:
            pass
"""
        )
        assert steps(result) == [16, 64]
        assert [loop["chosen"] for loop in result.loops] == [True, False]
        assert (result.steps, result.epochs) == (16, 2)
        assert result.wall_by_part["outside_loop"] > 0
        assert result.step_by_part["backward"] > 0

    def test_over_a_loader_that_overrides_iter(self, looped):
        result = looped(
            f"""{LOADER}
class Ahead(DataLoader):
    def __iter__(self):
        batches = super().__iter__()
        held = next(batches)
        for following in batches:
            yield held
            held = following
        yield held
assert sum(1 for batch in Ahead(Items(), batch_size=8, num_workers=1)) == 8
"""
        )
        assert steps(result) == [8]

    @pytest.mark.parametrize("num_workers", [0, 1])
    def test_that_an_exception_ends(self, traced, num_workers):
        result = traced(
            f"""{LOADER}
class Broken(Items):
    def __getitem__(self, i):
        if i == 40:
            raise KeyError("no such sample")
        return super().__getitem__(i)
for batch in DataLoader(Broken(), batch_size=8, num_workers={num_workers}):
    pass
"""
        )
        assert steps(result) == [5]
        assert result.stopped_by == "the script's exit status, 1"

    def test_that_catch_their_exceptions(self, traced):
        traced(
            f"""{LOADER}
class Broken(Items):
    def __getitem__(self, i):
        raise KeyError("no such sample")
try:
    next(iter(DataLoader(Broken())))
except KeyError as error:
    print(repr(error), error.__cause__, error.__context__)
"""
        )


@pytest.mark.parametrize(
    "options",
    [
        "num_workers=0",
        "num_workers=2, persistent_workers=True",
        "num_workers=1, multiprocessing_context='spawn'",
        "num_workers=2, worker_init_fn=seeded",
    ],
)
def test_weights_are_the_same_to_the_last_bit(traced, options):
    """Random order, random samples, dropout; and what random state is left."""
    result = traced(
        f"""{LOADER}
class Noisy(Items):
    def __getitem__(self, i):
        return torch.randn(3) + i, torch.rand(())
def seeded(worker):
    torch.manual_seed(worker)
if __name__ == "__main__":
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Dropout(0.3), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    batches = DataLoader(Noisy(), batch_size=8, shuffle=True, {options})
    for epoch in range(2):
        for x, y in batches:
            optimizer.zero_grad()
            ((net(x)[:, 0] - y) ** 2).mean().backward()
            optimizer.step()
    print([weight.tolist() for weight in net.parameters()], torch.rand(1))
"""
    )
    assert (steps(result), result.samples) == ([16], 128)
    assert result.step_by_part["backward"] > 0
    assert result.step_by_part["optimizer"] > 0


class TestSignals:
    def started(self, stallscope, text):
        stallscope.write(f"{LOADER}\n{text}", "train.py")
        return stallscope.start("trace", "--out", "a", "train.py")

    SLOW = """\
print("ready", flush=True)
while True:
    for batch in loader(num_workers=1):
        time.sleep(0.01)
"""

    def until_steps(self, stallscope, started):
        def steps():
            spans = stallscope.folder / "a/events.spans.arrow"
            return spans.exists() and (stallscope.folder / "a/making").exists()

        started.until(steps)
        assert started.process.stdout.readline() == "ready\n"

    def test_ctrl_c_of_a_terminal_is_the_programs(self, stallscope):
        started = self.started(stallscope, self.SLOW)
        self.until_steps(stallscope, started)
        os.killpg(started.pid, signal.SIGINT)
        ended = started.end()
        assert ended.status == -signal.SIGINT
        assert "KeyboardInterrupt" in ended.err
        assert "report a" in ended.err
        assert not stallscope.read("a").complete

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP])
    def test_that_are_sent_to_us_are_the_programs(self, stallscope, number):
        started = self.started(stallscope, f"import signal\nsignal.signal({number}, lambda *a: sys.exit(7))\n{self.SLOW}")
        self.until_steps(stallscope, started)
        started.process.send_signal(number)
        assert started.end().status == 7

    def test_a_program_outlives_us(self, stallscope):
        started = self.started(stallscope, "for batch in loader():\n    time.sleep(0.1)\nopen('done', 'w').close()\n")
        started.until((stallscope.folder / "a/run.json").exists)
        started.process.kill()
        started.process.wait()
        done = stallscope.folder / "done"
        for _ in range(600):
            if done.exists():
                break
            signal.sigtimedwait([], 0.1)
        assert done.exists()
        assert not stallscope.read("a").complete


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            ([], "no script is named"),
            (["missing.py"], "missing.py: there is no such file"),
            (["python", "train.py"], "'python' is the interpreter, which is chosen already"),
            (["it.yaml"], "it.yaml is no Python"),
            (["."], "without a __main__.py"),
            (["--out", ".", "train.py"], "a run never overwrites another"),
        ],
    )
    def test_of_what_is_no_program(self, stallscope, arguments, says):
        stallscope.write("print('never run')", "train.py")
        assert says in stallscope("trace", *arguments).refusal
        assert stallscope.left() == ["it.yaml", "train.py"]

    def test_of_a_full_disk_do_not_end_the_program(self, stallscope, mount):
        place = mount("size=24k")
        stallscope.write(f"{LOADER}\nfor batch in loader(num_workers=1):\n    pass\nprint('done')\n", "train.py")
        ended = stallscope("trace", "--out", place / "a", "train.py")
        assert (ended.status, ended.out) == (0, "done\n")
        assert "No space left on device" in ended.check_words(0)


def test_the_header_holds_what_was_traced(stallscope):
    stallscope.write(f"{LOADER}\nfor batch in loader(num_workers=1, prefetch_factor=3):\n    pass\n", "train.py")
    stallscope("trace", "-q", "--out", "a", "train.py", "--lr", "1")
    header = json.loads((stallscope.folder / "a/run.json").read_text())
    assert header["command"][-3:] == ["train.py", "--lr", "1"]
    (loop,) = header["loops"]
    assert loop["file"].endswith("train.py")
    assert (loop["n_workers"], loop["prefetch_factor"], loop["batch_size"], loop["dataset_samples"]) == (1, 3, 8, 64)
