"""Parts that are not ours are found, and refused with what is wrong with them before they are used."""

import sys

import pytest

from profiler import plugins, registry
from profiler.conclude import conclude
from profiler.errors import UserError
from tests.fakes import FakeLoop

GOOD = "def build(source, probe, on_error, *, depth: int = 2): ..."


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Writes a module of the package `mine_own` in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "mine_own").mkdir()

    def write(name, text):
        (tmp_path / f"mine_own/{name}.py").write_text(text)

    yield write
    for name in [name for name in sys.modules if name.startswith("mine_own")]:
        del sys.modules[name]


def refusal(family, kind):
    with pytest.raises(UserError) as refused:
        registry.load(family, kind)
    return str(refused.value)


def test_a_dotted_kind_is_a_module_of_the_current_folder(mine):
    mine("ring", GOOD)
    assert registry.options(registry.load("loader", "mine_own.ring").build)["depth"].default == 2


def test_the_current_folder_comes_last(mine, tmp_path):
    mine("ring", GOOD)
    registry.load("loader", "mine_own.ring")
    assert sys.path[-1] == str(tmp_path)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("gone.ring", "loader 'gone.ring': there is no module 'gone' in the current folder and the environment"),
        ("mine_own.gone", "there is no module 'mine_own.gone' in the current folder"),
        ("mine_own.empty", "has no function build(source, probe, on_error, *, ...)"),
        ("mine_own.other", "must be build(source, probe, on_error, *, ...): too many positional arguments"),
        ("mine_own.needs", "cannot be imported: ModuleNotFoundError: No module named 'no_such_thing' ("),
        ("mine_own.wrong", "cannot be imported: SyntaxError: "),
        ("mine_own.raises", "cannot be imported: ZeroDivisionError: division by zero ("),
        ("mine_own.leaves", "cannot be imported: SystemExit: 0 ("),
        ("mine_own/ring", "no kind 'mine_own/ring'"),
        (".ring", "no kind '.ring'"),
    ],
)
def test_what_is_wrong_with_it_is_said(mine, kind, message):
    mine("empty", "")
    mine("other", "def build(source): ...")
    mine("needs", "import no_such_thing")
    mine("wrong", "def build(:")
    mine("raises", "x = 1\n1 / 0")
    mine("leaves", "import sys\nsys.exit(0)")
    assert message in refusal("loader", kind)


def test_a_users_mistake_is_placed_in_the_users_file(mine, tmp_path):
    mine("raises", "x = 1\n1 / 0")
    assert refusal("loader", "mine_own.raises").endswith(f"({tmp_path}/mine_own/raises.py:2)")


def test_what_build_returns_must_keep_the_contract(mine):
    mine(
        "half",
        "class Half:\n    n_workers = 0\n    def epoch(self, batches): ...\ndef build(source, probe, on_error): return Half()",
    )
    with pytest.raises(
        UserError, match=r"what build returned \(Half\) has no prefetch_batches, close: a loader needs n_workers, "
    ):
        registry.build("loader", "mine_own.half", None, None, "fail")


@pytest.mark.parametrize("family", ["source", "loader", "model"])
def test_our_own_parts_keep_what_is_asked_of_others(family):
    """Else a contract could grow a promise that nobody checks."""
    assert len(plugins._promised(plugins.PROTOCOLS[family])) >= 4


@pytest.fixture
def registered(tmp_path, monkeypatch):
    """Registers entry points of a package called mylab."""

    def register(*lines, package="mylab"):
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[stallscope.parts]\n" + "\n".join(lines) + "\n")
        monkeypatch.syspath_prepend(tmp_path)
        plugins.registered.cache_clear()

    yield register
    plugins.registered.cache_clear()


def test_a_registered_kind_is_one_of_the_known(registered, mine):
    mine("ring", GOOD)
    registered("loader.ring = mine_own.ring")
    assert "ring" in registry.kinds("loader")
    assert registry.load("loader", "ring").__name__ == "mine_own.ring"
    assert "Did you mean ring?" in refusal("loader", "rings")


def test_ours_win_and_what_cannot_be_used_is_named(registered):
    registered("loader.naive = a.b", "sauce.x = a.b", "loader.twice = a.b", "loader.c = a.b:build", "plain = a.b")
    registered("loader.twice = c.d", package="other")
    found = plugins.registered(registry.ours)
    assert list(found.modules) == [("loader", "twice")]
    problems = "\n".join(sorted(found.problems))
    for words in ("'loader.naive = a.b': loader 'naive' is one of ours", "sauce.x", "'loader.c = a.b:build'", "'plain = a.b'"):
        assert words in problems
    assert "loader 'twice' is registered already, by " in problems
    assert registry.load("loader", "naive").__name__.endswith("loaders.naive")


def test_what_an_entry_point_cannot_name_is_a_problem_and_no_more(registered):
    registered("source.x = !!")
    assert "'source.x = !!' must be like" in plugins.registered(registry.ours).problems[0]
    assert "x" not in registry.kinds("source")


def test_a_package_that_raises_is_described_so(registered, tmp_path):
    (tmp_path / "boom_own").mkdir()
    (tmp_path / "boom_own/__init__.py").write_text("1 / 0")
    registered("loader.boom = boom_own.ring")
    assert registry.describe("loader", "boom").summary == "cannot be read: division by zero"


def test_types_that_cannot_be_read_are_said(mine):
    mine("odd", "from __future__ import annotations\ndef build(source, probe, on_error, *, n: Nope = 1): ...")
    with pytest.raises(UserError, match=r"mine_own.odd: the types of its build cannot be read: name 'Nope' is not defined"):
        registry.options(registry.load("loader", "mine_own.odd").build)


@pytest.mark.parametrize("body", ["1 / 0", "return {'kind': 'x'}", "return 'text'"])
def test_a_rule_that_fails_is_told_and_loses_nothing(registered, mine, body):
    mine("rule", f"def judge(result):\n    {body}")
    registered("rule.mine = mine_own.rule")
    findings = conclude(FakeLoop().run()).diagnosis.findings
    assert "The rule 'mine' failed: it was left out." in [finding.verdict for finding in findings]
    assert len(findings) >= 2


def test_a_registered_part_that_is_not_there_is_described_so(registered):
    registered("loader.gone = not_there.at_all")
    assert registry.describe("loader", "gone").summary.startswith("cannot be read: No module named")
