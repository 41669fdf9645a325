"""Sample files behind an emulated device."""

from __future__ import annotations

import json
import pickle
import time
from pathlib import Path
from typing import Any

import pytest

from loaders.sources import emulated, hdd, ssd
from loaders.sources._device import Figures
from tests.fakes import MS


def no_progress(done: int, total: int) -> None:
    pass


@pytest.fixture(scope="module")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cache_dir = tmp_path_factory.mktemp("cache")
    ssd.build(cache_dir, samples=12, cold=False).prepare(no_progress)
    return cache_dir


def built(cache_dir: Path, **options: Any) -> emulated.EmulatedFiles:
    source = emulated.build(cache_dir, samples=12, latency_ns=5 * MS, **options)
    source.prepare(no_progress)
    return source


def taken_ns(source: emulated.EmulatedFiles, index: int) -> int:
    start_ns = time.perf_counter_ns()
    source.read(index)
    return time.perf_counter_ns() - start_ns


def test_a_read_returns_the_file_and_takes_what_the_device_would(cache_dir: Path) -> None:
    source = built(cache_dir)
    assert source.read(5) == Path(source.name(5)).read_bytes()
    assert min(taken_ns(source, index) for index in range(12)) > 4 * MS


def test_cold_reads_always_go_to_the_device(cache_dir: Path) -> None:
    source = built(cache_dir)
    for _ in range(2):
        assert source.start_epoch() == 0.0
        assert taken_ns(source, 1) > 4 * MS


def test_what_was_read_once_is_kept_unless_cold(cache_dir: Path) -> None:
    source = built(cache_dir, cold=False)
    copy = pickle.loads(pickle.dumps(source))
    assert source.start_epoch() == 0.0
    assert taken_ns(source, 1) > 4 * MS
    assert min(taken_ns(copy, 1) for _ in range(5)) < 4 * MS
    size = len(source.read(1))
    assert source.start_epoch() == pytest.approx(size / source.describe()["bytes"])
    for index in range(12):
        source.read(index)
    assert source.start_epoch() == 1.0


@pytest.mark.parametrize("device", emulated.PRESETS)
def test_a_device_says_what_it_is_and_where_its_figures_come_from(cache_dir: Path, device: str) -> None:
    described = emulated.build(cache_dir, device=device).describe()
    assert (described["medium"], described["emulated"]) == ("emulated", True)
    assert f"on an emulated {device}" in described["label"]
    assert described["emulated_device"]["source"] == emulated.PRESETS[device].source
    json.dumps(described)


def test_own_figures_replace_those_of_the_device(cache_dir: Path) -> None:
    source = emulated.build(cache_dir, device="nfs", latency_ns=1, bandwidth_bytes_per_s=2, requests_in_flight=3)
    assert source.figures == Figures(1, 2, 3)
    assert source.describe()["label"].endswith("on an emulated device, read cold")
    partly = emulated.build(cache_dir, device="nfs", latency_ns=1, bandwidth_bytes_per_s=2)
    assert partly.figures == Figures(1, 2, 16)
    assert "on an emulated nfs with its latency, bandwidth replaced" in partly.describe()["label"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "tape"}, "device: no device 'tape'. It can be: sata_ssd, nvme, nfs, object_store"),
        ({"bandwidth_bytes_per_s": 0}, "bandwidth: must be above 0"),
        ({"requests_in_flight": 0}, "requests_in_flight=0: must be 1 to 4,096"),
        ({"samples": 0}, "samples=0: must be"),
    ],
)
def test_a_bad_option_is_named(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        emulated.build(tmp_path, **options)


class TestHardDisk:
    def test_is_emulated_and_labelled_so_where_the_disk_does_not_rotate(self, cache_dir: Path) -> None:
        source = hdd.build(cache_dir, samples=12)
        assert isinstance(source, emulated.EmulatedFiles)
        assert source.figures == Figures(12_670_000, 180_000_000, 1, 1_500_000)
        assert source.describe()["label"] == "12 JPEG files, on an emulated hard disk, read cold"

    @pytest.mark.parametrize(("flag", "virtual", "real"), [(True, False, True), (True, True, False), (False, False, False)])
    def test_is_real_only_where_a_disk_rotates_for_sure(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag: bool, virtual: bool, real: bool
    ) -> None:
        disk = {"file_system": "ext4", "device": "sda", "virtual": virtual, "rotational_flag": flag}
        monkeypatch.setattr(hdd._disk, "identify", lambda folder: disk)
        source = hdd.build(tmp_path, samples=12, path=str(tmp_path))
        assert source.describe()["emulated"] is not real
        assert source.describe()["medium"] == ("disk" if real else "emulated")

    def test_serves_sample_after_sample_without_seeking(self, cache_dir: Path) -> None:
        source = hdd.build(cache_dir, samples=12, seek_ns=50 * MS)
        source.prepare(no_progress)
        assert isinstance(source, emulated.EmulatedFiles)
        source.read(0)
        assert min(taken_ns(source, index) for index in range(1, 12)) < 25 * MS
        assert taken_ns(source, 3) > 50 * MS
