"""What is refused before anything is measured: one line that says what would be right, and nothing left behind."""

import pytest

BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"
SETTINGS = {
    "an unknown key": ("batchsize=8", "it takes: source, loader, model, batch_size,", "Did you mean batch_size?"),
    "a misspelt option": ("source.sampels=5", "no option 'sampels'", "Did you mean samples?"),
    "a number without a unit": ("model.step=5", "'5' has no unit", "5 ms"),
    "an unknown kind": ("loader=naiv", "no kind 'naiv'", "Did you mean naive?"),
    "a batch larger than the data": ("batch_size=4001", "larger than the 4000 samples", "batch_size: 4000 or less"),
}
FILES = {
    "a list": ("- source: ssd\n", "it.yaml:1: a scenario is one `key: value` a line"),
    "empty": ("", "it.yaml: is empty"),
    "binary": (b"\x89PNG\r\n\x1a\n\x00\xff", "it.yaml: is not UTF-8 text"),
    "a tag": ("source: !!python/object/apply:os.system ['touch ran']\n", "it.yaml:1: tags are not read"),
    "an alias bomb": (BOMB, "it.yaml:1: anchors and aliases are not read"),
}
WITHOUT_TORCH = """\
import sys
from importlib.machinery import PathFinder


class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] == "torch" else super().find_spec(name, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Without
"""


@pytest.mark.parametrize("what", SETTINGS)
def test_a_setting_that_cannot_be(stallscope, what):
    setting, *telling = SETTINGS[what]
    refusal = stallscope("run", "it.yaml", "--set", setting).refusal
    assert refusal.startswith(f"--set {setting}: ")
    assert all(each.lower() in refusal.lower() for each in telling), refusal
    assert stallscope.left() == ["it.yaml"]


@pytest.mark.parametrize("what", FILES)
def test_a_file_that_is_no_scenario(stallscope, what):
    text, telling = FILES[what]
    stallscope.write(text)
    assert telling in stallscope("run", "it.yaml").refusal
    assert stallscope.left() == ["it.yaml"]


def test_a_file_that_is_not_there(stallscope):
    refusal = stallscope("run", "other.yaml").refusal
    assert "no scenario 'other.yaml': no such file" in refusal
    assert "Shipped ones: " in refusal
    assert stallscope.left() == ["it.yaml"]


def test_a_framework_that_is_not_installed(stallscope, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_TORCH)
    path = f"{tmp_path}:{stallscope.root}"
    refusal = stallscope("run", "it.yaml", "--set", "loader=torch_workers", PYTHONPATH=path).refusal
    assert refusal == "--set loader=torch_workers: loader 'torch_workers' needs torch: pip install 'stallscope[torch]'"
    assert stallscope.left() == ["it.yaml"]


def test_an_out_that_exists_is_left_as_it_is(stallscope):
    held = stallscope.folder / "taken/held"
    held.parent.mkdir()
    held.write_text("mine")
    refusal = stallscope("run", "it.yaml", "--out", "taken").refusal
    assert refusal == "taken exists, and a run never overwrites another: choose another --out, or remove it"
    assert stallscope.left() == ["it.yaml", "taken"]
    assert (stallscope.left("taken"), held.read_text()) == (["held"], "mine")
