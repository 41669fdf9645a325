"""A sample that cannot be used ends the run and is named, or is left out and counted, whichever was asked for."""

import json
import shutil

import pytest

from tests.faults.conftest import FILES_OF_A_RUN

BAD = "000/000005.jpg"
LOADERS = {"naive": "naive", "workers": "{kind: torch_workers, num_workers: 2}"}


def cut(file, manifest):
    """Ends in the middle; the manifest takes it as it is, else it would be written anew."""
    file.write_bytes(file.read_bytes()[:40_000])
    known = json.loads(manifest.read_text())
    known["sizes_bytes"][5] = 40_000
    manifest.write_text(json.dumps(known))


def zero(file, manifest):
    """As long as it was, and without a byte of it: what a crashed file system leaves."""
    file.write_bytes(bytes(file.stat().st_size))


SCENARIO = """\
source: {{kind: ssd, path: {path}, samples: 24, image: 16, cold: false}}
loader: {loader}
model: {{kind: simulated, step: 1 ms}}
batch_size: 4
epochs: 1
on_error: {on_error}
"""


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """24 sample files, all of them good."""
    from loaders.sources import _files

    folder = tmp_path_factory.mktemp("samples") / "good"
    _files.write_missing(folder, 24, lambda done, total: None)
    return folder


@pytest.fixture
def run(stallscope, samples):
    """Runs a scenario over a copy of the samples, one of them damaged."""

    def run(damage, loader, on_error):
        if loader != "naive":
            pytest.importorskip("torch", reason="needs torch: pip install 'stallscope[torch]'")
        path = shutil.copytree(samples, stallscope.folder / "samples")
        damage(path / BAD, path / "stallscope-samples.json")
        stallscope.write(SCENARIO.format(path=path, loader=LOADERS[loader], on_error=on_error))
        return stallscope("run", "it.yaml", "--out", "a", "--json"), path / BAD

    return run


@pytest.mark.parametrize(
    ("damage", "loader", "problem"),
    [(cut, "naive", "truncated"), (zero, "workers", "cannot identify image")],
)
def test_ends_the_run_which_is_kept(stallscope, run, damage, loader, problem):
    ended, bad = run(damage, loader, "fail")
    first, *kept = ended.check_words(2).splitlines()
    assert json.loads(ended.out)["complete"] is False
    assert first.startswith(f"error: sample {bad} cannot be used: ")
    assert problem in first
    assert first.endswith(". Mend or remove it, or write `on_error: skip` to leave such samples out and count them")
    result = stallscope.read()
    assert kept == [f"{result.steps} steps were measured and are kept: python -m profiler report a"]
    assert not result.complete
    assert result.steps < 6
    assert stallscope("report", "a").check_words(0) == ""
    assert stallscope.left("a") == FILES_OF_A_RUN


def test_is_left_out_and_counted_if_asked(run):
    result = run(cut, "naive", "skip")[0].json
    assert (result["complete"], result["steps"], result["samples"]) == (True, 6, 23)
    assert (result["distinct_samples"], result["unreadable_samples"]) == (23, 1)
