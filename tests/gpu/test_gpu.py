"""The checks that need a GPU, one by one; and, anywhere, that `make gpu` tells what it did and what it could not."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path
from unittest import SkipTest

import pytest

HERE = Path(__file__).parent


def module(name):
    """A script of this folder, which is no package."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    loaded = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


checks = module("checks")
run = module("run")


@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda check: check.run.__name__)
def test_on_a_gpu(check):
    if why := checks.missing(check):
        pytest.skip(why)
    print(check.run())


def passes():
    """One that passes."""
    return "1 of 1"


def fails():
    """One that fails."""
    raise AssertionError("2 ms for 1 ms")


def cannot():
    """One that cannot be shown here."""
    raise SkipTest("needs another machine")


def breaks():
    """One that breaks."""
    raise ZeroDivisionError("oh")


@pytest.fixture
def table(monkeypatch, capsys):
    """What is printed for these functions on a machine that has a GPU and the packages that are asked for, and the status."""

    def table(*functions, needs=(), **budget):
        monkeypatch.setattr(run, "missing", lambda check: "needs no_such_thing" if check.needs else None)
        status = run.main(tuple(checks.Check(function, needs) for function in functions), **budget)
        return status, capsys.readouterr().out

    return table


def test_a_passed_check_is_said_with_its_figures(table):
    status, said = table(passes)
    assert status == 0
    assert "One that passes  ok       1 of 1" in said
    assert "1 ok, 0 failed, 0 not run" in said


@pytest.mark.parametrize(("function", "figures"), [(fails, "2 ms for 1 ms"), (breaks, "ZeroDivisionError: oh")])
def test_a_failed_one_makes_the_status_1_and_does_not_stop_the_others(table, function, figures):
    status, said = table(function, passes)
    assert status == 1
    assert f"FAILED   {figures}" in said
    assert "1 ok, 1 failed" in said


def test_what_is_missing_is_named(table):
    assert "not run  needs no_such_thing" in table(passes, needs=("no_such_thing",))[1]


def test_what_turns_out_to_be_impossible_here_is_no_failure(table):
    status, said = table(cannot)
    assert (status, "not run  needs another machine" in said) == (0, True)


def test_a_torch_that_cannot_be_imported_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert "needs a torch that can be imported" in checks.missing(checks.Check(passes, ("numpy",)))
    assert "torch" in run.machine()


@pytest.mark.parametrize("file", ["models/two_layer/_torch_device.py", "models/two_layer/torch_nn.py", "loaders/_batch.py"])
def test_the_checks_of_torch_alone_need_nothing_but_numpy_and_torch(file):
    """A machine with a GPU may have no more. Read from the imports of what they use."""
    tree = ast.parse((HERE.parents[1] / file).read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level}
    assert {name.partition(".")[0] for name in imported} <= {"numpy", "torch", *sys.stdlib_module_names}


def test_what_has_no_time_left_is_named(table):
    status, said = table(passes, budget_s=0)
    assert (status, "s are over" in said) == (0, True)


def test_without_torch_everything_is_listed_and_nothing_fails():
    """-S -E: a bare Python, with no package at all."""
    done = subprocess.run([sys.executable, "-S", "-E", HERE / "run.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("not run  needs numpy, torch") == len(checks.CHECKS)
    for check in checks.CHECKS:
        assert check.name in done.stdout
