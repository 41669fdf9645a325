"""tf.data: parallel calls make batches, a buffer holds them ahead of the model, and AUTOTUNE may choose how many of either."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

from ._batch import MOST_BATCHES, MOST_THREADS, OnError, Probe, Source


def build(
    source: Source,
    probe: Probe,
    on_error: OnError,
    *,
    num_parallel_calls: int | None = None,
    prefetch: int | None = None,
    cache: bool = False,
    deterministic: bool = True,
    private_threadpool_size: int | None = None,
    ops: Literal["auto", "native", "python"] = "auto",
) -> Any:
    """num_parallel_calls and prefetch (batches): left out, AUTOTUNE chooses them. Calls run in a pool of as many threads as
    there are cores, or private_threadpool_size: more calls than that do nothing. deterministic: false lets a late batch be
    overtaken.

    ops: native reads and decodes JPEG files without Python, so that calls really run side by side; python serves every source.
    auto is native where it can be. cache: keeps decoded samples in memory, by their number, so that each epoch may still have
    an order of its own (Dataset.cache would repeat the first one's); it is in Python.
    """
    for option, value, least, most in (
        ("num_parallel_calls", num_parallel_calls, 1, MOST_THREADS),
        ("prefetch", prefetch, 0, MOST_BATCHES),
        ("private_threadpool_size", private_threadpool_size, 1, MOST_THREADS),
    ):
        if value is not None and not least <= value <= most:
            raise ValueError(f"{option}={value}: must be {least} to {most:,}; leave it out for TensorFlow's own choice")
    jpeg_paths: Sequence[str] | None = getattr(source, "jpeg_paths", None)
    if ops == "native" and jpeg_paths is None:
        raise ValueError("ops=native: reads JPEG files, and this source is none of those: use ops: python")
    if ops == "native" and cache:
        raise ValueError("cache: is in Python: use ops: python")
    if ops == "native" and on_error == "skip":
        raise ValueError("ops=native: cannot leave unreadable samples out: use ops: python, or on_error: fail")
    from ._tf_data import BatchMaker, Maker, NativeMaker, TfPrefetch

    maker: BatchMaker
    if jpeg_paths is not None and (ops == "native" or (ops == "auto" and not cache and on_error == "fail")):
        maker = NativeMaker(source, jpeg_paths)
    else:
        maker = Maker(source, probe, on_error, cache)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    threads = private_threadpool_size or cores or 1
    return TfPrefetch(maker, num_parallel_calls, prefetch, deterministic, private_threadpool_size, threads)
