"""Verbs, their help, and exit statuses."""

import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

from profiler import cli, commands
from profiler.errors import UserError

ROOT = Path(__file__).parents[2]
VERBS = [module.name for module in pkgutil.iter_modules(commands.__path__) if not module.name.startswith("_")]
HEAVY = {"torch", "tensorflow", "keras", "matplotlib", "pyarrow", "pandas", "psutil", "yaml", "numpy", "PIL"}


def words(text):
    """Text regardless of how its lines are wrapped."""
    return " ".join(text.split())


def test_there_are_verbs():
    assert {"run", "report", "list", "clean"} <= set(VERBS)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_a_verbs_help_begins_with_its_docstrings_first_line(verb, flag, capsys):
    module = importlib.import_module(f"profiler.commands.{verb}")
    assert cli.main([verb, flag], program="it") == 0
    out = words(capsys.readouterr().out)
    assert out.startswith(f"Usage: it {verb} ")
    assert words(inspect.getdoc(module.main).partition("\n")[0]) in out


@pytest.mark.parametrize("arguments", [["--help"], ["-h"]])
def test_help_names_every_verb(arguments, capsys):
    assert cli.main(arguments, program="it") == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed[printed.index("Commands:") + 1 :] if line.startswith("  ")] == VERBS


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    # Some versions of typer check a verb's arguments with pydantic.
    [(["--help"], HEAVY | {"pydantic"}), *(([verb, "--help"], HEAVY) for verb in VERBS)],
)
def test_help_imports_nothing_heavy(arguments, heavy):
    code = f"""
import sys
from profiler import cli
status = cli.main({arguments!r})
print(sorted({heavy!r} & set(sys.modules)), file=sys.stderr)
sys.exit(status)
"""
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stderr == "[]\n"


@pytest.mark.parametrize(
    ("arguments", "telling"),
    [
        (["rnu"], "No such command 'rnu'"),
        (["run"], "Missing argument"),
        (["run", "it.yaml", "--steps", "many"], "Invalid value for '--steps'"),
        (["report", "a", "--nonsense"], "No such option"),
    ],
)
def test_a_command_line_that_cannot_be_has_status_2(arguments, telling, capsys):
    assert cli.main(arguments, program="it") == 2
    printed = capsys.readouterr()
    assert telling in printed.err
    assert "Usage: it" in printed.err
    assert printed.out == ""


class TestStatus:
    @pytest.fixture
    def status(self, monkeypatch, capsys):
        """The status, and what is printed, if a verb returns or raises this."""

        def status(outcome):
            def verb():
                if isinstance(outcome, BaseException):
                    raise outcome
                return outcome

            monkeypatch.setattr(commands.list, "main", verb)
            return cli.main(["list"]), *capsys.readouterr()

        importlib.import_module("profiler.commands.list")
        return status

    @pytest.mark.parametrize(("returned", "expected"), [(None, 0), (0, 0), (1, 1), (130, 130)])
    def test_is_what_the_verb_returned(self, status, returned, expected):
        assert status(returned) == (expected, "", "")

    def test_is_2_with_one_line_for_what_the_user_can_mend(self, status):
        assert status(UserError("it.yaml:3: no key 'x'")) == (2, "", "error: it.yaml:3: no key 'x'\n")

    def test_is_130_for_an_interruption(self, status):
        assert status(KeyboardInterrupt()) == (130, "", "")

    def test_is_0_if_the_reader_has_seen_enough(self, status, monkeypatch):
        monkeypatch.setattr(cli.os, "dup2", lambda new, old: None)
        monkeypatch.setattr(cli.sys.stdout, "fileno", lambda: 1, raising=False)
        assert status(BrokenPipeError(32, "Broken pipe")) == (0, "", "")

    @pytest.mark.parametrize("bug", [KeyError("x"), ValueError("x"), SystemExit(3)])
    def test_our_own_bug_is_raised_on(self, status, bug):
        with pytest.raises(type(bug)) as raised:
            status(bug)
        assert raised.value is bug
