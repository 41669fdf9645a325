"""Parts are found by file name, described without being imported, and their options checked by their signatures."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from profiler import registry
from profiler.errors import UserError

DISK = '''"""Samples on a disk that is made up.

More words.
"""
from __future__ import annotations

SEEK_NS = 8_000_000

def build(cache_dir, *, samples: int, seek_ns: int = SEEK_NS, gap_ns: int | None = 5_000, bandwidth_bytes_per_s: int = 10**8,
          shape: tuple[int, ...] = (4, 3), hold: str = "decoded"):
    if samples < 1:
        raise ValueError(f"samples={samples}: must be at least 1")
    return cache_dir, samples, seek_ns
'''

PARTS = {
    "loaders/__init__.py": "",
    "loaders/_batch.py": "raise RuntimeError('private')",
    "loaders/needs_tf.py": "import tensorflow.data\ndef build(source, *, cache: bool = False): ...\n",
    "loaders/broken.py": "import no_such_module_of_ours\n",
    "loaders/sources/__init__.py": "",
    "loaders/sources/disk.py": DISK,
    "loaders/sources/ram.py": "def build(cache_dir): ...\n",
    "models/__init__.py": "",
    "models/network/__init__.py": '"""A network."""\ndef build(*, implementation: str = "a"):\n    from . import b\n',
    "models/network/b.py": "import onnxruntime\n",
}


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    write(tmp_path / "registry_parts", PARTS)
    monkeypatch.syspath_prepend(tmp_path)
    packages = {"source": "loaders.sources", "loader": "loaders", "model": "models"}
    monkeypatch.setattr(registry, "PACKAGES", {family: f"registry_parts.{name}" for family, name in packages.items()})
    for framework in ("tensorflow", "onnxruntime"):
        monkeypatch.setitem(sys.modules, framework, None)  # as if it were not installed
    yield
    for name in [name for name in sys.modules if name.startswith("registry_parts")]:
        del sys.modules[name]


@pytest.mark.usefixtures("parts")
class TestFinding:
    def test_kinds_are_file_names_without_an_underscore_and_cost_no_import(self) -> None:
        assert registry.kinds("source") == ("disk", "ram")
        assert registry.kinds("loader") == ("broken", "needs_tf")  # not sources: that is a family of its own
        assert registry.kinds("model") == ("network",)
        assert "registry_parts.loaders.sources.disk" not in sys.modules

    def test_a_description_costs_no_import(self) -> None:
        description = registry.describe("source", "disk")
        assert description.summary == "Samples on a disk that is made up."
        assert description.options == {
            "samples": None,
            "seek": "SEEK_NS",
            "gap": "5.0 us",
            "bandwidth": "10 ** 8",
            "shape": "[4, 3]",
            "hold": "decoded",
        }
        assert registry.describe("loader", "needs_tf").options == {"cache": "false"}
        assert "registry_parts.loaders.sources.disk" not in sys.modules

    def test_a_part_is_built_with_what_is_handed_in_and_its_options(self) -> None:
        assert registry.build("source", "disk", "cache", samples=3, seek_ns=5) == ("cache", 3, 5)

    def test_a_value_that_build_refuses_is_the_users_to_mend(self) -> None:
        with pytest.raises(UserError) as refused:
            registry.build("source", "disk", "cache", samples=0)
        assert str(refused.value) == "source.disk: samples=0: must be at least 1"

    def test_an_unknown_kind_is_refused_with_the_known_ones(self) -> None:
        with pytest.raises(UserError) as refused:
            registry.load("source", "dsik")
        assert str(refused.value) == "source: no kind 'dsik'. Did you mean disk? It can be: disk, ram"

    @pytest.mark.parametrize("kind", ["_batch", "sources", "", "naïve", "../loaders"])
    def test_nothing_else_is_a_kind(self, kind: str) -> None:
        with pytest.raises(UserError, match=r"^loader: .*It can be: broken, needs_tf$"):
            registry.load("loader", kind)

    def test_a_missing_framework_names_its_extra(self) -> None:
        with pytest.raises(UserError) as refused:
            registry.load("loader", "needs_tf")
        assert str(refused.value) == "loader 'needs_tf' needs tensorflow: pip install 'stallscope[tensorflow]'"

    def test_a_framework_that_only_build_imports_names_its_extra_too(self) -> None:
        with pytest.raises(UserError) as refused:
            registry.build("model", "network")
        assert str(refused.value) == "model 'network' needs onnxruntime: pip install 'stallscope[onnx]'"

    def test_any_other_failing_import_is_our_bug_and_passes(self) -> None:
        with pytest.raises(ModuleNotFoundError, match="no_such_module_of_ours"):
            registry.load("loader", "broken")


def build(
    given: object,
    *,
    num_workers: int = 0,
    prefetch_factor: int | None = None,
    pin: bool = False,
    rate: float = 0.5,
    shape: tuple[int, ...] = (4,),
    context: Literal["fork", "spawn"] | None = None,
    path: str | None = None,
    seek_ns: int = 8_000_000,
    bandwidth_bytes_per_s: int | None = None,
) -> None: ...


def check(**given: Any) -> dict[str, Any]:
    return registry.check(registry.options(build), given)


def test_the_keyword_only_parameters_are_the_schema() -> None:
    schema = registry.options(build)
    assert list(schema) == [
        "num_workers",
        "prefetch_factor",
        "pin",
        "rate",
        "shape",
        "context",
        "path",
        "seek",
        "bandwidth",
    ]
    assert schema["seek"] == registry.Option("seek_ns", int, 8_000_000)


def test_annotations_may_be_text() -> None:
    scope: dict[str, Any] = {}
    exec("from __future__ import annotations\ndef build(*, sizes: tuple[int, ...] | None = None): ...", scope)
    assert registry.check(registry.options(scope["build"]), {"sizes": [3, 4]}) == {"sizes": (3, 4)}


def test_defaults_are_filled_in() -> None:
    assert check() == {
        "num_workers": 0,
        "prefetch_factor": None,
        "pin": False,
        "rate": 0.5,
        "shape": (4,),
        "context": None,
        "path": None,
        "seek_ns": 8_000_000,
        "bandwidth_bytes_per_s": None,
    }


@pytest.mark.parametrize(
    ("option", "value", "parameter", "becomes"),
    [
        ("num_workers", 4, "num_workers", 4),
        ("prefetch_factor", 3, "prefetch_factor", 3),
        ("pin", True, "pin", True),
        ("pin", "on", "pin", True),
        ("pin", "No", "pin", False),
        ("rate", 1, "rate", 1.0),
        ("shape", [64, 64, 3], "shape", (64, 64, 3)),
        ("context", "spawn", "context", "spawn"),
        ("context", None, "context", None),
        ("path", "no", "path", "no"),
        ("seek", "2 us", "seek_ns", 2_000),
        ("bandwidth", "180 MB/s", "bandwidth_bytes_per_s", 180_000_000),
        ("bandwidth", None, "bandwidth_bytes_per_s", None),
    ],
)
def test_a_value_that_fits_is_taken(option: str, value: Any, parameter: str, becomes: Any) -> None:
    taken = check(**{option: value})[parameter]
    assert (taken, type(taken)) == (becomes, type(becomes))


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("num_workers", "4", "num_workers must be a whole number, not the text '4'. Write 4 without quotes"),
        ("num_workers", "four", "num_workers must be a whole number, not the text 'four'"),
        ("num_workers", True, "num_workers must be a whole number, not true"),
        ("num_workers", 2.0, "num_workers must be a whole number, not 2.0"),
        ("num_workers", None, "num_workers must be a whole number, not null"),
        ("num_workers", "[" * 50_000, f"num_workers must be a whole number, not the text '{'[' * 57}...'"),
        ("prefetch_factor", "x", "prefetch_factor must be a whole number or null, not the text 'x'"),
        ("pin", 1, "pin must be true or false, not 1"),
        ("pin", "true", "pin must be true or false, not the text 'true'. Write true without quotes"),
        ("rate", float("inf"), "rate must be a number, not Infinity"),
        ("rate", "0.1 ms", "rate must be a number, not the text '0.1 ms'"),
        ("shape", [64, "a"], 'shape must be a list, each a whole number, not [64, "a"]'),
        ("shape", 64, "shape must be a list, each a whole number, not 64"),
        ("context", "frok", "context must be fork or spawn or null, not the text 'frok'"),
        ("path", 5, 'path must be text or null, not 5. Write "5" in quotes'),
        ("seek", 8, "seek: '8' has no unit: write 8 ns, 8 us, 8 ms, 8 s, 8 min, 8 h"),
        ("seek", 0.5, "seek: '0.5' has no unit: write 0.5 ns, 0.5 us, 0.5 ms, 0.5 s, 0.5 min, 0.5 h"),
        ("seek", True, "seek must be a duration such as 8 ms, not true"),
        ("seek", None, "seek must be a duration such as 8 ms, not null"),
        ("bandwidth", ["1 MB/s"], 'bandwidth must be a rate such as 8 KiB/s or null, not ["1 MB/s"]'),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_what_would(option: str, value: Any, message: str) -> None:
    with pytest.raises(registry.Refused) as refused:
        check(**{option: value})
    assert str(refused.value) == message
    assert refused.value.option == option


def test_an_unknown_option_is_refused_with_the_known_ones() -> None:
    with pytest.raises(registry.Refused) as refused:
        check(workers=2)
    assert str(refused.value) == (
        "no option 'workers'. It takes: num_workers, prefetch_factor, pin, rate, shape, context, path, seek, bandwidth."
        " Did you mean num_workers?"
    )


def test_a_part_without_options_says_so() -> None:
    with pytest.raises(registry.Refused) as refused:
        registry.check({}, {"workers": 2})
    assert str(refused.value) == "no option 'workers'. It takes no options."


def test_an_option_without_a_default_is_needed() -> None:
    def needy(*, path: str, seek_ns: int = 0) -> None: ...

    with pytest.raises(registry.Refused) as refused:
        registry.check(registry.options(needy), {})
    assert str(refused.value) == "needs path: text"


def test_installed_parts_are_our_own_whatever_lies_in_the_users_folder(tmp_path: Path) -> None:
    """The wheel's layout: all lies inside `stallscope`, and the user's own models/ and loaders/ come first on the path."""
    package, user = tmp_path / "site" / "stallscope", tmp_path / "user"
    write(package, dict.fromkeys(("__init__.py", "loaders/__init__.py", "models/__init__.py", "models/own.py"), ""))
    write(package, {"scenarios/__init__.py": "", "scenarios/own.yaml": "{}"})
    for name in ("registry", "scenario", "units", "errors"):
        shutil.copy(Path(registry.__file__).with_name(f"{name}.py"), package)
    decoy = "raise RuntimeError('this is not ours')"
    write(
        user, {"models/__init__.py": decoy, "models/decoy.py": decoy, "loaders/__init__.py": decoy, "scenarios/decoy.yaml": ""}
    )
    script = (
        f"import sys; sys.path[:0] = [{str(user)!r}, {str(tmp_path / 'site')!r}]; from stallscope import registry, scenario;"
        "print(registry.kinds('model'), registry.kinds('loader'), registry.load('model', 'own').__name__, *scenario.shipped())"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=user, text=True, capture_output=True, check=False)
    assert (ran.stdout, ran.stderr) == ("('own',) () stallscope.models.own own\n", "")
