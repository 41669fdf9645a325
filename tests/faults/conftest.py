"""Faults are met as users meet them: in real processes, by what they print, their exit status, and what is left on disk."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from profiler.measure import measure
from profiler.runfile import read_run

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60

NAIVE = """\
source: {kind: synthetic, samples: 4000, shape: [4, 4, 3], read: 0 ms, decode: 0 ms}
loader: naive
model: {kind: simulated, step: 0.2 ms}
batch_size: 8
steps: 40
"""


class Ended(NamedTuple):
    """A process that has ended."""

    status: int
    out: str
    err: str

    @property
    def refusal(self) -> str:
        """What the user is told to mend: one line, and nothing else anywhere."""
        assert (self.status, self.out) == (2, ""), self
        assert self.err.startswith("error: "), self.err
        assert self.err.count("\n") == 1, self.err
        return self.err[len("error: ") : -1]

    @property
    def json(self):
        """Standard output, which is one JSON document and no more."""
        assert self.status == 0, self
        return json.loads(self.out)

    def check_words(self, status):
        """It ended with this status, and in words: no traceback, from no process."""
        assert self.status == status, self
        assert "Traceback" not in self.err
        return self.err


def as_from_a_terminal():
    """In a new process: a signal that whoever runs the tests ignores, as under nohup, would be ignored in it as well."""
    for kind in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(kind, signal.SIG_DFL)


class Started:
    """A process that goes on, in a process group of its own."""

    def __init__(self, command, folder, environment):
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        apart = {"start_new_session": True, "preexec_fn": as_from_a_terminal}
        self.process = subprocess.Popen(command, cwd=folder, env=environment, **apart, **pipes)
        self.pid = self.process.pid

    def until(self, happens):
        """Waits for something that the process is about to do."""
        give_up = time.monotonic() + PATIENCE_S
        while not (got := happens()):
            assert self.process.poll() is None, self.end()
            assert time.monotonic() < give_up, "it never happened"
            time.sleep(0.01)
        return got

    def end(self):
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return Ended(self.process.returncode, out, err)


class Stallscope:
    """The command line, run in a folder in which there is nothing but the scenario it.yaml."""

    root = ROOT
    command = (sys.executable, "-m", "profiler")

    def __init__(self, folder, cache):
        self.folder = folder
        self.cache = cache
        self.started = []
        self.write(NAIVE)

    def write(self, text, name="it.yaml"):
        (self.folder / name).write_bytes(text.encode() if isinstance(text, str) else text)

    def __call__(self, *arguments, **environment):
        return self.start(*arguments, **environment).end()

    def start(self, *arguments, **environment):
        started = Started([*self.command, *map(str, arguments)], self.folder, self.environment(**environment))
        self.started.append(started)
        return started

    def environment(self, **changes):
        """Ours, without what would hide that standard output is buffered."""
        ours = {"PYTHONPATH": str(ROOT), "STALLSCOPE_CACHE": str(self.cache)}
        return {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"} | ours | changes

    def read(self, run="a"):
        """The numbers of a run as its files, read again, tell them."""
        return measure(read_run(self.folder / run))

    def left(self, place="."):
        """The names of what lies there."""
        return sorted(os.listdir(self.folder / place))


FILES_OF_A_RUN = [
    "events.counts.arrow",
    "events.items.arrow",
    "events.made.arrow",
    "events.spans.arrow",
    "events.started.arrow",
    "lanes.png",
    "result.json",
    "run.json",
    "stalls.png",
]


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def stallscope(tmp_path, cache):
    folder = tmp_path / "here"
    folder.mkdir()
    made = Stallscope(folder, cache)
    yield made
    for started in made.started:
        with suppress(ProcessLookupError):  # all that it started too: a traced program outlives us
            os.killpg(started.pid, signal.SIGKILL)
        if started.process.poll() is None:
            started.process.communicate()


@pytest.fixture(scope="session")
def measured(tmp_path_factory, cache):
    """A folder with one run, a, that ended well; what it printed is `.ended`. To be read, or copied."""
    made = Stallscope(tmp_path_factory.mktemp("measured"), cache)
    made.ended = made("run", "it.yaml", "--out", "a", "--json")
    assert made.ended.json["complete"]
    return made


@pytest.fixture
def copy(measured, stallscope):
    """A copy of that run, to be damaged."""
    return shutil.copytree(measured.folder / "a", stallscope.folder / "a")


@pytest.fixture
def mount(tmp_path):
    """Mounts a file system that lies in memory, with these options, and returns where."""
    mounted = []

    def mount(options):
        place = tmp_path / "mounted"
        place.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
        if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("needs leave to mount a tmpfs: Linux, as root")
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
