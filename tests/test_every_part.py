"""The contract, for every part that there is: a new source, loader, model, rule or report is found here without an edit."""

import multiprocessing
import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from loaders import _batch
from profiler import registry
from profiler.execute import index_batches
from profiler.probe import Probe, records

SMALL = {
    "ssd": {"samples": 24, "image": 16},
    "ram": {"samples": 24, "image": 16},
    "hdd": {"samples": 24, "image": 16, "seek_ns": 10_000, "rotation_ns": 0},
    "emulated": {"samples": 24, "image": 16, "cold": False},
    "folder": {"image": 16},  # and a path: see below
    "synthetic": {"samples": 24, "shape": (16, 16, 3), "read_ns": 1000, "decode_ns": 1000},
}
LOADERS = {
    "naive": ("naive", {}),
    "torch 0 workers": ("torch_workers", {"num_workers": 0}),
    "torch 2 fork": ("torch_workers", {"num_workers": 2, "multiprocessing_context": "fork"}),
    "torch 2 spawn": ("torch_workers", {"num_workers": 2, "multiprocessing_context": "spawn"}),
    "torch 2 persistent": ("torch_workers", {"num_workers": 2, "persistent_workers": True, "prefetch_factor": 4}),
}
FAMILIES = ("source", "loader", "model", "rule", "report")


def images(folder):
    """A folder of a user's images: two classes, 12 files each."""
    for index in range(24):
        pixels = np.random.default_rng(index).integers(0, 256, (20 + index, 30, 3), dtype=np.uint8)
        (folder / "ab"[index % 2]).mkdir(exist_ok=True)
        Image.fromarray(pixels).save(folder / "ab"[index % 2] / f"{index}.jpg")
    return str(folder)


@pytest.fixture(scope="session")
def sources(tmp_path_factory):
    """Every source there is, small."""
    cache = tmp_path_factory.mktemp("cache")
    options = SMALL | {"folder": SMALL["folder"] | {"path": images(tmp_path_factory.mktemp("images"))}}
    built = {kind: registry.build("source", kind, cache, **options.get(kind, {})) for kind in registry.kinds("source")}
    for source in built.values():
        source.prepare(lambda done, total: None)
    return built


@pytest.mark.parametrize(("family", "kind"), [(family, kind) for family in FAMILIES for kind in registry.kinds(family)])
def test_says_in_its_first_line_what_it_is(family, kind):
    described = registry.describe(family, kind)
    assert described.summary.endswith(".")
    assert len(described.summary) < 130


@pytest.mark.parametrize("kind", registry.kinds("source"))
class TestSource:
    def test_is_deterministic_and_picklable(self, sources, kind):
        source = sources[kind]
        twin = pickle.loads(pickle.dumps(source))
        for index in (0, 7, len(source) - 1):
            sample = source.decode(source.read(index))
            assert sample.shape == source.sample_shape
            assert sample.dtype == np.uint8
            assert np.array_equal(sample, twin.decode(twin.read(index)))
            assert source.label(index) == twin.label(index)
            assert 0 <= source.label(index) < source.n_classes

    def test_says_what_it_is(self, sources, kind):
        described = sources[kind].describe()
        assert {"medium", "emulated", "cold", "label"} <= described.keys()
        assert described["emulated"] in (True, False)

    def test_offers_its_jpegs_only_if_reading_them_is_the_same(self, sources, kind):
        source = sources[kind]
        if kind not in ("ssd", "folder"):
            assert not hasattr(source, "jpeg_paths")
            return
        assert len(source.jpeg_paths) == len(source)
        assert Path(source.jpeg_paths[3]).read_bytes() == source.read(3)

    def test_names_its_samples(self, sources, kind):
        assert sources[kind].name(3) != sources[kind].name(4)

    def test_an_epoch_says_what_lies_in_memory_or_that_it_cannot_tell(self, sources, kind):
        share = sources[kind].start_epoch()
        assert share is None or 0 <= share <= 1


def delivered(loader, epochs):
    """What the loader yields: per batch the indices, the bytes of the samples, the labels."""
    return [
        (np.asarray(batch.index).tolist(), np.asarray(batch.x).tobytes(), np.asarray(batch.y).tolist())
        for batches in epochs
        for batch in loader.epoch(batches)
    ]


@pytest.mark.parametrize("source_kind", registry.kinds("source"))
@pytest.mark.parametrize("setting", LOADERS)
def test_every_loader_yields_the_same_batches_in_the_same_order(sources, source_kind, setting, tmp_path):
    kind, options = LOADERS[setting]
    if kind != "naive":
        pytest.importorskip("torch", reason="needs torch: pip install 'stallscope[torch]'")
    if options.get("multiprocessing_context", "spawn") not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system starts no processes by {options['multiprocessing_context']}")
    source = sources[source_kind]
    epochs = [index_batches(len(source), 5, seed=1, epoch=epoch) for epoch in range(2)]
    expected = [
        (indices, b"".join(source.decode(source.read(i)).tobytes() for i in indices), [source.label(i) for i in indices])
        for batches in epochs
        for indices in batches
    ]
    loader = registry.build("loader", kind, source, Probe(tmp_path), "fail", **options)
    assert delivered(loader, epochs) == expected
    loader.close()
    loader.close()
    assert sum(len(table) for table in records(tmp_path)) == len(expected)


def test_the_settings_above_cover_every_loader():
    assert {kind for kind, _ in LOADERS.values()} == set(registry.kinds("loader"))


class Flaky:
    """A source whose odd samples cannot be read."""

    def __len__(self):
        return 10

    def read(self, index):
        if index % 2:
            raise OSError(f"bad sector {index}")
        return bytes([index])

    def decode(self, encoded):
        return np.full((2, 2, 3), encoded[0], dtype=np.uint8)

    def label(self, index):
        return 0

    def name(self, index):
        return f"flaky/{index}.jpg"


@pytest.mark.parametrize("setting", ["naive", "torch 0 workers", "torch 2 fork"])
class TestUnreadableSamples:
    def build(self, setting, tmp_path, on_error):
        kind, options = LOADERS[setting]
        if kind != "naive":
            pytest.importorskip("torch", reason="needs torch: pip install 'stallscope[torch]'")
        return registry.build("loader", kind, Flaky(), Probe(tmp_path), on_error, **options)

    def test_are_left_out_and_counted_if_asked(self, setting, tmp_path):
        loader = self.build(setting, tmp_path, "skip")
        assert [batch[0] for batch in delivered(loader, [[[0, 1, 2], [3, 4]]])] == [[0, 2], [4]]
        tables = np.concatenate(list(records(tmp_path)))
        assert tables[:, 2:4].sum(axis=0).tolist() == [3, 2]

    def test_end_the_run_and_are_named_otherwise(self, setting, tmp_path):
        loader = self.build(setting, tmp_path, "fail")
        with pytest.raises(_batch.UnreadableSample, match=r"sample flaky/1.jpg cannot be used: bad sector 1"):
            delivered(loader, [[[0, 1, 2]]])

    def test_a_batch_of_none_but_them_ends_the_run(self, setting, tmp_path):
        loader = self.build(setting, tmp_path, "skip")
        with pytest.raises(_batch.UnreadableSample, match="none of the 2 samples of a batch can be used"):
            delivered(loader, [[[1, 3]]])
