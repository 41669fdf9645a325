"""The sample files: written once, whole or not at all, and only where they may be."""

from __future__ import annotations

import errno
import hashlib
import json
import multiprocessing
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from loaders.sources import _disk, _files


def no_progress(done: int, total: int) -> None:
    pass


def contents(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha1(file.read_bytes()).hexdigest() for file in folder.glob("*/*")}


def times_written(folder: Path) -> dict[str, int]:
    return {file.name: file.stat().st_mtime_ns for file in folder.glob("*/*")}


def needs_a_disk(folder: Path) -> None:
    file_system = _disk.identify(folder)["file_system"]
    if file_system in (None, "tmpfs", "ramfs"):
        pytest.skip(f"needs a folder on a disk to evict files from; {folder} lies on {file_system}")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    _files.write_missing(folder, 40, no_progress)
    return folder


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    shutil.copytree(written, tmp_path / "samples")
    return tmp_path / "samples"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """One megabyte, enough for some eight files."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1M", "tmpfs", str(tmp_path)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("needs root and the right to mount a small tmpfs")
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_files_are_about_110_kb_of_500_by_375(written: Path) -> None:
    sizes = [file.stat().st_size for file in written.glob("*/*.jpg")]
    assert len(sizes) == 40
    assert 105_000 < np.mean(sizes) < 115_000


def test_every_process_writes_the_same_files(written: Path, tmp_path: Path) -> None:
    writer = multiprocessing.get_context("spawn").Process(target=_files.write_missing, args=(tmp_path, 4, no_progress))
    writer.start()
    writer.join()
    others = contents(tmp_path)
    assert len(others) == 4
    assert others.items() <= contents(written).items()


def test_progress_counts_from_what_is_there_to_all(folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    _files.write_missing(folder, 43, lambda done, total: seen.append((done, total)))
    assert seen == [(41, 43), (42, 43), (43, 43)]


def test_nothing_is_written_or_reported_when_all_is_there(folder: Path) -> None:
    seen: list[int] = []
    before = (folder / _files.MANIFEST).stat().st_ino, times_written(folder)
    n_bytes = _files.write_missing(folder, 40, lambda done, total: seen.append(done))
    assert n_bytes == sum(file.stat().st_size for file in folder.glob("*/*"))
    assert ((folder / _files.MANIFEST).stat().st_ino, times_written(folder)) == before
    assert seen == []


def test_only_deleted_and_truncated_files_are_written_again(folder: Path) -> None:
    whole, before = contents(folder), times_written(folder)
    (folder / "000/000003.jpg").unlink()
    os.truncate(folder / "000/000007.jpg", 1000)
    os.truncate(folder / "000/000009.jpg", 0)
    _files.write_missing(folder, 40, no_progress)
    after = times_written(folder)
    assert contents(folder) == whole
    assert {name for name in after if after[name] != before[name]} == {"000003.jpg", "000007.jpg", "000009.jpg"}


def test_a_folder_grows_and_keeps_what_it_had(folder: Path) -> None:
    before = times_written(folder)
    _files.write_missing(folder, 44, no_progress)
    after = times_written(folder)
    assert len(after) == 44
    assert before.items() <= after.items()


def test_asking_for_fewer_uses_the_first_and_forgets_none(folder: Path) -> None:
    first = [folder / f"000/{index:06d}.jpg" for index in range(10)]
    assert _files.write_missing(folder, 10, no_progress) == sum(file.stat().st_size for file in first)
    first[0].unlink()
    _files.write_missing(folder, 10, no_progress)
    assert len(json.loads((folder / _files.MANIFEST).read_text())["sizes_bytes"]) == 40


def test_a_thousand_files_go_into_each_folder(tmp_path: Path) -> None:
    files = _files.JpegFiles(tmp_path, 3000, 64)
    assert files.name(999) == f"{tmp_path}/000/000999.jpg"
    assert files.name(1000) == f"{tmp_path}/001/001000.jpg"


def test_an_interruption_keeps_finished_files_and_leaves_no_others(tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _files.write_missing(tmp_path, 40, interrupt)
    before = times_written(tmp_path)
    assert 3 <= len(before) < 40
    assert all(name.endswith(".jpg") for name in before)
    _files.write_missing(tmp_path, 40, no_progress)
    assert before.items() <= times_written(tmp_path).items()


def test_what_a_killed_writer_left_is_removed(folder: Path) -> None:
    left_over = [folder / f".{_files.MANIFEST}.1{_files._TEMPORARY}", folder / f"000/.000041.jpg.1{_files._TEMPORARY}"]
    for file in left_over:
        file.write_bytes(b"half")
    _files.write_missing(folder, 41, no_progress)
    assert not any(file.exists() for file in left_over)


def test_a_writer_killed_before_its_first_file_can_start_again(tmp_path: Path) -> None:
    (tmp_path / f".{_files.MANIFEST}.1{_files._TEMPORARY}").write_bytes(b"{")
    _files.write_missing(tmp_path, 1, no_progress)
    assert list(contents(tmp_path)) == ["000000.jpg"]


def test_of_two_writers_one_writes_and_the_other_waits(tmp_path: Path) -> None:
    written: list[int] = []
    writers = [
        threading.Thread(target=_files.write_missing, args=(tmp_path, 8, lambda done, _: written.append(done))) for _ in "ab"
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert written == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_folder_of_other_files_is_refused_and_untouched(tmp_path: Path) -> None:
    (tmp_path / "cat.jpg").write_bytes(b"mine")
    with pytest.raises(ValueError, match=r"^path: .*cat\.jpg.*give an empty folder"):
        _files.write_missing(tmp_path, 8, no_progress)
    with pytest.raises(ValueError, match=r"^path: "):
        _files.JpegFiles(tmp_path, 8, 64)
    assert os.listdir(tmp_path) == ["cat.jpg"]


def test_a_fresh_disk_counts_as_empty(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    _files.write_missing(tmp_path, 1, no_progress)


DAMAGED = ["", "{", "[]", "null", '"x"', "{}", '{"schema": 1, "recipe": "jpeg-v1", "sizes_bytes": null}', "[" * 100_000]
OTHER_VERSION = '{"schema": 99, "recipe": "jpeg-v9", "sizes_bytes": []}'


@pytest.mark.parametrize("manifest", [*DAMAGED, OTHER_VERSION])
def test_a_manifest_that_is_damaged_or_of_another_version_is_refused(folder: Path, manifest: str) -> None:
    (folder / _files.MANIFEST).write_text(manifest)
    with pytest.raises(ValueError, match=r"^path: .*give an empty one"):
        _files.write_missing(folder, 40, no_progress)
    assert _files.clean(folder) > 0


def test_too_little_space_is_refused_before_writing(small_disk: Path) -> None:
    with pytest.raises(OSError, match="need 4 MB, 1 MB are free") as refused:
        _files.write_missing(small_disk, 40, no_progress)
    assert (refused.value.errno, refused.value.filename) == (errno.ENOSPC, str(small_disk))
    assert os.listdir(small_disk) == []


def test_a_disk_that_fills_up_keeps_finished_files_and_no_others(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_files, "_refuse_without_space", lambda folder, needed_bytes: None)
    with pytest.raises(OSError, match="No space left") as full:
        _files.write_missing(small_disk, 40, no_progress)
    assert full.value.errno == errno.ENOSPC
    assert str(full.value.filename).endswith(".jpg")
    kept = list(small_disk.glob("*/*"))
    assert 4 <= len(kept) < 10
    assert all(file.read_bytes() == _files._encode(int(file.stem)) for file in kept)


def test_a_folder_that_may_not_be_written_names_the_file(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("needs a user other than root, whom permissions do not bind")
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match=_files.MANIFEST):
        _files.write_missing(tmp_path, 1, no_progress)


def test_eviction_is_proven_on_a_disk(folder: Path) -> None:
    needs_a_disk(folder)
    names = _files.JpegFiles(folder, 40, 64).names()
    for name in names:
        with open(name, "rb+") as file:
            file.read()
            os.fsync(file.fileno())  # copied files are dirty, and dirty pages stay
    assert _files.resident_share(names) == 1.0
    _files.evict(names[:20])
    assert _files.resident_share(names[:20]) == 0.0
    assert _files.resident_share(names[20:]) == 1.0


def test_residency_of_a_file_that_is_not_ours_is_not_known(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert _files.resident_share([str(folder / "000/000000.jpg")]) is None


def test_residency_of_nothing_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert _files.resident_share([]) is None
    assert _files.resident_share([str(tmp_path / "empty")]) is None


def test_clean_removes_what_is_ours_and_returns_its_bytes(folder: Path) -> None:
    strangers = [folder / "000/cat.jpg", folder / "000/000001.txt", folder / "000/1.jpg"]
    for stranger in strangers:
        stranger.write_bytes(b"mine")
    (folder / f"000/.000040.jpg.1{_files._TEMPORARY}").write_bytes(b"half")
    n_bytes = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) - 4 * len(strangers)
    assert _files.clean(folder) == n_bytes
    assert sorted(file for file in folder.rglob("*") if file.is_file()) == sorted(strangers)


def test_clean_leaves_no_folder_behind(folder: Path) -> None:
    _files.clean(folder)
    assert not folder.exists()


def test_clean_refuses_a_folder_without_our_manifest(tmp_path: Path) -> None:
    (tmp_path / "000").mkdir()
    (tmp_path / "000/000000.jpg").write_bytes(b"mine")
    with pytest.raises(ValueError, match="holds no sample files of ours"):
        _files.clean(tmp_path)
    assert (tmp_path / "000/000000.jpg").exists()


def test_the_cache_is_listed_folder_by_folder(folder: Path) -> None:
    (folder.parent / "other").mkdir()
    n_bytes = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    assert _files.sample_folders(folder.parent) == [(folder, 41, n_bytes)]
    assert _files.sample_folders(folder / "nowhere") == []


def test_classes_can_be_told_apart_in_thumbnails(written: Path) -> None:
    """Of a sample, the nearest mean of the other samples is that of its own class."""
    files = _files.JpegFiles(written, 40, 64)
    thumbnails = np.stack([files.decode(files.read(index)).astype(float) for index in range(40)])
    for index in range(40):
        others = [[other for other in range(label, 40, 10) if other != index] for label in range(10)]
        distances = [np.square(thumbnails[index] - thumbnails[other].mean(axis=0)).mean() for other in others]
        assert np.argmin(distances) == files.label(index)


def test_a_file_that_has_vanished_is_left_to_its_reader(folder: Path) -> None:
    """With `on_error: skip` the run goes on: evicting and proving must not be what ends it."""
    names = [str(path) for path in sorted(folder.rglob("*.jpg"))]
    os.unlink(names[0])
    _files.evict(names)
    assert _files.resident_share(names) == _files.resident_share(names[1:])
