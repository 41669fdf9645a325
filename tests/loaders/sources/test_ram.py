"""The same samples in memory."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import numpy as np
import psutil
import pytest

from loaders.sources import _files, ram, ssd


def no_progress(done: int, total: int) -> None:
    pass


@pytest.fixture(scope="module")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cache_dir = tmp_path_factory.mktemp("cache")
    _files.write_missing(cache_dir / "jpeg-v1", 12, no_progress)
    return cache_dir


@pytest.mark.parametrize("hold", ["encoded", "decoded"])
def test_samples_equal_those_on_disk_to_the_bit(cache_dir: Path, hold: Literal["encoded", "decoded"]) -> None:
    on_disk = ssd.build(cache_dir, samples=12, cold=False)
    source = ram.build(cache_dir, samples=12, hold=hold)
    source.prepare(no_progress)
    source = pickle.loads(pickle.dumps(source))
    for index in range(12):
        sample = source.decode(source.read(index))
        np.testing.assert_array_equal(sample, on_disk.decode(on_disk.read(index)))
        assert (source.label(index), source.name(index)) == (on_disk.label(index), on_disk.name(index))
        assert sample.flags.writeable


def test_reading_needs_no_file_any_more(tmp_path: Path) -> None:
    source = ram.build(tmp_path, samples=2)
    source.prepare(no_progress)
    _files.clean(source.folder)
    assert source.decode(source.read(1)).shape == (64, 64, 3)


def test_progress_covers_writing_and_loading(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    ram.build(tmp_path, samples=3).prepare(lambda done, total: seen.append((done, total)))
    assert seen == [(1, 6), (2, 6), (3, 6), (4, 6), (5, 6), (6, 6)]


def test_a_source_says_what_it_holds(cache_dir: Path) -> None:
    source = ram.build(cache_dir, samples=12, image=256, hold="decoded")
    source.prepare(no_progress)
    assert source.start_epoch() is None
    assert source.describe()["label"] == "12 decoded samples, 2 MB, in memory"
    assert source.describe()["bytes"] == 12 * 256 * 256 * 3
    json.dumps(source.describe())


def test_more_than_half_of_the_free_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=22_000_000))
    ram.build(tmp_path, samples=100)
    with pytest.raises(ValueError, match=r"^samples=101: would fill over half of the memory that is free; at most 100 fit$"):
        ram.build(tmp_path, samples=101)
    ram.build(tmp_path, samples=101, hold="decoded")


def test_an_unknown_way_to_hold_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^hold=zipped: must be encoded or decoded$"):
        ram.build(tmp_path, hold="zipped")  # type: ignore[arg-type]


def test_bytes_of_another_size_are_no_decoded_sample(cache_dir: Path) -> None:
    with pytest.raises(ValueError, match="reshape"):
        ram.build(cache_dir, samples=12, hold="decoded").decode(b"short")
