"""A user's own images, as users keep them: of any size and format, with strangers among them."""

import contextlib
import os
import pickle

import numpy as np
import pytest
from PIL import Image

from loaders.sources import folder


def save(path, size=(20, 10), mode="RGB", **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).convert(mode).save(path, **options)


@pytest.fixture
def images(tmp_path):
    root = tmp_path / "images"
    for kind in ("dog", "cat"):
        for i in range(3):
            save(root / kind / f"{i}.jpg", size=(20 + i, 10 + i))
    return root


def build(path, **options):
    return folder.build(None, path=str(path), **options)


def test_a_class_is_a_folder_in_the_order_of_the_alphabet(images):
    source = build(images, image=8)
    assert source.classes == ["cat", "dog"]
    assert [(os.path.relpath(source.name(i), images), source.label(i)) for i in range(len(source))] == [
        *[(f"cat/{i}.jpg", 0) for i in range(3)],
        *[(f"dog/{i}.jpg", 1) for i in range(3)],
    ]
    assert source.decode(source.read(2)).shape == (8, 8, 3)


def test_nested_images_belong_to_the_folder_at_the_top(images):
    save(images / "dog/puppies/young/a.png")
    assert [label for name, label in build(images)._files if "young" in name] == [1]


def test_images_without_folders_are_one_class(tmp_path):
    save(tmp_path / "flat/a.png")
    source = build(tmp_path / "flat")
    assert (source.classes, source.label(0)) == (["flat"], 0)


def test_what_is_no_image_is_left_out_and_counted(images):
    (images / "dog/notes.txt").write_text("woof")
    (images / "dog/.hidden.jpg").write_text("x")
    (images / "dog/gone.jpg").symlink_to("nowhere.jpg")
    (images / "empty").mkdir()
    save(images / "loose.jpg")
    source = build(images)
    assert len(source) == 6
    assert source.classes == ["cat", "dog"]
    said = source.describe()["label"]
    assert "left out: 1 files that are no images; left out: 1 broken links" in said
    assert "left out: 1 images beside the class folders" in said


def test_links_are_followed_and_loops_are_not(images, tmp_path):
    save(tmp_path / "elsewhere/a.jpg")
    (images / "linked").symlink_to(tmp_path / "elsewhere")
    (images / "dog/again").symlink_to(images / "dog")
    (images / "dog/up").symlink_to(images)
    source = build(images)
    assert source.classes == ["cat", "dog", "linked"]
    assert len(source) == 7


@pytest.mark.parametrize(
    ("mode", "suffix"),
    [
        ("RGB", "png"),
        ("P", "png"),
        ("RGBA", "png"),
        ("LA", "png"),
        ("L", "png"),
        ("1", "png"),
        ("CMYK", "jpg"),
        ("P", "gif"),
        ("RGB", "bmp"),
        ("RGB", "webp"),
        ("RGB", "tiff"),
        ("L", "pgm"),
    ],
)
def test_any_format_and_mode_becomes_rgb_of_one_shape(tmp_path, mode, suffix):
    save(tmp_path / f"a/x.{suffix}", mode=mode)
    source = build(tmp_path, image=5)
    sample = source.decode(source.read(0))
    assert (sample.shape, sample.dtype) == ((5, 5, 3), np.uint8)
    assert sample.flags.writeable


def test_sixteen_bits_keep_their_upper_eight(tmp_path):
    (tmp_path / "a").mkdir()
    Image.fromarray(np.full((4, 4), 0x8000, dtype=np.uint16)).save(tmp_path / "a/x.png")
    source = build(tmp_path, image=4)
    assert source.decode(source.read(0)).mean() == 128


def test_what_is_transparent_lies_on_white(tmp_path):
    (tmp_path / "a").mkdir()
    Image.new("RGBA", (4, 4), (0, 0, 0, 0)).save(tmp_path / "a/x.png")
    source = build(tmp_path, image=4)
    assert source.decode(source.read(0)).min() == 255


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "bomb"])
def test_a_broken_image_is_a_value_error(images, monkeypatch, damage):
    path = images / "cat/0.jpg"
    whole = path.read_bytes()
    if damage == "bomb":
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    else:
        path.write_bytes({"cut": whole[: len(whole) // 2], "empty": b"", "text": b"no image" * 50}[damage])
    source = build(images)
    with pytest.raises(ValueError, match="Error"):
        source.decode(source.read(0))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seed", range(30))
def test_bytes_gone_wrong_are_pixels_or_a_value_error(tmp_path, seed):
    rng = np.random.default_rng(seed)
    suffix = ["png", "jpg", "gif", "tiff", "webp", "bmp"][seed % 6]
    save(tmp_path / f"a/x.{suffix}")
    source = build(tmp_path, image=4)
    encoded = bytearray(source.read(0))
    for at in rng.integers(0, len(encoded), 20):
        encoded[at] = rng.integers(0, 256)
    with contextlib.suppress(ValueError):
        assert source.decode(bytes(encoded)).shape == (4, 4, 3)


def test_a_part_is_drawn_from_all_classes_and_is_the_same_each_time(images):
    few = build(images, samples=4)
    assert len(few) == 4
    assert few._files == build(images, samples=4)._files
    assert {label for _, label in few._files} == {0, 1}


def test_it_may_be_sent_to_a_worker(images):
    source = build(images, image=4)
    twin = pickle.loads(pickle.dumps(source))
    assert np.array_equal(twin.decode(twin.read(1)), source.decode(source.read(1)))


def test_only_jpegs_may_be_read_by_others(images):
    assert build(images).jpeg_paths == [name for name, _ in build(images)._files]
    save(images / "cat/x.png")
    assert not hasattr(build(images), "jpeg_paths")


def test_cold_files_leave_the_page_cache(images):
    source = build(images, cold=True)
    source.prepare(lambda done, total: None)
    share = source.start_epoch()
    assert share is None or share <= 1


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere", "No such file or directory: give a folder of images, one folder a class"),
        ("images/cat/0.jpg", "Not a directory: give a folder of images"),
        ("hollow", r"holds no images: give a folder of images"),
        ("texts", r"holds no images \(2 files that are no images\): give"),
    ],
)
def test_a_folder_without_images_is_refused(images, tmp_path, path, message):
    (tmp_path / "hollow").mkdir()
    (tmp_path / "texts/a").mkdir(parents=True)
    for name in ("a/x.txt", "y.txt"):
        (tmp_path / "texts" / name).write_text("x")
    with pytest.raises(ValueError, match=rf"^path: .*{message}"):
        build(tmp_path / path)


@pytest.mark.parametrize(("options", "message"), [({"samples": 7}, "samples=7: must be 1 to 6"), ({"image": 0}, "image=0")])
def test_options_that_it_cannot_take_are_refused(images, options, message):
    with pytest.raises(ValueError, match=message):
        build(images, **options)


def test_a_link_to_itself_hides_nothing_beside_it(tmp_path):
    for name in ("a/1.png", "b/2.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (9, 9)).save(tmp_path / name)
    for link in (tmp_path / "itself", tmp_path / "a/0"):
        link.symlink_to(link)
    assert len(folder.build(tmp_path, path=str(tmp_path))) == 2


def test_files_in_memory_cannot_be_cold(monkeypatch, tmp_path):
    Image.new("RGB", (9, 9)).save(tmp_path / "1.png")
    monkeypatch.setattr(folder._disk, "identify", lambda path: {"file_system": "tmpfs"})
    with pytest.raises(ValueError, match=r"^cold: .* lies in memory"):
        folder.build(tmp_path, path=str(tmp_path), cold=True)


def test_a_file_that_may_not_be_read_is_left_to_its_reader(monkeypatch, tmp_path):
    for name in ("1.png", "2.png"):
        Image.new("RGB", (9, 9)).save(tmp_path / name)
    opens = os.open

    def refuse(path, *rest, **more):
        if str(path).endswith("1.png"):
            raise PermissionError(13, "Permission denied", path)
        return opens(path, *rest, **more)

    source = folder.build(tmp_path, path=str(tmp_path))
    source.cold = True
    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("1.png"))
    source.start_epoch()
