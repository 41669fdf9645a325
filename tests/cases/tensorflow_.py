"""Pipelines of tf.data, whose elements are numbers and whose costs are Python functions."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from costs import compute, wait
from loop import train


def _numbers(count):
    return tf.data.Dataset.range(count)


def _python(function):
    """A Python function of one number as a stage of the pipeline."""
    return lambda number: tf.ensure_shape(tf.numpy_function(function, [number], tf.int64), [])


def _remote(ms):
    def fetch(number):
        wait(ms)
        return number

    return _python(fetch)


def _with_threads(dataset, count):
    """A pool of its own; otherwise all pipelines share one with as many threads as there are cores."""
    options = tf.data.Options()
    options.threading.private_threadpool_size = count
    return dataset.with_options(options)


@_python
def _uneven(number):
    wait(220 if number % 20 == 0 else 9)
    return number


def uneven_map(bad):
    """One element in twenty takes twenty times as long, on a pool of two threads; keeping the order is not to blame.

    good: sixteen threads, and the order is still kept.
    """
    elements = _numbers(10 * 90).map(_uneven, num_parallel_calls=8 if bad else 16, deterministic=True).batch(10).prefetch(1)
    return train(elements if bad else _with_threads(elements, 16), step_ms=40)


def one_file_at_a_time(bad):
    """Files of an object store are read one after the other, one element at a time.

    good: sixteen at once, and a thread for each.
    """
    at_once = 1 if bad else 16

    def read_file(_file):
        return _numbers(130).map(_remote(4.5))

    elements = _numbers(16).interleave(read_file, cycle_length=at_once, num_parallel_calls=at_once).batch(20).prefetch(2)
    return train(elements if bad else _with_threads(elements, 16), step_ms=38)


def shuffle_of_read_elements(bad):
    """A shuffle buffer is filled with elements that were read already, before the first batch of every epoch.

    good: the names are shuffled, and read after that.
    """
    elements, fetch = _numbers(300), _remote(3.2)
    elements = elements.map(fetch).shuffle(300) if bad else elements.shuffle(300).map(fetch)
    return train(elements.batch(10).prefetch(2), step_ms=42, epochs=3)


def map_beyond_its_pool(bad):
    """Eight parallel calls were asked for, and the pool has as many threads as the machine has cores: two.

    good: sixteen calls on sixteen threads.
    """
    elements = _numbers(14 * 100).map(_remote(11), num_parallel_calls=8 if bad else 16).batch(14).prefetch(2)
    return train(elements if bad else _with_threads(elements, 16), step_ms=38)


def serial_map(bad):
    """The map makes one element at a time, and each waits.

    good: eight at a time, on eight threads, some batches ahead.
    """
    if bad:
        return train(_numbers(16 * 90).map(_remote(5.5)).batch(16), step_ms=38)
    elements = _numbers(16 * 100).map(_remote(5.5), num_parallel_calls=8).batch(16).prefetch(2)
    return train(_with_threads(elements, 8), step_ms=38)


def python_generator(bad):
    """A Python generator makes all elements, one after the other; the parallel map behind it has nothing to do.

    good: they were made before, and come from an array.
    """
    count = 15 * (60 if bad else 100)

    def made_one_by_one():
        for number in range(count):
            compute(4.5)
            yield number

    if bad:
        elements = tf.data.Dataset.from_generator(made_one_by_one, output_signature=tf.TensorSpec([], tf.int64))
    else:
        elements = tf.data.Dataset.from_tensor_slices(np.arange(count))
    return train(elements.map(lambda number: number + 1, num_parallel_calls=8).batch(15).prefetch(2), step_ms=38)
