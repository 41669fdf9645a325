"""The contract, for every part that there is: a new source, loader, model, rule or report is found here without an edit."""

import multiprocessing
import pickle
import sys

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
    "hdd": {"samples": 24, "image": 16, "seek_ns": 100_000, "rotation_ns": 0},
    "emulated": {"samples": 24, "image": 16},
    "folder": {"image": 16},
    "synthetic": {"samples": 24, "shape": (16, 16, 3), "read_ns": 1000, "decode_ns": 1000},
}
LOADERS = {
    "naive": ("naive", {}),
    "torch 0 workers": ("torch_workers", {"num_workers": 0}),
    "torch 2 fork": ("torch_workers", {"num_workers": 2, "multiprocessing_context": "fork"}),
    "torch 2 spawn": ("torch_workers", {"num_workers": 2, "multiprocessing_context": "spawn"}),
    "threads 1": ("threads", {"num_threads": 1, "buffer_batches": 1}),
    "threads 3": ("threads", {"num_threads": 3}),
    "tf": ("tf_prefetch", {}),
    "tf python": ("tf_prefetch", {"ops": "python", "num_parallel_calls": 2, "prefetch": 0}),
    "tf pool": ("tf_prefetch", {"ops": "python", "private_threadpool_size": 3, "num_parallel_calls": 3, "prefetch": 2}),
    "tf cache": ("tf_prefetch", {"cache": True}),
    "torch 2 persistent": ("torch_workers", {"num_workers": 2, "persistent_workers": True, "prefetch_factor": 4}),
}
FAMILIES = ("source", "loader", "model", "rule", "report")


@pytest.fixture(scope="session")
def sources(tmp_path_factory):
    """Every source there is, small."""
    cache = tmp_path_factory.mktemp("cache")
    given = {"folder": {"path": str(own_images(tmp_path_factory.mktemp("own")))}}
    options = {kind: {**SMALL.get(kind, {}), **given.get(kind, {})} for kind in registry.kinds("source")}
    built = {kind: registry.build("source", kind, cache, **options[kind]) for kind in options}
    for source in built.values():
        source.prepare(lambda done, total: None)
    return built


def own_images(folder):
    """What a user may have: two classes, JPEGs of any size."""
    rng = np.random.default_rng(0)
    for i in range(24):
        path = folder / ("cats", "dogs")[i % 2] / f"{i}.jpg"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (20 + i, 90 - i, 3), dtype=np.uint8)).save(path)
    return folder


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


def available(setting, monkeypatch):
    """Kind and options of a setting; skips what this machine does not have."""
    kind, options = LOADERS[setting]
    for prefix, framework in (("torch", "torch"), ("tf", "tensorflow")):
        if kind.startswith(prefix):
            pytest.importorskip(framework, reason=f"needs {framework}: pip install 'stallscope[{framework}]'")
    if options.get("multiprocessing_context", "spawn") not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system starts no processes by {options['multiprocessing_context']}")
    if kind.startswith("torch"):  # it refuses to fork beside tensorflow; these workers never call it
        monkeypatch.setitem(sys.modules, "tensorflow", None)
    return kind, options


@pytest.mark.parametrize("source_kind", registry.kinds("source"))
@pytest.mark.parametrize("setting", LOADERS)
def test_every_loader_yields_the_same_batches_in_the_same_order(sources, source_kind, setting, tmp_path, monkeypatch):
    kind, options = available(setting, monkeypatch)
    source = sources[source_kind]
    epochs = [index_batches(len(source), 5, seed=1, epoch=epoch) for epoch in range(2)]
    expected = [
        (indices, b"".join(source.decode(source.read(i)).tobytes() for i in indices), [source.label(i) for i in indices])
        for batches in epochs
        for indices in batches
    ]
    loader = registry.build("loader", kind, source, Probe(tmp_path), "fail", **options)
    native = setting == "tf" and hasattr(source, "jpeg_paths")
    assert_same(delivered(loader, epochs), expected, levels=3 if native else 0)
    loader.close()
    loader.close()
    if not native:  # without Python nobody can tell what a batch cost
        assert sum(len(table) for table in records(tmp_path)) == len(expected)


def assert_same(given, expected, levels):
    """Indices, labels and samples; these within so many levels of 255."""
    assert [(index, y) for index, _, y in given] == [(index, y) for index, _, y in expected]
    for (_, one, _), (_, other, _) in zip(given, expected, strict=True):
        apart = np.abs(np.frombuffer(one, np.uint8).astype(int) - np.frombuffer(other, np.uint8))
        assert apart.max() <= levels


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


@pytest.mark.parametrize("setting", ["naive", "torch 0 workers", "torch 2 fork", "threads 3", "tf python"])
class TestUnreadableSamples:
    @pytest.fixture
    def build(self, setting, tmp_path, monkeypatch):
        kind, options = available(setting, monkeypatch)
        return lambda on_error: registry.build("loader", kind, Flaky(), Probe(tmp_path), on_error, **options)

    def test_are_left_out_and_counted_if_asked(self, build, tmp_path):
        loader = build("skip")
        assert [batch[0] for batch in delivered(loader, [[[0, 1, 2], [3, 4]]])] == [[0, 2], [4]]
        tables = np.concatenate(list(records(tmp_path)))
        assert tables[:, 2:4].sum(axis=0).tolist() == [3, 2]

    def test_end_the_run_and_are_named_otherwise(self, build, tmp_path):
        loader = build("fail")
        with pytest.raises(_batch.UnreadableSample, match=r"sample flaky/1.jpg cannot be used: bad sector 1"):
            delivered(loader, [[[0, 1, 2]]])

    def test_a_batch_of_none_but_them_ends_the_run(self, build, tmp_path):
        loader = build("skip")
        with pytest.raises(_batch.UnreadableSample, match="none of the 2 samples of a batch can be used"):
            delivered(loader, [[[1, 3]]])
