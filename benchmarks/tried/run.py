"""Runs training programs that others published, with and without `trace`: does it change them, and what does it find?

python benchmarks/tried/run.py --checkouts DIR --write    all of them, and docs/tried.md; a quarter of an hour
python benchmarks/tried/run.py --checkouts DIR --only vae --keep /tmp/vae

DIR holds clones of pytorch/examples, huggingface/accelerate and Lightning-AI/pytorch-lightning, as DIR/examples and so on. What
they import is to be installed beside stallscope: see docs/tried.md. Exit status 1 if trace changed what a program does.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.tried import page  # noqa: E402  (the checkout is put on the path first)
from benchmarks.tried.programs import PROGRAMS, Program  # noqa: E402
from profiler.environment import git_state  # noqa: E402

TIMEOUT_S = 600
TIMINGS = re.compile(
    r"[\d.:]+ ?(?:it/s|s/it|ms/batch|ms|s\b|samples/s)|(?:Time|Data|ms/batch|runtime|per_second)\W+[\d.: ()]+", re.IGNORECASE
)
"""What a program says of its own speed."""
PROGRESS = re.compile(r"^.*\r", re.M)
"""Bars overwrite themselves as often as the clock says."""


class Ran(NamedTuple):
    """One run of a program."""

    status: int
    stdout: str
    files: Mapping[str, Any]
    """Content of its results."""
    result: Mapping[str, Any] | None
    """result.json of the traced one."""


class Tried(NamedTuple):
    """A line of the page."""

    program: Program
    revision: str
    bare: Ran
    traced: Ran
    again: Ran | None
    """Without us once more, where the first two differed: does the program itself do the same twice?"""

    @property
    def same_stdout(self) -> bool:
        return _same_stdout(self.bare, self.traced)

    @property
    def same_status(self) -> bool:
        return self.bare.status == self.traced.status

    @property
    def same_files(self) -> bool | None:
        """None: it leaves none."""
        return self.bare.files == self.traced.files if self.bare.files else None

    @property
    def unchanged(self) -> bool:
        """What differs from one run without us to another is no change of ours."""
        outputs = {"stdout": self.same_stdout, "files": self.same_files}
        return self.same_status and all(same is not False or self.varies(what) for what, same in outputs.items())

    def varies(self, what: str) -> bool:
        """Whether stdout or files of two runs without us differ."""
        again = self.again
        return again is not None and (
            not _same_stdout(self.bare, again) if what == "stdout" else self.bare.files != again.files
        )


def _same_stdout(one: Ran, other: Ran) -> bool:
    return _without_timings(one.stdout) == _without_timings(other.stdout)


def _without_timings(stdout: str) -> str:
    return TIMINGS.sub("", PROGRESS.sub("", stdout))


def prepare(program: Program, checkouts: Path, top: Path) -> Path:
    """A fresh working folder, the same path each time."""
    shutil.rmtree(top, ignore_errors=True)
    folder = top / program.folder
    if program.folder:
        shutil.copytree(checkout(program, checkouts) / program.folder, folder)
    folder.mkdir(parents=True, exist_ok=True)
    for at, make in program.made:
        make((folder / at).resolve())
    return folder


def checkout(program: Program, checkouts: Path) -> Path:
    return checkouts / program.source.rpartition("/")[2]


def run(program: Program, folder: Path, out: Path | None) -> Ran:
    python = Path(sys.executable)
    before = [str(python)] if out is None else [str(python.with_name("stallscope")), "trace", "--out", str(out)]
    words = ["./" + program.command[0], *program.command[1:]] if program.folder else program.command
    into: dict[str, Any] = {"cwd": folder, "capture_output": True, "text": True, "timeout": TIMEOUT_S}
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HOME": str(folder / "hf")}
    done = subprocess.run([*before, *words], check=False, env=environment, **into)
    if done.returncode:
        print(done.stderr[-3000:], file=sys.stderr)
    files = {str(path.relative_to(folder)): content(path) for each in program.results for path in sorted(folder.glob(each))}
    result = out / "result.json" if out else None
    return Ran(done.returncode, done.stdout, files, json.loads(result.read_text()) if result and result.exists() else None)


def content(path: Path) -> Any:
    """The bytes. Of what torch saved, those of each tensor: the archive around them holds its own time."""
    if not zipfile.is_zipfile(path):
        return path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


def tried(program: Program, checkouts: Path, keep: Path) -> Tried:
    revision = _revision(program, checkouts)

    def once(out: Path | None = None) -> Ran:
        return run(program, prepare(program, checkouts, keep / "at"), out)

    found = Tried(program, revision, once(), once(keep / program.name.replace("/", "-")), None)
    differs = not found.same_stdout or found.same_files is False
    return found._replace(again=once()) if differs else found


def _revision(program: Program, checkouts: Path) -> str:
    """The commit of a checkout, or the version of a package."""
    if not program.folder:
        return version(program.source)
    state = git_state(checkout(program, checkouts))
    return "unknown" if state is None else str(state["revision"])[:8]


def one_line(row: Tried) -> str:
    found = row.traced.result["findings"][0]["verdict"] if row.traced.result else "no result"
    return f"{row.program.name}: {'unchanged' if row.unchanged else 'CHANGED'}; {found}"


def versions() -> Sequence[str]:
    names = ("torch", "torchvision", "accelerate", "transformers", "trl", "lightning")
    found = []
    for name in names:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkouts", type=Path, required=True, metavar="DIR")
    parser.add_argument("--only", action="append", choices=[program.name for program in PROGRAMS], metavar="NAME")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keeps the runs")
    parser.add_argument("--write", action="store_true", help="docs/tried.md")
    asked = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        keep = (asked.keep or Path(temporary)).resolve()
        for program in PROGRAMS:
            if asked.only is None or program.name in asked.only:
                rows.append(tried(program, asked.checkouts.resolve(), keep))
                print(one_line(rows[-1]), flush=True)
    text = page.whole(rows, versions())
    print(text)
    if asked.write:
        (ROOT / "docs" / "tried.md").write_text(text)
    return 0 if all(row.unchanged for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
