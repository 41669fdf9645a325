"""YAML becomes a whole scenario, or one message that says where, what, and what would be right."""

import contextlib
import itertools
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler import registry, scenario
from profiler.errors import UserError
from profiler.scenario import Part

PARTS = {
    "sources/ssd.py": "def build(c, *, samples: int = 1200, image: int = 64, path: str | None = None, cold: bool = True): ...",
    "sources/ram.py": "def build(c, *, samples: int = 1200, image: int = 64): ...",
    "sources/synthetic.py": "def build(c, *, shape: tuple[int, ...] = (4, 4, 3), read_ns: int = 0): ...",
    "loaders/naive.py": "def build(source, probe, on_error): ...",
    "loaders/torch_workers.py": (
        "def build(s, p, e, *, num_workers: int = 0, prefetch_factor: int | None = None, timeout_ns: int = 0): ..."
    ),
    "loaders/tf_prefetch.py": "import tensorflow",
    "models/two_layer.py": "def build(shape, n, device, seed, *, hidden: int = 256, learning_rate: float = 0.05): ...",
    "models/simulated.py": "def build(shape, n, device, seed, *, step_ns: int = 5_000_000, queue_depth: int = 4): ...",
}

SSD = """\
# a comment
source: {kind: ssd, samples: 1200, image: 64}
loader:
  kind: torch_workers
  num_workers: 2
model: {kind: two_layer, hidden: 128}
batch_size: 32
epochs: 2
"""

WORKERS_TAKES = "It takes: num_workers, prefetch_factor, timeout. Did you mean num_workers?"
WORKERS_WHOLE = "loader.torch_workers: num_workers must be a whole number"
NO_UNIT_8 = "'8' has no unit: write 8 ns, 8 us, 8 ms, 8 s, 8 min, 8 h"
LOADERS = "It can be: naive, tf_prefetch, torch_workers"
ONE_LENGTH = "a run takes one of epochs, steps, duration"
TAKES = "It takes: source, loader, model, batch_size, epochs, steps, duration, seed, repeats, sync_every_step, on_error, vary."


@pytest.fixture(autouse=True, scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Parts of the shapes that ours have, without their frameworks."""
    root = tmp_path_factory.mktemp("parts")
    for name, text in PARTS.items():
        file = root / "scenario_parts" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    packages = {"source": "sources", "loader": "loaders", "model": "models"}
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(root)
        patch.setattr(registry, "PACKAGES", {family: f"scenario_parts.{name}" for family, name in packages.items()})
        patch.setitem(sys.modules, "tensorflow", None)  # as if it were not installed
        yield


Load = Callable[..., scenario.Scenario]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Loads a text from s.yaml in the current folder."""
    monkeypatch.chdir(tmp_path)

    def load(text: str | bytes, *changes: str, **flags: Any) -> scenario.Scenario:
        Path("s.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
        return scenario.load("s.yaml", changes, **flags)

    return load


def refusal(load: Load, text: str | bytes, *changes: str, **flags: Any) -> str:
    with pytest.raises(UserError) as refused:
        load(text, *changes, **flags)
    return str(refused.value)


class TestLoad:
    def test_every_default_is_filled_in(self, load: Load) -> None:
        assert load(SSD) == scenario.Scenario(
            "s",
            Path("s.yaml"),
            Part("ssd", {"samples": 1200, "image": 64, "path": None, "cold": True}),
            Part("torch_workers", {"num_workers": 2, "prefetch_factor": None, "timeout_ns": 0}),
            Part("two_layer", {"hidden": 128, "learning_rate": 0.05}),
            batch_size=32,
            epochs=2,
            steps=None,
            duration_ns=None,
            seed=0,
            repeats=1,
            sync_every_step=False,
            on_error="fail",
        )

    def test_a_bare_name_is_a_kind(self, load: Load) -> None:
        loaded = load("source: ram\nloader: naive\nmodel: simulated\nbatch_size: 1\nduration: 20 s\n")
        assert loaded.source == Part("ram", {"samples": 1200, "image": 64})
        assert loaded.loader == Part("naive", {})
        assert loaded.duration_ns == 20_000_000_000

    def test_settings_are_json_with_units_in_their_names(self, load: Load) -> None:
        kept = scenario.settings(load(SSD, "source={kind: synthetic, read: 0.1 ms}", duration="20s"))
        assert kept == json.loads(json.dumps(kept))
        assert kept["source"] == {"kind": "synthetic", "shape": [4, 4, 3], "read_ns": 100_000}
        assert list(kept) == [
            *("source", "loader", "model", "batch_size", "epochs", "steps", "duration_ns"),
            *("seed", "repeats", "sync_every_step", "on_error"),
        ]
        assert (kept["epochs"], kept["duration_ns"]) == (None, 20_000_000_000)

    def test_yes_and_off_are_truth_values_only_where_one_is_expected(self, load: Load) -> None:
        loaded = load(SSD.replace("image: 64", "cold: no, path: off") + "sync_every_step: yes\n")
        assert (loaded.source.options["cold"], loaded.source.options["path"]) == (False, "off")
        assert loaded.sync_every_step is True

    def test_numbers_are_read_as_json_has_them(self, load: Load) -> None:
        assert load(SSD, "model.learning_rate=1e-3").model.options["learning_rate"] == 0.001
        assert refusal(load, SSD + "seed: 010") == "s.yaml:9: seed must be a whole number, not the text '010'"
        assert refusal(load, SSD + "seed: 1:30") == "s.yaml:9: seed must be a whole number, not the text '1:30'"
        assert refusal(load, SSD + "seed: .nan") == "s.yaml:9: seed must be a whole number, not the text '.nan'"
        assert refusal(load, SSD + "seed: 1e999") == "s.yaml:9: seed must be a whole number, not Infinity"

    def test_a_byte_order_mark_is_no_harm(self, load: Load) -> None:
        assert load(b"\xef\xbb\xbf" + SSD.encode()).batch_size == 32


class TestChanges:
    def test_set_wins_over_the_file(self, load: Load) -> None:
        loaded = load(SSD, "loader.num_workers=4", "batch_size=8", "seed=1", "seed=2", "loader.timeout=3 s")
        assert loaded.loader.options == {"num_workers": 4, "prefetch_factor": None, "timeout_ns": 3_000_000_000}
        assert (loaded.batch_size, loaded.seed) == (8, 2)

    def test_set_takes_lists(self, load: Load) -> None:
        assert load(SSD, "source=synthetic", "source.shape=[64, 64, 3]").source.options["shape"] == (64, 64, 3)

    @pytest.mark.parametrize("change", ["loader=naive", "loader.kind=naive", "loader={kind: naive}"])
    def test_a_new_kind_forgets_the_options_of_the_old_one(self, load: Load, change: str) -> None:
        assert load(SSD, change).loader == Part("naive", {})

    def test_a_new_kind_takes_the_options_set_with_it_in_any_order(self, load: Load) -> None:
        assert load(SSD, "model.queue_depth=2", "model=simulated").model == Part(
            "simulated", {"step_ns": 5_000_000, "queue_depth": 2}
        )

    def test_the_same_kind_keeps_its_options(self, load: Load) -> None:
        assert load(SSD, "loader=torch_workers").loader.options["num_workers"] == 2

    @pytest.mark.parametrize(
        ("changes", "flags", "lengths"),
        [
            ([], {"steps": 5}, (None, 5, None)),
            ([], {"duration": "20s"}, (None, None, 20_000_000_000)),
            (["steps=5"], {}, (None, 5, None)),
            (["epochs=5"], {}, (5, None, None)),
        ],
    )
    def test_a_new_length_forgets_the_old_one(
        self, load: Load, changes: list[str], flags: dict[str, Any], lengths: Any
    ) -> None:
        loaded = load(SSD, *changes, **flags)
        assert (loaded.epochs, loaded.steps, loaded.duration_ns) == lengths

    def test_repeats_are_a_flag(self, load: Load) -> None:
        assert load(SSD, repeats=3).repeats == 3

    def test_the_simulated_device_replaces_the_model(self, load: Load) -> None:
        assert load(SSD, device="simulated").model == Part("simulated", {"step_ns": 5_000_000, "queue_depth": 4})
        assert load(SSD, "model.step=1 ms", device="simulated").model.options["step_ns"] == 1_000_000

    def test_the_simulated_device_keeps_a_simulated_model(self, load: Load) -> None:
        text = SSD.replace("{kind: two_layer, hidden: 128}", "{kind: simulated, step: 7 ms}")
        assert load(text, device="simulated").model.options["step_ns"] == 7_000_000

    def test_other_devices_change_nothing(self, load: Load) -> None:
        assert load(SSD, device="cuda") == load(SSD, device="auto") == load(SSD)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (
                "loader.workers=4",
                f"loader.torch_workers: no option 'workers'. {WORKERS_TAKES}",
            ),
            (
                "loader.num_workers='4'",
                f"{WORKERS_WHOLE}, not the text '4'. Write 4 without quotes",
            ),
            ("loader.num_workers=", f"{WORKERS_WHOLE}, not null"),
            ("loader.num_workers", "has no value: write it as --set loader.num_workers=4"),
            ("loader.kind=3", f"loader needs a kind. {LOADERS}"),
            ("storage.speedup=2", f"no key 'storage.speedup'. {TAKES}"),
            ("batch_size.x=2", f"no key 'batch_size.x'. {TAKES} Did you mean batch_size?"),
            ("=2", f"no key ''. {TAKES}"),
            ("seed=[1", "is not YAML: expected ',' or ']', but got '<stream end>'"),
            ("source.shape=&a [1]", "anchors and aliases are not read: write the value out"),
        ],
    )
    def test_a_bad_set_is_refused_by_its_text(self, load: Load, change: str, message: str) -> None:
        assert refusal(load, SSD, change) == f"--set {change}: {message}"

    def test_a_bad_flag_is_refused_by_its_text(self, load: Load) -> None:
        assert refusal(load, SSD, steps=0) == "--steps 0: steps must be 1 or more, not 0"
        assert refusal(load, SSD, repeats=0) == "--repeats 0: repeats must be 1 or more, not 0"
        assert (
            refusal(load, SSD, duration="20")
            == "--duration 20: duration: '20' has no unit: write 20 ns, 20 us, 20 ms, 20 s, 20 min, 20 h"
        )
        assert refusal(load, SSD, steps=5, duration="1 s") == (
            f"--duration 1 s: steps and duration are given together: {ONE_LENGTH}"
        )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("num_workers", "workers", f"s.yaml:5: loader.torch_workers: no option 'workers'. {WORKERS_TAKES}"),
        ("num_workers: 2", "timeout: 8", f"s.yaml:5: loader.torch_workers: timeout: {NO_UNIT_8}"),
        ("num_workers: 2", "num_workers: '2'", f"s.yaml:5: {WORKERS_WHOLE}, not the text '2'. Write 2 without quotes"),
        ("kind: ssd", "kind: sdd", "s.yaml:2: source: no kind 'sdd'. Did you mean ssd? It can be: ram, ssd, synthetic"),
        (
            "kind: torch_workers",
            "kind: my.own",
            "s.yaml:4: loader 'my.own': there is no module 'my' in the current folder and the environment",
        ),
        ("  kind: torch_workers\n", "", f"s.yaml:4: loader needs a kind. {LOADERS}"),
        ("{kind: two_layer, hidden: 128}", "", "s.yaml:6: model needs a kind. It can be: simulated, two_layer"),
        ("{kind: two_layer, hidden: 128}", "{}", "s.yaml: model needs a kind. It can be: simulated, two_layer"),
        ("model: {kind: two_layer, hidden: 128}\n", "", "s.yaml: model needs a kind. It can be: simulated, two_layer"),
        ("batch_size: 32\n", "", "s.yaml: needs batch_size: a whole number"),
        ("epochs: 2", "epoch: 2", f"s.yaml:8: no key 'epoch'. {TAKES} Did you mean epochs?"),
        ("epochs: 2", "", "s.yaml: needs one of epochs, steps, duration: how long to run"),
        ("epochs: 2", "epochs: null", "s.yaml: needs one of epochs, steps, duration: how long to run"),
        ("epochs: 2", "epochs: 2\nsteps: 3", f"s.yaml:9: epochs and steps are given together: {ONE_LENGTH}"),
        ("epochs: 2", "epochs: 0", "s.yaml:8: epochs must be 1 or more, not 0"),
        ("epochs: 2", "steps: -1", "s.yaml:8: steps must be 1 or more, not -1"),
        ("epochs: 2", "duration: 0 s", "s.yaml:8: duration must be 1 ns or more, not 0 ns"),
        ("epochs: 2", "duration: 8", f"s.yaml:8: duration: {NO_UNIT_8}"),
        ("epochs: 2", "epochs: 2\nseed: -1", "s.yaml:9: seed must be 0 or more, not -1"),
        ("epochs: 2", "epochs: 2\nrepeats: 0", "s.yaml:9: repeats must be 1 or more, not 0"),
        ("epochs: 2", "epochs: 2\non_error: stop", "s.yaml:9: on_error must be fail or skip, not the text 'stop'"),
        ("epochs: 2", "epochs: 2\nsync_every_step: 1", "s.yaml:9: sync_every_step must be true or false, not 1"),
        ("batch_size: 32", "batch_size: 0", "s.yaml:7: batch_size must be 1 or more, not 0"),
        (
            "kind: torch_workers",
            "kind: tf_prefetch",
            "s.yaml:4: loader 'tf_prefetch' needs tensorflow: pip install 'stallscope[tensorflow]'",
        ),
        ("epochs: 2", "epochs: 2\nepochs: 3", "s.yaml:9: 'epochs' is given twice, first in line 8"),
        ("samples: 1200", "samples: 5, samples: 6", "s.yaml:2: 'samples' is given twice, first in line 2"),
        ("samples: 1200", "samples: &n 1200", "s.yaml:2: anchors and aliases are not read: write the value out"),
        ("samples: 1200", "samples: *n", "s.yaml:2: anchors and aliases are not read: write the value out"),
        (
            "samples: 1200",
            "samples: !!int '1200'",
            "s.yaml:2: tags are not read: write the value without 'tag:yaml.org,2002:int'",
        ),
        (
            "samples: 1200",
            "samples: " + "[" * 8,
            "s.yaml:2: is nested deeper than 8: a part holds options, and an option a value or a list",
        ),
        ("samples: 1200", "[samples]: 1200", "s.yaml:2: a key is a word, not a list or a mapping"),
        ("epochs: 2", "<<: {epochs: 2}", f"s.yaml:8: no key '<<'. {TAKES}"),
        ("epochs: 2", "epochs: 2\n---\nepochs: 2", "s.yaml:9: a second document begins: a file holds one scenario"),
        ("epochs: 2", "epochs: 2: 3", "s.yaml:8:10: is not YAML: mapping values are not allowed here"),
        ("epochs: 2", "epochs: \x00", "s.yaml: is not YAML: unacceptable character #x0000: special characters are not allowed"),
    ],
)
def test_a_bad_line_is_refused_with_its_place_and_what_would_be_right(load: Load, old: str, new: str, message: str) -> None:
    assert old in SSD
    assert refusal(load, SSD.replace(old, new, 1)) == message


LARGER = "use batch_size: 1200 or less, or samples: 1201 or more"
VARY = """\
vary:
  - loader: {kind: torch_workers, num_workers: 2}
    loader.prefetch_factor: [1, 4]
    batch_size: [8, 16]
  - loader: [naive, {kind: torch_workers, num_workers: 1}]
"""


class TestVary:
    def unfold(self, load: Load, text: str, *changes: str, **flags: Any) -> tuple[scenario.Variant, ...]:
        with contextlib.suppress(UserError):
            load(text)
        return scenario.unfold("s.yaml", changes, **flags)

    def test_lists_unfold_into_every_combination_one_mapping_after_another(self, load: Load) -> None:
        variants = self.unfold(load, SSD + VARY)
        assert [(v.group, v.label) for v in variants] == [
            ("torch_workers, num_workers 2", "prefetch_factor 1, batch_size 8"),
            ("torch_workers, num_workers 2", "prefetch_factor 1, batch_size 16"),
            ("torch_workers, num_workers 2", "prefetch_factor 4, batch_size 8"),
            ("torch_workers, num_workers 2", "prefetch_factor 4, batch_size 16"),
            ("", "naive"),
            ("", "torch_workers, num_workers 1"),
        ]
        assert variants[2].scenario.loader.options["prefetch_factor"] == 4
        assert variants[2].scenario.batch_size == 8
        assert variants[2].settings == {
            "loader.kind": "torch_workers",
            "loader.num_workers": 2,
            "loader.prefetch_factor": 4,
            "batch_size": 8,
        }
        assert variants[4].scenario == load(SSD, "loader=naive")

    def test_without_vary_there_is_one_without_a_name(self, load: Load) -> None:
        (variant,) = self.unfold(load, SSD)
        assert variant == scenario.Variant(load(SSD), {}, "", "")
        assert self.unfold(load, SSD + VARY, "vary=null") == (variant,)

    def test_what_is_varied_need_not_be_given_besides(self, load: Load) -> None:
        text = SSD.replace("source: {kind: ssd, samples: 1200, image: 64}\n", "vary: {source: [ram, ssd]}\n")
        assert [v.scenario.source.kind for v in self.unfold(load, text)] == ["ram", "ssd"]

    def test_a_list_of_lists_varies_an_option_that_is_a_list(self, load: Load) -> None:
        variants = self.unfold(load, SSD + "vary: {source: synthetic, source.shape: [[4, 4, 3], [8, 8, 3]]}\n", "batch_size=1")
        assert [v.scenario.source.options["shape"] for v in variants] == [(4, 4, 3), (8, 8, 3)]
        assert [v.label for v in variants] == ["shape [4, 4, 3]", "shape [8, 8, 3]"]

    def test_the_command_line_changes_every_variant(self, load: Load) -> None:
        variants = self.unfold(load, SSD + VARY, "source.samples=100", steps=7)
        assert {(v.scenario.source.options["samples"], v.scenario.steps, v.scenario.epochs) for v in variants} == {
            (100, 7, None)
        }

    def test_and_may_give_the_variation_itself(self, load: Load) -> None:
        variants = self.unfold(load, SSD, "vary={seed: [1, 2]}")
        assert [v.scenario.seed for v in variants] == [1, 2]

    def test_one_scenario_of_several_is_not_guessed(self, load: Load) -> None:
        assert refusal(load, SSD + VARY) == (
            "s.yaml: varies its settings, and one scenario is needed here: add --set vary=null"
        )

    @pytest.mark.parametrize(
        ("vary", "changes", "message"),
        [
            ("[]", (), "s.yaml:9: vary is an empty list: write a mapping such as {loader.num_workers: [0, 2, 4]}"),
            ("3", (), "s.yaml:9: vary is a mapping such as {loader.num_workers: [0, 2, 4]}, or a list of them"),
            ("{}", (), "s.yaml:9: vary is a mapping such as {loader.num_workers: [0, 2, 4]}, or a list of them"),
            ("{seed: []}", (), "s.yaml:9: vary: seed has an empty list: write the values to compare"),
            ("{seed: [1, x]}", (), "s.yaml:9: seed must be a whole number, not the text 'x'"),
            ("{sed: [1, 2]}", (), f"s.yaml:9: no key 'sed'. {TAKES} Did you mean seed?"),
            ("{vary: {seed: [1, 2]}}", (), "s.yaml:9: vary cannot be nested: write several keys, or a list of mappings"),
            ("{repeats: [1, 2]}", (), "s.yaml:9: repeats cannot be varied: write it beside vary, for all settings"),
            ("{seed: [1, 1]}", (), "s.yaml:9: vary has the same settings twice: seed 1, seed 1"),
            (
                "{batch_size: [1201]}",
                (),
                f"s.yaml:9: batch_size 1201 is larger than the 1200 samples of source 'ssd': {LARGER}",
            ),
            (
                "{seed: [1, 2]}",
                ("seed=3",),
                "--set seed=3: seed is what vary sets: leave one of them out, or add --set vary=null",
            ),
            (
                f"{{seed: {list(range(30))}, epochs: {list(range(1, 31))}}}",
                (),
                "s.yaml:9: vary unfolds into 900 runs; at most 500 are measured",
            ),
        ],
    )
    def test_what_cannot_be_varied_is_refused_with_its_place(
        self, load: Load, vary: str, changes: tuple[str, ...], message: str
    ) -> None:
        with pytest.raises(UserError) as refused:
            self.unfold(load, f"{SSD}vary: {vary}\n", *changes)
        assert str(refused.value) == message


def test_a_batch_larger_than_the_source_is_refused(load: Load) -> None:
    assert refusal(load, SSD.replace("samples: 1200", "samples: 31")) == (
        "s.yaml:7: batch_size 32 is larger than the 31 samples of source 'ssd': "
        "use batch_size: 31 or less, or samples: 32 or more"
    )


@pytest.mark.parametrize("text", ['seed: "\\UFFFFFFFF"', f"%YAML {'1' * 5000}.1\n---\nseed: 1"])
def test_what_the_parser_itself_stumbles_over_is_refused(load: Load, text: str) -> None:
    assert refusal(load, text).startswith("s.yaml: is not YAML: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty: a scenario has source, loader, model, batch_size and one of epochs, steps, duration"),
        ("# only a comment\n", "is empty: a scenario has source, loader, model, batch_size and one of epochs, steps, duration"),
        ("- a\n- b\n", "a scenario is one `key: value` a line, such as batch_size: 32"),
        ("hello", "a scenario is one `key: value` a line, such as batch_size: 32"),
        (b"\x89PNG\r\n", "is not UTF-8 text (byte 0): a scenario is a few lines of YAML"),
        (b"#" * (64 * 1024 + 1), "is larger than 64 KiB: a scenario is a few lines of YAML"),
    ],
)
def test_a_file_that_is_no_scenario_is_refused(load: Load, text: str | bytes, message: str) -> None:
    assert refusal(load, text).replace("s.yaml:1: ", "s.yaml: ") == f"s.yaml: {message}"


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    for name, reason in (
        ("missing.yaml", "No such file or directory"),
        ("folder", "Is a directory"),
        ("a\0b", "embedded null byte"),
    ):
        with pytest.raises(UserError) as refused:
            scenario.load(name)
        assert str(refused.value) == f"{name}: cannot be read: {reason}"


def test_a_forbidden_file_is_refused(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", forbidden)  # chmod does not stop root
    with pytest.raises(UserError, match=r"^s\.yaml: cannot be read: Permission denied$"):
        scenario.load("s.yaml")


class TestFind:
    @pytest.fixture(autouse=True)
    def elsewhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)

    def test_a_name_is_a_shipped_scenario(self) -> None:
        assert scenario.find("ssd") == scenario.shipped()["ssd"]
        assert {"ram", "simulated", "ssd", "synthetic"} <= scenario.shipped().keys()

    def test_a_file_comes_first(self) -> None:
        Path("ssd").write_text(SSD)
        assert scenario.find("ssd") == Path("ssd")

    def test_a_folder_of_that_name_does_not(self) -> None:
        Path("ssd").mkdir()
        assert scenario.find("ssd") == scenario.shipped()["ssd"]

    def test_another_name_is_refused_with_the_shipped_ones(self) -> None:
        with pytest.raises(UserError) as refused:
            scenario.find("sdd")
        assert (
            str(refused.value)
            == f"no scenario 'sdd': no such file. Did you mean ssd? Shipped ones: {', '.join(scenario.shipped())}"
        )


@pytest.mark.parametrize("name", sorted(scenario.shipped()))
def test_a_shipped_scenario_begins_with_what_it_shows(name: str) -> None:
    assert scenario.shipped()[name].read_text().startswith("# ")


WORDS = st.sampled_from(
    [
        *"{}[],:-?&*!|>'\"#%@` \n\t",
        *("\n  ", ": ", "- ", "---\n", "\\ud800", '"\\UFFFFFFFF"', "1", "-1e9", "null", "yes"),
        *("source", "loader", "model", "kind", "ssd", "naive", "simulated", "samples", "steps", "duration"),
        *("batch_size: 4\n", "epochs: 1\n", "step: 5 ms"),
    ]
)
LINES = st.lists(
    st.sampled_from([*SSD.splitlines(), "seed: 1", "loader: naive", "steps: 3", "model: [1]", "x: {", "}", "  a: b"])
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("fuzz")
    return (folder / f"{n}.yaml" for n in itertools.count())


def loads_or_is_refused(file: Path, raw: bytes, *changes: str) -> None:
    file.write_bytes(raw)
    with contextlib.suppress(UserError):
        assert isinstance(scenario.load(file, changes), scenario.Scenario)
    file.unlink()


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_a_scenario_or_refused(files: Iterator[Path], raw: bytes) -> None:
    loads_or_is_refused(next(files), raw)


@given(st.lists(WORDS, max_size=30).map("".join) | LINES.map("\n".join) | st.text(max_size=50))
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_scenario_or_refused(files: Iterator[Path], text: str) -> None:
    loads_or_is_refused(next(files), text.encode())


@given(
    st.sampled_from(["", "loader", "loader.num_workers", "source.path", "seed", "vary"]),
    st.lists(WORDS, max_size=15).map("".join) | st.text(),
)
@settings(max_examples=150, deadline=None)
def test_any_set_is_taken_or_refused(files: Iterator[Path], key: str, value: str) -> None:
    loads_or_is_refused(next(files), SSD.encode(), f"{key}={value}")
