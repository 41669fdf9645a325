"""The wheel: holds every file of the tree, and works beside a user's own `models/`, `loaders/` and `profiler.py`."""

import base64
import csv
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "profiler": "stallscope",
    "loaders": "stallscope/loaders",
    "models": "stallscope/models",
    "scenarios": "stallscope/scenarios",
}
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", "*.egg-info", ".*")
DECOYS = ("profiler.py", "models/__init__.py", "loaders/__init__.py", "scenarios/__init__.py")

pytestmark = pytest.mark.timeout(300)


def run(*command: object, cwd: Path) -> str:
    """What it printed. The checkout is nowhere on its path, and no variable of ours leads back to it."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run([*map(str, command)], cwd=cwd, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy: what an earlier build left in build/ would get into this one."""
    tree = tmp_path_factory.mktemp("tree")
    for folder in PACKAGES:
        shutil.copytree(ROOT / folder, tree / folder, ignore=LEFT_OUT)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tree / "dist", tree, cwd=tree)
    (built,) = (tree / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A fresh environment with the wheel in it; what the wheel depends on is looked up in this one, which takes no time."""
    home = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", "--without-pip", home, cwd=home)
    python = home / "bin/python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home).strip())
    # A plain line in a .pth adds a folder and does not read that folder's own .pth files: no editable install leaks in.
    (site / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", wheel, cwd=home)
    return home / "bin"


@pytest.fixture
def users_repo(tmp_path):
    """Imports of these raise: whoever starts stallscope here must get stallscope's own."""
    for name in DECOYS:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"raise RuntimeError('the decoy {name} was imported')\n")
    return tmp_path


def tree_files() -> dict[str, bytes]:
    """Every file of the four folders, by its name on the wheel."""
    return {
        f"{where}/{path.relative_to(ROOT / folder).as_posix()}": path.read_bytes()
        for folder, where in PACKAGES.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix != ".pyc" and not path.name.startswith(".")
    }


def test_every_file_of_the_tree_is_on_the_wheel_and_no_other(wheel):
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}
    tree = tree_files()
    assert not tree.keys() - shipped.keys(), "not on the wheel: list their folder in pyproject.toml, tool.setuptools.packages"
    assert not shipped.keys() - tree.keys(), "on the wheel, but not in the tree"
    assert not [name for name in tree if tree[name] != shipped[name]], "not the same bytes"


def test_record_lists_every_file_of_the_tree_with_its_hash(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (record,) = (name for name in archive.namelist() if name.endswith(".dist-info/RECORD"))
        rows = {row[0]: row[1] for row in csv.reader(archive.read(record).decode().splitlines())}
    for name, content in tree_files().items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        assert rows.get(name) == f"sha256={digest}", name


def test_nothing_is_installed_under_a_name_that_users_have(wheel):
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"stallscope"}


def test_a_scenario_runs_beside_decoys(installed, users_repo):
    printed = run(installed / "stallscope", "run", "synthetic", "--steps", "50", "--out", "measured", cwd=users_repo)
    assert (users_repo / "measured/result.json").is_file()
    assert "stallscope" in printed, "the line that draws the report again names the command that is installed"


def test_list_beside_decoys(installed, users_repo):
    printed = run(installed / "stallscope", "list", cwd=users_repo)
    missing = {"synthetic", "naive", "torch_workers", "two_layer"} - set(printed.replace(":", " ").split())
    assert not missing


def test_module_beside_decoys(installed, users_repo):
    assert "run" in run(installed / "python", "-m", "stallscope", "--help", cwd=users_repo)


def test_the_installed_copy_is_used(installed, users_repo):
    where = run(installed / "python", "-c", "import stallscope; print(stallscope.__file__)", cwd=users_repo)
    assert Path(where.strip()).is_relative_to(installed.parent)


OWN_LOADER = """\
import importlib

def build(source, probe, on_error, *, times: int = 1):
    return importlib.import_module("stallscope.loaders.naive").build(source, probe, on_error)
"""
COMPARED = """\
source: {kind: synthetic, samples: 32, shape: [4, 4, 3], read: 0.1 ms, decode: 0 ms}
loader: mylab.feed
model: {kind: simulated, step: 1 ms}
batch_size: 8
steps: 40
vary: {loader.times: [1, 2]}
"""


def test_a_users_own_part_is_compared_in_processes_of_their_own_beside_decoys(installed, users_repo):
    (users_repo / "mylab").mkdir()
    (users_repo / "mylab/feed.py").write_text(OWN_LOADER)
    (users_repo / "mine.yaml").write_text(COMPARED)
    printed = run(installed / "stallscope", "run", "mine.yaml", "--out", "both", cwd=users_repo)
    assert "times 2" in printed
    assert (users_repo / "both/compare.png").is_file()


def test_the_decoys_do_raise(installed, users_repo):
    with pytest.raises(AssertionError, match="decoy models"):
        run(installed / "python", "-c", "import models", cwd=users_repo)
