"""The network in TensorFlow, traced once by tf.function: a static graph, variables that stay on the device."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ._host_device import HostDevice
from ._tensorflow import import_tensorflow

tf = import_tensorflow()
LOSSES_KEPT = 10


def build(
    sample_shape: tuple[int, ...], n_classes: int, device: str, seed: int, *, hidden: int, learning_rate: float
) -> TwoLayer:
    gpus = tf.config.list_physical_devices("GPU")
    if device not in ("auto", "cpu", "cuda") or (device == "cuda" and not gpus):
        there = "cpu, cuda" if gpus else "cpu"
        raise ValueError(f"device: this tensorflow sees no {device} here. Available: {there}, and --device simulated")
    n_inputs, memory_bytes = math.prod(sample_shape), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if 4 * n_inputs * hidden > memory_bytes:  # refused before it is tried: TensorFlow then prints a page on its allocator
        size = f"{4 * n_inputs * hidden / 1e9:,.0f} GB"
        raise ValueError(f"hidden={hidden}: a first layer of {n_inputs:,} x {hidden:,} weights, {size}, does not fit")
    kind = "cpu" if device == "cpu" or not gpus else "cuda"
    return TwoLayer(n_inputs, n_classes, kind, seed, hidden, learning_rate)


class GpuDevice(HostDevice):
    """TensorFlow tells nobody when its GPU was busy, unless it is profiled: not measured."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.facts = {"kind": "cuda", "name": name, "simulated": False, "method": None}
        self.busy_ns = None

    @contextmanager
    def computing(self) -> Iterator[None]:
        """The host's times are not the device's: none are kept."""
        yield

    def sync(self) -> None:
        tf.test.experimental.sync_devices()


class TwoLayer:
    """SGD with momentum on cross-entropy. Losses stay on the device until they are asked for: reading one would wait for it."""

    def __init__(self, inputs: int, n_classes: int, kind: str, seed: int, hidden: int, learning_rate: float) -> None:
        self._place = "/GPU:0" if kind == "cuda" else "/CPU:0"
        self._device = GpuDevice("GPU:0") if kind == "cuda" else HostDevice("cpu (tensorflow)")
        self.device = self._device.facts
        self._rate = learning_rate
        with tf.device(self._place):
            self._weights = [tf.Variable(value) for value in _first_weights(inputs, hidden, n_classes, seed)]
            self._speeds = [tf.Variable(tf.zeros_like(weight)) for weight in self._weights]
        # None: the last batch of an epoch is shorter, and tracing again would stop the run for a tenth of a second.
        signature = [tf.TensorSpec((None, inputs), tf.uint8), tf.TensorSpec((None,), tf.int64)]
        self._train = tf.function(self._update, input_signature=signature)
        self._inputs = inputs
        self._first_losses: list[Any] = []
        self._last_losses: deque[Any] = deque(maxlen=LOSSES_KEPT)

    def step(self, batch: Any) -> None:
        """Copy, forward, backward, update."""
        with tf.device(self._place):
            with self._device.copying():
                x = tf.reshape(tf.convert_to_tensor(batch.x), (-1, self._inputs))
                y = tf.convert_to_tensor(batch.y)
            with self._device.computing():
                loss = self._train(x, y)
        if len(self._first_losses) < LOSSES_KEPT:
            self._first_losses.append(loss)
        self._last_losses.append(loss)

    def _update(self, x: Any, y: Any) -> Any:
        w1, b1, w2, b2 = self._weights
        with tf.GradientTape() as tape:
            hidden = tf.nn.relu((tf.cast(x, tf.float32) / 255 - 0.5) @ w1 + b1)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, hidden @ w2 + b2))
        for weight, speed, gradient in zip(self._weights, self._speeds, tape.gradient(loss, self._weights), strict=True):
            speed.assign(0.9 * speed + gradient)
            weight.assign_sub(self._rate * speed)
        return loss

    def sync(self) -> None:
        self._device.sync()

    def drain(self) -> Sequence[tuple[str, int, int, int]]:
        return self._device.drain()

    def busy_ns(self) -> int | None:
        return self._device.busy_ns

    def losses(self) -> tuple[float, float] | None:
        """Waits for the device."""
        if not self._first_losses:
            return None
        return float(tf.reduce_mean(self._first_losses)), float(tf.reduce_mean(list(self._last_losses)))


def _first_weights(inputs: int, hidden: int, n_classes: int, seed: int) -> list[Any]:
    """Uniform within 1 / sqrt(inputs of the layer), as torch.nn.Linear begins."""
    weights = []
    for i, (n_in, n_out) in enumerate([(inputs, hidden), (hidden, n_classes)]):
        bound = 1 / math.sqrt(n_in)
        for j, shape in enumerate([(n_in, n_out), (n_out,)]):
            weights.append(tf.random.stateless_uniform(shape, (seed, 2 * i + j), -bound, bound))
    return weights
