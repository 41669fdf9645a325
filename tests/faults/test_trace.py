"""Programs of all kinds under `trace`: what they print, their exit status and their errors are as without us."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from tests.faults.conftest import Ended, Stallscope

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
        result = traced(f"import os, sys\nprint('done', flush=True)\n{end}\n")
        assert (result.verdict, result.complete) == ("not_measured", False)

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

    @pytest.mark.parametrize("name", ["stallscope", "run"])
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

    def test_may_set_a_start_method(self, looped):
        result = looped(
            f"""{LOADER}
import torch.multiprocessing
if __name__ == "__main__":
    torch.multiprocessing.set_start_method("spawn")
    for batch in loader(num_workers=1):
        pass
    for batch in loader(num_workers=1, multiprocessing_context="forkserver"):
        pass
"""
        )
        assert steps(result) == [8, 8]
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

    def test_whose_loader_is_elsewhere_than_asked_are_told_where_it_is(self, stallscope):
        stallscope.write(f"{LOADER}\nfor batch in loader():\n    pass\n", "train.py")
        ended = stallscope("trace", "--out", "run", "--loader", "train.py:1", "train.py")
        assert ended.status == 0
        assert "--loader train.py:1: no loader was iterated there; where some were: train.py:" in ended.err

    def test_traced_already_are_traced_as_they_are(self, stallscope):
        stallscope.write(f"{LOADER}\nfor batch in loader():\n    pass\n", "train.py")
        inner = ["-m", "profiler", "trace", "-q", "--out", "inner", "train.py"]
        assert stallscope("trace", "-q", "--out", "outer", *inner).check_words(0) == ""
        assert steps(stallscope.read("inner")) == [8]


class TestABackgroundThreadThatLoads:
    """Batches are taken by one thread and trained on by another, with a queue between them."""

    PROGRAM = f"""{LOADER}
import queue
weight, batches = torch.zeros(3, requires_grad=True), queue.Queue(2)
def fill():
    for epoch in range(8):
        for batch in loader():
            batches.put(batch)
    batches.put(None)
threading.Thread(target=fill).start()
for batch in HOW(iter(batches.get, None)):
    (weight * batch).sum().backward()
    time.sleep(0.01)
"""

    def test_says_nothing_of_the_device(self, stallscope):
        stallscope.write(self.PROGRAM.replace("HOW", ""), "train.py")
        assert stallscope("trace", "--quiet", "--out", "a", "train.py") == Ended(0, "", "")
        result = stallscope.read("a")
        assert (result.steps, result.verdict, result.input_stall_share) == (64, "not_measured", None)

    def test_with_its_queue_watched_is_measured_there(self, stallscope):
        stallscope.write("import stallscope\n" + self.PROGRAM.replace("HOW", "stallscope.watch"), "train.py")
        assert stallscope("trace", "--quiet", "--out", "a", "train.py") == Ended(0, "", "")
        result = stallscope.read("a")
        assert (result.steps, result.verdict) == (64, "not_input_bound")


class TestLoops:
    """All kinds of loops in one program; each test looks at one of them."""

    PROGRAM = f"""{LOADER}
def in_a_thread():
    def train():
        for batch in loader():
            pass
    thread = threading.Thread(target=train)
    thread.start()
    thread.join()

class Endless(IterableDataset):
    def __iter__(self):
        while True:
            yield torch.zeros(3)

def without_an_end():
    for step, batch in enumerate(DataLoader(Endless(), batch_size=4)):
        if step == 20:
            break

def broken_off():
    both = loader(num_workers=1, persistent_workers=True)
    for epoch in range(3):
        for step, batch in enumerate(both):
            if step == 3:
                break

def an_iterator_a_step():
    one = loader(shuffle=True)
    for step in range(10):
        batch = next(iter(one))
        time.sleep(0.01)

def a_loader_an_epoch():
    for epoch in range(3):
        for batch in loader():
            pass

def nested():
    outer, inner = loader(batch_size=32), loader()
    for batch in outer:
        for other in inner:
            pass

def zipped():
    first, second = loader(), loader(num_workers=1)
    for a, b in zip(first, second):
        assert (a == b).all()

class Ahead(DataLoader):
    def __iter__(self):
        batches = super().__iter__()
        held = next(batches)
        for following in batches:
            yield held
            held = following
        yield held

def overridden():
    assert sum(1 for batch in Ahead(Items(), batch_size=8, num_workers=1)) == 8

def trained_and_validated():
    weight = torch.zeros(3, requires_grad=True)
    train, validate = loader(shuffle=True), loader(batch_size=2)
    for epoch in range(2):
        for batch in train:
            (weight * batch).sum().backward()
            time.sleep(0.001)
        with torch.no_grad():
            for batch in validate:
                pass

for loops in (in_a_thread, without_an_end, broken_off, an_iterator_a_step, a_loader_an_epoch, nested, zipped, overridden):
    loops()
trained_and_validated()
"""

    @pytest.fixture(scope="class")
    def result(self, tmp_path_factory, cache):
        stallscope = Stallscope(tmp_path_factory.mktemp("loops"), cache)
        stallscope.write(self.PROGRAM, "train.py")
        assert stallscope("trace", "--quiet", "--out", "a", "train.py") == Ended(0, "", "")
        return stallscope.read("a")

    @pytest.fixture
    def loops(self, result):
        """Those that a function of the program iterates."""
        lines = self.PROGRAM.splitlines()

        def loops(function):
            first = lines.index(f"def {function}():") + 1
            last = next(i for i in range(first, len(lines)) if not lines[i].strip())
            return [loop for loop in result.loops if first < loop["line"] <= last]

        return loops

    @pytest.mark.parametrize(
        ("function", "steps", "epochs"),
        [
            ("in_a_thread", [8], [1]),
            ("without_an_end", [21], [1]),
            ("broken_off", [12], [3]),
            ("an_iterator_a_step", [10], [10]),
            ("a_loader_an_epoch", [24], [3]),
            ("nested", [2, 16], [1, 2]),
            ("zipped", [8, 8], [1, 1]),
            ("trained_and_validated", [16, 64], [2, 2]),
        ],
    )
    def test_are_found_with_their_steps(self, loops, function, steps, epochs):
        assert [(loop["steps"], loop["epochs"]) for loop in loops(function)] == list(zip(steps, epochs, strict=True))

    def test_over_a_loader_that_overrides_iter_are_found_there(self, result):
        assert [loop["steps"] for loop in result.loops if loop["kind"] == "__main__.Ahead"] == [8]

    def test_of_a_stream_count_its_samples(self, loops):
        assert loops("without_an_end")[0]["samples"] == 84

    def test_that_make_an_iterator_each_step_have_steps(self, loops):
        assert loops("an_iterator_a_step")[0]["wall_by_part"]["step"] > 0.5

    def test_the_one_that_learns_is_reported_on(self, result):
        assert (result.steps, result.epochs, result.samples) == (16, 2, 128)
        assert [loop["steps"] for loop in result.loops if loop["chosen"]] == [16]
        assert result.wall_by_part["outside_loop"] > 0
        assert result.step_by_part["backward"] > 0


class TestErrors:
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


def test_weights_are_the_same_to_the_last_bit(traced):
    """Random order, random samples, dropout; and what random state is left."""
    result = traced(
        f"""{LOADER}
class Noisy(Items):
    def __getitem__(self, i):
        return torch.randn(3) + i, torch.rand(())
def seeded(worker):
    torch.manual_seed(worker)
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Dropout(0.3), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for options in ({{}}, {{"num_workers": 2, "persistent_workers": True}}, {{"num_workers": 2, "worker_init_fn": seeded}}):
    batches = DataLoader(Noisy(), batch_size=8, shuffle=True, **options)
    for epoch in range(2):
        for x, y in batches:
            optimizer.zero_grad()
            ((net(x)[:, 0] - y) ** 2).mean().backward()
            optimizer.step()
    print([weight.tolist() for weight in net.parameters()], torch.rand(1))
"""
    )
    assert sum(loop["samples"] for loop in result.loops) == 3 * 128
    assert result.step_by_part["backward"] > 0
    assert result.step_by_part["optimizer"] > 0


class TestSignals:
    def started(self, stallscope, text):
        stallscope.write(f"{LOADER}\n{text}", "train.py")
        return stallscope.start("trace", "--out", "a", "train.py")

    SLOW = """\
class Endless(IterableDataset):
    def __iter__(self):
        while True:
            yield torch.zeros(3)
batches = iter(DataLoader(Endless(), batch_size=8, num_workers=1))
next(batches)
print("ready", flush=True)  # not earlier: what a signal's handler raises while a worker is forked, Python drops
for batch in batches:
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

    def test_that_were_ignored_before_stay_so(self, stallscope):
        stallscope.command = ["nohup", *stallscope.command]
        started = self.started(
            stallscope, f"import signal\nprint(signal.getsignal(signal.SIGHUP).name, flush=True)\n{self.SLOW}"
        )
        assert started.process.stdout.readline() == "SIG_IGN\n"
        self.until_steps(stallscope, started)
        started.process.send_signal(signal.SIGHUP)
        started.process.send_signal(signal.SIGTERM)
        assert started.end().status == -signal.SIGTERM

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
