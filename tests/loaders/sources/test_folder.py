"""A user's own images: whatever lies in the folder, samples come out of it or a message that says why not."""

from __future__ import annotations

import errno
import io
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from loaders.sources import _disk, folder
from loaders.sources.folder import Folder

NOWHERE = Path("/nowhere")


def built(path: Path, **options: Any) -> Folder:
    return folder.build(NOWHERE, path=str(path), image=8, **options)


def put(path: Path, mode: str = "RGB", size: tuple[int, int] = (20, 10), **options: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size).save(path, **options)


def names(source: Folder) -> list[tuple[str, int]]:
    return [(os.path.relpath(source.name(i), source.folder), source.label(i)) for i in range(len(source))]


def test_sub_folders_are_classes_and_deeper_files_belong_to_them(tmp_path: Path) -> None:
    for name in ("dog/2.png", "dog/old/1.jpg", "cat/b.webp", "cat/a.JPG", "ant/.hidden.png", ".git/x.png", "outside.png"):
        put(tmp_path / name)
    (tmp_path / "cat/notes.txt").write_text("")
    (tmp_path / "empty").mkdir()
    source = built(tmp_path)
    assert names(source) == [("cat/a.JPG", 0), ("cat/b.webp", 0), ("dog/2.png", 1), ("dog/old/1.jpg", 1)]
    assert source.n_classes == 2
    described = source.describe()
    assert described["left_out"] == {"not images": 1, "outside the class folders": 1}
    assert described["label"].startswith("4 images in 2 classes, on ")
    assert described["label"].endswith(" (left out: 1 not images, 1 outside the class folders)")
    json.dumps(described)


def test_files_without_sub_folders_are_one_class(tmp_path: Path) -> None:
    put(tmp_path / "b.png")
    put(tmp_path / "a.png")
    source = built(tmp_path)
    assert names(source) == [("a.png", 0), ("b.png", 0)]
    assert source.n_classes >= 2
    assert "2 images in 1 class" in source.describe()["label"]


def test_links_are_followed_loops_are_not_and_broken_ones_are_counted(tmp_path: Path) -> None:
    put(tmp_path / "elsewhere/1.png")
    put(tmp_path / "data/a/2.png")
    (tmp_path / "data/b").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "data/a/3.png").symlink_to(tmp_path / "elsewhere/1.png")
    (tmp_path / "data/a/loop").symlink_to(tmp_path / "data/a")
    (tmp_path / "data/a/gone.png").symlink_to(tmp_path / "gone")
    (tmp_path / "data/a/itself.png").symlink_to(tmp_path / "data/a/itself.png")
    source = built(tmp_path / "data")
    assert names(source) == [("a/2.png", 0), ("a/3.png", 0), ("b/1.png", 1)]
    assert source.describe()["left_out"] == {"broken links or no files": 2}


def test_fewer_samples_are_spaced_evenly_over_all_classes(tmp_path: Path) -> None:
    for i in range(10):
        put(tmp_path / "ab"[i // 5] / f"{i}.png")
    assert names(built(tmp_path, samples=4)) == [("a/0.png", 0), ("a/2.png", 0), ("b/5.png", 1), ("b/7.png", 1)]
    assert "4 of 10 images in 2 classes" in built(tmp_path, samples=4).describe()["label"]
    assert len(built(tmp_path, samples=99)) == 10


@pytest.mark.parametrize("make", [lambda path: None, Path.touch, Path.mkdir], ids=["missing", "a file", "empty"])
def test_a_path_without_images_is_refused(tmp_path: Path, make: Any) -> None:
    path = tmp_path / "images"
    make(path)
    with pytest.raises(ValueError, match=f"^path: {path}"):
        built(path)


def test_a_folder_of_other_files_says_how_many(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    with pytest.raises(ValueError, match=r"holds no images \(left out: 1 not images\)"):
        built(tmp_path)


def test_a_folder_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "a/1.png")
    (tmp_path / "b").mkdir()
    scandir = os.scandir

    def refuse(path: str) -> Any:
        if str(path).endswith("/b"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(ValueError, match=rf"^path: {tmp_path}/b: Permission denied\. Give"):
        built(tmp_path)


@pytest.mark.parametrize(("option", "value"), [("image", 0), ("image", 4097), ("samples", 0)])
def test_a_bad_option_is_named(tmp_path: Path, option: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"^{option}={value}: must be"):
        folder.build(NOWHERE, path=str(tmp_path), **{option: value})  # type: ignore[arg-type]


def encoded(mode: str, suffix: str, fill: Any = None, **options: Any) -> bytes:
    file = io.BytesIO()
    image = Image.new(mode, (20, 10)) if fill is None else Image.new(mode, (20, 10), fill)
    image.save(file, suffix, **options)
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "pixel"),
    [
        (encoded("1", "png", 1), (255, 255, 255)),
        (encoded("L", "png", 7), (7, 7, 7)),
        (encoded("LA", "png", (7, 0)), (7, 7, 7)),
        (encoded("RGBA", "png", (1, 2, 3, 9)), (1, 2, 3)),
        (encoded("P", "png", 0), (0, 0, 0)),
        (encoded("P", "png", 0, transparency=b"\x00\x80"), (0, 0, 0)),
        (encoded("CMYK", "tiff", (0, 0, 0, 255)), (0, 0, 0)),
        (encoded("I;16", "png", 0x8000), (128, 128, 128)),
        (encoded("F", "tiff", 3.5), (0, 0, 0)),
    ],
    ids=["1", "L", "LA", "RGBA", "P", "P with transparency", "CMYK", "I;16", "F"],
)
def test_every_mode_becomes_rgb(tmp_path: Path, content: bytes, pixel: tuple[int, int, int]) -> None:
    put(tmp_path / "a.png")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sample = built(tmp_path).decode(content)
    assert (sample.shape, sample.dtype, sample.flags.writeable) == ((8, 8, 3), np.uint8, True)
    assert sample[4, 4].tolist() == list(pixel)


def test_of_an_animation_the_first_frame_is_taken(tmp_path: Path) -> None:
    first, second = Image.new("RGB", (9, 9), (255, 0, 0)), Image.new("RGB", (9, 9), (0, 0, 255))
    first.save(tmp_path / "a.gif", save_all=True, append_images=[second])
    source = built(tmp_path)
    assert source.decode(source.read(0))[4, 4].tolist() == [255, 0, 0]


def test_whatever_pillow_raises_becomes_an_error_of_the_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "a.png")
    source = built(tmp_path)
    png, tiff = encoded("RGB", "png"), encoded("RGB", "tiff")
    damaged = [
        b"",
        b"text",
        png[:40],
        png[:-20],
        png[:20] + b"\xff" * 9 + png[29:],
        tiff[: len(tiff) // 2],
        b"GIF89a" + bytes(9),
    ]
    rng = np.random.default_rng(0)
    for whole in (png, tiff, encoded("RGB", "gif"), encoded("RGB", "webp"), encoded("RGB", "bmp"), encoded("RGB", "jpeg")):
        for _ in range(60):
            bad = bytearray(whole)
            for at in rng.integers(0, len(bad), 6):
                bad[at] = rng.integers(0, 256)
            damaged.append(bytes(bad))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refused = 0
        for content in damaged:
            try:
                source.decode(content)
            except (OSError, ValueError):
                refused += 1
    assert refused > 50
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 50)
    with pytest.raises(ValueError, match=r"cannot be decoded \(DecompressionBombError: "):
        source.decode(png)


def test_a_file_that_has_gone_is_named_by_its_reader_alone(tmp_path: Path) -> None:
    put(tmp_path / "a.jpg")
    put(tmp_path / "b.jpg")
    source = built(tmp_path)
    (tmp_path / "a.jpg").unlink()
    source.prepare(lambda done, total: None)
    source.start_epoch()
    with pytest.raises(FileNotFoundError, match=r"a\.jpg"):
        source.read(0)


def test_an_epoch_starts_cold_if_asked(tmp_path: Path) -> None:
    if _disk.identify(tmp_path)["file_system"] in (None, "tmpfs", "ramfs"):
        pytest.skip(f"needs a folder on a disk; {tmp_path} lies in memory")
    put(tmp_path / "a.png")
    with open(tmp_path / "a.png", "rb+") as file:
        os.fsync(file.fileno())
    assert built(tmp_path).start_epoch() == 1.0
    assert built(tmp_path, cold=True).start_epoch() == 0.0


def test_paths_of_jpegs_are_offered_only_where_all_are(tmp_path: Path) -> None:
    put(tmp_path / "a.jpg")
    put(tmp_path / "b.JPEG")
    assert built(tmp_path).jpeg_paths == [f"{tmp_path}/a.jpg", f"{tmp_path}/b.JPEG"]
    put(tmp_path / "c.png")
    assert not hasattr(built(tmp_path), "jpeg_paths")
