"""The network in PyTorch, written with torch.nn: a dynamic graph, weights that stay on the device."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from ._torch_device import CpuDevice, CudaDevice, choose

LOSSES_KEPT = 10


def build(
    sample_shape: tuple[int, ...], n_classes: int, device: str, seed: int, *, hidden: int, learning_rate: float
) -> TwoLayer:
    torch.manual_seed(seed)
    chosen, n_inputs = choose(device), math.prod(sample_shape)
    try:
        network = nn.Sequential(nn.Linear(n_inputs, hidden), nn.ReLU(), nn.Linear(hidden, n_classes)).to(chosen.torch_device)
    except RuntimeError as error:  # what torch raises where Python would raise MemoryError
        size = f"{4 * n_inputs * hidden / 1e9:,.0f} GB"
        raise ValueError(
            f"hidden={hidden}: a first layer of {n_inputs:,} x {hidden:,} weights, {size}, does not fit"
        ) from error
    return TwoLayer(network, chosen, learning_rate)


class TwoLayer:
    """SGD with momentum on cross-entropy. Losses stay on the device until they are asked for: reading one would wait for it."""

    def __init__(self, network: nn.Module, device: CpuDevice | CudaDevice, learning_rate: float) -> None:
        self._device = device
        self._network = network
        self._optimizer = torch.optim.SGD(self._network.parameters(), lr=learning_rate, momentum=0.9)
        self._loss = nn.CrossEntropyLoss()
        self._first_losses: list[torch.Tensor] = []
        self._last_losses: deque[torch.Tensor] = deque(maxlen=LOSSES_KEPT)
        self.device = device.facts

    def step(self, batch: Any) -> None:
        """Copy, forward, backward, update."""
        with self._device.copying():
            x = self._device.put(batch.x)
            y = self._device.put(batch.y)
        with self._device.computing():
            loss = self._loss(self._network(x.flatten(1).float().div_(255).sub_(0.5)), y)
            self._optimizer.zero_grad()
            loss.backward()
            self._optimizer.step()
        if len(self._first_losses) < LOSSES_KEPT:
            self._first_losses.append(loss.detach())
        self._last_losses.append(loss.detach())

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
        return torch.stack(self._first_losses).mean().item(), torch.stack(list(self._last_losses)).mean().item()
