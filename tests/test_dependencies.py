"""Who may import whom, read from the source: nothing is imported here."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
OURS = {"profiler", "loaders", "models", "scenarios", "stallscope", "tests"}

# Which files may import what is heavy, or is an answer to one question only. `import x` inside a function counts too.
ONLY_IN = {
    "torch": ["loaders/*torch*", "models/two_layer/*torch*", "profiler/instrument/*"],
    "tensorflow": ["*/_tensorflow.py", "models/two_layer/*keras*", "profiler/instrument/*"],
    "keras": ["models/two_layer/*keras*", "profiler/instrument/*"],
    "onnx": ["models/two_layer/*onnx*"],
    "onnxscript": ["models/two_layer/*onnx*"],
    "onnxruntime": ["models/two_layer/*onnx*"],
    "pynvml": ["profiler/samplers/gpu.py"],
    "matplotlib": ["profiler/reports/*"],
    "plotly": ["profiler/reports/*"],
    "jinja2": ["profiler/reports/*"],
    "pyarrow": ["profiler/runfile.py"],
    "pydantic": ["profiler/registry.py", "profiler/runfile.py"],
    "yaml": ["profiler/settings.py"],
    "psutil": ["profiler/environment.py", "profiler/samplers/*", "loaders/sources/*"],
    "typer": ["profiler/cli.py", "profiler/commands/*"],
    "rich": ["profiler/cli.py", "profiler/commands/*", "profiler/live.py", "profiler/reports/*"],
}
HEAVY = {"torch", "tensorflow", "keras", "matplotlib", "pyarrow", "pandas"}

# Only arithmetic: no clock, no file, no framework. What they may import is listed, so that nothing else slips in.
COMPUTING = [
    *(
        "attribution",
        "intervals",
        "stats",
        "timeline",
        "measure",
        "steady",
        "diagnosis",
        "result",
        "run",
        "events",
        "units",
        "tune",
        "counters",
        "stretch",
        "queue_depth",
        "loops",
        "gate",
        "periods",
    ),
    *("comparison", "rules/*", "whatif", "whatif/*"),
]
ARITHMETIC = {
    *(
        "__future__",
        "abc",
        "bisect",
        "collections",
        "copy",
        "dataclasses",
        "decimal",
        "enum",
        "fractions",
        "functools",
        "heapq",
    ),
    *("itertools", "json", "math", "numbers", "numpy", "operator", "re", "statistics", "string", "types", "typing"),
}
# Below the waist a Run is read, on any machine, a year later: nothing there looks back up at how it was made.
BELOW = [*COMPUTING, "reports/*"]
ABOVE = {
    *(
        "_traced",
        "attach",
        "calibrate",
        "child",
        "cli",
        "clocks",
        "commands",
        "conclude",
        "crosscheck",
        "environment",
        "execute",
        "faults",
        "following",
        "instrument",
        "keeper",
    ),
    "interrupts",
    *("live", "places", "probe", "ranks", "registry", "replay", "runfile", "sampler", "samplers", "scenario", "settings"),
    *("recording", "ring", "stamps", "supervise", "sweep"),
}


class Import(NamedTuple):
    file: str
    """Relative to the checkout."""
    line: int
    level: int
    """Leading dots: 0 is absolute."""
    name: str
    """As far as it is a module for sure: `from .a import b` is `a`, `from . import a` is `a`."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: import {'.' * self.level}{self.name}"

    @property
    def top(self) -> str:
        return self.name.partition(".")[0]

    @property
    def target(self) -> str:
        """Of a relative import: the file or folder that is meant, relative to the checkout, without .py."""
        parent = Path(self.file).parents[self.level - 1] if self.level <= len(Path(self.file).parents) else Path("..")
        return (parent / self.name.replace(".", "/")).as_posix()


def imports(file: str) -> Iterator[Import]:
    for node in ast.walk(ast.parse((ROOT / file).read_text(), file)):
        if isinstance(node, ast.Import):
            yield from (Import(file, node.lineno, 0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = [node.module] if node.module else [alias.name for alias in node.names]
            yield from (Import(file, node.lineno, node.level, name) for name in names)


def files(*patterns: str) -> list[str]:
    found = (
        path.relative_to(ROOT).as_posix()
        for folder in ("profiler", "loaders", "models")
        for path in (ROOT / folder).rglob("*.py")
    )
    return sorted(file for file in found if any(fnmatch(file, pattern) for pattern in patterns))


def all_imports(*patterns: str) -> list[Import]:
    return [found for file in files(*patterns) for found in imports(file)]


def listed(wrong: list[Import]) -> str:
    return "\n".join(map(str, wrong))


def inside_profiler(names: list[str]) -> list[str]:
    return files(*(f"profiler/{name}.py" for name in names))


def test_there_is_something_to_check():
    assert {"profiler/run.py", "profiler/measure.py"} <= set(inside_profiler(BELOW))


def test_loaders_and_models_import_nothing_of_ours_but_their_own_folder():
    allowed = set(sys.stdlib_module_names) | {"numpy", "PIL", "psutil"} | HEAVY | set(ONLY_IN)
    wrong = []
    for found in all_imports("loaders/*", "models/*"):
        folder = found.file.partition("/")[0]
        fine = found.target.startswith(f"{folder}/") if found.level else found.top in allowed - OURS
        wrong += [] if fine else [found]
    assert not wrong, listed(wrong)


def test_the_profiler_names_itself_relatively():
    """An absolute name would be a second copy of us, either in a checkout or on the wheel."""
    wrong = [found for found in all_imports("profiler/*") if not found.level and found.top in OURS]
    wrong = [found for found in wrong if (found.file, found.top) != ("profiler/__main__.py", "stallscope")]
    assert not wrong, listed(wrong)


def test_relative_imports_stay_inside_the_profiler():
    """`.loaders` exists on the wheel only. The registry finds parts by name."""
    wrong = [
        found
        for found in all_imports("profiler/*")
        if found.level
        and (found.target.split("/")[0] != "profiler" or found.target.split("/")[1:2] in (["loaders"], ["models"]))
    ]
    assert not wrong, listed(wrong)


def test_only_the_registry_imports_parts_by_name():
    """The command line finds its verbs likewise, `__init__` its public names, `__main__` the copy of us that is installed; a
    traced program gets us by our place, and its frameworks are met as they are imported."""
    allowed = {f"profiler/{name}.py" for name in ("registry", "cli", "__init__", "__main__", "_traced", "following")}
    wrong = [found for found in all_imports("profiler/*") if found.top == "importlib" and found.file not in allowed]
    wrong = [found for found in wrong if not found.name.startswith("importlib.metadata")]
    assert not wrong, listed(wrong)


def test_nothing_below_the_waist_looks_back_up():
    wrong = [
        found
        for file in inside_profiler(BELOW)
        for found in imports(file)
        if found.level and found.target.split("/")[1:2] and found.target.split("/")[1] in ABOVE
    ]
    assert not wrong, listed(wrong)


def test_computing_code_has_no_clock_no_file_and_no_framework():
    wrong = [
        found
        for file in inside_profiler(COMPUTING)
        for found in imports(file)
        if not found.level and found.top not in ARITHMETIC
    ]
    assert not wrong, listed(wrong)


@pytest.mark.parametrize("builtin", ["open", "print", "input", "__import__", "exec", "eval"])
def test_computing_code_neither_reads_nor_writes(builtin):
    calls = [
        f"{file}:{node.lineno}"
        for file in inside_profiler(COMPUTING)
        for node in ast.walk(ast.parse((ROOT / file).read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == builtin
    ]
    assert not calls


@pytest.mark.parametrize("package", ONLY_IN)
def test_is_imported_only_where_it_is_needed(package):
    wrong = [found for found in all_imports("*") if not found.level and found.top == package]
    wrong = [found for found in wrong if not any(fnmatch(found.file, pattern) for pattern in ONLY_IN[package])]
    assert not wrong, listed(wrong)


def test_only_one_place_reads_a_launchers_variables():
    variables = re.compile(r"[\"'](RANK|LOCAL_RANK|WORLD_SIZE|SLURM_\w+|OMPI_\w+)[\"']")
    assert [file for file in files("*") if variables.search((ROOT / file).read_text())] == ["profiler/ranks.py"]


@pytest.mark.parametrize("command", [["-m", "profiler", "--help"], ["-c", "import profiler"]], ids=["help", "import"])
def test_help_and_import_cost_no_framework(command):
    done = subprocess.run([sys.executable, "-X", "importtime", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    times = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    assert done.returncode == 0, "\n".join(line for line in done.stderr.splitlines() if line not in times)
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in times}
    assert "profiler" in imported
    assert not imported & HEAVY
