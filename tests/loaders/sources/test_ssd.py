"""Sample files read from the disk they lie on."""

from __future__ import annotations

import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from loaders.sources import _disk, ssd


def no_progress(done: int, total: int) -> None:
    pass


@pytest.fixture(scope="module")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with twelve samples in it; where the temporary folder lies in memory, sources in it cannot be cold."""
    cache_dir = tmp_path_factory.mktemp("cache")
    ssd.build(cache_dir, samples=12, cold=False).prepare(no_progress)
    return cache_dir


def test_samples_are_small_writable_pixels(cache_dir: Path) -> None:
    source = ssd.build(cache_dir, samples=12, image=48, cold=False)
    sample = source.decode(source.read(3))
    assert sample.shape == source.sample_shape == (48, 48, 3)
    assert sample.dtype == np.uint8
    assert sample.flags.writeable
    assert len(source) == 12
    assert [source.label(index) for index in range(12)] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]
    assert source.name(11) == str(cache_dir / "jpeg-v1/000/000011.jpg")


def test_an_epoch_starts_cold(cache_dir: Path) -> None:
    if _disk.identify(cache_dir)["file_system"] in (None, "tmpfs", "ramfs"):
        pytest.skip(f"needs a cache on a disk; {cache_dir} lies in memory")
    source = ssd.build(cache_dir, samples=12)
    source.prepare(no_progress)
    assert source.start_epoch() == 0.0
    for index in range(12):
        source.read(index)
    assert ssd.build(cache_dir, samples=12, cold=False).start_epoch() == 1.0
    assert source.start_epoch() == 0.0


def test_a_source_says_what_it_is(cache_dir: Path) -> None:
    source = ssd.build(cache_dir, samples=12, cold=False)
    assert source.describe()["disk"]["sequential_bytes_per_s"] is None
    source.prepare(no_progress)
    described = source.describe()
    disk = _disk.label(described["disk"])
    assert described["label"] == f"12 JPEG files, 1 MB, on {disk}, read through the page cache"
    assert (described["medium"], described["emulated"], described["cold"]) == ("disk", False, False)
    assert described["bytes"] == sum(len(source.read(index)) for index in range(12))
    json.dumps(described)


def test_a_folder_in_memory_cannot_be_cold() -> None:
    if _disk.identify(Path("/dev/shm"))["file_system"] != "tmpfs":
        pytest.skip("needs /dev/shm on tmpfs")
    with pytest.raises(ValueError, match=r"^cold: /dev/shm/x lies in memory \(tmpfs\): give a path .* set cold: false$"):
        ssd.build(Path("/nowhere"), path="/dev/shm/x")
    ssd.build(Path("/nowhere"), path="/dev/shm/x", cold=False)


@pytest.mark.parametrize(("option", "value"), [("samples", 0), ("image", 0), ("image", 4097)])
def test_a_bad_option_is_named(tmp_path: Path, option: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"^{option}={value}: must be"):
        ssd.build(tmp_path, cold=False, **{option: value})  # type: ignore[arg-type]


def test_bytes_that_are_no_image_are_refused(cache_dir: Path) -> None:
    source = ssd.build(cache_dir, samples=12, cold=False)
    for encoded in (b"", b"not an image", source.read(0)[:5000]):
        with pytest.raises((OSError, ValueError)):
            source.decode(encoded)


def test_a_missing_file_is_named(cache_dir: Path) -> None:
    source = ssd.build(cache_dir, samples=2000, cold=False)
    with pytest.raises(FileNotFoundError, match=r"001999\.jpg"):
        source.read(1999)


def test_threads_and_copies_read_the_same_samples(cache_dir: Path) -> None:
    source = ssd.build(cache_dir, samples=12, cold=False)
    copy = pickle.loads(pickle.dumps(source))
    alone = [source.decode(source.read(index)) for index in range(12)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda index: copy.decode(copy.read(index % 12)), range(48)))
    np.testing.assert_array_equal(np.stack(together), np.stack(alone * 4))


def test_direct_reads_give_the_bytes_of_the_file_and_are_no_files_for_others(tmp_path):
    plain = ssd.build(tmp_path, samples=3, image=8, cold=False)
    plain.prepare(lambda done, total: None)
    try:
        direct = ssd.build(tmp_path, samples=3, image=8, o_direct=True)
    except ValueError as error:
        pytest.skip(f"needs a file system that takes O_DIRECT: {error}")
    direct.prepare(lambda done, total: None)
    assert [direct.read(i) for i in range(3)] == [plain.read(i) for i in range(3)]
    assert "read with O_DIRECT" in direct.describe()["label"]
    assert not hasattr(direct, "jpeg_paths")
    assert direct.start_epoch() is None


def test_direct_reads_are_refused_where_there_is_no_device(tmp_path):
    memory = next((place for place in ("/dev/shm", "/run") if _disk.identify(Path(place))["file_system"] == "tmpfs"), None)
    if memory is None:
        pytest.skip("needs a file system in memory")
    with pytest.raises(ValueError, match=r"o_direct: the file system of .* reads no device directly"):
        ssd.build(tmp_path, samples=3, image=8, o_direct=True, cold=False, path=f"{memory}/stallscope-test-nowhere")
