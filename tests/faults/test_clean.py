"""`clean` removes what sources wrote, and nothing else."""

import shutil

import pytest

from loaders.sources import _files


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A cache with one folder of three samples."""
    cache = tmp_path_factory.mktemp("written")
    _files.write_missing(cache / "jpeg-v1", 3, lambda done, total: None)
    return cache


@pytest.fixture
def cache(written, tmp_path):
    return shutil.copytree(written, tmp_path / "cache")


def test_removes_our_files_and_no_other(stallscope, cache):
    (cache / "jpeg-v1/notes.txt").write_text("mine")
    (cache / "other").mkdir()
    ended = stallscope("clean", "--yes")
    assert ended.check_words(0) == ""
    first, last = ended.out.splitlines()
    assert first.startswith(f"{cache}/jpeg-v1: 4 files, ")
    assert last.startswith(f"{cache}/jpeg-v1: ")
    assert last.endswith(" freed")
    assert sorted(path.relative_to(cache).as_posix() for path in cache.rglob("*")) == ["jpeg-v1", "jpeg-v1/notes.txt", "other"]


def test_a_folder_that_is_not_ours_is_refused(stallscope, cache):
    (stallscope.folder / "photos").mkdir()
    (stallscope.folder / "photos/000000.jpg").write_text("mine")
    refusal = stallscope("clean", "--yes", "photos", cache / "jpeg-v1").refusal
    assert refusal == f"{stallscope.folder}/photos: holds no sample files of ours, so nothing is removed"
    assert stallscope.left("photos") == ["000000.jpg"]
    assert len(list(cache.rglob("*.jpg"))) == 3


def test_asks_first_and_takes_silence_for_a_no(stallscope, cache):
    ended = stallscope("clean")
    assert "Traceback" not in ended.err
    assert "Remove them?" in ended.out
    assert len(list(cache.rglob("*.jpg"))) == 3


def test_an_empty_cache_has_nothing_to_remove(stallscope, cache):
    shutil.rmtree(cache)
    assert stallscope("clean", "--yes") == (0, f"no sample files in {cache}\n", "")
