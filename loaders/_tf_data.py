"""The tf.data pipeline of tf_prefetch: index batches -> one call a batch, several side by side -> a buffer."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ._batch import WAY_OUT, Batch, OnError, Probe, Source, UnreadableSample, collated, make_samples
from ._tensorflow import import_tensorflow

tf = import_tensorflow()


class BatchMaker(Protocol):
    """Turns sample numbers, an int64 tensor of shape (n,), into a batch's three tensors. Called while the graph is built."""

    def __call__(self, indices: Any) -> Any: ...

    def error(self, first_index: int) -> Exception | None:
        """What the batch that begins with this sample raised, if Python raised it: TensorFlow passes on its text alone."""


class TfPrefetch:
    """One dataset for all epochs: building its graph anew would cost each of them some tens of milliseconds."""

    def __init__(
        self,
        maker: BatchMaker,
        num_parallel_calls: int | None,
        prefetch: int | None,
        deterministic: bool,
        private_threadpool_size: int | None,
        threads: int,
    ) -> None:
        self._maker = maker
        self._of_epoch: Sequence[Sequence[int]] = ()
        self.n_workers = min(num_parallel_calls or threads, threads)
        # The map keeps a finished batch for each of its calls. What AUTOTUNE will choose is not known before: twice as many.
        self.prefetch_batches = self.n_workers + (2 * self.n_workers if prefetch is None else prefetch)
        options = tf.data.Options()
        options.deterministic = deterministic
        if private_threadpool_size is not None:
            options.threading.private_threadpool_size = private_threadpool_size
        indices = tf.data.Dataset.from_generator(lambda: self._of_epoch, output_signature=tf.TensorSpec((None,), tf.int64))
        made = indices.map(maker, num_parallel_calls or tf.data.AUTOTUNE, deterministic)
        if prefetch != 0:
            made = made.prefetch(tf.data.AUTOTUNE if prefetch is None else prefetch)
        self._dataset = made.with_options(options)

    def epoch(self, batches: Sequence[Sequence[int]]) -> _Epoch:
        self._of_epoch = batches
        return _Epoch(self._dataset, batches, self._maker)

    def close(self) -> None:
        """The pipeline ends with its iterator."""


class _Epoch:
    """iter() starts the pipeline, and must be seen to."""

    def __init__(self, dataset: Any, batches: Sequence[Sequence[int]], maker: BatchMaker) -> None:
        self._dataset, self._batches, self._maker = dataset, batches, maker

    def __iter__(self) -> Iterator[Batch]:
        return self._given([iter(self._dataset)])

    def _given(self, running: list[Any]) -> Iterator[Batch]:
        """running: the dataset's iterator, held nowhere else.

        Its end waits for AUTOTUNE's thread, which looks again after 10 ms, then 20, 40 and so on: after an epoch of 2.6 s that
        can take another 2.5 s, in which nothing is loaded. So it ends in the background.
        """
        try:
            for number in range(len(self._batches) + 1):
                try:
                    index, x, y = next(running[0])
                except StopIteration:
                    return
                except tf.errors.OpError as error:
                    raise self._maker.error(self._batches[number][0]) or UnreadableSample(_words(error)) from None
                yield Batch(index, x, y)
        finally:
            threading.Thread(target=running.clear, daemon=True).start()


def _words(error: Exception) -> str:
    """What TensorFlow says without its nodes and graphs, and what can be done."""
    text = str(error).split(" [Op:")[0].split("\n\t [[{{node")[0].strip()
    return f"a sample cannot be used: {text}. {WAY_OUT}, with ops: python"


class Maker:
    """Reads and decodes in Python, whatever the source: each call makes one batch, in one thread of the pool."""

    def __init__(self, source: Source, probe: Probe, on_error: OnError, cache: bool) -> None:
        self._source: Source = _Cached(source) if cache else source
        self._probe, self._on_error = probe, on_error
        self._errors: dict[int, Exception] = {}

    def __call__(self, indices: Any) -> Any:
        return tf.numpy_function(self._make, [indices], [tf.int64, tf.uint8, tf.int64])

    def error(self, first_index: int) -> Exception | None:
        return self._errors.get(first_index)

    def _make(self, indices: NDArray[np.int64]) -> Batch:
        try:
            batch = collated(make_samples(self._source, indices.tolist(), self._probe, self._on_error))
        except Exception as error:
            self._errors[int(indices[0])] = error
            raise
        self._probe.end()
        return batch


class NativeMaker:
    """Reads and decodes JPEG files in TensorFlow's own operations: no interpreter lock, and no record of what a batch cost.

    As Pillow does it: the accurate inverse DCT (the default differs in single levels), and a resize that averages over all
    pixels it leaves out (without antialias single pixels are off by up to 173 levels).
    """

    def __init__(self, source: Any, jpeg_paths: Sequence[str]) -> None:
        self._edge: int = source.sample_shape[0]
        self._paths = tf.constant(list(jpeg_paths))
        self._labels = tf.constant([source.label(i) for i in range(len(jpeg_paths))], tf.int64)

    def __call__(self, indices: Any) -> Any:
        sample = tf.TensorSpec((self._edge, self._edge, 3), tf.uint8)
        x = tf.map_fn(self._decoded, tf.gather(self._paths, indices), fn_output_signature=sample)
        return indices, x, tf.gather(self._labels, indices)

    def error(self, first_index: int) -> Exception | None:
        """Its errors are TensorFlow's own, and name the file."""
        return None

    def _decoded(self, path: Any) -> Any:
        pixels = tf.io.decode_jpeg(tf.io.read_file(path), channels=3, dct_method="INTEGER_ACCURATE")
        small = tf.image.resize(pixels, (self._edge, self._edge), "bilinear", antialias=True)
        return tf.cast(tf.round(small), tf.uint8)


class _Cached:
    """A source whose decoded samples stay in memory. What comes from there was asked of nobody: it counts no bytes."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._kept: dict[int, NDArray[np.uint8]] = {}
        self.label, self.name = source.label, source.name

    def __len__(self) -> int:
        return len(self._source)

    def read(self, index: int) -> bytes:
        return _Encoded(b"" if index in self._kept else self._source.read(index), index)

    def decode(self, encoded: bytes) -> NDArray[np.uint8]:
        assert isinstance(encoded, _Encoded)
        if encoded.number not in self._kept:
            self._kept[encoded.number] = self._source.decode(bytes(encoded))
        return self._kept[encoded.number]


class _Encoded(bytes):
    """Bytes that know which sample they are."""

    number: int

    def __new__(cls, content: bytes, number: int) -> _Encoded:
        made = super().__new__(cls, content)
        made.number = number
        return made
