"""What is particular to tf.data: TensorFlow's decoding against Pillow's, its cache, its errors, and what it refuses."""

import io

import numpy as np
import pytest
from PIL import Image

from loaders import tf_prefetch

tf = pytest.importorskip("tensorflow", reason="needs tensorflow: pip install 'stallscope[tensorflow]'")


class Silent:
    def begin(self): ...
    def item(self, index): ...
    def items(self, n_items, n_skipped, bytes_asked): ...
    def end(self): ...


class Jpegs:
    """Images of noise and waves, of several sizes, in a folder."""

    n_classes = 3

    def __init__(self, folder, edge=32):
        self.sample_shape, self.jpeg_paths, self.decoded = (edge, edge, 3), [], 0
        rng = np.random.default_rng(0)
        for i, size in enumerate([(500, 375), (64, 64), (33, 200), (32, 32), (1000, 40)]):
            waves = np.add.outer(np.sin(np.arange(size[1]) / 9), np.cos(np.arange(size[0]) / 5))[..., np.newaxis]
            pixels = np.clip(128 + 50 * waves + rng.integers(-40, 41, (size[1], size[0], 3)), 0, 255).astype(np.uint8)
            path = folder / f"{i}.jpg"
            Image.fromarray(pixels).save(path, "JPEG", quality=90)
            self.jpeg_paths.append(str(path))

    def __len__(self):
        return len(self.jpeg_paths)

    def read(self, index):
        with open(self.jpeg_paths[index], "rb") as file:
            return file.read()

    def decode(self, encoded):
        self.decoded += 1
        edge = self.sample_shape[0]
        with Image.open(io.BytesIO(encoded)) as opened:
            return np.array(opened.convert("RGB").resize((edge, edge), Image.Resampling.BILINEAR))

    def label(self, index):
        return index % 3

    def name(self, index):
        return self.jpeg_paths[index]


@pytest.fixture
def jpegs(tmp_path):
    return Jpegs(tmp_path)


def test_pixels_are_decoded_as_pillow_does_bit_for_bit(jpegs):
    for path in jpegs.jpeg_paths:
        ours = tf.io.decode_jpeg(tf.io.read_file(path), channels=3, dct_method="INTEGER_ACCURATE").numpy()
        with Image.open(path) as opened:
            assert np.array_equal(ours, np.array(opened))


@pytest.mark.parametrize("edge", [8, 32, 224])
def test_and_resized_within_three_levels(tmp_path, edge):
    jpegs = Jpegs(tmp_path, edge)
    loader = tf_prefetch.build(jpegs, Silent(), "fail", ops="native")
    [batch] = loader.epoch([[3, 1, 4, 0, 2]])
    for index, x, y in zip(batch.index.numpy(), batch.x.numpy(), batch.y.numpy(), strict=True):
        apart = np.abs(x.astype(int) - jpegs.decode(jpegs.read(index)))
        assert apart.max() <= 3
        assert y == jpegs.label(index)


def test_the_cache_decodes_once_and_leaves_each_epoch_its_order(jpegs):
    loader = tf_prefetch.build(jpegs, Silent(), "fail", cache=True)
    for batches in ([[0, 1], [2, 3, 4]], [[4, 2], [0, 3, 1]], [[1], [0]]):
        given = list(loader.epoch(batches))
        assert [batch.index.numpy().tolist() for batch in given] == batches
    assert jpegs.decoded == 5


def test_an_error_comes_where_its_batch_would_have_come(jpegs):
    jpegs.jpeg_paths[3] = "/nowhere/3.jpg"
    loader = tf_prefetch.build(jpegs, Silent(), "fail", ops="python", num_parallel_calls=2)
    given = iter(loader.epoch([[0], [1], [2], [3], [4]]))
    assert [next(given).index.numpy().tolist() for _ in range(3)] == [[0], [1], [2]]
    with pytest.raises(ValueError, match=r"^sample /nowhere/3.jpg cannot be used: "):
        next(given)


def test_a_native_error_names_the_file(jpegs):
    jpegs.jpeg_paths[3] = "/nowhere/3.jpg"
    loader = tf_prefetch.build(jpegs, Silent(), "fail", ops="native")
    with pytest.raises(ValueError, match=r"/nowhere/3.jpg"):
        list(loader.epoch([[0], [3]]))


def test_an_abandoned_epoch_does_not_disturb_the_next(jpegs):
    loader = tf_prefetch.build(jpegs, Silent(), "fail", ops="python")
    next(iter(loader.epoch([[0], [1], [2]])))
    assert [batch.index.numpy().tolist() for batch in loader.epoch([[4], [3]])] == [[4], [3]]
    loader.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_parallel_calls": 0}, "num_parallel_calls=0: must be 1 to 1,024"),
        ({"prefetch": -1}, "prefetch=-1: must be 0 to 100,000"),
        ({"private_threadpool_size": 0}, "private_threadpool_size=0: must be 1 to 1,024"),
        ({"private_threadpool_size": 10**8}, "private_threadpool_size=100000000: must be 1 to 1,024"),
        ({"ops": "native", "cache": True}, "cache: is in Python"),
    ],
)
def test_what_it_cannot_take_is_refused(jpegs, options, message):
    with pytest.raises(ValueError, match=message):
        tf_prefetch.build(jpegs, Silent(), "fail", **options)


def test_native_operations_are_refused_where_samples_are_no_files(jpegs):
    jpegs.jpeg_paths = None
    with pytest.raises(ValueError, match="ops=native: reads JPEG files"):
        tf_prefetch.build(jpegs, Silent(), "fail", ops="native")


@pytest.mark.parametrize(
    ("options", "workers", "ahead"),
    [
        ({"num_parallel_calls": 2, "prefetch": 4, "private_threadpool_size": 8}, 2, 6),
        ({"num_parallel_calls": 8, "prefetch": 0, "private_threadpool_size": 3}, 3, 3),
        ({"private_threadpool_size": 3}, 3, 9),
    ],
)
def test_it_says_how_many_make_batches_and_how_far_ahead(jpegs, options, workers, ahead):
    loader = tf_prefetch.build(jpegs, Silent(), "fail", **options)
    assert (loader.n_workers, loader.prefetch_batches) == (workers, ahead)
